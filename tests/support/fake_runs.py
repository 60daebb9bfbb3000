"""Run folders that no run has made, for tests of what is shown of them."""

import json

import numpy as np

from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder
from prer.runs.result import Result

HOSTILE = [
    "<script>document.title='broken'</script>",
    "</script><img src=x onerror=document.title='broken'>",
    "\"'><svg onload=document.title='broken'>",
    "{{ 7 * 7 }} {% raw %} $x^2$ &lt; \\ / ../..",
    "_an emoji 😀 and עברית and \u2028 \u202e turned",
    "300 " + "characters" * 30,
]


def matrix(seeds, tasks, level=95.0, draw=0):
    R = np.random.default_rng(draw).uniform(level - 5, level, (seeds, tasks, tasks))
    return np.where(np.tri(tasks) > 0, R, np.nan)


def fake(
    folder, *, learner="prer", stream="digits", seeds=(0, 1, 2), tasks=3, level=95.0, draw=0, labels=None, until=None
):
    """A run; `until` so many tasks are learned and no more, where it is not finished."""
    record = RunFolder(folder)
    folder.mkdir(parents=True)
    R, labels = matrix(len(seeds), tasks, level, draw), labels or [str(c) for c in range(2 * tasks)]
    tables = {"name": folder.name, "seeds": list(seeds), "device": "cpu", "stream": {"data": "nowhere.npz"}}
    (folder / "experiment.toml").write_text(Experiment.parse(tables).to_toml(), "utf-8")
    (folder / "environment.json").write_text(
        json.dumps({"python": "3.11", "folder": "/home/secret", "data_sha256": "0" * 64})
    )
    (folder / "events.jsonl").write_text("")
    for task in range(tasks if until is None else until):
        of_task(record, task, R, labels)
    if until is None:
        kept = {"memory_floats": [1000 + 10 * t for t in range(tasks)], "memory_samples": [0] * tasks}
        result = Result(
            tuple(seeds), R, np.full(R.shape[:2], np.nan), **kept, transient_floats=[0] * tasks,
            seconds={"flow": 1.0, "evaluation": 0.5, "total": 2.0 + draw}, digest="d" * 64,
            learner=learner, stream=stream, device="cpu",
        )  # fmt: skip
        record.finish(result.to_json())
    return folder


def of_task(record, task, R, labels):
    S = len(R)
    for phase in ("autoencoder", "flow"):
        for epoch in range(3):
            about = {"task": task, "phase": phase, "epoch": epoch, "epochs": 3, "loss": [1 / (1 + epoch)] * S}
            record.event({"event": "epoch"} | about | {"seconds": 0.25})
    for c, label in enumerate(labels[: 2 * task + 2]):
        decoded = [0.99] * (S - 1) + [0.7 if c == 0 and task else 0.99]  # of the last seed, the first class fades
        health = {"agreement": [0.99] * S, "agreement_decoded": decoded, "nll": [-3.0] * S}
        record.event({"event": "health", "task": task, "class": label} | health)
    kept = {"memory_floats": 1000 + 10 * task, "memory_samples": 0, "transient_floats": 0}
    record.event({"event": "task", "task": task, "accuracy": R[:, task, : task + 1].tolist()} | kept)
