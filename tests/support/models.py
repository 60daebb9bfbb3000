"""Finished runs with a model, and inputs for it."""

import numpy as np

from prer.cli.main import main

TINY = ["learner.epochs=3", "learner.epochs_autoencoder=3", "learner.density.epochs=2", "learner.density.blocks=2"]


def finished_run(out, *settings):
    """The folder of a finished run of two seeds."""
    main(["run", *settings, "--seeds", "2", "--device", "cpu", "--quiet", "--out", str(out)])
    return next(path.parent for path in out.glob("*/result.json"))


def run_of_vectors(folder):
    """The folder of a finished run on vectors, their samples and labels."""
    rng = np.random.default_rng(0)
    y = np.array(["a,b", "c", "<d>", "e"])[np.arange(160) % 4]
    x = rng.normal(size=(160, 3)) * 5 + 100 + 20 * (np.arange(160) % 4)[:, None]
    np.savez(folder / "data.npz", x=x, y=y)
    return finished_run(folder / "runs", f"stream.data={folder / 'data.npz'}", "like=digits", *TINY[:3]), x, y


def random_images():
    """Images of the shape of digits."""
    return np.random.default_rng(1).integers(0, 256, size=(20, 8, 8), dtype=np.uint8)
