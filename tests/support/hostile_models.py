"""Damaged and forged model folders: the models they are made from, and what is done with each."""

import hashlib
import io
import json
import os
import pickle
import shutil
import sys
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import numpy as np
from support.benchmarks import script
from support.commands import ended, forked, limit_memory
from support.learners import make
from support.tables import table

import prer
from prer.cli.main import main
from prer.errors import NO_MEMORY, InputError, RunError, out_of_memory
from prer.training.loop import Loop

fuzz = script("fuzz_runs")  # it damages and forges run folders
ABOUT, TENSORS = "model.json", "model-2.safetensors"
RNG = np.random.default_rng(0)


# -- models ------------------------------------------------------------------------------------------------------------


def frames():
    """Three lessons of a table with a column of text and missing values."""
    whole = table(96)
    whole["colour"] = np.array(["red", "green", "blue"])[np.arange(96) % 3]
    whole.loc[::7, "age"] = np.nan
    return [(whole[whole["kind"].isin(labels)], "kind") for labels in (["ant", "bee"], ["cat"], ["dog", "bee"])]


def arrays(*shape, labels=((0, 1), (2, 3), (4, 5))):
    """Three lessons of vectors, or of images of bytes."""
    found = []
    for of in labels:
        y = np.repeat(of, 15)
        x = RNG.normal(size=(len(y), *shape)) + y.reshape(-1, *[1] * len(shape)) % 7
        found.append((x if len(shape) == 1 else (x * 20 + 60).clip(0, 255).astype(np.uint8), y))
    return found


# Of each: the lessons, and how the classifier is made.
MODELS = {
    "prer": (frames, {"ensemble": 2, "missing": "median"}),
    "prer on images": (lambda: arrays(8, 8), {"scenario": "task"}),
    "slda": (frames, {"missing": "median"}),
    "ncm": (lambda: arrays(8, 8), {}),
    "ranpac": (lambda: arrays(4), {"scenario": "task", "ensemble": 2}),
    "replay": (lambda: arrays(4), {}),
    "gem": (lambda: arrays(4), {"scenario": "task"}),
    "der": (lambda: arrays(4, labels=((0, 1),) * 3), {"scenario": "domain"}),
    "joint": (lambda: arrays(4), {"ensemble": 2}),
}


def made(folder, name):
    """The files of a model that has learned two lessons, with a history, and its third lesson."""
    lessons, options = MODELS[name]
    first, second, third = lessons()
    model = prer.ContinualClassifier(make(name.split()[0]), device="cpu", **options)
    with warnings.catch_warnings(action="ignore"):
        for lesson in (first, second):
            model.partial_fit(*lesson)
            model.model_.history.append({"when": "2026-01-05", "event": "scored", "data": "x", "accuracy": 0.5})
            model.save(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}, third


# -- damage ------------------------------------------------------------------------------------------------------------


def described(files, change):
    """The files with another description."""
    return files | {ABOUT: json.dumps(change(json.loads(files[ABOUT]))).encode()}


def signed(files, tensors):
    """The files with other tensors, and their right checksum."""
    about = {"file": TENSORS, "sha256": hashlib.sha256(tensors).hexdigest()}
    return described(files, lambda known: known | {"tensors": about}) | {TENSORS: tensors}


def json_damaged(rng, files):
    return files | {ABOUT: fuzz.damaged(rng, files[ABOUT])}


def json_forged(rng, files):
    return described(files, lambda known: fuzz.forged(rng, known))


def part_forged(rng, files):
    """Most of the values are settings, so that the others need a turn of their own."""

    def change(known):
        keys = [key for key in known if key != "settings"]
        key = keys[int(rng.integers(len(keys)))]
        return known | {key: fuzz.forged(rng, {"": known[key]}).get("", 0)}

    return described(files, change)


def keys_removed(rng, files):
    def change(known):
        removed = set(rng.choice(list(known), int(rng.integers(1, 4))))
        return {key: value for key, value in known.items() if key not in removed}

    return described(files, change)


def format_forged(rng, files):
    formats = [0, 1, 2, 3, -1, 10**9, 10**400, 1.0, 2.5, float("nan"), "1", "2", None, True, [], {}, [2], "\x1b[2J"]
    return described(files, lambda known: known | {"format": formats[int(rng.integers(len(formats)))]})


def tensors_damaged(rng, files):
    return files | {TENSORS: fuzz.damaged(rng, files[TENSORS])}


def header_damaged(rng, files):
    length = 8 + int.from_bytes(files[TENSORS][:8], "little")
    return signed(files, fuzz.damaged(rng, files[TENSORS][:length]) + files[TENSORS][length:])


def tensors_forged(rng, files):
    return signed(files, fuzz.other_tensors(rng, files[TENSORS]))


def values_forged(rng, files):
    """A tensor with other values or another type, but of the same shape."""
    tensors = fuzz.tensors_of(files[TENSORS])
    name = list(tensors)[int(rng.integers(len(tensors)))]
    dtype, shape, _ = tensors[name]
    count = int(np.prod(shape))
    kinds = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "U8": np.uint8, "F16": np.float16}
    chosen = str(rng.choice(list(kinds)) if rng.random() < 0.4 or dtype not in kinds else dtype)
    values = [0, 1, -1, 100, np.nan, np.inf, 1e30, 2**62, -(2**62), 1e-40, 1e300]
    with np.errstate(all="ignore"):
        filled = np.full(count, values[int(rng.integers(len(values)))]).astype(kinds[chosen])
    tensors[name] = [chosen, shape, filled.tobytes()]
    return signed(files, fuzz.state_of(tensors))


def named(rng, files):
    """The description names another file."""
    names = ["../outside.safetensors", "/etc/passwd", "/dev/zero", "..", "", ".", "model.json", "README.md", "a/b", 7]
    names += ["model.safetensors", "model-3.safetensors", "model-2.safetensors\n", "model-\u0662.safetensors", None, []]
    name = names[int(rng.integers(len(names)))]
    return described(files, lambda known: known | {"tensors": known["tensors"] | {"file": name}})


HUGE = [2**16, 2**17, 10**6, 10**9, 2**31, 2**62, 2**63, 10**30, 10**400]


def sizes_forged(rng, files):
    """Everything that says how large something is."""

    def change(known):
        huge = HUGE[int(rng.integers(len(HUGE)))]
        number, tasks = int(rng.integers(11)), known["tasks"]
        if number < 3:
            known[["shape", "shape", "seeds"][number]] = [[huge], [huge, 1, 1], huge][number]
        elif number < 6:
            tasks[-1][["width", "head", "outputs"][number - 3]] = [huge, huge, [huge] * len(tasks[-1]["labels"])][
                number - 3
            ]
        elif number == 6:
            known["tasks"] = tasks * 10_000
        elif number == 7:
            known["tasks"][0]["labels"] = tasks[0]["labels"] * 100_000
        else:
            of = [key for key, value in known["settings"].items() if type(value) in (int, list)]
            key = of[int(rng.integers(len(of)))] if of else "embedding"
            known["settings"][key] = [huge] * 3 if isinstance(known["settings"].get(key), list) else huge
        return known

    return described(files, change)


class Bomb:
    """What a hostile pickle does when it is loaded."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return (os.mkdir, (self.folder,))


def pickled(rng, files):
    bomb = pickle.dumps(Bomb("exploded"))
    where = int(rng.integers(4))
    if where == 0:
        return files | {ABOUT: bomb}
    if where == 1:
        return files | {TENSORS: bomb}
    if where == 2:
        return files | {"model.pt": bomb, "model.pkl": bomb, "state.pt": bomb, "pickle.py": b"open('exploded', 'w')"}
    return signed(files, bomb)


KINDS = (json_damaged, json_forged, part_forged, part_forged, keys_removed, format_forged, tensors_damaged)
KINDS += (header_damaged, tensors_forged, values_forged, named, sizes_forged, sizes_forged, pickled)


@contextmanager
def deep():
    """Values that are nested deeply can be made here."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def write(folder, files):
    """Write the files of a model."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)


# -- use ---------------------------------------------------------------------------------------------------------------


def used(folder, lesson, seconds=20):
    """Use a model in a process with limited memory and time: exit code, what each use said, and what went wrong."""

    def work():
        limit_memory(1)
        brief()
        os.chdir(folder.parent)
        said = [use(folder, lesson) for use in USES]
        print("\n" + json.dumps(said))  # noqa: T201, read by the parent

    code, out, err = ended(forked(work, seconds))
    return code, json.loads(out.splitlines()[-1]) if code == 0 else [], err


def brief():
    """Let this process train for two epochs at most, and say nothing about it."""
    warnings.simplefilter("ignore")
    run = Loop.run
    Loop.run = lambda self, phase, task, epochs, *more: run(self, phase, task, min(epochs, 2), *more)


def asked(folder, lesson):
    """Load a model and ask it; the sentence with which this is refused, or ""."""
    x, y = lesson
    return _python(
        lambda: prer.load(folder, "cpu").predict(x[:5] if isinstance(x, np.ndarray) else x[:5].drop(columns=y), 1)
    )


def taught(folder, lesson):
    """Load a model, teach it and save it."""
    return _python(lambda: prer.load(folder, "cpu").partial_fit(*lesson).save(folder))


def shown(folder, lesson):
    """The command `show`, whose output must not control a terminal."""
    return _command("show", str(folder))


def undone(folder, lesson):
    """The command `undo`."""
    return _command("undo", str(folder))


USES = (asked, shown, taught, undone, shown)


def _python(work):
    try:
        work()
    except (InputError, RunError) as error:
        return _sentence(str(error))
    except (RuntimeError, MemoryError) as error:  # of settings that need more than there is; the command says so
        if not out_of_memory(error):
            raise
        return NO_MEMORY
    return ""


def _command(*words):
    out, err = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main([*words])
    except SystemExit as end:
        assert end.code in (1, 2) and not out.getvalue(), (end.code, out.getvalue())
        assert err.getvalue().startswith("prer: ") and err.getvalue().endswith("\n"), err.getvalue()
        return _sentence(err.getvalue()[:-1])
    assert all(c.isprintable() or c == "\n" for c in out.getvalue()), "it shows what a terminal would obey"
    return ""


def _sentence(text):
    assert text and text.isprintable() and len(text) < 1000, text
    return text
