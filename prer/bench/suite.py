"""All parts of the benchmark in one run, and the record of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from prer.address import as_device
from prer.bench import flows, growth, peers, seeds, steps
from prer.runs.environment import environment
from prer.training.computing import keep_memory


class Sizes(NamedTuple):
    """How much each part measures."""

    steps: steps.Size
    seeds: seeds.Size
    flows: flows.Size
    growth: growth.Size


FULL = Sizes(steps.FULL, seeds.FULL, flows.FULL, growth.FULL)
QUICK = Sizes(steps.QUICK, seeds.QUICK, flows.QUICK, growth.QUICK)


def measure(
    sizes: Sizes, against: Sequence[str] = (), device: str = "auto", say: Callable[[str], object] = str
) -> dict[str, Any]:
    """Measure everything; `say` is told what comes next.

    Example:
        >>> measure(QUICK, against=["nothing"])
        Traceback (most recent call last):
        ...
        prer.errors.InputError: there is no peer 'nothing'; known are avalanche, normflows, nflows
    """
    device = as_device(device)
    versions = {name: peers.required(name) for name in dict.fromkeys(against)}
    of_steps = {name: make for name, make in peers.STEPS.items() if name.split(",")[0] in versions}
    of_flows = {name: make for name, make in peers.FLOWS.items() if name in versions}
    keep_memory()  # as `prer run` does; here peers have it, too
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)  # as `prer run` does: steps are far too short to share
    return {
        "environment": environment() | {"device": device, "peers": versions},
        "steps": steps.compare(sizes.steps, device, of_steps, say),
        "seeds": seeds.compare(sizes.seeds, device, say),
        "flow": flows.compare(sizes.flows, device, of_flows, say),
        "growth": growth.compare(sizes.growth, device, say),
    }
