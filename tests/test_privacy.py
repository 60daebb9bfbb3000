"""How near generated samples come to real ones, and what is said of it."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from prer.cli.main import main
from prer.errors import InputError
from prer.learners import LEARNERS
from prer.learners.prer import PRER
from prer.models.privacy import check, nearest
from prer.runs.learn import learn
from prer.runs.run import load_model
from prer.streams.stream import Stream


def images(n=240):
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, size=(n, 8, 8), dtype=np.uint8), np.arange(n) % 4


class Parrot(PRER):
    """Remembers the first training samples of each seed."""

    def generate(self, ids, address):
        """Copies."""
        rows = [task.train_rows(address.seeds)[:, : ids.shape[1]] for task in self.stream_]
        return (
            torch.cat([task.samples(at)[0] for task, at in zip(self.stream_, rows, strict=True)], dim=1).float() / 255
        )


class Fresh(PRER):
    """Makes new samples of the same kind."""

    def generate(self, ids, address):
        """Noise, as the images are."""
        return address.uniform(ids.shape[1], 1, 8, 8)


SMALL = {"epochs": 1, "epochs_autoencoder": 1, "epochs_flow": 1, "blocks": 2, "embedding": 8, "channels": (2, 2)}


def test_the_nearest_is_the_nearest():
    rng = np.random.default_rng(1)
    x, among = rng.normal(size=(300, 7)), rng.normal(size=(90, 7))
    expected = np.sqrt(((x[:, None] - among[None]) ** 2).sum(-1)).min(1)
    np.testing.assert_allclose(nearest(torch.tensor(x), torch.tensor(among)), expected, rtol=1e-9)


def test_copies_are_found_out_and_new_samples_are_not():
    stream = Stream.split(*images(1200))
    found = {}
    for kind in (Parrot, Fresh):
        learner = kind(**SMALL)
        learner.stream_ = stream
        learn(stream, learner, seeds=2, device="cpu")
        found[kind] = check(learner, stream, count=400)
        assert found[kind]["expected"] == [80, 80]
    assert found[Parrot]["nearest"] == [100, 100]
    assert [smallest for smallest, _ in found[Parrot]["generated"]] == [0, 0]
    assert all(72 < share < 88 for share in found[Fresh]["nearest"])  # four standard errors


def test_distances_are_those_of_the_seed_s_own_parts():
    x, y = images()
    stream = Stream.split(x, y)
    learner = PRER(**SMALL)
    learn(stream, learner, seeds=[3], device="cpu")
    train, test = (
        np.concatenate([task.samples(part([3]))[0][0].flatten(1).numpy() for task, part in parts]) / 255
        for parts in ([(t, t.train_rows) for t in stream], [(t, t.test_rows) for t in stream])
    )
    assert len(train) + len(test) == len(x)
    expected = np.sqrt(((test[:, None] - train[None]) ** 2).sum(-1)).min(1)
    found = check(learner, stream, count=1000)["test"][0]
    np.testing.assert_allclose(found, [expected.min(), np.sort(expected)[(len(expected) - 1) // 2]], rtol=1e-5)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    settings = [f"learner.{key}={list(value) if isinstance(value, tuple) else value}" for key, value in SMALL.items()]
    main(["run", *settings, "--seeds", "2", "--device", "cpu", "--quiet", "--out", str(out)])
    return next(out.iterdir())


def test_the_command_says_what_it_means(finished, capsys):
    main(["privacy", str(finished), "-n", "40"])
    text = capsys.readouterr().out
    assert "test samples, never seen" in text and "no proof" in text


def test_a_model_is_loaded_as_it_was(finished):
    learner, stream = load_model(finished)
    saved = load_file(finished / "model" / "model.safetensors")
    state = learner.state()
    assert state.keys() == saved.keys()
    assert all(torch.equal(state[name], saved[name]) for name in saved)
    assert len(stream) == 5


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - {"prer", "dgr"}))
def test_who_generates_nothing_says_so(name):
    stream = Stream.split(np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 4)
    learner = LEARNERS[name](epochs=0, hidden=(4,), embedding=4)
    learn(stream, learner, seeds=1, device="cpu")
    with pytest.raises(InputError, match=f"{name} generates nothing"):
        check(learner, stream, count=5)
