"""REPRODUCIBILITY.md: two pages from the outcomes of the recorded runs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import paper_records
from record_tables import RECORDS
from verdicts_in_short import of_claims

from prer.data.catalogue import CATALOGUE
from prer.paper import ABLATION, DATA, METHODS
from prer.paper.claims import CLAIMS
from prer.paper.plan import EXTRA, PLAIN, Key, Request
from prer.paper.published import TABLE1, TABLE2, TITLES
from prer.paper.significance import OWN, comparisons
from prer.paper.table1 import METRICS, OF_TEST, Outcomes, missing, over, overlap_of, result_of, titles_of, with_rows
from prer.paper.table2 import hardware as machine_of
from prer.paper.table2 import stored_bytes
from prer.paper.tables import Cell, Table, Value, markdown
from prer.paper.variants import NAMES, agreement_of
from prer.runs.significance import MARGIN, Comparison
from prer.sweeps.engines.base import Outcome

Every = Mapping[str, Mapping[Key, Outcome]]
PLAINLY = {"holds": "yes", "does not hold": "no", "not decided": "open", "unknown": "not recorded"}
SIGNS = {"better": "+", "not worse": "=", "not decided": "?", "worse": "-"}  # of verdicts of a test
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
    "ours",
    "faster",
)  # claims about other methods, those that answers have, and one that is never decided
HEAD = """# Reproducibility

We repeated *Pseudo-Rehearsal for Continual Learning with Normalizing Flows* (Pomponi, Scardapane, Uncini 2020).
`benchmarks/reproducibility.py` writes this page and [all details](docs/reproducibility/README.md) from the recorded runs.

The setting is task-incremental, as in the paper: ten classes are five tasks of two, each task has its own head, and the task of
a test sample is given, so chance is 50 %. **Accuracy** (per cent) and **BWT** (the change of a task's accuracy since it was
learned, in points; negative means forgotten) are means over all stages: after each task, over all tasks so far.

- **PRER** is the paper's method with our changes, **PRER + anchor** has an addition of ours (see [changes](#what-we-changed)),
  **PRER, distilled** learns its encoder from labels, and **PRER, literal** follows the paper where it is explicit.
- **R** is the paper's regulariser: while the encoder learns (phase 1), it pulls embeddings of generated samples back.
- **LWF** stores 500 samples of each task with old predictions, as in the paper; **Classic LWF** stores none. **ER** is embedding
  regularisation with stored samples. Replay and DER++ store 2,500. Joint trains again on all data so far.
"""
CHANGES = """## What we changed

In our PRER, every coupling and the prior see the class by a learned vector, the couplings are bounded, normalisation layers and
permutations differ, and the flow has a higher learning rate, decayed to 0. Heads are trained with Adam, and samples have a
temperature below 1 on three data sets. PRER + anchor also pulls embeddings of new samples to where the old encoder had them. On
CIFAR10 its phase 1 also sees labels; there the ablation, and claims that it tests, start from the best settings without.

All runs, including the literal ones, have a linear embedding, where the paper has the ReLU, and an L1 penalty on z. Its weight
and that of R, which the paper does not state, were tuned for each row. [All differences](docs/reproducibility/paper.md).
"""
REPEAT = f"""## How to repeat it

    prer reproduce table1 --only mnist,cifar10          Table 1, five seeds
    prer reproduce significance --only mnist,cifar10    twenty seeds, with the tests
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


def answers(every: Every) -> str:
    """Whether PRER works, and when to use it; empty if a run is missing."""
    n = Numbers(every)
    try:
        mnist, cifar = n.seconds("mnist"), n.seconds("cifar10")
        domains, equal = recorded("domains") | recorded("domains_rate"), recorded("equal_bytes")
        published = TABLE1["cifar10"]["lwf"].bwt
        answered = {
            "Does PRER work?": "Yes: it stores no sample and forgets little. BWT on MNIST and CIFAR10 (five seeds) is "
            f"{n.both('table1', 'prer-literal')} with the literal settings, {n.both('table1', PLAIN)} for PRER, "
            f"{n.both('table1', 'prer')} for PRER + anchor, and {n.both('table1', 'naive')} for Naive, which varies much on MNIST.",
            "Does it work for the paper's reason?": "Only in part. Without R the literal settings have "
            f"{n.both('claims', 'literal-no-r')}, but five seeds do not decide it. Their flow does not know the classes: {n.seen('literal')} % of its samples "
            "are taken for the class that was asked for, among the two of a task. With our changes these are "
            f"{n.seen('no-anchor')} %, and on CIFAR10 BWT is no better: no loss uses the class of a generated sample. An encoder "
            f"without labels, generated samples and any pull has {n.both('claims', 'neither')}, and with the anchor alone "
            f"{n.both('claims', 'anchor-only')}.",
            "Is it better than other methods?": "Than some, but not than all. LWF and EWC are far better than in the paper: on "
            f"CIFAR10 LWF has a BWT of {Value(n.result('table1', 'cifar10', 'lwf')['bwt']['mean'])}, in the paper "
            f"{Value(published.mean)}. **Classic LWF** stores nothing and only preserves "
            "the old heads' outputs on new samples. On colour images it is more accurate than PRER + anchor by "
            f"{n.behind('svhn', 'lwf-classic')} (SVHN-46k) and {n.behind('cifar10', 'lwf-classic')} points (CIFAR10) over "
            "twenty seeds. On grey images they differ by less than 0.4, and Classic LWF forgets more on KMNIST-10k. On CIFAR10, "
            f"Accuracy and BWT over twenty seeds are {n.figures('cifar10', 'prer-distilled')} for distilled PRER, "
            f"{n.figures('cifar10', 'lwf-classic')} for Classic LWF, and {n.figures('cifar10', 'joint')} for Joint.",
            "When does generation help?": "On the one [sequence of "
            "domains](docs/results.md#is-generation-needed-if-the-task-is-given) that we tried, which have little in common: "
            "MNIST, KMNIST-10k, SVHN-46k and CIFAR10, ten classes each. Over five seeds, Accuracy and BWT of "
            f"distilled PRER are {of_both(domains['domains-prer-distilled-1'])} there, with distillation on generated samples, too, "
            f"{of_both(domains['domains-prer-distilled-generated-1'])}. At the same learning rate Classic LWF has "
            f"{of_both(domains['domains-lwf-classic-given'])}, and LWF with 500 samples of each "
            f"{of_both(domains['domains-lwf-given'])}.",
            "When should I use it?": "If samples may not be stored and new data may look unlike old (distilled, with "
            "`generated=1`), or if you want to sample past data.",
            "When not?": "If new data resembles old: Classic LWF is simpler, and with as many bytes as PRER + anchor, DER++ has "
            f"{of_both(equal['mnist-der-equal-bytes'])} on MNIST and {of_both(equal['cifar10-der-equal-bytes'])} on CIFAR10 "
            f"(it did not run over the domains). LWF takes {mnist['lwf']:.1f} and {cifar['lwf']:.1f} s for a run, PRER + anchor "
            f"{mnist['prer']:.1f} and {cifar['prer']:.1f} s. If the task is not given, see [another "
            "page](docs/class-incremental.md).",
        }
    except (KeyError, TypeError):
        return ""
    lines = (wrapped(f"- **{question}** {answer}") for question, answer in answered.items())
    return "## Answers\n\n" + "".join(lines)


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
        "Our numbers are compared with the paper's by Welch's t-test in [table 1](docs/reproducibility/table1.md). The paper has all "
        "of KMNIST and SVHN. Settings of every method were chosen by Accuracy on validation data, not by BWT.",
    ]
    if any(note.startswith("*") for note in table.notes):
        notes += ["* Impossible together: they imply more than 100 % right after a task was learned."]
    return Table(table.name, table.caption, table.columns, rows, notes)


def against(request: Request, outcomes: Outcomes) -> Table:
    """The verdicts of PRER's rows against the other methods by the corrected test, as a sign for each data set."""
    rows: list[list[Cell]] = []
    titles = titles_of(outcomes)
    others = [method for method in titles if method not in (*OWN, EXTRA)]
    for own in OWN:
        for metric, label in METRICS.items():
            tested = [comparisons(outcomes, data, metric, overlap_of(outcomes), own) for data in DATA]
            if any(tested):
                rows.append(
                    [f"{titles[own]}, {label}", *(signs(found.get(other) for found in tested) for other in others)]
                )
    notes = [
        f"Signs: {', '.join(map(request.title, DATA))}. Plus: better. Equals: shown to be at most {MARGIN} points worse. Question "
        "mark: the test is inconclusive. Minus: worse.",
        f"Paired t-test{over(outcomes)}, corrected for seeds that split the same images (Nadeau and Bengio 2003) and, by Holm's "
        "method, for several comparisons. The uncorrected test decides more: [both, and PRER's rows against each "
        "other](docs/reproducibility/significance.md).",
    ]
    return Table("against", "Is PRER better than the others?", ["", *(titles[other] for other in others)], rows, notes)


def signs(found: Iterable[Comparison | None]) -> str:
    """A sign for each verdict, as in "+ = ? -"; a dot where there is none."""
    return " ".join(SIGNS[c.verdict] if c else "." for c in found)


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
        "Yes: it holds in our runs. No: a test refutes it, or shows that the gain is below 0.2 points. Open: the test is "
        "inconclusive. -: not tested on these data. Claims of section 4 compare PRER + anchor with the paper's methods, and those "
        f"about memory with the ones that store anything. Memory and time are not tested. [Evidence, rules, and {len(OTHERS)} more claims](docs/reproducibility/claims.md).",
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
        "**Search.** Every method was searched with as many settings. Some of PRER's were first tried by hand, on the same "
        f"validation data: {hand}. The best of them were candidates, and one was chosen on {won}. [All](docs/reproducibility/searches.md). PRER also [trains longer](docs/results.md#how-far-to-trust-these-numbers).",
        "**Repeats.** A seed ends differently among twenty seeds than among five, by rounding. Its BWT with PRER + anchor "
        f"moved by up to {moved or 'an unknown amount'}. [All](docs/reproducibility/twice.md).",
    ]
    return "## How far to trust this\n\n" + "".join(wrapped(f"- {item}") for item in items)


def hardware(every: Every) -> str:
    """The machine and versions of the runs."""
    folders = [outcome.folder for part in every.values() for outcome in part.values() if result_of(outcome)]
    machines = "; ".join(dict.fromkeys(map(machine_of, folders))) or "nothing yet"
    return wrapped(
        f"Hardware: {machines}. KMNIST-10k and SVHN-46k, parts of the paper's data, need a path, as in `--data kmnist=PATH/kmnist10k`. [Every "
        "run](docs/reproducibility/runs.md) has its seeds, versions, digest and command."
    )
