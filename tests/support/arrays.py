"""Small arrays for tests of streams."""

import numpy as np


def vectors(n, width=3):
    return np.arange(n * width, dtype=np.float32).reshape(n, width)


def images(n, *shape, dtype=np.uint8):
    return np.random.default_rng(0).integers(0, 2 if np.dtype(dtype).kind == "f" else 256, (n, *shape)).astype(dtype)


X, Y = vectors(8), np.repeat([0, 1], 4)
IMAGES = images(8, 8, 8)
FOUR = np.repeat(np.arange(4), 3)
NAMES = np.array(["ant", "bee", "cat", "dog"])


def parts(task, seed=0):
    """The rows that a seed learns from, and those that it is tested on."""
    return task.train_rows([seed])[0].tolist(), task.test_rows([seed])[0].tolist()
