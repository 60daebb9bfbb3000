"""docs/features.md says what the recorded runs say."""

import json
import re

import pytest
from support.benchmarks import RECORDS, ROOT, script
from support.documents import table

from prer.learners.encoding import MANY
from prer.paper import features as tables
from prer.paper.plan import Request
from prer.paper.reproduce import clocks, existing
from prer.paper.table1 import result_of
from prer.paper.tables import Value
from prer.presets import NOBODY_TELLS
from prer.presets.auto import embedding_of

PAGE = "docs/features.md"
PATHS = {"clinc150": "clinc150.csv", "banking77": "banking77.csv", "cifar100": "cifar100-40k"}
ON = {"clinc150": "CLINC150", "banking77": "BANKING77", "cifar10": "CIFAR10", "cifar100": "CIFAR100-40k"}
ROWS = tables.TITLES | {
    "ranpac-small": "RanPAC, 1,000 random features",
    "ranpac": "RanPAC, 2,000 random features",
}
CLOSED = ("ncm", "slda", "ranpac-small", "ranpac")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("features")
    script("paper_records").unpack((RECORDS / "features.jsonl").read_text("utf-8").splitlines(), folder)
    return folder


@pytest.fixture(scope="module")
def outcomes(runs):
    return existing(tables.experiments(Request(paths=PATHS)), runs)


@pytest.fixture(scope="module")
def accuracy(outcomes):
    """The mean final accuracy of each method on each data set, as the page rounds it."""
    return {key: round(result_of(outcome)["final_accuracy"]["mean"], 2) for key, outcome in outcomes.items()}


@pytest.fixture(scope="module")
def size(outcomes):
    """What each method keeps on each data set in bytes."""
    return {key: result_of(outcome)["memory_bytes"][-1] for key, outcome in outcomes.items()}


def prose():
    """The text of the page in one line, without emphasis."""
    return " ".join((ROOT / PAGE).read_text("utf-8").replace("**", "").split())


def listed(values):
    """Numbers with one digit, as the page lists them."""
    *first, last = [f"{value:.1f}" for value in values]
    return f"{', '.join(first)} and {last}"


def rows(first):
    return table(PAGE, first, *ON.values())


def test_every_run_is_recorded_with_five_seeds_and_the_present_settings(outcomes):
    assert all(result_of(outcome) for outcome in outcomes.values()), "some run has other settings now"
    assert len(outcomes) == len((RECORDS / "features.jsonl").read_text("utf-8").splitlines()) == 28
    for (data, method), outcome in outcomes.items():
        result, source = result_of(outcome), tables.SOURCES[data]
        assert result["seeds"] == [0, 1, 2, 3, 4] and result["scenario"] == "class"
        assert (result["memory_samples"][-1] > 0) == (method == "joint")
        assert len(result["classes"]) == len(result["memory_samples"]) * source.classes_per_task


@pytest.mark.parametrize(
    ("first", "cell"),
    [
        ("method", lambda of: str(Value(of["final_accuracy"]["mean"], of["final_accuracy"]["std"]))),
        ("kB kept", lambda of: f"{of['memory_bytes'][-1] / 1000:,.0f}"),
        ("seconds of all five seeds", lambda of: f"{of['seconds']['total']:.0f}"),
    ],
    ids=["accuracy", "kB", "seconds"],
)
def test_the_tables_of_the_page_are_the_records(first, cell, outcomes):
    expected = {ROWS[m]: [cell(result_of(outcomes[data, m])) for data in ON] for m in tables.METHODS}
    assert rows(first) == expected


def test_the_page_says_in_how_many_tasks_the_classes_come(outcomes):
    text, numbers = prose(), {}
    for data in ON:
        result = result_of(outcomes[data, "prer"])
        numbers[data] = len(result["memory_samples"]), len(result["classes"]) // len(result["memory_samples"])
    assert "CLINC150 comes in {} tasks of {} intents".format(*numbers["clinc150"]) in text
    assert "BANKING77 in {} of {}".format(*numbers["banking77"]) in text
    assert "CIFAR10 in {} tasks of {} classes and CIFAR100-40k in".format(*numbers["cifar10"]) in text
    assert "CIFAR100-40k in {} of {}, both over".format(*numbers["cifar100"]) in text


def test_prer_leads_without_stored_samples_by_what_the_page_says(accuracy, size):
    text = prose()
    leads, small = [], []
    for data in ON:
        ours = accuracy[data, "prer"]
        others = {method: accuracy[data, method] for method in (*CLOSED, "prer-small")}
        leads.append(ours - max(others[method] for method in CLOSED))
        few = [method for method in CLOSED if size[data, method] <= tables.MORE * size[data, "prer"]]
        small.append(ours - max(others[method] for method in few))
    assert min(leads) > 0
    on = [f"{lead:.1f} on {name}" for lead, name in zip(leads, ON.values(), strict=True)]
    on[0] = on[0].replace(" on ", " points on ")
    assert f"Its lead over the best closed form is {', '.join(on[:3])} and {on[3]}." in text
    assert f"with about its bytes or fewer, the lead is {listed(small)} points." in text


def test_slda_is_as_near_as_the_page_says(accuracy, size):
    text, gap = prose(), {data: accuracy[data, "prer"] - accuracy[data, "slda"] for data in ON}
    images, clinc = re.search(
        r"SLDA is within ([\d.]+) points of PRER on images, and within ([\d.]+) on CLINC150", text
    ).groups()
    assert max(gap["cifar10"], gap["cifar100"]) <= float(images) <= max(gap["cifar10"], gap["cifar100"]) + 0.1
    assert gap["clinc150"] <= float(clinc) <= gap["clinc150"] + 0.1
    assert round(size["clinc150", "prer"] / size["clinc150", "slda"]) == 15 and "with a fifteenth of its bytes" in text


def test_joint_is_as_far_as_the_page_says(accuracy):
    text, gap = prose(), {data: accuracy[data, "prer"] - accuracy[data, "joint"] for data in ON}
    assert f"PRER is {gap['banking77']:.1f} points ahead on BANKING77" in text and gap["banking77"] > 0
    behind = [-gap[data] for data in ("clinc150", "cifar10", "cifar100")]
    assert min(behind) > 0
    assert f"{listed(behind)} points behind on CLINC150, CIFAR10 and CIFAR100-40k" in text


def test_one_gaussian_is_as_good_with_few_samples(accuracy, size):
    assert "On BANKING77 it keeps a third of the bytes and is as accurate." in prose()
    assert round(size["banking77", "prer"] / size["banking77", "prer-small"]) == 3
    assert abs(accuracy["banking77", "prer"] - accuracy["banking77", "prer-small"]) < 0.2


def test_the_page_says_how_the_runs_were_made(runs):
    text, clock = prose(), clocks(runs)["features"]
    workers = re.search(r"28 runs on one H200 with up to (\d+) workers", text)[1]
    assert int(workers) == clock.workers and f"come from one command ({clock.seconds:.0f} s)" in text
    environments = [json.loads(path.read_text())["gpu"] for path in runs.glob("*/environment.json")]
    assert len(environments) == 28 and set(environments) == {"NVIDIA H200"}


def test_the_page_says_what_was_chosen_on_validation_data():
    text, found = prose(), json.loads((RECORDS / "features_default_h200.json").read_text("utf-8"))
    search = json.loads((RECORDS / "search_features_h200.json").read_text("utf-8"))
    assert search["budget"] == 5 and "the best of five random points on a fifth of the training part, two seeds" in text
    assert f"the weight of the likelihood ({found['certainty in use']}) were chosen" in text
    assert set(found["accuracy"]) == set(ON) and found["seeds"] == [0, 1]
    assert "Its shrinkage (1)" in text


def test_the_page_says_which_vectors_are_embeddings_and_how_many_components_they_get():
    text = prose()
    assert f"Vectors of {MANY} numbers or more whose spreads are similar are taken for embeddings" in text
    components = embedding_of(NOBODY_TELLS["prer"]["embedding"], (384,))
    assert f"Vectors of more than {components} numbers are projected on {components} principal components" in text


def test_the_page_cites_what_the_tables_cite():
    of = [re.findall(r"[\d.]+\d", tables.SOURCES[data].published.split(": ")[1]) for data in ("clinc150", "banking77")]
    one, two = of
    said = zip(("nearest mean", "LDA", "KLDA", "joint"), one, two, strict=True)
    assert ", ".join(f"{name} {a} and {b}" for name, a, b in said) in prose()


@pytest.mark.parametrize("name", ["one_more_class", "one_more_class_large"])
def test_the_time_of_one_more_class_is_recorded(name):
    record = json.loads((RECORDS / f"{name}.json").read_text("utf-8"))
    (said,) = re.findall(rf"takes ([\d.]+) s[^.]*? \(\[record\]\(\.\./benchmarks/records/{name}\.json\)", prose())
    assert said == f"{record['median']:.1f}"


def test_the_tables_say_that_differences_are_not_tested(outcomes):
    for found in tables.tables(Request(paths=PATHS), outcomes):
        assert tables.NOT_TESTED in found.notes
