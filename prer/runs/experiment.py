"""An experiment = a stream + a learner + seeds, as strict TOML in and out."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from prer.address import as_seeds
from prer.data.catalogue import CATALOGUE
from prer.disk import MOST_TOML
from prer.errors import InputError
from prer.learners import ABLATION, LEARNERS, Learner
from prer.learners.closed_form import ClosedForm
from prer.learners.registry import find
from prer.migration import DENSITY, former, moved, present_name
from prer.presets import recommended
from prer.runs.legacy import former_hashes
from prer.settings import SCHEMA, Options, build, check_keys, chosen, families, merged, named, typed, values_of
from prer.streams.config import StreamConfig
from prer.text import did_you_mean
from prer.version import __version__

# Versions whose runs can be resumed here: every digest is the same (benchmarks/unchanged.py).
SAME_NUMBERS = ("0.1.0",)
# `like` names a data set of the catalogue whose recommended settings are used; it is not stored itself.
KEYS = ("name", "seeds", "device", "like", "stream", "learner")


@dataclass(kw_only=True)
class Experiment:
    """The definition of a run; two experiments with the same hash are the same experiment.

    Example:
        >>> experiment = Experiment.parse({"learner": {"name": "naive"}}, ["learner.epochs=3", "seeds=2"])
        >>> experiment.name, experiment.learner.epochs, experiment.seeds
        ('digits-naive', 3, (0, 1))
    """

    name: str
    seeds: tuple[int, ...]
    device: str
    stream: StreamConfig
    learner: Learner

    @classmethod
    def read(cls, path: Path, overrides: Sequence[str] = ()) -> Experiment:
        """An experiment from a TOML file."""
        with reading(path, "an experiment in TOML, or key=value"):
            return cls.parse(tables_of(path), overrides)

    @classmethod
    def parse(cls, values: Mapping[str, Any], overrides: Sequence[str] = (), *, presets: bool = True) -> Experiment:
        """An experiment from tables and from overrides such as `learner.epochs=5`; other settings have defaults."""
        return cls.layered([values, *map(parse_override, overrides)], presets=presets)

    @classmethod
    def layered(cls, layers: Sequence[Mapping[str, Any]], *, presets: bool = True) -> Experiment:
        """An experiment from several tables; later ones override earlier ones."""
        kind = _last(layers, "name", "prer")
        options = families(find(kind))
        density = _last(layers, "density", "flow")
        tables: dict[str, Any] = {}
        for layer in layers:
            present = moved(layer, kind, density)
            if isinstance(present.get("learner"), dict):
                present["learner"] = named(present["learner"], options)
            tables = merged(tables, present, options)
        check_keys(tables, KEYS, "", {f.name: f"did you mean 'stream.{f.name}'?" for f in fields(StreamConfig)})
        for table in ("stream", "learner"):
            if not isinstance(tables.setdefault(table, {}), dict):
                raise InputError(
                    f"{table!r} must be a table, such as {table}.{'data' if table == 'stream' else 'name'}=..."
                )
        like = tables.get("like", tables["stream"].get("data", "digits"))
        if "like" in tables and (not isinstance(like, str) or like not in CATALOGUE):
            raise InputError(
                f"like={like!r} names no data set with settings to take{did_you_mean(str(like), CATALOGUE)}"
            )
        scenario = tables["stream"].get("scenario", "task")
        features = bool(tables["stream"].get("features")) and "like" not in tables
        tables = merged(recommended(str(like), kind, scenario, features) if presets else {}, tables, options)
        tables["learner"].pop("name", None)
        given, (kind, tables["learner"]) = kind, present_name(tables["learner"], kind)
        stream = build(StreamConfig, tables["stream"], "stream", {})
        learner = build(find(kind), tables["learner"], "learner", _owners(kind))
        if (stream.crop or stream.flip) and isinstance(learner, ClosedForm):
            raise InputError(
                f"stream.crop and stream.flip have no effect on {kind}, which trains nothing; leave them out"
            )
        name = typed(tables.get("name", f"{stream.name}-{given}"), str, "name")
        device = typed(tables.get("device", "auto"), str, "device")
        return cls(name=name, seeds=seeds_of(tables), device=device, stream=stream, learner=learner)

    @classmethod
    def parse_run(cls, tables: Mapping[str, Any]) -> Experiment:
        """The experiment of a run folder, perhaps of an earlier version: a setting that is missing had its default."""
        return cls.parse(tables, presets=False)

    def tables(self) -> dict[str, Any]:
        """The experiment as plain values, defaults filled in."""
        top = {"name": self.name, "seeds": list(self.seeds), "device": self.device}
        learner = {"name": self.learner.name} | values_of(self.learner)
        return top | {"stream": values_of(self.stream), "learner": learner}

    def is_same(self, tables: Mapping[str, Any]) -> bool:
        """Whether the tables of a run, perhaps of an earlier version, describe this experiment."""
        try:
            return bool(tables) and Experiment.parse_run(tables).tables() == self.tables()
        except InputError:
            return False

    def to_toml(self) -> str:
        """The experiment as TOML, with the help text of every setting as a comment."""
        tables = self.tables()
        lines = [f"{key} = {_toml(tables[key])}" for key in ("name", "seeds", "device")]
        for table, source in (("stream", self.stream), ("learner", self.learner)):
            lines += _toml_table(table, source, tables[table])
        return "\n".join(lines) + "\n"

    def chosen(self) -> dict[str, dict[str, Any]]:
        """The settings of the stream and of the learner that differ from their defaults, as plain values."""
        return {
            "stream": chosen(self.stream),
            "learner": {"name": self.learner.name} | chosen(self.learner),
        }

    @property
    def hash(self) -> str:
        """Eight hexadecimal digits over seeds, device and the settings that differ from their defaults.

        Settings at their default do not count, and a setting that has moved counts under its former name, so that
        neither a new setting nor a moved one renames a run.
        """
        return self.hash_with(former({"name": self.learner.name} | chosen(self.learner)))

    def hash_with(self, learner: Mapping[str, Any]) -> str:
        """The hash if these were the settings of the learner that differ from their defaults, under former names."""
        table = {key: value for key, value in learner.items() if (key, value) != ("density", "flow")}  # the default
        content = {
            "schema": SCHEMA,
            "seeds": list(self.seeds),
            "device": self.device,
            "stream": chosen(self.stream),
            "learner": table,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def folder(self) -> str:
        """The name of the run's folder: a safe short form of the name, and the hash."""
        return f"{self._slug}-{self.hash}"

    @property
    def _slug(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")[:40].strip("-") or "run"

    @property
    def hashes(self) -> tuple[str, ...]:
        """The present hash, and those that the experiment had in earlier versions."""
        return (self.hash, *former_hashes(self))

    def path(self, out: Path) -> Path:
        """The run's folder in `out`; if an earlier version has run the experiment, the folder of that run."""
        now = out / self.folder
        if os.path.lexists(now):
            return now
        earlier = (out / f"{self._slug}-{former}" for former in former_hashes(self))
        return next((path for path in earlier if os.path.lexists(path)), now)


def modernised(context: Mapping[str, Any]) -> dict[str, Any]:
    """The context of a checkpoint as this version would have written it, where the numbers are the same."""
    known = dict(context) | ({"prer": __version__} if context.get("prer") in SAME_NUMBERS else {})
    if isinstance(known.get("experiment"), dict):
        with suppress(InputError):  # a setting that is not known here is reported as a difference
            known["experiment"] = Experiment.parse_run(known["experiment"]).tables()
    return known


def seeds_of(tables: Mapping[str, Any]) -> tuple[int, ...]:
    """The seeds of an experiment, which gives a count or a list."""
    seeds = tables.get("seeds", 5)
    if type(seeds) is not int and not isinstance(seeds, (list, tuple)):
        raise InputError(f"seeds={seeds!r}: give a whole number or a list of them: --seeds 0,1,7, or seeds=[0,1,7]")
    return as_seeds(seeds if type(seeds) is int else typed(seeds, tuple[int, ...], "seeds"))


@contextmanager
def reading(path: Path, wanted: str) -> Iterator[None]:
    """Turn errors while reading a TOML file into an `InputError` with a hint."""
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; give {wanted}") from None
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        hint = "" if path.suffix == ".toml" else f"; if it is data, say stream.data={path}"
        raise InputError(f"{path} cannot be read as TOML: {reason}{hint}") from None


def tables_of(path: Path) -> dict[str, Any]:
    """Parse a TOML file; a pipe is refused, since reading it might block forever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        text = file.read(MOST_TOML + 1)
    if len(text) > MOST_TOML:
        raise ValueError("it is too large")
    return tomllib.loads(text.decode("utf-8"))


@cache
def _owners(kind: str) -> dict[str, str]:
    """Error hints for settings of other learners, by setting."""
    owners = {f.name: name for name, learner in (ABLATION | LEARNERS).items() for f in fields(learner)}
    owners = dict.fromkeys(DENSITY, "the density of prer") | owners
    return {key: f"it is a setting of {name}, not of {kind}" for key, name in owners.items()} | {
        "name": "the learner's name is a setting of its own, learner.name"
    }


def parse_override(text: str) -> dict[str, Any]:
    """`a.b=value` as nested tables; the value is parsed as TOML, and is a string if that fails.

    Example:
        >>> parse_override("learner.lr=1e-3"), parse_override("stream.data=my/file.npz")
        ({'learner': {'lr': 0.001}}, {'stream': {'data': 'my/file.npz'}})
    """
    key, equals, raw = text.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or not all(parts):
        raise InputError(f"{text!r} is not of the form key=value, such as learner.epochs=5")
    try:
        value: Any = tomllib.loads(f"v = {raw}")["v"] if "\n" not in raw else raw
    except (ValueError, RecursionError):
        value = raw.strip()
    return nested(parts, value)


def nested(parts: Sequence[str], value: Any) -> dict[str, Any]:
    """Nested tables that hold a value at the path given by these parts."""
    tables: dict[str, Any] = {parts[-1]: value}
    for part in reversed(parts[:-1]):
        tables = {part: tables}
    return tables


def _last(layers: Iterable[Mapping[str, Any]], key: str, default: str) -> Any:
    """The last value of a setting of the learner that is given; of the table of a density, its name."""
    found: Any = default
    for layer in layers:
        table = layer.get("learner")
        if isinstance(table, Mapping) and key in table:
            value = table[key]
            found = value.get("name", found) if key == "density" and isinstance(value, Mapping) else value
    return found


def _toml_table(name: str, settings: Any, values: Mapping[str, Any]) -> list[str]:
    """The lines of a table: its settings with their help texts, then the tables inside it."""
    inner = {f.name: value for f in fields(settings) if isinstance(value := getattr(settings, f.name), Options)}
    help_texts = {f.name: f.metadata["help"] for f in fields(settings)}
    help_texts["name"] = f"one of {', '.join(settings.kinds)}" if isinstance(settings, Options) else "what learns"
    lines = ["", f"[{name}]"]
    lines += [f"{key} = {_toml(value)}  # {help_texts[key]}" for key, value in values.items() if key not in inner]
    return lines + [line for key in inner for line in _toml_table(f"{name}.{key}", inner[key], values[key])]


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):  # TOML escapes like JSON, except for DEL, which JSON leaves alone
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)
