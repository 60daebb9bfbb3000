"""A run with many views of one data set splits it once."""

import pytest

from prer.runs.experiment import Experiment
from prer.runs.run import execute
from prer.streams.task import Split


@pytest.mark.parametrize("validation", [0.0, 0.25])
@pytest.mark.parametrize("kind", ["permuted", "rotated"])
def test_tasks_that_differ_in_their_views_share_one_split(monkeypatch, tmp_path, kind, validation):
    """Ten thousand of them would take ten seconds to be split before a run says a word."""
    calls, split = [], Split.__call__
    monkeypatch.setattr(Split, "__call__", lambda self, seed: calls.append(seed) or split(self, seed))
    monkeypatch.setattr("prer.runs.run._train", lambda *_: None)
    overrides = [f"stream.kind={kind}", "stream.count=30", f"stream.validation={validation}", "device=cpu"]
    execute(Experiment.parse({}, [*overrides, "learner.name=naive"]), tmp_path)
    assert len(calls) <= 2  # one for all of them, and one where some of it is held out
