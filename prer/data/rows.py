"""Convert Python objects to arrays: data sets of (x, y) pairs or of named rows, and data frames.

Objects are recognised by duck typing, without an import of the libraries that define them.
"""

# N samples, C channels, H and W image

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prer.data.arrays import Data, as_labels
from prer.data.columns import find_column
from prer.data.formats.images import pixels
from prer.data.frames import checked, is_frame, is_number, of_frame
from prer.data.reading import Missing, Reading
from prer.data.resizing import resized
from prer.errors import InputError
from prer.text import shown

SAMPLES = ("image", "img", "pixel_values", "x", "features")
TEXTS = ("text", "sentence")
LABELS = ("label", "labels", "fine_label", "y", "target")
WANTED = "give pairs (x, y), rows such as {'image': ..., 'label': 3}, or a data frame"


def as_data(
    source: Any,
    y: Any = None,
    *,
    missing: Missing = "error",
    known: Reading | None = None,
    names: Sequence[str] = SAMPLES,
    size: int = 0,
) -> Data:
    """Convert an object to samples and labels.

    Args:
        source: a torch data set (by index or iterable) or any sequence or iterable of pairs (x, y); named rows, as in
            Hugging Face data sets; or a data frame. Each x is a tensor, an array or a Pillow image.
        y: name of the label for named rows or columns; or the labels, if the source holds samples only.
        missing: of a data frame, as in `of_frame`.
        known: how earlier data was read, for a data frame.
        names: a named row has its sample under one of these names, or numbers under others.
        size: height and width to which Pillow images are resized; 0: unchanged.

    Example:
        >>> rows = [{"height": 1.5, "width": 2, "label": "cat"}, {"height": 2.5, "width": 1, "label": "dog"}]
        >>> data = as_data(rows)
        >>> data.x.tolist(), data.y.tolist()
        ([[1.5, 2.0], [2.5, 1.0]], ['cat', 'dog'])
    """
    if is_frame(source):
        return of_frame(source, y, missing=missing, known=known)
    items = _items(source)
    first = next(items, None)
    if first is None:
        raise InputError(f"the data is empty; {WANTED}")
    everything = _chained(first, items)
    if isinstance(first, Mapping):
        return _of_rows(everything, first, y, names, size)
    if y is not None and not isinstance(y, str):
        return checked(_stacked(list(everything), size), as_labels(y))
    pairs = [_pair(item) for item in everything]
    return checked(_stacked([x for x, _ in pairs], size), as_labels([label for _, label in pairs]))


def samples_of(source: Any, known: Reading, wanted: Sequence[str] = SAMPLES, size: int = 0) -> np.ndarray | Tensor:
    """Samples to predict, of an object as in `as_data`, by the columns of the model; labels may be missing."""
    items = _items(source)
    first = next(items, None)
    if first is None:
        raise InputError("the data is empty; give samples to predict")
    everything = _chained(first, items)
    if not isinstance(first, Mapping):
        return _stacked([_sample(item) for item in everything], size)
    names = {str(name): name for name in first}
    sample = None if known.columns else next((name for name in wanted if name in names), None)
    numbers = [name for name in first if name not in LABELS and is_number(first[name])]
    chosen = [names.get(column, column) for column in known.columns] or ([sample] if sample else numbers)
    return _stacked(_values(everything, chosen, sample)[0], size)


def _items(source: Any) -> Iterator[Any]:
    """Iterate by index if there is a length: a torch data set need not raise an error at its end."""
    if hasattr(source, "__len__") and hasattr(source, "__getitem__") and not isinstance(source, (Mapping, str, bytes)):
        return (source[i] for i in range(len(source)))
    if isinstance(source, Iterable) and not isinstance(source, (Mapping, str, bytes)):
        return iter(source)
    raise InputError(f"an object of type {type(source).__name__} is not a data source; {WANTED}")


def _chained(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _pair(item: Any) -> tuple[Any, Any]:
    if not isinstance(item, (tuple, list)) or len(item) != 2:
        raise InputError(f"a sample has type {shown(type(item).__name__, 30)}; {WANTED}")
    return item[0], item[1]


def _sample(item: Any) -> Any:
    """The sample of a pair (x, y) or of a tuple (x,); anything else is a sample."""
    pair = isinstance(item, (tuple, list)) and len(item) in (1, 2) and not is_number(item[0])
    return item[0] if pair else item


# -- rows with names -------------------------------------------------------------------------------------------------


def _of_rows(rows: Iterable[Any], first: Mapping[str, Any], y: Any, wanted: Sequence[str], size: int) -> Data:
    names = list(first)
    label = _label_of(names, y)
    sample = next((name for name in wanted if name in names and name != label), None)
    chosen = [sample] if sample else [name for name in names if name != label and is_number(first[name])]
    if not chosen:
        raise InputError(f"rows with only {shown(', '.join(map(str, names)))} contain no samples; {WANTED}")
    samples, labels = _values(rows, chosen, sample, label)
    reading = Reading(columns=() if sample else tuple(map(str, chosen)), label="" if sample else str(label))
    return Data(_stacked(samples, size), as_labels(labels, label), reading=reading)


def _values(rows: Iterable[Any], chosen: Sequence[Any], sample: Any, *label: Any) -> tuple[list[Any], list[Any]]:
    """The samples of rows, under one name or as numbers under several, and their labels if these have a name."""
    samples, labels = [], []
    for number, row in enumerate(rows, 1):
        absent = [name for name in (*chosen, *label) if not isinstance(row, Mapping) or row.get(name) is None]
        if absent:
            raise InputError(f"row {number} has no {shown(absent[0], 30)!r}; fill it or drop the row")
        text = next((name for name in chosen if not sample and not is_number(row[name])), None)
        if text is not None:
            raise InputError(f"row {number}: {shown(text, 30)!r} is not a number; encode it or drop the row")
        samples.append(row[sample] if sample else np.array([row[name] for name in chosen], np.float32))
        labels += [row[name] for name in label]
    return samples, labels


def _label_of(names: Sequence[str], y: Any) -> str:
    if isinstance(y, str):
        return names[find_column(names, y)]
    found = next((name for name in LABELS if name in names), None)
    if found is None:
        raise InputError(f"the label could be any of {shown(', '.join(map(str, names)))}; name it with y='...'")
    return found


# -- samples ---------------------------------------------------------------------------------------------------------


def _stacked(samples: list[Any], size: int = 0) -> np.ndarray | Tensor:
    """Stack all samples into one array; grey images among colour images get three channels; texts stay texts.

    With a size, Pillow images are resized to it first.
    """
    if all(isinstance(sample, str) for sample in samples):
        return np.array(samples, dtype=object)
    arrays = [_as_array(sample) for sample in samples]
    if all(hasattr(sample, "getbands") for sample in samples):
        arrays = [resized(torch.from_numpy(array)[None], size)[0].numpy() if size else array for array in arrays]
        colours = max(len(array) for array in arrays)
        arrays = [np.repeat(array, colours // len(array), axis=0) for array in arrays]
    first = arrays[0]
    odd = next((array for array in arrays if array.shape != first.shape), None)
    if odd is not None:
        raise InputError(f"samples have different shapes, {first.shape} and {odd.shape}; give them one shape")
    x = np.stack(arrays)
    if x.dtype.kind not in "biuf":
        raise InputError(f"samples of type {shown(x.dtype, 30)} are not numbers; {WANTED}")
    if x.dtype.kind == "f" and np.isnan(x).any():
        raise InputError("some samples contain NaN; fill or drop them")
    if isinstance(samples[0], Tensor):
        return torch.from_numpy(x)
    return x if x.ndim > 1 else x[:, None]


def _as_array(sample: Any) -> np.ndarray:
    if isinstance(sample, Tensor):
        sample = sample.detach().cpu()
        return (sample.float() if sample.dtype == torch.bfloat16 else sample).numpy()
    if hasattr(sample, "getbands"):  # a Pillow image
        return pixels(sample)
    try:
        return np.asarray(sample)
    except ValueError:  # lists of different lengths
        return np.empty(0, dtype=object)
