"""Exceptions that end a command early."""

import pytest
import torch

from prer.errors import InputError, Interrupted, RunError, out_of_memory


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_an_error_says_that_memory_is_short_or_not(error, expected):
    assert out_of_memory(error) is expected


def test_torch_has_no_other_way_to_say_it():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert out_of_memory(caught.value)


def test_an_interruption_is_no_error():
    interrupted = Interrupted(15)
    assert (interrupted.number, interrupted.folder) == (15, "")
    assert not isinstance(interrupted, Exception)  # so that no handler of errors takes it for one
    assert issubclass(InputError, ValueError) and issubclass(RunError, RuntimeError)
