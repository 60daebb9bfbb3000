"""--plugin: a learner of a user's own runs, resumes, predicts and sweeps; nothing else is ever imported."""

import json
import signal

import pytest
from support.commands import begun, ended, outcome, python, refused, said
from support.folders import TINY, at_call, copied, digest, killed_run, made, save_every_epoch, send, write_data
from support.plugins import PULLED, write_plugin

from prer.learners import registry
from prer.runs.folder import RunFolder

pytestmark = pytest.mark.usefixtures("no_terminal")
RUN = ["run", "stream.data=my.npz", "learner.name=pulled", *TINY, "--quiet"]
UNKNOWN = "unknown learner 'pulled'; known: naive,"
WHAT_TO_DO = "a learner of your own is given with --plugin FILE"


@pytest.fixture(autouse=True)
def unchanged(monkeypatch):
    """Whatever a test registers is gone after it."""
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_sources", {})


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    return write_plugin(tmp_path_factory.mktemp("plugin"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory, plugin):
    """A finished run with the plug-in."""
    return made(tmp_path_factory.mktemp("finished"), [*RUN, "--plugin", plugin])


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, plugin):
    """A run that was killed in the second task."""
    return killed_run(tmp_path_factory.mktemp("stopped"), 3, [*RUN, "--plugin", plugin])


def test_a_run_goes_by_the_hash_of_its_settings_as_ours_do(finished, plugin):
    assert finished.name.startswith("my-npz-pulled-")
    context = json.loads((finished / "environment.json").read_text())["context"]
    (cls,) = registry.load_plugin(plugin)
    assert context["plugin"] == registry.code_of(cls)
    assert context["experiment"]["learner"]["pull"] == 0.1


def test_a_run_resumes_with_its_plugin_and_without_it_says_what_to_do(capsys, tmp_path, stopped, finished, plugin):
    run = copied(stopped, tmp_path)
    words = refused(capsys, "resume", run)
    assert UNKNOWN in words and WHAT_TO_DO in words
    assert outcome(capsys, "resume", run, "--quiet", "--plugin", plugin)[0] == 0
    assert digest(run) == digest(finished)


def test_a_resume_with_changed_code_is_refused_and_forced_only_with_a_note(capsys, tmp_path, stopped):
    run, changed = copied(stopped, tmp_path / "runs"), write_plugin(tmp_path, text=PULLED.replace("sum(1)", "mean(1)"))
    words = refused(capsys, "resume", run, "--plugin", changed)
    assert "plugin was '" in words and "resume with --force" in words
    assert outcome(capsys, "resume", run, "--plugin", changed, "--quiet", "--force")[0] == 0
    (noted,) = json.loads((run / "environment.json").read_text())["resumed"]
    assert [text.split()[0] for text in noted["forced"]] == ["plugin"]


def test_a_finished_run_is_not_shown_as_the_result_of_changed_code(capsys, tmp_path, finished, plugin):
    write_data(tmp_path / "my.npz")
    copied(finished, tmp_path / "runs")
    assert outcome(capsys, *RUN, "--plugin", plugin)[:2] == (0, f"runs/{finished.name}\n")
    changed = write_plugin(tmp_path, text=PULLED + "\n# changed\n")
    registry._registered.clear()
    words = refused(capsys, *RUN, "--plugin", changed)
    assert f"the learner's code has changed since the run in runs/{finished.name}; give another --out or name" in words
    assert outcome(capsys, "resume", f"runs/{finished.name}", "--plugin", changed, "--quiet", "--force")[0] == 0


def test_commands_to_try_next_have_the_plugins(capsys, tmp_path, plugin):
    write_data(tmp_path / "my.npz")
    out = said(capsys, *RUN[:-1], "--plugin", plugin)
    assert out.count(f" --plugin {plugin}\n") == 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_that_goes_on_names_the_plugins(tmp_path, plugin, number):
    write_data(tmp_path / "my.npz")

    def before():
        save_every_epoch()
        at_call(RunFolder, "event", 2, send(number))

    code, _, err = ended(begun([*RUN, "--plugin", plugin], before))
    assert code == 128 + number
    assert err.endswith(f" --plugin {plugin}\n") and "resume with: prer resume runs/my-npz-pulled-" in err
    again = err.split("prer ", 1)[1].split()
    assert ended(begun([*again, "--quiet"]))[0] == 0


def test_a_saved_model_is_asked_with_its_plugin(capsys, tmp_path, finished, plugin):
    write_data(tmp_path / "my.npz")
    for command in (["predict", finished, "my.npz", "--task", 1], ["sample", finished, "--class", 1]):
        words = refused(capsys, *command)
        assert UNKNOWN in words and WHAT_TO_DO in words
    out = said_with_score(capsys, "predict", finished, "my.npz", "--task", 1, "--plugin", plugin)
    assert out.startswith("sample,label,seeds\n") and len(out.splitlines()) == 49
    assert "pulled cannot generate samples" in refused(capsys, "sample", finished, "--class", 1, "--plugin", plugin)
    assert "cannot generate samples" in refused(capsys, "privacy", finished, "--plugin", plugin)


def said_with_score(capsys, *arguments):
    code, out, _ = outcome(capsys, *arguments)
    assert code == 0
    return out


def test_results_are_shown_and_reported_without_the_plugin(capsys, finished, stopped):
    assert "pulled" in said(capsys, "show", finished)
    assert "pulled" in said(capsys, "show", finished, stopped)
    said(capsys, "report", finished, stopped, "-o", "report.html")


def test_a_sweep_passes_plugins_to_its_workers(capsys, tmp_path, plugin):
    write_data(tmp_path / "my.npz")
    head = 'seeds = 1\ndevice = "cpu"\n[stream]\ndata = "my.npz"\n[learner]\nname = "pulled"\nepochs = 1\n'
    (tmp_path / "sweep.toml").write_text(head + '[axes]\n"learner.pull" = [0.0, 1.0]\n')
    assert UNKNOWN in refused(capsys, "sweep", "sweep.toml")
    file = write_plugin(tmp_path / "a b")
    code, out, err = outcome(capsys, "sweep", "sweep.toml", "--workers", 2, "--plugin", "a b/mine.py")
    assert (code, err) == (0, "") and out.count("my-npz-pulled-") >= 2
    out = said(capsys, "sweep", "best", "sweep.toml", "--plugin", file.relative_to(tmp_path))
    assert "run it with: prer run best.toml --plugin 'a b/mine.py'\n" in out
    registry._registered.clear()
    file.write_text(PULLED + "\n# changed\n")
    code, out, _ = outcome(capsys, "sweep", "sweep.toml", "--plugin", file)
    assert code == 1 and out.count("failed: the learner's code has changed since the run") == 2


@pytest.mark.parametrize("command", [["run"], ["resume", "x"], ["predict", "x", "y"], ["sweep", "sweep.toml"]])
def test_a_wrong_plugin_is_one_sentence_before_anything_else_happens(capsys, tmp_path, command):
    assert "the plug-in nowhere.py cannot be read: No such file" in refused(capsys, *command, "--plugin", "nowhere.py")
    write_plugin(tmp_path, text="\n1 / 0\n")
    assert "the plug-in mine.py fails in line 2: ZeroDiv" in refused(capsys, *command, "--plugin", "mine.py")
    assert not (tmp_path / "runs").exists()


def test_several_plugins_may_be_given(capsys, tmp_path, plugin):
    other = write_plugin(tmp_path, "other.py", PULLED.replace('"pulled"', '"other"'))
    write_data(tmp_path / "my.npz")
    both = ["--plugin", plugin, "--plugin", other]
    for name in ("pulled", "other"):
        assert outcome(capsys, "run", "stream.data=my.npz", f"learner.name={name}", *TINY, "--quiet", *both)[0] == 0


HOSTILE = "from pathlib import Path\nPath({mark!r}).touch()\n"


def test_nothing_is_imported_from_a_run_a_model_the_environment_or_the_current_folder(tmp_path, finished, stopped):
    mark, runs = tmp_path / "executed", tmp_path / "runs"
    text = HOSTILE.format(mark=str(mark)) + PULLED.replace("from __future__ import annotations\n", "")
    folders = [copied(finished, runs), copied(stopped, tmp_path / "others")]
    for folder in (tmp_path, *folders, folders[0] / "model", folders[1] / "checkpoint"):
        for name in ("pulled.py", "mine.py", "plugin.py", "sitecustomize_.py", "conftest.py", "prer_pulled.py"):
            write_plugin(folder, name, text)
        about = folder / "pulled-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: pulled\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[prer.learners]\npulled = pulled:Pulled\n")
    write_data(tmp_path / "my.npz")
    (tmp_path / "experiment.toml").write_text('plugin = "pulled.py"\n[learner]\nname = "pulled"\n')
    commands = [
        RUN,
        ["resume", folders[1]],
        ["predict", folders[0], "my.npz", "--task", 1],
        ["privacy", folders[0]],
        ["show", "runs"],
        ["run", "experiment.toml"],
    ]
    code = "import sys\nfrom prer.cli.main import main\nmain(sys.argv[1:])"
    for command in commands:
        done = python("-c", code, *command, cwd=tmp_path, PRER_PLUGIN="pulled.py", PRER_PLUGINS="pulled.py")
        assert done.returncode == (0 if command[0] == "show" else 2), (command, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
    assert not mark.exists()


def test_help_does_not_import_torch():
    code = "import sys\nfrom prer.cli.main import commands\ncommands.main(['run', '--help'], standalone_mode=False)\n"
    assert python("-c", code + "assert 'torch' not in sys.modules").returncode == 0
