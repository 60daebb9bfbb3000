"""A finished run with every kind of event."""

import pytest

from prer.cli.main import main

SETTINGS = ("learner.epochs=2", "learner.epochs_autoencoder=3", "learner.density.epochs=2", "learner.density.blocks=2")


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The folder of a short run of PRER on the digits, with seeds 3 and 8."""
    out = tmp_path_factory.mktemp("runs")
    main(["run", *SETTINGS, "--seeds", "3,8", "--device", "cpu", "--quiet", "--out", str(out)])
    return next(out.iterdir())
