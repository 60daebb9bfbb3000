"""REPRODUCIBILITY.md: two pages from the outcomes of the recorded runs."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from verdicts_in_short import of_claims

from prer.data.catalogue import CATALOGUE
from prer.paper import DATA, LITERAL, METHODS
from prer.paper.claims import CLAIMS
from prer.paper.plan import PLAIN, Key, Request
from prer.paper.published import TABLE2, TITLES
from prer.paper.significance import comparisons
from prer.paper.table1 import Outcomes, missing, overlap_of, result_of, titles_of
from prer.paper.table2 import hardware as machine_of
from prer.paper.table2 import stored_bytes
from prer.paper.tables import Cell, Table, Value, markdown
from prer.paper.variants import agreement_of
from prer.sweeps.engines.base import Outcome

Every = Mapping[str, Mapping[Key, Outcome]]
PLAINLY = {"holds": "yes", "does not hold": "no", "not decided": "open"}
OTHERS = (
    "strong-lwf",
    "strong-ewc",
    "above-naive",
    "little",
    "er-bwt",
    "er-accuracy",
    "cheaper",
    "quicker",
)  # claims about other methods
HEAD = """# Reproducibility

What we found when we repeated *Pseudo-Rehearsal for Continual Learning with Normalizing Flows* (Pomponi, Scardapane, Uncini
2020). All numbers, tests, rules and runs are in [docs/reproducibility](docs/reproducibility/README.md). A script writes these
pages from the recorded runs, and a test compares them with the records.

The setting is task-incremental, as in the paper: ten classes are five tasks of two, each task has a head of its own, and the task
of a test sample is given, so chance is 50 %. **Accuracy** is the mean accuracy on all tasks seen, in per cent. **BWT** is the mean
change of a task's accuracy since it was learned, in points; negative means forgotten.

- **PRER** is the paper's method with our repairs, **PRER + anchor** has an addition of ours (see [changes](#what-we-changed)), and
  **PRER, literal** follows the paper wherever it states something.
- **LWF** stores 500 samples of each task with old predictions, as in the paper. **ER** is embedding regularisation with stored
  samples. The other methods are Naive, EWC and GEM.
- **KMNIST-10k** and **SVHN-46k** are parts of the paper's data. "Not run" marks runs that do not exist.
"""
CHANGES = """## What we changed

In our PRER, every coupling and the prior see the class by a learned vector, the couplings are bounded, norms and permutations
differ, and the flow has a higher learning rate that falls to 0. Heads are trained with Adam, and samples of the past have a
temperature below 1 on three data sets. PRER + anchor also pulls embeddings of new samples to where the old encoder had them.
PRER without the anchor keeps the settings that were found with it.

All runs, also the literal ones, have a linear embedding where the paper uses the ReLU "in all the models", an L1 penalty of z
where it has "the layers", norms initialised on all embeddings, the same permutations for all seeds, and weights of R and of the
sparsity penalty that were found for PRER + anchor. [All differences](docs/reproducibility/paper.md), also within the paper.
"""
REPEAT = """## How to repeat it

    prer reproduce table1 --only mnist,cifar10          Table 1, five seeds
    prer reproduce significance --only mnist,cifar10    the same with twenty seeds, and the tests
    prer reproduce table2                               Table 2, one seed, one run at a time
    prer reproduce claims                               25 variants of PRER, and the claims
    python benchmarks/reproducibility.py                these pages, from benchmarks/records/paper.jsonl

"""


def text(request: Request, every: Every, tables: Mapping[str, Table]) -> str:
    """The page; parts whose runs are missing are left out."""
    parts = [HEAD, answers(every), CHANGES]
    parts += [section(of_table1(tables["table1"]))] if "table1" in tables else []
    parts += [section(against(request, every["significance"]))] if "significance" in tables else []
    parts += [section(of_table2(every["table2"]))] if "table2" in tables else []
    parts += [section(plainly(tables["claims"]))] if "claims" in tables else []
    return "\n".join(part for part in [*parts, trust(tables), REPEAT + hardware(every)] if part)


class Numbers:
    """Numbers of runs as text; raises KeyError if a run is missing."""

    def __init__(self, every: Every) -> None:
        self.every = every

    def result(self, part: str, data: str, method: str) -> dict[str, Any]:
        """The result of a run."""
        found = result_of(self.every[part].get((data, method)))
        if found is None:
            raise KeyError((part, data, method))
        return found

    def both(self, part: str, method: str, metric: str = "bwt") -> str:
        """A metric on MNIST and CIFAR10, as in "-0.12 and -1.33"."""
        return " and ".join(str(Value(self.result(part, data, method)[metric]["mean"])) for data in LITERAL)

    def seen(self, variant: str) -> str:
        """The share of samples of their class on MNIST and CIFAR10."""
        folders = (self.every["claims"][data, variant].folder for data in LITERAL)
        return " and ".join(f"{np.mean(agreement_of(folder) or [np.nan]):.1f}" for folder in folders)

    def behind(self, data: str, method: str) -> str:
        """By how many points of Accuracy PRER + anchor is behind a method, over twenty seeds."""
        return f"{-comparisons(self.every['significance'], data, 'accuracy')[method].difference:.1f}"

    def seconds(self, data: str) -> dict[str, float]:
        """The seconds of each method."""
        return {method: self.result("table2", data, method)["seconds"]["total"] for method in METHODS}

    def size(self, data: str, method: str) -> float:
        """The memory of a method, as a multiple of PRER's."""
        sizes = (stored_bytes(self.every["table2"][data, m], CATALOGUE[data].shape) for m in (method, "prer"))
        of_method, of_prer = sizes
        return of_method / of_prer


def answers(every: Every) -> str:
    """Whether PRER works, and when to use it; empty if a run is missing."""
    n = Numbers(every)
    try:
        mnist, cifar = n.seconds("mnist"), n.seconds("cifar10")
        answered = {
            "Does PRER work?": "Yes: in this setting it forgets little, and stores no sample. BWT of the literal settings is "
            f"{n.both('table1', 'prer-literal')}, of PRER {n.both('table1', PLAIN)}, of PRER + anchor "
            f"{n.both('table1', 'prer')}, and of Naive {n.both('table1', 'naive')}. The paper has -0.14 and -3.63.",
            "Does it work for the paper's reason?": "Only in part. In the literal settings the flow does not know the "
            f"classes: {n.seen('literal')} % of its samples are of the class that was asked for, and chance is 50 %. "
            f"Our repairs make it {n.seen('no-anchor')} %, but PRER does not clearly forget less than the literal "
            "settings: with a head for each task, no loss uses the class of a sample. R seems to matter: without it "
            f"the literal settings have {n.both('claims', 'literal-no-r')}, but five seeds are too few to be sure. An "
            f"encoder that learns without labels forgets little by itself: {n.both('claims', 'neither')} without "
            f"samples and without any pull, and {n.both('claims', 'anchor-only')} with the anchor alone.",
            "Is it better than other methods?": "PRER + anchor is among those that forget least, but not ahead of all. On "
            f"colour images LWF is more accurate, by {n.behind('svhn', 'lwf')} (SVHN-46k) and "
            f"{n.behind('cifar10', 'lwf')} points (CIFAR10) over twenty seeds.",
            "When should I use it?": "If you must not store samples, the task is given, and images are small. EWC stores no "
            "samples either, and takes less time. It is more accurate than PRER + anchor on SVHN-46k, and less on "
            "KMNIST-10k.",
            "When not?": f"If you may store samples. LWF takes {n.size('mnist', 'lwf'):.1f} and {n.size('cifar10', 'lwf'):.1f} "
            f"times the bytes of PRER, but {mnist['lwf']:.1f} and {cifar['lwf']:.1f} s for a run, and PRER "
            f"{mnist['prer']:.1f} and {cifar['prer']:.1f} s. If nobody tells the task, the paper's trained encoder "
            "and flow are not enough, and this package has [another default](docs/class-incremental.md).",
        }
    except (KeyError, TypeError):
        return ""
    lines = (wrapped(f"- **{question}** {answer}") for question, answer in answered.items())
    return "## Answers\n\nPairs of numbers are MNIST and CIFAR10, over five seeds unless said.\n\n" + "".join(lines)


def wrapped(text: str) -> str:
    """Text in lines of the documents' width."""
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, 126, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + "\n"


def section(table: Table) -> str:
    """A table with its caption as the heading."""
    return f"## {table.caption}\n\n" + markdown(table).split("\n\n", 1)[1]


def of_table1(table: Table) -> Table:
    """Ours and the paper's, without differences and verdicts."""
    rows = [row for row in table.rows if not str(row[0]).endswith((", difference", ", verdict"))]
    notes = [
        "Test of ours against the paper's numbers: Welch's t-test, in [table 1](docs/reproducibility/table1.md). "
        "Settings of every method were chosen by Accuracy on validation data, not by BWT.",
        *(note for note in table.notes if note.startswith("*")),
    ]
    return Table(table.name, table.caption, table.columns, rows, notes)


def against(request: Request, outcomes: Outcomes) -> Table:
    """PRER's verdicts against the other methods by the corrected test."""
    rows: list[list[Cell]] = []
    titles = titles_of(outcomes)
    for own in ("prer", PLAIN):
        tested = {
            (data, metric): comparisons(outcomes, data, metric, overlap_of(outcomes), own)
            for data in DATA
            for metric in ("bwt", "accuracy")
        }
        for method in dict.fromkeys(method for found in tested.values() for method in found):
            words = (found[method].verdict if method in found else "-" for found in tested.values())
            rows.append([f"{titles[own]} against {titles[method]}", *(PLAINLY.get(word, word) for word in words)])
    columns = ["", *(f"{request.title(data)} {label}" for data in DATA for label in ("BWT", "Accuracy"))]
    notes = [
        "Paired t-test over twenty seeds, corrected for seeds that split the same images (Nadeau and Bengio 2003), "
        "and by Holm's method for several comparisons. Not worse: by less than 0.2 points. Open: not decided. The "
        "plain t-test decides more; [both](docs/reproducibility/significance.md).",
    ]
    return Table("against", "Is PRER better than the others?", columns, rows, notes)


def of_table2(outcomes: Outcomes) -> Table:
    """Memory as it is stored and as the paper counts it, and time."""
    rows: list[list[Cell]] = []
    for method, title in titles_of(outcomes).items():
        row: list[Cell] = [title]
        for data in LITERAL:
            outcome, cost = outcomes.get((data, method)), TABLE2[data].get(method)
            result = result_of(outcome)
            paper = [
                Value(cost.kilofloats, digits=0) if cost and cost.kilofloats else "-",
                Value(cost.minutes, digits=0) if cost else "-",
            ]
            if outcome is None or result is None:
                ours: list[Cell] = [missing(outcome), "-", "-"]
            else:
                floats, size = result["memory_floats"][-1], stored_bytes(outcome, CATALOGUE[data].shape)
                ours = [Value(size / 1000, digits=0), Value(floats / 1000, digits=0)]
                ours.append(Value(result["seconds"]["total"], digits=1))
            row += [*ours[:2], paper[0], ours[2], paper[1]]
        rows.append(row)
    kinds = ("kB", "1,000 floats", "1,000 floats, the paper", "s", "min, the paper")
    columns = ["", *(f"{TITLES[data]} {kind}" for data in LITERAL for kind in kinds)]
    notes = [
        "kB as stored: a pixel is one byte, a float four. The paper counts a pixel as a float. One seed. "
        "[More, and samples at equal bytes](docs/reproducibility/table2.md)."
    ]
    return Table("table2", "Table 2: memory after the last task, and time of a run", columns, rows, notes)


def plainly(claims: Table) -> Table:
    """Verdicts in plain words, without claims about other methods."""
    table = of_claims(claims)
    about = [claim.says for name, claim in CLAIMS.items() if name not in OTHERS]
    rows = [[row[0], *(PLAINLY.get(str(cell), cell) for cell in row[1:])] for row in table.rows if row[0] in about]
    notes = [
        "Yes: it holds in our runs. No: it does not. Open: not decided. -: not tested on these data. Claims of "
        "section 4 are about PRER + anchor. Verdicts by the corrected t-test, for the initial weights by Levene's "
        f"test. [Evidence, rules, and {len(OTHERS)} claims about other methods](docs/reproducibility/claims.md).",
    ]
    return Table("verdicts", table.caption, table.columns, rows, notes)


def trust(tables: Mapping[str, Table]) -> str:
    """How far to trust the numbers."""
    points = [row for row in tables["searches"].rows if str(row[1]).startswith("PRER")]
    could = ", ".join(f"{row[5]} of {row[2]} on {row[0]}" for row in points)
    better = {str(row[0]): str(row[6]) for row in points if str(row[6]) != "0"}
    above = "".join(f" On {data}, {count} of those by hand were more accurate." for data, count in better.items())
    moved = ", ".join(f"{row[3]} on {row[0]}" for row in tables["twice"].rows if str(row[1]).startswith("PRER"))
    items = [
        "**Tests.** Seeds split the same images, so they are not independent. The corrected test assumes that the "
        "differences of two seeds are correlated by the share of test images, 0.2. That is a rule of thumb, since the "
        "true correlation is unknown. Neither test covers other data or settings. Five seeds decide little on CIFAR10.",
        "**Search.** Every method had the same number of points, but PRER's first points were tried by hand and could "
        f"not win. Points that could win: {could}.{above} [All](docs/reproducibility/searches.md).",
        "**Repeats.** The same seed ends differently among five and among twenty seeds, as rounding differs. BWT of a "
        f"seed of PRER + anchor moved by up to {moved or 'an unknown amount'}. [All](docs/reproducibility/twice.md).",
        "**Epochs.** PRER trains longer than the other methods. "
        "[More](docs/results.md#how-far-to-trust-these-numbers).",
    ]
    return "## How far to trust this\n\n" + "".join(wrapped(f"- {item}") for item in items)


def hardware(every: Every) -> str:
    """The machine and versions of the runs."""
    folders = [outcome.folder for part in every.values() for outcome in part.values() if result_of(outcome)]
    machines = "; ".join(dict.fromkeys(map(machine_of, folders))) or "nothing yet"
    return wrapped(
        f"The recorded runs were made on {machines}. Parts of data sets need their paths, as in `--data "
        "kmnist=PATH/kmnist10k`. [Every run](docs/reproducibility/runs.md) has its seeds, versions, digest and "
        "command. On other machines digests differ."
    )
