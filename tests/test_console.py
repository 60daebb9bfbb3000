"""What a person sees: times, the live display and its log, warnings, and the sentences about a result."""

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from prer.paper.tables import Table as Tabled
from prer.paper.tables import Value, show
from prer.runs.folder import RunFolder
from prer.terminal.next_steps import next_steps
from prer.terminal.progress import Display, time_left
from prer.terminal.tables import matrix_table, meaning, metrics_table, show_result, show_runs
from prer.text import clock, plus_minus

HOSTILE = ["[red]x[/red]", "[/]", "[link=http://x]y", "\x1b[2J\x1b]0;x\x07", "a\nb", "<b>&amp;</b>", ":smile:"]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def log(width=200):
    return Console(file=StringIO(), width=width)


def terminal():
    return Console(file=StringIO(), width=120, force_terminal=True)


def shown(thing, width=200):
    console = log(width)
    console.print(thing)
    return console.file.getvalue()


def epoch(task=0, phase="flow", number=0, epochs=2, seconds=1.0, loss=(0.5, 1.5)):
    event = {"event": "epoch", "task": task, "phase": phase, "epoch": number, "epochs": epochs}
    return event | {"loss": list(loss), "seconds": seconds}


def health(agreement, label="cat"):
    return {"event": "health", "task": 1, "class": label, "agreement": [1.0], "agreement_decoded": agreement}


# -- time ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (7.2, "7 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (83, "1 min 23 s"),
        (3599.4, "59 min 59 s"),
        (3599.6, "1 h 0 min"),
        (7300, "2 h 1 min"),
        (100_000, "27 h 46 min"),
    ],
)
def test_a_clock_speaks_as_a_person_does(seconds, text):
    assert clock(seconds) == text


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


# -- a run as it goes ------------------------------------------------------------------------------------------------


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
def test_a_quiet_run_says_nothing_but_warnings(make):
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


def test_what_to_try_next_keeps_commands_and_what_they_do_apart():
    settings = ["stream.data=some/rather/long/path/to/a/file.npz", "stream.classes_per_task=2", "like=digits"]
    _, *lines = next_steps(settings, ["--seeds", "2"], Path("runs"), lambda words: True).splitlines()
    assert f"  prer run {' '.join(settings)} learner.name=naive --seeds 2" in lines
    assert "      what is lost when nothing is done about forgetting" in lines
    assert all(line.startswith("  prer ") for line in lines[::2])


# -- results ---------------------------------------------------------------------------------------------------------


def spread(mean, std=None):
    return {"mean": mean, "std": std, "values": [mean]}


def result(accuracy=90.0, bwt=-5.0, learner="prer", tasks=3, std=1.5, samples=0, stream="digits"):
    R = [[50.0 + i + j if j <= i else None for j in range(tasks)] for i in range(tasks)]
    return {
        "seeds": [0, 1],
        "matrix": [R, [[None if v is None else v + 1 for v in row] for row in R]],
        "accuracy": spread(accuracy, std),
        "bwt": spread(bwt, None if bwt is None else std),
        "learner": learner,
        "stream": stream,
        "memory_samples": [samples] * tasks,
        "memory_floats": [29088] * tasks,
        "seconds": {"total": 83.0},
    }


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        (spread(90, 1.556), "90.00 ± 1.56"),
        (spread(-0.5), "-0.50"),
        (spread(None), "-"),
        (spread(0.0, 0.0), "0.00 ± 0.00"),
    ],
)
def test_a_metric_has_its_spread_where_it_is_known(metric, text):
    assert plus_minus(metric) == text


@pytest.mark.parametrize(
    ("bwt", "naive", "said"),
    [
        (
            -5.0,
            None,
            "over 3 tasks 90.0 % of answers were right .*, and a learned task lost 5.0 points on average while",
        ),
        (-5.0, None, r"right \(averaged over the tests after every task; after the last task 53.5 %\), and a learned"),
        (2.0, None, "a learned task gained 2.0 points on average while later ones were learned, with 7 old samples"),
        (0.0, None, "gained 0.0 points"),
        (
            -5.0,
            -31.4,
            "a learned task lost 5.0 points on average while later ones were learned; training naively it loses 31.4, ",
        ),
        (-5.0, 0.0, "training naively it (loses|gains) 0.0"),
        (-5.0, 3.1, "training naively it gains 3.1"),
        (-5.0, "one task", "learned, with 7 old samples stored"),
    ],
)
def test_the_meaning_is_one_sentence(bwt, naive, said):
    beside = None if naive is None else result(bwt=None if naive == "one task" else naive, learner="naive")
    text = meaning(result(bwt=bwt, samples=7), beside)
    assert text.startswith("It means: ")
    assert re.search(said, text), text
    assert text.endswith("with 7 old samples stored.")


def test_one_task_alone_says_nothing_about_forgetting():
    text = meaning(result(accuracy=99.0, bwt=None, tasks=1))
    assert text == "It means: the one task was learned to 99.0 %; forgetting shows from the second task on."


@pytest.mark.parametrize(("chance", "plain"), [(50, True), (40, False), (None, False)])
def test_of_what_was_hardly_learned_nothing_more_is_said(chance, plain):
    text = meaning(result(accuracy=51.0, bwt=2.3), None, chance)  # its tasks were learned to 52.5 %
    said = (
        "It means: on average a task was learned to 52.5 %. Hardly better than guessing (50 %): BWT says nothing here"
    )
    assert plain == (text == f"{said}.")


def test_what_was_learned_and_forgotten_is_not_called_guessing():
    forgotten = [[100.0 if i == j else 50.0 if j < i else None for j in range(20)] for i in range(20)]
    text = meaning(result(accuracy=55.0, bwt=-50.0, tasks=20) | {"matrix": [forgotten]}, None, 50)
    assert "guessing" not in text and "a learned task lost 50.0 points" in text


def test_the_matrix_is_a_mean_over_seeds_with_nothing_above_the_diagonal():
    lines = shown(matrix_table(result())).splitlines()
    assert " ".join(lines[0].split() + lines[1].split()).startswith("Accuracy in % of prer on digits, mean of 2 seeds")
    cells = [line.strip("│ ").split("│") for line in lines if line.startswith("│")]
    assert [[cell.strip() for cell in row if cell.strip()] for row in cells] == [
        ["task 1", "50.50"],
        ["task 2", "51.50", "52.50"],
        ["task 3", "52.50", "53.50", "54.50"],
    ]


def test_metrics_stand_beside_naives():
    text = shown(metrics_table(result(), result(bwt=-30.0, learner="naive", std=None)))
    rows = {
        line.split("│")[1].strip(): [cell.strip() for cell in line.split("│")[2:-1]]
        for line in text.splitlines()
        if "│" in line
    }
    assert rows == {
        "Accuracy": ["90.00 ± 1.50", "90.00"],
        "BWT": ["-5.00 ± 1.50", "-30.00"],
        "samples kept": ["0", "0"],
        "floats kept": ["29,088", "29,088"],
        "training": ["1 min 23 s", "1 min 23 s"],
    }


def test_metrics_that_are_not_known_are_a_dash():
    text = shown(metrics_table(result(bwt=None, tasks=1)))
    assert "│ BWT          │            - │" in text


@pytest.fixture
def records(tmp_path):
    """Makes finished run folders."""

    def make(name, **options):
        (tmp_path / name).mkdir()
        (tmp_path / name / "experiment.toml").write_text('name = "x"')
        (tmp_path / name / "result.json").write_text(json.dumps(result(**options)))
        return RunFolder(tmp_path / name)

    return make


def test_a_result_ends_with_its_meaning_and_its_folder(records):
    record, console = records("one"), log(width=40)
    show_result(console, record, records("two", learner="naive", bwt=-30.0))
    lines = console.file.getvalue().splitlines()
    assert lines[-1] == f"Run folder: {record.path}"
    assert lines[-2].startswith("It means: ") and "naively it loses 30.0" in lines[-2]


@pytest.mark.parametrize(
    ("stream", "guessing"),
    [
        ('kind = "split"\nclasses_per_task = 2', True),
        ('kind = "split"\nclasses_per_task = 4', False),
        ('kind = "split"\nclasses_per_task = 2\ntasks = [[0, 1, 2]]', False),
        ('kind = "permuted"\nclasses_per_task = 2', False),
        ('kind = "split"\nclasses_per_task = "2"', False),
        ('kind = "split"\nclasses_per_task = 0', False),
    ],
)
def test_a_result_is_compared_with_guessing_where_the_classes_of_a_task_are_known(records, stream, guessing):
    record, console = records("one", accuracy=51.0), log()
    (record.path / "experiment.toml").write_text(f"[stream]\n{stream}\n")
    show_result(console, record)
    assert ("guessing (50 %)" in console.file.getvalue()) == guessing


def test_a_result_repeats_what_was_warned_of_at_the_start(records):
    record, console = records("one"), log()
    (record.path / "environment.json").write_text(json.dumps({"warnings": ["a task is small", 3]}))
    show_result(console, record)
    lines = console.file.getvalue().splitlines()
    assert lines[-3].startswith("It means: ") and lines[-2] == "warning: a task is small"


def test_a_result_repeats_which_classes_fade_at_the_end(records):
    record, console = records("one"), log()
    show_result(console, record)
    assert "warning" not in console.file.getvalue()
    for task, agreement in ((0, [0.1]), (1, [0.9, 0.7])):
        record.event(health(agreement))
        record.event({"event": "task", "task": task})
    show_result(console, record)
    assert re.findall("warning: after task .* seed: .*?\\)", console.file.getvalue()) == [
        "warning: after task 2 the memory's samples of some classes are often not recognised as their class "
        "(recognised in the worst seed: 70% of 'cat')"
    ]
    record.event({"event": "task", "task": 2})
    console = log()
    show_result(console, record)
    assert "warning" not in console.file.getvalue()


@pytest.mark.parametrize("values", [None, 3, [], ["x"], [None], [-1e999], [True, "x"]])
def test_strange_figures_of_health_are_no_warning(records, values):
    record, console = records("one"), log()
    (record.path / "events.jsonl").write_text(
        json.dumps(health(values)) + "\n[]\n" + json.dumps({"event": "task", "task": "x"}) + "\n"
    )
    show_result(console, record)
    assert "warning" not in console.file.getvalue()


def test_ten_tasks_are_whole_in_a_log(records):
    console = log(width=80)
    show_result(console, records("one", tasks=10))
    assert "…" not in console.file.getvalue()
    assert "68.5" in console.file.getvalue()


def test_naive_is_not_compared_with_itself(records):
    console = log()
    show_result(console, records("one", learner="naive"), records("two", learner="naive"))
    assert "naively" not in console.file.getvalue()


def test_runs_have_one_line_each_and_an_unfinished_one_says_so(records, tmp_path):
    (tmp_path / "three").mkdir()
    console = log()
    show_runs(
        console, [records("one"), records("two", bwt=None, tasks=1, learner="naive"), RunFolder(tmp_path / "three")]
    )
    one, two, three = (line for line in console.file.getvalue().splitlines() if line.startswith("│"))
    assert [cell.strip() for cell in one.strip("│").split("│")] == [
        *("one", "prer", "digits", "2", "90.00 ± 1.50", "-5.00 ± 1.50", "0", "29,088", "1 min 23 s")
    ]
    assert [cell.strip() for cell in two.strip("│").split("│")][5] == "-"
    assert "three" in three and "not finished" in three
    assert console.file.getvalue().splitlines()[-1].endswith(f"prer resume {tmp_path / 'three'}")


@pytest.mark.parametrize("live", [True, False])
def test_long_texts_of_a_table_are_folded_on_a_terminal_and_numbers_are_not(live):
    sentence, number = " ".join(["some words of a claim"] * 40), Value(1234567.891, 1234.567)
    console = Console(file=StringIO(), width=80, force_terminal=live, no_color=True)
    show(console, Tabled("x", "A caption", ["claim", "evidence", "BWT"], [[sentence, sentence, number]] * 2))
    lines = [line for line in console.file.getvalue().splitlines() if line.startswith("│")]
    assert sum(str(number) in line for line in lines) == 2 and (len(lines) > 2) == live
    assert (max(map(len, lines)) < 120) == live
    assert " ".join(line.split("│")[1].strip() for line in lines) == f"{sentence} {sentence}"
    assert console.file.getvalue().count("\n├") == live  # a line between the two rows


def test_the_names_of_runs_are_whole_in_a_log(records):
    names = ["digits-naive-55d8503a", "digits-prer-ba00c5a2"]
    console = log(width=80)
    show_runs(console, [records(name) for name in names])
    assert all(name in console.file.getvalue() for name in names)


@pytest.mark.parametrize("name", ["[red]x[red]", "[]", "<b>", ":smile:"])
def test_hostile_names_of_runs_and_data_are_printed_as_text(records, name):
    record, console = records(name, stream=name), log()
    show_result(console, record)
    show_runs(console, [record])
    assert console.file.getvalue().count(name) == 4  # title of the matrix, folder, run, data
