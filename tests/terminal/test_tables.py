"""Results as tables, and the sentence about what they mean."""

import json
import re

import pytest
from support.fake_runs import fake_run, forge_result
from support.terminal import health, log, shown

from prer.runs.folder import RunFolder
from prer.terminal.tables import matrix_table, meaning, metrics_table, show_result, show_runs

pytestmark = pytest.mark.usefixtures("no_terminal")


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
    ("bwt", "naive", "said"),
    [
        (
            -5.0,
            None,
            "90.0 % of predictions are correct, .* after each of 3 tasks .* A task lost 5.0 points on average while",
        ),
        (-5.0, None, r"correct, averaged over the tests after each of 3 tasks \(53.5 % after the last\)\. A task"),
        (2.0, None, r"A task gained 2.0 points on average while later tasks were learned\. Stored"),
        (0.0, None, "gained 0.0 points"),
        (
            -5.0,
            -31.4,
            r"A task lost 5.0 points on average while later tasks were learned; with naive training it loses 31.4\.",
        ),
        (-5.0, 0.0, "with naive training it (loses|gains) 0.0"),
        (-5.0, 3.1, "with naive training it gains 3.1"),
        (-5.0, "one task", r"were learned\. Stored"),
    ],
)
def test_the_meaning_is_in_sentences(bwt, naive, said):
    beside = None if naive is None else result(bwt=None if naive == "one task" else naive, learner="naive")
    text = meaning(result(bwt=bwt, samples=7), beside)
    assert text.startswith("Meaning: ")
    assert re.search(said, text), text
    assert text.endswith("Stored samples of old tasks: 7.")


def test_one_task_alone_says_nothing_about_forgetting():
    text = meaning(result(accuracy=99.0, bwt=None, tasks=1))
    assert text == "Meaning: the only task reached 99.0 %; forgetting can be measured from two tasks on."


@pytest.mark.parametrize(("chance", "plain"), [(50, True), (40, False), (None, False)])
def test_a_result_near_chance_says_only_that(chance, plain):
    text = meaning(result(accuracy=51.0, bwt=2.3), None, chance)  # its tasks were learned to 52.5 %
    near = "which is hardly better than chance (50 %), so BWT is meaningless here."
    assert plain == (text == f"Meaning: tasks reach 52.5 % after training, on average, {near}")


def test_a_task_that_was_learned_and_forgotten_is_not_called_guessing():
    forgotten = [[100.0 if i == j else 50.0 if j < i else None for j in range(20)] for i in range(20)]
    text = meaning(result(accuracy=55.0, bwt=-50.0, tasks=20) | {"matrix": [forgotten]}, None, 50)
    assert "chance" not in text and "A task lost 50.0 points" in text


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


def test_unknown_metrics_are_a_dash():
    text = shown(metrics_table(result(bwt=None, tasks=1)))
    assert "│ BWT          │            - │" in text


# -- run folders -----------------------------------------------------------------------------------------------------


@pytest.fixture
def folders(tmp_path):
    """Makes finished run folders."""

    def make(name, **options):
        (tmp_path / name).mkdir()
        (tmp_path / name / "experiment.toml").write_text('name = "x"')
        (tmp_path / name / "result.json").write_text(json.dumps(result(**options)))
        return RunFolder(tmp_path / name)

    return make


def test_a_result_ends_with_its_meaning_and_its_folder(folders):
    folder, console = folders("one"), log(width=40)
    show_result(console, folder, folders("two", learner="naive", bwt=-30.0))
    lines = console.file.getvalue().splitlines()
    assert lines[-1] == f"Run folder: {folder.path}"
    assert lines[-2].startswith("Meaning: ") and "naive training it loses 30.0" in lines[-2]


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
def test_a_result_is_compared_with_guessing_where_the_classes_of_a_task_are_known(folders, stream, guessing):
    folder, console = folders("one", accuracy=51.0), log()
    (folder.path / "experiment.toml").write_text(f"[stream]\n{stream}\n")
    show_result(console, folder)
    assert ("chance (50 %)" in console.file.getvalue()) == guessing


def test_a_result_repeats_what_was_warned_of_at_the_start(folders):
    folder, console = folders("one"), log()
    (folder.path / "environment.json").write_text(json.dumps({"warnings": ["a task is small", 3]}))
    show_result(console, folder)
    lines = console.file.getvalue().splitlines()
    assert lines[-3].startswith("Meaning: ") and lines[-2] == "warning: a task is small"


def test_a_result_repeats_which_classes_fade_at_the_end(folders):
    folder, console = folders("one"), log()
    show_result(console, folder)
    assert "warning" not in console.file.getvalue()
    for task, agreement in ((0, [0.1]), (1, [0.9, 0.7])):
        folder.event(health(agreement))
        folder.event({"event": "task", "task": task})
    show_result(console, folder)
    assert re.findall("warning: after task .* seed: .*?\\)", console.file.getvalue()) == [
        "warning: after task 2 the memory's samples of some classes are often not recognised as their class "
        "(recognised in the worst seed: 70% of 'cat')"
    ]
    folder.event({"event": "task", "task": 2})
    console = log()
    show_result(console, folder)
    assert "warning" not in console.file.getvalue()


@pytest.mark.parametrize("values", [None, 3, [], ["x"], [None], [-1e999], [True, "x"]])
def test_invalid_health_events_are_no_warning(folders, values):
    folder, console = folders("one"), log()
    (folder.path / "events.jsonl").write_text(
        json.dumps(health(values)) + "\n[]\n" + json.dumps({"event": "task", "task": "x"}) + "\n"
    )
    show_result(console, folder)
    assert "warning" not in console.file.getvalue()


def test_ten_tasks_are_not_truncated_in_a_log(folders):
    console = log(width=80)
    show_result(console, folders("one", tasks=10))
    assert "…" not in console.file.getvalue()
    assert "68.5" in console.file.getvalue()


def test_naive_is_not_compared_with_itself(folders):
    console = log()
    show_result(console, folders("one", learner="naive"), folders("two", learner="naive"))
    assert "naively" not in console.file.getvalue()


def test_runs_have_one_line_each_and_an_unfinished_one_says_so(folders, tmp_path):
    (tmp_path / "three").mkdir()
    console = log()
    show_runs(
        console, [folders("one"), folders("two", bwt=None, tasks=1, learner="naive"), RunFolder(tmp_path / "three")]
    )
    one, two, three = (line for line in console.file.getvalue().splitlines() if line.startswith("│"))
    assert [cell.strip() for cell in one.strip("│").split("│")] == [
        *("one", "prer", "digits", "2", "90.00 ± 1.50", "-5.00 ± 1.50", "0", "29,088", "1 min 23 s")
    ]
    assert [cell.strip() for cell in two.strip("│").split("│")][5] == "-"
    assert "three" in three and "not finished" in three
    assert console.file.getvalue().splitlines()[-1].endswith(f"prer resume {tmp_path / 'three'}")


def test_the_names_of_runs_are_not_truncated_in_a_log(folders):
    names = ["digits-naive-55d8503a", "digits-prer-ba00c5a2"]
    console = log(width=80)
    show_runs(console, [folders(name) for name in names])
    assert all(name in console.file.getvalue() for name in names)


@pytest.mark.parametrize("name", ["[red]x[red]", "[]", "<b>", ":smile:"])
def test_hostile_names_of_runs_and_data_are_printed_as_text(folders, name):
    folder, console = folders(name, stream=name), log()
    show_result(console, folder)
    show_runs(console, [folder])
    assert console.file.getvalue().count(name) == 4  # title of the matrix, folder, run, data


# -- if nobody tells the task ------------------------------------------------------------------------------------------


def without_task(tmp_path, name="a", **about):
    return RunFolder(fake_run(tmp_path / name, scenario="class", **about))


def test_the_metrics_over_all_classes_come_first(tmp_path):
    run = without_task(tmp_path)
    show_result(console := log(200), run)
    out = console.file.getvalue()
    lines = [line for line in out.splitlines() if "│" in line]
    assert "Final accuracy, all 6 classes" in lines[0] and "83.33 ± 0.00" in lines[0]
    assert "Average incremental accuracy" in lines[1] and "Final accuracy, task given" in lines[2]
    assert "bytes kept" in out and "4.1 kB" in out
    assert "on digits, task not given, mean of 3 seeds" in " ".join(out.split())
    assert "Accuracy by class in %: 0: 100.0, 1: 90.0, 2: 85.0, 3: 80.0, 4: 75.0, 5: 70.0" in " ".join(out.split())


def test_the_meaning_names_chance_and_the_worst_class(tmp_path):
    run, naive = without_task(tmp_path), without_task(tmp_path, "b", learner="naive")
    text = meaning(run.result, naive.result)
    assert "83.3 % of the test samples of all 6 classes are classified correctly" in text
    assert "(chance level: 16.7 %; naive training: 83.3 %)" in text
    assert (
        "The worst class is 5: 70.0 % of its samples are classified correctly, and 30.0 % are mistaken for 0." in text
    )
    worse = naive.result | {"final_accuracy": spread(90.0)}
    assert "this run needs more training" in meaning(run.result, worse)


def test_of_many_classes_the_worst_are_listed(tmp_path):
    show_result(console := log(200), without_task(tmp_path, tasks=6))
    out = console.file.getvalue()
    assert "The worst 5 of 12 classes, accuracy in %: 11: 40.0, 10: 45.0," in " ".join(out.split())


def test_runs_with_and_without_the_task_are_in_one_table(tmp_path):
    runs = [without_task(tmp_path), RunFolder(fake_run(tmp_path / "told"))]
    show_runs(console := log(200), runs)
    out = console.file.getvalue()
    assert "final accuracy" in out and "scenario" in out and "83.33 ± 0.00" in out and "BWT" not in out
    assert [word for line in out.splitlines() for word in line.split() if word in ("task", "class")] == [
        "class",
        "task",
    ]


def test_the_task_given_is_left_out_where_it_says_the_class(tmp_path):
    run = without_task(tmp_path, tasks=3, labels=["a", "b", "c"])
    forge_result(run.path, matrix_task_given=[[[100.0] * 3] * 3] * 3, final_accuracy_task_given=spread(100.0))
    show_result(console := log(200), RunFolder(run.path))
    out = " ".join(console.file.getvalue().split())
    assert "Final accuracy, all 3 classes" in out and "Final accuracy, task given" not in out
    assert "are classified correctly after the last task (chance level: 33.3 %). The worst class" in out
