"""examples/tickets.sh: support tickets that arrive week by week, and what docs/features.md says of them."""

import csv
import os
import re
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.commands import environment

from prer.features.minilm import PACKAGES

ROOT = Path(__file__).parents[1]
SCRIPT, FOLDER = ROOT / "examples" / "tickets.sh", ROOT / "examples" / "tickets"
PAGE = " ".join((ROOT / "docs" / "features.md").read_text("utf-8").split())
WEEKS = ("week-1", "week-2", "week-3")


def tickets(name):
    """The texts and intents of a file."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [(row["text"], row["intent"]) for row in csv.DictReader(file)]


def test_every_intent_has_twenty_tickets_in_the_week_it_comes_and_eight_to_test():
    known = set()
    for week in WEEKS:
        counts = Counter(intent for _, intent in tickets(week))
        assert [counts[intent] for intent in counts if intent not in known] == [20] * 4
        assert {counts[intent] for intent in known} <= {0, 5}
        known |= counts.keys()
    assert Counter(intent for _, intent in tickets("test")) == dict.fromkeys(known, 8)
    assert "With twenty tickets of each intent" in PAGE


def test_no_ticket_is_in_two_files_or_twice_in_one():
    every = [text.lower() for name in (*WEEKS, "test") for text, _ in tickets(name)]
    assert len(set(every)) == len(every) and all(text == text.strip() and text for text in every)


@pytest.mark.slow
@pytest.mark.skipif(not all(map(find_spec, PACKAGES)), reason="needs prer[text]")
def test_the_script_runs_and_the_page_says_what_it_prints(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = environment(PATH=path, PRER_DATA=str(tmp_path / "data"), PYTHONWARNINGS="ignore")
    done = subprocess.run(["sh", SCRIPT, tmp_path / "here"], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (found,) = re.findall(r"│ all +│ +(\d+) │ +([\d.]+)% │", done.stdout)
    accuracy, count = re.search(r"the model is right for ([\d.]+) % of (\d+) other tickets", PAGE).groups()
    assert found[0] == count and float(found[1]) == pytest.approx(
        float(accuracy), abs=4
    )  # processors round differently
    assert done.stdout.count("computing those of 250 texts") == 1  # once for all methods
    answers = re.findall(r"^[01],(\w+),1\.00$", done.stdout, re.MULTILINE)
    assert answers == ["lost_or_stolen_card", "age_limit"]
    assert "`prer compare` recommends `ncm`" in PAGE and "\nTake ncm: " in done.stdout
    page = (tmp_path / "here/tickets.html").read_text("utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>") and "joint" in page
    assert not list((tmp_path / "here/intents").glob("*.csv"))
