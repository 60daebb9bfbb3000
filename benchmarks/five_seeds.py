"""What do five seeds cost? The built-in experiment with one seed and with five, in turn, on this machine.

python benchmarks/five_seeds.py [--device cpu] [--rounds 3] [--json FILE]
"""

import argparse
import json
import platform
import statistics

import torch

from prer.experiment import Experiment
from prer.run import learn


def seconds(seeds: int, device: str) -> float:
    experiment = Experiment.parse({}, [])
    return learn(experiment.stream.build(), experiment.learner, seeds=seeds, device=device).seconds["total"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rounds = [(seconds(1, options.device), seconds(5, options.device)) for _ in range(options.rounds)]
    ratio = statistics.median(five / one for one, five in rounds)
    for one, five in rounds:
        print(f"one seed {one:.1f} s, five seeds {five:.1f} s, ratio {five / one:.2f}")
    print(f"median ratio {ratio:.2f}")
    if options.json:
        hardware = torch.cuda.get_device_name() if options.device == "cuda" else f"{platform.machine()}, one thread"
        record = {"hardware": hardware, "torch": torch.__version__, "rounds": rounds, "median ratio": ratio}
        with open(options.json, "w") as file:
            json.dump(record, file, indent=1)


if __name__ == "__main__":
    main()
