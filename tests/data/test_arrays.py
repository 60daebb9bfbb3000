"""What x and y may be: numbers and labels of any kind, checked where they enter."""

import numpy as np
import pytest
import torch
from support.arrays import IMAGES, X, Y, images, vectors

from prer.data.arrays import Data, as_labels, as_pair, as_samples, with_medians
from prer.errors import InputError


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((9, 8), (1, 9, 8)),
        ((9, 8, 1), (1, 9, 8)),
        ((9, 8, 3), (3, 9, 8)),
        ((9, 8, 4), (4, 9, 8)),
        ((9, 10, 2), (2, 9, 10)),
        ((3, 9, 8), (3, 9, 8)),
        ((1, 9, 8), (1, 9, 8)),
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("wrap", [np.asarray, torch.as_tensor])
def test_images_come_as_channels_rows_columns(shape, expected, dtype, wrap):
    x = images(6, *shape, dtype=dtype)
    samples = as_samples(wrap(x))
    assert samples.shape == (6, *expected)
    assert samples.dtype == (torch.float32 if np.dtype(dtype).kind == "f" else torch.uint8)
    last = x.reshape(6, 9, -1, 1) if x.ndim == 3 else x
    moved = last if last.shape[1:] == expected else np.moveaxis(last, -1, 1)
    assert np.array_equal(samples.numpy(), moved)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.uint8, np.int32, bool])
def test_vectors_come_as_floats(dtype):
    x = (vectors(6) % 2).astype(dtype)
    samples = as_samples(x)
    assert (samples.shape, samples.dtype) == ((6, 3), torch.float32)
    assert np.array_equal(samples.numpy(), x)


def test_data_that_may_not_be_written_is_welcome():
    x = images(6, 8, 8)
    x.flags.writeable = False  # as np.frombuffer and a memory map give it
    torch.set_warn_always(True)
    try:
        assert as_samples(x).shape == (6, 1, 8, 8)
    finally:
        torch.set_warn_always(False)


def test_numbers_of_half_precision_are_welcome():
    x = torch.ones(8, 3, dtype=torch.bfloat16)
    assert as_samples(x).dtype == torch.float32


def spoiled(value, kind=float):
    x = X.astype(kind)
    x[2, 1] = value
    return x


BAD_LABELS = {
    "None": ([None, *Y[1:].tolist()], "missing"),
    "all None": ([None] * 8, "missing"),
    "None among strings": (["a"] * 4 + ["b"] * 3 + [None], "missing"),
    "NaN": (np.array([0, 0, 0, 1, 1, 1, 1, np.nan]), "missing"),
    "NaN among objects": (np.array([*"aaabbbb", np.nan], object), "missing"),
    "NaN among strings": (["a"] * 4 + ["b"] * 2 + [float("nan")] * 2, "missing"),
    "empty string": ([*"aaabbbb", ""], "missing"),
    "NUL": ([*"aaabbb", "b\0", "b"], "NUL"),
    "masked": (np.ma.masked_equal(Y, 1), "masked"),
    "empty bytes": ([b"a"] * 4 + [b"b"] * 3 + [b""], "missing"),
    "negative": (Y - 1, "smallest is -1"),
    "negative objects": ((Y - 1).astype(object), "smallest is -1"),
    "fractional": (Y / 2, "fractions"),
    "infinite": (np.where(Y, np.inf, 0), "whole numbers"),
    "two dimensions": (Y[:, None], "one value for each sample"),
    "one-hot": (np.eye(2)[Y], "one value for each sample"),
    "a scalar": (3, "one value for each sample"),
    "too few": (Y[:7], "x has 8 samples and y has 7 labels"),
    "empty": ([], "8 samples and y has 0 labels"),
    "dates": (np.array(["2020-01-01", "2020-01-02"], "M8[D]")[Y], "labels must be"),
    "complex": (Y * 1j, "labels must be"),
    "huge": (Y.astype(np.uint64) + np.uint64(2**63), "labels must be"),
    "huge floats": (Y * 1e30, "labels must be"),
    "ragged": ([[1, 2], [1]] * 4, "one value for each sample"),
    "ragged arrays": ([np.array([1, 2]), np.array([1])] * 4, "label"),
}


BAD_SAMPLES = {
    "NaN": (spoiled(np.nan), "1 of 8 samples contain NaN or infinite"),
    "infinite": (spoiled(-np.inf), "1 of 8 samples contain NaN or infinite"),
    "NaN images": (IMAGES * np.nan, "8 of 8 samples contain NaN or infinite"),
    "NaN tensor": (torch.tensor(spoiled(np.nan)), "1 of 8 samples contain NaN or infinite"),
    "beyond float32": (spoiled(1e300), "samples"),
    "too small": (IMAGES[:, :7], "7x8 pixels are too small"),
    "too small, channels last": (images(8, 9, 5, 3), "9x5 pixels are too small"),
    "floats above 1": (IMAGES / 255 * 2, r"must lie in \[0, 1\], but these lie in \[0, 2\]"),
    "floats below 0": (IMAGES / 255 - 1, r"must lie in \[0, 1\]"),
    "integers above 255": (IMAGES.astype(int) + 1, r"must lie in 0\.\.255, but these lie in .*256"),
    "integers that reach 16": (IMAGES // 16, "these only reach 15; divide them by 15"),
    "integers below 0": (IMAGES.astype(int) - 1, r"must lie in 0\.\.255, but these lie in -1"),
    "no samples": (X[:0], r"shape \(0, 3\)"),
    "no features": (X[:, :0], r"shape \(8, 0\)"),
    "objects": (X.astype(object), "type object"),
    "strings": (X.astype(str), "give numbers"),
    "complex": (X * 1j, "type complex"),
    "one dimension": (X[:, 0], r"shape \(8,\)"),
    "five dimensions": (IMAGES[..., None, None], "give numbers as images"),
    "nothing": (None, "give numbers as images"),
    "ragged": ([[1, 2], [1]] * 4, "give numbers as images"),
}


BAD = {f"labels: {name}": (X, y, said) for name, (y, said) in BAD_LABELS.items()} | {
    f"samples: {name}": (x, Y, said) for name, (x, said) in BAD_SAMPLES.items()
}


@pytest.mark.parametrize(("x", "y", "said"), BAD.values(), ids=BAD)
def test_bad_samples_and_labels_are_refused_in_one_sentence(x, y, said):
    with pytest.raises(InputError, match=said) as caught:
        as_pair(Data(x, y))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_images_of_truth_values_are_black_and_white():
    samples = as_samples(IMAGES > 127)
    assert samples.dtype == torch.float32
    assert np.array_equal(samples[:, 0].numpy(), IMAGES > 127)


def test_dark_images_are_welcome_where_that_is_said():
    dark = np.full((2, 8, 8), 63, np.uint8)
    assert np.array_equal(as_samples(dark, may_be_dark=True)[:, 0].numpy(), dark)
    assert as_samples(dark + 1).dtype == as_samples(dark * 0).dtype == torch.uint8


def test_samples_that_were_checked_are_taken_as_they_are():
    x = as_samples(images(4, 8, 9, 3))
    assert as_pair(Data(x, [0, 1, 0, 1], checked=True))[0] is x


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([0, 1, True], [0, 1, 1]),
        (np.array([1.0, 2.0]), [1, 2]),
        ([b"a", "b"], ["a", "b"]),
        (np.array(["a", "b"], object), ["a", "b"]),
        ([], []),
    ],
)
def test_labels_are_whole_numbers_or_strings(y, expected):
    labels = as_labels(y)
    assert labels.tolist() == expected
    assert labels.dtype.kind == "U" or labels.dtype == np.int64


def test_fractions_are_named_by_their_row_and_column():
    for column, by, said in (
        ("", "", "the labels have fractions (0.5 in row 2); labels are classes: give whole numbers or names"),
        ("a", "y=", "column 'a' holds fractions (0.5 in row 2); .* names, or name another column with y="),
    ):
        with pytest.raises(InputError, match=said.replace("(", r"\(").replace(")", r"\)")):
            as_labels([1, 0.5], column, by)


def test_missing_values_are_filled_as_the_reading_says():
    x = [[1.0, float("nan")], [3.0, 4.0], [8.0, 6.0], [float("nan")] * 2]
    data = with_medians(Data(x, [0, 1, 0, 1], tests=1))
    assert data.x.tolist() == [[1, 5], [3, 4], [8, 6], [3, 5]] and data.reading.medians == (3, 5)
    for given in (x, np.array(x), torch.tensor(x), np.array(x, np.float16)):
        assert as_samples(given, reading=data.reading).tolist() == data.x.tolist()
        with pytest.raises(InputError, match="2 of 4 samples contain NaN"):
            as_samples(given)
    assert as_pair(Data(x, [0, 1, 0, 1], reading=data.reading))[0].tolist() == data.x.tolist()


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (np.zeros((2, 8, 8)), "filled only in tables and vectors; leave out missing='median'"),
        ([["a"]], "filled only in tables and vectors"),
        ([[1.0, float("inf")]], "infinite values"),
        ([[1e39, 1.0]], "infinite values"),
        ([[1.0, float("nan")]], "column 2 has no value"),
    ],
)
def test_what_has_no_medians_is_refused(x, said):
    with pytest.raises(InputError, match=said):
        with_medians(Data(x, [0, 1]))
