"""Hostile names in a run folder are printed as text."""

import json
import re

import pytest
from support.commands import outcome, refused
from support.folders import checkpoint_content, sign_checkpoint, sign_result

ESCAPES = "\x1b[2J\x1b]0;owned\x07\r<script>alert(1)</script>[red]x[/red][/]\u202e"


def harmless(text):
    return all(character.isprintable() or character == "\n" for character in text)


def test_names_in_a_result_are_printed_as_text(capsys, done):
    sign_result(done, learner=ESCAPES, stream=ESCAPES, digest=ESCAPES)
    for runs in ([done], [done, done]):
        code, out, err = outcome(capsys, "show", *runs)
        assert (code, err) == (0, "") and harmless(out)
        assert "[red]x[/red]" in out


def test_names_of_folders_are_printed_as_text(capsys, run, done):
    named = done.rename(done.with_name("a" + ESCAPES.replace("/", "|")))
    for command in (["show", named], ["show", named, named], ["resume", named]):
        code, out, _ = outcome(capsys, *command)
        assert code == 0 and harmless(out)
    (named / "result.json").write_text("{")
    assert harmless(refused(capsys, "show", named))
    named = run.rename(run.with_name("b" + ESCAPES.replace("/", "|")))
    code, out, _ = outcome(capsys, "resume", named)
    assert code == 0 and harmless(out) and "resuming" in out


@pytest.mark.parametrize("where", ["key", "value", "nested"])
def test_names_in_a_checkpoint_are_printed_as_text_and_cut(capsys, run, where):
    content = checkpoint_content(run)
    long = ESCAPES * 10_000
    content["about"]["context"] |= {"key": {long: 1}, "value": {"torch": long}, "nested": {"torch": [[long]]}}[where]
    sign_checkpoint(run, content)
    said = refused(capsys, "resume", run)
    assert "was written by a different setup" in said and harmless(said) and len(said) < 2500


@pytest.mark.parametrize("key", ["name", "device", "stream.data", "stream.kind", "learner.name", "learner.optimiser"])
def test_names_in_an_experiment_are_printed_as_text(capsys, run, key):
    (run / "environment.json").unlink()
    text, last = (run / "experiment.toml").read_text(), key.split(".")[-1]
    section = text.index(f"[{key.split('.')[0]}]") if "." in key else 0
    line = re.compile(rf"(?m)^{last} = .*$")
    escaped = json.dumps(ESCAPES)
    (run / "experiment.toml").write_text(text[:section] + line.sub(lambda _: f"{last} = {escaped}", text[section:], 1))
    assert harmless(refused(capsys, "resume", run))
    code, out, err = outcome(capsys, "show", run)
    assert code in (0, 2) and harmless(out + err)
