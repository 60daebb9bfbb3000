"""The tensors of a learner: those that are saved, and those that it holds."""

import torch
from support.learners import blobs, make, started
from torch import nn

from prer.testing.tensors import differing_names, memory_tensors, reachable_tensors, rows_of, saved_tensors


def test_saved_tensors_are_the_state_and_memory_is_what_naive_has_not():
    stream = blobs()
    for name, memory in (("naive", set()), ("er", {"kept.x", "kept.z"})):
        learner = started(make(name), stream)
        for task in stream:
            learner.learn(task)
        saved, state = saved_tensors(learner, stream), learner.state()
        assert saved.keys() == state.keys() and all(torch.equal(saved[key], t) for key, t in state.items())
        assert memory_tensors(learner, stream).keys() == memory


def test_names_of_tensors_that_differ_are_listed_up_to_three():
    ones = {name: torch.ones(2) for name in "abcde"}
    assert differing_names(ones, ones) == []
    assert differing_names(ones, ones | {"b": torch.zeros(2)}) == ["b"]
    assert differing_names({"a": torch.ones(2)}, {}) == ["a"]
    assert differing_names(ones, {}) == ["a", "b", "c"]
    assert differing_names({"a": torch.ones(2)}, {"a": torch.ones(3)}) == ["a"]


def test_rows_are_the_samples_as_bytes():
    rows = torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [5.0, 6.0]]])
    assert rows_of(rows) == {torch.tensor(row).numpy().tobytes() for row in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0])}
    assert rows_of(rows.double()) == rows_of(rows)


def test_every_tensor_is_reached_through_containers_closures_modules_and_gradients():
    tensors = [torch.full((1,), float(i)) for i in range(5)]

    class Thing:
        pass

    thing, module = Thing(), nn.Linear(1, 1)
    module.weight.grad = torch.full((1, 1), 9.0)
    thing.listed, thing.named = [(tensors[0],)], {"a": {"b": tensors[1]}}
    thing.function = lambda: tensors[2:4]
    thing.module, thing.itself = module, thing
    found = {t.data_ptr() for t in reachable_tensors(thing)}
    wanted = [*tensors, module.weight, module.bias, module.weight.grad]
    assert found == {t.data_ptr() for t in wanted}
    assert reachable_tensors(Thing()) == []
