"""Scripts and records of benchmarks/."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
RECORDS = BENCHMARKS / "records"


def script(name):
    """Import a script of benchmarks/, which may import others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        return importlib.import_module(name)


def packed_runs():
    """The recorded runs of the paper's tables, one line each."""
    return (RECORDS / "paper.jsonl").read_text("utf-8").splitlines()


def unpack_runs(folder):
    """Write the recorded runs as run folders."""
    script("paper_records").unpack(packed_runs(), folder)
    return folder
