"""Time a training step of the flow on a CPU: C kernels, blocks in torch with a hand-written backward pass, plain operations.

python benchmarks/blocks.py [--json FILE]

The three take turns. `kernels/blocks.py` is used where there is no C extension; it is worth keeping as long as it is clearly
faster than plain operations.
"""

import argparse
import json
import statistics
from pathlib import Path

import torch
import torch.nn.functional as F
from flow_steps import our_turns

from prer.bench.clock import alternate, ratio
from prer.densities import flow
from prer.runs.environment import environment

CASES = (50, 64), (200, 128)  # dimension and batch
STEPS, REPEATS = 10, 9


def plain(level, u, v, first=False):
    """A level in plain operations, with autograd's gradient."""
    log_det = 0.0
    for k, block in enumerate(level._blocks(v)):
        mean, var = level._statistics(k, u, first)
        u = (u - mean.unsqueeze(2)) * (var + level.eps).rsqrt().unsqueeze(2)
        a, b = u.split((level.leaving, level.staying), dim=1)
        scale, shift = level._coupling(a, *block)
        u = torch.cat([a, torch.addcmul(shift, b, scale.sigmoid())], dim=1).index_select(1, level.order[0, k])
        log_det = log_det + F.logsigmoid(scale).sum(1) - 0.5 * (var + level.eps).log().sum(1, keepdim=True)
    return u, log_det


def patched(turn, owner, name, value):
    """The same turn with an attribute temporarily set to another value."""

    def other():
        before = getattr(owner, name)
        setattr(owner, name, value)
        try:
            return turn()
        finally:
            setattr(owner, name, before)

    return other


def measure():
    found = {}
    for dimension, batch in CASES:
        turn = our_turns(torch.randn(batch, dimension), torch.arange(batch) % 10, STEPS, "cpu")["training"]
        turns = {
            "kernels": turn,
            "blocks": patched(turn, flow, "kernels", lambda *_: None),
            "plain": patched(turn, flow.Level, "forward", plain),
        }
        times = alternate(turns, REPEATS)
        found[f"d = {dimension}, batch {batch}"] = {
            "milliseconds": {name: round(1e3 * statistics.median(row), 3) for name, row in times.items()},
            "plain over blocks": ratio(times["plain"], times["blocks"]),
            "blocks over kernels": ratio(times["blocks"], times["kernels"]),
        }
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    record = {"command": "python benchmarks/blocks.py", "environment": environment(), "steps": measure()}
    print(json.dumps(record["steps"], indent=1))
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
