"""Collect all samples of a source, in any supported form, in one pool from which tasks are made."""

# N samples, C channels, H and W image

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from prer.data.arrays import Data, as_pair, with_medians
from prer.data.frames import is_frame
from prer.data.reading import Missing, Reading
from prer.errors import InputError
from prer.streams.task import Label


class Pool(NamedTuple):
    """All samples of a source, and the rows of each label."""

    x: Tensor  # [N, C, H, W] or [N, features]
    rows: dict[Label, np.ndarray]  # of each label
    order: list[Label]  # default order in which labels arrive
    held: np.ndarray | None  # mask of the given test part [N]; None: each seed makes its own split
    share: float  # test share of every class in such a split
    reading: Reading  # how the samples were read


def as_pool(
    x: Any, y: Any, test: Any, resplit: float | None, missing: Missing = "error", known: Reading | None = None
) -> Pool:
    """Validate samples and labels from any source, and collect them in one pool.

    Args:
        x: samples, or a source of samples and labels.
        y: labels, or the name of the label.
        test: a given test part.
        resplit: test share of a new split.
        missing: "error", or "median" to fill missing values of frames and vectors.
        known: how earlier samples were read, if these are to be read in the same way.
    """
    data = x if isinstance(x, Data) else _as_data(x, y, missing, known)
    samples, labels = as_pair(data)
    tests = data.tests
    if test is not None:
        both = test if isinstance(test, tuple) and len(test) == 2 else (test, y)
        other = _as_data(*both, known=data.reading)
        more, more_labels = as_pair(other, may_be_dark=True)
        more = data.reading.arranged(more, other.reading)
        if more.shape[1:] != samples.shape[1:] or more.dtype != samples.dtype:
            raise InputError("the test part and the training part have different shapes or types; convert one of them")
        if labels.dtype.kind != more_labels.dtype.kind:
            raise InputError("the labels of one part are numbers and those of the other strings; convert one of them")
        samples, labels, tests = torch.cat([samples, more]), np.concatenate([labels, more_labels]), len(more)
    return pool_of(data._replace(x=samples, tests=tests), labels, resplit)


def pool_of(data: Data, labels: np.ndarray, resplit: float | None = None) -> Pool:
    """Collect validated samples and labels."""
    samples, tests = data.x, data.tests
    assert isinstance(samples, Tensor)
    share = 0.2 if resplit is None else resplit
    if not 0 < share < 1:
        raise InputError(f"resplit={share:g}: the test share must lie between 0 and 1")
    held = np.arange(len(samples)) >= len(samples) - tests if tests and resplit is None else None
    there, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    each = np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1])
    rows = dict(zip(there.tolist(), each, strict=True))
    return Pool(samples, rows, [label for label in data.order or rows if label in rows], held, share, data.reading)


def _as_data(x: Any, y: Any, missing: Missing = "error", known: Reading | None = None) -> Data:
    if y is None or isinstance(y, str) or is_frame(x):  # its columns have names
        from prer.data.rows import as_data

        data = as_data(x, y, missing=missing, known=known if known and known.columns else None)
    else:
        data = Data(x, y)
    if data.reading.medians or is_frame(x):
        return data
    if known and known.medians:
        return data._replace(reading=replace(data.reading, missing=known.missing, medians=known.medians))
    return with_medians(data) if missing == "median" else data


def check_parts(pool: Pool, labels: Sequence[Label], tested: bool = True) -> None:
    """Check that every class has training samples and, if it is to be tested, test samples."""
    for label in labels:
        held = None if pool.held is None else pool.held[pool.rows[label]]
        if held is None and len(pool.rows[label]) < 2:
            raise InputError(
                f"class {label!r} has only one sample; at least two are needed, one for training and one for testing"
            )
        if held is not None and (held.all() or (tested and not held.any())):
            where, do = ("training", "drop it from the test part") if held.all() else ("test", "add some")
            raise InputError(
                f"class {label!r} has no sample in the {where} part; {do}, or resplit all samples: stream.resplit=0.2"
            )
