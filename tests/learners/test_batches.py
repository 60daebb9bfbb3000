"""The batches of an epoch: each row once at most, in an order that the address alone gives."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prer.learners.naive import Naive

few = settings(max_examples=60, deadline=None, database=None)


def learner(seeds, batch=4):
    naive = Naive(batch=batch)
    naive.start((3,), seeds)
    return naive


@few
@given(st.integers(2, 50), st.integers(2, 60), st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True))
def test_an_epoch_is_cut_into_whole_batches_that_show_no_row_twice(n, batch, seeds):
    rows = torch.stack([torch.arange(n) + 1000 * seed for seed in seeds])
    naive = learner(seeds, batch)
    batches = naive.batches(rows, naive.address_ / 0 / "classifier" / 0)
    size = min(batch, n)
    assert batches.shape == (len(seeds), n // size, size)
    for of_seed, own in zip(batches.flatten(1).tolist(), rows.tolist(), strict=True):
        assert len(set(of_seed)) == len(of_seed)
        assert set(of_seed) <= set(own)


def test_an_address_gives_the_same_batches_whatever_happened_before():
    rows = torch.arange(40).expand(2, -1)
    first, second = learner((0, 1)), learner((0, 1))
    for epoch in range(3):  # history of the first, which the second has not
        first.batches(rows, first.address_ / 0 / "flow" / epoch)
    place = (3, "classifier", 7)
    batches = [n.batches(rows, n.address_ / place[0] / place[1] / place[2]) for n in (first, second)]
    assert batches[0].equal(batches[1])


def test_each_seed_task_phase_and_epoch_has_an_order_of_its_own():
    rows, orders = torch.arange(40).expand(3, -1), set()
    naive = learner((0, 1, 11))
    for task, phase, epoch in [(0, "a", 0), (0, "a", 1), (0, "b", 0), (1, "a", 0), (1, "a", 1), (11, "a", 1)]:
        batches = naive.batches(rows, naive.address_ / task / phase / epoch)
        orders |= {tuple(order) for order in batches.flatten(1).tolist()}
    assert len(orders) == 3 * 6


def test_a_seed_meets_the_same_batches_whoever_runs_beside_it():
    alone, beside = learner((7,)), learner((3, 7, 9))
    rows = torch.arange(40)
    one = alone.batches(rows.expand(1, -1), alone.address_ / 0 / "a" / 0)
    three = beside.batches(rows.expand(3, -1), beside.address_ / 0 / "a" / 0)
    assert one[0].equal(three[1])
