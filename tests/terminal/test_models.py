"""Models on the terminal."""

import numpy as np
from support.terminal import log

import prer
from prer.terminal.models import kept, show_model


def lesson(label, seed=0):
    return np.random.default_rng(seed).normal(size=(12, 3)), [label] * 12


def test_a_model_shows_hostile_labels_and_many_classes(tmp_path):
    model = prer.ContinualClassifier("ncm")
    for i in range(205):
        model.partial_fit(*lesson(f"\x1b[31m{i}" if i == 0 else f"class {i}"))
    model.model_.lessons[0]["when"] = model.model_.lessons[1]["when"] = "\x1b[2J"  # of a forged folder
    show_model(console := log(), tmp_path, model.model_, 1234)
    text = console.file.getvalue()
    assert "\x1b" not in text and "and 5 more classes" in text and "1.2 kB on disk" in text


def test_a_memory_of_samples_is_named():
    model = prer.ContinualClassifier(prer.Replay(size=5, epochs=1)).partial_fit(*lesson("a"))
    assert kept(model.model_).startswith("5 samples are kept; the memory of the past has ")
