"""Run what is missing of table 1, of the significance and of the claims in one queue, so that no GPU waits between the parts.

python benchmarks/paper_runs.py RUNS [NAME=PATH ...] [--parts table1,significance,claims] [--only mnist,prer] [--workers N]

The runs are those of `prer reproduce`, which then has nothing to train: `prer reproduce table1 --out RUNS` shows the table.
Recorded runs that are already in RUNS (`paper_records.py unpack`) are not repeated. Ctrl-C saves the active runs, and the same
command continues. The seconds from the first start to the last end of each part are printed.
"""

import argparse
import json
import time
from pathlib import Path

from prer.paper.plan import Request, places
from prer.paper.reproduce import NEEDED
from prer.paper.variants import NAMES
from prer.sweeps.engines.base import ended_before
from prer.sweeps.engines.local import Local
from prer.sweeps.engines.watched import started

PARTS = ("table1", "significance", "claims")


def missing(request, parts, out):
    """The experiments that must run and the part of each; the parts in their order, slow runs first."""
    of = {}
    for part in parts:
        waiting = [e for e in NEEDED[part](request).values() if ended_before(e, out) is None]
        for experiment in sorted(waiting, key=cost, reverse=True):
            of.setdefault(experiment.hash, (experiment, part))
    return of


def cost(experiment):
    """A rough guess of what a run costs, to start slow runs first."""
    data = {"mnist": 1.0, "cifar10": 1.2}.get(experiment.stream.data, 1.8 if "svhn" in experiment.stream.data else 0.5)
    kind = {"prer": 2.0, "prer-variant": 2.5, "joint": 2.0, "dgr": 2.0}.get(experiment.learner.name, 1.0)
    return data * kind * (5 + len(experiment.seeds))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("paths", nargs="*", metavar="NAME=PATH")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--only", default="")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    only = options.only.split(",") if options.only else []
    request = Request(only=only, paths=places(options.paths), variants=NAMES)
    request.check()
    parts = options.parts.split(",")
    if unknown := set(parts) - {*PARTS}:
        parser.error(f"--parts: unknown {', '.join(sorted(unknown))}; choose of {', '.join(PARTS)}")
    of = missing(request, parts, options.runs)
    begin, times = time.time(), {}
    try:
        for done, outcome in enumerate(Local(options.workers).run([e for e, _ in of.values()], options.runs), 1):
            part = of[outcome.experiment.hash][1]
            said = outcome.error
            if not outcome.error:
                times.setdefault(part, []).append((started(outcome.folder) / 1e9, time.time()))
                said = " ".join(f"{outcome.folder.result[key]['mean']:+.2f}" for key in ("accuracy", "bwt"))
            name, seeds = outcome.experiment.name, len(outcome.experiment.seeds)
            print(f"{done}/{len(of)} {time.time() - begin:.0f} s {part} {name} {seeds} seeds {said}", flush=True)
    except KeyboardInterrupt:
        print("stopped")
    spans = {
        part: (len(all_), round(max(e for _, e in all_) - min(b for b, _ in all_))) for part, all_ in times.items()
    }
    print(json.dumps({part: {"runs": n, "seconds": s} for part, (n, s) in spans.items()}))


if __name__ == "__main__":
    main()
