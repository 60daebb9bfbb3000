"""The paper's experiments are what the search found, and all methods were given as many points."""

import json
import tomllib
from collections import Counter

from support.benchmarks import RECORDS, script

from prer.paper import DATA, METHODS, file_of

search_paper = script("search_paper")
SEARCHES = [RECORDS / f"search_paper{name}.json" for name in ("", "_more", "_wider")]
ROWS = RECORDS / "search_paper_rows.json"
LATER = [RECORDS / f"search_paper_{name}.json" for name in ("plain", "hand", "finalists")]
FOUND = ("joint", "replay", "der", "lwf-classic", "prer-distilled")


def test_the_files_are_what_the_records_say(monkeypatch, tmp_path):
    monkeypatch.setattr(search_paper, "file_of", lambda data, method: tmp_path / f"{data}-{method}.toml")
    search_paper.write_files([*SEARCHES, ROWS, *LATER])
    every = [(d, m) for d in DATA for m in (*METHODS, *FOUND, "prer-no-anchor")]
    every += [*((d, "prer-literal") for d in DATA), ("cifar10", "prer-unlabelled")]
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(f"{data}-{method}" for data, method in every)
    for data, method in every:
        assert (tmp_path / f"{data}-{method}.toml").read_text() == file_of(data, method).read_text()


def test_a_row_without_a_record_has_no_file(monkeypatch, tmp_path):
    monkeypatch.setattr(search_paper, "file_of", lambda data, method: tmp_path / f"{data}-{method}.toml")
    search_paper.write_files(SEARCHES)
    every = sorted(f"{data}-{method}" for data in DATA for method in METHODS)
    assert sorted(path.stem for path in tmp_path.iterdir()) == every


def test_every_method_was_given_the_same_number_of_points():
    tries = json.loads((RECORDS / "tries_paper.json").read_text())["tries"]
    names = ["cifar10" if name.startswith("cifar") else name.split("-")[0] for name in tries]
    points = Counter(f"{data}-prer" for data in names)
    for record in SEARCHES:
        points.update({name: len(found) for name, found in json.loads(record.read_text())["searches"].items()})
    assert points == {f"{data}-{method}": 34 for data in DATA for method in METHODS}
    rows = Counter({name: len(found) for name, found in json.loads(ROWS.read_text())["searches"].items()})
    assert rows == {f"{data}-{method}": 34 for data in DATA for method in FOUND}
    planned = {data: search_paper.budget_of(data, "prer", "first") + search_paper.BY_HAND[data] for data in DATA}
    assert {d: n + search_paper.budget_of(d, "prer", "wider") for d, n in planned.items()} == dict.fromkeys(DATA, 34)


def test_the_points_of_prer_without_the_anchor_are_as_many_with_those_before():
    found = search_paper.entries_of([*SEARCHES, ROWS, *LATER])
    tries = json.loads((RECORDS / "tries_paper.json").read_text())["tries"]
    for data in DATA:
        anchored = [name for name, point in tries.items() if any("anchor" in word for word in point["settings"])]
        by_hand = [name for name in tries if name.startswith(data.removesuffix("10")) and name not in anchored]
        random = [p for p in found[f"{data}-prer-no-anchor"] if "learner.epochs_autoencoder" not in p["settings"]]
        assert len(by_hand) + len(random) == (33 if data == "cifar10" else 34)  # a miscount left one point out


def test_a_point_by_hand_can_win():
    won = tomllib.loads(file_of("cifar10", "prer").read_text())["learner"]
    assert (won["labels"], won["anchor"], won["weight"]) == ("head", 1.0, 1.0)  # better over ten seeds
    assert "tried by hand" in file_of("cifar10", "prer").read_text()
    assert "tried by hand" not in file_of("cifar10", "prer-unlabelled").read_text()  # the search's, which ran again
    plain = tomllib.loads(file_of("svhn", "prer-no-anchor").read_text())["learner"]
    assert (plain["anchor"], plain["labels"], plain["weight"], plain["epochs_autoencoder"]) == (0.0, "none", 3.0, 30)
    literal = file_of("mnist", "prer-literal").read_text()
    assert tomllib.loads(literal)["learner"]["weight"] == 0.387 and "for ours" not in literal


def test_the_points_of_distilled_prer_alone_are_those_of_the_script():
    for data, (count, seeds) in search_paper.AIMED.items():
        (method,) = json.loads((RECORDS / f"search_paper_aimed_{data}.json").read_text())["searches"].values()
        (sweep,) = search_paper.sweeps(data, "prer-distilled", data, "aimed")
        points = [search_paper.settings_of(point, ("learner.optimiser", *sweep.keys)) for point in sweep.points()]
        assert {len(point.seeds) for point in sweep.points()} == {seeds} and len(method) == len(points) == count
        assert all(point["settings"] in points for point in method)
