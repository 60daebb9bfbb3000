"""Find a learner by its name: ours, those that users register, and those of installed packages.

Code is imported only from installed packages that have an entry point in the group `prer.learners`, when their learner
is asked for by name, and from files that the user names (`--plugin FILE`). Run and model folders are never searched.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields
from importlib.metadata import EntryPoint, distributions
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from prer.errors import InputError
from prer.learners import ABLATION, LEARNERS, Learner
from prer.settings import checked
from prer.text import did_you_mean, excerpt

GROUP = "prer.learners"
AS_PLUGIN = "a learner of your own is given with --plugin FILE"
HEADER = "@dataclass(kw_only=True)"
Kind = TypeVar("Kind", bound=type[Learner])

_registered: dict[str, type[Learner]] = {}
_sources: dict[str, bytes] = {}  # the code of each plug-in, by the name of its module


def find(name: Any) -> type[Learner]:
    """The learner class of this name; an error if there is none.

    Example:
        >>> find("naive").__name__
        'Naive'
    """
    if isinstance(name, str):
        if name in LEARNERS or name in ABLATION:
            return LEARNERS.get(name) or ABLATION[name]
        if name not in _registered and name in (points := _entry_points()):
            _load(points[name])
        if name in _registered:
            return _registered[name]
    raise InputError(f"unknown learner {excerpt(repr(name))}{did_you_mean(str(name), names())} ({AS_PLUGIN})")


def names() -> list[str]:
    """The names of all learners, ours first; entry points are listed without loading them."""
    return list(dict.fromkeys([*LEARNERS, *_registered, *_entry_points()]))


def register(cls: Kind) -> Kind:
    """Make a learner of your own known by its name, so that experiments and saved models find it; a decorator.

    Registering a class again, as a notebook cell that runs twice does, replaces it.

    Example:
        >>> from dataclasses import dataclass
        >>> from prer import Learner
        >>> @register
        ... @dataclass(kw_only=True)
        ... class Mine(Learner):
        ...     name = "registered-mine"
        >>> find("registered-mine") is Mine
        True
    """
    if cls not in (*LEARNERS.values(), *ABLATION.values()):
        check(cls)
        _registered[cls.name] = cls
    return cls


@contextmanager
def registered(cls: type[Learner]) -> Iterator[None]:
    """Register a learner for the duration of a `with` block."""
    before = dict(_registered)
    register(cls)
    try:
        yield
    finally:
        _registered.clear()
        _registered.update(before)


def check(cls: Any) -> None:
    """Check that a class can be a learner of its own, and that its name is free."""
    label = getattr(cls, "__name__", repr(cls))
    if not isinstance(cls, type) or not issubclass(cls, Learner) or cls is Learner:
        raise InputError(f"{label} is not a subclass of prer.Learner")
    name = getattr(cls, "name", None)
    if not isinstance(name, str) or not re.fullmatch("[a-z0-9-]+", name):
        raise InputError(f"{label} has the name {name!r}; give it one of a-z, 0-9 and -, such as name = 'my-learner'")
    other = LEARNERS.get(name) or ABLATION.get(name) or _registered.get(name)
    if other is not None and _place(other) != _place(cls):
        raise InputError(f"{label} has the name {name!r}, which {_place(other)} has; give it another name")
    if "__dataclass_params__" not in vars(cls) or not all(f.kw_only for f in fields(cls)):
        raise InputError(f"{label} is not a keyword-only dataclass; write {HEADER} above the class")
    for f in fields(cls):
        help = f.metadata.get("help")
        if f.default is MISSING or f.default is None or not help or not help.isprintable():
            how = f"{f.name} = setting(default, 'help text in one line')"
            raise InputError(f"the setting {f.name!r} of {label} has no default or no help text; write {how}")
    try:
        checked(cls, {f.name: f.default for f in fields(cls)}, f"{label}.")
    except (NameError, TypeError) as error:
        raise InputError(f"the settings of {label} have a type that cannot be checked: {error}") from None


def load_plugin(file: Path | str) -> list[type[Learner]]:
    """Run a Python file and register every learner class that it defines, except those whose names begin with _."""
    path = Path(file).absolute()
    try:
        source = path.read_bytes()
    except OSError as error:
        raise InputError(f"the plug-in {file} cannot be read: {error.strerror}; give a Python file") from None
    module = ModuleType(f"_prer_plugin_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}")
    module.__file__, before, known = str(path), sys.modules.get(module.__name__), dict(_registered)
    sys.modules[module.__name__] = module  # dataclasses and type hints look their module up
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), vars(module))
        found = [kind for kind in vars(module).values() if _is_own(kind, module.__name__)]
        if not found:
            raise InputError(f"the plug-in {file} defines no learner; write a subclass of prer.Learner in it")
        for kind in found:
            check(kind)
    except BaseException as error:
        sys.modules.pop(module.__name__)
        _registered.clear()
        _registered.update(known)
        if before is not None:
            sys.modules[module.__name__] = before
        if isinstance(error, InputError):
            raise
        if isinstance(error, (Exception, SystemExit)):
            raise InputError(f"the plug-in {file} fails{_line(error, path)}: {_reason(error)}") from error
        raise
    _sources[module.__name__] = source
    return [register(kind) for kind in found]


def code_of(cls: type[Learner]) -> str | None:
    """sha256 of the modules that define a learner outside this package; None for ours, or if there is no source."""
    sources = [
        _source(kind) for kind in cls.__mro__ if kind.__module__.partition(".")[0] not in ("prer", "builtins", "abc")
    ]
    known = [source for source in sources if source is not None]
    return hashlib.sha256(b"\0".join(known)).hexdigest() if known else None


def _source(cls: type) -> bytes | None:
    if cls.__module__ in _sources:
        return _sources[cls.__module__]
    for thing in (sys.modules.get(cls.__module__), cls):  # a notebook has no module file
        try:
            return inspect.getsource(thing).encode()  # type: ignore[arg-type]
        except (OSError, TypeError):
            continue
    return None


def _place(cls: type) -> str:
    module = sys.modules.get(cls.__module__)
    where = cls.__module__ if module is None or cls.__module__ not in _sources else module.__file__
    return f"{where}:{cls.__qualname__}"


def _is_own(kind: Any, module: str) -> bool:
    """Whether a name of a plug-in is a learner class that the plug-in defines for use."""
    own = isinstance(kind, type) and issubclass(kind, Learner) and kind.__module__ == module
    return own and not kind.__name__.startswith("_")


def _entry_points() -> dict[str, EntryPoint]:
    """The entry points of installed packages, by name; metadata in the current folder does not count."""
    here = Path.cwd()
    path = [entry for entry in sys.path if entry and Path(entry).resolve() != here.resolve()]
    return {point.name: point for found in distributions(path=path) for point in found.entry_points.select(group=GROUP)}


def _load(point: EntryPoint) -> None:
    try:
        cls = point.load()
    except (Exception, SystemExit) as error:
        raise InputError(f"the learner {point.name!r} of {point.value} cannot be imported: {_reason(error)}") from error
    if getattr(cls, "name", None) != point.name:
        raise InputError(f"{point.value} is not a learner of the name {point.name!r}, as its entry point says")
    register(cls)


def _line(error: BaseException, path: Path) -> str:
    """The last line of a file that an error went through, as words."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f" in line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f" in line {lines[-1]}" if lines else ""


def _reason(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return excerpt(" ".join(f"{type(error).__name__}: {text}".split()))
