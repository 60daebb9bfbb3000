"""All parts of the benchmark, and their record."""

import pytest
import torch

from prer.bench import seeds, steps, suite
from prer.errors import InputError


@pytest.fixture
def parts(monkeypatch):
    """What each part is asked for; nothing is measured."""
    asked = {}
    monkeypatch.setattr(steps, "compare", lambda *about: asked.update(steps=about) or "the steps")
    monkeypatch.setattr(seeds, "compare", lambda *about: asked.update(seeds=about) or "the seeds")
    monkeypatch.setattr(suite, "keep_memory", lambda: asked.update(memory=True))
    return asked


def test_the_record_has_every_part_and_where_it_was_measured(parts, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    peers = {"peer": print}
    record = suite.measure(suite.QUICK, "cpu", print, peers)
    assert record["steps"] == "the steps" and record["seeds"] == "the seeds"
    assert record["environment"]["device"] == "cpu" and "processor" in record["environment"]
    assert parts == {
        "steps": (steps.QUICK, "cpu", peers, print),
        "seeds": (seeds.QUICK, "cpu", print),
        "memory": True,
    }


def test_it_computes_with_one_thread_unless_the_user_says_otherwise(parts, monkeypatch):
    before = torch.get_num_threads()
    try:
        for given, expected in ((None, 1), ("2", 2)):
            torch.set_num_threads(2)
            monkeypatch.setenv("OMP_NUM_THREADS", given) if given else monkeypatch.delenv("OMP_NUM_THREADS", False)
            suite.measure(suite.QUICK, "cpu")
            assert torch.get_num_threads() == expected
    finally:
        torch.set_num_threads(before)


def test_an_unknown_device_is_refused_before_anything_is_measured(parts):
    with pytest.raises(InputError, match="device 'tpu' is not available"):
        suite.measure(suite.QUICK, "tpu")
    assert parts == {}
