"""The warning of `learn` about too few steps."""

import warnings

import pytest
from support.learners import blobs

from prer import learn
from prer.learners import Naive


@pytest.mark.parametrize("observe", [None, lambda event: None])
def test_too_few_steps_give_one_warning_unless_the_caller_has_warned(observe):
    words = "a task has 64 samples to learn from, so that phase 'classifier' has only 20 steps; raise the epochs, or"
    with pytest.warns(UserWarning, match=words) as warned:
        learn(blobs(), Naive(epochs=10), seeds=1, device="cpu", observe=observe)
    assert len(warned) == 1 and warned[0].filename == __file__
    with warnings.catch_warnings(action="error"):
        learn(blobs(), Naive(epochs=10), seeds=1, device="cpu", observe=observe, warned=True)
