"""Folders import only downwards; a contract that never fails would hold nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINT = Path(sys.executable).with_name("lint-imports")
UPWARDS = {
    "at the top": ("data/arrays.py", "from prer.cli.main import main\n"),
    "inside a function": ("learners/naive.py", "\n\ndef late():\n    from prer.runs import learn\n    return learn\n"),
    "for types": (
        "models/model.py",
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from prer.terminal import tables\n",
    ),
    "from a folder of no layer": ("new/__init__.py", ""),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The package without what is not Python, and the contracts."""
    folder = tmp_path_factory.mktemp("layers")
    for file in (ROOT / "prer").rglob("*.py"):
        target = folder / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def lint(folder):
    done = subprocess.run(
        [LINT, "--no-cache"], cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)}, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def test_the_package_keeps_its_contracts(copy):
    code, out = lint(copy)
    assert code == 0 and "1 kept, 0 broken" in out, out


@pytest.mark.parametrize("case", UPWARDS)
def test_an_import_upwards_breaks_them(copy, case):
    name, code = UPWARDS[case]
    file = copy / "prer" / name
    before = file.read_text() if file.exists() else None
    file.parent.mkdir(exist_ok=True)
    file.write_text((before or "") + code)
    try:
        code, out = lint(copy)
        assert code == 1 and "0 kept, 1 broken" in out, out
    finally:
        if before is None:
            shutil.rmtree(file.parent)
        else:
            file.write_text(before)
