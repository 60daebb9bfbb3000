"""Experiments from overrides and tables, and what is refused."""

import pytest

from prer.errors import InputError
from prer.runs.experiment import Experiment


def parsed(*overrides, **tables):
    """The experiment of these overrides and tables."""
    return Experiment.parse(tables, overrides)


def refused(said, *overrides, **tables):
    """Assert that these overrides and tables are refused with this sentence, in one line."""
    with pytest.raises(InputError, match=said) as caught:
        parsed(*overrides, **tables)
    assert "\n" not in str(caught.value)
