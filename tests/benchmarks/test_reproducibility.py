"""REPRODUCIBILITY.md says what the recorded runs say."""

import platform
import re
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from support.benchmarks import ROOT, script
from support.fake_runs import fake_run_of
from support.paper import BWTS, DIAGONALS, in_markdown, outcomes_on_mnist

from prer.paper import plan, variants
from prer.paper.plan import Request
from prer.paper.reproduce import NEEDED, Clock, clocks, existing
from prer.runs import environment

reproducibility = script("reproducibility")


def test_the_document_says_what_the_records_say(recorded, runs):
    request, outcomes = recorded
    assert (ROOT / "REPRODUCIBILITY.md").read_text("utf-8") == reproducibility.text(request, outcomes, clocks(runs))


TABLES_OF_THE_PAPER = ("-10.09 ± 2.46", "82.67 ± 0.94", "-0.46 ± 0.17", "98.68 ± 0.29", "1,279,000", "8,180,000")


def test_the_document_says_what_has_run_and_what_has_not(tmp_path):
    outcomes_on_mnist(tmp_path)
    request = Request(variants=variants.NAMES)
    outcomes = {name: existing(NEEDED[name](request), tmp_path) for name in reproducibility.SECTIONS}
    of_claims = [outcome.folder.path.name for outcome in outcomes["claims"].values()]
    clocks = {"claims": Clock([*of_claims[:9], "other"], 12, 312.4), "table2": Clock(["x"], 1, 9.0)}
    text = reproducibility.text(request, outcomes, clocks)
    assert f"9 of these {len(of_claims)} runs come from one command, which took 312 s for 10 runs, 12 at a" in text
    assert text.count("from one command, which") == 1  # none of those of table 2 is a row
    assert "| PRER + anchor | -0.50 ± 0.25 | 98.92 ± 0.36 | not run |" in text
    assert "`prer reproduce table1 --only mnist,prer`" in text and "| 0 to 2 | 12.5 | CPU" in text
    assert (
        "`prer reproduce table2 --only cifar10,gem`" in text and "`prer reproduce claims --only mnist,pixels`" in text
    )
    line = "- PRER + anchor, our numbers against the paper's: no difference found (MNIST BWT, MNIST Accuracy).\n"
    assert f"## In short\n\n{line}" in text
    assert "task-incremental" in text and "(docs/figure2.png), made by `prer reproduce figure2`" in text
    assert f"| {platform.python_version()}, {version('torch')} |" in text
    assert "a diagonal of 100.10 %" in text and "EWC on CIFAR10" in text and "2,004,400" in text
    assert str(tmp_path) not in text
    for rows in TABLES_OF_THE_PAPER:
        assert rows in text
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(row) for row in in_markdown(block)}) == 1


@pytest.mark.parametrize(("commit", "said"), [("0123456789ab", 0), ("0123456789ab-dirty", 1)])
def test_a_commit_with_changes_is_explained(tmp_path, monkeypatch, commit, said):
    monkeypatch.setattr(environment, "_commit", lambda: commit)
    request = Request(only=("mnist", "prer"))
    fake_run_of(tmp_path, plan.of_table1(request)["mnist", "prer"], DIAGONALS, BWTS)
    outcomes = {name: existing(NEEDED[name](request), tmp_path) for name in reproducibility.SECTIONS}
    assert reproducibility.text(request, outcomes, {}).count("A commit that ends in -dirty") == said


def test_commands_in_the_document_contain_no_local_path(tmp_path):
    (tmp_path / "mnist7k").mkdir()
    request = Request(only=("mnist", "prer"), paths={"mnist": str(tmp_path / "mnist7k")}, seeds="0,7")
    table = reproducibility.runs(request, existing(plan.of_table1(request), tmp_path), "table1")
    assert (
        table.rows[0][0] == "PRER + anchor on MNIST-7k"
        and "mnist7k, which is not the paper's data, MNIST" in table.notes[0]
    )
    command = "`prer reproduce table1 --only mnist,prer --data mnist=PATH/mnist7k --seeds 0,7`"
    assert table.rows[0][1] == "not run" and table.rows[0][-1] == command


def written(monkeypatch, *arguments):
    """The document that the script writes into the current folder."""
    monkeypatch.setattr("sys.argv", ["reproducibility.py", *map(str, arguments)])
    reproducibility.main()
    return Path("REPRODUCIBILITY.md").read_text("utf-8")


@pytest.mark.usefixtures("no_terminal")
def test_the_script_writes_the_document_from_finished_runs(monkeypatch):
    for part in (plan.of_table1, plan.of_significance):
        experiments = part(Request())
        for i, method in enumerate(("prer", "ewc", "er", "gem", "lwf", "naive")):
            for data in ("mnist", "cifar10"):
                noise = 0.1 * i * np.linspace(-1, 1, len(experiments[data, method].seeds))
                fake_run_of(Path("runs"), experiments[data, method], 99 - i - noise, -i + noise)
    text = written(monkeypatch, "runs")
    assert "| ER on CIFAR10 | 0 to 4 |" in text and "| ER on CIFAR10 | 0 to 19 |" in text
    assert re.search(r"\| CIFAR10 \| Naive \+5.00 .* EWC \+1.00 \(", text)  # of a claim


@pytest.mark.usefixtures("no_terminal")
def test_the_script_is_told_where_data_was_read_from(monkeypatch):
    Path("kmnist10k").mkdir()
    fake_run_of(
        Path("runs"), Request().experiment("kmnist", "naive", ["stream.data=kmnist10k"]), [90.0] * 5, [-2.0] * 5
    )
    before = sorted(Path("runs").iterdir())
    text = written(monkeypatch, "runs", "kmnist=kmnist10k")
    assert "KMNIST-10k" in text and "| Naive | not run" in text and "-2.00 ± 0.00" in text
    assert sorted(Path("runs").iterdir()) == before
