"""Every learner, and every one that trains networks."""

import pytest
from support.learners import TRAINED

from prer.learners import LEARNERS


@pytest.fixture(params=sorted(LEARNERS))
def name(request):
    """The name of a learner."""
    return request.param


@pytest.fixture(params=TRAINED)
def trained(request):
    """The name of a learner with networks and epochs."""
    return request.param
