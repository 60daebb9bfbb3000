"""REPRODUCIBILITY.md: two pages from the outcomes of the recorded runs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import paper_records
from record_tables import RECORDS
from verdicts_in_short import grouped, listed, of_claims

from prer.data.catalogue import CATALOGUE
from prer.paper import ABLATION, DATA, METHODS
from prer.paper.claims import CLAIMS
from prer.paper.plan import PLAIN, Key, Request
from prer.paper.published import TABLE2, TITLES
from prer.paper.significance import OWN, comparisons
from prer.paper.table1 import METRICS, OF_TEST, Outcomes, missing, over, overlap_of, result_of, titles_of, with_rows
from prer.paper.table2 import hardware as machine_of
from prer.paper.table2 import stored_bytes
from prer.paper.tables import Cell, Table, Value, markdown
from prer.paper.variants import NAMES, agreement_of
from prer.runs.significance import Comparison
from prer.sweeps.engines.base import Outcome

Every = Mapping[str, Mapping[Key, Outcome]]
PLAINLY = {"holds": "yes", "does not hold": "no", "not decided": "open", "unknown": "not recorded"}
WORDS = ("better", "not worse", "not decided", "worse")  # verdicts of a test, in the order in which cells list them
OTHERS = (
    "strong-lwf",
    "strong-ewc",
    "above-naive",
    "little",
    "er-bwt",
    "er-accuracy",
    "cheaper",
    "quicker",
    "literal-data",
    "literal-noise",
    "faster",
)  # claims about other methods, those that answers have, and one that is never decided
HEAD = """# Reproducibility

We repeated *Pseudo-Rehearsal for Continual Learning with Normalizing Flows* (Pomponi, Scardapane, Uncini 2020).
`benchmarks/reproducibility.py` writes this page and [all details](docs/reproducibility/README.md) from the recorded runs.

The setting is task-incremental, as in the paper: ten classes are five tasks of two, each task has a head of its own, and the task
of a test sample is given, so chance is 50 %. **Accuracy** is the mean accuracy on all tasks seen, in per cent. **BWT** is the mean
change of a task's accuracy since it was learned, in points; negative means forgotten.

- **PRER** is the paper's method with our repairs, **PRER + anchor** has an addition of ours (see [changes](#what-we-changed)),
  **PRER, distilled** learns its encoder from labels, and **PRER, literal** follows the paper wherever it states something.
- **LWF** stores 500 samples of each task with old predictions, as in the paper; **Classic LWF** stores none. **ER** is embedding
  regularisation with stored samples. Joint trains on all data. **KMNIST-10k** and **SVHN-46k** are parts of the paper's data.
"""
CHANGES = """## What we changed

In our PRER, every coupling and the prior see the class by a learned vector, the couplings are bounded, norms and permutations
differ, and the flow has a higher learning rate that falls to 0. Heads are trained with Adam, and samples of the past have a
temperature below 1 on three data sets. PRER + anchor also pulls embeddings of new samples to where the old encoder had them. On
CIFAR10, phase 1 of PRER + anchor also sees labels, as the search found that better. The ablation, and the claims about it, start
from the best settings without labels there.

All runs, also the literal ones, have a linear embedding and an L1 penalty of z. The weights of that penalty and of R, which the
paper does not state, were found for each row. [All differences](docs/reproducibility/paper.md), also within the paper.
"""
REPEAT = f"""## How to repeat it

    prer reproduce table1 --only mnist,cifar10          Table 1, five seeds
    prer reproduce significance --only mnist,cifar10    the same with twenty seeds, and the tests
    prer reproduce table2                               Table 2, one seed, one run at a time
    prer reproduce claims                               {len(NAMES) - 1} variants of PRER, and the claims

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
        return " and ".join(str(Value(self.result(part, data, method)[metric]["mean"])) for data in ABLATION)

    def seen(self, variant: str) -> str:
        """The share of samples of their class on MNIST and CIFAR10."""
        folders = (self.every["claims"][data, variant].folder for data in ABLATION)
        return " and ".join(f"{np.mean(agreement_of(folder) or [np.nan]):.1f}" for folder in folders)

    def behind(self, data: str, method: str) -> str:
        """By how many points of Accuracy PRER + anchor is behind a method, over twenty seeds."""
        return f"{-comparisons(self.every['significance'], data, 'accuracy')[method].difference:.1f}"

    def figures(self, data: str, method: str) -> str:
        """Accuracy and BWT over twenty seeds, as in "87.36 and -0.64"."""
        return of_both(self.result("significance", data, method))

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
        domains, equal = recorded("domains"), recorded("equal_bytes")
        answered = {
            "Does PRER work?": "Yes: in this setting it forgets little, and stores no sample. BWT of the literal settings is "
            f"{n.both('table1', 'prer-literal')}, of PRER {n.both('table1', PLAIN)}, of PRER + anchor "
            f"{n.both('table1', 'prer')}, and of Naive {n.both('table1', 'naive')}.",
            "Does it work for the paper's reason?": "Only in part. In the literal settings the flow does not know the "
            f"classes: {n.seen('literal')} % of its samples are of the class that was asked for, and chance is 50 %. Our "
            f"repairs make it {n.seen('no-anchor')} %. BWT does not need it: with a head for each task, no loss "
            f"uses the class of a sample. Without R the literal settings have {n.both('claims', 'literal-no-r')}. An "
            f"encoder that learns without labels forgets little by itself: {n.both('claims', 'neither')} without "
            f"samples and without any pull, and {n.both('claims', 'anchor-only')} with the anchor alone.",
            "Is it better than other methods?": "Not on these data. **Classic LWF** keeps nothing at all: it holds the old "
            "heads' answers for the new samples. On colour images it is more accurate than PRER + anchor by "
            f"{n.behind('svhn', 'lwf-classic')} (SVHN-46k) and {n.behind('cifar10', 'lwf-classic')} points (CIFAR10) over "
            "twenty seeds. On grey ones it is within 0.4, but forgets more on KMNIST-10k. **Distilled PRER** "
            '(`labels="distilled"`) is held in the same way. Its Accuracy and BWT on CIFAR10 are '
            f"{n.figures('cifar10', 'prer-distilled')}; classic LWF has {n.figures('cifar10', 'lwf-classic')}, joint "
            f"training on all data {n.figures('cifar10', 'joint')}.",
            "When does generation help?": "If old and new inputs have nothing in common. Over four domains (MNIST, KMNIST-10k, "
            "SVHN-46k, CIFAR10, one after the other, each with a head), Accuracy and BWT of distilled PRER are "
            f"{of_both(domains['domains-prer-distilled-1'])}, and with distillation on generated samples, too, "
            f"{of_both(domains['domains-prer-distilled-generated-1'])}. Classic LWF has "
            f"{of_both(domains['domains-lwf-classic-1'])}, and LWF with 500 stored samples of each domain "
            f"{of_both(domains['domains-lwf-1'])} ([details](docs/results.md#is-generation-needed-if-the-task-is-given)).",
            "When should I use it?": "If you must not store samples, and new data may look unlike old: distilled, with "
            "`generated=1`. Or if you want samples of the past. If new data resembles old, classic LWF is simpler.",
            "When not?": "If you may store samples. In PRER's bytes DER++ has "
            f"{of_both(equal['mnist-der-equal-bytes'])} on MNIST and {of_both(equal['cifar10-der-equal-bytes'])} on "
            f"CIFAR10 (it did not run over the four domains), and LWF with stored samples takes {mnist['lwf']:.1f} and {cifar['lwf']:.1f} s for a run, PRER "
            f"{mnist['prer']:.1f} and {cifar['prer']:.1f} s. If nobody tells the task, take this package's "
            "[other default](docs/class-incremental.md).",
        }
    except (KeyError, TypeError):
        return ""
    lines = (wrapped(f"- **{question}** {answer}") for question, answer in answered.items())
    return (
        "## Answers\n\nPairs of numbers are MNIST and CIFAR10, over five seeds unless said; costs over one.\n\n"
        + "".join(lines)
    )


def recorded(name: str) -> dict[str, dict[str, Any]]:
    """The results of a record with one line a run, by name."""
    lines = map(json.loads, (RECORDS / f"{name}.jsonl").read_text("utf-8").splitlines())
    return {line["name"]: paper_records.result_of(line) for line in lines}


def of_both(result: Mapping[str, Any]) -> str:
    """Mean Accuracy and BWT of a run, as in "87.36 and -0.64"."""
    return f"{Value(result['accuracy']['mean'])} and {Value(result['bwt']['mean'])}"


def wrapped(text: str) -> str:
    """Text in lines of the documents' width."""
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, 126, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + "\n"


def section(table: Table) -> str:
    """A table with its caption as the heading."""
    return f"## {table.caption}\n\n" + markdown(table).split("\n\n", 1)[1]


def of_table1(table: Table) -> Table:
    """Ours and the paper's, without differences and verdicts."""
    rows = [row for row in table.rows if not str(row[0]).endswith((", difference", f", {OF_TEST}"))]
    notes = [
        "Test of ours against the paper's numbers: Welch's t-test, in [table 1](docs/reproducibility/table1.md). "
        "Settings of every method were chosen by Accuracy on validation data, not by BWT.",
        *(note for note in table.notes if note.startswith("*")),
    ]
    return Table(table.name, table.caption, table.columns, rows, notes)


def against(request: Request, outcomes: Outcomes) -> Table:
    """The verdicts of PRER's rows against the other methods by the corrected test, a row for each and a metric."""
    rows: list[list[Cell]] = []
    titles = titles_of(outcomes)
    for own in OWN:
        for metric, label in METRICS.items():
            tested = [comparisons(outcomes, data, metric, overlap_of(outcomes), own) for data in DATA]
            if any(tested):
                rows.append([f"{titles[own]}, {label}", *(by_verdict(found, titles) for found in tested)])
    notes = [
        f"Paired t-test{over(outcomes)}, corrected for seeds that split the same images (Nadeau and Bengio 2003), "
        "and by Holm's method for several comparisons. Not worse: by less than 0.2 points. Open: not decided. The "
        "plain t-test decides more; [both, and PRER's rows against each other](docs/reproducibility/significance.md).",
    ]
    caption = "Is PRER better than the others? (corrected t-test)"
    return Table("against", caption, ["", *map(request.title, DATA)], rows, notes)


def by_verdict(found: Mapping[str, Comparison], titles: Mapping[str, str]) -> str:
    """The methods by verdict, as in "better (GEM, ER); open (LWF)"; "-" if there are none."""
    in_order = sorted(found, key=lambda method: WORDS.index(found[method].verdict))
    words = grouped((found[method].verdict, titles[method]) for method in in_order)
    return listed({PLAINLY.get(word, word): of_word for word, of_word in words.items()}) or "-"


def of_table2(outcomes: Outcomes) -> Table:
    """Memory as it is stored and as the paper counts it, and time."""
    rows: list[list[Cell]] = []
    for method, title in titles_of(with_rows(outcomes)).items():
        row: list[Cell] = [title]
        for data in ABLATION:
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
    columns = ["", *(f"{TITLES[data]} {kind}" for data in ABLATION for kind in kinds)]
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
        "section 4 are about PRER + anchor. The claim about initial weights has Levene's test, and those about memory "
        f"and time no test. [Evidence, rules, and {len(OTHERS)} more claims](docs/reproducibility/claims.md).",
    ]
    return Table("verdicts", table.caption, table.columns, rows, notes)


def trust(tables: Mapping[str, Table]) -> str:
    """How far to trust the numbers."""
    points = [row for row in tables["searches"].rows if row[1] == "PRER + anchor"]
    hand = ", ".join(f"{row[3]} of {row[2]} on {row[0]}" for row in points if str(row[3]) != "0")
    won = " and ".join(str(row[0]) for row in points if row[8] == "hand")
    moved = ", ".join(f"{row[3]} on {row[0]}" for row in tables["twice"].rows if row[1] == "PRER + anchor")
    items = [
        "**Tests.** Seeds split the same images. The corrected test assumes that two seeds are correlated by the share of "
        "test images, 0.2. That is a rule of thumb. No test covers other data or settings.",
        "**Search.** Every method had the same number of points. Some of PRER's were tried by hand first, on the same "
        f"validation data: {hand}. The best of them ran again and could win, and did on {won}. "
        "[All](docs/reproducibility/searches.md). PRER also [trains "
        "longer](docs/results.md#how-far-to-trust-these-numbers).",
        "**Repeats.** The same seed has other results among twenty seeds than among five, as rounding differs. BWT of PRER + anchor "
        f"moved by up to {moved or 'an unknown amount'}. [All](docs/reproducibility/twice.md).",
    ]
    return "## How far to trust this\n\n" + "".join(wrapped(f"- {item}") for item in items)


def hardware(every: Every) -> str:
    """The machine and versions of the runs."""
    folders = [outcome.folder for part in every.values() for outcome in part.values() if result_of(outcome)]
    machines = "; ".join(dict.fromkeys(map(machine_of, folders))) or "nothing yet"
    return wrapped(
        f"Hardware: {machines}. Parts of data sets need their paths, as in `--data kmnist=PATH/kmnist10k`. [Every "
        "run](docs/reproducibility/runs.md) has its seeds, versions, digest and command."
    )
