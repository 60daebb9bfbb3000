"""A hundred lessons of one new class each, every one in a process of its own, against one process.

    python benchmarks/hundred_lessons.py [--classes 100] [--samples 640] [--repeats 3] [--out FILE]

Compares the state digest with that of one process, and measures the bytes by which the tensors of the folder grow with each
class. Then it compares the last five calls of `partial_fit` with calls 10 to 14, in CPU seconds: the whole call, and a step of
the training of the head. A machine that others use, too, is slower at some times, so these calls are made again from copies
of the folder, 10, 96, 11, 97 and so on, and the median of the repeats is the result.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import safe_open

FEATURES = 20
EARLY, CALLS = 9, 5  # the first of the early calls, from 0; how many early and late calls are compared
ONE = """
import sys, time, warnings
from pathlib import Path
import prer
from benchmarks.hundred_lessons import lesson
from prer.training import loop
warnings.simplefilter("ignore")
spent, steps, epoch = 0.0, 0, loop._epoch
def timed(step, *arguments):
    global spent, steps
    begin, before = time.process_time(), step.warmed_up
    losses = epoch(step, *arguments)
    spent, steps = spent + time.process_time() - begin, steps + step.warmed_up - before
    return losses
loop._epoch = timed
folder, number, samples = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
model = prer.load(folder, device="cpu") if folder.exists() else prer.ContinualClassifier(device="cpu")
x, y = lesson(number, samples)
begin = time.process_time()
model.partial_fit(x, y)
print(time.process_time() - begin, spent, steps)
model.save(folder)
"""


def lesson(number: int, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of one class: a cloud around a centre of its own."""
    rng = np.random.default_rng(number)
    return 4 * rng.normal(size=FEATURES) + rng.normal(size=(samples, FEATURES)), np.full(samples, f"class {number}")


class Cost(NamedTuple):
    """CPU seconds of a lesson and of its training steps, and how many steps it takes."""

    seconds: float
    training: float
    steps: int

    @property
    def step(self) -> float:
        """CPU milliseconds of a training step, with the samples drawn for it."""
        return 1000 * self.training / self.steps if self.steps else 0.0


def taught(folder: Path, number: int, samples: int) -> Cost:
    """Teach a lesson in a process of its own; return what it cost."""
    command = [sys.executable, "-c", ONE, str(folder), str(number), str(samples)]
    seconds, training, steps = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return Cost(float(seconds), float(training), int(steps))


def in_processes(folder: Path, classes: int, samples: int) -> dict[str, list]:
    """CPU seconds and steps of each lesson, and after it the bytes of all tensors and those of the description.

    Copies of the folder are kept from before the lessons that are compared.
    """
    found: dict[str, list] = {"seconds": [], "steps": [], "bytes": [], "description_bytes": []}
    for number in range(classes):
        if number in (EARLY, classes - CALLS):
            shutil.copytree(folder, folder.with_name(f"before {number}"))
        cost = taught(folder, number, samples)
        found["seconds"].append(cost.seconds)
        found["steps"].append(cost.steps)
        found["bytes"].append(bytes_of_tensors(folder))
        found["description_bytes"].append((folder / "model.json").stat().st_size)
        print(f"lesson {number + 1}: {found['seconds'][-1]:.2f} s of CPU, {found['bytes'][-1]:,} bytes", flush=True)
    return found


def in_turn(parent: Path, classes: int, samples: int) -> dict[str, Any]:
    """The cost of the early and the late calls, one after the other, and the digest after the last one."""
    import prer

    firsts = {"early": EARLY, "late": classes - CALLS}
    costs: dict[str, list[Cost]] = {when: [] for when in firsts}
    with tempfile.TemporaryDirectory() as copies:
        for when, first in firsts.items():
            shutil.copytree(parent / f"before {first}", Path(copies) / when)
        for call in range(CALLS):
            for when, first in firsts.items():
                costs[when].append(taught(Path(copies) / when, first + call, samples))
        digest = prer.load(Path(copies) / "late", device="cpu").state_digest_
    seconds = {when: [cost.seconds for cost in made] for when, made in costs.items()}
    steps = {when: [cost.step for cost in made] for when, made in costs.items()}
    found = {"seconds": seconds, "ratio": ratio_of(seconds), "step_milliseconds": steps, "step_ratio": ratio_of(steps)}
    print(f"late over early: {found['ratio']:.2f}, a step: {found['step_ratio']:.2f}", flush=True)
    return found | {"digest": digest}


def ratio_of(measured: dict[str, list[float]]) -> float:
    """The mean of the late calls over the mean of the early ones."""
    early, late = (statistics.mean(measured[when]) for when in ("early", "late"))
    return late / early if early else float("nan")


def bytes_of_tensors(folder: Path) -> int:
    """Bytes of the tensors of a model's folder, without the header of their file, which is padded."""
    about = json.loads((folder / "model.json").read_text())
    with safe_open(folder / about["tensors"]["file"], "numpy") as file:
        return sum(file.get_tensor(name).nbytes for name in file.keys())  # noqa: SIM118, it is no dictionary


def in_one(classes: int, samples: int):
    """A model that learned the same lessons in this process."""
    import prer

    model = prer.ContinualClassifier(device="cpu")
    for number in range(classes):
        model.partial_fit(*lesson(number, samples))
    return model


def a_class(model) -> int:
    """Documented bytes of a class: its entries in the density, and its row of the head."""
    learner = model.model_.learner
    classes = len(learner.labels_)
    density = sum(t[0].nbytes // classes for name, t in learner.state().items() if name in OF_A_CLASS)
    last = learner.heads_[0].layers[2]
    return density + last.weight[0, 0].nbytes + last.bias[0, 0].nbytes


OF_A_CLASS = ("density.counts", "density.weights", "density.means", "density.factors")


def main() -> None:
    import prer
    from prer.runs.environment import environment

    parser = argparse.ArgumentParser()
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--samples", type=int, default=640, help="of each class")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/records/hundred_lessons.json"))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    begin, n, samples = time.perf_counter(), asked.classes, asked.samples
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "model"
        lessons = in_processes(folder, n, samples)
        stopped = prer.load(folder, device="cpu").state_digest_
        turns = [in_turn(folder.parent, n, samples) for _ in range(asked.repeats)]
    whole = in_one(n, samples)
    x, y = (np.concatenate(parts) for parts in zip(*(lesson(number, samples) for number in range(n)), strict=True))
    found = {
        "command": " ".join(["python", *sys.argv]),
        "classes": n,
        "samples_of_a_class": samples,
        "features": FEATURES,
        "ratio": statistics.median(turn["ratio"] for turn in turns),
        "step_ratio": statistics.median(turn["step_ratio"] for turn in turns),
        "steps_of_a_lesson": sorted(set(lessons["steps"])),
        "bytes_of_a_class": sorted({b - a for a, b in pairwise(lessons["bytes"])}),
        "documented_bytes_of_a_class": a_class(whole),
        "digest": whole.state_digest_,
        "same_digest": [digest == whole.state_digest_ for digest in (stopped, *(turn["digest"] for turn in turns))],
        "accuracy_on_the_training_data": whole.score(x, y),
        "wall_seconds": time.perf_counter() - begin,
        "lessons": lessons,
        "turns": turns,
        "environment": environment(),
    }
    asked.out.write_text(json.dumps(found, indent=1) + "\n")
    print({key: value for key, value in found.items() if key not in ("lessons", "turns", "environment")})


if __name__ == "__main__":
    main()
