"""Measure what the C extension saves: whole jobs with and without it (PRER_KERNELS=off), in alternating turns.

python benchmarks/extension.py KMNIST [--repeats 5] [--json FILE]

KMNIST is a folder with KMNIST's test files (10,000 images of 28x28), which `prer run stream.data=` can read. Times are
CPU times of whole processes, including imports (for the flow's step: of the steps only). Ratios are between neighbouring
turns; the record has their median and quartiles.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from prer.runs.environment import environment

RUN = ["-W", "ignore", "-m", "prer", "run", "learner.name=prer", "--device", "cpu", "--quiet"]
EPOCHS = ["learner.epochs=3", "learner.epochs_autoencoder=3", "learner.density.epochs=3"]
FLOW = """
import time, torch
from flow_steps import our_turns
torch.set_num_threads(1)
turn = our_turns(torch.randn(64, 50), torch.arange(64) % 10, 500, "cpu")["training"]
turn()
begin = time.process_time()
turn()
print(time.process_time() - begin)
"""
MADE_BY = "from prer.kernels.registry import made_by; print(made_by('cpu'))"


def python(arguments, kernels="on"):
    known = os.environ | {"OMP_NUM_THREADS": "1", "PRER_KERNELS": kernels}
    before = os.times()
    done = subprocess.run([sys.executable, *arguments], env=known, check=True, stdout=subprocess.PIPE, text=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system, done.stdout


def whole(*settings):
    """CPU seconds of a run in a new folder."""

    def job(kernels):
        with tempfile.TemporaryDirectory() as folder:
            return python([*RUN, *settings, "--out", folder], kernels)[0]

    return job


def step(kernels):
    """CPU seconds of 500 training steps of the flow."""
    return float(python(["-c", FLOW], kernels)[1])


def compared(name, job, repeats):
    turns = [{kernels: job(kernels) for kernels in ("on", "off")} for _ in range(repeats)]
    ratios = [turn["off"] / turn["on"] for turn in turns]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    seconds = {kernels: statistics.median(turn[kernels] for turn in turns) for kernels in ("on", "off")}
    print(f"{name}: {seconds['on']:.1f} s with, {seconds['off']:.1f} s without: {middle:.2f} ({low:.2f} to {high:.2f})")
    return {"with": seconds["on"], "without": seconds["off"], "ratio": middle, "quartiles": [low, high], "turns": turns}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kmnist", metavar="KMNIST", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    jobs = {
        "PRER on the built-in digits, 5 seeds": whole(),
        "PRER on KMNIST, 28x28, 1 seed, 3 epochs a phase": whole(
            f"stream.data={options.kmnist.resolve()}", "stream.classes_per_task=2", "seeds=1", *EPOCHS
        ),
        "500 steps of the flow, d = 50, batch 64, 1 seed": step,
    }
    found = {name: compared(name, job, options.repeats) for name, job in jobs.items()}
    if options.json:
        record = {
            "command": f"python benchmarks/extension.py KMNIST --repeats {options.repeats}",
            "what": "CPU seconds of whole jobs with the C extension and without it, in turn; ratios of neighbouring turns",
            "environment": environment(),
            "kernels": python(["-c", MADE_BY])[1].strip(),
            "found": found,
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
