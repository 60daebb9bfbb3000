"""Every example keeps the promises of learners, and runs, sweeps, resumes and predicts from the command line."""

import json
from pathlib import Path

import pytest
from support.commands import outcome
from support.folders import TINY, digest, killed_run, made

from prer.learners import registry
from prer.testing import learner_checks

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
CHECKS = {
    f"{file.stem} {name}": check
    for file in EXAMPLES
    for cls in registry.load_plugin(file)
    for name, check in learner_checks(cls)
}
pytestmark = pytest.mark.filterwarnings("error:.*equal those of naive")  # an example does something


@pytest.mark.parametrize("check", CHECKS)
def test_an_example_keeps_a_promise(check):
    CHECKS[check]()


@pytest.fixture(params=EXAMPLES, ids=lambda file: file.stem)
def plugin(request):
    (cls,) = registry.load_plugin(request.param)
    return request.param, cls.name


def test_an_example_runs_resumes_and_predicts(plugin, capsys, tmp_path):
    file, name = plugin
    run = ["run", "stream.data=my.npz", f"learner.name={name}", *TINY, "--quiet", "--plugin", file]
    for name in ("whole", "stopped"):
        (tmp_path / name).mkdir()
    finished, stopped = made(tmp_path / "whole", run), killed_run(tmp_path / "stopped", 3, run)
    assert outcome(capsys, "resume", stopped, "--quiet", "--plugin", file)[0] == 0
    assert digest(stopped) == digest(finished)
    code, out, _ = outcome(capsys, "predict", finished, tmp_path / "whole" / "my.npz", "--task", 1, "--plugin", file)
    assert code == 0 and len(out.splitlines()) > 10


def test_an_example_sweeps(plugin, capsys, tmp_path, monkeypatch):
    file, name = plugin
    monkeypatch.chdir(tmp_path)
    learner = f'[learner]\nname = "{name}"\nepochs = 1\n'
    Path("sweep.toml").write_text(f'seeds = 1\n{learner}[axes]\n"learner.weight" = [0.5, 2.0]\n')
    assert outcome(capsys, "sweep", "sweep.toml", "--plugin", file)[0] == 0
    results = [json.loads(path.read_text()) for path in Path("runs").glob("*/result.json")]
    assert [result["learner"] for result in results] == [name] * 2
    assert len({result["digest"] for result in results}) == 2
