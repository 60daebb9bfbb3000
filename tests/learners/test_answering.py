"""The head, the likelihood, or both predict."""

import pytest
import torch
from sklearn.datasets import load_digits
from support.densities import assert_close

from prer import PRER, Stream, learn
from prer.learners import answering

X, Y = load_digits(return_X_y=True)
QUICK = {"encoder": "identity", "embedding": 20, "density": "mixture", "epochs": 3}


@pytest.fixture(scope="module")
def learned():
    """PRER after two tasks, and samples of it."""
    learner = PRER(**QUICK, answer="both")
    chosen = Y < 4
    learn(Stream.split(X[chosen], Y[chosen], classes_per_task=2, scenario="class"), learner, seeds=2, warned=True)
    return learner, learner.encoder_(learner.inputs_(torch.from_numpy(X[chosen][:60]).float().expand(2, -1, -1)))


def answers(learner, z):
    found = {}
    for learner.answer in ("head", "density", "both"):
        found[learner.answer] = answering.answer_of(learner, z, 0)
    return found


def test_both_is_the_product_of_head_and_tempered_likelihood(learned):
    found = answers(*learned)
    expected = found["head"].softmax(-1).log() + answering.OF_VECTORS / 20 * found["density"]
    assert_close(found["both"], expected, 1e-3)


def test_the_likelihood_is_that_of_the_density(learned):
    learner, z = learned
    found = answers(learner, z)["density"]
    assert_close(found, learner.density_.log_probs(z, range(4)), 1e-3)
    assert not torch.equal(found.argmax(-1), answers(learner, z)["head"].argmax(-1))


def test_all_three_are_mostly_right(learned):
    learner, z = learned
    right = torch.from_numpy(Y[Y < 4][:60])
    for scores in answers(learner, z).values():
        assert (scores.argmax(-1) == right).float().mean() > 0.8


def test_before_any_class_is_known_the_head_answers():
    learner = PRER(**QUICK, answer="both")
    learner.start((64,), (0,))
    assert learner.density_.counts.shape[1] == 0
    learner.heads_.append(torch.nn.Identity())
    z = torch.ones(1, 2, 20)
    assert torch.equal(answering.answer_of(learner, z, 0), z)
