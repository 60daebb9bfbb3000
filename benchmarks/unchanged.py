"""Run the same short experiments with the code of two checkouts and check that not one number differs.

python benchmarks/unchanged.py OLD NEW [--json FILE] [--only WORD] [--device cpu|cuda] [--data FOLDER] [--workers N]

OLD and NEW are source checkouts, both with their C extension built in place (`python setup.py build_ext --inplace`). The
Python that runs this script needs the packages of both. Every case is one `prer run` command that is run with either
checkout. These parts of the two run folders must be equal, bit by bit; times are ignored:

    digest   of the learner's state and the matrix
    matrix   of accuracies
    result   everything else in result.json
    events   losses, accuracies and health in events.jsonl
    model    the tensors of model/model.safetensors, by name and content
    samples  what the memory generates after each task (memory/)

Every shipped experiment file is a case, with one epoch: OLD's file with the code of both, and NEW's file with that of NEW.
It trains on 40 samples of each class from FOLDER/mnist.npz, kmnist.npz, svhn.npz and cifar10.npz (arrays x and y), or on
random images where there is none.

Resumed cases are stopped by SIGTERM, continued by `prer resume`, and must end like a run that was never stopped. On a
GPU their reported losses are not compared: the first steps after a start are summed apart, which rounds differently.
The script does not import prer: its modules may have other names in the two checkouts. Exit code 1 means a difference.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

# Tensors that NEW calls by other names: a pattern of the new name and its replacement by the old one, as for re.sub.
# The digest covers the names, so that of NEW is then computed again with the old names.
RENAMED: dict[str, str] = {}
LEARNERS_RENAMED = {"prer-variant": "prer"}  # by NEW, in result.json
# Keys of results and events that OLD did not write.
ADDED = ("scenario", "classes", "matrix_task_given", "confusion", "class_accuracy", "average_incremental_accuracy")
ADDED += ("memory_bytes", "state_digest", "test_samples")

IGNORED = ("seconds", "version", "sha256", *ADDED)  # in results and events; sha256 covers the seconds
KERNELS = ("on", "off")

# The settings that bound the length of a run, by learner; every run has two epochs and two seeds.
SHORT = {
    "prer": ["learner.epochs=2", "learner.epochs_autoencoder=2", "learner.epochs_flow=2"],
    "dgr": ["learner.epochs=2", "learner.epochs_generator=2"],
    "ewc": ["learner.epochs=2", "learner.samples=100"],
}
LEARNERS = ("naive", "joint", "lwf", "ewc", "si", "gem", "agem", "er", "replay", "der", "dgr", "prer")

# The ablation of the paper, on three tasks. The digits' own settings have no anchor, so this base sets one; with their
# rate of phase 1, two variants diverge in so few epochs.
ABLATION_BASE = ["stream.tasks=[[0,1],[2,3],[4,5]]", "learner.anchor=3.0", "learner.lr_autoencoder=0.001"]
LITERAL = [
    "learner.anchor=0.0",
    "learner.lr_flow=0.0001",
    "learner.decay_flow=false",
    "learner.temperature=1.0",
    "learner.norm=running",
    "learner.condition=first",
    "learner.condition_size=10",
    "learner.one_hot=true",
    "learner.class_prior=false",
    "learner.bounded=false",
    "learner.permutation=random",
    "learner.reencode=false",
]
ABLATION = {
    "ours": [],
    "no-anchor": ["learner.anchor=0"],
    "no-r": ["learner.weight=0"],
    "augment-only": ["learner.weight=0", "learner.anchor=0"],
    "regularise-only": ["learner.augment=false"],
    "anchor-only": ["learner.share=0", "learner.weight=0"],
    "neither": ["learner.share=0", "learner.weight=0", "learner.anchor=0"],
    "gaussian": ["learner.density=gaussian"],
    "no-sparsity": ["learner.sparsity=0"],
    "sparse-layers": ["learner.sparsity_on=layers", "learner.sparsity=0.04448"],
    "labels-head": ["learner.labels=head"],
    "labels-auxiliary": ["learner.labels=auxiliary"],
    "one-level": ["learner.levels=1", "learner.blocks=8"],
    "no-class-prior": ["learner.class_prior=false"],
    "first-and-prior": ["learner.condition=first"],
    "condition-first": ["learner.condition=first", "learner.class_prior=false"],
    "temperature": ["learner.temperature=1.0"],
    "random-order": ["learner.permutation=random"],
    "own-samples": ["learner.reencode=false"],
    "unbounded": ["learner.bounded=false"],
    "slow-flow": ["learner.lr_flow=1e-4", "learner.decay_flow=false"],
    "running-norm": ["learner.norm=running"],
    "joint": ["learner.schedule=joint"],
    "literal": LITERAL,
    "literal-no-r": [*LITERAL, "learner.weight=0"],
}
# PRER's networks, classifier and batch on the digits.
PIXELS = [
    ABLATION_BASE[0],
    "learner.lr=0.00779",
    "learner.embedding=32",
    "learner.latent=32",
    "learner.memory_batch=32",
]

# Settings that neither the defaults nor the ablation reach.
SETTINGS = {
    "naive, sgd, normalised, validation": (
        "naive",
        ["learner.optimiser=sgd", "learner.lr=0.1", "learner.normalise=true", "stream.validation=0.2"],
    ),
    "ewc, separate, empirical": ("ewc", ["learner.form=separate", "learner.fisher=empirical"]),
    "er, l2": ("er", ["learner.distance=l2", "learner.weight=0.1"]),
    "replay, balanced": ("replay", ["learner.selection=balanced"]),
    "der, logits only": ("der", ["learner.label_weight=0"]),
    "gem, eight past tasks, whole memory": (
        "gem",
        ["stream.kind=permuted", "stream.count=9", "learner.memory_batch=0", "learner.size=20", "learner.epochs=1"],
    ),
    "prer, cosine, new flows": ("prer", ["learner.distance=cosine", "learner.restart=true", "stream.shuffle=true"]),
    "prer, joint, labels, anchor": (
        "prer",
        ["learner.schedule=joint", "learner.labels=auxiliary", *ABLATION_BASE],
    ),
}
STREAMS = {
    "permuted": ["stream.kind=permuted", "stream.count=3"],
    "rotated": ["stream.kind=rotated", "stream.count=3"],
    "domain": ["stream.kind=domain", "stream.data=grey.npz", 'stream.domains=["colour.npz"]', "stream.size=16"],
}
# Each has a long phase. STOP_AFTER is in the middle of that phase in the second task; gem and lwf have no other phase.
RESUMED = {
    "prer, in phase 1": ("prer", ["learner.epochs_autoencoder=20"]),
    "prer, in the flow": ("prer", ["learner.epochs_flow=20"]),
    "gem": ("gem", ["learner.epochs=20"]),
    "lwf": ("lwf", ["learner.epochs=20"]),
}
# Shipped experiment files, and how to shorten them; settings of the flow have their old names, which NEW reads, too.
FILES = ("prer/presets/*.toml", "prer/paper/configs/*.toml")
ONE_EPOCH = {"": ["learner.epochs=1"], "prer": ["learner.epochs_autoencoder=1", "learner.epochs_flow=1"]}
SHAPES = {"mnist": (28, 28), "kmnist": (28, 28), "svhn": (32, 32, 3), "cifar10": (32, 32, 3)}
PER_CLASS = 40
STOP_AFTER = 35  # lines of events.jsonl
ATTEMPTS = 5  # to stop a run inside a phase: on a busy machine the signal may come late


@dataclass
class Case:
    """An experiment to run with either checkout."""

    settings: list[str]
    kernels: str = "on"
    resumed: bool = False
    file: str = ""  # an experiment file, relative to a checkout


class RunFailed(Exception):
    """A command ended with an exit code that was not expected."""


def all_cases(old) -> dict[str, Case]:
    """Every case by its name; experiment files are those of the old checkout."""
    cases = {}
    for kernels in KERNELS:
        for learner in LEARNERS:
            cases[f"learner {learner}, kernels {kernels}"] = Case(settings(learner), kernels)
        classic = settings("lwf", ["learner.form=classic"])
        cases[f"learner lwf, classic, kernels {kernels}"] = Case(classic, kernels)
    for name, overrides in ABLATION.items():
        cases[f"ablation {name}"] = Case(settings("prer", [*ABLATION_BASE, *overrides]))
    cases["ablation pixels"] = Case(settings("dgr", PIXELS))
    for name, (learner, overrides) in SETTINGS.items():
        cases[f"settings {name}"] = Case(settings(learner, overrides))
    for name, overrides in STREAMS.items():
        for learner in ("naive", "prer"):
            cases[f"stream {name}, {learner}"] = Case(settings(learner, overrides))
    for data, size in {"grey": "28x28x1", "colour": "32x32x3"}.items():
        for learner in ("naive", "prer"):
            for kernels in KERNELS:
                overrides = [f"stream.data={data}.npz"]
                cases[f"images {size}, {learner}, kernels {kernels}"] = Case(settings(learner, overrides), kernels)
    moved = ["stream.data=colour.npz", "stream.crop=2", "stream.flip=true"]
    cases["images 32x32x3, cropped and flipped, naive"] = Case(settings("naive", moved))
    cases["images 32x32x3, cropped and flipped, prer"] = Case(settings("prer", moved))
    for learner in ("naive", "prer"):
        cases[f"table {learner}"] = Case(settings(learner, ["stream.data=table.csv", "stream.label=kind"]))
    for name, (learner, overrides) in RESUMED.items():
        cases[f"resumed {name}"] = Case(settings(learner, [ABLATION_BASE[0], *overrides]), resumed=True)
    for data, size in {"grey": "28x28x1", "colour": "32x32x3"}.items():
        for kernels in KERNELS:
            long = settings("prer", [f"stream.data={data}.npz", "learner.epochs_autoencoder=20"])
            cases[f"resumed images {size}, prer, kernels {kernels}"] = Case(long, kernels, resumed=True)
    for file in sorted(file for pattern in FILES for file in source_of(old).glob(pattern)):
        data, _, learner = file.stem.partition("-")
        short = [*ONE_EPOCH[""], *ONE_EPOCH.get(learner.removesuffix("-literal"), [])]
        path = file.relative_to(source_of(old)).as_posix()
        cases[f"file {file.stem}"] = Case([f"stream.data={data}.npz", "seeds=2", *short], file=path)
    return cases


def settings(learner, overrides=()):
    short = SHORT.get(learner, ["learner.epochs=2"])
    return [f"learner.name={learner}", "seeds=2", *short, *overrides]


def write_parts(folder, data):
    """Write a small part of each data set of the shipped files; return where each comes from."""
    sources, rng = {}, np.random.default_rng(1)
    for name, shape in SHAPES.items():
        sources[name] = "random images"
        x, y = rng.integers(0, 256, (10 * PER_CLASS, *shape), np.uint8), np.arange(10 * PER_CLASS) % 10
        if data and (data / f"{name}.npz").exists():
            with np.load(data / f"{name}.npz") as arrays:
                x, y = arrays["x"], arrays["y"]
            rows = np.sort(np.concatenate([np.flatnonzero(y == label)[:PER_CLASS] for label in range(10)]))
            x, y = x[rows], y[rows]
            sources[name] = f"{len(x)} samples, sha256 {hashlib.sha256(x.tobytes()).hexdigest()[:12]}"
        np.savez(folder / f"{name}.npz", x=x, y=y)
    return sources


def write_data(folder):
    """Write the files that some cases read: 320 samples of four classes each."""
    rng, y = np.random.default_rng(0), np.arange(320) % 4
    for name, shape in {"grey": (28, 28, 1), "colour": (32, 32, 3)}.items():
        means, noise = rng.integers(0, 256, (4, *shape)), rng.integers(0, 256, (len(y), *shape))
        np.savez(folder / f"{name}.npz", x=((means[y] + noise) // 2).astype(np.uint8), y=y)
    x = rng.normal(size=(4, 6))[y] + rng.normal(size=(len(y), 6))
    rows = [",".join([*(f"{value:.4f}" for value in row), "abcd"[label]]) for row, label in zip(x, y, strict=True)]
    (folder / "table.csv").write_text("\n".join(["one,two,three,four,five,six,kind", *rows]) + "\n")


@dataclass
class Runner:
    """Runs commands with the code of a checkout."""

    checkout: Path
    data: Path  # the current folder of the commands: names of files are relative to it
    device: str

    def run(self, case, out):
        """Run a case and return its run folder."""
        return self._folder(self._start(case, out))

    def run_file_of(self, other):
        """A function that runs a case with the experiment file of another checkout."""
        return lambda case, out: self.run(replace(case, file=str(source_of(other) / case.file)), out)

    def run_resumed(self, case, out):
        """Run a case, stop it inside a phase, resume it, and return its run folder."""
        for attempt in range(ATTEMPTS):
            folder = self._stopped(case, out / str(attempt))
            if is_inside_phase(folder):
                return self._folder(self._prer(["resume", str(folder), "--quiet"], case.kernels))
        raise RunFailed("the run could not be stopped inside a phase")

    def _stopped(self, case, out):
        process = self._start(case, out, PRER_CHECKPOINT_SECONDS="0")
        while process.poll() is None and lines_of(out.glob("*/events.jsonl")) < STOP_AFTER:
            time.sleep(0.002)
        process.send_signal(signal.SIGTERM)
        self._finished(process, 128 + signal.SIGTERM)
        (folder,) = out.iterdir()
        return folder

    def _start(self, case, out, **environment):
        file = [str(source_of(self.checkout) / case.file)] if case.file else []
        command = ["run", *file, f"device={self.device}", *case.settings, "--quiet", "--out", str(out)]
        return self._prer(command, case.kernels, **environment)

    def _prer(self, command, kernels, **environment):
        environment |= {"PYTHONPATH": str(source_of(self.checkout)), "OMP_NUM_THREADS": "1", "PRER_KERNELS": kernels}
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "prer", *command],
            env={k: v for k, v in os.environ.items() if not k.startswith("PRER_")} | environment,
            cwd=self.data,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _folder(self, process):
        """The run folder, which `--quiet` prints last."""
        return Path(self._finished(process, 0).splitlines()[-1])

    def _finished(self, process, expected):
        output, errors = process.communicate()
        if process.returncode != expected:
            print(*errors.splitlines()[-1:], file=sys.stderr)
            raise RunFailed(f"exit code {process.returncode}, not {expected}")
        return output


def lines_of(files):
    return sum(file.read_bytes().count(b"\n") for file in files)


def is_inside_phase(folder):
    """Whether the checkpoint of a stopped run was made between two epochs of a phase."""
    done = json.loads((folder / "checkpoint" / "checkpoint.json").read_text())["content"]["phases"]
    epochs = json.loads((folder / "environment.json").read_text())["phases"]
    return any(0 < done[phase] < epochs[phase] for phase in done)


def source_of(checkout):
    """The folder of a checkout that holds the package."""
    found = [folder for folder in (checkout, checkout / "src") if (folder / "prer" / "__init__.py").exists()]
    if not found:
        sys.exit(f"{checkout} is not a source checkout of prer")
    return found[0]


def contents(folder, renamed):
    """The parts of a run folder that must not change, as values that == compares, and which kernels computed."""
    result = json.loads((folder / "result.json").read_text())
    digest, matrix = result.pop("digest"), result.pop("matrix")
    result["learner"] = LEARNERS_RENAMED.get(result["learner"], result["learner"])
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    tensors = load_file(folder / "model" / "model.safetensors")
    old_names = {renamed_back(name, renamed): tensor for name, tensor in tensors.items()}
    if old_names.keys() != tensors.keys():
        digest = digest_of(old_names, matrix)
    samples = {file.name: load_file(file) for file in sorted((folder / "memory").glob("*.safetensors"))}
    parts = {"digest": digest, "matrix": matrix, "result": without_times(result)}
    parts |= {"events": [without_times(event) for event in events], "model": comparable(old_names)}
    parts |= {"samples": {name: comparable(of_file) for name, of_file in samples.items()}}
    context = json.loads((folder / "environment.json").read_text()).get("context", {})
    return parts, context.get("kernels", "unknown")


def without_times(values):
    return {key: value for key, value in values.items() if key not in IGNORED}


def without_loss(event):
    return {key: value for key, value in event.items() if key != "loss"}


def renamed_back(name, renamed):
    for pattern, old in renamed.items():
        name = re.sub(pattern, old, name)
    return name


def comparable(tensors):
    return {name: (str(t.dtype), t.shape, t.tobytes()) for name, t in tensors.items()}


def digest_of(tensors, matrix):
    """The digest of a run, by the rule of `prer run`."""
    sha = hashlib.sha256(np.array(matrix, float).tobytes())  # None becomes NaN
    for name, tensor in sorted(tensors.items()):
        sha.update(f"{name} torch.{tensor.dtype} {tuple(tensor.shape)}".encode())
        sha.update(np.ascontiguousarray(tensor).tobytes())
    return sha.hexdigest()


def compare(case, runners, folder):
    """The record of a case: digests, kernels and seconds of each run, and which parts differ."""
    found, record = {}, {"digests": {}, "kernels": {}, "seconds": {}, "failed": {}}
    for which, runner in runners.items():
        renamed = RENAMED if which == "new" else {}
        ways = {which: runner.run} | ({f"{which} resumed": runner.run_resumed} if case.resumed else {})
        if case.file and which == "new":
            ways["new, old file"] = runner.run_file_of(runners["old"].checkout)
        for name, run in ways.items():
            begin = time.perf_counter()
            try:
                found[name], record["kernels"][name] = contents(run(case, folder / name), renamed)
                if case.resumed and runner.device == "cuda":
                    found[name]["events"] = [without_loss(event) for event in found[name]["events"]]
                record["digests"][name] = found[name]["digest"]
            except RunFailed as error:
                record["failed"][name] = str(error)
            record["seconds"][name] = round(time.perf_counter() - begin, 2)
    first, *others = found.values() or [{}]
    record["different"] = [part for part in first if any(other[part] != first[part] for other in others)]
    if len(set(record["kernels"].values())) > 1:
        record["different"].append("kernels")
    record["equal"] = not record["failed"] and not record["different"]
    return {"settings": case.settings, "kernels_switch": case.kernels} | record


def line_of(name, record):
    verdict = "equal" if record["equal"] else "DIFFERENT"
    digest = next(iter(record["digests"].values()), "-")[:12]
    reasons = [*record["different"], *(f"{which}: {reason}" for which, reason in record["failed"].items())]
    why = f"  ({'; '.join(reasons)})" if reasons else ""
    return f"{name:52} {verdict:9} {digest:12} {sum(record['seconds'].values()):5.1f} s{why}"


def commit_of(checkout):
    """The commit of a checkout; a copy without one has its name in a file COMMIT."""
    if (checkout / "COMMIT").exists():
        return (checkout / "COMMIT").read_text().strip()
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def hardware(device):
    info = Path("/proc/cpuinfo")
    models = re.findall(r"^model name\s*: (.*)$", info.read_text(), re.M) if info.exists() else []
    about = {"cpu": models[0] if models else platform.machine(), "cores": os.cpu_count()}
    if device == "cuda":
        command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        about["gpu"] = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return about


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--json", type=Path, help="write the record there")
    parser.add_argument("--only", default="", metavar="WORD", help="only cases with this text in their name")
    parser.add_argument("--data", type=Path, help="the folder with parts of the data sets")
    parser.add_argument("--workers", type=int, default=1, help="cases that are compared at the same time")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    cases = {name: case for name, case in all_cases(options.old.resolve()).items() if options.only in name}
    if not cases:
        sys.exit(f"no case has {options.only!r} in its name")
    checkouts = {"old": options.old.resolve(), "new": options.new.resolve()}
    commits = {which: commit_of(checkout) for which, checkout in checkouts.items()}
    begin, records = time.perf_counter(), {}
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary)
        write_data(data)
        parts = write_parts(data, options.data)
        runners = {which: Runner(checkout, data, options.device) for which, checkout in checkouts.items()}
        folders = [data / str(number) for number in range(len(cases))]
        with ThreadPoolExecutor(options.workers) as pool:  # each case runs processes of its own
            found = pool.map(lambda case, folder: compare(case, runners, folder), cases.values(), folders)
            for name, record in zip(cases, found, strict=True):
                records[name] = record
                print(line_of(name, record), flush=True)
    different = [name for name, record in records.items() if not record["equal"]]
    kernels = {which: sorted({r["kernels"].get(which, "unknown") for r in records.values()}) for which in runners}
    totals = {"cases": len(cases), "equal": len(cases) - len(different), "different": len(different)}
    totals |= {"runs": sum(len(r["seconds"]) for r in records.values())}
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    totals |= {"seconds": round(time.perf_counter() - begin, 1), "cpu_seconds": round(used.ru_utime + used.ru_stime, 1)}
    print(f"{totals['equal']} of {totals['cases']} cases are equal, {totals['runs']} runs in {totals['seconds']:.0f} s")
    if all(name == "torch's" for names in kernels.values() for name in names):
        print("no case was computed by kernels; build the C extension in both checkouts")
    if options.json:
        only = f" --only '{options.only}'" if options.only else ""
        packages = ("torch", "numpy", "scikit-learn", "safetensors")
        about = {
            "command": f"python benchmarks/unchanged.py OLD NEW{only} --device {options.device}",
            "commits": commits,
            "python": platform.python_version(),
            "packages": {package: version(package) for package in packages},
            "hardware": hardware(options.device),
            "data of the files": parts,
            "kernels": kernels,
            "totals": totals,
            "cases": records,
        }
        options.json.write_text(json.dumps(about, indent=1) + "\n")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
