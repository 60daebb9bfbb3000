"""A table of four classes, with its label in the middle."""

import numpy as np
import pandas

COLUMNS = ["height", "width", "kind", "depth", "age"]
FEATURES = [name for name in COLUMNS if name != "kind"]


def table(n=160, seed=0):
    """Four classes that differ in each column by another amount, so that an order of columns matters."""
    rng, classes = np.random.default_rng(seed), np.arange(n) % 4
    frame = pandas.DataFrame({"height": classes, "width": -3 * classes, "depth": (classes * 7) % 4, "age": 90.0})
    frame = frame + rng.normal(size=(n, 4)) / 5
    frame.insert(2, "kind", np.array(["ant", "bee", "cat", "dog"])[classes])
    return frame
