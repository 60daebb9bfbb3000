"""What learners keep of past tasks: how much, which samples, and that it is a copy."""

import gc
import weakref

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from support.learners import HEADS, REHEARSE, SEEDS, make, numbered, started, vectors
from support.one_seed import midway

from prer import learn
from prer.address import Address
from prer.learners import LEARNERS, Learner
from prer.learners.memory import SampleMemory, chosen, smallest
from prer.nn.stacked import floats
from prer.testing.tensors import reachable_tensors


def test_a_memory_holds_copies_and_pads_what_becomes_wider():
    memory, x, wide = SampleMemory(), torch.randn(2, 3, 4), torch.randn(2, 5, 6)
    assert len(memory) == 0
    memory.add(x=x, logits=x)
    noted = x.clone()
    x.zero_()
    assert torch.equal(memory.get_buffer("x"), noted)
    memory.add(x=torch.ones(2, 5, 4), logits=wide)
    assert len(memory) == 8
    assert torch.equal(memory.get_buffer("logits")[:, :3], F.pad(noted, (0, 2)))
    assert torch.equal(memory.get_buffer("logits")[:, 3:], wide)
    memory.add(x=torch.ones(2, 1, 4), logits=torch.ones(2, 1, 2))
    assert torch.equal(memory.get_buffer("logits")[:, 8], torch.tensor([1.0, 1, 0, 0, 0, 0]).expand(2, -1))
    index = torch.tensor([[1, 3], [0, 2]])
    assert torch.equal(memory.at(index)["x"], torch.stack([memory.get_buffer("x")[s, index[s]] for s in range(2)]))
    memory.keep(index)
    assert len(memory) == 2
    assert floats(memory) == 2 * (4 + 6)
    assert torch.equal(memory.get_buffer("x")[1], noted[1, [0, 2]])


def test_every_sample_of_a_memory_is_drawn_equally_often():
    memory = SampleMemory()
    memory.add(x=torch.zeros(2, 7, 1))
    drawn = memory.draw(50, 140, Address(SEEDS) / "draw")
    assert drawn.shape == (2, 50, 140)
    for row in drawn:
        assert stats.chisquare(np.bincount(row.flatten().numpy(), minlength=7)).pvalue > 1e-4
    assert not torch.equal(drawn[0], drawn[1])


def test_the_smallest_of_each_group_are_found():
    key = torch.tensor([[0.5, 0.1, 0.9, 0.3, 0.2, 0.8], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]])
    group = torch.tensor([[0, 2, 0, 2, 2, 0], [2, 2, 2, 0, 0, 0]])
    assert [set(row.tolist()) for row in smallest(key, 2, group)] == [{0, 5, 1, 4}, {3, 4, 0, 1}]
    next_to = torch.tensor([[0, 1, 0, 1, 1, 0]] * 2)  # the keys of neighbouring groups overlap
    assert [set(row.tolist()) for row in smallest(key, 2, next_to)] == [{0, 5, 1, 4}, {0, 2, 1, 3}]
    assert [set(row.tolist()) for row in smallest(key, 3)] == [{1, 4, 3}, {0, 1, 2}]
    assert smallest(key, 0).shape == (2, 0)
    assert smallest(key, 99, group).shape == (2, 6)


def test_chosen_rows_are_different_ones_of_the_training_part():
    task = vectors()[0]
    rows = chosen(task, 10, Address(SEEDS) / "x")
    assert rows.shape == (2, 10)
    for mine, all_of_them, tested in zip(rows, task.train_rows(SEEDS), task.test_rows(SEEDS), strict=True):
        assert len(set(mine.tolist())) == 10
        assert set(mine.tolist()) <= set(all_of_them.tolist())
        assert not set(mine.tolist()) & set(tested.tolist())
    assert not torch.equal(rows, chosen(task, 10, Address(SEEDS) / "y"))
    assert chosen(task, 999, Address(SEEDS)).shape == task.train_rows(SEEDS).shape
    assert chosen(task, 0, Address(SEEDS)).shape == (2, 0)


# -- learners that keep samples ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - {"joint"}))
def test_a_learner_keeps_copies_and_does_not_hold_the_stream(name):
    stream = vectors()
    learner = started(make(name), stream, SEEDS)
    for task in stream:
        learner.learn(task)
    before = {key: t.clone() for key, t in learner.state().items()}
    of_stream = {t.untyped_storage().data_ptr() for task in stream for t in (task.x, task.y)}
    held = reachable_tensors(learner)
    assert not of_stream & {t.untyped_storage().data_ptr() for t in held}
    for part in learner.memory().values():
        for key, t in part.state_dict().items():
            assert t.untyped_storage().nbytes() == t.nbytes, key  # no view of something larger
    for task in stream:
        task.x.fill_(7)
        task.y.fill_(0)
    assert all(torch.equal(t, before[key]) for key, t in learner.state().items())
    gone = weakref.ref(stream[0].x)
    del stream, task, held
    gc.collect()
    assert gone() is None


# Numbers kept with one sample, where the widest head has 4 outputs.
NOTES = {"lwf": 1 + 4, "gem": 1, "agem": 2, "er": 16, "replay": 4, "der": 3 + 4}


@pytest.mark.parametrize("name", sorted(REHEARSE))
@pytest.mark.parametrize("size", [0, 1, 10, 60])
def test_memory_is_bounded_and_counted_to_the_last_number(name, size):
    stream = vectors()
    learner = make(name, size=size, epochs=0)
    result = learn(stream, learner, seeds=SEEDS, device="cpu")
    trained = [16 * len(task.labels) for task in stream]  # 80 % of 20
    each = [min(size, n) for n in trained]
    in_all = [min(size, int(n)) for n in np.cumsum(trained)]
    expected = in_all if name in ("replay", "der") else np.cumsum(each).tolist()
    assert result.memory_samples == expected
    assert result.memory_floats[-1] == expected[-1] * (5 + NOTES[name])
    really = [t for part in learner.memory().values() for t in part.state_dict().values()]
    assert sum(t.numel() for t in really) == len(SEEDS) * result.memory_floats[-1]
    assert all(t.shape[:2] == (len(SEEDS), expected[-1]) for t in really)


@pytest.mark.parametrize("name", ["replay", "der"])
def test_a_reservoir_keeps_every_sample_ever_seen_with_the_same_chance(name):
    stream = numbered([5, 5, 20, 20, 10, 10], [[0, 1], [2, 3], [4, 5]])
    seeds, size = tuple(range(160)), 9
    learner = started(make(name, size=size, epochs=0, embedding=2, hidden=(1,)), stream, seeds)
    rows = []
    for task in stream:
        learner.learn(task)
        rows.append(task.train_rows(seeds))
    rows = torch.cat(rows, dim=1)  # which sample was at which position of the stream [S, N]
    kept = learner.kept_.get_buffer("x")[..., 0].round().long()
    assert all(len(set(row.tolist())) == size for row in kept)
    hits = (rows.unsqueeze(2) == kept.unsqueeze(1)).any(2)
    assert (hits.sum(1) == size).all()
    counts, N = hits.sum(0).double().numpy(), rows.shape[1]
    expected = len(seeds) * size / N
    statistic = ((counts - expected) ** 2 / expected).sum() * (N - 1) / (N - size)  # drawn without replacement
    low, high = stats.chi2.ppf([1e-4, 1 - 1e-4], N - 1)
    assert low < statistic < high, (low, statistic, high)


@pytest.mark.parametrize("name", ["der", "er", "lwf", "replay"])
def test_the_gradient_of_the_replay_loss_reaches_the_encoder(name):
    stream = vectors()
    learner = started(make(name), stream, SEEDS)
    batch = midway(learner, stream, 4)
    held = learner.loss(batch) - Learner.loss(learner, batch)
    gradients = torch.autograd.grad(held.sum(), list(learner.encoder_.parameters()))
    assert all((g.flatten(1).abs().amax(1) > 1e-6).all() for g in gradients)


@pytest.mark.parametrize("name", sorted(REHEARSE - {"gem"}))
@HEADS
def test_notes_are_the_outputs_of_the_learner_at_the_end_of_the_task(name, stream):
    learner = started(make(name, size=9), stream, SEEDS)
    learner.learn(stream[0])
    with torch.no_grad():
        z = learner.encoder_(learner.inputs_(learner.kept_.get_buffer("x")))
        logits = learner.heads_[0](z)
    notes = dict(learner.kept_.named_buffers())
    assert len(learner.kept_) == 9
    torch.testing.assert_close(notes.get("z", z), z, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(notes.get("logits", logits), logits, atol=1e-5, rtol=1e-4)
    for seed, number in enumerate(SEEDS if "y" in notes else ()):
        rows = stream[0].train_rows(SEEDS)[seed]
        for x, y in zip(notes["x"][seed], notes["y"][seed], strict=True):
            (same,) = [int(r) for r in rows if torch.equal(stream[0].x[r], x)]
            assert int(stream[0].y[same]) == int(y), number
