"""Plain lines, warnings and whole tables on a console."""

import pytest
from rich.table import Table
from support.terminal import log, terminal

from prer.terminal.console import MOST_TEXT, new_console, say, warn, whole

pytestmark = pytest.mark.usefixtures("no_terminal")


@pytest.mark.parametrize("text", ["[red]x[/red]", "[/]", ":smile:", "a" * 500, "12 of 'x' in 3.5 s"])
def test_a_line_is_printed_as_it_is(text):
    for console in (log(width=20), terminal()):
        say(console, text)
        assert console.file.getvalue() == f"{text}\n"


@pytest.mark.parametrize("text", ["\x1b[2J", "a\rb", "\u202eb", "\x07"])
def test_control_characters_do_not_reach_a_terminal(text):
    console = terminal()
    say(console, text)
    assert console.file.getvalue().strip().isprintable()


def test_a_line_is_cut_at_a_limit():
    console = log()
    say(console, "x" * 2 * MOST_TEXT)
    assert len(console.file.getvalue()) <= MOST_TEXT + 10


def test_warnings_are_one_line_each():
    console = log(width=20)
    warn(console, ["a rather long warning about something", "b"])
    assert console.file.getvalue() == "warning: a rather long warning about something\nwarning: b\n"


def test_a_table_is_as_wide_as_it_needs_and_the_console_stays_as_it_was():
    console, table = log(width=20), Table()
    for name in ("one", "two", "three"):
        table.add_column(name)
    table.add_row("x" * 40, "y" * 40, "z" * 40)
    whole(console, table)
    assert console.width == 20
    assert all(letter * 40 in console.file.getvalue() for letter in "xyz") and "…" not in console.file.getvalue()


def test_a_command_writes_to_the_stream_that_it_names(capsys):
    say(new_console(), "out")
    say(new_console(stderr=True), "err")
    assert capsys.readouterr() == ("out\n", "err\n")
