"""Figure 2: what PRER remembers, the same to the byte."""

import hashlib

import numpy as np
import pytest
import torch
from matplotlib import rc_context
from support.commands import reproduced

from prer.paper import figure2
from prer.runs.run import load_model

pytestmark = pytest.mark.usefixtures("quick")
FAST = ("--fast", "--seeds", "2", "--device", "cpu")


def test_the_figure_is_the_same_to_the_byte(capsys, tmp_path):
    digests = []
    for set_before in ({}, {"text.usetex": True, "axes.facecolor": "red"}):
        with rc_context(set_before):
            out, _ = reproduced(capsys, "figure2", *FAST)
        digests.append(
            [hashlib.sha256((tmp_path / f"runs/figure2.{k}").read_bytes()).hexdigest() for k in figure2.DATES]
        )
        assert "Written: runs/figure2.svg, runs/figure2.pdf, runs/figure2.png" in out
    assert digests[0] == digests[1]
    (folder,) = (tmp_path / "runs").glob("digits-prer-*")
    what = figure2.remembered(folder)
    assert what.names == [str(k) for k in range(10)] and what.decoded.shape == what.images.shape == (10, 8, 1, 8, 8)
    assert np.bincount(what.sampled_class).tolist() == [200] * 10 and len(what.real) == len(what.real_class)
    assert figure2.caption(what) in " ".join(out.split()) and what.temperature == 1
    learner, _ = load_model(folder)
    classes, address = torch.from_numpy(what.sampled_class).expand(2, -1), learner.address_ / "figure" / "embeddings"
    assert np.array_equal(what.sampled, learner.density_.sample(classes, address, temperature=1)[0])
    (folder / "model/model.safetensors").unlink()
    out, err = reproduced(capsys, "figure2", *FAST, code=1)
    assert "no figure: " in out and "1 run is missing" in err


def test_embeddings_are_projected_on_the_plane_of_the_real_ones():
    real = np.random.default_rng(0).normal(size=(60, 3)) * [5, 2, 0.1] + 7
    a, b = figure2.projected(real, real[::-1] + np.array([0, 0, 3]))
    assert np.allclose(a.mean(0), 0) and np.allclose(a.std(0), np.linalg.svd(real - real.mean(0))[1][:2] / 60**0.5)
    assert np.abs(b[::-1] - a).max() < 1


def test_the_spread_of_samples_is_that_of_each_class():
    rng, of = np.random.default_rng(0), np.arange(3000) % 3
    real = rng.normal(size=(3000, 4)) * (of + 1)[:, None] + 100 * of[:, None]
    sampled = real * np.array([0.5, 1, 2])[of][:, None] + 7
    sampled[:, 3] = sampled[0, 3]  # one dimension of four does not vary
    what = figure2.Figure2Data(["a", "b", "c"], real, of, sampled, of, np.zeros(0), np.zeros(0), 0.8)
    np.testing.assert_allclose(figure2.spreads(what), np.array([0.5, 1, 2]) * 0.75**0.5, rtol=0.02)
    said = "Sampled at temperature 0.8, as in training, the embeddings of a class have 0.43 to 1.74 times the standard"
    assert figure2.caption(what).startswith(said)


def test_images_have_a_row_for_each_class():
    images = np.arange(6).reshape(2, 3, 1, 1, 1) / 10.0
    found = figure2._rows(images)
    assert found.shape == (3, 5, 3) and np.allclose(found[::2, ::2, 0], [[0, 0.1, 0.2], [0.3, 0.4, 0.5]])
    assert found[1].min() == 1 and figure2._rows(np.full((1, 1, 3, 2, 2), 2.0)).max() == 1
