"""The batches of an epoch: each row once at most, in an order that the address alone gives."""

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
    naive = learner(seeds, batch)
    batches = naive._batches(n, naive.address_ / 0 / "classifier" / 0)
    size = min(batch, n)
    assert batches.shape == (len(seeds), n // size, size)
    for of_seed in batches.flatten(1).tolist():
        assert len(set(of_seed)) == len(of_seed)
        assert set(of_seed) <= set(range(n))


def test_an_address_gives_the_same_batches_whatever_happened_before():
    first, second = learner((0, 1)), learner((0, 1))
    for epoch in range(3):  # history of the first, which the second has not
        first._batches(40, first.address_ / 0 / "flow" / epoch)
    place = (3, "classifier", 7)
    batches = [n._batches(40, n.address_ / place[0] / place[1] / place[2]) for n in (first, second)]
    assert batches[0].equal(batches[1])


def test_each_seed_task_phase_and_epoch_has_an_order_of_its_own():
    orders = set()
    naive = learner((0, 1, 11))
    for task, phase, epoch in [(0, "a", 0), (0, "a", 1), (0, "b", 0), (1, "a", 0), (1, "a", 1), (11, "a", 1)]:
        batches = naive._batches(40, naive.address_ / task / phase / epoch)
        orders |= {tuple(order) for order in batches.flatten(1).tolist()}
    assert len(orders) == 3 * 6


def test_a_seed_meets_the_same_batches_whoever_runs_beside_it():
    alone, beside = learner((7,)), learner((3, 7, 9))
    one = alone._batches(40, alone.address_ / 0 / "a" / 0)
    three = beside._batches(40, beside.address_ / 0 / "a" / 0)
    assert one[0].equal(three[1])
