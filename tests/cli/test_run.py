"""`prer run`: its folder, what it prints, and running an experiment again."""

import hashlib
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from support.arrays import write_vectors
from support.commands import NAIVE, NAIVE_RUN, TINY_PRER, refused, said, strict, strict_events
from support.folders import contents

import prer
from prer.cli.main import main
from prer.runs.experiment import Experiment
from prer.version import __version__

pytestmark = pytest.mark.usefixtures("no_terminal")

KEYS = {  # the contract of DESIGN.md, "The run folder is the database"
    *("seeds", "scenario", "classes", "matrix", "matrix_task_given", "accuracy", "bwt", "final_accuracy", "final_bwt"),
    *("average_incremental_accuracy", "forgetting_first", "forgetting_best", "forward_transfer", "untrained"),
    *("confusion", "class_accuracy", "memory_floats", "memory_bytes", "memory_samples", "transient_floats", "seconds"),
    *("test_samples", "digest", "state_digest", "learner", "stream", "device", "version", "sha256"),
}


def test_a_run_ends_well_with_one_line_for_each_phase_of_a_task(naive_run):
    done, folder = naive_run
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
    assert "hardly better than chance (50 %), so BWT is meaningless here." in done.stdout
    assert lines.count(lines[1]) == 2  # it is repeated after the result
    assert "What to try next" in done.stdout


def test_a_run_folder_holds_what_the_design_promises(naive_run):
    folder = naive_run[1]
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
    for key in KEYS - {"forward_transfer", "class_accuracy"}:
        if re.search("accuracy|bwt|forgetting", key):
            assert set(result[key]) == {"mean", "std", "values"} and len(result[key]["values"]) == 2
    assert result["forward_transfer"] is None
    assert [result[key] for key in ("memory_floats", "memory_samples", "transient_floats")] == [[0] * 5] * 3
    assert set(result["seconds"]) == {"classifier", "evaluation", "total"}
    assert all(isinstance(value, float) for value in result["seconds"].values())
    assert re.fullmatch("[0-9a-f]{64}", result["digest"])


def test_the_experiment_is_written_whole_and_names_its_folder(naive_run):
    folder = naive_run[1]
    experiment = Experiment.read(folder / "experiment.toml")
    assert experiment == Experiment.parse({}, [*NAIVE, "seeds=2", "device=cpu"])
    assert folder.name == experiment.folder == f"digits-naive-{experiment.hash}"


def test_the_environment_is_written(naive_run):
    noted = strict((naive_run[1] / "environment.json").read_text("utf-8"))
    assert noted["prer"] == __version__
    assert set(noted["packages"]) == {"torch", "numpy", "scikit-learn", "safetensors"}
    assert all(noted["packages"].values())
    assert {"commit", "python", "platform", "processor", "cores", "threads", "gpu"} <= set(noted)


def test_there_is_one_event_for_each_epoch_and_task(naive_run):
    of_run, result = strict_events(naive_run[1]), strict((naive_run[1] / "result.json").read_text("utf-8"))
    assert [(e["event"], e["task"]) for e in of_run] == [(e, t) for t in range(5) for e in ("epoch", "task")]
    for event in of_run[0::2]:
        assert (event["phase"], event["epoch"], event["epochs"], len(event["loss"])) == ("classifier", 0, 1, 2)
    for task, event in enumerate(of_run[1::2]):
        assert event["accuracy"] == [R[task][: task + 1] for R in result["matrix"]]


def test_the_digest_covers_the_saved_model(naive_run):
    folder = naive_run[1]
    result, tensors = strict((folder / "result.json").read_text("utf-8")), load_file(folder / "model/model.safetensors")
    sha = hashlib.sha256(np.array(result["matrix"], float).tobytes())
    for name, tensor in sorted(tensors.items()):
        sha.update(f"{name} torch.{tensor.dtype} {tensor.shape}".encode() + tensor.tobytes())
    assert sha.hexdigest() == result["digest"]
    card = strict((folder / "model/model.json").read_text("utf-8"))
    assert (card["learner"], card["seeds"], card["shape"]) == ("naive", [0, 1], [1, 8, 8])
    tasks = [{"labels": [2 * t, 2 * t + 1], "head": t, "outputs": [0, 1], "width": 2, "view": False} for t in range(5)]
    assert [{key: task[key] for key in tasks[0]} for task in card["tasks"]] == tasks
    assert sum(n for task in card["tasks"] for n in task["samples"]) == 1438  # four fifths of each class


def test_prer_writes_the_same_contract_and_its_health(capsys, tmp_path):
    out = said(capsys, "run", *TINY_PRER, "--seeds", "1", "--out", "deep/er")
    (folder,) = (tmp_path / "deep/er").iterdir()
    assert len(re.findall(r"^task \d/5 ", out, re.M)) == 5 * 3
    assert Counter(event["event"] for event in strict_events(folder)) == {
        "epoch": 15,
        "task": 5,
        "health": 2 + 4 + 6 + 8 + 10,
    }
    result = strict((folder / "result.json").read_text("utf-8"))
    assert set(result) == KEYS
    assert result["accuracy"]["std"] is None
    assert set(result["seconds"]) == {"autoencoder", "flow", "head", "evaluation", "total"}
    assert result["memory_samples"] == [0] * 5
    assert all(kept > 0 for kept in result["memory_floats"])
    assert result["transient_floats"][0] == 0 and all(copied > 0 for copied in result["transient_floats"][1:])
    # Trained so shortly, some classes are hardly recognised, and a person should know.
    low = {e["task"] for e in strict_events(folder) if e["event"] == "health" and min(e["agreement_decoded"]) < 0.8}
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
    assert "the only task reached" in out
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


def test_an_experiment_may_be_a_link(capsys, arrays, tmp_path):
    (tmp_path / "e.toml").write_text("seeds = 2")
    (tmp_path / "link.toml").symlink_to("e.toml")
    assert "runs" in said(capsys, "run", "link.toml", arrays, *NAIVE, "--quiet")


def test_no_arguments_run_naive_and_prer_with_the_same_seeds(capsys, monkeypatch, finished):
    asked = []

    def execute(experiment, out, observer):
        stream = experiment.stream
        about = (experiment.learner.name, stream.data, stream.scenario)
        asked.append((*about, experiment.seeds, experiment.device, out))
        return prer.runs.folder.RunFolder(finished)

    monkeypatch.setattr("prer.runs.run.execute", execute)
    said(capsys, "run", "--seeds", "4,2", "--device", "cpu")
    assert asked == [
        (name, "digits", scenario, (4, 2), "cpu", Path("runs"))
        for scenario in ("task", "class")
        for name in ("naive", "prer")
    ]
    asked.clear()
    said(capsys, "run", "learner.name=joint")
    assert [name for name, *_ in asked] == ["joint"]


# -- again and quietly -----------------------------------------------------------------------------------------------


def test_a_finished_experiment_is_shown_again_and_nothing_is_touched(capsys, finished):
    def stamps():
        return {path: path.stat().st_mtime_ns for path in finished.rglob("*")}

    before, when = contents(finished), stamps()
    out = said(capsys, *NAIVE_RUN)
    assert "epoch " not in out and f"Run folder: {finished}" in out
    assert (contents(finished), stamps()) == (before, when)


def test_a_finished_experiment_does_not_need_its_data(capsys, arrays, tmp_path):
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


def test_warnings_of_a_quiet_run_go_to_standard_error(capsys, tmp_path):
    short = ["learner.epochs=0", "learner.epochs_autoencoder=0", "learner.density.epochs=1", "learner.density.blocks=1"]
    main(["run", write_vectors(tmp_path / "d.npz", 0), *short, "--seeds", "1", "--quiet"])
    out, err = capsys.readouterr()
    assert out.count("\n") == 1
    assert "warning: " in err


def test_verbose_logs_every_epoch(capsys, arrays):
    command = ("run", arrays, *NAIVE, "learner.epochs=3", "--seeds", "1", "--device", "cpu")
    assert len(re.findall(r"^task ./2 .* epoch   3/3 ", said(capsys, *command), re.M)) == 2
    (folder,) = Path("runs").iterdir()
    for verbose, lines in (((), 2), (("--verbose",), 6)):
        (folder / "result.json").unlink()
        assert len(re.findall(r"^task ./2 ", said(capsys, "resume", folder, *verbose), re.M)) == lines
    assert len(re.findall(r"^task ./2 ", said(capsys, *command, "--out", "other", "--verbose"), re.M)) == 6


def test_an_unfinished_run_begins_anew(capsys, finished):
    (finished / "result.json").unlink()
    before = strict_events(finished)
    assert said(capsys, *NAIVE_RUN).count("epoch  ") == 5
    assert [(e["event"], e["task"]) for e in strict_events(finished)] == [(e["event"], e["task"]) for e in before]
    assert (finished / "result.json").exists()


def test_a_result_is_not_shown_for_changed_data(capsys, tmp_path):
    run = ["run", write_vectors(tmp_path / "d.npz", 0), "learner.name=naive", "learner.epochs=1", "--seeds", "1"]
    said(capsys, *run)
    said(capsys, *run)
    write_vectors(tmp_path / "d.npz", 1)
    assert "the data has changed" in refused(capsys, *run)
    (tmp_path / "d.npz").unlink()
    assert "Run folder" in said(capsys, *run)  # what is known can still be looked at


# -- if nobody tells the task ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["stream.kind=permuted"], "stream.scenario applies only with stream.kind='split'"),
        (["learner.name=naive", "learner.answer=density"], "it is a setting of prer, not of naive"),
        (["learner.name=slda", "learner.answer=density"], "it is a setting of prer, not of slda"),
        (["stream.data=nan.csv"], "has no label; drop the row or label it"),
        (["stream.data=test.npz"], "class 2 has no sample in the training part; drop it from the test part"),
        (["learner.name=slda", "stream.flip=true"], "have no effect on slda, which trains nothing; leave them out"),
        (["stream.classes_per_task=0"], "take 1 or more"),
    ],
)
def test_bad_input_without_the_task_is_one_sentence_and_leaves_no_folder(capsys, settings, sentence):
    x, rng = np.zeros((12, 3)), np.random.default_rng(0)
    Path("nan.csv").write_text("a,b,kind\n1,2,x\n3,4,\n1,2,y\n")
    np.savez("test.npz", x_train=rng.normal(size=(8, 3)), y_train=[0, 1] * 4, x_test=x[:6], y_test=[0, 1, 2] * 2)
    assert sentence in refused(capsys, "run", "stream.scenario=class", *settings)
    assert not Path("runs").exists()
