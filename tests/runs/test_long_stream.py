"""A long stream: memory and open files do not grow, and the newest tasks are still learned."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "thousand_tasks.py"


def test_forty_tasks_open_no_more_files_and_keep_only_what_classes_need(tmp_path):
    found = tmp_path / "found.json"
    command = [sys.executable, str(SCRIPT), "--tasks", "40", "--json", str(found)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = json.loads(found.read_text())["lines"]
    assert [line["task"] for line in lines] == [1, *range(4, 41, 4)]
    assert len({line["files"] for line in lines}) == 1
    kept = {line["task"]: line["floats"] for line in lines}
    assert all(kept[task] - kept[1] == (task - 1) * 2 * (4 + 1) for task in kept)  # a vector and a count for each class
    assert min(line["newest"] for line in lines) > 90
    assert lines[-1]["megabytes"] < lines[1]["megabytes"] + 20  # a copy of all tasks' states would be more
