"""Seconds of CPU that one more class takes on top of 10,000 feature vectors, on one core.

    python benchmarks/one_more_class.py [--classes 100] [--samples 100] [--features 384] [--json FILE]

The vectors are unit vectors around random centres. The first lesson brings a tenth of the classes, later ones the rest; then
one class with as many samples is taught, five times from the same saved model. Only `partial_fit` is measured.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import prer
from prer.runs.environment import environment

REPEATS = 5


def vectors(classes, samples, features):
    """Unit vectors around a centre for each class."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(classes, features))
    x = centres.repeat(samples, 0) + 0.8 * rng.normal(size=(classes * samples, features))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32), np.arange(classes).repeat(samples)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--features", type=int, default=384)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    x, y = vectors(options.classes + 1, options.samples, options.features)
    model = prer.ContinualClassifier(device="cpu")
    for some in np.array_split(np.arange(options.classes), 10):
        model.partial_fit(x[np.isin(y, some)], y[np.isin(y, some)])
    last, seconds = y == options.classes, []
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        for _ in range(REPEATS):
            again = prer.load(Path(folder) / "model", device="cpu")
            begin = time.process_time()
            again.partial_fit(x[last], y[last])
            seconds.append(round(time.process_time() - begin, 2))
    record = {
        "command": f"python benchmarks/one_more_class.py --classes {options.classes} --samples {options.samples}"
        f" --features {options.features}",
        "environment": environment(),
        "vectors before": int((~last).sum()),
        "cpu seconds of one more class": seconds,
        "median": statistics.median(seconds),
        "accuracy on the training samples": round(100 * again.score(x, y), 2),
        "bytes kept": again.model_.learner.memory_size().bytes,
    }
    print(json.dumps(record, indent=1))
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
