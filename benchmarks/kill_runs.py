"""Does a run that is killed and resumed end in the same state, to the last bit? Hundreds of real processes, killed.

python benchmarks/kill_runs.py [--prer 100] [--others 20] [--faults prer] [--longer 1] [--device cpu] [--seed 0]
    [--json FILE]

First at random: a run is started as a process of its own, killed by SIGKILL at a moment that is drawn, and resumed;
that may be killed again, up to three times in all, before it is left to end. Then exactly: a run dies right before, after
and, where it writes, amid every call that changes the disk, from its first file to its last; within checkpoints, those of
the first, the second and the last. Each once by SIGKILL and once by a loss of power: what was written and not yet forced
to the disk is cut short. In every case result, events and model must be those of the run that was never stopped, but for times.

To be killed in training and not while Python imports, a run is forked from a process that has imported all it needs.
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

PATIENCE = 120  # seconds after which a process hangs
KILLS = 3  # of one run, at most
AGAIN = 0.5  # how likely a resumed one is killed, too
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
    """A run in a process of its own, which tells through shared memory what it is doing."""

    def __init__(self, arguments, said, prepare=lambda: None, afterwards=lambda: None):
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
                prer_command(arguments)
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
        """How it ended: 0, its exit code, or minus the signal that killed it."""
        _, status = os.waitpid(self.pid, 0)
        self.seconds = time.perf_counter() - self.begin
        return os.waitstatus_to_exitcode(status)

    def kill_after(self, seconds):
        """The same, killed so long after training began if it has not ended before."""
        while self.marks[0] == BEGINNING and not self._ended:
            time.sleep(0.001)
        time.sleep(seconds)
        os.kill(self.pid, signal.SIGKILL)  # until it is waited for, its number is not given to another
        return self.wait()

    @property
    def _ended(self):
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    @property
    def doing(self):
        """What it is at, or was at when it died."""
        return DOING[self.marks[0]]


def tell(marks):
    """Within a process: keep its mark."""

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
    """Import what runs import, by a look at one; else each would spend its first seconds with that."""
    names = folder / "modules.json"
    note = lambda: names.write_text(json.dumps(sorted(sys.modules)))  # noqa: E731
    command = ["run", *settings("prer", "two seeds"), "--out", str(folder / "first"), "--quiet"]
    assert Process(command, folder / "said", afterwards=note).wait() == 0, (folder / "said").read_text()
    for name in json.loads(names.read_text()):
        with contextlib.suppress(ImportError):  # parts of compiled packages are no modules of their own
            importlib.import_module(name)


# -- runs --------------------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """A run's folder and how it came to be."""

    learner: str
    stream: str
    out: Path

    def __post_init__(self):
        """Where it will be."""
        self.out.mkdir(parents=True)
        self.settings = settings(self.learner, self.stream)
        self.path = self.out / Experiment.parse({}, self.settings).folder
        self.counts = Counter(runs=1)

    def process(self, rng=None, **more):
        """Start it, or let it go on: by `resume`, or as well by the command that began it."""
        begun = (self.path / "experiment.toml").exists()
        by_resume = begun and (rng is None or rng.random() < 0.7)
        command = ["resume", str(self.path)] if by_resume else ["run", *self.settings, "--out", str(self.out)]
        self.counts["resumes"] += begun
        return Process([*command, "--quiet"], self.out / "said", **more)

    def note(self, code, doing):
        """Count how a process ended; whether it was killed."""
        if code == -signal.SIGKILL:
            self.counts["kills"] += 1
            self.counts[f"kills in {doing}"] += 1
            there = [*self.path.glob("checkpoint*/checkpoint.json"), *self.path.glob("result.json")]
            self.counts["kills before the first checkpoint"] += not there
        elif code:
            raise Failed(f"it ended with {code}: {(self.out / 'said').read_text()[-600:]}")
        return code == -signal.SIGKILL

    def found(self):
        """All that came of it, without times."""
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
    """A run that could not be brought to its end."""


@dataclass
class Whole:
    """A run that is never stopped."""

    found: dict
    seconds: float
    moments: list  # at which it may die: what it does, within which checkpoint (0: none), how many are finished


def whole(folder, learner, stream):
    """Run it; that it ends the same when it is done twice is what makes it a measure."""
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
    """Within a process: the calls by which it changes the disk, and the moments before, amid and after each.

    Args:
        at: the moment at which to die, counted from 1.
        power: whether that is a loss of power.
    """

    def __init__(self, at=0, power=False):
        self.at, self.power, self.moments, self.checkpoints, self.within = at, power, [], 0, False
        self.loose = {}  # files that were written and not yet forced to the disk: a handle, and the length that is safe

    def watch(self):
        """Begin."""
        prer.runs.checkpoint.Pace.due = lambda pace: True  # the same checkpoints in every run
        self.fsync = os.fsync
        for name in ("mkdir", "open", "rename", "replace", "unlink", "rmdir"):
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
        """The same function, with a moment before and one after."""

        def call(*args, **more):
            self.moment(f"before {name}")
            result = function(*args, **more)
            self.moment(f"after {name}")
            return result

        return call

    def moment(self, what):
        """A moment; if it is the one, the last."""
        self.moments.append((what, self.checkpoints if self.within else 0, self.checkpoints - self.within))
        if len(self.moments) == self.at:
            for handle, safe in self.loose.values() if self.power else ():
                written = os.fstat(handle).st_size
                if written > safe:
                    os.ftruncate(handle, safe + (written - safe) // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    def opened(self, function, file, mode="r", *args, **more):
        """A file, written by halves if it is written."""
        result = function(file, mode, *args, **more)
        return result if mode in ("r", "rb") else Halves(result, self)

    def written(self, handle):
        """Note that from here on a file is not safe."""
        about = os.fstat(handle)
        if about.st_ino not in self.loose:
            self.loose[about.st_ino] = os.dup(handle), about.st_size

    def forced(self, handle):
        """Note that it is."""
        self.fsync(handle)
        self.loose.pop(os.fstat(handle).st_ino, None)


class Halves:
    """A file that is written by halves."""

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
        """One half, and then the other."""
        self.calls.written(self.file.fileno())
        half = len(data) // 2
        for when, part in (("before", data[:0]), ("amid", data[:half]), ("after", data[half:])):
            self.file.write(part)
            self.file.flush()
            self.calls.moment(f"{when} write")


# -- the two ways to die -----------------------------------------------------------------------------------------------


def at_random(measure, run, rng):
    """Kill it one to three times, whenever."""
    for i in range(KILLS):
        while not run.note((process := run.process(rng)).kill_after(rng.uniform(0, measure.seconds)), process.doing):
            if i:
                return  # it had ended before
            shutil.rmtree(run.path)
        if i + 1 < KILLS and rng.random() > AGAIN:
            break
    run.note(run.process(rng).wait(), None)


def at_a_call(measure, run, rng, at, power):
    """Let it die at a moment, and some of the resumed ones at a moment of theirs."""
    process = run.process(rng, prepare=Calls(at, power).watch)
    if not run.note(process.wait(), process.doing):
        raise Failed("it did not die; are its calls not the same every time?")
    saved = measure.moments[at - 1][-1] and not (run.path / "result.json").exists()
    if rng.random() < AGAIN:
        second = Calls(int(rng.integers(1, len(measure.moments))), not power)
        process = run.process(rng, prepare=second.watch)
        run.note(process.wait(), process.doing)
    run.note(run.process(rng).wait(), None)  # one that has ended stays as it is
    if saved and "resumed" not in json.loads((run.path / "environment.json").read_text()):
        raise Failed("it began anew, although a checkpoint was finished")


@dataclass
class Case:
    """One run that is killed."""

    number: int
    learner: str
    stream: str
    at: int = 0
    power: bool = False

    def try_it(self, folder, seed, measure):
        """Its counts, and what was wrong with it."""
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
    """The learner and the stream of each run that is killed at random."""
    counts = {learner: options.prer if learner == "prer" else options.others for learner in options.learners}
    return [(learner, LONG[i % len(LONG)]) for learner, count in counts.items() for i in range(count)]


def at_calls_of(options, measures):
    """The same of those that die at a call, with the moment, and whether it is the power that is lost."""
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
        help="in which checkpoints the calls are; 0: in none, -1: in the last",
    )
    parser.add_argument("--longer", type=int, default=1, help="times as many epochs; 5: some 2 s of training")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json")
    options = parser.parse_args()
    LONGER[0], DEVICE[0] = options.longer, options.device
    os.environ |= {"PRER_CHECKPOINT_SECONDS": "0", "OMP_NUM_THREADS": "1"}
    torch.set_num_threads(1)
    prer.runs.environment._commit = cache(prer.runs.environment._commit)  # git would take more time than the run
    with tempfile.TemporaryDirectory() as root, contextlib.chdir(root):
        record = kill(options, Path(root))
    if options.json:
        Path(options.json).write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps({key: record[key] for key in ("random", "calls", "faults", "seconds")}, indent=1))
    sys.exit(bool(record["faults"]))


def kill(options, root):
    """Run, kill, resume, compare, and write down what came of it."""
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
