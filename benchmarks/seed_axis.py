"""Compare two ways to train many seeds together: vmap over ordinary modules, and layers with a seed axis.

    python benchmarks/seed_axis.py [--device cpu|cuda] [--json FILE]

Times forward and backward passes of (a) the paper's three convolutions and (b) the twenty blocks of its flow, for one seed
and for five. Candidates take turns over several rounds; the median counts. On a GPU every candidate is a captured graph, so
that kernels are compared and not the interpreter. The script is self-contained on purpose: it documents a design decision
and must keep measuring the rejected candidates.
"""

# S seeds, B batch, C channels, O output channels, H and W image

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

CASES = {
    "mnist": (64, 28, (1, 12, 24, 48), (1, 2, 1)),
    "digits": (32, 8, (1, 12, 24, 48), (1, 1, 1)),
    "cifar10": (128, 32, (3, 24, 48, 96), (1, 1, 1)),
}


def loop(x: Tensor, w: Tensor, b: Tensor, padding: int) -> Tensor:
    return torch.stack([F.conv2d(x[s], w[s], b[s], 2, padding) for s in range(len(x))])


def grouped(x: Tensor, w: Tensor, b: Tensor, padding: int) -> Tensor:
    S, B, C, H, W = x.shape
    y = F.conv2d(x.transpose(0, 1).reshape(B, S * C, H, W), w.flatten(0, 1), b.flatten(), 2, padding, groups=S)
    return y.view(B, S, -1, *y.shape[2:]).transpose(0, 1)


def matmul(x: Tensor, w: Tensor, b: Tensor, padding: int) -> Tensor:
    """Patches times weights; channels last, so that neither input nor output is transposed."""
    u = F.pad(x, (0, 0, *[padding] * 4)).unfold(2, 4, 2).unfold(3, 4, 2)  # S, B, H, W, C, 4, 4
    S, B, H, W = u.shape[:4]
    return torch.baddbmm(b.unsqueeze(1), u.reshape(S, B * H * W, -1), w.flatten(2).mT).view(S, B, H, W, -1)


def blocks(x: Tensor, weights: list[tuple[Tensor, ...]], order: Tensor, batched: bool) -> Tensor:
    """A flow of twenty blocks at d = 50: batch norm, coupling, permutation."""
    log_det = torch.zeros((), device=x.device)
    for w1, b1, w2, b2 in weights:
        x = (x - x.mean(-2, keepdim=True)) * torch.rsqrt(x.var(-2, keepdim=True) + 1e-3)
        a, b = x.chunk(2, -1)
        h = torch.baddbmm(b1, a, w1) if batched else a @ w1 + b1
        h = torch.baddbmm(b2, h.relu(), w2) if batched else h.relu() @ w2 + b2
        scale, shift = h.chunk(2, -1)
        scale = F.logsigmoid(3 * torch.tanh(scale / 3) + 2)
        x = torch.cat([a, b * scale.exp() + shift], -1)[..., order]
        log_det = log_det + scale.sum(-1)
    return x.square().sum(-1) - log_det


def captured(step: Callable[[], object], device: str) -> Callable[[], object]:
    if device == "cpu":
        return step
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def milliseconds(
    steps: dict[str, Callable[[], object]], device: str, rounds: int = 7, repeat: int = 20
) -> dict[str, float]:
    """Median milliseconds of each candidate, measured in turns so that noise affects all of them."""
    steps = {name: captured(step, device) for name, step in steps.items()}
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds + 1):
        for name, step in steps.items():
            begin = time.perf_counter()
            for _ in range(repeat):
                step()
            if device != "cpu":
                torch.cuda.synchronize()
            times[name].append((time.perf_counter() - begin) / repeat * 1e3)
    return {name: round(statistics.median(t[1:]), 3) for name, t in times.items()}


def convolutions(case: str, S: int, device: str) -> dict[str, float]:
    B, H, channels, paddings = CASES[case]
    steps: dict[str, Callable[[], object]] = {}
    for f in (loop, grouped, matmul):
        weights = [torch.randn(S, o, c, 4, 4, device=device).mul(0.1).requires_grad_() for c, o in pairwise(channels)]
        biases = [torch.zeros(S, o, device=device, requires_grad=True) for o in channels[1:]]
        x = torch.rand(S, B, channels[0], H, H, device=device)
        x = x.movedim(2, -1).contiguous() if f is matmul else x

        def step(f=f, x=x, weights=weights, biases=biases) -> object:
            for w, b, padding in zip(weights, biases, paddings, strict=True):
                x = F.relu(f(x, w, b, padding))
            return torch.autograd.grad(x.square().mean(), weights + biases)

        steps[f.__name__] = step
    nets = [
        nn.Sequential(
            *[
                m
                for (c, o), p in zip(pairwise(channels), paddings, strict=True)
                for m in (nn.Conv2d(c, o, 4, 2, p), nn.ReLU())
            ]
        ).to(device)
        for _ in range(S)
    ]
    parameters, _ = stack_module_state(nets)
    x = torch.rand(S, B, channels[0], H, H, device=device)

    def mapped() -> object:
        y = vmap(lambda p, x: functional_call(nets[0], p, (x,)))(parameters, x)
        return torch.autograd.grad(y.square().mean(), list(parameters.values()))

    return milliseconds({**steps, "vmap": mapped}, device)


def flow(S: int, device: str, d: int = 50, B: int = 64) -> dict[str, float]:
    x, order = torch.randn(S, B, d, device=device), torch.randperm(d, device=device)
    weights = [
        tuple(
            (torch.randn(S, *shape, device=device) * 0.1).requires_grad_()
            for shape in ((d // 2, d), (1, d), (d, d), (1, d))
        )
        for _ in range(20)
    ]
    flat = [w for block in weights for w in block]
    return milliseconds(
        {
            "layers with the axis": lambda: torch.autograd.grad(blocks(x, weights, order, True).mean(), flat),
            "vmap": lambda: torch.autograd.grad(vmap(lambda w, x: blocks(x, w, order, False))(weights, x).mean(), flat),
        },
        device,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    hardware = torch.cuda.get_device_name() if options.device == "cuda" else f"{platform.machine()}, one thread"
    results = {
        f"convolutions {case}, {S} seeds": convolutions(case, S, options.device) for case in CASES for S in (1, 5)
    }
    results |= {f"flow d=50 batch=64, {S} seeds": flow(S, options.device) for S in (1, 5)}
    for name, row in results.items():
        print(f"{name:34s}", "  ".join(f"{k} {v:.3f} ms" for k, v in row.items()))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"hardware": hardware, "torch": torch.__version__, "milliseconds": results}, file, indent=1)


if __name__ == "__main__":
    main()
