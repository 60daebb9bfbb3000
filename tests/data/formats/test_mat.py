"""MATLAB's arrays, compared with what scipy wrote, and inflating within bounds."""

import io
import zlib

import numpy as np
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st
from support.data_files import RNG, pixels

from prer.data.formats import mat

few = settings(max_examples=40, deadline=None, database=None)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_arrays_of_every_type_are_those_that_scipy_wrote(tmp_path, packed, kind):
    wide, one = RNG.integers(0, 100, (3, 4, 5)).astype(kind), np.ones((1, 1), kind)
    scipy.io.savemat(tmp_path / "a.mat", {"wide": wide, "one": one, "note": "hello"}, do_compression=packed)
    found = mat.arrays(tmp_path / "a.mat", "wide", "one", "note", "none")
    assert set(found) == {"wide", "one"}
    assert np.array_equal(found["wide"], wide) and np.array_equal(found["one"], one)
    oracle = scipy.io.loadmat(tmp_path / "a.mat")
    assert all(np.array_equal(found[name], oracle[name]) and found[name].dtype == oracle[name].dtype for name in found)


@few
@given(st.binary(max_size=5000), st.integers(1, 6000), st.integers(1, 3000))
def test_inflating_gives_what_was_deflated_and_never_more_than_asked_for(data, most, block):
    packed = zlib.compress(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mat, "BLOCK", block)
        got = mat.Element(3, len(packed), packed=True).read(io.BytesIO(b"abc" + packed + b"what follows"), most)
    assert got == data[:most]


def test_inflating_stops_where_its_part_of_the_file_ends():
    packed = zlib.compress(pixels(3000).tobytes())
    assert 900 < len(mat.Element(0, 1000, packed=True).read(io.BytesIO(packed), 5000)) < 1000
