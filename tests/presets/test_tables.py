"""The tables of recommended settings."""

from dataclasses import fields

import pytest
from support.learners import TRAINED

from prer.data.catalogue import CATALOGUE
from prer.learners import LEARNERS


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("data", CATALOGUE)
def test_the_length_of_training_is_set_for_every_data_set(name, data):
    """Results of these settings are recorded; they must not change with the rule for `auto`."""
    learner = LEARNERS[name].like(data)
    assert "auto" not in (learner.batch, *(getattr(learner, f.name) for f in fields(learner) if "epochs" in f.name))
