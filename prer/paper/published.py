"""The numbers that the paper prints, as data: nothing here is ours."""

from __future__ import annotations

from typing import NamedTuple

RUNS = 5  # runs behind each mean and standard deviation
TASKS = 5  # of two classes each, on every data set
TITLES = {"mnist": "MNIST", "kmnist": "KMNIST", "svhn": "SVHN", "cifar10": "CIFAR10", "digits": "digits"}
TITLES |= {"naive": "Naive", "lwf": "LWF", "ewc": "EWC", "gem": "GEM", "er": "ER", "prer": "PRER"}
TITLES |= {"prer-no-anchor": "PRER", "prer-distilled": "PRER, distilled", "prer-literal": "PRER, literal"}
TITLES |= {"joint": "Joint", "lwf-classic": "Classic LWF", "replay": "Replay", "der": "DER++"}
TITLES |= {"clinc150": "CLINC150", "banking77": "BANKING77", "cifar100": "CIFAR100"}


class Figure(NamedTuple):
    """Mean and standard deviation over five runs, in per cent or points."""

    mean: float
    std: float


class Pair(NamedTuple):
    """The numbers of Table 1 for a method on a data set."""

    bwt: Figure
    accuracy: Figure


def _pair(bwt: float, bwt_std: float, accuracy: float, accuracy_std: float) -> Pair:
    return Pair(Figure(bwt, bwt_std), Figure(accuracy, accuracy_std))


TABLE1: dict[str, dict[str, Pair]] = {
    "mnist": {
        "naive": _pair(-10.09, 2.46, 92.95, 1.62),
        "lwf": _pair(-7.17, 1.56, 94.94, 1.04),
        "ewc": _pair(-7.89, 1.44, 94.84, 0.95),
        "gem": _pair(-0.60, 0.24, 99.10, 0.16),
        "er": _pair(-0.36, 0.47, 99.39, 0.48),
        "prer": _pair(-0.14, 0.01, 99.41, 0.10),
    },
    "kmnist": {
        "naive": _pair(-5.09, 1.46, 95.95, 1.04),
        "lwf": _pair(-4.30, 3.64, 94.44, 1.89),
        "ewc": _pair(-3.60, 3.45, 95.53, 2.36),
        "gem": _pair(-1.62, 0.46, 97.77, 0.44),
        "er": _pair(-0.73, 0.30, 98.68, 0.29),
        "prer": _pair(-0.26, 0.09, 98.70, 0.20),
    },
    "svhn": {
        "naive": _pair(-12.61, 1.12, 84.81, 0.80),
        "lwf": _pair(-12.19, 0.73, 88.74, 0.48),
        "ewc": _pair(-10.77, 1.10, 89.32, 0.73),
        "gem": _pair(-2.41, 0.32, 95.22, 0.63),
        "er": _pair(-1.63, 0.07, 95.32, 0.06),
        "prer": _pair(-0.46, 0.17, 95.23, 0.06),
    },
    "cifar10": {
        "naive": _pair(-24.33, 5.51, 71.28, 3.66),
        "lwf": _pair(-24.77, 0.94, 70.71, 0.30),
        "ewc": _pair(-23.95, 4.12, 71.65, 4.12),
        "gem": _pair(-5.50, 0.51, 82.69, 0.69),
        "er": _pair(-4.73, 0.63, 82.22, 0.73),
        "prer": _pair(-3.63, 0.64, 82.67, 0.94),
    },
}


class Cost(NamedTuple):
    """The numbers of Table 2 for a method on a data set: thousands of floats (none for Naive), and minutes."""

    kilofloats: int | None
    minutes: int


TABLE2: dict[str, dict[str, Cost]] = {
    "mnist": {
        "naive": Cost(None, 9),
        "lwf": Cost(1960, 20),
        "ewc": Cost(310, 12),
        "gem": Cost(1960, 60),
        "er": Cost(834, 15),
        "prer": Cost(148, 20),
    },
    "cifar10": {
        "naive": Cost(None, 20),
        "lwf": Cost(7680, 30),
        "ewc": Cost(2742, 25),
        "gem": Cost(7680, 70),
        "er": Cost(8180, 40),
        "prer": Cost(1279, 50),
    },
}
FORMULAS = {  # of Table 2's first column
    "naive": "-",
    "lwf": "M S (c_m + IM)",
    "ewc": "M N",
    "gem": "M S IM",
    "er": "M S (E + IM)",
    "prer": "NF + N",
}


def implied_diagonal(bwt: float, accuracy: float, tasks: int = TASKS) -> float:
    """The weighted mean accuracy right after learning that BWT and Accuracy imply; above 100 they are inconsistent.

    Example:
        >>> round(implied_diagonal(-7.89, 94.84), 2)
        100.1
    """
    return accuracy - (tasks - 1) / (tasks + 1) * bwt


def welch(ours: Figure, n: int, theirs: Figure) -> float:
    """p-value of Welch's t-test of n runs against the paper's, from means and standard deviations alone."""
    from scipy.stats import ttest_ind_from_stats

    return float(ttest_ind_from_stats(*ours, n, *theirs, RUNS, equal_var=False).pvalue)


def published(data: str, method: str) -> Pair | None:
    """The numbers of Table 1 for a method, PRER's for its variants; None for what is not in the paper."""
    return TABLE1.get(data, {}).get(method.removesuffix("-literal").removesuffix("-no-anchor"))
