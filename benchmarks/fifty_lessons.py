"""Fifty lessons of one new class each, every one in a process of its own, against one process.

    python benchmarks/fifty_lessons.py [--classes 50] [--repeats 3] [--out FILE]

Measures CPU seconds inside `partial_fit` (calls 46 to 50 against 10 to 14, the median of the repeats) and the bytes by which
the tensors of the folder grow with each class, and compares the state digest with that of one process. There must be at
least 14 classes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
from safetensors import safe_open

SAMPLES, FEATURES = 60, 20
ONE = """
import sys, time, warnings
from pathlib import Path
import prer
from benchmarks.fifty_lessons import lesson
warnings.simplefilter("ignore")
folder, number = Path(sys.argv[1]), int(sys.argv[2])
model = prer.load(folder, device="cpu") if folder.exists() else prer.ContinualClassifier(device="cpu")
x, y = lesson(number)
begin = time.process_time()
model.partial_fit(x, y)
print(time.process_time() - begin)
model.save(folder)
"""


def lesson(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Sixty vectors of one class: a cloud around a centre of its own."""
    rng = np.random.default_rng(number)
    return 4 * rng.normal(size=FEATURES) + rng.normal(size=(SAMPLES, FEATURES)), np.full(SAMPLES, f"class {number}")


def in_processes(folder: Path, classes: int) -> tuple[list[float], list[int], list[int]]:
    """CPU seconds of each lesson, and after it the bytes of all tensors and those of the description."""
    seconds, sizes, described = [], [], []
    for number in range(classes):
        command = [sys.executable, "-c", ONE, str(folder), str(number)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds.append(float(done.stdout))
        sizes.append(bytes_of_tensors(folder))
        described.append((folder / "model.json").stat().st_size)
        print(f"lesson {number + 1}: {seconds[-1]:.2f} s of CPU, {sizes[-1]:,} bytes", flush=True)
    return seconds, sizes, described


def bytes_of_tensors(folder: Path) -> int:
    """Bytes of the tensors of a model's folder, without the header of their file, which is padded."""
    about = json.loads((folder / "model.json").read_text())
    with safe_open(folder / about["tensors"]["file"], "numpy") as file:
        return sum(file.get_tensor(name).nbytes for name in file.keys())  # noqa: SIM118, it is no dictionary


def in_one(classes: int):
    """A model that learned the same lessons in this process."""
    import prer

    model = prer.ContinualClassifier(device="cpu")
    for number in range(classes):
        model.partial_fit(*lesson(number))
    return model


def a_class(model) -> int:
    """Documented bytes of a class: its entries in the density, and its row of the head."""
    learner = model.model_.learner
    density = sum(t[0].nbytes // t.shape[1] for name, t in learner.state().items() if name in OF_A_CLASS)
    last = learner.heads_[0].layers[2]
    return density + last.weight[0, 0].nbytes + last.bias[0, 0].nbytes


OF_A_CLASS = ("density.counts", "density.table")


def main() -> None:
    import prer
    from prer.runs.environment import environment

    parser = argparse.ArgumentParser()
    parser.add_argument("--classes", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/records/fifty_lessons.json"))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    begin, runs, n = time.perf_counter(), [], asked.classes
    for _ in range(asked.repeats):
        with tempfile.TemporaryDirectory() as parent:
            seconds, sizes, described = in_processes(Path(parent) / "model", n)
            stopped = prer.load(Path(parent) / "model", device="cpu")
        late, early = statistics.mean(seconds[-5:]), statistics.mean(seconds[9:14])
        of_run = {"seconds": seconds, "bytes": sizes, "description_bytes": described, "ratio": late / early}
        runs.append(of_run | {"digest": stopped.state_digest_})
    whole = in_one(n)
    x, y = (np.concatenate(parts) for parts in zip(*(lesson(number) for number in range(n)), strict=True))
    found = {
        "command": " ".join(["python", *sys.argv]),
        "classes": n,
        "samples_of_a_class": SAMPLES,
        "features": FEATURES,
        "ratio": statistics.median(run["ratio"] for run in runs),
        "bytes_of_a_class": sorted({b - a for run in runs for a, b in pairwise(run["bytes"])}),
        "documented_bytes_of_a_class": a_class(whole),
        "digest": whole.state_digest_,
        "same_digest": [run["digest"] == whole.state_digest_ for run in runs],
        "accuracy_on_the_training_data": whole.score(x, y),
        "wall_seconds": time.perf_counter() - begin,
        "runs": runs,
        "environment": environment(),
    }
    asked.out.write_text(json.dumps(found, indent=1) + "\n")
    print({key: value for key, value in found.items() if key not in ("runs", "environment")})


if __name__ == "__main__":
    main()
