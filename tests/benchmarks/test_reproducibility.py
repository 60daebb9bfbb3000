"""REPRODUCIBILITY.md and docs/reproducibility/ say what the recorded runs say."""

import platform
import re
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import torch
from support.benchmarks import ROOT, script
from support.fake_runs import fake_run_of
from support.paper import BWTS, DIAGONALS, in_markdown, outcomes_on_mnist

from prer.paper import ABLATION, DATA, METHODS, plan, significance, variants
from prer.paper import claims as claims_
from prer.paper.plan import Request
from prer.paper.reproduce import NEEDED, Clock, clocks, existing
from prer.runs import environment

reproducibility = script("reproducibility")
MOST_LINES = 150  # of the front page: two pages


@pytest.fixture(scope="module")
def files(recorded, runs):
    """The text of each file from the recorded runs, by path."""
    request, outcomes = recorded
    return reproducibility.files(request, outcomes, clocks(runs))


def test_the_documents_say_what_the_records_say(files):
    for path, text in files.items():
        assert (ROOT / path).read_text("utf-8") == text, path
    there = {path.relative_to(ROOT).as_posix() for path in (ROOT / reproducibility.FOLDER).iterdir()}
    assert there == {path for path in files if path != reproducibility.FRONT}


def test_the_front_page_is_short_and_its_sentences_hold(files, recorded):
    page = files[reproducibility.FRONT]
    assert "## Answers" in page and "| PRER, distilled, BWT | " in page
    assert len(page.splitlines()) <= MOST_LINES and max(map(len, re.sub(r"(?m)^[|-].*$", "", page).splitlines())) <= 132
    _, outcomes = recorded
    tests = {
        (data, metric): significance.comparisons(outcomes["significance"], data, metric, 0.25)
        for data in DATA
        for metric in ("bwt", "accuracy")
    }
    classic = {key: of["lwf-classic"] for key, of in tests.items()}
    assert [classic[data, "accuracy"].verdict for data in ("svhn", "cifar10")] == ["worse", "worse"]
    assert all(abs(classic[data, "accuracy"].difference) < 0.4 for data in ("mnist", "kmnist"))
    domains, equal = reproducibility.front_page.recorded("domains"), reproducibility.front_page.recorded("equal_bytes")
    final = {name: of for name, of in domains.items() if "search" not in name}
    assert max(final, key=lambda name: final[name]["accuracy"]["mean"]) == "domains-prer-distilled-generated-1"
    assert {len(of["seeds"]) for of in (*final.values(), *equal.values())} == {5}
    for data in ABLATION:
        best = max(outcomes["table1"][data, m].folder.result["accuracy"]["mean"] for m in ("prer", "prer-distilled"))
        assert equal[f"{data}-der-equal-bytes"]["accuracy"]["mean"] > best
    claims = outcomes["claims"]
    for data in ABLATION:
        bwt = {name: claims[data, name].folder.result["bwt"]["mean"] for name in ("literal", "literal-no-r", "neither")}
        naive = outcomes["table1"][data, "naive"].folder.result["bwt"]["mean"]
        assert bwt["literal"] > bwt["literal-no-r"] > naive and bwt["neither"] > naive / 2
        pair = claims_.gathered(outcomes, data, corrected=True).pairs["literal", "literal-no-r"]
        assert max(c.adjusted for c in pair) > 0.05  # five seeds do not decide it
        seconds = {m: outcomes["table2"][data, m].folder.result["seconds"]["total"] for m in METHODS}
        assert max(seconds, key=seconds.get) == "prer"
    ours, literal = (
        outcomes["table1"]["cifar10", m].folder.result["bwt"]["mean"] for m in (plan.PLAIN, "prer-literal")
    )
    assert ours < literal
    assert sum(Request().experiment(data, "prer").learner.temperature < 1 for data in DATA) == 3
    assert {plan.of_table1(Request())[data, "prer-literal"].learner.labels for data in DATA} == {"none"}


def test_the_command_of_every_run_names_what_the_command_line_knows(files):
    page = files["docs/reproducibility/runs.md"]
    commands = re.findall(r"`prer reproduce (\w+) --only ([\w,-]+)[^`]*`", page)
    assert len(commands) == page.count("`prer reproduce ") > 150
    for part, only in commands:
        request = Request(only=only.split(","), variants=variants.NAMES)
        request.check()
        assert NEEDED[part](request)


def test_a_sign_for_each_verdict(files, recorded):
    outcomes = recorded[1]["significance"]
    block = files[reproducibility.FRONT].split("## Is PRER better than the others?")[1].split("\n\n")[1]
    (_, *others), _, *rows = in_markdown(block)
    titles = {title: method for method, title in reproducibility.front_page.titles_of(outcomes).items()}
    assert len(rows) == 6 and len(others) == 9
    verdicts = {"+": "better", "=": "not worse", "?": "not decided", "-": "worse"}
    for row, *cells in rows:
        own, _, label = row.rpartition(", ")
        for other, cell in zip(others, cells, strict=True):
            for data, sign in zip(DATA, cell.split(), strict=True):
                tests = significance.comparisons(outcomes, data, label.lower(), 0.25, titles[own])
                assert tests[titles[other]].verdict == verdicts[sign]


def test_the_same_seeds_twice_and_points_of_the_search(files):
    rows = {(row[0], row[1]): row for row in in_markdown(files["docs/reproducibility/twice.md"])[2:]}
    assert len(rows) == 4 * (6 + 6) and rows["KMNIST-10k", "PRER + anchor"][3] == "0.40"
    points = {(row[0], row[1]): row for row in in_markdown(files["docs/reproducibility/searches.md"])[2:]}
    assert points["SVHN-46k", "PRER + anchor"][2:6] == ["34", "23", "2", "0"]
    assert points["CIFAR10", "PRER + anchor"][2:] == ["34", "23", "5", "0", "84.46", "-0.82", "hand"]
    assert [row[1] for row in points.values() if row[8] == "hand"] == ["PRER + anchor"]
    assert sum(int(row[5]) for row in points.values()) == 31


def test_differences_from_the_paper_are_those_of_the_code():
    table = plan.of_table1(Request())
    ours, literal = (table["mnist", method] for method in ("prer", "prer-literal"))
    assert ours.learner.anchor > 0 == literal.learner.anchor and literal.learner.sparsity_on == "z"
    labelled = {data for data in DATA if table[data, "prer"].learner.labels != "none"}
    assert labelled == {"cifar10"} and {table[data, "prer-no-anchor"].learner.labels for data in DATA} == {"none"}
    temperatures = {table[data, method].learner.temperature for data in DATA for method in ("prer", "prer-no-anchor")}
    assert temperatures == {0.7, 0.8, 0.9, 1.0}
    learner = literal.learner
    learner.start((1, 28, 28), (0, 1))
    assert (learner.encoder_(torch.rand(2, 8, 1, 28, 28)) < 0).any()  # no ReLU at the end
    learner.density_.add(torch.ones(2), learner.address_)
    z = torch.cat([torch.randn(2, 64, 50), 5 + torch.randn(2, 64, 50)], 1)  # the first half is no sample of the whole
    learner.density_.start(z, torch.zeros(2, 128, dtype=torch.long))
    (level, *_) = learner.density_.parts
    assert torch.allclose(level.mean[:, 0], torch.zeros(2, 50), atol=1e-4)
    assert torch.equal(level.order[0], level.order[1])


TABLES_OF_THE_PAPER = ("-10.09 ± 2.46", "82.67 ± 0.94", "-0.46 ± 0.17", "98.68 ± 0.29", "1,279,000", "8,180,000")


def test_the_document_says_what_has_run_and_what_has_not(tmp_path):
    outcomes_on_mnist(tmp_path)
    request = Request(variants=variants.NAMES)
    outcomes = {name: existing(NEEDED[name](request), tmp_path) for name in reproducibility.SECTIONS}
    of_claims = [outcome.folder.path.name for outcome in outcomes["claims"].values()]
    clocks = {"claims": Clock([*of_claims[:9], "other"], 12, 312.4), "table2": Clock(["x"], 1, 9.0)}
    text = "".join(reproducibility.files(request, outcomes, clocks).values())
    assert f"9 of these {len(of_claims)} runs come from one command, which took 312 s for 10 runs, 12 at a" in text
    assert text.count("from one command, which") == 1  # none of those of table 2 is a row
    assert "| PRER + anchor | -0.50 ± 0.25 | 98.92 ± 0.36 | not run |" in text
    assert "`prer reproduce table1 --only mnist,prer`" in text and "| 0 to 2 | 12.5 | CPU" in text
    assert (
        "`prer reproduce table2 --only cifar10,gem`" in text and "`prer reproduce claims --only mnist,pixels`" in text
    )
    line = "- PRER + anchor, our numbers against the paper's (Welch's t-test): "
    line += "no difference found (MNIST BWT, MNIST Accuracy).\n"
    assert f"# Significance\n\n{line}" in text and "## Answers" not in text
    assert "task-incremental" in text and "(../figure2.png), made by `prer reproduce figure2`" in text
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
    page = reproducibility.files(request, outcomes, {})["docs/reproducibility/runs.md"]
    assert page.count("A commit that ends in -dirty") == said


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
    """What the script writes into the current folder, in one text."""
    monkeypatch.setattr("sys.argv", ["reproducibility.py", *map(str, arguments)])
    reproducibility.main()
    paths = [Path("REPRODUCIBILITY.md"), *sorted(Path("docs/reproducibility").glob("*.md"))]
    return "".join(path.read_text("utf-8") for path in paths)


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
