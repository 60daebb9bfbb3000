"""The paper's experiments and numbers, and the tables of `prer reproduce`."""

from __future__ import annotations

from pathlib import Path

from prer.presets import experiment_file

DATA = ("mnist", "kmnist", "svhn", "cifar10")
METHODS = ("naive", "lwf", "ewc", "gem", "er", "prer")
ABLATION = ("mnist", "cifar10")  # data sets of the ablation, and of the paper's Table 2


def more_methods(data: str) -> list[str]:
    """Methods that are not in the paper, but have an experiment file for a data set."""
    found = (path.stem.removeprefix(f"{data}-") for path in experiment_file(data, "*").parent.glob(f"{data}-*.toml"))
    return sorted(name for name in found if name not in METHODS)


def file_of(data: str, method: str) -> Path:
    """The experiment file of a data set and a method of the paper."""
    ours = Path(__file__).parent / "configs" / f"{data}-{method}.toml"
    return ours if method.endswith(("-literal", "-unlabelled")) else experiment_file(data, method)
