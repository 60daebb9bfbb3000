"""Compare the cost of training with bare PyTorch loops and other libraries: steps, many seeds, the flow, long streams.

python benchmarks/training_cost.py [--quick] [--against PEER ...] [--device auto|cpu|cuda] [--json FILE]

`prer bench` measures the first two on a user's machine. PEER is avalanche (`pip install avalanche-lib==0.6.0 quadprog`),
normflows (1.7.3) or nflows (0.14).
"""

import argparse
import importlib
import importlib.metadata
import json
from functools import partial
from pathlib import Path

import avalanche_steps
import flow_steps
import growth
import peer_flows

from prer.bench import suite, table
from prer.terminal.console import new_console, say

PEERS = {"avalanche": "avalanche-lib", "normflows": "normflows", "nflows": "nflows"}  # modules and packages


def required(name: str) -> str:
    """The version of a peer; an InputError if it is unknown or not installed."""
    if name not in PEERS:
        raise SystemExit(f"unknown peer {name!r}; use one of {', '.join(PEERS)}")
    if name == "avalanche":
        avalanche_steps.declare_torchvision()
    try:
        importlib.import_module(name)
        return importlib.metadata.version(PEERS[name])
    except ImportError as error:
        raise SystemExit(
            f"--against {name} needs {PEERS[name]}, which cannot be imported ({error}); pip install {PEERS[name]}"
        ) from None


# With the optimiser of its documentation, and with the one that is faster on a CPU.
STEPS = {"avalanche": avalanche_steps.turn_of, "avalanche, fused Adam": partial(avalanche_steps.turn_of, fused=True)}


def measure(quick, against, device, say):
    """Measure everything in one process; `say` receives progress messages."""
    versions = {name: required(name) for name in dict.fromkeys(against)}
    of_steps = {name: make for name, make in STEPS.items() if name.split(",")[0] in versions}
    of_flows = {name: make for name, make in peer_flows.FLOWS.items() if name in versions}
    record = suite.measure(suite.QUICK if quick else suite.FULL, device, say, of_steps)
    device = record["environment"]["device"]
    record["environment"]["peers"] = versions
    record["flow"] = flow_steps.compare(flow_steps.QUICK if quick else flow_steps.FULL, device, of_flows, say)
    record["growth"] = growth.compare(growth.QUICK if quick else growth.FULL, device, say)
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--against", action="append", default=[], metavar="PEER")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    console = new_console()
    record = measure(options.quick, options.against, options.device, lambda part: say(console, f"measuring {part}"))
    words = [*(["--quick"] if options.quick else []), *(f"--against {name}" for name in options.against)]
    record = {
        "command": " ".join(["python benchmarks/training_cost.py", *words, f"--device {options.device}"])
    } | record
    table.show(console, record)
    growth.show(console, record["growth"])
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
