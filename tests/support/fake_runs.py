"""Run folders with known numbers, written without training."""

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


# What a result of the scenario "task" has.
TOLD = {"scenario": "task", "matrix_task_given": None, "confusion": None}


def untold(R, labels):
    """What a result of the scenario "class" has: 19 - c of 20 test samples of class c are right, the others class 0."""
    C = len(labels)
    right = np.maximum(19 - np.arange(C), 0)
    confusion = np.diag(right)
    confusion[:, 0] += 20 - right
    return {
        "scenario": "class",
        "matrix_task_given": np.minimum(R + 3, 100),
        "confusion": np.stack([confusion] * len(R)),
    }


def matrix(seeds, tasks, level=95.0, rng_seed=0):
    """Accuracies up to `level` per cent; NaN above the diagonal."""
    R = np.random.default_rng(rng_seed).uniform(level - 5, level, (seeds, tasks, tasks))
    return np.where(np.tri(tasks) > 0, R, np.nan)


def fake_run(
    path,
    *,
    learner="prer",
    stream="digits",
    seeds=(0, 1, 2),
    tasks=3,
    level=95.0,
    rng_seed=0,
    labels=None,
    until=None,
    scenario="task",
):
    """The path of a run folder; with `until`, only so many tasks are learned and the run is not finished."""
    folder = RunFolder(path)
    path.mkdir(parents=True)
    R, labels = matrix(len(seeds), tasks, level, rng_seed), labels or [str(c) for c in range(2 * tasks)]
    stream_table = {"data": "nowhere.npz"} | ({"scenario": "class"} if scenario == "class" else {})
    tables = {"name": path.name, "seeds": list(seeds), "device": "cpu", "stream": stream_table}
    (path / "experiment.toml").write_text(Experiment.parse(tables).to_toml(), "utf-8")
    (path / "environment.json").write_text(
        json.dumps({"python": "3.11", "folder": "/home/secret", "data_sha256": "0" * 64})
    )
    (path / "events.jsonl").write_text("")
    for task in range(tasks if until is None else until):
        write_events(folder, task, R, labels)
    if until is None:
        result = Result(
            tuple(seeds), R, np.full(R.shape[:2], np.nan), **(untold(R, labels) if scenario == "class" else TOLD),
            classes=labels, test_samples=[40] * tasks,
            memory_floats=[1000 + 10 * t for t in range(tasks)], memory_samples=[0] * tasks,
            memory_bytes=[4000 + 40 * t for t in range(tasks)], transient_floats=[0] * tasks,
            seconds={"flow": 1.0, "evaluation": 0.5, "total": 2.0 + rng_seed}, digest="d" * 64, state_digest="e" * 64,
            learner=learner, stream=stream, device="cpu",
        )  # fmt: skip
        folder.finish(result.to_json())
    return path


def write_events(folder, task, R, labels):
    """Append the events of one task; in the last seed, the first class fades from the second task on."""
    S = len(R)
    for phase in ("autoencoder", "flow"):
        for epoch in range(3):
            about = {"task": task, "phase": phase, "epoch": epoch, "epochs": 3, "loss": [1 / (1 + epoch)] * S}
            folder.event({"event": "epoch"} | about | {"seconds": 0.25})
    for c, label in enumerate(labels[: 2 * task + 2]):
        decoded = [0.99] * (S - 1) + [0.7 if c == 0 and task else 0.99]
        health = {"agreement": [0.99] * S, "agreement_decoded": decoded, "nll": [-3.0] * S}
        folder.event({"event": "health", "task": task, "class": label} | health)
    kept = {"memory_floats": 1000 + 10 * task, "memory_samples": 0, "memory_bytes": 4000 + 40 * task}
    kept |= {"transient_floats": 0}
    folder.event({"event": "task", "task": task, "accuracy": R[:, task, : task + 1].tolist()} | kept)


def fake_run_of(out, experiment, diagonals, bwts, health=(), **about):
    """The finished run folder of an experiment, with one diagonal and one BWT for each seed."""
    folder, tasks = RunFolder(out / experiment.folder), 5
    folder.path.mkdir(parents=True)
    folder.begin(experiment.to_toml())
    folder.start({"data": "0" * 64})
    for event in health:
        folder.event(event)
    R = np.stack(
        [np.tril(np.full((tasks, tasks), d + b), -1) + d * np.eye(tasks) for d, b in zip(diagonals, bwts, strict=True)]
    )
    R[:, *np.triu_indices(tasks, 1)] = np.nan
    kept = {"memory_floats": [100] * tasks, "memory_samples": [0] * tasks, "transient_floats": [0] * tasks}
    kept |= {"test_samples": [20] * tasks}
    kept |= {"memory_bytes": [400] * tasks, "seconds": {"total": 12.5}, "device": "cpu"}
    kept |= TOLD | {"digest": "f" * 64, "state_digest": "e" * 64, "classes": list(range(2 * tasks))} | about
    names = {"learner": experiment.learner.name, "stream": experiment.stream.name}
    folder.finish(Result(tuple(range(len(R))), R, np.full((len(R), tasks), np.nan), **kept, **names).to_json())
    return folder


def forge_result(path, **changes):
    """Change keys of a result.json and drop its checksum."""
    result = json.loads((path / "result.json").read_text()) | changes
    del result["sha256"]
    (path / "result.json").write_text(json.dumps(result))
