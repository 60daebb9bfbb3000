"""The run folder: its files, written atomically and read defensively."""

from __future__ import annotations

import json
import os
import stat
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from prer.disk import MOST_TOML, checksum, content, finite, replace_file
from prer.errors import InputError
from prer.migration import moved_run, present_key
from prer.runs.environment import environment
from prer.runs.wholeness import is_whole
from prer.text import excerpt
from prer.version import __version__

RESULT_KEYS = ("seeds", "matrix", "accuracy", "bwt", "memory_floats", "memory_samples", "seconds", "learner", "stream")


FILES = ("experiment.toml", "environment.json", "events.jsonl", "result.json", "run.lock")


FOLDERS = ("checkpoint", "model", "memory")


LOCK = FILES[-1]


HARMLESS = (LOCK, f".{FILES[0]}.new")  # all that a run leaves if killed while writing its experiment


MOST_BYTES = 2**28  # limit of a file read at once; the matrix of a thousand tasks and ten seeds is smaller


MOST_EVENTS = 2**28  # bytes; limit of the event file


GLANCE = 2**15  # bytes that are read for the newest events


MOST_LINE = 2**24  # bytes; limit of one event


@dataclass(frozen=True)
class RunFolder:
    """One run's folder."""

    path: Path

    def claim(self, is_same: Callable[[dict[str, Any]], bool]) -> None:
        """Refuse a folder of another experiment, or one that is not a run's."""
        self.check_names()
        there = self.path / "experiment.toml"
        try:
            if there.exists():
                if not is_same(tomllib.loads(self._text("experiment.toml"))):
                    raise InputError(f"{self.path} belongs to a different experiment; use another --out or name")
            elif self.path.exists() and any(entry.name not in HARMLESS for entry in self.path.iterdir()):
                raise InputError(f"{self.path} contains files that are not a run's; use another --out or name")
        except InputError:
            raise
        except (ValueError, RecursionError):
            raise InputError(f"{there} is damaged; move {self.path} away, or use another --out") from None
        except OSError as error:
            raise self._unwritable(error) from None

    def check_data(self, sha256: str) -> None:
        """Refuse if the data has changed since the run."""
        if self.data_sha256 not in (None, sha256):
            raise InputError(f"the data has changed since the run in {self.path}; use another --out or name")

    def check_code(self, code: str | None) -> None:
        """Refuse if the code of a plug-in's learner, given by its checksum, has changed since the run."""
        context = self.environment.get("context")
        before = context.get("plugin") if isinstance(context, dict) else None
        if None not in (before, code) and before != code:
            what = "give another --out or name, or resume it with --force"
            raise InputError(f"the learner's code has changed since the run in {self.path}; {what}")

    def check_names(self) -> None:
        """Refuse links and special files in place of files that we would write: a link may lead outside the folder."""
        for name in (*FILES, *FOLDERS, "model/model.json", "model/model.safetensors", "model/README.md"):
            entry = self.path / name
            try:
                mode = entry.lstat().st_mode
            except OSError:
                continue
            if not (stat.S_ISDIR(mode) if name in FOLDERS else stat.S_ISREG(mode)):
                raise InputError(
                    f"{entry} is not a regular file or folder; remove it, since a run never writes outside its folder"
                )

    @property
    def environment(self) -> dict[str, Any]:
        """The content of `environment.json`: versions, hardware, context, resumptions; empty if it cannot be read."""
        try:
            found = json.loads(self._text("environment.json"))
            return found if isinstance(found, dict) else {}
        except (OSError, ValueError, RecursionError):
            return {}

    @property
    def earlier_version(self) -> str:
        """The version of prer that wrote the folder if it is not this one, else an empty string."""
        version = self.environment.get("prer")
        return excerpt(version, 40) if isinstance(version, str) and version != __version__ else ""

    @property
    def data_sha256(self) -> str | None:
        """The checksum of the run's data; None if unknown."""
        return self.environment.get("data_sha256")

    @property
    def tasks(self) -> int:
        """The number of tasks of the run; 0 if unknown."""
        tasks = self.environment.get("tasks")
        return tasks if type(tasks) is int and tasks > 0 else 0

    @property
    def phases(self) -> dict[str, int]:
        """The epochs of each phase of the first task; empty if unknown."""
        phases = self.environment.get("phases")
        return phases if isinstance(phases, dict) and all(type(n) is int for n in phases.values()) else {}

    @property
    def warnings(self) -> list[str]:
        """The warnings that were given when the run started."""
        warnings = self.environment.get("warnings")
        return [text for text in warnings if isinstance(text, str)] if isinstance(warnings, list) else []

    @property
    def threads(self) -> int | None:
        """The number of threads that the run started with; None if unknown."""
        threads = self.environment.get("threads")
        return threads if type(threads) is int and 0 < threads < 1024 else None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the folder for writing; if the process dies, the operating system releases the lock."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with FileLock(self.path / LOCK, timeout=0):
                yield
        except Timeout:
            raise InputError(f"another process is writing {self.path}; wait until it ends, or stop it") from None
        except RecursionError:
            raise InputError(
                f"{self.path} contains a file that is nested too deeply; prer never writes such a file"
            ) from None
        except OSError as error:
            raise self._unwritable(error) from None

    def running(self) -> bool:
        """Whether a process holds the lock of the folder."""
        try:
            with FileLock(self.path / LOCK, timeout=0):
                return False
        except Timeout:
            return True
        except OSError:  # read-only
            return not (self.path / "result.json").exists()

    def begin(self, experiment_toml: str) -> None:
        """Write `experiment.toml` before anything else: it is all that is needed to resume the run."""
        if not os.access(self.path, os.W_OK):
            raise self._unwritable(PermissionError(13, "not writable"))
        if not (self.path / "experiment.toml").exists():
            self._write("experiment.toml", experiment_toml)

    @contextmanager
    def as_it_began(self) -> Iterator[None]:
        """Work in the directory the run was started from, if possible: its experiment may have relative paths."""
        folder = self.environment.get("folder")
        with ExitStack() as stack:
            if isinstance(folder, str):
                with suppress(OSError, ValueError):  # deleted, not accessible, or not a path
                    stack.enter_context(chdir(folder))
            yield

    def start(
        self,
        context: dict[str, Any],
        tasks: int = 0,
        phases: Mapping[str, int] | None = None,
        warnings: Sequence[str] = (),
    ) -> None:
        """Write `environment.json` with the run's context and warnings, and clear its events and samples."""
        about = {"folder": str(Path.cwd()), "data_sha256": context["data"], "context": context}
        about |= {"tasks": tasks, "phases": dict(phases or {}), "warnings": list(warnings)}
        self._write("environment.json", json.dumps(environment() | about, indent=1) + "\n")
        self._write("events.jsonl", "")
        for shown_before in (self.path / "memory").glob("task-*.safetensors"):
            shown_before.unlink()

    def go_on(self, known: dict[str, Any], forced: list[str]) -> None:
        """Record that the run resumes from a checkpoint, and drop later events, which will be written again."""
        about, resumed = self.environment, {"tasks": known["tasks"], "forced": forced, "environment": environment()}
        before = about.get("resumed")
        about["resumed"] = [*(before if isinstance(before, list) else []), resumed]
        self._write("environment.json", json.dumps(about, indent=1) + "\n")
        self._cut_events(known.get("events"))

    def events_so_far(self) -> dict[str, int]:
        """The size of the event file, to be saved with a checkpoint."""
        return {"events": (self.path / "events.jsonl").stat().st_size}

    def secure_events(self) -> None:
        """Flush the events to disk."""
        with (self.path / "events.jsonl").open("ab") as file:
            os.fsync(file.fileno())

    def _cut_events(self, length: object) -> None:
        """Drop events after a checkpoint, which will be written again, and an incomplete last line."""
        file = self.path / "events.jsonl"
        with file.open("r+b" if file.exists() else "w+b") as events:
            end = events.seek(0, os.SEEK_END)
            end = length if type(length) is int and 0 <= length <= end else end
            begin = events.seek(max(end - MOST_BYTES, 0))  # no line is longer, but the file may be
            found = events.read(end - begin).rfind(b"\n") + 1
            events.truncate(begin + found if found else 0)

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(f"cannot write the run folder {self.path}: {error.strerror}; use another --out")

    @property
    def result(self) -> dict[str, Any] | None:
        """The content of `result.json`; None if the run is not finished."""
        file = self.path / "result.json"
        if not file.exists():
            return None
        try:
            result = json.loads(self._text("result.json"))
            missing = [key for key in RESULT_KEYS if key not in result]
            whole = bool(missing) or (is_whole(result) and result.pop("sha256", None) in (None, checksum(result)))
        except (OSError, ValueError, TypeError, KeyError, IndexError, OverflowError, AttributeError, RecursionError):
            result, missing, whole = None, [], False
        if missing or not whole:
            what = f"lacks {', '.join(missing)}" if missing else "cannot be read"
            raise InputError(f"{file} {what}; delete it and run again")
        return result

    @property
    def experiment(self) -> dict[str, Any]:
        """The tables of `experiment.toml`, with settings under their present names."""
        try:
            tables = tomllib.loads(self._text("experiment.toml"))
        except (OSError, ValueError, RecursionError):
            tables = {}
        if not tables:  # an empty file would mean the built-in experiment, and prer never writes one
            what = "is not a run folder: its experiment.toml cannot be read or is empty; give one written by `prer run`"
            raise InputError(f"{self.path} {what}")
        with suppress(InputError):  # a setting under both names: the run can be shown, but not resumed
            tables = moved_run(tables)
        return tables

    def setting(self, key: str) -> str:
        """One setting of the experiment by its dotted key, as text; "-" where the experiment has no such setting."""
        tables = self.experiment
        value = next((value for name in (key, present_key(key)) if (value := _at(tables, name)) != "-"), "-")
        return str(value.get("name", value) if isinstance(value, dict) else value)

    def event(self, event: dict[str, Any]) -> None:
        """Append one event."""
        with (self.path / "events.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(finite(event), allow_nan=False) + "\n")

    def events(self, follow: bool = False, pause: float = 1.0) -> Iterator[dict[str, Any]]:
        """The complete events, {} for an invalid line; with `follow` also new ones until the run ends.

        Raises:
            InputError: the file is too large to be read.
        """
        file, position = self.path / "events.jsonl", 0
        while True:
            ended = not follow or not self.running()  # checked before reading, so that no last event is missed
            try:
                about = file.lstat()
                if not stat.S_ISREG(about.st_mode):
                    return  # a pipe could block
                if about.st_size > MOST_EVENTS:
                    raise InputError(f"{file} is larger than {MOST_EVENTS >> 20} MiB, the limit for events")
                with file.open("rb") as events:
                    position = position if position <= events.seek(0, os.SEEK_END) else 0  # the run was restarted
                    events.seek(position)
                    for line in iter(lambda: events.readline(MOST_LINE), b""):
                        if not line.endswith(b"\n") and len(line) < MOST_LINE:
                            break  # still being written
                        position = events.tell()
                        yield _event(line)
            except FileNotFoundError:
                pass
            if ended:
                return
            time.sleep(pause)

    def newest(self, most: int = GLANCE) -> list[dict[str, Any]]:
        """The newest events in order, from the last `most` bytes: fast, however long the run is."""
        file = self.path / "events.jsonl"
        try:
            if not stat.S_ISREG(file.lstat().st_mode):
                return []  # a pipe could block
            with file.open("rb") as events:
                size = events.seek(0, os.SEEK_END)
                events.seek(max(size - most, 0))
                whole = events.read(most).rpartition(b"\n")[0]
        except OSError:  # there are no events yet
            return []
        return [_event(line) for line in whole.split(b"\n")]

    @property
    def failure(self) -> str:
        """Why the last attempt of the run failed; empty if it did not."""
        last = self.newest()[-1:]
        return str(last[0].get("reason", "")) if last and last[0].get("event") == "failed" else ""

    def finish(self, result: dict[str, Any]) -> None:
        """Write the result atomically, and last: its presence marks the run as finished."""
        self.secure_events()
        whole = result | {"sha256": checksum(result)}
        self._write("result.json", json.dumps(whole, indent=1, allow_nan=False) + "\n")

    def _text(self, name: str) -> str:
        """The text of a regular file within the size limit."""
        return content(self.path / name, MOST_TOML if name.endswith(".toml") else MOST_BYTES).decode("utf-8")

    def _write(self, name: str, text: str) -> None:
        replace_file(self.path / name, text.encode())


def _event(line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _at(tables: Any, key: str) -> Any:
    """The value at a dotted key of nested tables; "-" if there is none."""
    for part in key.split("."):
        tables = tables.get(part, "-") if isinstance(tables, dict) else "-"
    return tables
