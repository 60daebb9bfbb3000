"""The tables of the benchmark."""

from support.terminal import log, shown

from prer.bench import table

RATIO = {"median": 2.5, "low": 2.0, "high": 3.25}
STEPS = {
    "naive": {"median": {"ours": 1.5, "bare loop": 3.0}, "times as fast as": {"bare loop": RATIO}},
    "gem": {"median": {"ours": 4.0, "peer": 8.125}, "times as fast as": {"peer": RATIO | {"median": 0.5}}},
}
SEEDS = {"prer, 8x8": {"median": {"1": 1.0, "5": 2.0}, "throughput of a seed": {"1": RATIO, "5": RATIO}}}
ENVIRONMENT = {"device": "cpu", "gpu": None, "processor": "a processor", "threads": 1, "cores": 8, "commit": None}
ENVIRONMENT |= {"packages": {"torch": "2.6"}}


def rows(made):
    return [[str(cell) for cell in row] for row in zip(*(column.cells for column in made.columns), strict=True)]


def test_a_comparison_has_a_column_for_everyone_and_empty_cells_for_who_is_missing():
    made = table.compared("A step", STEPS)
    names = ["", "ours, ms", "bare loop, ms", "peer, ms", "times as fast as bare loop", "times as fast as peer"]
    assert [column.header for column in made.columns] == names
    assert rows(made) == [
        ["naive", "1.50", "3.00", "", "2.50 (2.00 to 3.25)", ""],
        ["gem", "4.00", "", "8.12", "", "0.50 (2.00 to 3.25)"],
    ]
    assert str(made.title).startswith("A step; below 1: ours is slower")


def test_seeds_are_compared_with_a_seed_alone():
    made = table.seeds(SEEDS)
    assert [column.header for column in made.columns] == ["", "1 seed, ms", "5 seeds, ms", "throughput of each of 5"]
    assert rows(made) == [["prer, 8x8", "1.00", "2.00", "2.50 (2.00 to 3.25)"]]


def test_the_place_is_one_line():
    assert table.place(ENVIRONMENT) == "On a processor, CPU, 1 of 8 cores; torch 2.6; commit unknown"
    there = ENVIRONMENT | {"device": "cuda", "gpu": "a GPU", "commit": "abc", "peers": {"peer": "1.0"}}
    assert table.place(there) == "On a GPU, 1 of 8 cores; torch 2.6, peer 1.0; commit abc"


def test_every_part_of_a_record_is_printed():
    console = log()
    table.show(console, {"steps": STEPS, "seeds": SEEDS, "environment": ENVIRONMENT})
    text = console.file.getvalue()
    assert "A training step, one seed" in text and "The flow" not in text and "throughput of each of 5" in text
    assert text.splitlines()[-1].startswith("On a processor")
    assert "naive" in shown(table.compared("A step", STEPS))
