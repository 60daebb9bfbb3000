"""The tensors of a learner: those that are saved, and those that it holds."""

from __future__ import annotations

import gc
import types
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors.torch import load_file
from torch import Tensor

from prer.learners import Learner
from prer.models.folder import save
from prer.models.model import Model
from prer.models.plain import own
from prer.streams.stream import Stream

NOT_MEMORY = ("inputs", "encoder", "heads")  # parts that naive saves, too


def saved_tensors(learner: Learner, stream: Stream) -> dict[str, Tensor]:
    """The tensors of a learner as they are saved."""
    with TemporaryDirectory() as folder:
        save(Path(folder), Model.learned(learner, list(stream)))
        return own(load_file(Path(folder) / "model.safetensors"))


def memory_tensors(learner: Learner, stream: Stream) -> dict[str, Tensor]:
    """The saved tensors that naive does not have."""
    return {name: t for name, t in saved_tensors(learner, stream).items() if name.split(".")[0] not in NOT_MEMORY}


def differing_names(wanted: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> list[str]:
    """The names of tensors that are missing or differ, at most three."""
    return [name for name, t in wanted.items() if name not in found or not torch.equal(t, found[name])][:3]


def rows_of(t: Tensor) -> set[bytes]:
    """The samples in a tensor of vectors [..., n], as bytes."""
    return {row.tobytes() for row in t.detach().float().reshape(-1, t.shape[-1]).numpy()}


def reachable_tensors(root: object) -> list[Tensor]:
    """Every tensor that is reachable from an object, through containers, closures and gradients."""
    seen, waiting, tensors = set(), [root], []
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type | types.ModuleType):
            continue
        seen.add(id(thing))
        if isinstance(thing, Tensor):
            tensors += [thing] if thing.grad is None else [thing, thing.grad]
        elif isinstance(thing, types.FunctionType):
            waiting += thing.__closure__ or ()
        else:
            waiting += gc.get_referents(thing)
    return tensors
