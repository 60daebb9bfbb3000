"""Contradictions in the paper, computed from its numbers where possible."""

from __future__ import annotations

from collections.abc import Sequence

from prer.data.catalogue import CATALOGUE
from prer.paper import METHODS, table2
from prer.paper.plan import EXTRA, Request
from prer.paper.published import RUNS, TABLE1, TABLE2, TITLES, Figure, implied_diagonal, welch
from prer.paper.table1 import METRICS
from prer.runs.significance import LEVEL

BASELINES = (
    "LWF and EWC: the paper's BWT lies within two standard deviations of Naive's on every data set. In a public "
    "revision of the authors' code (github.com/jaryP/Continual-Learning-with-Invertible-Generative-Models, 2b09de7), "
    "EWC's penalty is computed on copies of the weights that have no gradient, so it has no effect, and LWF distils "
    "predictions on new samples and stores none. In a later revision (bb0e4f2), EWC's penalty has a gradient. We do not "
    "know which revision produced the paper's numbers. Our implementations follow the paper's text, so we expect them "
    "to be above its numbers."
)
OFF = 0.01  # share by which a rounded number may differ from its formula


def inconsistencies() -> list[str]:
    """All contradictions, a sentence or two for each."""
    return [
        "The printed formula of Accuracy sums over i > j and leaves out the diagonal, which would limit it to "
        f"{100 * 4 / 6:.1f} % for five tasks. The text and the numbers include the diagonal, and so do we.",
        *impossible(),
        *repeated(),
        *costs(),
        *against_the_text(),
        BASELINES,
        'The "three different datasets" are four: MNIST, KMNIST, SVHN and CIFAR10. By the text, Table 2 is "only on '
        'MNIST", but it also has CIFAR10.',
        "The log-determinant of the batch norm lacks its logarithm, σ is averaged where σ² is used, and Eq. 4 has x "
        "where it needs z.",
        "Does the autoencoder see labels in training? Section 3.3 says no; the introduction "
        '("simultaneously with the main classifier") and the caption of figure 1 say yes. Ours sees none, except '
        "that of PRER + anchor on CIFAR10; the two other readings are variants above.",
        'The embedding is "the output of the last convolution" in the introduction and a fully connected layer later; '
        "ours is the latter.",
        "Epochs, the weight of R, the distance d, the sparsity penalty, the share of a batch that is overwritten and "
        "the kind of standard deviation are not given; ours is that of a sample (n - 1).",
    ]


def impossible() -> list[str]:
    """Pairs of BWT and Accuracy that are impossible."""
    return [
        f"{TITLES[method]} on {TITLES[data]}: BWT {pair.bwt.mean} and Accuracy {pair.accuracy.mean} together imply a "
        f"diagonal of {implied_diagonal(pair.bwt.mean, pair.accuracy.mean):.2f} %, which is impossible."
        for data, rows in TABLE1.items()
        for method, pair in rows.items()
        if round(implied_diagonal(pair.bwt.mean, pair.accuracy.mean), 6) > 100
    ]


def repeated() -> list[str]:
    """Standard deviations of two metrics that are the same number."""
    return [
        f"{TITLES[method]} on {TITLES[data]}: the standard deviations of BWT and of Accuracy are both printed as "
        f"{pair.bwt.std}; one may be a copy of the other."
        for data, rows in TABLE1.items()
        for method, pair in rows.items()
        if pair.bwt.std == pair.accuracy.std
    ]


def costs() -> list[str]:
    """Numbers of Table 2 that do not follow from its formula."""
    request, found = Request(), []
    for data, rows in TABLE2.items():
        for method, cost in rows.items():
            literal = EXTRA if method == "prer" else method
            symbols = table2.symbols(request.experiment(data, literal), CATALOGUE[data].shape)
            formula = table2.KEPT[method](symbols)
            if cost.kilofloats is not None and abs(formula / (1000 * cost.kilofloats) - 1) > OFF:
                found.append(
                    f"Table 2, {TITLES[method]} on {TITLES[data]}: by our rule, the stated formula and networks give "
                    f"{formula:,} floats; the paper prints {cost.kilofloats:,},000."
                )
    return found


def against_the_text() -> list[str]:
    """Sentences of section 4 that numbers of the paper's own tables contradict."""
    sentences = {
        '"All methods perform better" than Naive': _behind("naive"),
        'ER is "slightly better in both BWT and accuracy" than GEM': _behind("gem", ("er",)),
        'ER "requires less memory" than GEM': [
            f"{TITLES[data]}, {rows['er'].kilofloats:,}K and {rows['gem'].kilofloats:,}K"
            for data, rows in TABLE2.items()
            if (rows["er"].kilofloats or 0) > (rows["gem"].kilofloats or 0)
        ],
        f"PRER's BWT is better than all \"by a significant margin\" (Welch's t-test, {RUNS} runs each)": [
            f"{column}, {TITLES[method]} p {p:.2f}"
            for column, figures in _columns("bwt")
            for method, figure in figures.items()
            if method != "prer" and (p := welch(figures["prer"], RUNS, figure)) >= LEVEL
        ],
        'PRER is "more robust to the weights\' initialization"': [
            f"{column}, standard deviation {figures['prer'].std:.2f}, of {TITLES[method]} {figure.std:.2f}"
            for column, figures in _columns("accuracy")
            for method, figure in figures.items()
            if figure.std < figures["prer"].std
        ],
    }
    return [
        f"{sentence}; its tables contradict this: {'; '.join(found)}." for sentence, found in sentences.items() if found
    ]


def _columns(metric: str) -> list[tuple[str, dict[str, Figure]]]:
    """The columns of Table 1 that have this metric, each with its figures by method."""
    return [
        (f"{TITLES[data]} {METRICS[metric]}", {method: getattr(pair, metric) for method, pair in rows.items()})
        for data, rows in TABLE1.items()
    ]


def _behind(reference: str, methods: Sequence[str] = METHODS) -> list[str]:
    """Where methods have a lower mean than the reference that they are claimed to beat."""
    return [
        f"{column}, {TITLES[method]} {figures[method].mean:.2f} and {TITLES[reference]} {figures[reference].mean:.2f}"
        for metric in METRICS
        for column, figures in _columns(metric)
        for method in methods
        if figures[method].mean < figures[reference].mean
    ]
