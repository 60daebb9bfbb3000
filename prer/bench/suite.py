"""Run all parts of the benchmark, and return their record."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

from prer.address import as_device
from prer.bench import seeds, steps
from prer.runs.environment import environment
from prer.training.computing import keep_memory


class Sizes(NamedTuple):
    """How much each part measures."""

    steps: steps.Size
    seeds: seeds.Size


FULL = Sizes(steps.FULL, seeds.FULL)
QUICK = Sizes(steps.QUICK, seeds.QUICK)


def measure(
    sizes: Sizes,
    device: str = "auto",
    say: Callable[[str], object] = str,
    peers: Mapping[str, steps.Peer] | None = None,
) -> dict[str, Any]:
    """Measure everything; `say` receives progress messages, and peers take part in the steps."""
    device = as_device(device)
    keep_memory()  # as `prer run` does; this applies to the bare loops too
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)  # as `prer run` does: steps are too short to parallelise
    return {
        "environment": environment() | {"device": device},
        "steps": steps.compare(sizes.steps, device, peers, say),
        "seeds": seeds.compare(sizes.seeds, device, say),
    }
