"""Ranges: values stay within them, and are as likely as they should be."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prer.sweeps.distributions import Range

BITS = st.integers(0, 2**64 - 1)
quickly = settings(derandomize=True, database=None, deadline=None, max_examples=60)


@given(bits=BITS, ends=st.tuples(*[st.floats(-1e300, 1e300)] * 2), log=st.booleans())
@quickly
def test_numbers_are_within_their_range(bits, ends, log):
    low, high = sorted(abs(end) + 1e-300 for end in ends) if log else sorted(ends)
    assert low <= Range(low, high, log).value(bits) <= high


@given(bits=BITS, ends=st.tuples(*[st.integers(1, 10**18)] * 2), log=st.booleans())
@quickly
def test_whole_numbers_are_whole_and_within_their_range(bits, ends, log):
    low, high = sorted(ends)
    value = Range(low, high, log).value(bits)
    assert type(value) is int and low <= value <= high


@pytest.mark.parametrize("log", [False, True])
def test_each_whole_number_is_as_likely_as_it_should_be(log):
    drawn = np.bincount([Range(1, 4, log).value(i << 54) for i in range(1024)], minlength=5)[1:] / 1024
    wanted = [math.log((k + 1) / k) / math.log(5) if log else 0.25 for k in (1, 2, 3, 4)]
    np.testing.assert_allclose(drawn, wanted, atol=0.002)
