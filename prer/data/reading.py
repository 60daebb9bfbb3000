"""How the data of a model was read, so that new data is read in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from torch import Tensor

from prer.data.columns import FLOAT, check_header, check_names
from prer.data.resizing import Fit, coloured, grey, resized
from prer.errors import InputError
from prer.settings import build, setting
from prer.text import shown

OF_FEATURES = ("extractor", "weights", "inputs", "text")
MOST = 5  # maximum number of columns that a message lists
Missing = Literal["error", "median"]
Inputs = Literal["", "texts", "images", "vectors"]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How data is read; settings that do not apply have their defaults."""

    columns: tuple[str, ...] = setting((), "names of a table's features, in order")
    label: str = setting("", "label column of a table")
    size: int = setting(0, "height and width of images in pixels; 0: unchanged", low=0, high=4096)
    fit: Fit = setting("resize", "how to fit images to that size: resize, or pad (and crop larger ones)")
    shape: tuple[int, ...] = setting((), "shape of one sample, (C, H, W) or (features,), if the model is known", low=0)
    categories: tuple[tuple[str, ...], ...] = setting(
        (), "the texts of each column, sorted; empty for a column of numbers, and overall if no column is text"
    )
    missing: Missing = setting("error", "missing values: error, or median (of the column; text: no category)")
    medians: tuple[float, ...] = setting((), "median of each column, or of each feature if they have no names")
    extractor: str = setting("", "name of the feature extractor; empty: the samples are used as they are")
    weights: str = setting("", "sha256 of its weights; empty for a function")
    inputs: Inputs = setting("", "what the feature extractor was given")
    text: str = setting("", "column of texts of a table")

    @classmethod
    def of(cls, table: Mapping[str, Any], shape: Sequence[int]) -> Self:
        """Parse and validate the table of a model file, which anybody may have written."""
        reading = build(cls, {**table, "shape": shape}, "reading", {})
        reading._check_table()
        reading._check_features()
        if reading.size and not reading.extractor and reading.shape[1:] != (reading.size, reading.size):
            raise ValueError(f"reading.size is {reading.size}, but samples have shape {reading.shape}")
        return reading

    def _check_table(self) -> None:
        """Check that columns, categories, medians and the shape belong together."""
        if self.categories and (len(self.categories) != len(self.columns) or not any(self.categories)):
            raise ValueError(f"reading.categories has {len(self.categories)} entries for {len(self.columns)} columns")
        if any(list(texts) != sorted(set(texts)) for texts in self.categories):
            raise ValueError("reading.categories must be sorted and different")
        if self.columns and (self.shape != (sum(self.widths),) or self.label in self.columns):
            raise ValueError(f"reading.columns names {sum(self.widths)} features, but samples have shape {self.shape}")
        wanted = 0 if self.missing == "error" else len(self.columns) or (self.shape[0] if len(self.shape) == 1 else -1)
        if len(self.medians) != wanted:
            raise ValueError(f"reading.medians has {len(self.medians)} entries, but samples have shape {self.shape}")
        if any(abs(median) > FLOAT for median in self.medians):
            raise ValueError("reading.medians must fit into 32-bit floats")

    def _check_features(self) -> None:
        """Check that the extractor, what it was given, and the shape belong together."""
        whole = bool(self.extractor) == bool(self.inputs) and (not self.extractor or len(self.shape) == 1)
        of_numbers = self.columns or self.missing != "error"
        if not whole or (self.extractor and of_numbers) or (not self.extractor and self.weights):
            raise ValueError("reading.extractor, reading.inputs and the shape of samples do not belong together")
        if (self.text and self.inputs != "texts") or (self.size and self.inputs in ("texts", "vectors")):
            raise ValueError("reading.text and reading.size do not belong to what the feature extractor was given")

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of features of each column: one for numbers, one for each category of a text."""
        return tuple(len(texts) or 1 for texts in self.categories) or (1,) * len(self.columns)

    @property
    def features(self) -> tuple[str, ...]:
        """Name of each feature, such as `city=Rome` for a category of a text column; empty without names."""
        texts = self.categories or ((),) * len(self.columns)
        pairs = zip(self.columns, texts, strict=True)
        return tuple(name for column, of in pairs for name in ([f"{column}={text}" for text in of] or [column]))

    def filled(self, x: np.ndarray) -> np.ndarray:
        """Replace NaN in vectors [N, features] by the median of the feature, and by 0 in a category."""
        if self.missing == "error" or x.ndim != 2 or x.dtype.kind != "f":
            return x
        each = self.widths or (1,) * len(self.medians)
        medians = np.repeat(np.array(self.medians, np.float32), each)
        holes = np.isnan(x)
        if x.shape[1] != len(medians) or not holes.any():
            return x
        return np.where(holes, medians.astype(x.dtype), x)

    def to_json(self) -> dict[str, Any]:
        """All settings but the shape, which a model file stores elsewhere; those of features only if there are any."""
        left_out = ("shape", *(() if self.extractor else OF_FEATURES))
        return {key: value for key, value in asdict(self).items() if key not in left_out}

    @property
    def before(self) -> Reading:
        """How samples are read before their features are computed."""
        return replace(self, extractor="", weights="", shape=()) if self.extractor else self

    def label_in(self, names: Sequence[str], in_file: bool = True) -> int | None:
        """Index of the label column in a table to predict, or None; all other columns must be the model's."""
        check_names(names)
        if in_file and not set(names) >= set(self.columns or [""]):  # a file may lack its header
            check_header(names)
        if self.columns:
            self.order([name for name in names if name != self.label])
            return names.index(self.label) if self.label in names else None
        if len(self.shape) != 1:
            raise InputError("the model was trained on images, but this is a table; give images")
        if len(names) - self.shape[0] not in (0, 1):
            raise InputError(
                f"the model was trained on {self.shape[0]} features, but the table has {len(names)} columns; "
                "give the features, with or without the label as the last column"
            )
        return None if len(names) == self.shape[0] else self.shape[0]

    def order(self, names: Sequence[str]) -> list[int]:
        """Index of each column of the model in `names`, which must be the same columns in any order."""
        places, known = {name: place for place, name in enumerate(names)}, set(self.columns)
        missing, extra = [n for n in self.columns if n not in places], [n for n in names if n not in known]
        if missing or extra:
            wrong = [f"missing: {listed(missing)}"] * bool(missing) + [f"unknown: {listed(extra)}"] * bool(extra)
            do = ["add the missing columns"] * bool(missing) + ["remove the unknown columns"] * bool(extra)
            what = f"the columns differ from those of the training data ({'; '.join(wrong)})"
            raise InputError(f"{what}; {' and '.join(do)}; their order does not matter")
        return [places[name] for name in self.columns]

    def arranged(self, x: Any, other: Reading) -> Any:
        """Reorder the features of an array that was read as `other`; unchanged if either has no column names."""
        same = (self.columns, self.categories) == (other.columns, other.categories)
        if same or not self.columns or not other.columns:
            return x
        order = self.order(other.columns)
        mine, theirs = (r.categories or ((),) * len(r.columns) for r in (self, other))
        for name, texts, place in zip(self.columns, mine, order, strict=True):
            if texts != theirs[place]:
                raise InputError(
                    f"the texts in column {shown(name, 30)!r} differ from those of the training data; "
                    "read both tables with the same categories: give data frames, or known=..."
                )
        starts = np.cumsum((0, *other.widths))
        return x[:, np.concatenate([np.arange(starts[place], starts[place + 1]) for place in order])]

    def fitted(self, x: Tensor) -> Tensor:
        """Convert images [N, C, H, W] to the size and channels of the model."""
        if x.dim() != 4 or len(self.shape) != 3:
            return x
        x = resized(x, self.size, self.fit) if self.size else x
        return coloured(x) if self.shape[0] == 3 else grey(x) if self.shape[0] == 1 else x


def medians(x: np.ndarray, names: Sequence[str] = ()) -> tuple[float, ...]:
    """Median of each column of vectors [N, features] as 32-bit floats, without NaN."""
    empty = np.isnan(x).all(0)
    if empty.any():
        place = int(empty.argmax())
        which = repr(shown(names[place], 30)) if names else str(place + 1)
        raise InputError(f"column {which} has no value; drop it")
    return tuple(float(np.float32(np.nanmedian(column.astype(np.float64)))) for column in x.T)


def listed(names: Sequence[str]) -> str:
    """Quote the first names, and count the rest."""
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(repr(shown(name, 30)) for name in names[:MOST]) + more
