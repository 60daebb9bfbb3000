"""The stream of an experiment: which data it reads, and how the data becomes tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from prer.address import as_device
from prer.data.arrays import Data, as_pair, as_samples
from prer.data.catalogue import CATALOGUE, is_here, load_named
from prer.data.entry import Progress, silent
from prer.data.files import find, read
from prer.data.reading import Missing, Reading
from prer.data.resizing import Fit, coloured, resized
from prer.errors import InputError
from prer.features.extraction import extracted
from prer.features.named import NAMES, OF_TEXTS, extractor_of, named
from prer.settings import setting
from prer.streams.stream import Stream
from prer.text import did_you_mean


@dataclass(kw_only=True)
class StreamConfig:
    """Settings of a stream."""

    data: str = setting("digits", "name of a catalogue data set, or path of a file or folder")
    kind: Literal["split", "permuted", "rotated", "domain"] = setting(
        "split", "split: new classes in each task; permuted, rotated, domain: the same classes with other inputs"
    )
    scenario: Literal["task", "class"] = setting(
        "task", "task: the task of a sample is given at test time; class: it is not, and one head grows (split)"
    )
    classes_per_task: int = setting(2, "number of classes in each task (split)", low=1)
    tasks: tuple[tuple[str | int, ...], ...] = setting((), "the labels of each task; empty: classes_per_task in order")
    order: tuple[str | int, ...] = setting((), "the order in which labels arrive; empty: sorted")
    shuffle: bool = setting(False, "shuffle the order of the labels")
    count: int = setting(10, "number of tasks (permuted, rotated)", low=2, high=10_000)
    degrees: float = setting(180.0, "angle of the last task in degrees (rotated)")
    domains: tuple[str, ...] = setting((), "more data sets with the same classes, each a name or a path (domain)")
    shuffle_seed: int = setting(0, "seed of the random order of labels or pixels", low=0)
    label: str | int = setting("", "the label column (tables); empty: the last")
    features: str = setting(
        "", "a pretrained network that turns samples into vectors: minilm (texts), efficientnet-lite0 (images)"
    )
    text: str = setting("", "the column of texts (tables, with stream.features); empty: text, or the only one")
    part: str = setting("", "the column that holds train or test; other rows are left out (tables of texts)")
    missing: Missing = setting("error", "missing values (tables, vectors): error, or median of the column (numbers)")
    size: int = setting(0, "height and width of images in pixels; 0: unchanged", low=0, high=4096)
    fit: Fit = setting("resize", "how to fit images to that size: resize, or pad (and crop larger ones)")
    crop: int = setting(0, "maximum random shift of images in training, in pixels", low=0, high=4096)
    flip: bool = setting(False, "mirror images at random in training")
    balance: bool = setting(False, "repeat training samples of small classes until a task has as many of each")
    resplit: float = setting(
        0.0, "test share of a balanced split per seed; 0: the given test part, or 0.2 without one", low=0, high=0.95
    )

    validation: float = setting(
        0.0, "share of the training part to test on instead of the test part, for a search of settings", low=0, high=0.9
    )

    @property
    def name(self) -> str:
        """Name of the data in results."""
        return self.data if self.data in CATALOGUE else Path(self.data).name or "data"

    def is_there(self) -> bool:
        """Whether the data can be read now, without a download."""
        named = (self.data, *self.domains)
        return all(is_here(data) if data in CATALOGUE else find(data) is not None for data in named)

    def build(self, progress: Progress = silent) -> Stream:
        """Read the data, download it first if needed, and make the tasks."""
        self._check()
        stream = self._stream(progress)
        stream = stream.validated(self.validation) if self.validation else stream
        stream = stream.balanced() if self.balance else stream
        return stream.augmented(crop=self.crop, flip=self.flip) if self.crop or self.flip else stream

    def _stream(self, progress: Progress) -> Stream:
        first = self._load("stream.data", self.data, progress, cached=True)
        sources = [first]
        sources += [self._load("stream.domains", data, progress, first.reading, cached=True) for data in self.domains]
        about: dict[str, Any] = {"resplit": self.resplit or None, "name": self.name}
        if self.kind == "domain":
            return _one_head(Stream.of(_alike(sources), **about))
        if self.kind == "permuted":
            return Stream.permuted(sources[0], tasks=self.count, seed=self.shuffle_seed, **about)
        if self.kind == "rotated":
            return Stream.rotated(sources[0], tasks=self.count, degrees=self.degrees, **about)
        chosen = {"tasks": self.tasks or None, "order": self.order or None, "scenario": self.scenario}
        shuffle = self.shuffle_seed if self.shuffle else None
        return Stream.split(sources[0], classes_per_task=self.classes_per_task, **chosen, shuffle=shuffle, **about)

    def read(self, known: Reading | None = None, progress: Progress = silent) -> Data:
        """Read the data without making tasks of it; if `known` is given, in the same way as earlier data.

        Features are computed, but not kept on disk.
        """
        if known is None:
            self._check_features()
            return self._load("DATA", self.data, progress)
        loaded = load(self.data, label=str(self.label), text=self.text or None, known=known.before, key="DATA")
        extractor = extractor_of(known, None, as_device("auto"))
        if extractor is None:
            return loaded
        return extracted(loaded._replace(reading=known.before), extractor, progress=progress)

    def _load(
        self, key: str, data: str, progress: Progress, first: Reading | None = None, cached: bool = False
    ) -> Data:
        known = first if first and (first.categories or first.medians) else None  # encode all domains in one way
        about: dict[str, Any] = {"label": str(self.label), "missing": self.missing, "known": known, "fit": self.fit}
        about |= {"progress": progress, "key": key}
        if self.features:
            extractor = named(self.features, as_device("auto"))
            about |= {"text": self.text, "part": self.part} if extractor.inputs == "texts" else {}
            loaded = load(data, **about, size=self.size or extractor.size)
            if loaded.reading.columns:
                what = f"stream.features={self.features} is for {extractor.inputs}, but {data} is a table"
                raise InputError(f"{what}; for a column of texts, set stream.features={OF_TEXTS[0]} in its place")
            loaded = loaded._replace(reading=replace(loaded.reading, size=self.size, fit=self.fit))
            return extracted(loaded, extractor, cached=cached, progress=progress)
        loaded = load(data, **about, size=self.size)
        if not self.size:
            return loaded
        x = as_samples(loaded.x)
        if x.dim() == 2:
            raise InputError(
                f"stream.size={self.size}: {data} contains vectors, and only images can be resized; leave it out"
            )
        try:
            reading = Reading(size=self.size, fit=self.fit)
            return loaded._replace(x=resized(x, self.size, self.fit), checked=True, reading=reading)
        except (RuntimeError, MemoryError):  # torch raises RuntimeError if memory is short
            raise InputError(
                f"stream.size={self.size}: images of this size do not fit into memory; use a smaller size"
            ) from None

    def _check_features(self) -> None:
        """Check the settings of features without loading a network."""
        if self.features and self.features not in NAMES:
            raise InputError(f"stream.features={self.features!r}: choose one of {', '.join(NAMES)}")
        if self.text and self.features not in OF_TEXTS:
            other = f" in place of {self.features}" if self.features else ""
            raise InputError(f"stream.text needs a network for texts; set stream.features={OF_TEXTS[0]}{other}")
        if self.part and self.features not in OF_TEXTS:
            raise InputError(
                f"stream.part applies only to tables of texts; leave it out, or set stream.features={OF_TEXTS[0]}"
            )
        if self.size and self.features in OF_TEXTS:
            raise InputError(f"stream.size={self.size}: {self.features} is for texts, which have no size; leave it out")
        if self.features and self.missing != "error":
            raise InputError(f"stream.missing={self.missing!r} has no effect with stream.features; leave it out")

    def _check(self) -> None:
        """Reject settings that would silently have no effect."""
        self._check_features()
        if self.kind == "domain" and not self.domains:
            raise InputError("stream.kind='domain' needs a second domain; name it with stream.domains=[...]")
        usual = StreamConfig()
        for key, (matters, where) in {
            "scenario": (self.kind == "split", "stream.kind='split'"),
            "domains": (self.kind == "domain", "stream.kind='domain'"),
            "tasks": (self.kind == "split", "stream.kind='split'"),
            "order": (self.kind == "split" and not self.tasks, "stream.kind='split' without stream.tasks"),
            "shuffle": (self.kind == "split" and not self.tasks, "stream.kind='split' without stream.tasks"),
            "count": (self.kind in ("permuted", "rotated"), "stream.kind='permuted' or 'rotated'"),
            "degrees": (self.kind == "rotated", "stream.kind='rotated'"),
            "shuffle_seed": (self.shuffle or self.kind == "permuted", "stream.shuffle=true or stream.kind='permuted'"),
            "fit": (self.size > 0, "stream.size"),
        }.items():
            if not matters and getattr(self, key) != getattr(usual, key):
                raise InputError(f"stream.{key} applies only with {where}; leave it out, or set that")


def load(
    data: str,
    *,
    label: str = "",
    text: str | None = None,
    part: str = "",
    size: int = 0,
    fit: Fit = "resize",
    missing: Missing = "error",
    known: Reading | None = None,
    progress: Progress = silent,
    key: str = "stream.data",
) -> Data:
    """Load a catalogue data set or a path; `known` and the settings of `StreamConfig` are arguments of `read`."""
    if data in CATALOGUE:
        for name, given in (("label", label), ("text", text), ("missing", "" if missing == "error" else missing)):
            if given:
                what = f"stream.{name}={given!r} applies only to tables, and {data} is not a table"
                raise InputError(f"{what}; leave it out")
        return load_named(data, progress)
    path = find(data)
    if path is not None:
        return read(path, label=label, size=size, fit=fit, missing=missing, text=text, part=part, known=known)
    hint = did_you_mean(data.lower(), CATALOGUE)
    raise InputError(f"{key}={data!r} is neither a file nor a known data set{hint}")


def _alike(domains: Sequence[Data]) -> list[Data]:
    """Check that all domains have one shape; grey images get three channels if other domains have colour."""
    xs = [as_pair(data)[0] for data in domains]
    if len({x.shape[2:] for x in xs}) > 1 or (xs[0].dim() == 2 and len({x.shape[1:] for x in xs}) > 1):
        sizes = ", ".join("x".join(map(str, x.shape[1:])) for x in xs)
        what = (
            "set stream.size, for example to 32"
            if all(x.dim() == 4 for x in xs)
            else "give all domains the same features"
        )
        raise InputError(f"the samples of the domains have different shapes ({sizes}); {what}")
    if len({x.shape[1] for x in xs}) > 1:
        xs = [coloured(x) for x in xs]
    return [data._replace(x=x, checked=True) for data, x in zip(domains, xs, strict=True)]


def _one_head(stream: Stream) -> Stream:
    for task in stream:
        if task.head:
            new = next(label for label in task.labels if label not in stream[0].labels)
            raise InputError(
                f"domain {task.index + 1} has class {new!r}, which the first domain does not have; "
                "all domains must have the same classes"
            )
    return replace(stream, tasks=tuple(replace(task, scenario="domain") for task in stream))
