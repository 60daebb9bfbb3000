"""Every learner."""

import pytest

from prer.learners import LEARNERS


@pytest.fixture(params=sorted(LEARNERS))
def name(request):
    """The name of a learner."""
    return request.param
