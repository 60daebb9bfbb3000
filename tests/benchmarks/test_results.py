"""The tables of README.md and docs/ say what the records say."""

import json
import re
from itertools import combinations, product

import numpy as np
import pytest
from support.benchmarks import RECORDS, ROOT, script
from support.documents import table, text_of

from prer.data.catalogue import CATALOGUE
from prer.paper import ABLATION, DATA, METHODS, more_methods, significance, table2, variants
from prer.paper.plan import PLAIN
from prer.paper.published import TABLE1
from prer.paper.reproduce import clocks
from prer.paper.table1 import METRICS
from prer.paper.tables import Value
from prer.runs.experiment import Experiment
from prer.runs.significance import LEVEL, compared

RESULTS, BENCHMARKS, RELIABILITY = "docs/results.md", "docs/benchmarks.md", "docs/reliability.md"
ON = ("MNIST", "KMNIST-10k", "SVHN-46k", "CIFAR10")  # as columns; the order of DATA
CHANGED = {  # the words of docs/results.md for variants
    "nothing": "ours",
    "no anchor": "no-anchor",
    "no R": "no-r",
    "neither R nor anchor": "augment-only",
    "no generated samples, anchor only": "anchor-only",
    "no generated samples, no anchor": "neither",
    "generated pixels instead of embeddings (`dgr`, our networks)": "pixels",
    "one Gaussian for each class instead of the flow": "gaussian",
    "only the coupling next to the data sees the class": "condition-first",
    "only the coupling next to the noise sees the class": "condition-last",
    "everything as the paper states": "literal",
    "everything as the paper states, without R": "literal-no-r",
}


def record(name):
    return json.loads((RECORDS / name).read_text("utf-8"))


def spread(metric, digits=2):
    return str(Value(metric["mean"], metric["std"], digits))


def mean(metric):
    return str(Value(metric["mean"]))


@pytest.fixture
def results(recorded):
    """The result of a run of the paper's tables, by table, data set and method."""
    _, outcomes = recorded
    return lambda name, data, method: outcomes[name][data, method].folder.result


def test_the_readme_has_the_means_of_twenty_seeds(results):
    rows = table("README.md", "method", *ON, "BWT, CIFAR10", "images kept, CIFAR10")
    assert {*map(method_of, rows)} >= {*METHODS, "prer-distilled", "lwf-classic", "joint"}
    for title, row in rows.items():
        method = method_of(title)
        found = [results("significance", data, method) for data in DATA]
        kept = found[-1]["memory_samples"][-1]
        assert row == [*(mean(r["accuracy"]) for r in found), mean(found[-1]["bwt"]), f"{kept:,}"]


def test_accuracy_and_bwt_are_those_of_twenty_seeds(results):
    found = re.findall(r"^(Accuracy|BWT):\n\n((?:\|.*\n)+)", text_of(RESULTS).replace("−", "-"), re.MULTILINE)
    assert [name for name, _ in found] == ["Accuracy", "BWT"]
    for name, text in found:
        lines = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in text.splitlines()]
        rows, (columns, _) = {row[0]: row[1:] for row in lines[2:]}, lines[:2]
        paper = [getattr(TABLE1[data]["prer"], name.lower()) for data in DATA]
        assert columns == ["method", *ON] and rows.pop("PRER in the paper") == [
            str(Value(getattr(value, "mean", value))) for value in paper
        ]
        assert {*map(method_of, rows)} == {*METHODS, PLAIN, *more_methods("mnist")}
        for title, row in rows.items():
            found = [results("significance", data, method_of(title)) for data in DATA]
            assert row == [spread(result[name.lower()]) for result in found]


def test_what_the_page_says_of_twenty_seeds_follows_from_the_tests(recorded):
    outcomes, text = recorded[1]["significance"], " ".join(text_of(RESULTS).split())
    tests = {
        (own, data, metric): significance.comparisons(outcomes, data, metric, 0.25, own)
        for own, data, metric in product(("prer", "prer-distilled"), DATA, METRICS)
    }
    others = [method for method in tests["prer", "mnist", "bwt"] if method != "joint"]  # which the page names apart
    for metric, data in product(METRICS, DATA[:2]):
        assert "worse" not in {c.verdict for c in tests["prer", data, metric].values()}
    assert better(tests["prer", "kmnist", "bwt"]) == {"naive", "gem", "lwf-classic"}
    assert better(tests["prer", "kmnist", "accuracy"]) == {"naive", "ewc", "er"}
    assert better(tests["prer", "svhn", "bwt"]) == {"naive", "er", "gem", "replay"}
    assert better(tests["prer", "cifar10", "bwt"]) == {"naive", "er"}
    svhn, cifar = (tests["prer", data, "accuracy"] for data in DATA[2:])
    assert worse(svhn) == {*others, "joint"} - {"naive"} and better(cifar) == {"naive"}
    behind = [-svhn[m].difference for m in others if m != "naive"]
    assert f"by {min(behind):.1f} to {max(behind):.1f} points (joint by {-svhn['joint'].difference:.1f})" in text
    assert worse(cifar) == {"lwf-classic", "lwf", "der", "joint"}
    by = {m: f"{-cifar[m].difference:.1f}" for m in worse(cifar)}
    words = f"by {by['lwf-classic']} points, LWF by {by['lwf']}, DER++ by {by['der']} and joint by {by['joint']}"
    assert f"On CIFAR10 classic LWF is ahead {words}" in text
    bwt = tests["prer", "cifar10", "bwt"]
    assert worse(bwt) == {"lwf-classic", "der", "joint"}
    by = {m: f"{-bwt[m].difference:.1f}" for m in worse(bwt)}
    words = f"by {by['lwf-classic']} points, DER++ by {by['der']} and joint by {by['joint']}"
    assert f"classic LWF forgets less {words}" in text
    gains = [significance.among(outcomes, d, "accuracy", 0.25)["prer-distilled", "prer"] for d in DATA[2:]]
    assert {gain.verdict for gain in gains} == {"better"}
    colour = "PRER + anchor by {:.1f} (SVHN-46k) and {:.1f} points"
    assert colour.format(*(gain.difference for gain in gains)) in text
    less, more = (tests["prer-distilled", data, "bwt"]["lwf-classic"] for data in ("cifar10", "kmnist"))
    assert (less.verdict, more.verdict) == ("worse", "better")
    assert f"forgets less by {-less.difference:.1f} points, on KMNIST-10k more by {more.difference:.1f}" in text
    joint = [f"{-tests['prer-distilled', data, 'accuracy']['joint'].difference:.1f}" for data in DATA]
    assert f"ahead of distilled PRER by {', '.join(joint[:3])} and {joint[3]} points" in text
    for data in DATA:  # by the plain test
        plain = significance.comparisons(outcomes, data, "bwt")
        assert ({*METHODS} - {"prer"} <= better(plain)) == (data == "kmnist")
        assert (plain["lwf"].verdict == "worse") == (data == "svhn")
        assert (plain["der"].verdict == "worse") == (data != "mnist")


def worse(tests):
    return {method for method, c in tests.items() if c.verdict == "worse"}


def better(tests):
    return {method for method, c in tests.items() if c.verdict == "better"}


def test_costs_are_those_of_one_seed(results, recorded):
    names = ("samples kept", "kB kept", "seconds")
    rows = table(RESULTS, "method", *(f"{name}, {data}" for name in names for data in ("MNIST", "CIFAR10")))
    assert {*map(method_of, rows)} == {*METHODS, "PRER in the paper"}
    for title in [title for title in rows if title != "PRER in the paper"]:
        method = method_of(title)
        found = [results("table2", data, method) for data in ABLATION]
        kept = [f"{r['memory_samples'][-1]:,}" for r in found]
        kept += [f"{stored(recorded, data, method) / 1000:,.0f}" for data in ABLATION]
        assert rows[title] == kept + [f"{r['seconds']['total']:.1f}" for r in found]
    sizes = [[stored(recorded, data, method) for method in ("lwf", "prer")] for data in ABLATION]
    said = [f"{lwf / prer:.2f} times ({name})" for (lwf, prer), name in zip(sizes, ("MNIST", "CIFAR10"), strict=True)]
    fits = [prer * 500 // lwf for lwf, prer in sizes]
    text = " ".join(text_of(RESULTS).split())
    assert " and ".join(said) in text and f"stores {fits[0]} and {fits[1]} samples of each task instead of 500" in text
    assert f"takes {results('table2', 'cifar10', 'lwf-classic')['seconds']['total']:.1f} s there" in text


def test_seeds_that_ran_twice_and_points_of_the_search_are_those_of_the_records(recorded):
    request, outcomes = recorded
    tables, text = script("record_tables"), " ".join(text_of(RESULTS).split())
    twice = tables.twice(request, outcomes["table1"], outcomes["significance"]).rows
    moved = [row for row in twice if row[1] == "PRER + anchor"]
    mnist, kmnist, svhn, cifar = (str(row[3]) for row in moved)
    assert f"up to {mnist} (MNIST), {kmnist} (KMNIST-10k), {svhn} (SVHN-46k) and {cifar} points (CIFAR10)" in text
    assert f"the mean of five seeds by up to {max(abs(row[2].mean) for row in moved):.2f} (" in text
    points = {row[0]: row for row in tables.of_searches(request).rows if row[1] == "PRER + anchor"}
    by_hand = [f"{points[data][3]} on {data}" for data in ON if str(points[data][3]) != "0"]
    assert f"{by_hand[1]}, {by_hand[2]} and {by_hand[0]} were first tried by hand" in text
    assert [data for data in ON if points[data][8] == "hand"] == ["CIFAR10"]
    hand, search = (f"{point['accuracy']:.2f}" for point in tables.points()["cifar10-prer"])
    assert f"after ten seeds: {hand}, and {search} for the best point of the search" in text


TITLES = {"prer + anchor": "prer", "prer": PLAIN, "joint, all data": "joint"}


def method_of(title):
    """The method of a row; the settings of PRER in its files have the anchor."""
    return TITLES.get(title, title.replace(", ", "-"))


def stored(recorded, data, method):
    return table2.stored_bytes(recorded[1]["table2"][data, method], CATALOGUE[data].shape)


SEEN = {  # words of docs/results.md for what sees the class, as coupling, prior, and whether the settings are literal
    "every coupling and the prior: ours": ("every", True, False),
    "every coupling": ("every", False, False),
    "the one next to the data and the prior": ("first", True, False),
    "the one next to the data": ("first", False, False),
    "the one next to the noise": ("last", False, False),
    "the one next to the data, literal settings": ("first", False, True),
    "the one next to the noise, literal settings": ("last", False, True),
}


@pytest.fixture(scope="module")
def lines():
    """The results of a record with one line a run, and the settings of its learner, by name."""
    packed = script("paper_records")

    def read(name):
        found = map(json.loads, (RECORDS / f"{name}.jsonl").read_text("utf-8").splitlines())
        return {line["name"]: (packed.result_of(line), line["settings"]["learner"]) for line in found}

    return read


def test_distilled_prer_without_its_memory_reaches_what_its_record_says(lines):
    text = " ".join(text_of(RESULTS).replace("−", "-").split())
    for name, (result, _) in lines("distilled_accuracy").items():
        data = ON[DATA.index(name.partition("-")[0])]
        assert f"{mean(result['accuracy'])} and {mean(result['bwt'])} on {data}" in text
        assert result["seeds"] == [0, 1, 2, 3, 4]


def test_how_far_distilled_prer_gets_is_what_the_records_say(lines, results):
    columns = ("aim", "34 points", "more points")
    rows = table(RESULTS, "distilled, five seeds", *(f"{c}, {m}" for c in columns for m in ("Accuracy", "BWT")))
    aimed, distilled = lines("distilled_aimed"), script("distilled_accuracy")
    for data, title in zip(DATA, ON, strict=True):
        *aim, common_accuracy, common_bwt, accuracy, bwt = rows[title]
        assert tuple(float(word.replace("−", "-")) for word in aim) == distilled.ASKED[data]
        common = results("table1", data, "prer-distilled")
        assert [common_accuracy, common_bwt] == [spread(common["accuracy"]), spread(common["bwt"])]
        if data == "svhn":
            assert accuracy == bwt == ""
            continue
        more, learner = aimed[f"{data}-prer-distilled-aimed"]
        assert [accuracy, bwt] == [spread(more["accuracy"]), spread(more["bwt"])] and more["seeds"] == [0, 1, 2, 3, 4]
        points = record(f"search_paper_aimed_{data}.json")["searches"][f"{data}-prer-distilled"]
        settings = distilled.chosen_of(points, *distilled.ASKED[data])["settings"]
        settings = {key.partition(".")[2]: value for key, value in settings.items() if key != "learner.optimiser"}
        assert all(learner[key] == pytest.approx(value, rel=0.01) for key, value in settings.items())
    text, at = " ".join(text_of(RESULTS).replace("−", "-").split()), {"mnist": 3, "kmnist": 2}
    cifar, first = (aimed[f"cifar10-prer-distilled-aimed{end}"][0] for end in ("", "-first"))
    assert f"BWT lacks {-cifar['bwt']['mean']:.2f} points" in text
    assert f"validation data has {mean(first['accuracy'])} and {mean(first['bwt'])}." in text
    for data, digits in at.items():
        lacks = distilled.ASKED[data][0] - aimed[f"{data}-prer-distilled-aimed"][0]["accuracy"]["mean"]
        assert f"Accuracy lacks {lacks:.{digits}f} points" in text
    assert f"BWT {-0.03 - aimed['mnist-prer-distilled-aimed'][0]['bwt']['mean']:.3f}." in text
    assert f"With twenty, BWT is {mean(results('significance', 'svhn', 'prer-distilled')['bwt'])}." in text
    (hand, _), whole = lines("distilled_by_hand")["kmnist-prer-distilled"], lines("distilled_whole")
    assert f"has {mean(hand['accuracy'])} and {mean(hand['bwt'])} (" in text
    for data, title in (("mnist", "MNIST"), ("kmnist", "KMNIST-10k")):
        result, _ = whole[f"{data}-prer-distilled"]
        assert f"{mean(result['accuracy'])} and {mean(result['bwt'])} on {title}" in text
    tries = map(json.loads, (RECORDS / "distilled_tries.jsonl").read_text("utf-8").splitlines())
    tries = [script("paper_records").result_of(line) for line in tries]
    points = record("search_paper_aimed_cifar10.json")["searches"]["cifar10-prer-distilled"]
    assert len(points) + len(tries) == 15 and max(p["bwt"] for p in points) < 0 > max(t["bwt"]["mean"] for t in tries)
    (best, *_) = [p for p in record("search_paper_rows.json")["searches"]["cifar10-prer-distilled"] if p["bwt"] > 0]
    assert f"has {best['accuracy']:.2f} and {best['bwt']:.2f} on validation data with two seeds" in text


DOMAINS = {  # the words of docs/results.md for rows of benchmarks/domains.py
    "prer, distilled, also on generated samples": "prer-distilled-generated",
    "prer, distilled": "prer-distilled",
    "prer, R": "prer-r",
    "prer, anchor": "prer-anchor",
    "prer, R and anchor": "prer-both",
    "prer, neither": "prer-neither",
    "lwf, classic": "lwf-classic",
    "lwf, 500 samples of each domain": "lwf",
    "joint, all data": "joint",
    "naive": "naive",
}


def test_the_four_domains_are_those_of_the_record(lines):
    found, domains = lines("domains"), script("domains")
    rows = table(RESULTS, "four domains", "weight", "Accuracy", "BWT", "final, MNIST", "final, CIFAR10", "kB kept")
    assert set(rows) == set(DOMAINS) and set(DOMAINS.values()) == set(domains.METHODS)
    final = {}
    for title, (weight, *row) in rows.items():
        name = "-".join(["domains", DOMAINS[title], *([weight] if weight else [])])
        final[DOMAINS[title]] = result = found[name][0]
        last = np.array(result["matrix"], float).mean(0)[-1]
        expected = [spread(result["accuracy"]), spread(result["bwt"]), f"{last[0]:.1f}", f"{last[3]:.1f}"]
        assert row == [*expected, f"{result['memory_bytes'][-1] / 1000:,.0f}"] and len(result["seeds"]) == 5
    searched = {name: {"seeds": of["seeds"], "result": of} for name, (of, _) in found.items() if "search" in name}
    points = {
        (m, v): Experiment.parse({"name": f"domains-{m}-{v:g}-search"}) for m in domains.METHODS for v in domains.VALUES
    }
    points = {key: point for key, point in points.items() if point.name in searched}
    chosen = {DOMAINS[title]: row[0] for title, row in rows.items() if row[0]}
    assert {m: f"{v:g}" for m, v in domains.best(points, searched).items()} == chosen
    text = " ".join(text_of(RESULTS).replace("−", "-").split())
    pairs = [("prer-distilled-generated", m) for m in ("prer-distilled", "lwf", "lwf-classic")]
    pairs += [("prer-r", "prer-anchor"), ("prer-both", "prer-anchor"), ("prer-r", "prer-neither")]
    tests = {}
    for metric in METRICS:
        values = {pair: [final[method][metric]["values"] for method in pair] for pair in pairs}
        tests[metric] = compared(values, 0.25)
        assert all(tests[metric][pair].adjusted < LEVEL for pair in pairs[:3])
    gains = [f"{tests['accuracy'][pair].difference:.1f}" for pair in pairs[:2]]
    assert f"its Accuracy is {gains[0]} points higher (both" in text and f"LWF is {gains[1]} points behind" in text
    without, with_ = (final[m] for m in ("prer-distilled", "prer-distilled-generated"))
    assert f"forgets {-with_['bwt']['mean']:.1f} points instead of {-without['bwt']['mean']:.1f}" in text
    rate = lines("domains_rate")
    (lwf, settings), (classic, _) = (rate[f"domains-{m}-given"] for m in ("lwf", "lwf-classic"))
    assert settings["lr"] == found["domains-prer-distilled-1"][1]["lr"] and settings["weight"] == 1
    said = [f"{spread(of['accuracy'])} and {spread(of['bwt'])}" for of in (lwf, classic)]
    values = {m: {"lwf": (with_[m]["values"], lwf[m]["values"])} for m in METRICS}
    same, more = (compared(values[m], 0.25)["lwf"] for m in ("accuracy", "bwt"))
    assert same.verdict == "not decided" and abs(same.difference) < 0.1 and more.verdict == "better"
    assert f"it has {said[0]}, which is {more.difference:.1f} points more forgetting" in text
    assert f"classic LWF {said[1]} (" in text
    by = [searched[f"domains-prer-distilled-{v}-search"]["result"] for v in (1, 4, 16)]
    by = [f"{mean(of['accuracy'])} and {mean(of['bwt'])} with" for of in by]
    assert f"it has {by[0]} weight 1, {by[1]} 4, and {by[2]} 16" in text
    rates = [found[f"domains-{m}"][1]["lr"] for m in ("prer-distilled-1", "lwf-1", "lwf-classic-1", "joint")]
    assert [f"{rate:.5f}" for rate in rates] == ["0.00076", "0.00033", "0.00015", "0.00015"]
    assert (
        "{} for distilled PRER with ten epochs, {} for LWF and {} for classic".format(*(f"{r:.5f}" for r in rates))
        in text
    )
    front = f"has {mean(with_['accuracy'])} % and a BWT of {mean(with_['bwt'])} with generated samples, and "
    front += f"{mean(without['accuracy'])} % and {mean(without['bwt'])} without"
    assert front in " ".join(text_of("README.md").replace("−", "-").split())


def test_methods_in_the_bytes_of_prer_are_those_of_the_record(lines, recorded):
    found, names = lines("equal_bytes"), ("samples", "Accuracy", "BWT")
    rows = table(RESULTS, "equal bytes", *(f"{name}, {data}" for data in ("MNIST", "CIFAR10") for name in names))
    assert {*rows} == {*script("equal_bytes").METHODS}
    for (method, row), (i, data) in product(rows.items(), enumerate(ABLATION)):
        result, learner = found[f"{data}-{method}-equal-bytes"]
        expected = [f"{result['memory_samples'][-1]:,}", spread(result["accuracy"]), spread(result["bwt"])]
        assert row[3 * i : 3 * i + 3] == expected and len(result["seeds"]) == 5
        assert result["memory_bytes"][-1] <= stored(recorded, data, "prer")
        assert learner["size"] * (1 if method in ("der", "replay") else 5) >= result["memory_samples"][-1]
    for data in ABLATION:
        rows = [recorded[1]["table1"][data, m].folder.result for m in ("prer", PLAIN, "prer-distilled", "prer-literal")]
        reached = {m: found[f"{data}-{m}-equal-bytes"][0] for m in script("equal_bytes").METHODS}
        der = reached.pop("der")
        assert all(der["accuracy"]["mean"] >= row["accuracy"]["mean"] for row in rows)
        assert data == "mnist" or all(der["bwt"]["mean"] > row["bwt"]["mean"] for row in rows)
        assert all(of["bwt"]["mean"] < rows[0]["bwt"]["mean"] for of in reached.values())


def test_both_readings_of_the_first_coupling_are_those_of_the_record():
    packed, found = script("paper_records"), {}
    for line in map(json.loads, (RECORDS / "first_coupling_digits.jsonl").read_text("utf-8").splitlines()):
        density, result = line["settings"]["learner"]["density"], packed.result_of(line)
        of_class = share_of(line["agreement"])
        key = density["condition"], density["class_prior"], density["lr"] == 1e-4
        found[key] = [spread(result["bwt"]), spread(result["accuracy"]), of_class]
    rows = table(RESULTS, "what sees the class, digits", "BWT", "Accuracy", "samples of their class, %")
    assert {title: found[key] for title, key in SEEN.items()} == rows


def test_classes_with_two_modes_are_those_of_the_record():
    packed, found = script("paper_records"), {}
    for line in map(json.loads, (RECORDS / "two_modes.jsonl").read_text("utf-8").splitlines()):
        found[line["name"].removeprefix("two-modes-")] = packed.result_of(line), line["agreement"]
    columns = ("floats kept, with the decoder", "Accuracy, task given", "BWT, task given", "samples of their class, %")
    columns += ("Final accuracy, nobody tells", "samples of their class, nobody tells, %")
    rows = table(RESULTS, "two modes", *columns)
    names = {"flow": "flow", "mixture, five components a class": "mixture"}
    names |= {"small flow, two blocks a level": "flow-small", "one Gaussian a class": "gaussian"}
    assert set(rows) == set(names)
    for title, row in rows.items():
        (given, seen), (told, seen_then) = (found[f"{scenario}-{names[title]}"] for scenario in ("task", "class"))
        expected = [f"{given['memory_floats'][-1]:,}", spread(given["accuracy"]), spread(given["bwt"]), share_of(seen)]
        assert row == [*expected, spread(told["final_accuracy"]), share_of(seen_then)]
    pairs = list(combinations(names.values(), 2))
    tests = {}
    for metric, scenario in (("bwt", "task"), ("accuracy", "task"), ("final_accuracy", "class")):
        values = {(a, b): [found[f"{scenario}-{m}"][0][metric]["values"] for m in (a, b)] for a, b in pairs}
        tests[metric] = {pair: c for pair, c in compared(values, 0.25).items() if c.adjusted < LEVEL}
    assert not tests["bwt"] and set(tests["final_accuracy"]) == set(pairs)
    ((pair, c),) = tests["accuracy"].items()
    assert pair == ("flow", "mixture") and f"{c.difference:.2f}" == "-0.16"
    assert f"{tests['final_accuracy'][pair].difference:.1f}" == "-9.5"


def share_of(agreement):
    return f"{100 * np.mean([share for _, share in agreement]):.1f}"


def test_table_1_is_that_of_five_seeds(results, runs):
    rows = table(RESULTS, "five seeds", *ON)
    for words, method in {"PRER + anchor": "prer", "PRER": "prer-no-anchor", "PRER, literal": "prer-literal"}.items():
        for metric in ("Accuracy", "BWT"):
            found = [results("table1", data, method) for data in DATA]
            assert rows[f"{words}, {metric}"] == [mean(result[metric.lower()]) if result else "" for result in found]
    assert f"took {clocks(runs)['table1'].seconds:.0f} s on one H200" in text_of(RESULTS)
    log = (RECORDS / "paper_runs_h200.txt").read_text("utf-8")
    (more,) = re.findall(r'\{"table1": \{"runs": (\d+), "seconds": (\d+)\}\}', log)
    assert "The further rows and new settings, {} runs, took {} s".format(*more) in " ".join(text_of(RESULTS).split())


def test_the_ablation_is_that_of_the_recorded_runs(recorded):
    columns = ("BWT, MNIST", "recognised, MNIST", "BWT, CIFAR10", "recognised, CIFAR10")
    rows = table(RESULTS, "changed", *columns, "BWT, CIFAR10, twenty seeds", "BWT is worse")
    assert set(rows) == set(CHANGED)
    outcomes = recorded[1]["claims"]
    tests = {(d, by): variants.comparisons(outcomes, d, "bwt", by) for d in ABLATION for by in (0.25, 0.0)}
    for words, variant in CHANGED.items():
        expected, worse = [], []
        again = outcomes.get(("cifar10", f"{variant}-20"))
        for data, title in zip(ABLATION, ("MNIST", "CIFAR10"), strict=True):
            folder = outcomes[data, variant].folder
            agreement = variants.agreement_of(folder)
            expected += [mean(folder.result["bwt"]), f"{np.mean(agreement):.1f} %" if agreement else ""]
            row = f"{variant}-20" if again and data == "cifar10" else variant
            verdicts = [tests[data, by][row].verdict for by in (0.25, 0.0)] if variant != "ours" else []
            worse += [title] if "worse" in verdicts[:1] else [f"{title}, plain test"] if "worse" in verdicts else []
        said = {("MNIST", "CIFAR10"): "both"}.get(tuple(worse), "; ".join(worse))
        assert rows[words] == [*expected, mean(again.folder.result["bwt"]) if again else "", said]


def test_what_the_page_says_of_r_and_anchor_are_differences_of_twenty_seeds(recorded):
    corrected, plain = (variants.comparisons(recorded[1]["claims"], "cifar10", "bwt", by) for by in (0.25, 0.0))
    anchor, r, alone = (f"{-corrected[f'{v}-20'].difference:.2f}" for v in ("no-anchor", "no-r", "anchor-only"))
    text = " ".join(text_of(RESULTS).split())
    assert (
        f"{anchor} points worse without the anchor. Without R it is {r} points worse, and with the anchor alone {alone}"
        in text
    )
    verdicts = [
        [tests[f"{v}-20"].verdict for v in ("no-anchor", "no-r", "anchor-only")] for tests in (corrected, plain)
    ]
    assert verdicts == [["worse", "not decided", "not decided"], ["worse"] * 3]


def test_the_digits_are_those_of_the_record():
    columns = ("Accuracy", "BWT", "samples kept", "floats kept", "training")
    rows = {name.split(",")[0]: row for name, row in table(RESULTS, "learner", *columns).items()}
    found = {
        r["result"]["learner"]: r["result"] for r in record("digits_cpu.json")["runs"] if r["result"]["seeds"][0] == 0
    }
    assert set(rows) == set(found)
    for name, result in found.items():
        kept = [f"{result[key][-1]:,}" for key in ("memory_samples", "memory_floats")]
        assert rows[name] == [spread(result["accuracy"]), spread(result["bwt"]), *kept, seconds(result)]
    boxes, matrix = text_of("README.md"), text_of("docs/experiments.md")
    for row in np.array(found["prer"]["matrix"], float).mean(0):
        assert "│ ".join(f"{value:6.2f} " for value in row if not np.isnan(value)) in matrix
    for metric in ("accuracy", "bwt"):
        assert f" {spread(found['prer'][metric])} │ {spread(found['naive'][metric]):>13} │" in boxes


def test_the_digits_without_the_task_are_the_golden_ones():
    (golden,) = json.loads((ROOT / "tests/learners/golden.json").read_text("utf-8")).values()
    found = {name: of["final_accuracy"] for name, of in golden["digits, class"].items()}
    boxes, page = text_of("README.md"), text_of("docs/class-incremental.md")
    line = rf"Final accuracy, all 10 classes │ {found['prer']:.2f} ± [\d.]+ │ +{found['naive']:.2f} ± "
    assert re.search(line, boxes)
    for name in ("ranpac", "slda", "prer"):
        assert f"{found[name]:.2f}" in page


def seconds(result):
    return f"{result['seconds']['total']:.0f} s"


def test_methods_beside_avalanche_are_those_of_the_record():
    rows = table(
        BENCHMARKS, "method", *(f"{m}, {whose}" for m in ("Accuracy", "BWT") for whose in ("Avalanche", "ours"))
    )
    found = {}
    for row in record("avalanche_digits.json")["rows"]:
        found.setdefault((row["method"], row["strength"]), {})[row["whose"]] = row
    expected = [
        [spread(of[whose][m], 1) for m in ("accuracy", "bwt") for whose in ("theirs", "ours")] for of in found.values()
    ]
    assert len(rows) == 13 and [row for row in rows.values() if row not in expected] == []  # it leaves two rows out


def test_the_task_scenario_is_unchanged_by_the_new_default_without_the_task():
    found, again = (record(f"unchanged_patches{again}_cpu.json") for again in ("", "_again"))
    totals, cases = found["totals"], found["cases"]
    text = " ".join(text_of(BENCHMARKS).split("new default without the task (4041f7f and 11d22fb)")[1].split())
    assert [found["commits"][which][:7] for which in ("old", "new")] == ["4041f7f", "11d22fb"]
    assert f"{totals['equal']} of {totals['cases']} cases are equal" in text
    different = {name: case for name, case in cases.items() if not case["equal"]}
    files = {name for name in different if name.startswith("file class-")}
    joint = {name for name in different if name.startswith("learner joint")}
    (late,) = different.keys() - files - joint
    assert f"The other {len(different)}: - {len(files)} are files" in text and f"- {len(joint)} are `joint`" in text
    assert all(not different[name]["digests"] for name in files)
    assert all(different[name]["different"] == ["model"] for name in joint)
    assert list(different[late]["failed"]) == ["old resumed"] and again["cases"][late]["equal"]
    run = [set(case["digests"].values()) for name, case in cases.items() if name not in files]
    assert all(len(digests) == 1 for digests in run) and f"the {len(run)} experiments has the same digest" in text


def test_own_data_is_that_of_the_record():
    columns = ("samples in a task", "seeds", "nothing set", "best `like`", "its Accuracy", "difference")
    expected, by_data = [], {}
    for entry in record("own_data_h200.json")["entries"]:
        if not entry["error"]:
            by_data.setdefault(entry["data"], {})[entry["setting"]] = np.array(entry["accuracy"])
    for of_data in by_data.values():
        ours = of_data.pop("nothing set")
        name = max(of_data, key=lambda setting: of_data[setting].mean())
        gain = ours - of_data[name]
        error = gain.std(ddof=1) / len(gain) ** 0.5
        means = [f"{ours.mean():.2f}", name.removeprefix("like "), f"{of_data[name].mean():.2f}"]
        expected.append([str(len(gain)), *means, f"{gain.mean():+.2f} ± {error:.2f}"])
    assert sorted(row[1:] for row in table(BENCHMARKS, "data", *columns).values()) == sorted(expected)


def test_costs_of_many_tasks_are_those_of_the_record():
    columns = ("step, task 2", "step, task 50", "ratio", "floats kept, task 1", "floats kept, task 50")
    expected = []
    for found in record("cost_cpu.json")["learners"].values():
        steps, floats = found["milliseconds per step"], found["floats kept"]
        expected.append([f"{steps['2']:.2f}", f"{steps['50']:.2f}", f"{found['grows by']:.2f}"])
        expected[-1] += [f"{floats['1']:,}", f"{floats['50']:,}"]
    assert sorted(table(BENCHMARKS, "learner", *columns).values()) == sorted(expected)


def test_damaged_folders_are_those_of_the_record():
    columns = ("folders", "result", "error message", "failed run", "wrong result", "crash, hang, traceback")
    found = record("fuzz_runs.json")
    rows = table(RELIABILITY, "file", *columns)
    assert set(rows) == {*found["kinds"], "all"}
    for name, row in rows.items():
        kind = found["total"] if name == "all" else found["kinds"][name]
        broken = sum(kind[key] for key in ("crashes", "hangs", "tracebacks"))
        counts = [*(kind[key] for key in ("folders", "results", "refused", "failed runs", "wrong results")), broken]
        assert row == [f"{count:,}" for count in counts]


def test_damaged_model_folders_are_those_of_the_record():
    outcomes = ("loaded and taught", "loaded, not taught", "error message")
    found = record("fuzz_models.json")
    rows = table(RELIABILITY, "model folder", "folders", *outcomes, "change outside, crash, hang, traceback")
    assert set(rows) == {*found["kinds"], "all"} and found["faults"] == []
    assert f"tries {found['total']['folders']:,} distinct folders of nine models" in text_of(RELIABILITY)
    for name, row in rows.items():
        kind = found["total"] if name == "all" else found["kinds"][name]
        broken = sum(kind[key] for key in ("changes outside", "crashes", "hangs", "tracebacks"))
        counts = [*(kind[key] for key in ("folders", "loaded and taught", "loaded", "refused")), broken]
        assert row == [f"{count:,}" for count in counts]


def test_killed_lessons_are_those_of_the_record():
    found = record("kill_models.json")
    rows = table(RELIABILITY, "killed job", "tries", "kills", "old model left", "new model left", "right in the end")
    assert set(rows) == {*found["jobs"], "all"} and found["faults"] == []
    for name, row in rows.items():
        job = found["total"] if name == "all" else found["jobs"][name]
        assert row == [f"{job[key]:,}" for key in ("tries", "kills", "had the old model", "had the new model", "right")]


def test_the_page_says_how_wide_the_samples_of_figure_2_are():
    record = (ROOT / "benchmarks/records/figure2_cpu.txt").read_text("utf-8")
    page = " ".join((ROOT / "docs/results.md").read_text("utf-8").split())
    classes = [[float(word) for word in line.split()] for line in re.findall(r"classes 0 to 9: (.*)", record)]
    at_one, at_less = ((min(of), max(of), sum(of) / len(of)) for of in classes)
    assert "have {:.2f} to {:.2f} times the standard deviation of real ones (mean {:.2f})".format(*at_one) in page
    assert "to {:.2f} to {:.2f} times (mean {:.2f}; one seed".format(*at_less) in page
