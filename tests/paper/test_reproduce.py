"""`prer reproduce` from end to end, on the digits with hardly any training."""

import csv
import json

import numpy as np
import pytest
from support.benchmarks import script
from support.commands import reproduced
from support.fake_runs import fake_run_of

from prer.paper import plan
from prer.paper.plan import Request
from prer.paper.reproduce import LARGE, clocks
from prer.runs.folder import RunFolder

pytestmark = pytest.mark.usefixtures("quick")
FAST = ("--fast", "--seeds", "2", "--device", "cpu")


def test_table_1_runs_what_is_missing_and_keeps_what_is_not(capsys, tmp_path):
    out, _ = reproduced(capsys, "table1", *FAST, "--only", "naive,prer", "--workers", "2")
    assert "runs: 2; to do: 2" in out and "smoke test" in out
    for name in ("table1.md", "table1.tex", "table1.csv", "table1-diagonal.csv"):
        assert f"runs/{name}" in out and (tmp_path / "runs" / name).exists()
    (folder,) = (tmp_path / "runs").glob("digits-prer-*")
    result = RunFolder(folder).result
    rows = {row[""]: row for row in csv.DictReader((tmp_path / "runs/table1.csv").read_text("utf-8").splitlines())}
    assert float(rows["PRER"]["digits Accuracy"]) == result["accuracy"]["mean"]
    assert float(rows["PRER"]["digits BWT, sd"]) == result["bwt"]["std"]
    assert rows["PRER, the paper"]["digits BWT"] == "-"
    clock = json.loads((tmp_path / "runs/clocks.json").read_text("utf-8"))["table1"]
    assert (len(clock["folders"]), clock["workers"]) == (2, 2) and clock["seconds"] > 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/*.json*")}
    again, _ = reproduced(capsys, "table1", *FAST, "--only", "naive,prer")
    assert "to be made" not in again and again.splitlines()[-1] == out.splitlines()[-1]
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/*.json*")}
    (folder / "result.json").unlink()
    assert "to do: 1" in reproduced(capsys, "table1", *FAST, "--only", "naive,prer")[0]
    assert RunFolder(folder).result["digest"] == result["digest"]
    assert clocks(tmp_path / "runs")["table1"]._asdict() == clock  # what made most of them


@pytest.mark.parametrize(
    "text", ["", "[]", '{"t": 3}', '{"t": {"folders": 1, "workers": 1, "seconds": 1}}', '{"t": {}}']
)
def test_damaged_clocks_are_ignored(tmp_path, text):
    (tmp_path / "clocks.json").write_text(text)
    assert clocks(tmp_path) == {}


@pytest.mark.slow
def test_everything_at_once_and_the_document_about_it(capsys, monkeypatch, tmp_path):
    out, _ = reproduced(capsys, "all", "--fast", "--only", "prer")
    assert "runs/table2.md" in out and "runs/claims.md" not in out
    skipped = [
        f"{name} is skipped because it needs many runs; to run it: prer reproduce {name} --fast" for name in LARGE
    ]
    assert out.splitlines()[-len(skipped) :] == skipped
    monkeypatch.setattr("sys.argv", ["reproducibility.py", "runs", "--fast"])
    script("reproducibility").main()
    text = (tmp_path / "REPRODUCIBILITY.md").read_text("utf-8")
    text += (tmp_path / "docs/reproducibility/runs.md").read_text("utf-8")
    assert "## Table 2" in text and "not run" in text and "--only digits,prer --fast" in text


def test_missing_data_is_named_in_the_cells(capsys, tmp_path):
    fake_run_of(tmp_path / "runs", plan.of_table1(Request())["mnist", "prer"], [99.0] * 5, [-1.0] * 5)
    out, err = reproduced(capsys, "table1", "--only", "mnist,prer,naive", code=1)
    assert "mnist: mnist is not downloaded and PRER_OFFLINE is set" in out and "1 run is missing" in err
    text = (tmp_path / "runs/table1.md").read_text("utf-8")
    assert (
        "| Naive | failed: mnist is not downloaded" in text
        and "| PRER + anchor | -1.00 ± 0.00 | 98.33 ± 0.00 |" in text
    )


def test_a_failed_run_is_named_in_its_cell(capsys, tmp_path, monkeypatch):
    tiny = Request.experiment
    monkeypatch.setattr(Request, "experiment", lambda s, d, m, o=(): tiny(s, d, m, (*o, "learner.lr=1e30")))
    out, err = reproduced(capsys, "table1", *FAST, "--only", "naive", code=1)
    assert "| Naive | failed: the loss of seed" in (tmp_path / "runs/table1.md").read_text("utf-8")
    assert "Failed: Naive on digits: the loss of seed" in out and "then run the same command again" in err
    assert (
        "Failed: Naive on digits: the loss of seed"
        in reproduced(capsys, "table1", *FAST, "--only", "naive", "--finished")[0]
    )


def test_data_from_a_folder(capsys, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, size=(100, 28, 28), dtype=np.uint8)
    np.savez(tmp_path / "kmnist100.npz", x=x, y=np.repeat(np.arange(10), 10))
    usual = Request().experiment("kmnist", "naive", ["stream.data=kmnist100.npz", "seeds=2", "device=cpu"])
    fake_run_of(tmp_path / "runs", usual, [90.0] * 2, [-2.0] * 2)
    command = ("--only", "kmnist,naive", "--data", "kmnist=kmnist100.npz", "--seeds", "2", "--device", "cpu")
    out, _ = reproduced(capsys, "table1", *command)
    assert (
        "KMNIST-100 BWT" in out
        and "KMNIST-100 is read from kmnist100.npz, which is not the paper's data, KMNIST." in out
    )


def test_only_limits_what_is_run_and_shown_while_files_hold_all_runs(capsys, tmp_path):
    experiments = plan.of_table1(Request(seeds="3")) | plan.of_significance(Request(seeds="3"))
    noise = np.array([0.0, 0.1, -0.1])
    for i, method in enumerate(("prer", "ewc", "er", "gem", "lwf", "naive")):
        for data in ("mnist", "cifar10"):
            fake_run_of(tmp_path / "runs", experiments[data, method], 99 - i - noise * i, -i + noise * i)
    out, _ = reproduced(capsys, "table1", "--only", "mnist, prer", "--seeds", "3")
    assert "CIFAR10" not in out and "ER" not in out.replace("PRER", "") and "to be made" not in out
    rows = {row[""]: row for row in csv.DictReader((tmp_path / "runs/table1.csv").read_text("utf-8").splitlines())}
    assert rows["ER"]["CIFAR10 BWT"] == "-2.0" and rows["GEM"]["KMNIST BWT"] == "not run"
    assert float(rows["PRER + anchor"]["MNIST Accuracy"]) == 99
    reproduced(capsys, "significance", "--finished", "--seeds", "3")
    every = (tmp_path / "runs/significance.csv").read_text("utf-8")
    out, _ = reproduced(capsys, "significance", "--only", "cifar10,prer,ewc", "--finished", "--seeds", "3")
    assert "PRER + anchor - EWC" in out and "anchor - ER" not in out and "MNIST" not in out
    assert (tmp_path / "runs/significance.csv").read_text("utf-8") == every
    out, _ = reproduced(capsys, "claims", "--only", "mnist,prer", "--finished", "--seeds", "3")
    assert "ER +2.00 (better, p " in out and "CIFAR10" not in out


def test_a_clock_that_cannot_be_written_is_a_warning(capsys, tmp_path):
    (tmp_path / "runs/clocks.json").mkdir(parents=True)
    out, _ = reproduced(capsys, "table1", *FAST, "--only", "naive")
    assert "warning: cannot write runs/clocks.json: " in out and (tmp_path / "runs/table1.csv").exists()


def test_a_damaged_result_must_be_deleted_first(capsys, tmp_path):
    experiment = plan.of_table1(Request(seeds="3"))["mnist", "prer"]
    folder = fake_run_of(tmp_path / "runs", experiment, [99.0] * 3, [-1.0] * 3)
    (folder.path / "result.json").write_text("{")
    out, err = reproduced(capsys, "table1", "--only", "mnist,prer", "--seeds", "3", code=1)
    assert "result.json cannot be read; delete it and run again" in out
    assert err == "prer: 1 run is missing; fix the errors above, then run the same command again\n"


def test_the_option_finished_runs_nothing(capsys, tmp_path):
    usual = Request().experiment("kmnist", "naive", ["stream.data=kmnist10k", "seeds=2"])
    fake_run_of(tmp_path / "runs", usual, [90.0] * 2, [-2.0] * 2)
    before = sorted((tmp_path / "runs").iterdir())
    out, _ = reproduced(capsys, "all", "--finished", "--data", "kmnist=kmnist10k", "--seeds", "2")
    assert "KMNIST-10k BWT" in out and "not run" in out
    assert "| Naive | not run" in (tmp_path / "runs/table1.md").read_text("utf-8")
    assert [path for path in sorted((tmp_path / "runs").iterdir()) if path.is_dir()] == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("table1", "--only", "mnits"), "--only: unknown name 'mnits', did you mean 'mnist'?"),
        (("table1", "--only", "mnist,perr"), "did you mean 'prer'?"),
        (("claims", "--only", "gausian"), "did you mean 'gaussian'?"),
        (("table2", "--only", "kmnist"), "--only kmnist selects nothing of table2"),
        (("figure2", "--only", "ewc"), "selects nothing of figure2"),
        (("table1", "--only", "gaussian"), "selects nothing of table1"),
        (("table1", "--data", "mnist"), "give NAME=PATH"),
        (("table1", "--data", "mnits=."), "unknown data set 'mnits', did you mean 'mnist'?"),
        (("table1", "--data", "mnist=nowhere"), "--data mnist=nowhere: the path does not exist"),
        (("table1", "--seeds", "many"), "give a whole number"),
        (("table1", "--fast", "--only", "mnist"), "unknown name 'mnist'"),
        (("table1", "--device", "gpu"), "gpu"),
    ],
)
def test_wrong_input_is_refused_before_anything_runs(capsys, tmp_path, arguments, sentence):
    out, err = reproduced(capsys, *arguments, code=2)
    assert sentence in err and not out and not (tmp_path / "runs").exists()
