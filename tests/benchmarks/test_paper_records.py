"""The paper's runs, packed into one file and unpacked."""

import json
import shutil

import pytest
from support.benchmarks import packed_runs, script

from prer.runs.discovery import discover
from prer.runs.folder import RunFolder
from prer.settings import moved

paper_records = script("paper_records")


def test_unpacked_runs_are_packed_as_before(runs):
    expected = [json.loads(line) for line in packed_runs()]
    for line in expected:
        line["settings"] = moved(line["settings"])
        tables = paper_records.experiment_of(line).tables()  # with settings that are newer than the records
        for table in ("stream", "learner"):
            assert line["settings"][table].items() <= tables[table].items()
            line["settings"][table] = tables[table]
    assert [json.loads(line) for line in paper_records.pack(runs)] == expected


def test_a_result_with_metrics_that_do_not_follow_from_its_matrix_is_not_packed(runs, tmp_path):
    path = shutil.copytree(discover([runs], ["result.json"])[0][0], tmp_path / "run")
    result = RunFolder(path).result
    result["accuracy"]["mean"] += 1e-9
    (path / "result.json").write_text(json.dumps(result))
    with pytest.raises(SystemExit, match="do not follow from its matrix"):
        paper_records.pack(tmp_path)
