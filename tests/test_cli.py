"""The commands: what they print and write, their exit codes, and that wrong input costs nothing."""

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import prer
from prer.cli.main import main
from prer.errors import NO_MEMORY, Interrupted
from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder
from prer.version import __version__

ROOT = str(Path(prer.__file__).parents[1])
COMMAND = [sys.executable, "-c", "from prer.cli.main import main; main()"]
NAIVE = ("learner.name=naive", "learner.epochs=1")
FIRST = ("run", *NAIVE, "--seeds", "2", "--device", "cpu")
TINY_PRER = ("learner.epochs=1", "learner.epochs_autoencoder=1", "learner.epochs_flow=1", "learner.blocks=1")
KEYS = {  # the contract of DESIGN.md, "The run folder is the database"
    *("seeds", "matrix", "accuracy", "bwt", "final_accuracy", "final_bwt", "forgetting_first", "forgetting_best"),
    *("forward_transfer", "untrained", "memory_floats", "memory_samples", "transient_floats", "seconds", "digest"),
    *("learner", "stream", "device", "version", "sha256"),
}


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch, tmp_path):
    """Runs go to a folder of the test, and nothing in the environment asks for colours."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def environment():
    return os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([ROOT, os.environ.get("PYTHONPATH", "")]),
    }


def process(*arguments, cwd="."):
    """A command as a process of its own."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, cwd=cwd, env=environment())


def said(capsys, *arguments):
    """What a command prints."""
    main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert all(line.startswith("warning: ") for line in err.splitlines())
    return out


def refused(capsys, *arguments):
    """The one line with which wrong input is refused."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert (caught.value.code, out) == (2, "")
    assert re.fullmatch(r"prer: [^\n]+\n", err), err
    return err


def strict(text):
    """JSON as the standard has it, without NaN and Infinity."""

    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def events(run):
    return [strict(line) for line in (run / "events.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A naive run of two seeds on the digits, by a process of its own: the process and the run's folder."""
    cwd = tmp_path_factory.mktemp("cli")
    done = process(*FIRST, cwd=cwd)
    (folder,) = (cwd / "runs").iterdir()
    return done, folder


@pytest.fixture
def finished(first, tmp_path):
    """A copy of the naive run, to be shown or damaged, in ./runs."""
    return Path(shutil.copytree(first[1], tmp_path / "runs" / first[1].name)).relative_to(tmp_path)


@pytest.fixture
def arrays(tmp_path):
    """Small vectors in a file, four classes with a hostile name among them."""
    x = np.random.default_rng(0).normal(size=(48, 4)).astype(np.float32)
    np.savez(tmp_path / "my.npz", x=x, y=np.array(["[red]", "b", "c", "d"] * 12))
    return "stream.data=my.npz"


# -- without torch ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [COMMAND, [sys.executable, "-m", "prer"]])
def test_the_version(command):
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, env=environment())
    assert (done.returncode, done.stdout, done.stderr) == (0, f"prer, version {__version__}\n", "")


def test_help_is_quick_because_it_imports_nothing_heavy():
    code = (
        "import sys, prer; from prer.cli.main import main\n"
        "for words in ('--help', 'run --help', 'show -h', 'report -h', 'data fetch -h', 'sweep -h', 'sweep best -h'):\n"
        "    main(words.split())\n"
        "main(['--version'])\n"
        "print(sorted({'torch', 'numpy', 'sklearn', 'rich', 'matplotlib', 'jinja2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "[]"
    assert "Continual learning without keeping one sample" in done.stdout
    assert "[EXPERIMENT.toml] [key=value ...]" in done.stdout


def test_every_public_name_is_listed_without_torch_and_can_be_imported():
    code = (
        "import sys, prer\n"
        "print(sorted(set(prer.__all__) - set(dir(prer))), 'torch' in sys.modules)\n"
        "print([name for name in dir(prer) if not hasattr(prer, name)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["[] False", "[]"]


# -- a run and its folder --------------------------------------------------------------------------------------------


def test_a_run_ends_well_with_one_line_for_each_phase_of_a_task(first):
    done, folder = first
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "1,797 images 1x8x8, 10 classes; 5 tasks: 0 1 | 2 3 | 4 5 | 6 7 | 8 9"
    assert re.fullmatch(
        r"warning: a task has 28\d samples to learn from, .* only 8 steps; raise the epochs, .*", lines[1]
    )
    assert [line for line in lines if "epoch " in line] == lines[2:7]
    for task, line in enumerate(lines[2:7], 1):
        assert re.fullmatch(rf"task {task}/5  classifier  epoch   1/1  loss +[\d.]+  \d+ s left", line)
    assert f"Run folder: runs/{folder.name}" in lines
    assert "\x1b" not in done.stdout
    assert "Hardly better than guessing (50 %): BWT says nothing here." in done.stdout
    assert lines.count(lines[1]) == 2  # it is repeated after the result
    assert "What to try next" in done.stdout


def test_a_run_folder_holds_what_the_design_promises(first):
    folder = first[1]
    assert set(map(str, contents(folder))) == {
        *("experiment.toml", "environment.json", "events.jsonl", "result.json", "run.lock"),
        *("model/model.safetensors", "model/model.json", "model/README.md"),
    }
    result = strict((folder / "result.json").read_text("utf-8"))
    assert set(result) == KEYS
    assert [result[key] for key in ("seeds", "learner", "stream", "device", "version")] == [
        *([0, 1], "naive", "digits", "cpu", __version__)
    ]
    assert [[[v is None for v in row] for row in R] for R in result["matrix"]] == [(np.tri(5) == 0).tolist()] * 2
    for key in KEYS - {"forward_transfer"}:
        if re.search("accuracy|bwt|forgetting", key):
            assert set(result[key]) == {"mean", "std", "values"} and len(result[key]["values"]) == 2
    assert result["forward_transfer"] is None
    assert [result[key] for key in ("memory_floats", "memory_samples", "transient_floats")] == [[0] * 5] * 3
    assert set(result["seconds"]) == {"classifier", "evaluation", "total"}
    assert all(isinstance(value, float) for value in result["seconds"].values())
    assert re.fullmatch("[0-9a-f]{64}", result["digest"])


def test_the_experiment_is_written_whole_and_names_its_folder(first):
    folder = first[1]
    experiment = Experiment.read(folder / "experiment.toml")
    assert experiment == Experiment.parse({}, [*NAIVE, "seeds=2", "device=cpu"])
    assert folder.name == experiment.folder == f"digits-naive-{experiment.hash}"


def test_the_environment_is_written(first):
    noted = strict((first[1] / "environment.json").read_text("utf-8"))
    assert noted["prer"] == __version__
    assert set(noted["packages"]) == {"torch", "numpy", "scikit-learn", "safetensors"}
    assert all(noted["packages"].values())
    assert {"commit", "python", "platform", "processor", "cores", "threads", "gpu"} <= set(noted)


def test_there_is_one_event_for_each_epoch_and_task(first):
    of_run, result = events(first[1]), strict((first[1] / "result.json").read_text("utf-8"))
    assert [(e["event"], e["task"]) for e in of_run] == [(e, t) for t in range(5) for e in ("epoch", "task")]
    for event in of_run[0::2]:
        assert (event["phase"], event["epoch"], event["epochs"], len(event["loss"])) == ("classifier", 0, 1, 2)
    for task, event in enumerate(of_run[1::2]):
        assert event["accuracy"] == [R[task][: task + 1] for R in result["matrix"]]


def test_the_saved_model_is_the_state_that_the_digest_speaks_of(first):
    folder = first[1]
    result, tensors = strict((folder / "result.json").read_text("utf-8")), load_file(folder / "model/model.safetensors")
    sha = hashlib.sha256(np.array(result["matrix"], float).tobytes())
    for name, tensor in sorted(tensors.items()):
        sha.update(f"{name} torch.{tensor.dtype} {tensor.shape}".encode() + tensor.tobytes())
    assert sha.hexdigest() == result["digest"]
    card = strict((folder / "model/model.json").read_text("utf-8"))
    assert (card["learner"], card["seeds"], card["shape"]) == ("naive", [0, 1], [1, 8, 8])
    tasks = [{"labels": [2 * t, 2 * t + 1], "head": t, "outputs": [0, 1], "width": 2, "view": False} for t in range(5)]
    assert card["tasks"] == tasks


def test_prer_writes_the_same_contract_and_its_health(capsys, tmp_path):
    out = said(capsys, "run", *TINY_PRER, "--seeds", "1", "--out", "deep/er")
    (folder,) = (tmp_path / "deep/er").iterdir()
    assert len(re.findall(r"^task \d/5 ", out, re.M)) == 5 * 3
    assert Counter(event["event"] for event in events(folder)) == {"epoch": 15, "task": 5, "health": 2 + 4 + 6 + 8 + 10}
    result = strict((folder / "result.json").read_text("utf-8"))
    assert set(result) == KEYS
    assert result["accuracy"]["std"] is None
    assert set(result["seconds"]) == {"autoencoder", "flow", "head", "evaluation", "total"}
    assert result["memory_samples"] == [0] * 5
    assert all(kept > 0 for kept in result["memory_floats"])
    assert result["transient_floats"][0] == 0 and all(copied > 0 for copied in result["transient_floats"][1:])
    # Trained so shortly, some classes are hardly recognised, and a person should know.
    low = {e["task"] for e in events(folder) if e["event"] == "health" and min(e["agreement_decoded"]) < 0.8}
    assert len(low) + (4 in low) == out.count("warning: after task") > 0  # of the last task again, after the result


def test_the_same_seeds_give_the_same_digest_and_another_seed_another(capsys, arrays, tmp_path):
    def digest(out, *more):
        folder = (
            tmp_path
            / said(capsys, "run", arrays, *TINY_PRER, *more, "--out", out, "--device=cpu", "--quiet").splitlines()[-1]
        )
        return strict((folder / "result.json").read_text("utf-8"))["digest"]

    assert digest("a", "--seeds", "0,1") == digest("b", "--seeds", "2")
    assert digest("a", "--seeds", "1,") != digest("a", "--seeds", "1")
    assert digest("a", "--seeds", "1", "learner.lr=0.5") != digest("a", "--seeds", "1")


def test_one_task_and_one_seed_are_a_run_too(capsys, arrays, tmp_path):
    out = said(capsys, "run", arrays, *NAIVE, "stream.classes_per_task=4", "--seeds", "1")
    assert "the one task was learned to" in out
    (folder,) = (tmp_path / "runs").iterdir()
    result = strict((folder / "result.json").read_text("utf-8"))
    assert result["bwt"] == {"mean": None, "std": None, "values": [None]}


def test_an_experiment_comes_from_a_file_with_the_command_line_above_it(capsys, arrays, tmp_path):
    (tmp_path / "e.toml").write_text(
        'name = "Mine"\nseeds = 3\ndevice = "cpu"\n[learner]\nname = "naive"\nepochs = 0\n'
    )
    path = said(capsys, "run", "e.toml", arrays, "learner.epochs=1", "--seeds", "7,", "--device", "auto", "--quiet")
    ran = Experiment.read(tmp_path / path.strip() / "experiment.toml")
    assert (ran.name, ran.seeds, ran.device, ran.learner.epochs) == ("Mine", (7,), "auto", 1)
    assert path.startswith("runs/mine-")


def test_no_arguments_run_naive_and_prer_with_the_same_seeds(capsys, monkeypatch, finished):
    asked = []

    def execute(experiment, out, observer):
        asked.append((experiment.learner.name, experiment.stream.data, experiment.seeds, experiment.device, out))
        return prer.runs.folder.RunFolder(finished)

    monkeypatch.setattr("prer.runs.run.execute", execute)
    said(capsys, "run", "--seeds", "4,2", "--device", "cpu")
    assert asked == [(name, "digits", (4, 2), "cpu", Path("runs")) for name in ("naive", "prer")]
    asked.clear()
    said(capsys, "run", "learner.name=joint")
    assert [name for name, *_ in asked] == ["joint"]


# -- again and quietly -----------------------------------------------------------------------------------------------


def test_a_finished_experiment_is_shown_again_and_nothing_is_touched(capsys, finished):
    def stamps():
        return {path: path.stat().st_mtime_ns for path in finished.rglob("*")}

    before, when = contents(finished), stamps()
    out = said(capsys, *FIRST)
    assert "epoch " not in out and f"Run folder: {finished}" in out
    assert (contents(finished), stamps()) == (before, when)


def test_a_finished_experiment_needs_its_data_no_more(capsys, arrays, tmp_path):
    once = said(capsys, "run", arrays, *NAIVE, "--seeds", "1", "--quiet")
    (tmp_path / "my.npz").unlink()
    assert said(capsys, "run", arrays, *NAIVE, "--seeds", "1", "--quiet") == once


@pytest.mark.parametrize(
    "out",
    [
        "runs",
        "[red]",
        "a b" * 40,
        "x:smile:y",
    ],
)
def test_quiet_prints_the_folder_alone(capsys, arrays, out):
    printed = said(capsys, "run", arrays, *NAIVE, "--seeds", "1", "--quiet", "--out", out)
    assert printed.startswith(f"{out}/my-npz-naive-")
    assert printed.count("\n") == 1
    assert (Path(printed.strip()) / "result.json").exists()


def test_every_epoch_is_logged_for_who_asks_for_it(capsys, arrays):
    command = ("run", arrays, *NAIVE, "learner.epochs=3", "--seeds", "1", "--device", "cpu")
    assert len(re.findall(r"^task ./2 .* epoch   3/3 ", said(capsys, *command), re.M)) == 2
    (folder,) = Path("runs").iterdir()
    for verbose, lines in (((), 2), (("--verbose",), 6)):
        (folder / "result.json").unlink()
        assert len(re.findall(r"^task ./2 ", said(capsys, "resume", folder, *verbose), re.M)) == lines
    assert len(re.findall(r"^task ./2 ", said(capsys, *command, "--out", "other", "--verbose"), re.M)) == 6


def test_an_unfinished_run_begins_anew(capsys, finished):
    (finished / "result.json").unlink()
    before = events(finished)
    assert said(capsys, *FIRST).count("epoch  ") == 5
    assert [(e["event"], e["task"]) for e in events(finished)] == [(e["event"], e["task"]) for e in before]
    assert (finished / "result.json").exists()


# -- show ------------------------------------------------------------------------------------------------------------


def test_show_shows_what_the_run_showed(capsys, first, finished):
    shown = said(capsys, "show", finished)
    assert "Accuracy in % of naive on digits, mean of 2 seeds" in shown
    lines = first[0].stdout.splitlines()
    after = lines[lines.index(shown.splitlines()[0]) :]
    assert shown.splitlines() == after[: len(shown.splitlines())]


def test_naive_on_the_same_stream_and_seeds_is_shown_beside(capsys, arrays):
    joint = ("run", arrays, "learner.name=joint", "learner.epochs=1")
    said(capsys, "run", arrays, *NAIVE, "--seeds", "1")
    said(capsys, "run", arrays, *NAIVE, "--seeds", "2", "stream.resplit=0.5")
    shown = said(capsys, *joint, "--seeds", "1")
    assert re.search(r"joint ┃ +naive ┃", shown)
    assert "naive ┃" not in said(capsys, *joint, "--seeds", "2")
    assert "naive ┃" not in said(capsys, *joint, "--seeds", "3")


def test_a_run_is_shown_from_inside_its_folder_as_from_outside(capsys, monkeypatch, arrays):
    said(capsys, "run", arrays, *NAIVE, "--seeds", "1")
    folder = said(capsys, "run", arrays, "learner.name=joint", "learner.epochs=1", "--seeds", "1", "--quiet").strip()
    assert "naive ┃" in said(capsys, "show", folder)
    monkeypatch.chdir(folder)
    assert "naive ┃" in said(capsys, "show", ".")


def test_show_of_several_passes_over_what_is_no_run_and_says_how_many(capsys, finished):
    (finished.parent / "notes.txt").write_text("no run")
    (finished.parent / "empty").mkdir()
    shown = said(capsys, "show", *sorted(finished.parent.iterdir()))
    assert finished.name in shown and shown.splitlines()[-1] == "passed over, being no run folder: 2"
    assert "empty is not a run's folder" in refused(capsys, "show", finished.parent / "empty")
    assert "notes.txt is not a run's folder" in refused(capsys, "show", *[finished.parent / "notes.txt"] * 2)


def test_show_of_a_folder_shows_the_runs_in_it(capsys, finished):
    assert said(capsys, "show", finished.parent) == said(capsys, "show", finished)
    other = Path(shutil.copytree(finished, finished.parent / "other"))
    (finished.parent / "notes.txt").write_text("no run")
    assert said(capsys, "show", finished.parent) == said(capsys, "show", finished, other)


def test_show_of_several_has_a_line_for_each_and_says_which_is_not_finished(capsys, finished):
    other = Path(shutil.copytree(finished, finished.parent / "other"))
    (other / "result.json").unlink()
    accuracy = strict((finished / "result.json").read_text("utf-8"))["accuracy"]["mean"]
    lines = [line for line in said(capsys, "show", finished, other).splitlines() if line.startswith("│")]
    assert len([line for line in lines if "naive" in line and f"{accuracy:.2f}" in line]) == 1
    assert "not" in next(line for line in lines if "other" in line)
    assert "not" in said(capsys, "show", other)


# -- wrong input -----------------------------------------------------------------------------------------------------

WRONG = {
    "unknown key": (["run", "learner.wieght=1"], "did you mean 'weight'?"),
    "wrong type": (["run", "learner.epochs=many"], "a whole number or auto is wanted"),
    "wrong seeds": (["run", "--seeds", "x,y"], "seeds="),
    "no seeds": (["run", "--seeds", "0"], "seeds=0"),
    "empty seeds": (["run", "--seeds", ""], "seeds="),
    "unknown device": (["run", "--device", "gpu"], "device 'gpu' is not there; this machine has cpu"),
    "a device without numbers": (["run", *NAIVE, "--device", "meta"], "device 'meta' is not there"),
    "unknown learner": (["run", "learner.name=ewcc"], "unknown learner 'ewcc'"),
    "no file": (["run", "nowhere.toml"], "there is no file nowhere.toml"),
    "two files": (["run", "learner.epochs=1", "b.toml"], "'b.toml' is not of the form key=value"),
    "missing data": (
        ["run", "stream.data=nowhere.npz"],
        "neither a file nor a known data set; known are digits, mnist, kmnist",
    ),
    "wrong classes": (["run", "stream.classes_per_task=3"], "task 4 has one class"),
    "out below a file": (["run", "--out", "file/below"], "cannot write the run's folder file/below/"),
    "out is a file": (["run", "--out", "file"], "cannot write the run's folder file/"),
    "out too long": (["run", "--out", "a" * 300], "cannot write the run's folder"),
    "name that is no UTF-8": (["run", *NAIVE, "name=\udcff"], "name"),
    "show of nothing": (["show", "nowhere"], "nowhere is not a run's folder"),
    "show of a file": (["show", "file"], "file is not a run's folder"),
    "show of a folder": (["show", "."], "is not a run's folder"),
    "show of several with a wrong one": (["show", "RUN", "nowhere"], "nowhere is not a run's folder"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_refused_in_one_line_and_costs_nothing(capsys, finished, tmp_path, case):
    arguments, words = WRONG[case]
    (tmp_path / "file").write_text("mine")
    before = contents(tmp_path)
    assert words in refused(capsys, *(finished if word == "RUN" else word for word in arguments))
    after = contents(tmp_path)
    assert {path: after.get(path) for path in before} == before


@pytest.mark.parametrize("case", ["unknown key", "out below a file", "show of nothing"])
def test_wrong_input_ends_a_process_with_2(tmp_path, case):
    (tmp_path / "file").write_text("mine")
    done = process(*WRONG[case][0])
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"prer: [^\n]+\n", done.stderr)


@pytest.mark.parametrize("command", [["run"], ["sweep"], ["sweep", "best"]])
def test_a_pipe_in_place_of_an_experiment_is_not_waited_for(tmp_path, command):
    os.mkfifo(tmp_path / "e.toml")
    done = subprocess.run(
        [*COMMAND, *command, "e.toml"], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "prer: e.toml cannot be read as TOML: it is not a regular file\n"


def test_an_experiment_may_be_a_link(capsys, arrays, tmp_path):
    (tmp_path / "e.toml").write_text("seeds = 2")
    (tmp_path / "link.toml").symlink_to("e.toml")
    assert "runs" in said(capsys, "run", "link.toml", arrays, *NAIVE, "--quiet")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--bogus"], "No such option"),
        (["nonsense"], "No such command 'nonsense'"),
        (["show"], "Missing argument 'RUN...'"),
        (["run", "--seeds"], "requires an argument"),
    ],
)
def test_wrong_usage_is_refused_with_the_usage(arguments, words):
    done = process(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(("Usage: prer", "Error: ")) and words in done.stderr
    assert "Traceback" not in done.stderr


def changed(**values):
    return lambda text: json.dumps(json.loads(text) | values)


DAMAGED = {
    "result cut off": ("result.json", lambda text: text[:100], "cannot be read; delete it and run again"),
    "result empty": ("result.json", lambda text: "", "cannot be read"),
    "result no object": ("result.json", lambda text: "5", "cannot be read"),
    "result a list": ("result.json", lambda text: "[]", "lacks seeds, matrix, accuracy, bwt"),
    "result without matrix": ("result.json", lambda text: text.replace('"matrix"', '"Matrix"'), "lacks matrix"),
    "result without seconds": ("result.json", lambda text: text.replace('"seconds"', '"Seconds"'), "lacks seconds"),
    "result with accuracy 5": ("result.json", changed(accuracy=5), "result.json"),
    # BUG: each of these ends in a traceback.
    "result with no matrix": ("result.json", changed(matrix=[]), "result.json"),
    "result with words for a matrix": ("result.json", changed(matrix="x"), "result.json"),
    "result with a ragged matrix": ("result.json", changed(matrix=[[[1, 2], [3]]]), "result.json"),
    "result with one number of seeds": ("result.json", changed(seeds=2), "result.json"),
    "result with words for a mean": (
        "result.json",
        changed(bwt={"mean": "x", "std": None, "values": []}),
        "result.json",
    ),
    "result without total seconds": ("result.json", changed(seconds={}), "result.json"),
    "result without floats": ("result.json", changed(memory_floats=[]), "result.json"),
    "result of a numbered learner": ("result.json", changed(learner=5), "result.json"),
    "experiment no TOML": ("experiment.toml", lambda text: text + "=", "experiment.toml is damaged; move"),
    "experiment no text": ("experiment.toml", lambda text: b"\xff", "experiment.toml is damaged; move"),
    "experiment of another": ("experiment.toml", lambda text: text.replace("epochs = 1", "epochs = 2"), "another"),
    # BUG: a ValueError about the digits of an integer.
    "experiment with a huge number": ("experiment.toml", lambda text: f"{text}x = {'9' * 5000}", "is damaged; move"),
    "experiment empty": ("experiment.toml", lambda text: "", "belongs to another experiment"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_run_is_refused_and_left_as_it_is(capsys, finished, case):
    name, damage, words = DAMAGED[case]
    damaged = damage((finished / name).read_text("utf-8"))
    (finished / name).write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    before = contents(finished)
    assert words in refused(capsys, *FIRST)
    if name == "result.json":
        assert words in refused(capsys, "show", finished)
    assert contents(finished) == before


def test_a_folder_that_is_no_run_is_refused_and_left_as_it_is(capsys, finished):
    (finished / "experiment.toml").unlink()
    before = contents(finished)
    assert "holds something that is not a run" in refused(capsys, *FIRST)
    assert contents(finished) == before


def test_a_folder_that_may_not_be_written_is_refused(capsys, monkeypatch, finished):
    (finished / "result.json").unlink()
    monkeypatch.setattr(
        "prer.runs.folder.os.access", lambda path, mode: mode != os.W_OK
    )  # who tests as root may write anywhere
    before = contents(finished)
    assert f"cannot write the run's folder {finished}: not writable" in refused(capsys, *FIRST)
    assert contents(finished) == before


def test_two_names_of_one_folder_are_two_experiments(capsys, arrays, tmp_path):
    said(capsys, "run", arrays, *NAIVE, "--seeds", "1", "name=A b")
    before = contents(tmp_path)
    assert "belongs to another experiment" in refused(capsys, "run", arrays, *NAIVE, "--seeds", "1", "name=a-b")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("neighbour", ["no experiment", "damaged experiment", "learner no table", "damaged naive"])
def test_a_damaged_neighbour_does_not_keep_a_result_from_being_shown(capsys, arrays, finished, neighbour):
    run = ("run", arrays, "learner.name=joint", "learner.epochs=1", "--seeds", "1")
    alone = said(capsys, *run)
    beside = Path(said(capsys, "run", arrays, *NAIVE, "--seeds", "1", "--quiet").strip())
    toml = beside / "experiment.toml"
    if neighbour == "no experiment":
        toml.unlink()
    elif neighbour == "damaged experiment":
        toml.write_text("learner = ")
    elif neighbour == "learner no table":
        tables = tomllib.loads(toml.read_text("utf-8"))
        stream = ", ".join(f"{key} = {json.dumps(value)}" for key, value in tables["stream"].items())
        toml.write_text(f"seeds = [0]\nlearner = 'naive'\nstream = {{{stream}}}\n")
    else:
        (beside / "result.json").write_text("{")
    results = [out.split("What to try next")[0].splitlines()[-4:] for out in (alone, said(capsys, *run))]
    assert results[0] == results[1] and results[0][0].startswith("Digest of all that was learned")


def test_naive_on_other_data_is_not_shown_beside(capsys, arrays, tmp_path):
    said(capsys, "run", arrays, *NAIVE, "--seeds", "1")
    x = np.random.default_rng(1).normal(size=(48, 4)).astype(np.float32)
    np.savez(tmp_path / "my.npz", x=x, y=np.array(["[red]", "b", "c", "d"] * 12))
    out = said(capsys, "run", arrays, "learner.name=joint", "learner.epochs=1", "--seeds", "1")
    assert "naive" not in out.split("What to try next")[0]


def proposed(out):
    """The experiments that are proposed after a run, as the words of their commands."""
    lines = out.split("What to try next")[1].splitlines()
    return [
        words for words in map(shlex.split, lines) if words[:2] == ["prer", "run"] and "PATH" not in " ".join(words)
    ]


def test_what_to_try_next_was_not_run_yet_and_is_shown_beside(capsys, arrays):
    same, options = ("learner.epochs=1", arrays), ("--seeds", "2", "--device", "cpu", "--out", "my runs")
    first = proposed(said(capsys, "run", *same, "learner.name=naive", *options))
    assert first == [["prer", "run", *same, f"learner.name={name}", *options] for name in ("prer", "joint")]
    of_prer = TINY_PRER[1:]
    second = proposed(said(capsys, "run", *same, *of_prer, *options))  # naive is beside it
    assert second == [
        ["prer", "run", *same, "learner.name=joint", *options],
        ["prer", "run", *same, *of_prer, "learner.density=gaussian", *options],
    ]
    out = said(capsys, *second[0][1:])
    assert "naive ┃" in out
    assert proposed(out) == [first[0]]
    assert proposed(said(capsys, *second[1][1:])) == []


def test_an_experiment_that_says_all_of_a_learner_is_not_proposed_with_another(capsys, arrays):
    Path("e.toml").write_text(Experiment.parse({}, [*TINY_PRER, arrays]).to_toml())
    assert proposed(said(capsys, "run", "e.toml", "--seeds", "1")) == [
        ["prer", "run", "e.toml", "learner.density=gaussian", "--seeds", "1"]
    ]


def test_data_that_changed_is_noticed(capsys, tmp_path):
    """Also where each class keeps its place within its task."""
    x, y = np.random.default_rng(1).normal(size=(48, 4)).astype(np.float32), np.arange(48) % 4
    run = ("run", "stream.data=my.npz", *NAIVE, "--seeds", "1")
    np.savez(tmp_path / "my.npz", x=x, y=y)
    said(capsys, *run)
    np.savez(tmp_path / "my.npz", x=x, y=np.array([2, 1, 0, 3])[y])
    assert "the data has changed" in process(*run).stderr


# -- runs that fail --------------------------------------------------------------------------------------------------


def test_a_run_that_diverges_ends_with_1_and_says_where(arrays):
    done = process(
        "run", arrays, *NAIVE, "learner.optimiser=sgd", "learner.lr=1e30", "learner.epochs=9", "--seeds", "1"
    )
    assert done.returncode == 1
    assert re.fullmatch(
        r"prer: the loss of seed 0 became (nan|inf) in task \d.*; try a lower learning rate\n", done.stderr
    )
    (folder,) = Path("runs").iterdir()
    assert not (folder / "result.json").exists()
    assert not (folder / "model").exists()


def test_an_interrupted_run_ends_with_130_and_says_how_to_go_on(capsys, arrays):
    # A shell that started the tests in the background has made all its children deaf to the signal.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command = [
        *COMMAND[:2],
        listen + COMMAND[2],
        "run",
        arrays,
        *NAIVE,
        "--seeds",
        "1",
        "learner.epochs=100000",
        "--verbose",
    ]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment(), **pipes) as running:
        try:
            assert any("epoch   1/100000" in running.stdout.readline() for _ in range(3))
            running.send_signal(signal.SIGINT)
            _, err = running.communicate(timeout=30)
        finally:
            running.kill()
    assert running.returncode == 130
    (folder,) = Path("runs").iterdir()
    assert err.strip() == f"interrupted and saved; go on with: prer resume {folder}"
    assert (folder / "checkpoint" / "checkpoint.json").exists()
    assert not (folder / "result.json").exists()
    assert events(folder)
    assert "not" in said(capsys, "show", folder)


@pytest.mark.parametrize(("at", "how"), [(1, "run --seeds 2"), (2, "resume 'runs/my run'")])
def test_the_built_in_job_goes_on_with_all_that_was_to_come(capsys, monkeypatch, at, how):
    calls = []

    def execute(*about, **named):
        calls.append(about)
        if len(calls) == at:
            interrupted = Interrupted(signal.SIGINT)
            interrupted.folder = "runs/my run"
            raise interrupted

    monkeypatch.setattr("prer.runs.run.execute", execute)
    with pytest.raises(SystemExit) as caught:
        main(["run", "--seeds", "2"])
    assert caught.value.code == 130
    assert capsys.readouterr().err == f"interrupted and saved; go on with: prer {how}\n"


@pytest.mark.parametrize(
    "error",
    [MemoryError(), torch.OutOfMemoryError("CUDA out of memory."), RuntimeError("can't allocate memory: 1 byte")],
)
def test_a_run_that_is_short_of_memory_says_so_in_its_events(capsys, monkeypatch, arrays, error):
    def learn(*about):
        raise error

    monkeypatch.setattr("prer.learners.Naive.learn", learn)
    with pytest.raises(SystemExit) as caught:
        main(["run", arrays, *NAIVE, "--seeds", "1"])
    assert caught.value.code == 1
    assert capsys.readouterr().err == f"prer: {NO_MEMORY}\n"
    (folder,) = Path("runs").iterdir()
    assert RunFolder(folder).failure == NO_MEMORY


# -- what a review found -----------------------------------------------------------------------------------------------


def vectors(path, seed):
    rng = np.random.default_rng(seed)
    np.savez(path, x=rng.normal(size=(40, 3)), y=np.repeat([0, 1, 2, 3], 10))
    return f"stream.data={path}"


def test_a_result_is_not_shown_as_that_of_other_data(capsys, tmp_path):
    run = ["run", vectors(tmp_path / "d.npz", 0), "learner.name=naive", "learner.epochs=1", "--seeds", "1"]
    said(capsys, *run)
    said(capsys, *run)
    vectors(tmp_path / "d.npz", 1)
    assert "the data has changed" in refused(capsys, *run)
    (tmp_path / "d.npz").unlink()
    assert "Run folder" in said(capsys, *run)  # what is known can still be looked at


def test_of_several_naive_runs_none_is_picked(capsys, tmp_path):
    base = ["run", vectors(tmp_path / "d.npz", 0), "--seeds", "1", "learner.epochs=1"]
    said(capsys, *base, "learner.name=naive")
    assert "naive ┃" in said(capsys, *base, "learner.name=joint")
    said(capsys, *base, "learner.name=naive", "learner.lr=0.5")
    assert "naive ┃" not in said(capsys, *base, "learner.name=joint")


def test_warnings_of_a_quiet_run_keep_out_of_what_scripts_read(capsys, tmp_path):
    short = ["learner.epochs=0", "learner.epochs_autoencoder=0", "learner.epochs_flow=1", "learner.blocks=1"]
    main(["run", vectors(tmp_path / "d.npz", 0), *short, "--seeds", "1", "--quiet"])
    out, err = capsys.readouterr()
    assert out.count("\n") == 1
    assert "warning: " in err
