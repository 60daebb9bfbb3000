"""Versions, hardware and commit, as they are recorded with a run."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from prer.version import __version__

RECORDED_PACKAGES = ("torch", "numpy", "scikit-learn", "safetensors")


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
    """The commit of a source checkout, to trace a result to its code; without a checkout, that in PRER_COMMIT."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return os.environ.get("PRER_COMMIT")
    try:
        command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
