"""Check that no model folder makes prer crash, hang, run code or write elsewhere: damaged and forged folders.

python benchmarks/fuzz_models.py [--count 2800] [--seed 0] [--seconds 20] [--json FILE]

A case starts as the folder of a model that has learned two lessons: one of nine, with all scenarios and kinds of memory. Then
a file is damaged (bits flipped, cut, spliced, bytes inserted) or forged: structure, sizes, tensors or names are changed, and
checksums are recomputed. A worker process loads and asks the model, shows it, teaches it a third lesson, takes that back and
shows it again. Each of these must succeed or end with an error of one sentence, within the time limit and within 4 GiB of
address space above what the worker needs to start. Nothing may appear or change outside the folder. Every folder is tried once:
kinds of which there are few, such as pickles, have fewer cases.
"""

import hashlib
import json
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from fuzz_runs import ROOM, run
from worker import Worker, answer, noted, shared

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from support import hostile_models
from support.hostile_models import KINDS, MODELS, USES

WORDS = {kind: kind.__name__.replace("_", " ") for kind in KINDS}
ATTEMPTS = 100  # after so many known folders, there is no other of this kind
MINE = "mine"  # what lies beside the folder


def work():
    """Use one folder after another."""
    import torch

    torch.set_num_threads(1)
    hostile_models.brief()
    lessons = {name: lessons()[2] for name, (lessons, _) in MODELS.items()}
    answer(lambda case: judge(*case, lessons))


def judge(path, name, lessons):
    """The outcome of one folder: whether it could be loaded, and what was said."""
    folder = Path(path)
    os.chdir(folder.parent)
    said = [use(folder, lessons[name]) for use in USES]
    beside = {entry.name: entry.read_text() if entry.name == MINE else "" for entry in folder.parent.iterdir()}
    if beside != {folder.name: "", MINE: MINE}:
        return "changes outside", str(beside)
    return "refused" if said[0] else "loaded and taught" if not said[2] else "loaded", " | ".join(filter(None, said))


def fuzz(options):
    """Make the folders, let workers use them, and write the record of outcomes."""
    from prer.runs.environment import environment

    seen, tables, faults = set(), {WORDS[kind]: Counter() for kind in KINDS}, []
    names, start = list(MODELS), time.perf_counter()
    with tempfile.TemporaryDirectory(dir=ROOM) as root, hostile_models.deep():
        bases = {name: hostile_models.made(Path(root, name.replace(" ", "-")), name)[0] for name in names}

        def one(worker, number):
            kind, name = KINDS[number % len(KINDS)], names[number // len(KINDS) % len(names)]
            for attempt in range(ATTEMPTS):
                files = kind(np.random.default_rng([options.seed, number, attempt]), bases[name])
                sha = hashlib.sha256(b"".join(key.encode() + files[key] for key in sorted(files))).digest()
                if sha not in seen:
                    break
            else:
                return
            seen.add(sha)
            with tempfile.TemporaryDirectory(dir=root) as place:
                Path(place, MINE).write_text(MINE)
                hostile_models.write(Path(place, "pets"), files)
                result, said, seconds, peak = worker.tried((str(Path(place, "pets")), name))
                said = said.replace(place, "")
            if result not in OUTCOMES:
                case = {"kind": WORDS[kind], "model": name, "number": number, "result": result, "said": said[:300]}
                faults.append(case)
                print(case, flush=True)
            elif options.only:
                print(WORDS[kind], name, result, said)
            noted(tables[WORDS[kind]], "folders", result, seconds, peak)

        numbers = [int(options.only)] if options.only else range(options.count)
        shared(one, numbers, options.workers, lambda: Worker(__file__, ("/nowhere/pets", names[0]), options.seconds))
    counts = ("folders", "distinct", *OUTCOMES, "changes outside", "crashes", "hangs", "tracebacks")
    fields = (*counts, "slowest seconds", "peak MiB of a worker")
    record = {
        "command": f"python benchmarks/fuzz_models.py --count {options.count} --seed {options.seed} --seconds {options.seconds:g}",
        "hardware": f"{platform.machine()}, {options.workers} workers, 4 GiB of memory for each",
        "environment": environment(),
        "models": names,
        "seed": options.seed,
        "total": {field: sum(table[field] for table in tables.values()) for field in counts},
        "kinds": {kind: {field: table[field] for field in fields} for kind, table in tables.items()},
        "faults": faults,
        "seconds": round(time.perf_counter() - start),
    }
    if options.json:
        Path(options.json).write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps({key: record[key] for key in ("total", "seconds")}, indent=1))
    sys.exit(bool(faults))


OUTCOMES = ("loaded and taught", "loaded", "refused")

if __name__ == "__main__":
    run(work, fuzz, 2800)
