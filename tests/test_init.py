"""The public names of the package."""

import pytest

import prer
from prer.learners import LEARNERS


def test_every_public_name_is_there_and_every_learner_is_public():
    public = {getattr(prer, name) for name in prer.__all__}
    assert set(LEARNERS.values()) <= public
    with pytest.raises(AttributeError, match="no attribute 'Ewc'"):
        prer.Ewc  # noqa: B018
