"""The learners: classes that learn tasks and predict, one method a file."""

from prer.learners.agem import AGEM
from prer.learners.base import Learner
from prer.learners.der import DER
from prer.learners.dgr import DGR
from prer.learners.er import ER
from prer.learners.ewc import EWC
from prer.learners.gem import GEM
from prer.learners.joint import Joint
from prer.learners.lwf import LWF
from prer.learners.naive import Naive
from prer.learners.ncm import NCM
from prer.learners.prer import PRER
from prer.learners.ranpac import RanPAC
from prer.learners.replay import Replay
from prer.learners.si import SI
from prer.learners.slda import SLDA
from prer.learners.variants import PRERVariant

ALL = (Naive, Joint, LWF, EWC, SI, GEM, AGEM, ER, Replay, DER, DGR, NCM, SLDA, RanPAC, PRER)
LEARNERS: dict[str, type[Learner]] = {learner.name: learner for learner in ALL}
ABLATION: dict[str, type[Learner]] = {PRERVariant.name: PRERVariant}  # for the paper's ablation, not for users
