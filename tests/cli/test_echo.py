"""Lines of commands: escaped on a terminal, kept in a pipe."""

import io
import sys

import pytest

from prer.cli.echo import echo

LINE = "a \x1b[31mred\x1b[0m name\x07"


class Terminal(io.StringIO):
    """A stream that somebody watches."""

    def isatty(self):
        return True


@pytest.mark.parametrize("err", [False, True])
@pytest.mark.parametrize(("kind", "expected"), [(io.StringIO, LINE), (Terminal, r"a \x1b[31mred\x1b[0m name\x07")])
def test_control_characters_reach_no_terminal(monkeypatch, kind, expected, err):
    streams = {"stdout": kind(), "stderr": kind()}
    for name, stream in streams.items():
        monkeypatch.setattr(sys, name, stream)
    echo(LINE, err=err)
    assert {name: stream.getvalue() for name, stream in streams.items()} == {
        "stdout": "" if err else f"{expected}\n",
        "stderr": f"{expected}\n" if err else "",
    }


def test_a_closed_stream_is_no_error(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    echo("nobody reads this")
