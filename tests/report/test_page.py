"""The page: it needs nothing else, says what the runs say, and no name can act on it."""

import io
import json
import os
import re
from html.parser import HTMLParser

import pytest
from markupsafe import escape
from rich.console import Console
from support.fake_runs import HOSTILE, fake_run, forge_result
from support.pages import page

from prer.runs.folder import RunFolder
from prer.terminal.progress import Display


class Markup(HTMLParser):
    """Which elements and attributes a browser would find in a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes = set(), set()
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attributes)


def test_the_same_runs_give_the_same_page(tmp_path):
    fake_run(tmp_path / "a"), fake_run(tmp_path / "b", learner="ewc", until=0)
    assert page("a", "b") == page("a", "b")


def test_a_page_shows_everything_about_a_run(two_runs, page_of_one):
    html, result = page_of_one, json.loads((two_runs[0] / "result.json").read_text())
    for key in ("accuracy", "bwt", "forgetting_best"):
        mean, std = result[key]["mean"], result[key]["std"]
        assert f'data-metric="{key}">{mean:.2f} ± {std:.2f}<'.replace("-", "−", 2).replace("data−", "data-") in html
    for words in ("Forward transfer", "every task has its own head", "Loss of phase flow", "Time for each task"):
        assert words in html
    for words in ("prer run experiment.toml", "d" * 64, "learner.density.epochs", "python", "negative log-likelihood"):
        assert words in html
    assert html.count("▼ fades") == 1
    assert "0 fades" in html  # in the figure, by a word and not by its colour alone


def test_the_page_and_the_terminal_agree_on_what_fades(two_runs, page_of_one):
    """By the worst seed: the mean over the three is 89 %."""
    folder, console, html = two_runs[0], Console(file=io.StringIO(), width=80), page_of_one
    with Display(console, "a", 3, {"autoencoder": 3, "flow": 3}, quiet=True) as display:
        for event in RunFolder(folder).events():
            display(event)
    said = console.file.getvalue().splitlines()
    assert len(said) == 2 and all("(recognised in the worst seed: 70% of '0')" in line for line in said)
    for line in said:
        assert f'<p class="note">{escape(line)}</p>' in html
    assert html.count("▼ fades") == 1 and html.count(">70.00</td>") == 2


def test_warnings_of_a_run_are_on_the_page(tmp_path, without_figures):
    for i in range(13):  # so many that the page is compact
        folder = fake_run(tmp_path / f"runs/{i}")
    known = json.loads((folder / "environment.json").read_text())
    (folder / "environment.json").write_text(json.dumps(known | {"warnings": ["a task is <small>", 3]}))
    for html in (page(folder), page("runs")):
        assert html.count("warning: a task is &lt;small&gt;") == 1


def test_long_streams_fit(tmp_path):
    html = page(fake_run(tmp_path / "a", tasks=60, seeds=(0,)))
    assert "The matrix of 60 tasks is too large for a table" in html
    assert len(html) < 3e6


@pytest.mark.slow
def test_a_thousand_tasks(tmp_path):
    assert len(page(fake_run(tmp_path / "a", tasks=1000, seeds=(0, 1), labels=["a", "b"]))) < 4e6


def test_a_page_with_many_figures_has_every_id_once(page_of_two):
    ids = re.findall(r' id="([^"]*)"', page_of_two)
    assert len(ids) == len(set(ids))


def test_many_runs_are_compact(tmp_path):
    for i in range(13):
        fake_run(tmp_path / f"runs/{i}", rng_seed=i)
    html = page("runs")
    assert html.count("<svg") == 2  # accuracy against memory and time, for all together
    assert html.count('class="matrix"') == 13
    assert len(html) < 13 * 25_000


# -- hostile names ---------------------------------------------------------------------------------------------------


def test_hostile_names_are_text(hostile_runs, page_of_two):
    html = page(hostile_runs)
    found, usual = Markup(html), Markup(page_of_two)
    assert found.tags == usual.tags and found.attributes <= usual.attributes
    assert "<script>document" not in html and "{{ 7 * 7 }}" in html
    assert "\u2028" not in html and "\u202e" not in html and "😀" in html
    assert HOSTILE[-1] in html


def test_what_scripts_read_is_safe(tmp_path, without_figures):
    folder = fake_run(tmp_path / "a")
    forge_result(folder, seeds=["</script><b>\u2028", 1, 2])
    (data,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page(folder), re.DOTALL)
    assert "<" not in data and "\u2028" not in data
    assert set(json.loads(data)) == {"mean", "seed </script><b>\\u2028", "seed 1", "seed 2"}


def test_links_and_pipes_in_a_folder_are_not_followed(tmp_path, without_figures):
    secret = tmp_path / "secret.toml"
    secret.write_text('name = "secret"')
    folder = fake_run(tmp_path / "a")
    for name in ("experiment.toml", "environment.json", "events.jsonl"):
        (folder / name).unlink()
        (folder / name).symlink_to(secret)
    os.mkfifo(folder / "memory")
    assert "secret" not in page(folder)


LABELS = ["cat", "dog", *HOSTILE[:4]]


def test_a_page_shows_first_which_classes_are_recognised_if_nobody_tells_the_task(tmp_path):
    result = json.loads((fake_run(tmp_path / "a", scenario="class", labels=LABELS) / "result.json").read_text())
    html = page("a")
    # Of 20 test samples, class 0 has 20 right: one is "mistaken" for itself. The others have 18, 17, 16, 15 and 14.
    assert result["final_accuracy"]["values"] == pytest.approx([100 * 100 / 120] * 3)
    assert 'data-metric="final_accuracy">83.33 ± 0.00<' in html
    for words in ("Which classes are recognised", "The matrix, task not given", "The matrix, task given", "4.1 kB"):
        assert words in html
    rows = re.findall(r'<tr><th scope="row">(.*?)</th><td class="n" data-value="(.*?)">', html)
    assert [float(value) for _, value in rows[:6]] == [100, 90, 85, 80, 75, 70]
    assert [label for label, _ in rows[:2]] == ["cat", "dog"]
    assert html.index("Which classes are recognised") < html.index("The matrix, task not given")
    assert {"confusion"} <= set(re.findall(r'<figure class="(.*?)"', html))
    assert not Markup(html).attributes & {"onerror", "onload", "onclick"}
    assert Markup(html).tags == Markup(page_of(tmp_path, "b")).tags


def page_of(folder, name):
    fake_run(folder / name, scenario="class")
    return page(name)


def test_a_damaged_result_is_replaced_by_its_events(tmp_path):
    forge_result(fake_run(tmp_path / "a", scenario="class", labels=LABELS), confusion=[[1]])
    assert "its result.json is damaged; the numbers shown come from its events" in page("a")


def test_many_classes_are_shown_by_the_worst(tmp_path):
    fake_run(tmp_path / "a", scenario="class", tasks=150)
    html = page("a")
    assert "The 200 worst of 300 classes are shown." in html and html.count('<table class="by-class">') == 1
