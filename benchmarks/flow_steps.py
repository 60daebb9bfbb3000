"""Compare the flow's training and sampling steps with a lower bound, the matrix products alone, and with other libraries."""

# B batch, D embedding, K blocks

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from prer.address import Address
from prer.bench.clock import Turn, alternate, repeated, summary
from prer.densities.flow import Flow
from prer.nn.stacked import stack
from prer.training.loop import Step

CLASSES, CONDITION, BLOCKS, LEVELS = 10, 16, 10, 2
SAMPLES = 1024  # drawn at once


class PeerFlow(NamedTuple):
    """The same flow in another library: its training loss and, if supported, its sampling."""

    parameters: list[nn.Parameter]
    loss: Callable[[Tensor, Tensor], Tensor]  # of a batch [B, D] with its classes [B]
    sample: Callable[[Tensor], Tensor] | None


Peer = Callable[[int, str], PeerFlow]  # dimension, device


class Size(NamedTuple):
    """How much is measured."""

    cases: tuple[tuple[int, int], ...]  # dimension and batch
    steps: int  # of a turn
    repeats: int


FULL = Size(((50, 64), (200, 128)), 20, 9)
QUICK = Size(((50, 64), (200, 128)), 4, 3)


def compare(
    size: Size, device: str = "cpu", peers: Mapping[str, Peer] | None = None, say: Callable[[str], object] = str
) -> dict[str, Any]:
    """Time training and sampling at each size; ours, the lower bound and the peers take turns."""
    results = {}
    for dimension, batch in size.cases:
        say(f"the flow at d = {dimension}, batch {batch}")
        theirs = {name: make(dimension, device) for name, make in (peers or {}).items()}
        z, classes = torch.randn(batch, dimension, device=device), torch.arange(batch, device=device) % CLASSES
        training = {name: trained(peer, z, classes, size.steps, device) for name, peer in theirs.items()}
        sampling = {name: sampled(peer, size.steps, device) for name, peer in theirs.items() if peer.sample}
        case, ours = f"d = {dimension}, batch {batch}", our_turns(z, classes, size.steps, device)
        floor = {
            k: repeated(products(dimension, n, k == "training", device), size.steps, device)
            for k, n in (("training", batch), ("sampling", SAMPLES))
        }
        for kind, others in (("training", training), ("sampling", sampling)):
            turns = {"ours": ours[kind], "matrix products": floor[kind], **others}
            results[f"{kind}, {case}"] = summary(alternate(turns, size.repeats))
    return results


def our_flow(dimension: int, device: str = "cpu") -> Flow:
    """Our flow with PRER's settings, one seed."""
    address = Address((0,), device)
    flow = stack(lambda: Flow(dimension, levels=LEVELS, blocks=BLOCKS, condition_size=CONDITION), address)
    flow.add(torch.full((CLASSES,), 100), address)
    return flow


def our_turns(z: Tensor, classes: Tensor, steps: int, device: str) -> dict[str, Turn]:
    """Our training step, in the learner's own loop, and our sampling."""
    flow, frozen, address = our_flow(z.shape[1], device), our_flow(z.shape[1], device), Address((0,), device)
    every, asked = classes.unsqueeze(0), torch.arange(SAMPLES, device=device).unsqueeze(0) % CLASSES
    for density in (flow, frozen):
        density.start(z.unsqueeze(0), every)
    step = Step(
        lambda z, c: -flow.train().log_prob(z, c).mean(1),
        [p for p in flow.parameters() if p.requires_grad],
        optimiser="adam",
        lr=1e-3,
    )
    frozen.eval().requires_grad_(False)
    return {
        "training": repeated(lambda: step(z[None, None], every.unsqueeze(1)), steps, device),
        "sampling": repeated(lambda: frozen.sample(asked, address), steps, device),
    }


def trained(peer: PeerFlow, z: Tensor, classes: Tensor, steps: int, device: str) -> Turn:
    """A peer's training step, with the faster of Adam's implementations."""
    optimiser = torch.optim.Adam(peer.parameters, 1e-3, fused=True)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        peer.loss(z, classes).backward()
        optimiser.step()

    return repeated(step, steps, device)


def sampled(peer: PeerFlow, steps: int, device: str) -> Turn:
    """A peer's sampling of as many samples as ours."""
    asked, sample = torch.arange(SAMPLES, device=device) % CLASSES, peer.sample
    assert sample is not None

    def step() -> None:
        with torch.no_grad():
            sample(asked)

    return repeated(step, steps, device)


def products(dimension: int, batch: int, backward: bool, device: str) -> Callable[[], None]:
    """Only the matrix products of all couplings: two layers forward, and in training two products for each in the backward pass."""
    pairs, size = [], dimension
    for _ in range(LEVELS):
        a, b = size // 2, size - size // 2
        for inputs, outputs in ((a, size), (size, 2 * b)) * BLOCKS:
            x, w, g = (
                torch.randn(*shape, device=device) for shape in ((batch, inputs), (inputs, outputs), (batch, outputs))
            )
            pairs += [(x, w), (g, w.T), (x.T, g)] if backward else [(x, w)]
        size = b

    def multiply() -> None:
        for left, right in pairs:
            torch.mm(left, right)

    return multiply
