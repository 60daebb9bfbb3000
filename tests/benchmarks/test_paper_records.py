"""The paper's runs, packed into one file and unpacked."""

import functools
import json
import shutil

import pytest
from support.benchmarks import packed_runs, script

from prer.migration import DENSITY, SWITCHES, former, moved
from prer.runs.discovery import discover
from prer.runs.folder import RunFolder

paper_records = script("paper_records")


def test_unpacked_runs_are_packed_as_before(runs):
    expected = [json.loads(line) for line in packed_runs()]
    for line in expected:
        tables = paper_records.experiment_of(line).tables()  # with settings that are newer, or have moved
        learner = SWITCHES | former(tables["learner"])
        if isinstance(line["settings"]["learner"].get("density"), dict):  # a newer line, with a table of its own
            learner = tables["learner"]
        for key, value in moved(line["settings"])["stream"].items():
            assert tables["stream"][key] == value
        for key, value in line["settings"]["learner"].items():  # a Gaussian has no settings of a flow any more
            assert learner[key] == value if key in learner else learner["density"] == "gaussian" and key in DENSITY
        line["settings"] |= {table: tables[table] for table in ("stream", "learner")}
    packed = [json.loads(line) for line in paper_records.pack(runs)]
    in_order = functools.partial(json.dumps, sort_keys=True)
    assert sorted(map(in_order, packed)) == sorted(map(in_order, expected))


def test_a_result_with_metrics_that_do_not_follow_from_its_matrix_is_not_packed(runs, tmp_path):
    path = shutil.copytree(discover([runs], ["result.json"])[0][0], tmp_path / "run")
    result = RunFolder(path).result
    result["accuracy"]["mean"] += 1e-9
    (path / "result.json").write_text(json.dumps(result))
    with pytest.raises(SystemExit, match="do not follow from its matrix"):
        paper_records.pack(tmp_path)
