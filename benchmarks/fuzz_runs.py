"""Check that no run folder makes prer crash, hang or show a wrong result: thousands of damaged and forged folders.

python benchmarks/fuzz_runs.py [--count 10000] [--seed 0] [--seconds 20] [--json FILE]

A case starts as a valid run folder: one that was stopped after its last checkpoint, or a finished one. Then one of its
files is damaged (bits flipped, cut, spliced, bytes inserted) or forged: its structure is changed and its checksums are
recomputed. A worker process resumes or shows it. That must end with a result or with an error of one sentence, within the
time limit and within 4 GiB of address space above what the worker needs to start. If no checksum was forged, the result must be correct.
"""

import argparse
import contextlib
import copy
import hashlib
import io
import itertools
import json
import os
import platform
import struct
import sys
import tempfile
import time
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
from worker import Worker, answer, noted, shared

ROOM = "/dev/shm" if os.path.isdir("/dev/shm") else None  # there are many folders, and none needs to survive a crash
TINY = ["seeds=2", "device=cpu", "learner.epochs=2", "learner.batch=8", "learner.hidden=[4]", "learner.embedding=3"]
LEARNERS = {
    "naive": [],
    "prer": ["learner.epochs_autoencoder=1", "learner.density.epochs=1", "learner.density.blocks=1"],
    "gem": ["learner.size=6", "learner.memory_batch=3"],
    "der": ["learner.size=6"],
    "ewc": ["learner.samples=4"],
    "joint": [],
}
SWEEP = """base = "base.toml"
budget = 3
draw = 1
seeds = 2
[stream]
validation = 0.2
[axes]
"learner.name" = ["ewc", "si"]
[draws]
"learner.weight" = {low = 0.01, high = 1e4, log = true}
"learner.embedding" = [8, 16]
"""
BASE = 'name = "base"\n[stream]\ndata = "data.npz"\n[learner]\nepochs = 1\n'
CHECKPOINT, STATE = "checkpoint/checkpoint.json", "checkpoint/state.safetensors"


# -- valid folders -------------------------------------------------------------------------------------------------------


class Crash(BaseException):
    """The simulated end of the process."""


def prepared(root):
    """For each learner: the files of a run stopped shortly before its end, those of the finished run, and its name."""
    from prer.runs.checkpoint import Checkpoint, Pace
    from prer.runs.experiment import Experiment
    from prer.runs.run import execute

    rng = np.random.default_rng(0)
    np.savez(Path(root, "data.npz"), x=rng.normal(size=(48, 3)), y=np.repeat(np.arange(4), 12))
    Path(root, "base.toml").write_text(BASE)
    os.chdir(root)
    Pace.due, write, found = lambda pace: True, Checkpoint.write, {}
    for name, settings in LEARNERS.items():
        given = ["name=fuzz", "stream.data=data.npz", f"learner.name={name}", *TINY, *settings]
        written, crash_at = [], None

        def writing(self, saved):
            write(self, saved)
            written.append(saved)  # noqa: B023, it is called before the loop goes on
            if len(written) == crash_at:  # noqa: B023
                raise Crash

        Checkpoint.write = writing
        whole = execute(Experiment.parse({}, given), Path("whole"))
        crash_at = 2 * len(written)
        with contextlib.suppress(Crash):
            execute(Experiment.parse({}, given), Path("stopped"))
        found[name] = files_of(Path("stopped", whole.path.name)), files_of(whole.path), whole.path.name
    return found


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# -- damage --------------------------------------------------------------------------------------------------------------


def damaged(rng, data):
    """The same bytes with one to three faults."""
    for _ in range(int(rng.integers(1, 4))):
        data = ACCIDENTS[int(rng.integers(len(ACCIDENTS)))](rng, bytearray(data or b"\0"))
    return bytes(data)


def _flip(rng, data):
    for place in rng.integers(0, len(data), int(rng.integers(1, 5))):
        data[place] ^= 1 << int(rng.integers(8))
    return data


def _cut(rng, data):
    return data[: int(rng.integers(0, len(data)))]


def _splice(rng, data):
    a, b, to = (int(v) for v in rng.integers(0, len(data), 3))
    piece = data[min(a, b) : max(a, b)][:512]
    return data[:to] + piece + data[to + (len(piece) if rng.random() < 0.5 else 0) :]


def _insert(rng, data):
    to = int(rng.integers(0, len(data) + 1))
    return data[:to] + rng.bytes(int(rng.integers(1, 32))) + data[to:]


def _word(rng, data):
    """Insert words that parsers know at random places."""
    words = [
        b"NaN",
        b"Infinity",
        b"nan",
        b"null",
        b"{",
        b"[",
        b"]" * 9,
        b'"',
        b"\n",
        b"\0",
        b"1e999",
        b"-1",
        b"../",
        b"9",
    ]
    word, to = words[int(rng.integers(len(words)))], int(rng.integers(0, len(data) + 1))
    return data[:to] + word + data[to + (len(word) if rng.random() < 0.5 else 0) :]


ACCIDENTS = (_flip, _flip, _cut, _splice, _insert, _word)


# -- forgery -------------------------------------------------------------------------------------------------------------


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


EXTREME = [
    None,
    True,
    False,
    -1,
    0,
    1,
    2,
    3,
    10**9,
    2**63,
    10**30,
    10**400,
    0.5,
    -0.5,
    1e308,
    float("nan"),
    float("inf"),
]
EXTREME += ["", "x", "x" * 9999, "../../..", "/dev/zero", "~", "\x1b[2J\x1b]0;owned\x07", "<script>", "[red]", "\0"]
EXTREME += [
    [],
    {},
    [[]],
    [None],
    [1, 2],
    {"a": 1},
    {"": {}},
    {"__class__": "os.system"},
    deep(50),
    deep(400),
    deep(900),
]


def forged(rng, tree):
    """The same nested values with one to three changes of their structure."""
    tree = copy.deepcopy(tree)
    for _ in range(int(rng.integers(1, 4))):
        places = list(_places(tree))
        if not places:
            return tree
        owner, key = places[int(rng.integers(len(places)))]
        other_owner, other_key = places[int(rng.integers(len(places)))]
        kind = int(rng.integers(8))
        if kind == 0:
            del owner[key]
        elif kind == 1:
            name = str(rng.choice(["", "x", "tasks", "\x1b[31m", "learner.0", "a" * 300]))
            owner[name if isinstance(owner, dict) else key] = owner[key]
        elif kind == 2:
            owner[key] = copy.deepcopy(other_owner[other_key])
        elif kind == 3:
            owner[key] = [owner[key]] * int(rng.integers(1, 4))
        elif kind == 4 and type(owner[key]) in (int, float):
            owner[key] = owner[key] * int(rng.integers(-2, 4)) + int(rng.integers(-2, 3))
        else:
            owner[key] = copy.deepcopy(EXTREME[int(rng.integers(len(EXTREME)))])
    return tree


def _places(tree, depth=0):
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list) and depth < 12:
            yield from _places(tree[key], depth + 1)


def signed(content):
    """checkpoint.json with a recomputed checksum."""
    from prer.disk import checksum

    return json.dumps({"sha256": checksum(content), "content": content}).encode()


def resigned(files, state):
    """The folder with other tensors and recomputed checksums."""
    content = json.loads(files[CHECKPOINT])["content"]
    content |= {"bytes": len(state), "sha256": hashlib.sha256(state).hexdigest()}
    return files | {STATE: state, CHECKPOINT: signed(content)}


def tensors_of(state):
    """Names with type, shape and bytes."""
    (length,) = struct.unpack("<Q", state[:8])
    header = json.loads(state[8 : 8 + length])
    body = state[8 + length :]
    parts = {name: about for name, about in header.items() if name != "__metadata__"}
    return {name: [a["dtype"], a["shape"], body[slice(*a["data_offsets"])]] for name, a in parts.items()}


def state_of(tensors):
    header, body = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1}


def other_tensors(rng, state):
    """Drop, add or rename tensors, or change their type, shape or value; each tensor stays valid in itself."""
    tensors = tensors_of(state)
    for _ in range(int(rng.integers(1, 4))):
        names = list(tensors)
        if not names:
            break
        name, other = (names[int(i)] for i in rng.integers(0, len(names), 2))
        dtype, shape, data = tensors[name]
        kind = int(rng.integers(7))
        if kind == 0:
            del tensors[name]
        elif kind == 1:
            tensors[name] = tensors[other]
        elif kind == 2:
            spoilt = [
                f"{name}.x",
                "state/",
                "x",
                "phase/x/y",
                "state/kept.forward",
                name.replace("0", "7"),
                "state/../x",
            ]
            tensors[spoilt[int(rng.integers(len(spoilt)))]] = tensors.pop(name)
        elif kind == 3:
            dtype = str(rng.choice(list(SIZES)))
            count = len(data) // SIZES[dtype]
            tensors[name] = [dtype, [count], data[: count * SIZES[dtype]]]
        elif kind == 4:
            shape = [int(n) for n in rng.integers(0, 5, int(rng.integers(0, 5)))]
            tensors[name] = [dtype, shape, rng.bytes(int(np.prod(shape, dtype=int)) * SIZES[dtype])]
        elif kind == 5:
            tensors[name] = [dtype, shape, rng.bytes(len(data))]
        elif dtype == "F32":
            value = rng.choice([0, -1, 1e-40, 1e30, np.nan, np.inf, 7])
            tensors[name] = [dtype, shape, np.full(len(data) // 4, value, np.float32).tobytes()]
    return state_of(tensors)


def toml(value):
    """A value as TOML; a value that TOML cannot express becomes an empty string."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(v)}" for key, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, float):
        return repr(value)
    return '""' if value is None else json.dumps(value).replace("\x7f", "\\u007f")


def toml_of(tables):
    """Tables as a document."""
    top = [f"{json.dumps(key)} = {toml(value)}" for key, value in tables.items() if not isinstance(value, dict)]
    for key, table in tables.items():
        if isinstance(table, dict):
            top += [f"[{json.dumps(key)}]", *(f"{json.dumps(k)} = {toml(v)}" for k, v in table.items())]
    return "\n".join(top).encode() + b"\n"


# -- kinds: each returns the files of a folder, the command to run, and whether a result must be correct -----------------


def checkpoint_damaged(rng, stopped, finished):
    return stopped | {CHECKPOINT: damaged(rng, stopped[CHECKPOINT])}, "resume", True


def checkpoint_forged(rng, stopped, finished):
    return stopped | {CHECKPOINT: signed(forged(rng, json.loads(stopped[CHECKPOINT])["content"]))}, "resume", False


def about_forged(rng, stopped, finished):
    content = json.loads(stopped[CHECKPOINT])["content"]
    context = content["about"].pop("context")  # if this differs, nothing else is checked, unless --force is given
    if rng.random() < 0.2:
        about = forged(rng, content["about"] | {"context": context})
    else:
        about = forged(rng, content["about"]) | {"context": context}
    return stopped | {CHECKPOINT: signed(content | {"about": about})}, "force", False


def state_damaged(rng, stopped, finished):
    return stopped | {STATE: damaged(rng, stopped[STATE])}, "resume", True


def state_damaged_signed(rng, stopped, finished):
    state = stopped[STATE]
    if (
        rng.random() < 0.7
    ):  # most of a file is numbers; the names and sizes before them are more likely to break a reader
        length = 8 + struct.unpack("<Q", state[:8])[0]
        state = damaged(rng, state[:length]) + state[length:]
    else:
        state = damaged(rng, state)
    return resigned(stopped, state), "resume", False


def tensors_forged(rng, stopped, finished):
    return resigned(stopped, other_tensors(rng, stopped[STATE])), "resume", False


def experiment_damaged(rng, stopped, finished):
    return stopped | {"experiment.toml": damaged(rng, stopped["experiment.toml"])}, "resume", True


def experiment_forged(rng, stopped, finished):
    tables = forged(rng, tomllib.loads(stopped["experiment.toml"].decode()))
    return stopped | {"experiment.toml": toml_of(tables)}, "resume", True


def experiment_alone(rng, stopped, finished):
    tables = forged(rng, tomllib.loads(stopped["experiment.toml"].decode()))
    text = toml_of(tables) if rng.random() < 0.5 else damaged(rng, stopped["experiment.toml"])
    return {"experiment.toml": text}, "resume", True  # the name of its folder contains the hash


def sweep_damaged(rng, stopped, finished):
    text = damaged(rng, SWEEP.encode()) if rng.random() < 0.5 else toml_of(forged(rng, tomllib.loads(SWEEP)))
    return {"sweep.toml": text, "base.toml": BASE.encode()}, "sweep", False


def environment_damaged(rng, stopped, finished):
    text = stopped["environment.json"]
    text = damaged(rng, text) if rng.random() < 0.5 else json.dumps(forged(rng, json.loads(text))).encode()
    return stopped | {"environment.json": text}, "resume", True


def events_damaged(rng, stopped, finished):
    return stopped | {"events.jsonl": damaged(rng, stopped["events.jsonl"])}, "resume", True


def result_damaged(rng, stopped, finished):
    return finished | {"result.json": damaged(rng, finished["result.json"])}, "show", True


def result_forged(rng, stopped, finished):
    from prer.disk import checksum

    result = forged(rng, {k: v for k, v in json.loads(finished["result.json"]).items() if k != "sha256"})
    return finished | {"result.json": json.dumps(result | {"sha256": checksum(result)}).encode()}, "show", False


KINDS = {
    "checkpoint.json damaged": checkpoint_damaged,
    "checkpoint.json forged": checkpoint_forged,
    "checkpoint.json's about forged": about_forged,
    "state.safetensors damaged": state_damaged,
    "state.safetensors damaged, checksums forged": state_damaged_signed,
    "state.safetensors, tensors forged": tensors_forged,
    "experiment.toml damaged": experiment_damaged,
    "experiment.toml forged": experiment_forged,
    "experiment.toml alone": experiment_alone,
    "sweep.toml damaged or forged": sweep_damaged,
    "environment.json damaged or forged": environment_damaged,
    "events.jsonl damaged": events_damaged,
    "result.json damaged": result_damaged,
    "result.json forged": result_forged,
}


# -- workers -------------------------------------------------------------------------------------------------------------


def work():
    """Process one folder after another."""
    import torch

    import prer.runs.folder
    from prer.runs.checkpoint import Pace

    prer.runs.environment._commit = lambda: None  # starting a process for each folder would take most of the time
    Pace.due = lambda pace: True  # a resumed run writes checkpoints, too
    torch.set_num_threads(1)
    answer(judge)


def judge(case):
    """The outcome of one folder."""
    from prer.errors import InputError, RunError
    from prer.text import sentence

    folder, action, digest = case
    try:
        found = ACTIONS[action](Path(folder))
        return ("wrong results", f"digest {found}") if digest not in (None, found) else ("results", "")
    except (InputError, RunError) as error:
        return "refused" if isinstance(error, InputError) else "failed runs", sentence(error)


def resume(folder, force=False):

    from prer.runs.run import resume

    return resume(folder, force=force).result["digest"]


def show(folder):
    from rich.console import Console

    from prer.runs.folder import RunFolder
    from prer.terminal.tables import show_result, show_runs

    file, record = io.StringIO(), RunFolder(folder)
    if record.result is None:
        raise AssertionError("the result has gone")
    show_result(Console(file=file), record)
    show_runs(Console(file=file), [record])
    assert all(c.isprintable() or c == "\n" for c in file.getvalue()), "it shows what a terminal would obey"
    return record.result.get("digest")


def sweep(folder):
    from prer.sweeps.sweep import Sweep

    return str(len(Sweep.read(folder / "sweep.toml").points()))


ACTIONS = {"resume": resume, "force": lambda folder: resume(folder, force=True), "show": show, "sweep": sweep}


# -- the record ----------------------------------------------------------------------------------------------------------


def run(work, fuzz, count):
    """Work on folders, or make them and judge what happens, as the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", help="the number of one case to repeat")
    parser.add_argument("--json")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work()
    else:
        fuzz(options)


def fuzz(options):
    """Make the folders, let workers process them, and write the record of outcomes."""
    from prer.runs.environment import environment

    sys.setrecursionlimit(20_000)  # to make the folders that workers must refuse
    seen, tables, faults, target = set(), {kind: Counter() for kind in KINDS}, [], options.json
    target = Path(target).resolve() if target else None
    root = tempfile.TemporaryDirectory(dir=ROOM)
    bases = prepared(root.name)
    digests = {name: json.loads(base[1]["result.json"])["digest"] for name, base in bases.items()}

    def case(number, attempt):
        rng, kind = np.random.default_rng([options.seed, number, attempt]), list(KINDS)[number % len(KINDS)]
        learner = list(bases)[number // len(KINDS) % len(bases)]
        stopped, finished, name = bases[learner]
        files, action, right = KINDS[kind](rng, stopped, finished)
        return kind, files, name, action, digests[learner] if right else None

    def one(worker, number):
        for attempt in itertools.count():
            kind, files, name, action, digest = case(number, attempt)
            sha = hashlib.sha256(kind.encode() + b"".join(files[key] for key in sorted(files))).digest()
            if sha not in seen:
                break
        seen.add(sha)
        with tempfile.TemporaryDirectory(dir=root.name) as place:
            folder = Path(place, name)
            for relative, data in files.items():
                (folder / relative).parent.mkdir(parents=True, exist_ok=True)
                (folder / relative).write_bytes(data)
            result, said, seconds, peak = worker.tried((str(folder), action, digest))
            said = said.replace(place, "")
        if result not in ("results", "refused", "failed runs"):
            faults.append({"kind": kind, "number": number, "attempt": attempt, "result": result, "said": said[:300]})
            print(faults[-1], flush=True)
        elif options.only:
            print(kind, result, said)
        noted(tables[kind], "folders", result, seconds, peak)

    start = time.perf_counter()
    numbers = [int(options.only)] if options.only else range(options.count)
    shared(one, numbers, options.workers, lambda: Worker(__file__, ("/nowhere", "resume", None), options.seconds))
    outcomes = ("folders", "distinct", "results", "refused", "failed runs")
    outcomes += ("wrong results", "crashes", "hangs", "tracebacks")
    fields = (*outcomes, "slowest seconds", "peak MiB of a worker")
    command = (
        f"python benchmarks/fuzz_runs.py --count {options.count} --seed {options.seed} --seconds {options.seconds:g}"
    )
    record = {
        "command": command,
        "hardware": f"{platform.machine()}, {options.workers} workers, 4 GiB of memory for each",
        "environment": environment(),
        "learners": list(LEARNERS),
        "seed": options.seed,
        "total": {field: sum(table[field] for table in tables.values()) for field in outcomes},
        "kinds": {kind: {field: table[field] for field in fields} for kind, table in tables.items()},
        "faults": faults,
        "seconds": round(time.perf_counter() - start),
    }
    print(json.dumps(record, indent=1))
    if target:
        target.write_text(json.dumps(record, indent=1) + "\n")
    root.cleanup()


if __name__ == "__main__":
    run(work, fuzz, 10_000)
