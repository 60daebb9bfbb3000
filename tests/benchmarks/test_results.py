"""The tables of README.md and docs/ say what the records say."""

import json
import re
from itertools import combinations

import numpy as np
import pytest
from support.benchmarks import RECORDS, ROOT, script
from support.documents import table, text_of

from prer.data.catalogue import CATALOGUE
from prer.paper import ABLATION, DATA, LITERAL, METHODS, table2, variants
from prer.paper.published import TABLE1
from prer.paper.reproduce import clocks
from prer.paper.tables import Value
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
    "only the first coupling sees the class, as in the paper": "condition-first",
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
    assert {*map(method_of, rows)} == set(METHODS)
    for title, row in rows.items():
        method = method_of(title)
        found = [results("significance", data, method) for data in DATA]
        kept = results("table2", "cifar10", method)["memory_samples"][-1]
        assert row == [*(mean(r["accuracy"]) for r in found), mean(found[-1]["bwt"]), f"{kept:,}"]


def test_accuracy_and_bwt_are_those_of_twenty_seeds(results):
    found = re.findall(r"^(Accuracy|BWT):\n\n((?:\|.*\n)+)", text_of(RESULTS).replace("−", "-"), re.MULTILINE)
    assert [name for name, _ in found] == ["Accuracy", "BWT"]
    for name, text in found:
        lines = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in text.splitlines()]
        rows, (columns, _) = {row[0]: row[1:] for row in lines[2:]}, lines[:2]
        assert columns == ["method", *ON] and {*map(method_of, rows)} == {*METHODS, "PRER in the paper"}
        paper = [getattr(TABLE1[data]["prer"], name.lower()) for data in DATA]
        assert rows.pop("PRER in the paper") == [str(Value(getattr(value, "mean", value))) for value in paper]
        for title, row in rows.items():
            found = [results("significance", data, method_of(title)) for data in DATA]
            assert row == [spread(result[name.lower()]) for result in found]


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
    assert " and ".join(said) in text and f"store {fits[0]} and {fits[1]} samples of each task instead of 500" in text


def test_seeds_that_ran_twice_and_points_of_the_search_are_those_of_the_records(recorded):
    request, outcomes = recorded
    tables, text = script("record_tables"), " ".join(text_of(RESULTS).split())
    twice = tables.twice(request, outcomes["table1"], outcomes["significance"]).rows
    moved = [row for row in twice if row[1] == "PRER + anchor"]
    mnist, kmnist, svhn, cifar = (str(row[3]) for row in moved)
    assert f"up to {mnist} (MNIST), {kmnist} (KMNIST-10k), {svhn} (SVHN-46k) and {cifar} points (CIFAR10)" in text
    assert f"the mean of five seeds by up to {max(abs(row[2].mean) for row in moved):.2f} (" in text
    points = [row for row in tables.of_searches(request).rows if row[1] == "PRER + anchor"]
    could, by_hand = ({row[0]: str(row[i]) for row in points} for i in (5, 3))
    said = ", ".join(f"{by_hand[data]} on {data}" for data in ("SVHN-46k", "CIFAR10"))
    assert f"{said} and {by_hand['KMNIST-10k']} on KMNIST-10k were first tried by hand" in text
    words = f"{could['SVHN-46k']}, {could['CIFAR10']} and {could['KMNIST-10k']} of PRER's points could win, and"
    assert f"{words} {could['MNIST']} on MNIST" in text
    winner, _, best = points[-1][7:]
    assert str(points[-1][6]) == "4" and f"(up to {best}) than the winner ({winner})" in text


def method_of(title):
    """The method of a row; the settings of PRER in its files have the anchor."""
    assert title != "prer"
    return title.removesuffix(" + anchor")


def stored(recorded, data, method):
    return table2.stored_bytes(recorded[1]["table2"][data, method], CATALOGUE[data].shape)


NO_MEMORY = {"joint, all data": "joint", "lwf, classic": "lwf-classic", "prer, distilled": "prer-distilled"}
SEEN = {  # words of docs/results.md for what sees the class, as coupling, prior, and whether the settings are literal
    "every coupling and the prior: ours": ("every", True, False),
    "every coupling": ("every", False, False),
    "the one next to the data and the prior": ("first", True, False),
    "the one next to the data": ("first", False, False),
    "the one next to the noise": ("last", False, False),
    "the one next to the data, literal settings": ("first", False, True),
    "the one next to the noise, literal settings": ("last", False, True),
}


def test_the_winners_of_the_searches_are_those_of_the_records():
    won, rows = script("record_tables").won, table(RESULTS, "validation data", *ON)
    assert len(rows) == 2 * 8
    for title, row in rows.items():
        words, _, metric = title.rpartition(", ")
        points = won(NO_MEMORY.get(words, method_of(words) if words != "prer" else ""))
        assert row == [f"{points[data][metric.lower()]:z.2f}" for data in DATA]
    ahead = [won("lwf-classic")[data]["accuracy"] - won("prer")[data]["accuracy"] for data in DATA]
    text = " ".join(text_of(RESULTS).split())
    assert f"than PRER + anchor by {ahead[2]:.1f} and {ahead[3]:.1f} points, and forgets about as little" in text
    assert max(map(abs, ahead[:2])) < 0.4


def test_distilled_prer_reaches_what_its_record_says(results):
    packed = script("paper_records")
    lines = map(json.loads, (RECORDS / "distilled_accuracy.jsonl").read_text("utf-8").splitlines())
    found = {line["name"]: (line["seeds"], packed.result_of(line)) for line in lines}
    rows = table(RESULTS, "distilled, five seeds", *ON)
    for metric in ("Accuracy", "BWT"):
        assert rows[metric] == [spread(found[f"{data}-prer-distilled"][1][metric.lower()]) for data in DATA]
    assert all(seeds == [0, 1, 2, 3, 4] for seeds, _ in found.values())
    text = " ".join(text_of(RESULTS).replace("−", "-").split())
    for name, words in (("whole", ("on MNIST", "on KMNIST-10k")), ("by_hand", ("([record]",))):
        lines = map(json.loads, (RECORDS / f"distilled_{name}.jsonl").read_text("utf-8").splitlines())
        for of_one, place in zip(
            sorted(map(packed.result_of, lines), key=lambda r: -r["accuracy"]["mean"]), words, strict=True
        ):
            assert f"{mean(of_one['accuracy'])} and {mean(of_one['bwt'])} {place}" in text
    wider = record("search_paper_rows_wider.json")["searches"]["kmnist-prer-distilled"]
    assert f"had {max(p['accuracy'] for p in wider):.2f} at most" in " ".join(text_of(RESULTS).split())
    lwf, text = [mean(results("table1", data, "lwf")["accuracy"]) for data in DATA], " ".join(text_of(RESULTS).split())
    assert f"LWF with stored samples has {', '.join(lwf[:3])} and {lwf[3]} over the same five seeds" in text
    won = script("record_tables").won
    behind = [f"{won('joint')[d]['accuracy'] - won('prer-distilled')[d]['accuracy']:.1f}" for d in DATA]
    assert f"distilled PRER is {', '.join(behind[:3])} and {behind[3]} points behind joint training" in text


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
            on = {"prer": DATA, "prer-literal": LITERAL}.get(method, ABLATION)
            found = [mean(results("table1", data, method)[metric.lower()]) if data in on else "" for data in DATA]
            assert rows[f"{words}, {metric}"] == found
    assert f"took {clocks(runs)['table1'].seconds:.0f} s on one H200" in text_of(RESULTS)


def test_the_ablation_is_that_of_the_recorded_runs(recorded):
    columns = ("BWT, MNIST", "recognised, MNIST", "BWT, CIFAR10", "recognised, CIFAR10")
    rows = table(RESULTS, "changed", *columns, "BWT is worse")
    assert set(rows) == set(CHANGED)
    for words, variant in CHANGED.items():
        expected = []
        for data in ABLATION:
            folder = recorded[1]["claims"][data, variant].folder
            seen = "" if variant == "pixels" else f"{np.mean(variants.agreement_of(folder)):.1f} %"
            expected += [mean(folder.result["bwt"]), seen]
        assert rows[words][:-1] == expected


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
