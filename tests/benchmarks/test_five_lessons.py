"""benchmarks/five_lessons.py: what people get who set nothing, and what docs/models.md says about it."""

import json

import pytest
from support.benchmarks import RECORDS, script
from support.documents import table, text_of

from prer.paper.tables import Value

PAGE = "docs/models.md"
five_lessons = script("five_lessons")


@pytest.fixture(scope="module")
def record():
    return json.loads((RECORDS / "five_lessons.json").read_text("utf-8"))


def test_the_page_has_the_numbers_the_seeds_and_the_command_of_the_record(record):
    rows = table(PAGE, "method", "final accuracy", "kB kept", "seconds")
    assert list(rows) == [f"`{name}`" for name in record["methods"]]
    for name, found in record["methods"].items():
        final, kept = found["final_accuracy"], found["memory_bytes"] / 1000
        seconds = Value(min(found["seconds"]["values"]), digits=1)
        assert rows[f"`{name}`"] == [str(Value(final["mean"], final["std"])), f"{kept:,.0f}", str(seconds)]
    said = " ".join(text_of(PAGE).split())
    assert f"(`{record['command']}`; seeds 0 to {record['seeds'][-1]}; two CPU cores" in said
    assert record["environment"]["cores"] == 2 and record["environment"]["gpu"] is None
    assert "dirty" not in record["environment"]["commit"]


def test_prer_with_nothing_set_reaches_its_target_and_keeps_no_sample(record):
    found = record["methods"]["prer"]
    assert len(record["seeds"]) == 5 and found["final_accuracy"]["mean"] >= 90
    assert {run["memory_samples"] for run in found["runs"]} == {0}


def test_a_closed_form_reaches_what_is_recorded_again(record, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(five_lessons, "METHODS", ("slda",))
    monkeypatch.setattr("sys.argv", ["five_lessons.py", "--seeds", "2", "--out", str(tmp_path / "found.json")])
    five_lessons.main()
    found = json.loads((tmp_path / "found.json").read_text())
    assert found.keys() == record.keys() and found["seeds"] == [0, 1]
    now, then = found["methods"]["slda"], record["methods"]["slda"]
    assert now["final_accuracy"]["values"] == pytest.approx(then["final_accuracy"]["values"][:2], abs=0.3)  # a sample
    assert now["memory_bytes"] == then["memory_bytes"] and now["runs"][0].keys() == then["runs"][0].keys()
    assert capsys.readouterr().out.startswith("slda")
