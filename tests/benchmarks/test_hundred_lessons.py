"""docs/ says what the records of fifty and of a hundred lessons say. Nothing is timed here."""

import json
import re
import statistics
from itertools import pairwise

import numpy as np
import pytest
from support.benchmarks import RECORDS, ROOT, script
from support.documents import table, text_of

import prer

lessons = script("hundred_lessons")
QUICK = {"epochs": 1, "encoder": "patches", "embedding": "auto", "density": "mixture", "answer": "both"}
COLUMNS = ("lessons", "samples of a class", "late over early", "lowest", "highest", "correct, %")
GROWTH = r"a class takes ([\d,]+) bytes in the mixture and a row of the head, ([\d,]+) bytes"


@pytest.fixture(scope="module")
def fifty():
    return json.loads((RECORDS / "fifty_lessons.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def hundred():
    return json.loads((RECORDS / "hundred_lessons.json").read_text("utf-8"))


@pytest.fixture(params=["fifty", "hundred"])
def record(request):
    return request.getfixturevalue(request.param)


def numbers(pattern, text):
    """The numbers that a pattern finds once in a text, whatever its lines."""
    (found,) = re.findall(pattern, " ".join(text.split()))
    return [float(number.replace(",", "")) for number in ([found] if isinstance(found, str) else found)]


def section():
    """The text about many lessons."""
    return re.split(r"^## ", text_of("docs/benchmarks.md").split("## Fifty lessons\n")[1], maxsplit=1, flags=re.M)[0]


def test_the_records_are_those_of_the_script(fifty, hundred):
    assert [record["classes"] for record in (fifty, hundred)] == [50, 100]
    assert fifty["command"] == "python benchmarks/fifty_lessons.py"  # its name then
    assert hundred["command"] == "python benchmarks/hundred_lessons.py"


def test_lessons_in_processes_are_those_of_one_process(record):
    assert record["environment"]["threads"] == 1 and "dirty" not in record["environment"]["commit"]
    assert len(record["lessons"]["seconds"]) == record["classes"] and len(record["turns"]) == 3
    assert record["same_digest"] == [True] * 4 and {turn["digest"] for turn in record["turns"]} == {record["digest"]}


def test_the_folder_grows_by_what_is_documented_for_a_class_and_nothing_else(record):
    grown = {b - a for a, b in pairwise(record["lessons"]["bytes"])}
    assert grown == set(record["bytes_of_a_class"]) == {record["documented_bytes_of_a_class"]}
    assert grown == {sum(numbers(GROWTH, text_of("docs/models.md")))} == set(numbers(r"by ([\d,]+) bytes", section()))
    described = record["lessons"]["description_bytes"]
    grown_by = round((described[-1] - described[9]) / (len(described) - 10), -1)
    assert numbers(r"by about ([\d,]+) bytes a lesson", section()) == [grown_by]


def test_the_table_says_how_long_late_lessons_take(record):
    ratios = []
    for turn in record["turns"]:
        early, late = (turn["seconds"][when] for when in ("early", "late"))
        assert len(early) == len(late) == 5
        ratios.append(statistics.mean(late) / statistics.mean(early))
        assert turn["ratio"] == pytest.approx(ratios[-1])
    assert record["ratio"] == pytest.approx(statistics.median(ratios))
    figures = [f"{ratio:.2f}" for ratio in (record["ratio"], min(ratios), max(ratios))]
    right = f"{100 * record['accuracy_on_the_training_data']:.1f}"
    row = table("docs/benchmarks.md", *COLUMNS)[str(record["classes"])]
    assert row == [str(record["samples_of_a_class"]), *figures, right]


def test_the_target_of_fifty_lessons_is_met(fifty):
    assert fifty["ratio"] <= numbers(r"Our target for fifty lessons is ([\d.]+)\.", section())[0] == 1.2


def test_the_page_on_models_says_the_same(fifty):
    assert numbers(r"takes ([\d.]+) times as long as the tenth", text_of("docs/models.md")) == [
        round(fifty["ratio"], 2)
    ]


def test_steps_are_those_of_the_record(hundred):
    for turn in hundred["turns"]:
        early, late = (statistics.mean(turn["step_milliseconds"][when]) for when in ("early", "late"))
        assert turn["step_ratio"] == pytest.approx(late / early)
    ratio = round(statistics.median(turn["step_ratio"] for turn in hundred["turns"]), 2)
    steps = hundred["steps_of_a_lesson"]
    assert numbers(r"hundred lessons takes ([\d,]+) training steps", section()) == steps == [1000]
    assert numbers(r"A late step takes ([\d.]+) times as long", section()) == [ratio]
    page = text_of("docs/class-incremental.md")
    assert numbers(r"every lesson takes ([\d,]+) steps", page) == steps
    assert numbers(r"each class adds ([\d,]+) bytes", page) == hundred["bytes_of_a_class"]
    assert numbers(r"Lessons 96 to 100 take ([\d.]+) times", page) == [round(hundred["ratio"], 2)]
    assert numbers(r"and a step ([\d.]+) times", page) == [ratio]


# -- the script --------------------------------------------------------------------------------------------------------


def test_lessons_are_the_same_in_every_process_and_differ_from_each_other():
    (x, y), (again, _), (other, _) = (lessons.lesson(number, 60) for number in (3, 3, 4))
    assert np.array_equal(x, again) and not np.array_equal(x, other)
    assert x.shape == (60, 20) and set(y) == {"class 3"}


def test_a_class_takes_the_documented_bytes_and_more_samples_of_it_an_entry(tmp_path):
    model, sizes = prer.ContinualClassifier(prer.PRER(**QUICK)), []
    for number in (0, 1, 2, 1):  # the last one brings more of a known class
        with pytest.warns(UserWarning):
            model.partial_fit(*lessons.lesson(number, 640))
        if number == 2:
            documented = lessons.a_class(model)
        sizes.append(lessons.bytes_of_tensors(model.save(tmp_path / "model")))
    new, other, known = (b - a for a, b in pairwise(sizes))
    assert new == other == documented == sum(numbers(GROWTH, text_of("docs/models.md")))
    assert known == numbers(GROWTH, text_of("docs/models.md"))[0]


@pytest.mark.slow
def test_the_script_teaches_in_processes_and_in_turn(monkeypatch, tmp_path, capsys):
    """With a method that trains nothing."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(lessons, "ONE", lessons.ONE.replace("ContinualClassifier(", "ContinualClassifier('slda', "))
    monkeypatch.setattr(lessons, "EARLY", 1)
    monkeypatch.setattr(lessons, "CALLS", 1)
    found = lessons.in_processes(tmp_path / "model", 3, 30)
    turn = lessons.in_turn(tmp_path, 3, 30)
    assert [len(of) for of in found.values()] == [3] * 4 and [len(of) for of in turn["seconds"].values()] == [1, 1]
    assert turn["step_milliseconds"] == {"early": [0], "late": [0]}  # slda has no steps
    whole = prer.ContinualClassifier("slda")
    for number in range(3):
        whole.partial_fit(*lessons.lesson(number, 30))
    assert turn["digest"] == whole.state_digest_ == prer.load(tmp_path / "model").state_digest_
    assert "lesson 3: " in capsys.readouterr().out
