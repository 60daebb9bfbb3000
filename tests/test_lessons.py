"""examples/lessons.sh: three lessons in three processes, the data deleted in between, against one process."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT, PAGE = ROOT / "examples" / "lessons.sh", (ROOT / "docs" / "models.md").read_text("utf-8")


def test_three_days_in_three_processes_are_those_of_one(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = os.environ | {"PATH": path, "PYTHON": sys.executable, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(["sh", SCRIPT, tmp_path], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not any(
        (tmp_path / f"{day}{kind}").exists() for day in ("monday", "tuesday", "wednesday") for kind in (".csv", "")
    )
    digests = re.findall(r"in (?:three processes|one process): +([0-9a-f]{64})", done.stdout)
    assert len(digests) == 4 and digests[0] == digests[1] and digests[2] == digests[3]
    accuracies = [float(of) for of in re.findall(r"│ all +│ +363 │ +([\d.]+)% │", done.stdout)]
    said = re.search(
        r"right for ([\d.]+) %\s+of test samples of the digits\s+\(tables\) and ([\d.]+) % \(images\)", PAGE
    )
    assert accuracies == pytest.approx([float(of) for of in said.groups()], abs=4)  # processors round differently
