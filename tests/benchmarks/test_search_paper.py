"""The paper's experiments are what the search found, and all methods were given as many points."""

import json
from collections import Counter

from support.benchmarks import RECORDS, script

from prer.paper import DATA, LITERAL, METHODS, file_of

search_paper = script("search_paper")
SEARCHES = [RECORDS / name for name in ("search_paper.json", "search_paper_more.json", "search_paper_wider.json")]


def test_the_files_are_what_the_records_say(monkeypatch, tmp_path):
    monkeypatch.setattr(search_paper, "file_of", lambda data, method: tmp_path / f"{data}-{method}.toml")
    search_paper.write_files(SEARCHES)
    for data, method in [*((d, m) for d in DATA for m in METHODS), *((d, "prer-literal") for d in LITERAL)]:
        assert (tmp_path / f"{data}-{method}.toml").read_text() == file_of(data, method).read_text()


def test_every_method_was_given_the_same_number_of_points():
    tries = json.loads((RECORDS / "tries_paper.json").read_text())["tries"]
    names = ["cifar10" if name.startswith("cifar") else name.split("-")[0] for name in tries]
    points = Counter(f"{data}-prer" for data in names)
    for record in SEARCHES:
        points.update({name: len(found) for name, found in json.loads(record.read_text())["searches"].items()})
    assert points == {f"{data}-{method}": 34 for data in DATA for method in METHODS}
    planned = {data: search_paper.budget_of(data, "prer", "first") + search_paper.BY_HAND[data] for data in DATA}
    assert {d: n + search_paper.budget_of(d, "prer", "wider") for d, n in planned.items()} == dict.fromkeys(DATA, 34)
