"""Compute the features of samples in batches."""

# N samples, B batch, C channels, H and W image, D features

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from prer.data.arrays import Data, as_samples
from prer.data.entry import Progress, silent
from prer.data.reading import Inputs, Reading
from prer.data.resizing import resized
from prer.data.texts import as_texts, is_texts
from prer.errors import InputError
from prer.features import cache
from prer.features.extractor import Extractor

BATCH = 256  # samples at a time


def extracted(data: Data, extractor: Extractor, *, cached: bool = False, progress: Progress = silent) -> Data:
    """The same samples as vectors; their reading names the extractor.

    Args:
        data: texts, images or vectors, as they were read.
        extractor: what computes the vectors.
        cached: keep the vectors on disk, so that the same samples need not be computed again.
        progress: called with what is done, and with the numbers of samples done and in all.
    """
    known, kind = data.reading.before, kind_of(data.x)
    if known.inputs not in ("", kind):
        raise InputError(f"the model was taught with {known.inputs}, but these are {kind}; give {known.inputs}")
    known = replace(known, inputs=kind, size=known.size or (extractor.size if kind == "images" else 0))
    x = vectors(data.x, extractor, known, cached=cached, progress=progress)
    reading = replace(known, extractor=extractor.name, weights=extractor.sha256)
    return data._replace(x=x, reading=replace(reading, shape=tuple(x.shape[1:])), checked=True)


def vectors(
    x: np.ndarray | Tensor | Sequence[str],
    extractor: Extractor,
    reading: Reading,
    *,
    cached: bool = False,
    progress: Progress = silent,
) -> Tensor:
    """Features [N, D] of texts, images or vectors, which are read in this way."""
    raw = _inputs(x, extractor, reading)
    key = cache.key_of(raw, extractor, f"{reading.size} {reading.fit}") if cached and extractor.sha256 else ""
    with cache.locked(key) as key:
        if key and (found := cache.read(key, len(raw))) is not None:
            return found
        distinct = list(dict.fromkeys(raw)) if isinstance(raw, list) else raw  # equal texts are computed once
        made = torch.cat(list(_in_batches(distinct, extractor, reading, progress)))
        if len(distinct) < len(raw):
            place = {text: row for row, text in enumerate(distinct)}
            made = made[[place[text] for text in raw]]
        if key:
            cache.write(key, made)
    return made


def kind_of(x: np.ndarray | Tensor | Sequence[str]) -> Inputs:
    """What samples are: "texts", "images" or "vectors"."""
    return "texts" if is_texts(x) else "vectors" if np.ndim(x) == 2 else "images"


def _inputs(x: np.ndarray | Tensor | Sequence[str], extractor: Extractor, reading: Reading) -> list[str] | Tensor:
    """The samples as the extractor accepts them: texts, or images as bytes or floats."""
    kind = kind_of(x)
    if extractor.inputs not in (kind, "anything"):
        raise InputError(f"the feature extractor {extractor.name} is for {extractor.inputs}, but these are {kind}")
    if kind == "texts":
        return as_texts(x)
    is_bytes = str(getattr(x, "dtype", "")).endswith("uint8")  # a few images may all be dark
    return as_samples(x, may_be_dark=is_bytes, reading=reading)


def _in_batches(
    raw: list[str] | Tensor, extractor: Extractor, reading: Reading, progress: Progress
) -> Iterator[Tensor]:
    """Yield the features of each batch."""
    what, width = f"features ({extractor.name})", 0
    unit = "images" if isinstance(raw, Tensor) and raw.dim() == 4 else "vectors" if isinstance(raw, Tensor) else "texts"
    for first in range(0, len(raw), BATCH):
        progress(what, first, len(raw), unit)
        batch = raw[first : first + BATCH]
        if isinstance(batch, Tensor):
            batch = resized(batch, reading.size, reading.fit) if batch.dim() == 4 and reading.size else batch
            batch = batch.float() / (255 if batch.dtype == torch.uint8 else 1)  # a copy, which a network may change
        made = extractor(batch)
        if width and made.shape[1] != width:
            raise InputError(
                f"the feature extractor {extractor.name} returns vectors of {made.shape[1]} numbers after {width}; "
                "its vectors must have one length"
            )
        width = made.shape[1]
        yield made
    progress(what, len(raw), len(raw), unit)
