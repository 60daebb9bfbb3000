"""Points of a search as one run: an axis of seeds costs a GPU little, so points that differ in numbers share it.

Each point has its seeds beside those of the others. Learning rates and weights of losses have one value for each seed;
everything else is the same for all points of a stack. Results equal those of single runs up to rounding, which training
amplifies. A point that diverges would end the whole stack, so the points of a failed stack are run one by one.
"""

from __future__ import annotations

import copy
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from prer.address import as_device
from prer.errors import InputError, RunError
from prer.learners.base import Learner
from prer.runs.experiment import Experiment
from prer.runs.metrics import summary
from prer.runs.result import Measurements
from prer.training.computing import computing, keep_memory
from prer.training.optimisers import OPTIMISERS, Adam

WEIGHTS = ("weight", "label_weight", "anchor", "autoencoder", "sparsity")  # of losses, which have one value a seed
STACKED = ("lr", "temperature", *WEIGHTS)
OWN_RATE = 1.0  # marks a phase in which each seed has a learning rate of its own; no point has this one
MOST = 12  # points in a stack


class PerSeed:
    """A weight with one value for each seed [S], by which losses [S] are multiplied."""

    def __init__(self, values: Tensor) -> None:
        self.values = values
        self.any = bool(values.any())  # not later: a step that is captured must not ask the device

    def __mul__(self, loss: Tensor) -> Tensor:
        """The weighted loss [S]."""
        return self.values * loss

    __rmul__ = __mul__

    def __bool__(self) -> bool:
        """Whether any seed has the loss."""
        return self.any


class AdamPerSeed(Adam):
    """Adam whose update is scaled by the learning rate of each seed, in phases that are marked by `OWN_RATE`."""

    rates: Tensor | None = None  # [S], of the stack that trains

    def __init__(self, parameters: Sequence[nn.Parameter], rate: Tensor) -> None:
        super().__init__(parameters, rate)
        own = self.rates is not None and float(rate) == OWN_RATE
        self.ratios = {p: self._like(p) for p in parameters} if own else {}

    def _like(self, p: nn.Parameter) -> Tensor:
        assert self.rates is not None
        return self.rates.view(-1, *[1] * (p.dim() - 1)).expand_as(p).contiguous()

    def _update(self, parameters: list[nn.Parameter], gradients: list[Tensor]) -> None:
        if not self.ratios:
            return super()._update(parameters, gradients)
        before = torch._foreach_mul(parameters, 1.0)
        super()._update(parameters, gradients)
        torch._foreach_sub_(parameters, before)
        torch._foreach_mul_(parameters, [self.ratios[p] for p in parameters])
        return torch._foreach_add_(parameters, before)


def stacks(points: Sequence[Experiment]) -> list[list[Experiment]]:
    """Points that differ only in stacked settings, at most `MOST` together."""
    groups: dict[str, list[Experiment]] = defaultdict(list)
    for point in points:
        tables = point.tables()
        same = {key: value for key, value in tables["learner"].items() if key not in STACKED}
        groups[json.dumps([tables["stream"], same, tables["seeds"], tables["device"]])].append(point)
    parts = []
    for group in groups.values():
        count = -(-len(group) // MOST)
        parts += [group[i::count] for i in range(count)]  # parts of the same size
    return parts


def learned(points: Sequence[Experiment]) -> list[dict[str, Any]]:
    """What each point of a stack reaches: its metrics, or the error."""
    begin = time.perf_counter()
    try:
        matrix = _matrix(points)
    except (InputError, RunError) as error:
        if len(points) == 1:
            return [{"error": str(error)}]
        return [found for point in points for found in learned([point])]
    seconds, each = time.perf_counter() - begin, len(points[0].seeds)
    parts = (matrix[i * each : (i + 1) * each] for i in range(len(points)))
    return [reached(part) | {"seconds": seconds, "stack": len(points)} for part in parts]


def reached(matrix: np.ndarray) -> dict[str, Any]:
    """Mean Accuracy and BWT, the mean diagonal, and the weakest cell of it, of the matrices [S, M, M] of a point."""
    found, diagonals = summary(matrix, np.full(matrix.shape[:2], np.nan)), np.diagonal(matrix, axis1=1, axis2=2)
    means = {key: found[key]["mean"] for key in ("accuracy", "bwt")}
    return {"error": ""} | means | {"diagonal": diagonals.mean(0).tolist(), "weakest": float(diagonals.min())}


def _matrix(points: Sequence[Experiment]) -> np.ndarray:
    """The accuracy matrices of all points and seeds [points x S, M, M]."""
    device, stream = as_device(points[0].device), points[0].stream.build()
    learner = copy.deepcopy(points[0].learner)  # its settings are replaced, and the point may be run again alone
    ledger, met = Measurements(), []
    try:
        with computing(device):
            learner.start(stream.shape, points[0].seeds * len(points), device)
            if len(points) > 1:
                _stack(learner, [vars(point.learner) for point in points], len(points[0].seeds))
            for task in stream.to(device):
                met.append(task)
                learner.learn(task)
                ledger.test(learner, met)
    finally:
        AdamPerSeed.rates = None
        if device != "cpu":
            torch.cuda.empty_cache()
    return ledger.matrix()


def _stack(learner: Learner, settings: Sequence[Mapping[str, Any]], each: int) -> None:
    """Give a learner that has started the settings of all points, one value for each seed."""

    def values(name: str) -> Tensor:
        found = torch.tensor([float(of[name]) for of in settings], device=learner.address_.device)
        return found.repeat_interleave(each)

    if learner.optimiser != "adam":
        raise InputError("only points that use Adam can be stacked")
    OPTIMISERS["adam"] = AdamPerSeed
    AdamPerSeed.rates = values("lr")
    learner.lr = OWN_RATE
    own: dict[str, Any] = {name: PerSeed(values(name)) for name in WEIGHTS if name in settings[0]}
    if "temperature" in settings[0]:
        own["temperature"] = values("temperature").view(-1, 1, 1)
    vars(learner).update(own)


def run(points: Sequence[Experiment], out: Path, workers: int | None) -> Iterator[tuple[Experiment, dict[str, Any]]]:
    """Yield each point with what it reached; what earlier calls found is kept in `out`, one line a point."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / "points.jsonl"
    known = dict(map(json.loads, file.read_text().splitlines())) if file.exists() else {}
    yield from ((point, known[point.hash]) for point in points if point.hash in known)
    waiting = stacks([point for point in points if point.hash not in known])
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=keep_memory) as pool, file.open("a") as lines:
        futures = {pool.submit(learned, stack): stack for stack in waiting}
        for future in as_completed(futures):
            for point, found in zip(futures[future], future.result(), strict=True):
                print(json.dumps([point.hash, found]), file=lines, flush=True)
                yield point, found
