"""Pages about run folders, and every figure of a page."""

import hashlib
from pathlib import Path

import numpy as np

from prer.report import figures
from prer.report.inline import svg


def page(*folders, **more):
    """The page about these folders."""
    from prer.report.page import build
    from prer.report.run import runs_in

    return build(*runs_in([Path(folder) for folder in folders]), **more)


def every_figure():
    """Every kind of figure, of the same arrays each time."""
    rng = np.random.default_rng(0)
    images, points = rng.integers(0, 256, (8, 3, 8, 8), np.uint8), rng.normal(size=(9, 2))
    R = np.where(np.tri(4) > 0, rng.uniform(90, 95, (2, 4, 4)), np.nan)
    yield figures.matrix(R.mean(0))
    yield figures.over_time(R)
    yield figures.losses(np.array([[1e4], [1.0], [0.5], [0.4]]), [0, 2], "flow")
    yield figures.seconds({"flow": [1.0, 2.0], "head": [0.5, 0.0]})
    yield figures.memory([1000, 2000], [0, 500])
    yield figures.agreement(np.array([[99.0, 50.0], [np.nan, 98.0]]), ["$a_", "_😀<b>"], [True, False])
    yield figures.images({"real": images, "samples": images[:, :1], "vectors": points})
    yield figures.embeddings(points, points + 1, points + 2, "class 1")
    yield figures.trade_off([0, 10, 1e6], [90, 91, 92], ["_a", "b", "b"], "floats")


def digests():
    """The checksum of each figure as it is written into a page."""
    return [hashlib.sha256(svg(figure).encode()).hexdigest() for figure in every_figure()]
