"""The digits of scikit-learn in five lessons of two classes, with nothing set: PRER beside closed forms and joint training.

    python benchmarks/five_lessons.py [--seeds 5] [--out FILE]

A fifth of the samples, with the same share of each class, is held out by a seed of its own. Each lesson is one call of
`partial_fit`. Records the share of correct predictions of all ten classes after the last lesson, the bytes kept of the past as
the learner counts them, and the seconds of the five calls.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import prer
from prer.runs.environment import environment
from prer.runs.metrics import spread

METHODS = ("prer", "slda", "ranpac", "joint")
LESSONS = ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9))


def run(method: str, seed: int) -> dict:
    """Final accuracy in per cent, bytes kept, seconds and digest of one seed."""
    x, y = load_digits(return_X_y=True)
    x, tests, y, labels = train_test_split(x, y, test_size=0.2, stratify=y, random_state=seed)
    model = prer.ContinualClassifier(method, random_state=seed)
    begin = time.perf_counter()
    for classes in LESSONS:
        chosen = np.isin(y, classes)
        model.partial_fit(x[chosen], y[chosen])
    seconds, accuracy = time.perf_counter() - begin, 100 * model.score(tests, labels)
    kept = model.model_.learner.memory_size()
    found = {"accuracy": accuracy, "memory_bytes": kept.bytes, "memory_samples": kept.samples, "seconds": seconds}
    return found | {"digest": model.state_digest_}


def summary(runs: list[dict]) -> dict:
    """What the seeds of one method reached."""
    (kept,) = {run["memory_bytes"] for run in runs}
    accuracy, seconds = (spread([run[key] for run in runs]) for key in ("accuracy", "seconds"))
    return {"final_accuracy": accuracy, "memory_bytes": kept, "seconds": seconds, "runs": runs}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/records/five_lessons.json"))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    made_by = environment()  # before the record is written, which changes the checkout
    methods = {}
    for method in METHODS:
        methods[method] = summary([run(method, seed) for seed in range(asked.seeds)])
        final, kept = methods[method]["final_accuracy"], methods[method]["memory_bytes"]
        said = f"{final['mean']:.2f} ± {final['std'] or 0:.2f}  {kept:,} bytes"
        print(f"{method:<8}{said}  {methods[method]['seconds']['mean']:.1f} s", flush=True)
    found = {"command": " ".join(["python", *sys.argv]), "seeds": list(range(asked.seeds)), "methods": methods}
    asked.out.write_text(json.dumps(found | {"environment": made_by}, indent=1) + "\n")


if __name__ == "__main__":
    main()
