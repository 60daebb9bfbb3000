"""The live line of a run and its log: times, warnings, hostile names."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.terminal import epoch, health, log, terminal

from prer.terminal.progress import Display
from prer.training.progress import time_left

pytestmark = pytest.mark.usefixtures("no_terminal")


HOSTILE = ["[red]x[/red]", "[/]", "[link=http://x]y", "\x1b[2J\x1b]0;x\x07", "a\nb", "<b>&amp;</b>", ":smile:"]


def test_the_time_left_follows_the_newest_pace_of_each_phase():
    display = Display(log(), "x", tasks=2, phases={"a": 2, "b": 3})
    steps = [
        (epoch(0, "a", 0, 2, seconds=10), 1 * 10 + 3 * 10 + 2 * 10 + 3 * 10),  # b is thought to be as slow as a
        (epoch(0, "a", 1, 2, seconds=4), 3 * 4 + 2 * 4 + 3 * 4),
        (epoch(0, "b", 0, 3, seconds=1), 2 * 1 + 2 * 4 + 3 * 1),
        (epoch(0, "b", 2, 3, seconds=2), 2 * 4 + 3 * 2),
        (epoch(1, "a", 0, 2, seconds=6), 1 * 6 + 3 * 2),
        (epoch(1, "b", 1, 3, seconds=7), 1 * 7),
        (epoch(1, "b", 2, 3, seconds=9), 0),
    ]
    for event, left in steps:
        display(event)
        assert time_left(event, display.tasks, display.phases, display.pace) == pytest.approx(left)


@settings(max_examples=40, deadline=None, database=None)
@given(
    st.integers(1, 4),
    st.dictionaries(st.sampled_from("abc"), st.tuples(st.integers(1, 4), st.floats(0.1, 9)), min_size=1),
)
def test_at_a_steady_pace_the_time_left_is_right_once_every_phase_was_seen(tasks, phases):
    plan = [(t, p, e, n, s) for t in range(tasks) for p, (n, s) in phases.items() for e in range(n)]
    display = Display(log(), "x", tasks, {p: n for p, (n, _) in phases.items()}, quiet=True)
    for at, (task, phase, number, epochs, seconds) in enumerate(plan):
        event = epoch(task, phase, number, epochs, seconds)
        display(event)
        if len(display.pace) == len(phases):
            assert time_left(event, display.tasks, display.phases, display.pace) == pytest.approx(
                sum(step[-1] for step in plan[at + 1 :]), abs=1e-9
            )


@pytest.mark.parametrize("verbose", [False, True])
def test_a_log_has_one_line_for_each_phase_or_epoch_and_no_escape_codes(verbose):
    console = log(width=20)  # narrow, and still one line each
    with Display(console, "x", tasks=3, phases={"flow": 2}, verbose=verbose) as display:
        display(epoch(1, "flow", 0, seconds=50))
        display(epoch(1, "flow", 1, seconds=50))
        display({"event": "task", "task": 1, "accuracy": [[1.0]]})
    first = ["task 2/3  flow        epoch   1/2  loss     1.000  2 min 30 s left"] if verbose else []
    last = "task 2/3  flow        epoch   2/2  loss     1.000  1 min 40 s left"
    assert console.file.getvalue().splitlines() == [*first, last]


def test_a_terminal_shows_one_live_line_and_is_left_as_it_was():
    console = terminal()
    with Display(console, "x", tasks=2, phases={"flow": 2}) as display:
        display(epoch(0, "flow", 0))
        display(epoch(0, "flow", 1))
    text = console.file.getvalue()
    assert "task 1/2  flow        epoch   2/2  loss     1.000  2 s left" in text
    assert "━" in text  # the bar
    assert "\x1b[?25l" in text and text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor went and came back
    assert text.endswith("\x1b[2K")  # what was live is wiped away


def test_a_terminal_gets_its_cursor_back_when_a_run_fails():
    console = terminal()
    with pytest.raises(KeyError), Display(console, "x", 1, {"flow": 1}):
        raise KeyError
    text = console.file.getvalue()
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


@pytest.mark.parametrize("make", [log, terminal])
def test_a_quiet_run_prints_only_warnings(make):
    console = make()
    with Display(console, "x", 2, {"flow": 2}, quiet=True) as display:
        display(epoch())
        display(health([0.99]))
        assert console.file.getvalue() == ""
        display(health([0.1]))
        display({"event": "task", "task": 1})
    assert "warning" in console.file.getvalue()


@pytest.mark.parametrize(("agreement", "warned"), [([0.3], 30), ([0.5, 1.0], 50), ([0.85, 1.0], None), ([1.0], None)])
def test_a_class_that_is_hardly_recognised_is_a_warning(agreement, warned):
    console = log()
    with Display(console, "x", 2, {"flow": 2}) as display:
        display(health(agreement))
        display({"event": "task", "task": 1})
    if warned is None:
        assert console.file.getvalue() == ""
    else:
        assert console.file.getvalue() == (
            "warning: after task 2 the memory's samples of some classes are often not recognised as their class "
            f"(recognised in the worst seed: {warned}% of 'cat'); these classes may be forgotten. "
            "More epochs may help, learner.epochs_autoencoder first.\n"
        )


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_class_name_is_printed_as_text_in_one_line(name):
    console = log(width=30)
    with Display(console, "x", 2, {"flow": 2}) as display:
        display(health([0.0], name))
        display({"event": "task", "task": 1})
    assert f"(recognised in the worst seed: 0% of {name!r})" in console.file.getvalue()
    assert console.file.getvalue().count("\n") == 1
    assert "\x1b" not in console.file.getvalue()


@pytest.mark.parametrize("name", ["[red]x[/red]", "[/]", ":smile:"])
def test_a_hostile_title_is_printed_as_text(name):
    console = terminal()
    with Display(console, name, 1, {"flow": 1}):
        pass
    assert f"{name}: starting" in console.file.getvalue()
