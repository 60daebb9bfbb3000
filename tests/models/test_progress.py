"""Progress of a lesson for Python users: lines on standard error, with the time left."""

import io
import re
import sys

import numpy as np
from support.lessons import classifier, lesson, taught
from support.terminal import epoch

import prer
from prer.models.progress import Lines


def told(*events, phases=(("a", 2), ("b", 3))):
    """Tell a lesson's progress these events."""
    lines = Lines(3, dict(phases))
    for event in events:
        lines(event)
    return lines


class Terminal(io.StringIO):
    """Standard error that somebody watches."""

    def isatty(self):
        return True


def test_a_log_has_one_line_for_each_phase(capsys):
    told(epoch(2, "a", 0, 2, seconds=5), epoch(2, "a", 1, 2, seconds=10), epoch(2, "b", 2, 3, seconds=4))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "lesson 3  a            epoch 2/2  30 s left",
        "lesson 3  b            epoch 3/3  0 s left",
    ]


def test_a_terminal_has_one_line_that_changes_and_ends_with_the_last_phase(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    told(epoch(0, "a", 0, 2, seconds=5), epoch(0, "a", 1, 2, seconds=100), epoch(0, "b", 2, 3, seconds=4))
    err = sys.stderr.getvalue()
    assert err.count("\r") == 3 and err.count("\n") == 1 and err.endswith("\n")
    first, second, last = err.split("\r")[1:]
    assert first.startswith("lesson 3  a            epoch 1/2  20 s left")
    assert len(first) == len(second) == len(last.rstrip("\n")) == 78  # a shorter text covers a longer one


def test_other_events_say_nothing(capsys):
    lines = told({"event": "health", "class": "x"}, {"event": "task", "task": 0})
    assert capsys.readouterr().err == "" and lines.pace == {}


def test_verbose_prints_every_phase_of_every_lesson(capsys):
    taught(classifier("prer", verbose=True), lesson("ab", 1), lesson("c", 2))
    out, err = capsys.readouterr()
    found = re.findall(r"^lesson (\d)  (\w+) +epoch (\d+)/\3  \d+ s left$", err, re.MULTILINE)
    assert out == "" and len(found) == len(err.splitlines())
    assert [number for number, *_ in found] == sorted(number for number, *_ in found)
    phases = {number: [phase for of, phase, _ in found if of == number] for number in "12"}
    assert phases["1"] == phases["2"] and {"autoencoder", "flow"} <= set(phases["1"])
    assert err.splitlines()[-1].endswith("0 s left")


def test_without_verbose_nothing_is_printed_and_a_function_gets_every_event(capsys):
    events = []
    given = lesson("ab", 1)
    taught(classifier("naive"), given)
    taught(classifier("naive", verbose=events.append), given)
    assert capsys.readouterr() == ("", "")
    assert [event["epoch"] for event in events if event["event"] == "epoch"] == [0, 1]


def test_a_method_without_epochs_has_no_lines(capsys):
    prer.ContinualClassifier("slda", verbose=True).partial_fit(np.eye(4).repeat(10, 0), [0, 1] * 20)
    assert capsys.readouterr().err == ""
