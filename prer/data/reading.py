"""How the data of a model was read, so that new data is read in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from torch import Tensor

from prer.data.columns import check_header, check_names
from prer.data.resizing import Fit, coloured, grey, resized
from prer.errors import InputError
from prer.settings import build, setting
from prer.text import shown

MOST = 5  # maximum number of columns that a message lists


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How data is read; settings that do not apply have their defaults."""

    columns: tuple[str, ...] = setting((), "names of a table's features, in order")
    label: str = setting("", "label column of a table")
    size: int = setting(0, "height and width of images in pixels; 0: unchanged", low=0, high=4096)
    fit: Fit = setting("resize", "how to fit images to that size: resize, or pad (and crop larger ones)")
    shape: tuple[int, ...] = setting((), "shape of one sample, (C, H, W) or (features,), if the model is known", low=0)

    @classmethod
    def of(cls, table: Mapping[str, Any], shape: Sequence[int]) -> Self:
        """Parse and validate the table of a model file, which anybody may have written."""
        reading = build(cls, {**table, "shape": shape}, "reading", {})
        if reading.columns and (reading.shape != (len(reading.columns),) or reading.label in reading.columns):
            raise ValueError(
                f"reading.columns names {len(reading.columns)} features, but samples have shape {reading.shape}"
            )
        if reading.size and reading.shape[1:] != (reading.size, reading.size):
            raise ValueError(f"reading.size is {reading.size}, but samples have shape {reading.shape}")
        return reading

    def to_json(self) -> dict[str, Any]:
        """All settings but the shape, which a model file stores elsewhere."""
        return {key: value for key, value in asdict(self).items() if key != "shape"}

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
            wrong = [f"missing: {_listed(missing)}"] * bool(missing) + [f"unknown: {_listed(extra)}"] * bool(extra)
            do = ["add the missing columns"] * bool(missing) + ["remove the unknown columns"] * bool(extra)
            what = f"the columns differ from those of the training data ({'; '.join(wrong)})"
            raise InputError(f"{what}; {' and '.join(do)}; their order does not matter")
        return [places[name] for name in self.columns]

    def arranged(self, x: Any, names: Sequence[str]) -> Any:
        """Reorder the columns of an array as in the model; leave them as they are if either side has no names."""
        if not self.columns or not names or self.columns == tuple(names):
            return x
        return x[:, self.order(names)]

    def fitted(self, x: Tensor) -> Tensor:
        """Convert images [N, C, H, W] to the size and channels of the model."""
        if x.dim() != 4 or len(self.shape) != 3:
            return x
        x = resized(x, self.size, self.fit) if self.size else x
        return coloured(x) if self.shape[0] == 3 else grey(x) if self.shape[0] == 1 else x


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(repr(shown(name, 30)) for name in names[:MOST]) + more
