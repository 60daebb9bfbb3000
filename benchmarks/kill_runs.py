"""Check that killed and resumed runs end in exactly the same state, with hundreds of real processes.

python benchmarks/kill_runs.py [--prer 100] [--others 20] [--faults prer] [--longer 1] [--device cpu] [--seed 0]
    [--json FILE]

Part 1, random: a run starts in its own process, is killed by SIGKILL at a random moment, and is resumed. It may be killed up
to three times before it may finish. Part 2, systematic: a run dies right before, right after and, for writes, in the middle
of every call that changes the disk, from its first file to its last; within checkpoints, in the first, the second and the
last. Each is tried once with SIGKILL and once with a simulated power loss, which truncates data that was not yet flushed to
disk. In every case, result, events and model must equal those of an uninterrupted run, except for times.

Runs are forked from a process that has imported everything, so that they are killed in training and not during imports.
"""

import argparse
import contextlib
import importlib
import io
import json
import mmap
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch

import prer.runs.checkpoint
import prer.runs.folder
import prer.runs.run
from prer.cli.main import main as prer_command
from prer.learners import LEARNERS
from prer.runs.experiment import Experiment

PATIENCE = 120  # seconds after which a process counts as hanging
KILLS = 3  # maximum number of kills of one run
AGAIN = 0.5  # probability that a resumed run is killed, too
DOING = ("beginning", "training", "a checkpoint", "ending")  # what a process may be killed at
BEGINNING, TRAINING, CHECKPOINT, ENDING = range(len(DOING))

SMALL = ("channels=[4,8]", "hidden=[8]", "embedding=8", "batch=64")
OF_LEARNER = {
    "prer": ("density.blocks=2", "density.lr=0.01"),
    "dgr": ("latent=8",),
    "gem": ("size=20", "memory_batch=8"),
    **dict.fromkeys(("agem", "er", "lwf"), ("size=20",)),
    **dict.fromkeys(("replay", "der"), ("size=50",)),
}
THREE = "stream.tasks=[[0,1],[2,3],[4,5]]"
STREAMS = {  # settings, and the epochs of each phase: less than a second of training
    "two seeds": (("seeds=2", "stream.data=digits", THREE), 2),
    "one seed, one head": (("seeds=1", "stream.data=digits", "stream.kind=permuted", "stream.count=2"), 1),
    "five seeds": (("seeds=5", "stream.data=digits", THREE, "stream.crop=1", "learner.normalise=true"), 2),
    "short": (("seeds=[3,5]", "stream.data=short.npz", "name=short"), 1),
}
LONG = tuple(STREAMS)[:-1]
LONGER = [1]  # times as many epochs
DEVICE = ["cpu"]


def settings(learner, stream):
    """The arguments of `prer run`."""
    chosen, epochs = STREAMS[stream]
    phases = [p for p in ("epochs", "epochs_autoencoder", "epochs_generator") if _has(learner, p)]
    phases += ["density.epochs"] if _has(learner, "density") else []
    epochs = LONGER[0] * (epochs if len(phases) > 1 else 2 * epochs)
    own = (*SMALL, *OF_LEARNER.get(learner, ()), *(f"{phase}={epochs}" for phase in phases))
    return [*chosen, f"device={DEVICE[0]}", f"learner.name={learner}", *(f"learner.{setting}" for setting in own)]


def _has(learner, field):
    return field in LEARNERS[learner].__dataclass_fields__


# -- processes ---------------------------------------------------------------------------------------------------------


class Process:
    """Work in its own process; a run reports through shared memory what it is doing."""

    def __init__(self, work, said, prepare=lambda: None, afterwards=lambda: None):
        self.marks = mmap.mmap(-1, 1)  # survives its death
        self.begin = time.perf_counter()
        self.pid = os.fork()
        if self.pid == 0:
            code = 99
            try:
                signal.alarm(PATIENCE)
                for stream in (1, 2):
                    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
                tell(self.marks)
                prepare()
                work()
                afterwards()
                code = 0
            except SystemExit as error:
                code = error.code
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)

    def wait(self):
        """Its exit code, or minus the signal that killed it."""
        _, status = os.waitpid(self.pid, 0)
        self.seconds = time.perf_counter() - self.begin
        return os.waitstatus_to_exitcode(status)

    def kill_after(self, seconds):
        """The same, killed this many seconds after training began unless it ended before."""
        while self.marks[0] == BEGINNING and not self._ended:
            time.sleep(0.001)
        time.sleep(seconds)
        os.kill(self.pid, signal.SIGKILL)  # its process id is not reused before it is waited for
        return self.wait()

    @property
    def _ended(self):
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    @property
    def doing(self):
        """What it is doing, or was doing when it died."""
        return DOING[self.marks[0]]


def tell(marks):
    """In a run's process: keep its mark up to date."""

    def marked(function, during, after=None):
        def call(*args, **more):
            before, marks[0] = marks[0], during
            result = function(*args, **more)
            marks[0] = before if after is None else after
            return result

        return call

    prer.runs.run.learn_tasks = marked(prer.runs.run.learn_tasks, TRAINING, ENDING)
    prer.runs.checkpoint.Checkpoint.write = marked(prer.runs.checkpoint.Checkpoint.write, CHECKPOINT)


def import_all(folder):
    """Import everything that runs import, by showing one run; otherwise each run would spend its first seconds on imports."""
    names = folder / "modules.json"
    note = lambda: names.write_text(json.dumps(sorted(sys.modules)))  # noqa: E731
    command = ["run", *settings("prer", "two seeds"), "--out", str(folder / "first"), "--quiet"]
    assert Process(partial(prer_command, command), folder / "said", afterwards=note).wait() == 0, (
        folder / "said"
    ).read_text()
    for name in json.loads(names.read_text()):
        with contextlib.suppress(ImportError):  # parts of compiled packages are not separate modules
            importlib.import_module(name)


# -- runs --------------------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """A run's folder and its history."""

    learner: str
    stream: str
    out: Path

    def __post_init__(self):
        """The path of its folder."""
        self.out.mkdir(parents=True)
        self.settings = settings(self.learner, self.stream)
        self.path = self.out / Experiment.parse({}, self.settings).folder
        self.counts = Counter(runs=1)

    def process(self, rng=None, **more):
        """Start the run, or resume it with `resume` or with the command that started it."""
        begun = (self.path / "experiment.toml").exists()
        by_resume = begun and (rng is None or rng.random() < 0.7)
        command = ["resume", str(self.path)] if by_resume else ["run", *self.settings, "--out", str(self.out)]
        self.counts["resumes"] += begun
        return Process(partial(prer_command, [*command, "--quiet"]), self.out / "said", **more)

    def note(self, code, doing):
        """Count how a process ended; return whether it was killed."""
        if code == -signal.SIGKILL:
            self.counts["kills"] += 1
            self.counts[f"kills in {doing}"] += 1
            there = [*self.path.glob("checkpoint*/checkpoint.json"), *self.path.glob("result.json")]
            self.counts["kills before the first checkpoint"] += not there
        elif code:
            raise Failed(f"it ended with {code}: {(self.out / 'said').read_text()[-600:]}")
        return code == -signal.SIGKILL

    def found(self):
        """All outputs of the run, without times."""
        result = json.loads((self.path / "result.json").read_text())
        events = [json.loads(line) for line in (self.path / "events.jsonl").read_text().splitlines()]
        environment = json.loads((self.path / "environment.json").read_text())
        self.counts["resumes from a checkpoint"] += len(environment.get("resumed", ()))
        return {
            "digest": result["digest"],
            "matrix": result["matrix"],
            "result": {key: value for key, value in result.items() if key not in ("seconds", "sha256")},
            "events": [{key: value for key, value in event.items() if key != "seconds"} for event in events],
            "model": (self.path / "model" / "model.safetensors").read_bytes(),
        }


class Failed(Exception):
    """A run that could not be finished."""


@dataclass
class Whole:
    """An uninterrupted run."""

    found: dict
    seconds: float
    moments: list  # where it may die: the call, the checkpoint it belongs to (0: none), and the number of finished checkpoints


def whole(folder, learner, stream):
    """Run it twice, and check that both runs are equal."""
    runs = [Run(learner, stream, folder / f"{learner} {stream} {i}") for i in range(2)]
    calls, moments = Calls(), folder / f"{learner} {stream}.json"
    note = lambda: moments.write_text(json.dumps(calls.moments))  # noqa: E731
    watched = {"prepare": calls.watch, "afterwards": note} if stream == "short" else {}
    seconds = []
    for run, more in zip(runs, ({}, watched), strict=True):
        process = run.process(**more)
        run.note(process.wait(), process.doing)
        seconds.append(process.seconds)
    found = runs[0].found()
    assert found == runs[1].found(), f"{learner} on {stream} is not the same twice"
    met = json.loads(moments.read_text()) if moments.exists() else []
    return Whole(found, min(seconds), met)


# -- faults ------------------------------------------------------------------------------------------------------------


class Calls:
    """In a run's process: the calls that change the disk, with the moments before, during and after each.

    Args:
        at: the moment at which to die, counted from 1.
        power: whether to simulate a power loss.
    """

    names = ("mkdir", "open", "rename", "replace", "unlink", "rmdir")  # of functions of `os`

    def __init__(self, at=0, power=False):
        self.at, self.power, self.moments, self.checkpoints, self.within = at, power, [], 0, False
        self.loose = {}  # files not yet flushed to disk: a handle, and the length that is safe

    def watch(self):
        """Replace the calls by counted ones."""
        prer.runs.checkpoint.Pace.due = lambda pace: True  # the same checkpoints in every run
        self.fsync = os.fsync
        for name in self.names:
            setattr(os, name, self.around(name, getattr(os, name)))
        os.fsync = self.around("fsync", self.forced)
        io.open = self.around("open", partial(self.opened, io.open))
        write = prer.runs.checkpoint.Checkpoint.write

        def counted(*args):
            self.checkpoints, self.within = self.checkpoints + 1, True
            write(*args)
            self.within = False

        prer.runs.checkpoint.Checkpoint.write = counted

    def around(self, name, function):
        """The same function with a moment before and after it."""

        def call(*args, **more):
            self.moment(f"before {name}")
            result = function(*args, **more)
            self.moment(f"after {name}")
            return result

        return call

    def moment(self, what):
        """Count a moment, and die if it is the chosen one."""
        self.moments.append((what, self.checkpoints if self.within else 0, self.checkpoints - self.within))
        if len(self.moments) == self.at:
            for handle, safe in self.loose.values() if self.power else ():
                written = os.fstat(handle).st_size
                if written > safe:
                    os.ftruncate(handle, safe + (written - safe) // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    def opened(self, function, file, mode="r", *args, **more):
        """Open a file; a file for writing is written in two halves."""
        result = function(file, mode, *args, **more)
        return result if mode in ("r", "rb") else Halves(result, self)

    def written(self, handle):
        """Record that a file is not safe any more."""
        about = os.fstat(handle)
        if about.st_ino not in self.loose:
            self.loose[about.st_ino] = os.dup(handle), about.st_size

    def forced(self, handle):
        """Record that a file is safe."""
        self.fsync(handle)
        self.loose.pop(os.fstat(handle).st_ino, None)


class Halves:
    """A file that writes in two halves."""

    def __init__(self, file, calls):
        self.file, self.calls = file, calls

    def __getattr__(self, name):
        """As the file has it."""
        return getattr(self.file, name)

    def __enter__(self):
        """As a file."""
        return self

    def __exit__(self, *_):
        """As a file."""
        self.file.close()

    def write(self, data):
        """Write one half, then the other."""
        self.calls.written(self.file.fileno())
        half = len(data) // 2
        for when, part in (("before", data[:0]), ("amid", data[:half]), ("after", data[half:])):
            self.file.write(part)
            self.file.flush()
            self.calls.moment(f"{when} write")


# -- the two ways to die -----------------------------------------------------------------------------------------------


def at_random(measure, run, rng):
    """Kill it one to three times at random moments."""
    for i in range(KILLS):
        while not run.note((process := run.process(rng)).kill_after(rng.uniform(0, measure.seconds)), process.doing):
            if i:
                return  # it had ended before
            shutil.rmtree(run.path)
        if i + 1 < KILLS and rng.random() > AGAIN:
            break
    run.note(run.process(rng).wait(), None)


def at_a_call(measure, run, rng, at, power):
    """Let it die at a given moment, and some resumed runs at another one."""
    process = run.process(rng, prepare=Calls(at, power).watch)
    if not run.note(process.wait(), process.doing):
        raise Failed("it did not die; are its calls not the same every time?")
    saved = measure.moments[at - 1][-1] and not (run.path / "result.json").exists()
    if rng.random() < AGAIN:
        second = Calls(int(rng.integers(1, len(measure.moments))), not power)
        process = run.process(rng, prepare=second.watch)
        run.note(process.wait(), process.doing)
    run.note(run.process(rng).wait(), None)  # a finished run stays as it is
    if saved and "resumed" not in json.loads((run.path / "environment.json").read_text()):
        raise Failed("it started over, although a checkpoint was finished")


@dataclass
class Case:
    """A case: one run that is killed."""

    number: int
    learner: str
    stream: str
    at: int = 0
    power: bool = False

    def try_it(self, folder, seed, measure):
        """Its counts, and its faults."""
        rng, begin, wrong = np.random.default_rng([seed, self.number]), time.perf_counter(), None
        run = Run(self.learner, self.stream, folder / str(self.number))
        try:
            if self.at:
                at_a_call(measure, run, rng, self.at, self.power)
            else:
                at_random(measure, run, rng)
            found = run.found()
            wrong = [part for part in found if found[part] != measure.found[part]]
            wrong = f"other than without a stop: {', '.join(wrong)}" if wrong else None
            run.counts["equal digests"] += found["digest"] == measure.found["digest"]
            run.counts["equal in all"] += wrong is None
        except (Failed, OSError, ValueError) as error:
            wrong = str(error)
        shutil.rmtree(run.out)
        if wrong and self.at:
            wrong = f"{'power lost' if self.power else 'killed'} {measure.moments[self.at - 1]}: {wrong}"
        return self, run.counts, wrong, time.perf_counter() - begin


def at_random_of(options):
    """Learner and stream of each run that is killed at random."""
    counts = {learner: options.prer if learner == "prer" else options.others for learner in options.learners}
    return [(learner, LONG[i % len(LONG)]) for learner, count in counts.items() for i in range(count)]


def at_calls_of(options, measures):
    """The same for runs that die at a call, with the moment, and whether power is lost."""
    for learner in options.faults:
        moments = measures[learner, "short"].moments
        last = max(checkpoint for _, checkpoint, _ in moments)
        chosen = [last if checkpoint < 0 else checkpoint for checkpoint in options.checkpoints]
        for at, (what, checkpoint, _) in enumerate(moments, 1):
            if checkpoint in chosen:
                yield learner, "short", at, False
                if not what.startswith("before"):  # the disk is as it was after the last call
                    yield learner, "short", at, True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prer", type=int, default=100, help="runs of PRER that are killed at random")
    parser.add_argument("--others", type=int, default=20, help="and of each other learner")
    parser.add_argument("--faults", nargs="*", default=["prer"], help="learners that die at every call")
    parser.add_argument(
        "--learners", nargs="*", default=list(reversed(LEARNERS)), help="learners that are killed at random"
    )
    parser.add_argument(
        "--checkpoints",
        nargs="*",
        type=int,
        default=[0, 1, 2, -1],
        help="the checkpoints whose calls are tried; 0: outside of checkpoints, -1: the last",
    )
    parser.add_argument("--longer", type=int, default=1, help="multiply the number of epochs; 5: about 2 s of training")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json")
    options = parser.parse_args()
    LONGER[0], DEVICE[0] = options.longer, options.device
    os.environ |= {"PRER_CHECKPOINT_SECONDS": "0", "OMP_NUM_THREADS": "1"}
    torch.set_num_threads(1)
    prer.runs.environment._commit = cache(prer.runs.environment._commit)  # git would take longer than the run
    with tempfile.TemporaryDirectory() as root, contextlib.chdir(root):
        record = kill(options, Path(root))
    if options.json:
        Path(options.json).write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps({key: record[key] for key in ("random", "calls", "faults", "seconds")}, indent=1))
    sys.exit(bool(record["faults"]))


def kill(options, root):
    """Run, kill, resume and compare, and write the record."""
    begin = time.perf_counter()
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 20)
    np.savez("short.npz", x=rng.normal(size=(80, 5)) + 2 * np.eye(5)[y], y=y)
    import_all(root)
    random = at_random_of(options)
    wanted = [*dict.fromkeys(random), *((learner, "short") for learner in options.faults)]
    tables = {"random": {}, "calls": {}}
    faults, slowest, most = [], 0.0, 0
    with multiprocessing.get_context("fork").Pool(options.workers) as pool:
        measures = dict(zip(wanted, pool.starmap(whole, [(root, *each) for each in wanted], 1), strict=True))
        cases = [Case(number, *each) for number, each in enumerate([*random, *at_calls_of(options, measures)])]
        tries = [(case, root, options.seed, measures[case.learner, case.stream]) for case in cases]
        for case, counts, wrong, seconds in pool.imap_unordered(_try, tries):
            table = tables["calls" if case.at else "random"].setdefault(case.learner, Counter())
            table.update(counts)
            slowest, most = max(slowest, seconds), max(most, counts["kills"])
            if wrong:
                faults.append({"learner": case.learner, "stream": case.stream, "number": case.number, "wrong": wrong})
                print(faults[-1], flush=True)
    fields = ("runs", "kills", *(f"kills in {doing}" for doing in DOING), "kills before the first checkpoint")
    fields += ("resumes", "resumes from a checkpoint", "equal digests", "equal in all")
    seconds = {f"{learner}, {stream}": round(measure.seconds, 2) for (learner, stream), measure in measures.items()}
    record = {
        "command": f"python benchmarks/kill_runs.py --prer {options.prer} --others {options.others} --faults {' '.join(options.faults)} --longer {options.longer} --device {options.device} --seed {options.seed}",
        "environment": prer.runs.environment.environment(),  # now: a process that has touched a GPU must not be forked
    }
    for way, table in tables.items():
        total = {field: sum(of[field] for of in table.values()) for field in fields}
        each = {learner: {field: of[field] for field in fields} for learner, of in sorted(table.items())}
        record[way] = {"total": total, "learners": each}
    worst = {"faults": len(faults), "kills of one run": most, "seconds of one case": round(slowest, 1)}
    moments = {learner: Counter(what for what, *_ in measures[learner, "short"].moments) for learner in options.faults}
    record |= {"moments": moments, "seconds without a stop": seconds, "worst": worst, "faults": faults}
    return record | {"seconds": round(time.perf_counter() - begin)}


def _try(arguments):
    case, *others = arguments
    return case.try_it(*others)


if __name__ == "__main__":
    main()
