"""What PRER reaches if nobody tells the task and nothing is set: candidates for the settings of own data.

    python benchmarks/nothing_set.py DATA.npz... [--seeds 3] [--workers 5] [--part test] [--out FILE]

Each file has x and y; `digits` and `digits-vectors` are built in. Five lessons (or as many as there are pairs of classes),
two classes each. Candidates are compared on validation data: a fifth of the training part. One JSON line a run.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

CANDIDATES = {
    "labels unseen, E(D(z))": {"labels": "none", "reencode": True},
    "auxiliary, z": {"labels": "auxiliary", "reencode": False},
    "auxiliary, z, Gaussian": {"labels": "auxiliary", "reencode": False, "density": "gaussian"},
    "labels unseen, z, rests": {"labels": "none", "reencode": False, "encoder": "rests"},
    "auxiliary, z, rests": {"labels": "auxiliary", "reencode": False, "encoder": "rests"},
}


def data_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name.startswith("digits"):
        digits = load_digits()
        return (digits.data if name.endswith("vectors") else digits.images / 16), digits.target
    with np.load(name) as arrays:
        return arrays["x"], arrays["y"]


def run(name: str, candidate: str, seeds: int, part: str) -> dict:
    from prer import PRER, Stream, learn
    from prer.runs.environment import environment

    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    stream = Stream.split(*data_of(name), scenario="class")
    stream = stream if part == "test" else stream.validated(0.2)
    result = learn(stream, PRER(**CANDIDATES[candidate]), seeds=seeds, warned=True)
    found = {"data": Path(name).stem, "candidate": candidate, "part": part, "seeds": seeds}
    found |= {"final_accuracy": result.metrics["final_accuracy"], "memory_bytes": result.memory_bytes[-1]}
    return found | {"seconds": time.perf_counter() - begin, "device": result.device, "environment": environment()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=5)
    parser.add_argument("--part", choices=["validation", "test"], default="validation")
    parser.add_argument("--out", type=Path, default=Path("nothing_set.jsonl"))
    asked = parser.parse_args()
    with ProcessPoolExecutor(asked.workers, mp_context=get_context("spawn")) as pool, asked.out.open("a") as file:
        jobs = [pool.submit(run, name, c, asked.seeds, asked.part) for name in asked.data for c in CANDIDATES]
        for job in as_completed(jobs):
            found = job.result()
            file.write(json.dumps(found) + "\n")
            file.flush()
            final = found["final_accuracy"]
            said = f"{final['mean']:.2f} ± {final['std']:.2f}  {found['seconds']:.0f} s"
            print(f"{found['data']:<16}{found['candidate']:<26}{said}", flush=True)


if __name__ == "__main__":
    main()
