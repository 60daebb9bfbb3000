"""Closed forms: the answer is that of all data at once, whatever the order of tasks."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.learners import CLOSED, blobs, make, one_head, pictures, started

from prer import learn
from prer.data.arrays import as_samples
from prer.errors import InputError
from prer.learners import LEARNERS
from prer.streams.stream import arriving

CLASSES = 6
every_closed_form = pytest.mark.parametrize("name", CLOSED)


def data(kind):
    """Samples of six classes in random order, and their labels."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(CLASSES), 14))
    if kind == "images":
        return rng.integers(0, 200, size=(len(y), 8, 8), dtype=np.uint8) + (8 * y[:, None, None]).astype(np.uint8), y
    scales = [1, 100, 0.01, 1]
    return scales * (rng.normal(size=(CLASSES, 4))[y] + rng.normal(size=(len(y), 4))) + 3, y


def answers(name, lessons, questions):
    """Scores of all classes, in the order of their labels, of a learner that was taught these lessons."""
    learner, outputs = make(name), {}
    x = as_samples(questions).unsqueeze(0)
    learner.start(x.shape[2:], (0,))
    for task in arriving([(x, y, x, y) for x, y in lessons], scenario="class"):
        learner.learn(task)
        outputs |= dict(zip(task.labels, task.outputs, strict=True))
    return learner.scores(x, 0)[0][:, [outputs[label] for label in sorted(outputs)]]


@every_closed_form
@pytest.mark.parametrize("kind", ["images", "vectors"])
@settings(max_examples=20, deadline=None)
@given(order=st.permutations(range(CLASSES)), cuts=st.sets(st.integers(1, CLASSES - 1)), twice=st.booleans())
def test_the_answer_is_that_of_all_data_at_once_in_any_order_of_tasks(name, kind, order, cuts, twice):
    (x, y), edges = data(kind), [0, *sorted(cuts), CLASSES]
    groups = [np.isin(y, order[a:b]) for a, b in itertools.pairwise(edges)]
    lessons = [(x[rows], y[rows]) for rows in groups]
    if twice:  # half of the samples of each class come later
        lessons = [(a[::2], b[::2]) for a, b in lessons] + [(a[1::2], b[1::2]) for a, b in lessons]
    first = [(x[:20], y[:20])] if (name, kind) == ("ranpac", "vectors") else []  # it standardises by the first task
    whole, found = answers(name, [*first, (x, y)], x), answers(name, [*first, *lessons], x)
    assert (found - whole).abs().max() <= 1e-5 * whole.abs().max()


@every_closed_form
def test_heads_of_their_own_share_the_sums(name):
    """With the task given, each head answers among its classes."""
    stream = pictures()
    learner = make(name)
    result = learn(stream, learner, seeds=1, device="cpu")
    assert np.nanmin(result.matrix) > 80 and len(learner.slots_) == 6
    together = make(name)
    learn(pictures(scenario="class"), together, seeds=1, device="cpu")
    x = stream[1].x[:8].unsqueeze(0)
    torch.testing.assert_close(learner.scores(x, 1), together.scores(x, 0)[..., 2:4])


@every_closed_form
@pytest.mark.parametrize(
    "setting", [{"epochs": 3}, {"lr": 0.1}, {"hidden": (4,)}, {"channels": (2, 2, 2)}, {"optimiser": "sgd"}], ids=str
)
def test_settings_of_networks_are_refused(name, setting):
    with pytest.raises(InputError, match=f"learner.{next(iter(setting))} has no effect on {name}, .*leave it out"):
        learn(blobs(), LEARNERS[name](**setting), seeds=1, device="cpu")


@every_closed_form
def test_the_sums_are_the_memory_in_double_precision(name):
    learner = make(name)
    result = learn(pictures(), learner, seeds=2, device="cpu")
    assert result.memory_bytes == [8 * n for n in result.memory_floats] and result.memory_samples == [0, 0, 0]
    assert not list(learner.encoder_.parameters()) and not len(learner.heads_)


@every_closed_form
def test_sums_of_another_shape_are_not_restored(name):
    stream = blobs()
    learner = started(make(name), stream)
    learner.learn(stream[0])
    state = {key: tensor[..., :-1] if key == "sums.totals" else tensor for key, tensor in learner.state().items()}
    with pytest.raises(ValueError, match="totals"):
        started(make(name), stream).restore([stream[0]], state, {})


@every_closed_form
def test_a_constant_feature_and_a_class_of_one_sample_are_no_problem(name):
    x, y = np.ones((9, 3)), np.array([0, 0, 0, 0, 1, 1, 1, 1, 2])
    x[:, 1] = y
    found = answers(name, [(x[y == c], y[y == c]) for c in range(3)] * 2, x)
    assert found.isfinite().all()


@every_closed_form
def test_domains_add_to_the_sums_of_the_same_classes(name):
    learner = make(name)
    learn(one_head(), learner, seeds=1, device="cpu")
    assert len(learner.slots_) == 3
