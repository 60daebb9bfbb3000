"""What the paper says differently in different places."""

import re

import pytest
from support.benchmarks import script

from prer.paper import METHODS
from prer.paper.published import TABLE1, Cost

inconsistencies = script("inconsistencies")


def test_statements_of_the_paper_that_its_numbers_contradict(monkeypatch):
    behind, er, memory, margin, robust = inconsistencies.against_the_text()
    places = ["CIFAR10 BWT, LWF -24.77", "KMNIST Accuracy, LWF 94.44", "KMNIST Accuracy, EWC 95.53"]
    assert [place in behind for place in places] == [True] * 3 and behind.count(" and Naive ") == 4
    assert er.endswith("CIFAR10 Accuracy, ER 82.22 and GEM 82.69.") and memory.endswith("CIFAR10, 8,180K and 7,680K.")
    assert margin.endswith(": MNIST BWT, ER p 0.35; KMNIST BWT, LWF p 0.07; KMNIST BWT, EWC p 0.10.")
    assert re.findall(r"of (\w+) ([\d.]+\d)", robust) == [("LWF", "0.30"), ("GEM", "0.69"), ("ER", "0.73")]
    assert [line[:15] for line in inconsistencies.repeated()] == ["EWC on CIFAR10:"]
    assert [line[:13] for line in inconsistencies.impossible()] == ["EWC on MNIST:"]
    monkeypatch.setattr(inconsistencies, "TABLE1", {"mnist": {m: TABLE1["mnist"][m] for m in METHODS}})
    monkeypatch.setattr(inconsistencies, "TABLE2", {})
    assert len(inconsistencies.against_the_text()) == 1  # the margin to ER


@pytest.mark.parametrize(("kilofloats", "said"), [(834, 0), (827, 0), (825, 1), (800, 1), (843, 1)])
def test_a_number_of_table_2_is_its_formula_within_one_per_cent(monkeypatch, kilofloats, said):
    monkeypatch.setattr(inconsistencies, "TABLE2", {"mnist": {"er": Cost(kilofloats, 1)}})
    assert len(inconsistencies.costs()) == said
