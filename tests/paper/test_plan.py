"""Which runs a table needs."""

import numpy as np
from support.paper import MNIST

from prer.paper import ABLATION, DATA, METHODS, more_methods, plan, variants
from prer.paper.plan import Request
from prer.presets import experiment_file


def test_significance_takes_twenty_seeds_unless_told_otherwise():
    twenty, table = plan.of_significance(MNIST), plan.of_table1(MNIST)
    further = sorted(more_methods("mnist"), key=lambda method: method != plan.PLAIN)
    assert [m for _, m in twenty] == [*METHODS, *further] and {e.seeds for e in twenty.values()} == {tuple(range(20))}
    assert all(e.tables() | {"seeds": 5} == table[key].tables() | {"seeds": 5} for key, e in twenty.items())
    three = Request(only=("mnist",), seeds="3")
    assert plan.of_significance(three) == {k: e for k, e in plan.of_table1(three).items() if k[1] != "prer-literal"}
    fast = Request(fast=True)
    assert plan.of_significance(fast) == plan.of_table1(fast)  # the same runs: nothing more to wait for


def test_data_from_elsewhere_has_another_name(tmp_path):
    for name in ("kmnist10k", "mnist", "other.d"):
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / "x.npz", x=np.zeros((4, 2)), y=np.arange(4))
    request = Request(paths={"kmnist": str(tmp_path / "kmnist10k"), "mnist": str(tmp_path / "mnist")})
    assert [request.title(name) for name in ("mnist", "kmnist", "svhn")] == ["MNIST", "KMNIST-10k", "SVHN"]
    assert request.remarks(["mnist", "kmnist", "svhn"]) == [
        "MNIST is read from mnist, a local copy.",
        "KMNIST-10k is read from kmnist10k, which is not the paper's data, KMNIST.",
    ]
    assert request.experiment("kmnist", "prer").stream.data == str(tmp_path / "kmnist10k")
    assert Request(paths={"svhn": str(tmp_path / "other.d")}).title("svhn") == "other"


def test_the_files_of_prer_have_the_anchor_and_prer_without_it_is_a_variant():
    of_table, of_claims = plan.of_table1(Request()), variants.experiments(Request())
    assert all(of_table[data, "prer"].learner.anchor > 0 for data in DATA)
    assert all(of_table[key].learner.anchor == 0 for key in of_table if key[1] == plan.PLAIN)
    assert all(of_claims[data, "no-anchor"].learner.anchor == 0 for data in ABLATION)


def test_methods_that_are_not_in_the_paper_need_a_file(monkeypatch, tmp_path):
    for method in ("naive", "joint"):
        text = experiment_file("mnist", "naive").read_text("utf-8").replace("naive", method)
        (tmp_path / f"mnist-{method}.toml").write_text(text)
    monkeypatch.setattr("prer.paper.experiment_file", lambda data, method: tmp_path / f"{data}-{method}.toml")
    for part in (plan.of_table1, plan.of_table2, plan.of_significance):
        found = part(Request(only=("joint",)))
        assert list(found) == [("mnist", "joint")] and found["mnist", "joint"].learner.name == "joint"
