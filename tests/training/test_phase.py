"""The tensors of a phase: copied, restored, and refused where they do not fit."""

import pytest
import torch
from torch import nn

from prer.errors import InputError, RunError
from prer.training.optimisers import OPTIMISERS
from prer.training.phase import Phase, Trained, check_finite


def phase(optimiser="adam", steps=0, seed=0):
    """Two parameters and a counter, after so many steps; a third parameter has no gradient."""
    generator = torch.Generator().manual_seed(seed)
    parameters = [nn.Parameter(torch.randn(shape, generator=generator)) for shape in ((2, 3), (2, 1), (2, 2))]
    made = Phase(parameters, [torch.tensor([steps, 7])], OPTIMISERS[optimiser](parameters, torch.tensor(0.1)))
    for _ in range(steps):
        train(made)
    return made


def train(made):
    for parameter in made.parameters[:2]:
        parameter.grad = parameter.detach() + 1
    made.optimiser.step()


def same(a, b):
    a, b = dict(a), dict(b)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_what_is_copied_can_be_taken_and_trains_on_as_before(optimiser, steps):
    first, second = phase(optimiser, steps), phase(optimiser, seed=1)
    assert second.take(first.copied(5)) == 5
    assert same(first.tensors(), second.tensors())
    for _ in range(3):
        train(first), train(second)
    assert same(first.tensors(), second.tensors())


def test_a_state_may_replace_that_of_other_steps():
    saved, later = phase(steps=2).copied(1), phase(steps=5, seed=1)
    later.take(saved)
    assert same(later.tensors(), saved.tensors.items())


def test_names_tell_what_a_tensor_is():
    found = phase(steps=1).copied(1).tensors
    of_adam = [f"optimiser.{i}.{key}" for i in range(2) for key in ("step", "exp_avg", "exp_avg_sq")]
    assert sorted(found) == sorted([*(f"parameter.{i}" for i in range(3)), *of_adam, "also.0"])
    assert found["also.0"].tolist() == [1, 7] and float(found["optimiser.0.step"]) == 1
    assert not any(name.startswith("optimiser") for name in phase("sgd", 1).copied(1).tensors)


def test_copies_do_not_change_with_the_phase_nor_the_phase_with_the_copies():
    made = phase(steps=1)
    saved = made.copied(1)
    noted = {name: tensor.clone() for name, tensor in saved.tensors.items()}
    train(made)
    assert same(saved.tensors.items(), noted.items())
    made.take(saved)
    for tensor in saved.tensors.values():
        tensor.fill_(3)
    assert same(made.tensors(), noted.items())


def changed(name, tensor):
    """A saved state in which a tensor is replaced, or absent."""
    tensors = phase(steps=1).copied(1).tensors
    tensors.pop(name, None)
    return Trained(1, tensors | ({} if tensor is None else {name: tensor}))


ZEROS = torch.zeros
WRONG = {
    "shape of a parameter": ("parameter.0", ZEROS(3, 2), r"torch.float32 \(3, 2\), not torch.float32 \(2, 3\)"),
    "a parameter with more axes": ("parameter.1", ZEROS(2, 1, 1), r"torch.float32 \(2, 1, 1\), not"),
    "type of a parameter": ("parameter.0", ZEROS(2, 3).double(), r"torch.float64 \(2, 3\), not torch.float32"),
    "shape of a mean": ("optimiser.0.exp_avg", ZEROS(2), r"torch.float32 \(2,\), not torch.float32 \(2, 3\)"),
    "type of a square": ("optimiser.1.exp_avg_sq", ZEROS(2, 1).half(), r"torch.float16 \(2, 1\), not torch.float32"),
    "type of a count": ("optimiser.0.step", torch.tensor(1), r"torch.int64 \(\), not torch.float32 \(\)"),
    "type of another tensor": ("also.0", ZEROS(2), r"torch.float32 \(2,\), not torch.int64 \(2,\)"),
    "no parameter": ("parameter.2", None, r"nothing, not torch.float32 \(2, 2\)"),
    "no mean": ("optimiser.0.exp_avg", None, "nothing, not torch.float32"),
    "no other tensor": ("also.0", None, "nothing, not torch.int64"),
    "one parameter too many": ("parameter.3", ZEROS(2), r"torch.float32 \(2,\), not nothing"),
    "one tensor too many": ("also.1", ZEROS(2), ".*not nothing"),
    "state of no parameter": ("optimiser.9.exp_avg", ZEROS(2), ".*not nothing"),
    "unknown state": ("optimiser.0.momentum", ZEROS(2, 3), ".*not nothing"),
    "unknown name": ("weights", ZEROS(2), ".*not nothing"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_state_that_does_not_fit_is_refused_and_nothing_is_changed(case):
    name, tensor, said = WRONG[case]
    made = phase(steps=2, seed=1)
    before = made.copied(0)
    with pytest.raises(InputError, match=rf"^the checkpoint has '{name}' as {said}.*; delete it to start over$"):
        made.take(changed(name, tensor))
    assert same(made.tensors(), before.tensors.items())


def test_the_state_of_another_optimiser_is_refused():
    with pytest.raises(InputError, match=r"has 'optimiser.0.step' as torch.float32 \(\), not nothing"):
        phase("sgd").take(phase("adam", 1).copied(1))


@pytest.mark.parametrize("broken", [torch.nan, torch.inf, -torch.inf])
def test_a_value_that_is_not_finite_is_named_with_its_place(broken):
    sound = [torch.ones(3), torch.tensor([1, 2]), torch.tensor(True)]
    check_finite(sound, 1, "flow", 2)
    with pytest.raises(RunError, match="no longer finite in task 1, phase 'flow', epoch 2; try a lower learning rate"):
        check_finite([*sound, torch.tensor([0.0, broken])], 1, "flow", 2)
