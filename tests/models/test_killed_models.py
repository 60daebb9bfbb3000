"""Lessons that are killed leave the old model or the new one; benchmarks/kill_models.py does far more."""

import os

import pytest
from support.commands import killed

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the script forks processes, to save their imports")


def test_a_killed_lesson_leaves_the_old_model_or_the_new_one(tmp_path):
    jobs = ["teach, first lesson", "teach, third lesson", "save"]
    found = killed(
        "kill_models.py",
        tmp_path,
        "--learners",
        "slda",
        "--random",
        "3",
        "--every",
        "13",
        "--workers",
        "1",
        "--jobs",
        *jobs,
    )["jobs"]
    assert set(found) == {*(f"{job}, at calls" for job in jobs), "teach, third lesson, at random"}
    for way, job in found.items():
        assert job["right"] == job["tries"] >= 3
        if way.endswith("at calls"):
            assert job["kills"] >= job["tries"] and job["had the old model"] and job["had the new model"]


@pytest.mark.slow
def test_a_lesson_of_any_learner_that_dies_at_any_call_leaves_the_old_model_or_the_new_one(tmp_path):
    found = killed("kill_models.py", tmp_path, "--random", "10")["jobs"]
    assert all(job["right"] == job["tries"] for job in found.values())
    assert sum(job["kills"] for job in found.values()) > 200
