"""The command itself: version, help, exit codes, wrong usage."""

import pytest
from support.commands import printed, python

from prer.version import __version__

pytestmark = pytest.mark.usefixtures("no_terminal")


@pytest.mark.parametrize("command", [["-c", "from prer.cli.main import main; main()"], ["-m", "prer"]], ids=" ".join)
def test_the_version(command):
    assert printed(*command, "--version") == f"prer, version {__version__}\n"


def test_help_is_quick_because_it_imports_nothing_heavy():
    code = (
        "import sys, prer; from prer.cli.main import main\n"
        "for words in ('--help', 'run --help', 'show -h', 'report -h', 'data fetch -h', 'sweep -h', 'sweep best -h'):\n"
        "    main(words.split())\n"
        "main(['--version'])\n"
        "print(sorted({'torch', 'numpy', 'sklearn', 'rich', 'matplotlib', 'jinja2'} & set(sys.modules)))"
    )
    out = printed("-c", code)
    assert out.splitlines()[-1] == "[]"
    assert "Continual learning that stores no samples" in out
    assert "[EXPERIMENT.toml] [key=value ...]" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--bogus"], "No such option"),
        (["nonsense"], "No such command 'nonsense'"),
        (["show"], "Missing argument 'RUN|MODEL...'"),
        (["run", "--seeds"], "requires an argument"),
    ],
)
def test_wrong_usage_is_refused_with_the_usage(arguments, words):
    done = python("-m", "prer", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(("Usage: prer", "Error: ")) and words in done.stderr
    assert "Traceback" not in done.stderr
