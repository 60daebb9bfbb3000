"""Classes with two modes: digit c of MNIST or kana c of KMNIST-10k; PRER with four densities, at equal numbers kept.

    PRER_DATA=DATA python benchmarks/two_modes.py RUNS [--workers N] [--seeds N] [--only task,class,DENSITY] [--quick]

The digits are MNIST's test part. Ten classes make five tasks of two. The flow has the settings recommended for MNIST; the
mixture as many components as keep about as many floats as that flow, and the small flow as many blocks as keep about as many
as one Gaussian a class. DATA has the folder `kmnist10k`, and the files of MNIST.

In the scenario "task" R alone holds the past, without the anchor. In the scenario "class" nobody tells the task; the encoder
rests after the first task, and the head that answers learns from samples of the density.
"""

import os
from pathlib import Path

import numpy as np
import torch
from recorded_runs import QUICK, chosen, images, options_of, quickened, recorded, written

from prer.address import Address
from prer.densities.base import DensitySettings
from prer.nn.stacked import floats, stack
from prer.presets import recommended
from prer.runs.experiment import Experiment

EPOCHS, CLASSES = 15, 10
R = 3.13  # found on MNIST without the anchor (records/search_paper_plain.json)
PRESET = recommended("mnist", "prer")
DIMENSION = PRESET["learner"]["embedding"]
FLOW = PRESET["learner"]["density"] | {"epochs": EPOCHS}
MANY = 1600  # training samples of a class, which limit the components of a mixture
FITTED = 64  # samples of a class in a fit that only counts floats
SCENARIOS = {"task": {}, "class": {"encoder": "rests", "answer": "head"}}


def stream(folder, each=None):
    """Images [N, 1, 28, 28] as uint8, and labels: each class has the digits and kana of its number."""
    digits, kana = images("mnist", each, part="test"), images(folder / "kmnist10k", each)
    return tuple(
        np.concatenate([np.asarray(of_digits), np.asarray(of_kana)])
        for of_digits, of_kana in zip(digits, kana, strict=True)
    )


def kept(density):
    """Floats that a density of these settings keeps of all classes, counted from a live one."""
    settings, address = DensitySettings.read(density, "density"), Address((0,))
    live = stack(lambda: settings.build(DIMENSION), address)
    live.add(torch.full((CLASSES,), float(MANY)), address)
    y = torch.arange(CLASSES).repeat_interleave(FITTED).unsqueeze(0)
    live.start((address / "z").normal(y.shape[1], DIMENSION), y)
    return floats(live)


def closest(candidates, wanted):
    """The candidate whose number of floats is closest to the wanted one, of candidates that keep more and more."""
    found = []
    for density in candidates:
        number = kept(density)
        found.append((abs(number - wanted), len(found), density))
        if number >= wanted:
            break
    return min(found)[-1]


def densities():
    """The settings of each density."""
    gaussian = {"name": "gaussian"}
    mixtures = [{"name": "mixture", "components": n} for n in range(1, MANY // 40 + 1)]
    flows = [FLOW | {"blocks": blocks} for blocks in range(1, FLOW["blocks"] + 1)]
    return {
        "flow": FLOW,
        "flow-small": closest(flows, kept(gaussian)),
        "mixture": closest(mixtures, kept(FLOW)),
        "gaussian": gaussian,
    }


def experiment(data, scenario, name, density, seeds, quick=False):
    """The experiment of PRER with a density in a scenario."""
    about = {"data": str(data), "scenario": scenario, "classes_per_task": 2, "resplit": 0.2}
    settings = {"name": "prer", "epochs": EPOCHS, "epochs_autoencoder": EPOCHS, "temperature": 1.0}
    settings |= {"anchor": 0.0, "weight": R, "labels": "none"}
    learner = PRESET["learner"] | settings | SCENARIOS[scenario] | {"density": density}
    tables = quickened({"stream": about, "learner": learner, "seeds": seeds}, quick)
    return Experiment.parse({"name": f"two-modes-{scenario}-{name}"} | tables, presets=False)


def main():
    options = options_of(__doc__, 5)
    data = options.runs / f"two_modes{'-quick' * options.quick}.npz"
    if not data.exists():
        folder = Path(os.environ.get("PRER_DATA", "~/.cache/prer")).expanduser()
        written(data, *stream(folder, QUICK if options.quick else None))
    found = densities()
    for name, density in found.items():
        print(f"{name}: {kept(density):,} floats, {density}", flush=True)
    wanted = [(scenario, name) for scenario in chosen(options, SCENARIOS) for name in chosen(options, found)]
    experiments = [experiment(data, *key, found[key[1]], options.seeds, options.quick) for key in wanted]
    recorded(experiments, options, "two-modes")


if __name__ == "__main__":
    main()
