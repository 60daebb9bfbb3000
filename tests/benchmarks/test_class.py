"""docs/class-incremental.md says what the recorded runs say."""

import json

import numpy as np
import pytest
from support.benchmarks import RECORDS, ROOT, script
from support.documents import table

from prer.paper import DATA
from prer.paper import class_incremental as tables
from prer.paper.class_figure import plot
from prer.paper.plan import Request
from prer.paper.reproduce import clocks, existing
from prer.paper.table1 import result_of
from prer.paper.tables import Value

PAGE = "docs/class-incremental.md"
PARTS = {"kmnist": "kmnist10k", "svhn": "svhn46k"}
ON = ("MNIST", "KMNIST-10k", "SVHN-46k", "CIFAR10")
SEEDS = [0, 1, 2, 3, 4]
RUNS = 216
WHAT = {"replay": "{} images", "der": "{} images", "slda-patches": "{} numbers", "ranpac-patches": "{} features"}
WHAT |= {"prer": "{} numbers, {} components"}
CLOSED = ("ncm-patches", "slda-patches", "ranpac-patches")
NAMED = {"prer-small": "PRER, 100 numbers, 1 component", "prer-balanced": "PRER, balanced"}
NAMED |= {"replay-patches-balanced": "Replay, patches, balanced"}
many = script("many_classes")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    script("paper_records").unpack((RECORDS / "class.jsonl").read_text("utf-8").splitlines(), folder)
    return folder


@pytest.fixture(scope="module")
def outcomes(runs):
    return existing(tables.experiments(Request(paths=PARTS)), runs)


def final(outcome):
    return str(Value(result_of(outcome)["final_accuracy"]["mean"])) if result_of(outcome) else "-"


def spread(outcome):
    """Mean and standard deviation of the final accuracy; a dash if the run was not made."""
    metric = (result_of(outcome) or {}).get("final_accuracy")
    return str(Value(metric["mean"], metric["std"])) if metric else "-"


def size(outcome):
    return f"{result_of(outcome)['memory_bytes'][-1] / 1000:,.0f}" if result_of(outcome) else "-"


def accuracy(outcomes, data, method):
    return result_of(outcomes[data, method])["final_accuracy"]["mean"]


def prose():
    """The text of the page in one line."""
    return " ".join((ROOT / PAGE).read_text("utf-8").split())


@pytest.fixture(scope="module")
def streams():
    """The results of the runs of many, of single and of uneven classes, with their metrics, by name."""
    lines = map(json.loads, (RECORDS / "many_classes.jsonl").read_text("utf-8").splitlines())
    return {line["name"]: script("paper_records").result_of(line) for line in lines}


def of_stream(result):
    metric = result["final_accuracy"]
    return str(Value(metric["mean"], metric["std"]))


def kept(result):
    return f"{result['memory_bytes'][-1] / 1000:,.0f}", f"{result['memory_samples'][-1]:,}"


def title(stream, method):
    """The name of a method on the page; over vectors nothing need be said of pixels."""
    named = NAMED.get(method, tables.TITLES.get(method))
    return named.removesuffix(", pixels") if stream == "letter" else named


def test_every_run_is_recorded_with_its_seeds(outcomes):
    assert all(result_of(outcome) for outcome in outcomes.values())
    for (_, name), outcome in outcomes.items():
        assert result_of(outcome)["seeds"] == (list(range(20)) if name.startswith("choice/") else SEEDS)
    assert len({outcome.experiment.hash for outcome in outcomes.values()}) == RUNS
    assert len((RECORDS / "class.jsonl").read_text("utf-8").splitlines()) == RUNS


def test_the_page_has_the_final_accuracy_of_every_method(outcomes):
    rows = table(PAGE, "method", *ON, "kB kept, MNIST", "kB kept, CIFAR10")
    assert set(rows) == {tables.TITLES[method] for method in tables.METHODS}
    for method in tables.METHODS:
        accuracies = [spread(outcomes[data, method]) for data in DATA]
        kept = [size(outcomes[data, method]) for data in ("mnist", "cifar10")]
        assert rows[tables.TITLES[method]] == [*accuracies, *kept]


def test_the_page_has_what_the_condition_is_worth(outcomes):
    columns = ("MNIST", "MNIST, task given", "MNIST, a head for each", "CIFAR10", "CIFAR10, task given")
    rows = table(PAGE, "PRER", *columns, "CIFAR10, a head for each")
    assert set(rows) == {change.what for change in tables.CHANGES.values()}
    for name, change in tables.CHANGES.items():
        expected = []
        for data in tables.CONDITIONED:
            unknown, given = (outcomes[data, f"{name}/{scenario}"] for scenario in ("class", "task"))
            expected += [final(unknown), str(Value(tables._given(unknown).mean)), final(given)]
        assert rows[change.what] == expected


def test_the_page_has_the_accuracy_of_five_sizes(outcomes):
    rows = table(PAGE, "memory", *ON, "kB, MNIST", "kB, CIFAR10")
    assert len(rows) == 25
    for method, sizes in tables.SIZED_BY.items():
        for name in sizes:
            found = [outcomes[data, f"{method}-{name}"] for data in DATA]
            what = WHAT[method].format(*(f"{int(number):,}" for number in name.split("x")))
            assert rows[f"{tables.TITLES[method]}, {what}"] == [*map(final, found), size(found[0]), size(found[3])]


def test_the_page_has_what_the_choices_are_worth(outcomes):
    rows = table(PAGE, "one choice changed", "final accuracy", "kB kept")
    found = {change.what: outcomes["kmnist", f"choice/{name}"] for name, change in tables.CHOSEN.items()}
    assert rows == {what: [spread(outcome), size(outcome)] for what, outcome in found.items()}
    ours = accuracy(outcomes, "kmnist", "choice/ours")
    assert all(result_of(outcome)["final_accuracy"]["mean"] <= ours for outcome in found.values())


def test_the_page_compares_flow_and_mixture_at_equal_bytes(outcomes):
    text, sizes = prose(), {"mnist": "100x4", "kmnist": "100x4", "svhn": "100x16", "cifar10": "100x16"}
    said = {
        "mnist": "has {mixture} where the flow has {flow} on MNIST",
        "kmnist": "{mixture} and {flow} on KMNIST-10k",
        "svhn": "On SVHN-46k the two are equal: {mixture} and {flow}",
        "cifar10": "{mixture} and {flow} on CIFAR10",
    }
    for data, name in sizes.items():
        flow, mixture = (result_of(outcomes[data, method]) for method in ("prer-patches", f"prer-{name}"))
        assert mixture["memory_bytes"][-1] <= flow["memory_bytes"][-1]
        figures = {"flow": final(outcomes[data, "prer-patches"]), "mixture": final(outcomes[data, f"prer-{name}"])}
        assert said[data].format(**figures) in text
    gap = [
        accuracy(outcomes, data, f"prer-{name}") - accuracy(outcomes, data, "prer-patches")
        for data, name in sizes.items()
    ]
    assert min(gap) >= 0 and gap[2] < 0.2 < min(gap[0], gap[1], gap[3])


def test_the_page_says_what_closed_forms_reach_over_patches(outcomes):
    text = prose()
    for data, name in (("svhn", "SVHN-46k"), ("cifar10", "CIFAR10")):
        figures = [final(outcomes[data, method]) for method in ("slda-patches", "slda")]
        assert f"{figures[0]} instead of {figures[1]} on {name}" in text
    ahead = [
        accuracy(outcomes, data, "prer") - max(accuracy(outcomes, data, m) for m in CLOSED)
        for data in ("svhn", "cifar10")
    ]
    assert f"by {ahead[0]:.1f} and {ahead[1]:.1f} points" in text
    ours, theirs = (result_of(outcomes["cifar10", m])["memory_bytes"][-1] for m in ("prer", "slda-patches"))
    assert f"with {ours / theirs:.0f} times the memory of `slda`" in text


def test_the_page_says_who_wins_at_which_bytes(outcomes):
    """The three sentences beside the figure."""
    points = {data: [] for data in DATA}
    for (data, name), outcome in outcomes.items():
        if "/" not in name:
            result = result_of(outcome)
            method = next(
                m for m in sorted(tables.METHODS, key=len, reverse=True) if name == m or name.startswith(f"{m}-")
            )
            points[data].append((result["memory_bytes"][-1], result["final_accuracy"]["mean"], method))

    def best(data, method, most):
        return max((accuracy for size, accuracy, m in points[data] if m == method and size <= most), default=0)

    smallest = {data: min(size for size, _, m in points[data] if m == "prer") for data in DATA}
    assert all(round(size / 1000) in (190, 191) for size in smallest.values())
    assert best("cifar10", "slda-patches", 336_500) > best("cifar10", "prer", 336_500)
    assert best("svhn", "slda-patches", 1_312_500) > best("svhn", "prer", 1_312_500)
    text = prose()
    assert f"({final(outcomes['svhn', 'slda-patches-400'])}; PRER {final(outcomes['svhn', 'prer-100x4'])})" in text
    for data in DATA:
        for size, reached, method in points[data]:
            if method == "prer":
                continue
            if size < smallest[data] and reached > 21:  # more than the newest classes alone
                assert reached <= max(best(data, closed, smallest[data]) for closed in CLOSED)
            elif size >= 472_000 and data != "svhn":
                assert best(data, "prer", size) > reached
            assert best(data, "prer", 1e12) > reached
        images = [(size, reached) for size, reached, m in points[data] if m in ("replay", "der")]
        assert all(reached < best(data, "prer", size) for size, reached in images if size >= smallest[data])
        assert best(data, "prer", 1_300_000) > max(reached for _, reached in images)
    near = accuracy(outcomes, "mnist", "prer") - accuracy(outcomes, "mnist", "ranpac-patches-4000")
    assert f"comes as near as {near:.2f} points on MNIST" in text


def test_the_default_reaches_its_targets(outcomes):
    """What was asked, and what was hoped for beyond."""
    for data, asked, beyond in (("mnist", 97.5, 98.2), ("kmnist", 91, 93.5), ("svhn", 77, 80), ("cifar10", 50, 56)):
        result = result_of(outcomes[data, "prer"])
        assert result["final_accuracy"]["mean"] >= beyond > asked
        assert result["memory_samples"] == [0] * 5


def test_the_page_has_what_recentring_is_worth():
    rows, found = table(PAGE, "answer", "digits", *ON), {}
    for name in ("digits_cpu", "grey_h200", "svhn_h200", "cifar10_h200"):
        found |= json.loads((RECORDS / f"recentring_{name}.json").read_text())["accuracies"]
    for answer, row in zip(("head", "likelihood", "recentred"), rows.values(), strict=True):
        assert row == [f"{np.mean(found[data][answer]):.2f}" for data in ("digits", *DATA)]


def test_all_streams_of_many_classes_are_recorded(streams):
    assert set(streams) == {f"{stream}-{method}" for stream, methods in many.METHODS.items() for method in methods}
    for result in streams.values():
        assert result["seeds"] == SEEDS and result["scenario"] == "class"
        assert (result["memory_samples"][-1] == 0) == (result["learner"] in ("prer", "slda", "ranpac"))


def test_the_page_has_letters_and_a_hundred_classes(streams):
    rows, expected = table(PAGE, "data and method", "final accuracy", "kB kept", "samples kept"), {}
    for stream, data in (("letter", "letter"), ("cifar100", "CIFAR100-40k")):
        for method in many.METHODS[stream]:
            result = streams[f"{stream}-{method}"]
            assert len(result["classes"]) == {"letter": 26, "cifar100": 100}[stream]
            expected[f"{data}: {title(stream, method)}"] = [of_stream(result), *kept(result)]
    assert rows == expected
    text, final_of = prose(), {name: result["final_accuracy"]["mean"] for name, result in streams.items()}
    assert (
        final_of["letter-prer"] >= 90
        and max(final_of[f"letter-{m}"] for m in many.METHODS["letter"]) == final_of["letter-prer"]
    )
    rivals = [final_of[f"cifar100-{m}"] for m in many.METHODS["cifar100"] if not m.startswith("prer")]
    assert f"PRER is ahead by {final_of['cifar100-prer'] - max(rivals):.1f} points" in text
    small = streams["cifar100-prer-small"]
    assert f"{streams['cifar100-prer']['memory_bytes'][-1] / 1e6:.1f} MB, where" in text
    assert f"it has {small['final_accuracy']['mean']:.2f} and keeps {small['memory_bytes'][-1] / 1e6:.1f} MB" in text
    assert f"all 30,000 training images take {30_000 * (3072 + 8) / 1e6:.0f} MB" in text


def test_one_class_at_a_time_loses_less_than_allowed(streams, outcomes):
    ours, pairs = streams["lessons-prer"], outcomes["mnist", "prer"]
    assert len(ours["memory_samples"]) == 10 and ours["memory_samples"] == [0] * 10
    assert f"PRER reaches {of_stream(ours)} on MNIST, and in five lessons of two {spread(pairs)}." in prose()
    assert ours["final_accuracy"]["mean"] >= result_of(pairs)["final_accuracy"]["mean"] - 1.5


def test_the_page_has_uneven_classes(streams):
    rows = table(PAGE, "method", "final accuracy", "classes 7 to 9", "class 9", "kB kept", "images kept")
    assert set(rows) == {title("uneven", method) for method in many.METHODS["uneven"]}
    found = {method: streams[f"uneven-{method}"]["class_accuracy"] for method in many.METHODS["uneven"]}
    of_classes = {method: np.array([of[str(n)] for n in range(10)]).mean(1) for method, of in found.items()}
    for method, of_class in of_classes.items():
        result = streams[f"uneven-{method}"]
        figures = [of_stream(result), f"{of_class[7:].mean():.1f}", f"{of_class[9]:.1f}", *kept(result)]
        assert rows[title("uneven", method)] == figures
    text, lost = prose(), {}
    for method in ("prer", "replay-patches"):
        plain, balanced = (streams[f"uneven-{name}"]["final_accuracy"] for name in (method, f"{method}-balanced"))
        lost[method] = plain["mean"] - balanced["mean"]
    assert f"PRER loses {lost['prer']:.1f} points, and Replay {lost['replay-patches']:.1f}" in text
    assert lost["replay-patches"] < streams["uneven-replay-patches"]["final_accuracy"]["std"]
    rare = [f"{of_classes[method][9]:.1f}" for method in ("prer", "slda-patches", "replay-patches")]
    assert "recognises {} %, `slda` over patches {} %, and Replay over patches {} %".format(*rare) in text
    best = max(many.METHODS["uneven"], key=lambda method: streams[f"uneven-{method}"]["final_accuracy"]["mean"])
    assert best == "prer" and f"by a factor of {(many.MOST / many.LEAST) ** (1 / 9):.1f} here" in text


@pytest.mark.parametrize(("file", "row"), [("published_class", "class"), ("published_pixels_cpu", "pixels")])
def test_our_results_in_published_settings_are_on_the_page(file, row):
    entries = json.loads((RECORDS / f"{file}.json").read_text())["entries"]
    text = (ROOT / PAGE).read_text("utf-8")
    for entry in entries:
        assert entry["row"] == row and f"{entry['final_accuracy']['mean']:.2f}" in text
        close = abs(entry["final_accuracy"]["mean"] - entry["published"][0]["figure"]) <= 0.5
        assert close == (entry["method"] != "dgr")


def test_the_time_on_the_page_is_recorded(runs):
    clock = clocks(runs)["class"]
    text = (ROOT / PAGE).read_text("utf-8")
    assert f"{len(clock.folders)} runs" in text and f"{clock.seconds:.0f} s" in text and clock.workers == 16


def test_the_targets_of_correct_baselines_are_met(outcomes):
    """Published results of the same protocol, and the range that correct implementations reach."""
    of = {method: result_of(outcomes["mnist", method])["final_accuracy"]["mean"] for method in tables.METHODS}
    assert abs(of["naive"] - 19.9) <= 0.5 and of["dgr"] >= 89 and of["joint"] >= 98.2
    assert 19.5 <= of["ewc"] <= 25 and 19.5 <= of["si"] <= 25
    least = {"mnist": 95.5, "kmnist": 86, "svhn": 68, "cifar10": 40}
    for data, accuracy in least.items():
        assert result_of(outcomes[data, "prer-flow"])["final_accuracy"]["mean"] >= accuracy
        assert result_of(outcomes[data, "prer-flow"])["memory_samples"] == [0] * 5


def test_the_figure_has_a_line_for_each_sized_memory(outcomes):
    axes = plot(Request(paths=PARTS), outcomes).axes
    assert [axis.get_title() for axis in axes] == list(ON)
    lines = [sum(len(line.get_xdata()) >= 5 for line in axis.get_lines()) for axis in axes]
    assert lines == [5] * 4
