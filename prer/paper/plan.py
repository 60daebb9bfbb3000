"""The experiments that each table needs, by data set and method."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from prer.address import as_device
from prer.data.files import find
from prer.errors import InputError
from prer.paper import DATA, METHODS, file_of, more_methods
from prer.paper.published import TABLE2, TITLES
from prer.runs.experiment import Experiment
from prer.settings import merged
from prer.text import did_you_mean

T = TypeVar("T")
Key = tuple[str, str]  # a data set, and a method or a variant
EXTRA = "prer-literal"
PLAIN = "prer-no-anchor"  # the paper's method with our repairs, without the anchor, which is ours
NOT_RUN = "not run"  # in the place of a result
FAST = "digits"
SIGNIFICANCE_SEEDS = 20


@dataclass(frozen=True)
class Request:
    """What the user asked to reproduce.

    Attributes:
        only: names of data sets, methods and variants; none: all.
        device: where to run; None: as the files say.
        seeds: how many or which, as on the command line; None: as many as the files say, and three if fast.
        fast: the built-in digits in place of the paper's data.
        paths: paths of data sets that are read from elsewhere, by name.
        variants: names of variants, which `only` may contain, too.
        finished: use only finished runs, and run nothing.
    """

    only: Sequence[str] = ()
    device: str | None = None
    seeds: str | None = None
    fast: bool = False
    paths: Mapping[str, str] = field(default_factory=dict)
    variants: Sequence[str] = ()
    finished: bool = False

    def check(self, others: Sequence[str] | None = None, data: Sequence[str] = DATA) -> None:
        """Refuse unknown names, paths that do not exist, and an unavailable device.

        Args:
            others: the names besides data sets; by default the paper's methods and the variants.
            data: names of the data sets.
        """
        names = (FAST,) if self.fast else data
        if others is None:
            others = (*self._every(), *self.variants)
        known = (*names, *others)
        for name in self.only:
            if name not in known:
                raise InputError(f"--only: unknown name {name!r}{did_you_mean(name, known)}")
        for name, path in self.paths.items():
            if name not in names:
                raise InputError(f"--data: unknown data set {name!r}{did_you_mean(name, names)}")
            if not self.finished and find(path) is None:
                raise InputError(f"--data {name}={path}: the path does not exist")
        if self.device is not None:
            as_device(self.device)

    def data(self, of: Sequence[str] = DATA) -> list[str]:
        """The requested data sets, among these."""
        of = (FAST,) if self.fast else of
        asked = [name for name in self.only if name in (*DATA, FAST)]
        return [name for name in of if not asked or name in asked]

    def methods(self) -> list[str]:
        """The requested methods: the paper's in its order, then PRER's variants, then others that have a file."""
        every = self._every()
        asked = [name for name in self.only if name in every]
        if not asked and any(name in self.variants for name in self.only):
            return []
        return [name for name in every if not asked or name in asked]

    def _every(self) -> tuple[str, ...]:
        more = [method for data in DATA for method in more_methods(data)]
        return METHODS if self.fast else tuple(dict.fromkeys((*METHODS, PLAIN, EXTRA, *more)))

    def experiment(self, data: str, method: str, overrides: Sequence[str] = ()) -> Experiment:
        """The experiment of a data set and a method, with further overrides."""
        every = [*self._overrides(data), *overrides]
        if self.fast:
            return Experiment.parse({"stream": {"data": FAST}, "learner": {"name": method}}, every)
        return Experiment.read(file_of(data, method), every)

    def parsed(
        self, data: str, tables: Mapping[str, Any], name: str, overrides: Sequence[str] = (), like: bool = True
    ) -> Experiment:
        """An experiment on a data set from tables, with further overrides; if `like`, with its recommended settings."""
        about = merged(tables, {"name": name, "stream": {"data": data}} | ({"like": data} if like else {}), {})
        return Experiment.parse(about, [*self._overrides(data), *overrides])

    def _overrides(self, data: str) -> list[str]:
        seeds = self.seeds or ("3" if self.fast else None)
        given = [f"stream.data={json.dumps(self.paths[data])}"] if data in self.paths else []
        given += [f"seeds=[{seeds}]" if "," in seeds else f"seeds={seeds}"] if seeds else []
        return given + ([f"device={self.device}"] if self.device else [])

    def title(self, data: str) -> str:
        """The name of a data set in tables, from the name of its file or folder if it is read from elsewhere."""
        if data not in self.paths:
            return TITLES[data]
        name = Path(self.paths[data]).resolve().name
        stem = name.partition(".")[0] or name
        if not stem.lower().startswith(data):
            return stem
        rest = stem[len(data) :].lstrip("-_ ")
        return f"{TITLES[data]}-{rest}" if rest else TITLES[data]

    def remarks(self, data: Sequence[str]) -> list[str]:
        """Notes on the data sets of a table."""
        if self.fast:
            return ["A smoke test of the same code on the built-in digits, which the paper does not use."]
        remarks = []
        for name in data:
            if name in self.paths:
                title, file = self.title(name), Path(self.paths[name]).resolve().name
                whole = title == TITLES[name]
                what = "a local copy" if whole else f"which is not the paper's data, {TITLES[name]}"
                remarks.append(f"{title} is read from {file}, {what}.")
        return remarks


def those(outcomes: Mapping[Key, T], asked: Collection[Key]) -> dict[Key, T]:
    """The requested outcomes; all if `asked` is empty."""
    return {key: outcome for key, outcome in outcomes.items() if not asked or key in asked}


def data_of(keys: Iterable[Key]) -> list[str]:
    """The data sets of a table, each once."""
    return list(dict.fromkeys(data for data, _ in keys))


def places(given: Sequence[str]) -> dict[str, str]:
    """The paths of data sets, from words such as kmnist=my/folder."""
    for word in given:
        if "=" not in word:
            raise InputError(f"--data {word}: give NAME=PATH, such as kmnist=my/folder")
    return dict(word.split("=", 1) for word in given)


def of_table1(request: Request) -> dict[Key, Experiment]:
    """Every method on every data set, and PRER with the paper's literal settings."""
    return {(d, m): request.experiment(d, m) for d in request.data() for m in methods_on(request, d)}


def methods_on(request: Request, data: str) -> list[str]:
    """The requested methods that have settings for a data set."""
    there = {*METHODS, EXTRA, *more_methods(data)}
    return [method for method in request.methods() if method in there]


def of_table2(request: Request) -> dict[Key, Experiment]:
    """The paper's methods with one seed each, as the table reports their time."""
    return {
        (data, method): request.experiment(data, method, ["seeds=[0]"])
        for data in request.data(tuple(TABLE2))
        for method in methods_on(request, data)
        if method != EXTRA
    }


def of_figure2(request: Request) -> dict[Key, Experiment]:
    """PRER on MNIST, with samples of the past as wide as they were: a temperature below 1 narrows them at each task."""
    data = request.data(("mnist",)) if "prer" in request.methods() else []
    return {(name, "prer"): request.experiment(name, "prer", ["learner.temperature=1"]) for name in data}


def of_significance(request: Request) -> dict[Key, Experiment]:
    """The methods of Table 1 with more seeds than the paper, which differences of a few tenths require."""
    seeds = [] if request.fast or request.seeds else [f"seeds={SIGNIFICANCE_SEEDS}"]
    return {
        (data, method): request.experiment(data, method, seeds)
        for data in request.data()
        for method in methods_on(request, data)
        if method != EXTRA
    }
