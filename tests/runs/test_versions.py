"""What version 0.1.0 wrote: a finished run is shown, a model is loaded, a stopped run goes on or is refused."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from prer.cli.main import main
from prer.disk import as_json, checksum
from prer.models.folder import load
from prer.report.page import build
from prer.report.run import runs_in
from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder
from prer.runs.legacy import hash_of_schema_1
from prer.version import __version__

OLD = Path(__file__).parents[1] / "versions" / "0.1.0"


@pytest.fixture
def old(tmp_path):
    """A copy, since to read or to resume may add files."""
    return shutil.copytree(OLD, tmp_path / "old")


def prer(*words, **environment):
    """A command in a process of its own; code, output and errors."""
    command = [sys.executable, "-P", "-m", "prer", *map(str, words)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_a_finished_run_is_shown_with_the_version_that_wrote_it(old, capsys):
    main(["show", str(old / "finished")])
    out = capsys.readouterr().out
    result = json.loads((OLD / "finished" / "result.json").read_text())
    assert f"{result['accuracy']['mean']:.2f} ± {result['accuracy']['std']:.2f}" in out
    assert f"Written by prer 0.1.0 (this is {__version__}): finished" in out
    main(["show", str(old)])
    assert "Written by prer 0.1.0" in capsys.readouterr().out


def test_a_page_is_made_of_it(old):
    page = build(*runs_in([old / "finished"]))
    assert re.search(r"Class 0: \d+ real and 60 sampled embeddings", page)  # the model was loaded, too


def test_an_experiment_that_was_run_then_is_not_run_again(old, tmp_path, capsys):
    experiment = Experiment.parse(RunFolder(old / "finished").experiment)
    former = f"digits-prer-{hash_of_schema_1(experiment)}"
    assert former != experiment.folder and experiment.path(tmp_path) == tmp_path / experiment.folder
    (old / "finished").rename(tmp_path / former)
    assert experiment.path(tmp_path) == tmp_path / former
    main(["run", str(tmp_path / former / "experiment.toml"), "--out", str(tmp_path)])
    out = capsys.readouterr().out
    assert f"Run folder: {tmp_path / former}" in out and "task 1/2" not in out
    assert not (tmp_path / experiment.folder).exists()


@pytest.mark.parametrize(("words", "file"), [((), ""), (("--task", 2), "_task_2")])
def test_a_model_predicts_what_it_predicted(words, file):
    code, out, err = prer("predict", OLD / "model", OLD / "to_predict.csv", *words)
    assert (code, out) == (0, (OLD / f"expected_predictions{file}.csv").read_text()), err


def test_a_model_generates(old):
    assert load(old / "finished").sample(3, 5).shape == (5, 1, 8, 8)


def test_a_stopped_run_ends_as_it_would_have_ended(old):
    """With the processor and torch that the checkpoint names; with others it is refused, naming both."""
    context = RunFolder(old / "stopped").environment["context"]
    here = {"processor": torch.backends.cpu.get_cpu_capability(), "torch": torch.__version__}
    code, _, err = prer("resume", old / "stopped", "--quiet", PRER_KERNELS="off")
    if {key: context[key] for key in here} == here:
        assert code == 0, err
        expected = json.loads((OLD / "stopped_result.json").read_text())
        found = RunFolder(old / "stopped").result
        prer("run", old / "stopped/experiment.toml", "--out", old / "whole", "--quiet", PRER_KERNELS="off")
        (whole,) = (old / "whole").iterdir()
        if RunFolder(whole).result["digest"] == expected["digest"]:
            assert found["digest"] == expected["digest"] and found["matrix"] == expected["matrix"]
        else:  # another processor of the same name, which rounds differently
            matrices = (np.array(result["matrix"], float) for result in (found, expected))
            np.testing.assert_allclose(*matrices, atol=5)  # points; the tests have 72 samples
    else:
        assert code == 2 and " was " in err and " and is " in err


def test_a_stopped_run_of_an_unknown_version_is_refused_naming_both(old):
    folder = old / "stopped"
    file = folder / "checkpoint" / "checkpoint.json"
    text = file.read_text().replace('"prer": "0.1.0"', '"prer": "0.0.9"')
    whole = json.loads(text)
    file.write_bytes(as_json({"sha256": checksum(whole["content"]), "content": whole["content"]}))
    code, _, err = prer("resume", folder, "--quiet", PRER_KERNELS="off")
    assert code == 2 and f"prer was '0.0.9' and is '{__version__}'" in err
