"""A result that somebody damaged or forged is recognised."""

import pytest
from support.fake_runs import fake_run, forge_result

from prer.errors import InputError
from prer.runs.folder import RunFolder
from prer.runs.wholeness import is_whole


@pytest.mark.parametrize(
    "damage",
    [
        {"confusion": [[1]]},
        {"confusion": None},
        {"classes": []},
        {"classes": ["a"] * 6},
        {"matrix_task_given": [[["x"]]]},
        {"class_accuracy": {"cat": [1e9]}},
        {"scenario": "other"},
        {"scenario": ["class"]},
        {"final_accuracy": {"mean": "<b>", "std": 0}},
        {"final_accuracy_task_given": {"mean": [1], "std": 0}},
        {"final_accuracy_task_given": 7},
        {"average_incremental_accuracy": None},
        {"memory_bytes": [1]},
        {"memory_bytes": [-1, 0, 0]},
    ],
    ids=str,
)
def test_a_damaged_result_without_the_task_is_said_to_be_damaged(tmp_path, damage):
    folder = RunFolder(fake_run(tmp_path / "a", scenario="class", labels=["cat", "dog", "a", "b", "c", "d"]))
    assert is_whole(folder.result)
    forge_result(folder.path, **damage)
    with pytest.raises(InputError, match="cannot be read; delete it and run again"):
        _ = RunFolder(folder.path).result


@pytest.mark.parametrize("scenario", ["task", "class"])
def test_what_a_run_writes_is_whole_and_so_is_what_earlier_versions_wrote(tmp_path, scenario):
    result = RunFolder(fake_run(tmp_path / "a", scenario=scenario)).result
    assert is_whole(result)
    if scenario == "task":
        for key in ("scenario", "classes", "memory_bytes", "average_incremental_accuracy", "test_samples"):
            del result[key]
        assert is_whole(result)
