"""What learns a task and predicts; one method, one file."""

from prer.learners.base import Learner
from prer.learners.joint import Joint
from prer.learners.naive import Naive
from prer.learners.prer import PRER

LEARNERS: dict[str, type[Learner]] = {learner.name: learner for learner in (Naive, Joint, PRER)}
