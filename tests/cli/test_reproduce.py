"""`prer reproduce`: what its options ask for."""

from pathlib import Path

import pytest
from support.commands import outcome, printed

from prer.cli.main import main
from prer.paper.plan import Request
from prer.paper.variants import NAMES

pytestmark = pytest.mark.usefixtures("no_terminal")


@pytest.fixture
def asked(monkeypatch):
    """What is to be reproduced; nothing is run."""
    found = []
    monkeypatch.setattr("prer.paper.reproduce.reproduce", lambda console, *about: found.append(about[:-1]))
    return found


def test_without_options_everything_is_asked_for(asked):
    main(["reproduce", "table1"])
    assert asked == [("table1", Request(variants=NAMES), Path("runs"), 1)]


def test_every_option_reaches_the_request(asked, tmp_path):
    (tmp_path / "mine").mkdir()
    options = ["--only", " mnist, prer,,", "--device", "cpu", "--out", "here", "--seeds", "0,4", "--workers", "3"]
    main(["reproduce", "all", *options, "--fast", "--finished", "--data", "kmnist=mine", "--data", "svhn=s.npz"])
    paths = {"kmnist": "mine", "svhn": "s.npz"}
    assert asked == [("all", Request(("mnist", "prer"), "cpu", "0,4", True, paths, NAMES, True), Path("here"), 3)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["table3"], "'table3' is not one of"), (["table1", "--workers", "0"], "--workers"), ([], "Missing argument")],
)
def test_wrong_usage_is_refused(asked, capsys, arguments, words):
    with pytest.raises(SystemExit) as caught:
        main(["reproduce", *arguments])
    assert caught.value.code == 2 and words in capsys.readouterr().err and not asked


def test_a_path_without_a_name_is_a_sentence(asked, capsys):
    code, _, err = outcome(capsys, "reproduce", "table1", "--data", "mnist")
    assert code == 2 and "give NAME=PATH" in err and not asked


def test_its_help_imports_nothing_heavy():
    code = (
        "import sys; from prer.cli.main import main; main(['reproduce', '--help'])\n"
        "print(sorted({'torch', 'rich', 'prer.paper'} & set(sys.modules)))"
    )
    assert printed("-c", code).splitlines()[-1] == "[]"
