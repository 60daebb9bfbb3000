"""Copies of run folders are whole, and the newest one is kept."""

from pathlib import Path

import pytest
from support.sweeps import BASE, sweep

from prer.runs.checkpoint import Checkpoint, Saved
from prer.runs.folder import RunFolder
from prer.runs.run import execute
from prer.sweeps.engines import keeper
from prer.sweeps.engines.keeper import Keeper, packed, unpack

pytestmark = pytest.mark.usefixtures("no_terminal")


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_copy_of_a_finished_run_is_the_run():
    folder = execute(sweep(BASE).points()[0], Path("runs")).path
    unpack(Path("copy"), packed(folder))
    there = files(folder)
    del there["run.lock"]
    assert files(Path("copy")) == there and RunFolder(Path("copy")).result == RunFolder(folder).result


def test_a_copy_replaces_an_older_one_whose_checkpoint_is_gone():
    Checkpoint(Path("old/checkpoint")).write(Saved({"tasks": 1}))
    unpack(Path("old"), {"result.json": b"{}", "model/model.json": b"{}"})
    assert files(Path("old")) == {"result.json": b"{}", "model/model.json": b"{}"}
    unpack(Path("new"), {})
    assert not Path("new").exists()


def test_a_checkpoint_that_is_replaced_meanwhile_is_read_again(monkeypatch):
    place = Checkpoint(Path("run/checkpoint"))
    place.write(Saved({"tasks": 1}))
    usual, read = keeper._bytes, []

    def slow(file):
        found = usual(file)
        read.append(file)
        if len(read) == 1:
            place.write(Saved({"tasks": 2}))
        return found

    monkeypatch.setattr(keeper, "_bytes", slow)
    unpack(Path("copy"), packed(Path("run")))
    assert Checkpoint(Path("copy/checkpoint")).read().about == {"tasks": 2}


def test_the_newest_copy_is_kept_and_given_once():
    kept = Keeper()
    kept.keep("a", {"x": b"1"})
    kept.keep("a", {"x": b"0"}, over=False)
    kept.keep("b", {"x": b"2"}, over=False)
    assert kept.newer({}) == {"a": (1, {"x": b"1"}), "b": (1, {"x": b"2"})}
    kept.keep("a", {"x": b"3"})
    assert kept.newer({"a": 1, "b": 1}) == {"a": (2, {"x": b"3"})} and kept.kept("a") == {"x": b"3"}
    kept.forget("a")
    assert kept.kept("a") == kept.kept("c") == {} and kept.newer({"a": 2, "b": 1}) == {}


def test_a_run_that_has_ended_takes_no_copies_until_a_command_wants_it_again():
    kept = Keeper()
    kept.keep("a", {"result.json": b"{}"})
    kept.forget("a")
    kept.keep("a", {"x": b"1"})  # by another task of this run, of a command that was killed
    assert kept.ended("a") and not kept.kept("a")
    kept.keep("a", {}, over=False)  # its folder was deleted
    kept.keep("a", {"x": b"2"})
    assert not kept.ended("a") and kept.kept("a") == {"x": b"2"}
