"""How near generated samples come to real ones."""

import numpy as np
import pytest
import torch
from support.learners import make

from prer.errors import InputError
from prer.learners import LEARNERS
from prer.learners.prer import PRER
from prer.models.privacy import check, nearest
from prer.runs.learn import learn
from prer.streams.stream import Stream


def images(n=240):
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, size=(n, 8, 8), dtype=np.uint8), np.arange(n) % 4


class Parrot(PRER):
    """Generates the first training samples of each seed."""

    def generate(self, ids, address):
        """Copies."""
        rows = [task.train_rows(address.seeds)[:, : ids.shape[1]] for task in self.stream_]
        return (
            torch.cat([task.samples(at)[0] for task, at in zip(self.stream_, rows, strict=True)], dim=1).float() / 255
        )


class Fresh(PRER):
    """Generates new samples of the same distribution."""

    def generate(self, ids, address):
        """Noise, like the images."""
        return address.uniform(ids.shape[1], 1, 8, 8)


SMALL = {
    "epochs": 1,
    "epochs_autoencoder": 1,
    "density": {"epochs": 1, "blocks": 2},
    "embedding": 8,
    "channels": (2, 2),
}


def test_nearest_finds_the_smallest_distance():
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


def test_distances_are_those_of_the_split_of_the_seed():
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


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - {"prer", "dgr"}))
def test_learners_that_generate_nothing_are_refused(name):
    stream = Stream.split(np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 4)
    learner = make(name)
    learn(stream, learner, seeds=1, device="cpu")
    with pytest.raises(InputError, match=f"{name} cannot generate samples"):
        check(learner, stream, count=5)
