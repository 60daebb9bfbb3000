"""The confusion matrix of a run, as a person reads it."""

import numpy as np
import pytest

from prer.report.confusion import Confusion

COUNTS = [
    [[8, 2, 0], [1, 9, 0], [0, 0, 0]],
    [[6, 0, 4], [0, 10, 0], [0, 0, 0]],
]


@pytest.fixture
def confusion():
    return Confusion.of({"confusion": COUNTS, "classes": ["cat", "dog", "cow"]})


def test_shares_are_means_over_seeds_of_per_cents_of_each_true_class(confusion):
    np.testing.assert_allclose(confusion.shares[:2], [[70, 10, 20], [5, 95, 0]])
    assert np.isnan(confusion.shares[2]).all()  # no test samples
    np.testing.assert_allclose(confusion.accuracies[:, :2], [[80, 90], [60, 100]])


def test_each_class_says_what_it_is_mistaken_for(confusion):
    rows = confusion.rows
    assert [row["label"] for row in rows] == ["cat", "dog", "cow"]
    assert [(row["mistaken"], row["share"]) for row in rows] == [("cow", 20.0), ("cat", 5.0), (None, 0.0)]
    assert [row["accuracies"] for row in rows] == [[80.0, 60.0], [90.0, 100.0], []]


def test_the_summary_names_the_best_and_the_worst_class(confusion):
    expected = "Highest accuracy: class dog, 95.0 %. Lowest: class cat, 70.0 %, mistaken for cow in 20.0 %."
    assert confusion.summary == expected
    nothing = {"confusion": [[[0, 0], [0, 0]]], "classes": [0, 1]}
    assert Confusion.of(nothing).summary == ""
    perfect = {"confusion": [[[3, 0], [0, 4]]], "classes": [0, 1]}
    assert Confusion.of(perfect).summary == "Highest accuracy: class 0, 100.0 %. Lowest: class 0, 100.0 %."


def test_a_long_label_is_shortened():
    (label, _) = Confusion.of({"confusion": [[[1, 0], [0, 1]]], "classes": ["x" * 5000, "y"]}).labels
    assert len(label) < 500
