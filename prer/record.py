"""The run folder: write it, read it, list it."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from prer.errors import InputError
from prer.version import __version__

RESULT_KEYS = ("seeds", "matrix", "accuracy", "bwt", "memory_floats", "memory_samples", "seconds", "learner", "stream")
RECORDED_PACKAGES = ("torch", "numpy", "scikit-learn", "safetensors")


@dataclass(frozen=True)
class Record:
    """One run's folder."""

    path: Path

    def claim(self, experiment_toml: str) -> None:
        """Refuse a folder that belongs to another experiment, or to something else."""
        there = self.path / "experiment.toml"
        try:
            if there.exists():
                if tomllib.loads(there.read_text("utf-8")) != tomllib.loads(experiment_toml):
                    raise InputError(f"{self.path} belongs to another experiment; give another --out or name")
            elif self.path.exists() and any(self.path.iterdir()):
                raise InputError(f"{self.path} holds something that is not a run; give another --out or name")
        except InputError:
            raise
        except (ValueError, RecursionError):
            raise InputError(f"{there} is damaged; move {self.path} away, or give another --out") from None
        except OSError as error:
            raise self._unwritable(error) from None

    def check_data(self, sha256: str) -> None:
        """Refuse to show a finished run's result as that of other data."""
        if self.data_sha256 not in (None, sha256):
            raise InputError(f"the data has changed since the run in {self.path}; give another --out or name")

    @property
    def data_sha256(self) -> str | None:
        """The checksum of the data of the run, or None where that is not known."""
        try:
            return json.loads((self.path / "environment.json").read_text("utf-8"))["data_sha256"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def begin(self, experiment_toml: str, data: str) -> None:
        """Make the folder, start the events anew, and note where the run takes place and on what data."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not os.access(self.path, os.W_OK):
                raise PermissionError(13, "not writable")
            self._write("experiment.toml", experiment_toml)
            self._write("environment.json", json.dumps(environment() | {"data_sha256": data}, indent=1) + "\n")
            self._write("events.jsonl", "")
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(f"cannot write the run's folder {self.path}: {error.strerror}; give another --out")

    @property
    def result(self) -> dict[str, Any] | None:
        """What `result.json` says, or None before the run has ended."""
        file = self.path / "result.json"
        if not file.exists():
            return None
        try:
            result = json.loads(file.read_text("utf-8"))
            missing = [key for key in RESULT_KEYS if key not in result]
            whole = bool(missing) or _whole(result)
        except (OSError, ValueError, TypeError, KeyError, IndexError, RecursionError):
            result, missing, whole = None, [], False
        if missing or not whole:
            what = f"lacks {', '.join(missing)}" if missing else "cannot be read"
            raise InputError(f"{file} {what}; delete it and run again")
        return result

    @property
    def experiment(self) -> dict[str, Any]:
        """What `experiment.toml` says."""
        try:
            return tomllib.loads((self.path / "experiment.toml").read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            raise InputError(f"{self.path} is not a run's folder, its experiment.toml cannot be read") from None

    def setting(self, key: str) -> str:
        """One setting of the experiment by its dotted key, as text; "-" where the experiment has no such setting."""
        value: Any = self.experiment
        for part in key.split("."):
            value = value.get(part, "-") if isinstance(value, dict) else "-"
        return str(value)

    def event(self, event: dict[str, Any]) -> None:
        """Append one event."""
        with (self.path / "events.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(_finite(event), allow_nan=False) + "\n")

    def finish(self, result: dict[str, Any]) -> None:
        """Write the result; its presence is what makes a run finished, so it appears whole or not at all."""
        self._write("result.json", json.dumps(result, indent=1, allow_nan=False) + "\n")

    def _write(self, name: str, text: str) -> None:
        temporary = self.path / f".{name}.{os.getpid()}"
        temporary.write_text(text, "utf-8")
        temporary.replace(self.path / name)


def _whole(result: dict[str, Any]) -> bool:
    """Whether what is shown of a result has the types that it should have."""
    numbers = [result["seconds"]["total"], result["memory_floats"][-1], result["memory_samples"][-1]]
    numbers += [result[key][part] or 0 for key in ("accuracy", "bwt") for part in ("mean", "std")]
    numbers += [v or 0 for R in result["matrix"] for row in R for v in row]
    tasks = {len(R) for R in result["matrix"]} | {len(row) for R in result["matrix"] for row in R}
    texts = (result["learner"], result["stream"])
    return (
        all(isinstance(n, (int, float)) for n in numbers)
        and all(isinstance(t, str) for t in texts)
        and len(tasks) == 1
        and len(result["matrix"]) == len(result["seeds"])
    )


def finished(out: Path) -> Iterator[Record]:
    """The finished runs below a folder, by name."""
    for file in sorted(out.glob("*/result.json")):
        yield Record(file.parent)


def counterpart(record: Record, learner: str) -> Record | None:
    """The one finished run beside this one in which another learner met the same stream with the same seeds.

    None where there are several: which of them to compare with is not for us to guess.
    """
    found = []
    own, path = record.experiment, record.path.resolve()
    for other in finished(path.parent):
        try:
            theirs, result = other.experiment, other.result
        except InputError:  # a damaged neighbour is no concern of this run
            continue
        same = all(theirs.get(key) == own.get(key) for key in ("stream", "seeds"))
        same = same and other.data_sha256 == record.data_sha256
        if same and result and result["learner"] == learner and other.path != path:
            found.append(other)
    return found[0] if len(found) == 1 else None


def _finite(value: Any) -> Any:
    """The same with None for NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(v) for key, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def environment() -> dict[str, Any]:
    """Versions, hardware and commit."""
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "prer": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in RECORDED_PACKAGES},
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": gpu,
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of a source checkout, so that a result can be traced to its code."""
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
