"""Check that a killed lesson leaves the old model or the new one, with hundreds of real processes.

python benchmarks/kill_models.py [--learners slda prer joint] [--random 60] [--every 1] [--jobs JOB ...] [--seed 0]
    [--json FILE]

A job changes a model folder: `prer teach` with the first, second or third lesson, `save` in Python, `prer undo` and `prer
score`. Part 1, systematic: it dies right before, right after and, for writes, in the middle of every call that changes the
disk or opens a file. Each is tried once with SIGKILL and once with a simulated power loss, which truncates data that was not
yet flushed to disk. Part 2, random: `teach` is killed by SIGKILL at a random moment. After every kill, the folder must hold
the model from before the job or the one from after it, complete with its previous version. Then the job is done again, some
are killed once more, and the next lesson is taught and undone. After each step, digest and predictions must be those of a
model that was never disturbed, and no file may be left over.

Processes are forked from one that has imported everything, so that they are killed at work and not during imports.
"""

import argparse
import contextlib
import hashlib
import io
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import kill_runs
import numpy as np
import torch
from kill_runs import AGAIN, Failed, Process
from kill_runs import prer_command as command

import prer
from prer.errors import InputError
from prer.models.folder import LOCK

TINY = ("learner.hidden=[8]", "learner.embedding=8", "learner.epochs=2")
LEARNERS = {
    "slda": ("learner.name=slda",),
    "prer": (*TINY, "learner.epochs_autoencoder=2", "learner.density.name=flow", "learner.density.epochs=2"),
    "joint": ("learner.name=joint", *TINY),  # its data is in the folder
}
LESSONS = ("ab", "c", "bd", "ae")  # the classes of each
NEXT = len(LESSONS)  # the lesson that is taught after every job


def teach(number, learner):
    new = ("--seeds=2", "--device=cpu", *LEARNERS[learner]) if number == 1 else ()
    return partial(command, ["teach", "pets", f"../{number}.npz", "--quiet", *new])


def save(number, learner):
    """The same lesson in Python."""

    def work():
        model = prer.load("pets", "cpu")
        with np.load(f"../{number}.npz") as given:
            model.partial_fit(given["x"], given["y"])
        model.save("pets")

    return work


# Of each: the number of lessons before it, and what it does.
JOBS = {
    "teach, first lesson": (0, partial(teach, 1)),
    "teach, second lesson": (1, partial(teach, 2)),
    "teach, third lesson": (2, partial(teach, 3)),
    "save": (2, partial(save, 3)),
    "undo": (2, lambda learner: partial(command, ["undo", "pets"])),
    "score": (2, lambda learner: partial(command, ["score", "pets", "../2.npz"])),
}


class Calls(kill_runs.Calls):
    """The calls that change the disk, with the moments before, during and after each."""

    names = (*kill_runs.Calls.names, "chmod", "ftruncate", "link", "symlink")


# -- folders -----------------------------------------------------------------------------------------------------------


def state():
    """The model in ./pets: digest, predictions, number of scores, and checksum of the previous version; None: no model."""
    try:
        model = prer.load("pets", "cpu")
    except InputError as error:
        if "contains no model" in str(error):
            return None
        raise Failed(str(error)) from None
    with np.load(f"../{NEXT}.npz") as given:
        scores = sum(event["event"] == "scored" for event in model.model_.history)
        return model.state_digest_, model.predict(given["x"]).tolist(), scores, previous()


def previous():
    """The checksum of the previous version's tensors, which must be there; None if there is no previous version."""
    before = json.loads(Path("pets/model.json").read_text()).get("previous")
    if before is None:
        return None
    file = Path("pets", before["tensors"]["file"])
    if not file.exists() or hashlib.sha256(file.read_bytes()).hexdigest() != before["tensors"]["sha256"]:
        raise Failed("the previous version is lost")
    return before["tensors"]["sha256"]


def files():
    """The names of the files in ./pets, but for the lock."""
    return sorted(path.name for path in Path("pets").iterdir() if path.name != LOCK)


def quietly(work):
    """Work in this process, without its output."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        work()


def done(work, **more):
    """Work in another process, whose exit code, or minus the signal that killed it, is returned."""
    code = Process(work, "said", **more).wait()
    if code not in (0, -signal.SIGKILL):
        raise Failed(f"it ended with {code}: {Path('said').read_text()[-600:]}")
    return code


@dataclass
class Whole:
    """A job that is not disturbed: the folder before it, the states before, after it and after the next lesson."""

    before: Path
    states: list
    files: list
    seconds: float
    moments: list


def whole(root, learner, job):
    """Do a job, then the next lesson; that imports everything, too."""
    place = root / f"{learner}, {job}"
    (place / "work").mkdir(parents=True)
    os.chdir(place / "work")
    for file in root.glob("*.npz"):
        os.link(file, place / file.name)
    lessons, make = JOBS[job]
    for number in range(1, lessons + 1):
        quietly(teach(number, learner))
    work, states, before = make(learner), [state()], place / "before"
    shutil.copytree("pets", before) if lessons else before.mkdir()
    begin = time.perf_counter()
    quietly(work)
    seconds = time.perf_counter() - begin
    states.append(state())
    quietly(teach(NEXT, learner))
    states.append(state())
    found = files()
    calls, moments = Calls(), place / "moments.json"
    restored(before)
    done(work, prepare=calls.watch, afterwards=lambda: moments.write_text(json.dumps(calls.moments)))
    assert state() == states[1], f"{job} of {learner} is not the same twice"
    return Whole(before, states, found, seconds, [what for what, *_ in json.loads(moments.read_text())])


def restored(before):
    """Put the folder from before the job into the current one."""
    shutil.rmtree("pets", ignore_errors=True)
    if any(before.iterdir()):
        shutil.copytree(before, "pets")


# -- kills -------------------------------------------------------------------------------------------------------------


@dataclass
class Case:
    """A job of one learner that is killed once or twice."""

    number: int
    learner: str
    job: str
    at: int = 0  # the moment at which it dies, counted from 1; 0: a random time
    power: bool = False

    def try_it(self, measure, root, seed):
        """Its counts, and its fault."""
        rng, counts, wrong = np.random.default_rng([seed, self.number]), Counter(tries=1), None
        place = root / f"{self.learner}, {self.job}" / str(self.number)
        place.mkdir()
        os.chdir(place)
        try:
            self._try(measure, rng, counts)
        except (Failed, OSError, ValueError) as error:
            what = measure.moments[self.at - 1] if self.at else "a random moment"
            wrong = f"{'power lost' if self.power else 'killed'} {what}: {error}"
        counts["right"] += wrong is None
        shutil.rmtree(place)
        return self, counts, wrong

    def _try(self, measure, rng, counts):
        work = JOBS[self.job][1](self.learner)
        restored(measure.before)
        if self.at:
            if done(work, prepare=Calls(self.at, self.power).watch) == 0:
                raise Failed("it did not die; are its calls not the same every time?")
            counts["kills"] += 1
        else:
            counts["kills"] += self._killed(work, rng.uniform(0, 1.1 * measure.seconds))
        new = found(measure, counts)
        if not new and rng.random() < AGAIN:
            second = Calls(int(rng.integers(1, len(measure.moments) + 1)), not self.power)
            counts["kills"] += done(work, prepare=second.watch) != 0
            new = found(measure, counts)
        if not new:
            quietly(work)
        expect(state(), measure.states[1], "after the job was done again")
        quietly(teach(NEXT, self.learner))
        expect(state(), measure.states[2], "after the next lesson")
        if len(files()) != len(measure.files) or any(name.startswith(".") for name in files()):
            raise Failed(f"files are left over: {', '.join(files())}")
        quietly(partial(command, ["undo", "pets"]))
        expect(state()[:-1], measure.states[1][:-1], "after the next lesson was undone")

    @staticmethod
    def _killed(work, seconds):
        process = Process(work, "said")
        time.sleep(seconds)
        os.kill(process.pid, signal.SIGKILL)
        code = process.wait()
        if code not in (0, -signal.SIGKILL):
            raise Failed(f"it ended with {code}: {Path('said').read_text()[-600:]}")
        return code != 0


def found(measure, counts):
    """Whether a killed job has left the new model; it must be the old or the new one."""
    now = state()
    if now not in measure.states[:2]:
        raise Failed("the folder holds neither the old model nor the new one")
    new = now == measure.states[1]
    counts["had the new model" if new else "had the old model"] += 1
    return new


def expect(now, then, when):
    """Compare a state with that of a folder that was never disturbed."""
    if now != then:
        raise Failed(f"another model {when}")


def _try(arguments):
    case, *others = arguments
    return case.try_it(*others)


# -- the record --------------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--learners", nargs="*", default=list(LEARNERS), choices=LEARNERS)
    parser.add_argument("--jobs", nargs="*", default=list(JOBS), choices=JOBS, help="jobs that die at calls")
    parser.add_argument("--every", type=int, default=1, help="die at every so many moments only")
    parser.add_argument("--random", type=int, default=60, help="lessons of each learner that are killed at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json")
    options = parser.parse_args()
    target = Path(options.json).resolve() if options.json else None
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    prer.runs.environment._commit = cache(prer.runs.environment._commit)
    with tempfile.TemporaryDirectory() as root, contextlib.chdir(root):
        record = kill(options, Path(root))
    if target:
        target.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps({key: record[key] for key in ("total", "faults", "seconds")}, indent=1))
    sys.exit(bool(record["faults"]))


def kill(options, root):
    """Do the jobs, kill them, compare, and write the record."""
    begin, rng = time.perf_counter(), np.random.default_rng(0)
    for number, classes in enumerate(LESSONS, 1):
        y = np.repeat(list(classes), 15)
        x = rng.normal(size=(len(y), 5)) + 3 * np.array([ord(label) - ord("a") for label in y])[:, None]
        np.savez(root / f"{number}.npz", x=x.astype(np.float32), y=y)
    jobs = [*options.jobs, *(["teach, third lesson"] if options.random else [])]
    pairs = [(learner, job) for learner in options.learners for job in dict.fromkeys(jobs)]
    with warnings.catch_warnings(action="ignore"):
        measures = {pair: whole(root, *pair) for pair in pairs}
        cases = list(cases_of(options, measures))
        tables, faults = {}, []
        with multiprocessing.get_context("fork").Pool(options.workers) as pool:
            tries = [(case, measures[case.learner, case.job], root, options.seed) for case in cases]
            for case, counts, wrong in pool.imap_unordered(_try, tries):
                way = f"{case.job}, at calls" if case.at else f"{case.job}, at random"
                tables.setdefault(way, {}).setdefault(case.learner, Counter()).update(counts)
                if wrong:
                    faults.append({"learner": case.learner, "job": case.job, "number": case.number, "wrong": wrong})
                    print(faults[-1], flush=True)
    os.chdir(root)
    fields = ("tries", "kills", "had the old model", "had the new model", "right")
    seconds = {f"{learner}, {job}": round(measure.seconds, 3) for (learner, job), measure in measures.items()}
    moments = {f"{learner}, {job}": Counter(measure.moments) for (learner, job), measure in measures.items()}
    rows = {way: {name: {f: of[f] for f in fields} for name, of in table.items()} for way, table in tables.items()}
    return {
        "command": f"python benchmarks/kill_models.py --learners {' '.join(options.learners)} --random {options.random} --every {options.every} --seed {options.seed}",
        "environment": prer.runs.environment.environment(),
        "total": {f: sum(of[f] for table in tables.values() for of in table.values()) for f in fields},
        "jobs": {way: {f: sum(of[f] for of in table.values()) for f in fields} for way, table in tables.items()},
        "learners": rows,
        "moments": moments,
        "seconds without a stop": seconds,
        "faults": faults,
        "seconds": round(time.perf_counter() - begin),
    }


def cases_of(options, measures):
    """All cases, numbered."""
    found = []
    for (learner, job), measure in measures.items():
        for at in range(1, len(measure.moments) + 1, options.every) if job in options.jobs else ():
            found.append((learner, job, at, False))
            if not measure.moments[at - 1].startswith("before"):  # the disk is as it was after the last call
                found.append((learner, job, at, True))
    found += [(learner, "teach, third lesson") for learner in options.learners for _ in range(options.random)]
    return [Case(number, *each) for number, each in enumerate(found)]


if __name__ == "__main__":
    main()
