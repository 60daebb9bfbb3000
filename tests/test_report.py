"""The page about runs: what it holds, that it needs nothing else, and that no run folder can make it fail or act."""

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from markupsafe import escape
from matplotlib import rc_context, rcParams
from rich.console import Console
from safetensors.numpy import save
from scipy.stats import ttest_rel
from support.fake_runs import HOSTILE, fake, matrix
from support.folders import outcome

import prer
from prer.cli.main import main
from prer.report import comparison, figures, watch
from prer.report import memory as remembered
from prer.report.events import RunEvents
from prer.report.inline import NO_DATES, inlined, svg
from prer.report.page import build
from prer.report.plotting import matplotlib_defaults
from prer.report.run import Run, runs_in
from prer.runs.folder import RunFolder
from prer.terminal.progress import Display

TINY = ["learner.epochs=1", "learner.epochs_autoencoder=1", "learner.epochs_flow=1", "learner.blocks=1"]


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A short run of PRER on the digits, with its model."""
    out = tmp_path_factory.mktemp("real")
    main(["run", *TINY, "--seeds", "2", "--device", "cpu", "--out", str(out), "--quiet"])
    (folder,) = out.iterdir()
    return folder


@pytest.fixture
def undrawn(monkeypatch):
    """Figures are made but not drawn, which takes most of the time."""
    monkeypatch.setattr("prer.report.inline.inlined", lambda figure, alt, number: "")


def process(*arguments, **environment):
    """What a Python of its own prints; it has nothing to complain of."""
    path = os.pathsep.join([str(Path(prer.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    known = os.environ | {"PYTHONPATH": path} | environment
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=known)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def page(*folders, **more):
    return build(*runs_in([Path(folder) for folder in folders]), **more)


class Markup(HTMLParser):
    """Which elements and attributes a browser would find in a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes = set(), set()
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attributes)


# -- the page ----------------------------------------------------------------------------------------------------------


def test_a_page_is_one_file_that_asks_for_nothing(capsys, tmp_path):
    fake(tmp_path / "runs/a")
    code, out, _ = outcome(capsys, "report", "runs", "-o", "page.html")
    assert code == 0 and re.fullmatch(r"Written: page.html \(0\.\d MB\)\n", out)
    html = Path("page.html").read_text("utf-8")
    for address in re.findall(r"(?:src|href|action|url)\s*[=(]\s*[\"']?([^\"')> ]+)", html):
        assert address.startswith(("#", "data:")), address
    assert "@import" not in html and "http://" not in html and "https://" not in html
    assert "/home/secret" not in html and str(tmp_path) not in html
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "runs"}


def test_the_same_records_give_the_same_page(tmp_path):
    fake(tmp_path / "a"), fake(tmp_path / "b", learner="ewc", until=0)
    assert page("a", "b") == page("a", "b")


def test_a_run_is_told_whole(tmp_path):
    html = page(fake(tmp_path / "a"))
    result = json.loads((tmp_path / "a/result.json").read_text())
    for key in ("accuracy", "bwt", "forgetting_best"):
        mean, std = result[key]["mean"], result[key]["std"]
        assert f'data-metric="{key}">{mean:.2f} ± {std:.2f}<'.replace("-", "−", 2).replace("data−", "data-") in html
    for words in ("Forward transfer", "every task has a head of its own", "Loss of phase flow", "Time for each task"):
        assert words in html
    for words in ("prer run experiment.toml", "d" * 64, "learner.epochs_flow", "python", "negative log likelihood"):
        assert words in html
    assert html.count("▼ fades") == 1
    assert "0 fades" in html  # in the figure, by a word and not by its colour alone


def test_the_page_and_the_terminal_agree_on_what_fades(tmp_path):
    """By the worst seed: the mean over the three is 89 %."""
    folder, console = fake(tmp_path / "a"), Console(file=io.StringIO(), width=80)
    with Display(console, "a", 3, {"autoencoder": 3, "flow": 3}, quiet=True) as display:
        for event in RunFolder(folder).events():
            display(event)
    said = console.file.getvalue().splitlines()
    assert len(said) == 2 and all("(recognised in the worst seed: 70% of '0')" in line for line in said)
    html = page(folder)
    for line in said:
        assert f'<p class="note">{escape(line)}</p>' in html
    assert html.count("▼ fades") == 1 and html.count(">70.00</td>") == 2


def test_what_was_warned_of_at_the_start_is_on_the_page(tmp_path, undrawn):
    for i in range(13):  # so many that the page is compact
        folder = fake(tmp_path / f"runs/{i}")
    known = json.loads((folder / "environment.json").read_text())
    (folder / "environment.json").write_text(json.dumps(known | {"warnings": ["a task is <small>", 3]}))
    for html in (page(folder), page("runs")):
        assert html.count("warning: a task is &lt;small&gt;") == 1


def test_long_streams_fit(tmp_path):
    html = page(fake(tmp_path / "a", tasks=60, seeds=(0,)))
    assert "The matrix of 60 tasks is too large for a table" in html
    assert len(html) < 3e6


# -- what is found -----------------------------------------------------------------------------------------------------


def test_half_a_run_is_shown_from_its_events(capsys, tmp_path):
    fake(tmp_path / "half", until=2)
    code, out, _ = outcome(capsys, "report", "half")
    assert code == 0
    assert "half: it is not finished; tasks learned: 2; last seen: task 2, epoch 3 of 3 in phase flow" in out
    html = Path("report.html").read_text("utf-8")
    R = matrix(3, 3).mean(0)
    assert f">{R[1, 0]:.2f}</td>" in html and "not finished" in html
    assert f">{R[2, 0]:.2f}</td>" not in html


def test_a_run_that_failed_says_why_and_is_not_waited_for(capsys, monkeypatch, tmp_path, undrawn):
    folder = fake(tmp_path / "lost", until=2)
    with (folder / "events.jsonl").open("a") as events:
        events.write('{"event": "failed", "reason": "the loss became nan <b>"}\n')
    monkeypatch.setattr(watch.time, "sleep", lambda seconds: pytest.fail("there is nothing to wait for"))
    _, out, _ = outcome(capsys, "report", "lost", "--watch")
    assert "lost: it failed; tasks learned: 2; it said: the loss became nan <b>" in out
    html = Path("report.html").read_text("utf-8")
    assert "it said: the loss became nan &lt;b&gt;" in html and "<strong>failed</strong>" in html
    with (folder / "events.jsonl").open("a") as events:
        events.write('{"event": "epoch", "task": 2, "phase": "head", "epoch": 0, "loss": [1.0], "seconds": 1.0}\n')
    assert "it is not finished; tasks learned: 2" in page("lost")  # it is being tried again


def test_a_run_that_has_hardly_begun(tmp_path, undrawn):
    (fake(tmp_path / "new", until=0) / "events.jsonl").unlink()
    assert "it is not finished, and it has no events yet" in page("new")
    (tmp_path / "new/environment.json").unlink()
    assert "Its environment is not known" in page("new")


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"seeds": 1}', "\x00\xff", '{"a":' * 100_000])
def test_a_damaged_result_is_told_and_the_events_are_shown(tmp_path, damage, undrawn):
    fake(tmp_path / "broken")
    (tmp_path / "broken/result.json").write_text(damage)
    html = page("broken")
    assert "its result.json is damaged; what is shown comes from its events" in html
    assert f">{matrix(3, 3).mean(0)[2, 0]:.2f}</td>" in html


def test_a_damaged_experiment_is_told(tmp_path, undrawn):
    fake(tmp_path / "broken")
    (tmp_path / "broken/experiment.toml").write_text("name = ")
    html = page("broken")
    assert "its experiment.toml is missing or cannot be read" in html and "Its settings are not known" in html
    assert "data-metric" in html  # the result is whole


STRANGE = [
    *("", "null", "[]", "7", '"x"', "{}", '{"event": 3, "task": 0}', '{"event": "epoch", "task": -1}'),
    *('{"event": "task", "task": 0, "accuracy": 3}', '{"event": "task", "task": 1e9, "accuracy": [[1]]}'),
    *('{"event": "task", "task": true, "accuracy": [["a"]]}', '{"event": "task", "task": 0, "accuracy": [[NaN]]}'),
    '{"event": "epoch", "task": 0, "phase": [1], "epoch": "x", "loss": [], "seconds": "y"}',
    '{"event": "epoch", "task": 0, "phase": "flow", "epoch": "x", "epochs": {}, "loss": [1, 2], "seconds": 1}',
    '{"event": "health", "task": 2, "class": {"a": 1}, "agreement": ["b"]}',
    '{"event": "epoch", "task": 100000000, "phase": "flow", "epoch": 0, "epochs": 1, "loss": [1], "seconds": 1}',
]


@pytest.mark.parametrize("line", STRANGE)
def test_strange_events_are_left_out(tmp_path, line, undrawn):
    folder = fake(tmp_path / "a", until=2)
    before = RunEvents.read(folder).matrix()
    with (folder / "events.jsonl").open("a") as file:
        file.write(line + "\n")
    story = RunEvents.read(folder)
    np.testing.assert_array_equal(story.matrix(), before)
    assert len(story.seconds_by_task()["flow"]) == 2
    assert page(folder)


def test_folders_that_hold_far_too_much_are_shown_in_part(monkeypatch, tmp_path, undrawn):
    for name, most in {"MOST_CLASSES": 500, "MOST_SEEDS": 100, "MOST_CELLS": 1e5}.items():
        monkeypatch.setattr(f"prer.report.events.{name}", most)
    folder = fake(tmp_path / "a", until=1)
    nested = "{}"
    for _ in range(300):
        nested = f'{{"a": {nested}}}'
    wide = json.dumps({f"k{i}": i for i in range(2000)})
    (folder / "environment.json").write_text(f'{{"deep": {nested}, "wide": {wide}}}')
    with (folder / "events.jsonl").open("a") as file:
        for i in range(600):
            file.write(json.dumps({"event": "health", "task": 0, "class": f"c{i}", "agreement_decoded": [1.0]}) + "\n")
        file.write(json.dumps({"event": "health", "task": 1, "class": "c400", "agreement_decoded": [0.1]}) + "\n")
        for i in range(100):
            epoch = {"event": "epoch", "task": 0, "phase": f"p{i}", "epoch": 0, "epochs": 1, "loss": [1], "seconds": 1}
            file.write(json.dumps(epoch) + "\n")
        for i in range(1, 60):
            file.write(json.dumps({"event": "task", "task": i, "accuracy": [[1.0]] * 150}) + "\n")
    story = RunEvents.read(folder)
    assert len(story.health) == 500 and len(story.losses) == 20 and 0 < story.matrix().size < 1e5
    html = page(folder)
    assert len(html) < 2e6 and html.count("▼ fades") == 1  # those that fade come first


@pytest.mark.slow
def test_a_thousand_tasks(tmp_path):
    assert len(page(fake(tmp_path / "a", tasks=1000, seeds=(0, 1), labels=["a", "b"]))) < 4e6


FORGED = {
    "seconds": {"total": 1.0, "<b>": "x", "flow": None},
    "memory_floats": ["x", 3],
    "bwt": {"mean": 1.0, "std": None, "values": "x"},
    "forward_transfer": 7,
    "forgetting_best": {"mean": "x"},
    "digest": ["<b>"],
    "seeds": [{"a": "<b>"}, None, 3],
    "accuracy": {"mean": None, "std": None, "values": []},
}


@pytest.mark.parametrize("key", FORGED)
def test_a_forged_result_is_shown_as_far_as_it_makes_sense(tmp_path, key, undrawn):
    fake(tmp_path / "b", draw=1)
    forged(fake(tmp_path / "a"), **{key: FORGED[key]})
    assert "<b>" not in page("a", "b") + page("a")


def forged(folder, **values):
    result = json.loads((folder / "result.json").read_text()) | values
    del result["sha256"]
    (folder / "result.json").write_text(json.dumps(result))


def test_folders_of_runs_empty_folders_and_others(capsys, tmp_path, undrawn):
    (
        fake(tmp_path / "runs/a"),
        fake(tmp_path / "runs/b"),
        (tmp_path / "empty").mkdir(),
        (tmp_path / "x/y").mkdir(parents=True),
    )
    code, out, _ = outcome(capsys, "report", "runs", "empty", "x", "missing", "runs/../runs/a")
    assert code == 0
    for sentence in ("empty is empty", "x holds no run", "missing is no folder"):
        assert sentence in out and sentence in Path("report.html").read_text("utf-8")
    assert Path("report.html").read_text("utf-8").count('<details class="run"') == 2  # each once


def test_nothing_at_all_is_refused(capsys, tmp_path):
    (tmp_path / "empty").mkdir()
    code, _, err = outcome(capsys, "report", "empty", "missing")
    assert code == 2 and "empty is empty; missing is no folder" in err
    assert not Path("report.html").exists()


def test_a_page_that_cannot_be_written_is_told(capsys, tmp_path):
    fake(tmp_path / "a")
    code, _, err = outcome(capsys, "report", "a", "-o", "no/such/page.html")
    assert code == 2 and "cannot write no/such/page.html" in err


def test_links_and_pipes_in_a_folder_are_not_followed(tmp_path, undrawn):
    secret = tmp_path / "secret.toml"
    secret.write_text('name = "secret"')
    folder = fake(tmp_path / "a")
    for name in ("experiment.toml", "environment.json", "events.jsonl"):
        (folder / name).unlink()
        (folder / name).symlink_to(secret)
    os.mkfifo(folder / "memory")
    assert "secret" not in page(folder)


# -- hostile names -----------------------------------------------------------------------------------------------------


def hostile(tmp_path):
    """Runs whose learner, stream, classes, phases, seeds and folders have hostile names."""
    for i, name in list(enumerate(HOSTILE))[1:5:3]:  # all are names of classes
        folder = fake(
            tmp_path / "runs" / f"{i} {name.replace('/', '∕')}"[:80], learner=name, stream=name, labels=HOSTILE
        )
        text = (folder / "events.jsonl").read_text().replace('"flow"', json.dumps(name))
        (folder / "events.jsonl").write_text(text)
        forged(folder, seeds=[name, 1, 2], digest=name, seconds={name: 1.0, "total": 1.0})
        tables = f"name = {json.dumps(name, ensure_ascii=True)}\n[stream]\n{json.dumps(name)} = {json.dumps(name)}\n"
        (folder / "experiment.toml").write_text(tables, "utf-8")
        (folder / "environment.json").write_text(json.dumps({name: name}))
    return tmp_path / "runs"


def test_hostile_names_are_text(tmp_path):
    html, usual = page(hostile(tmp_path)), Markup(page(fake(tmp_path / "a"), fake(tmp_path / "b")))
    found = Markup(html)
    assert found.tags == usual.tags and found.attributes <= usual.attributes
    assert "<script>document" not in html and "{{ 7 * 7 }}" in html
    assert "\u2028" not in html and "\u202e" not in html and "😀" in html
    assert HOSTILE[-1] in html


def test_what_scripts_read_is_safe(tmp_path, undrawn):
    folder = fake(tmp_path / "a")
    forged(folder, seeds=["</script><b>\u2028", 1, 2])
    (data,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page(folder), re.DOTALL)
    assert "<" not in data and "\u2028" not in data
    assert set(json.loads(data)) == {"mean", "seed </script><b>\\u2028", "seed 1", "seed 2"}


# -- figures -----------------------------------------------------------------------------------------------------------


def drawn():
    """Every figure, of the same arrays each time."""
    rng = np.random.default_rng(0)
    images, points = rng.integers(0, 256, (8, 3, 8, 8), np.uint8), rng.normal(size=(9, 2))
    yield figures.matrix(matrix(2, 4).mean(0))
    yield figures.over_time(matrix(2, 4))
    yield figures.losses(np.array([[1e4], [1.0], [0.5], [0.4]]), [0, 2], "flow")
    yield figures.seconds({"flow": [1.0, 2.0], "head": [0.5, 0.0]})
    yield figures.memory([1000, 2000], [0, 500])
    yield figures.agreement(np.array([[99.0, 50.0], [np.nan, 98.0]]), ["$a_", "_😀<b>"], [True, False])
    yield figures.images({"real": images, "samples": images[:, :1], "vectors": points})
    yield figures.embeddings(points, points + 1, points + 2, "class 1")
    yield figures.trade_off([0, 10, 1e6], [90, 91, 92], ["_a", "b", "b"], "floats")


def digests():
    return [hashlib.sha256(svg(figure).encode()).hexdigest() for figure in drawn()]


def test_the_same_records_give_the_same_bytes_in_any_process():
    code = f"import sys; sys.path[:0] = {sys.path!r}\nfrom test_report import digests; print(digests())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert digests() == eval(other.stdout)


@pytest.mark.filterwarnings("ignore:Glyph")
def test_a_figure_is_drawn_once_for_a_page_and_left_as_it_was(monkeypatch):
    for figure, same in zip(drawn(), drawn(), strict=True):
        expected, times, draw = io.StringIO(), [], figure.draw
        with matplotlib_defaults(figures.STYLE):
            same.savefig(expected, format="svg", transparent=True, metadata=NO_DATES)
        before = figure.get_facecolor(), figure.axes[0].get_facecolor(), figure.dpi, figure.canvas
        monkeypatch.setattr(figure, "draw", lambda renderer, times=times, draw=draw: (times.append(1), draw(renderer)))
        assert svg(figure) == expected.getvalue() and len(times) == 1
        assert (figure.get_facecolor(), figure.axes[0].get_facecolor(), figure.dpi, figure.canvas) == before


def test_the_same_figure_is_a_pdf():
    for figure in drawn():
        target = io.BytesIO()
        if not any("😀" in text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))):
            figure.savefig(target, format="pdf", metadata={"CreationDate": None})
            assert target.getvalue().startswith(b"%PDF")


RED = b"text.usetex: True\naxes.facecolor: red\nfont.size: 40\nno.such.key: 1\nfigure.dpi: many\n"


@pytest.mark.parametrize(("place", "content"), [("matplotlibrc", RED), ("elsewhere", b"\xff")], ids=["here", "named"])
def test_a_matplotlibrc_is_not_read(tmp_path, place, content):
    fake(tmp_path / "a")
    Path(place).write_bytes(content)
    said = process("-m", "prer", "report", "a", "-o", "page.html", MATPLOTLIBRC=str(tmp_path / "elsewhere"))
    assert said.startswith("Written: page.html") and len(said.splitlines()) == 1
    assert Path("page.html").read_text("utf-8") == page("a")


def test_figures_do_not_depend_on_what_a_notebook_has_set_and_leave_it_as_it_was():
    usual, red = digests(), {"text.usetex": True, "axes.facecolor": "red", "svg.fonttype": "path", "font.size": 40}
    with rc_context(red):
        before = dict(rcParams.copy())
        assert digests() == usual
        assert dict(rcParams.copy()) == before


def test_names_in_figures_are_neither_markup_nor_formulas():
    figure = figures.agreement(np.array([[99.0], [98.0]]), ["$a_b$ #1f5fa8;", "_</text><script>"], [True, False])
    html = inlined(figure, 'alt "<b>"', 7)
    assert "$a_b$ #1f5fa8; fades" in html and "&lt;/text&gt;&lt;script&gt;" in html
    assert "<script" not in html and 'aria-label="alt &#34;&lt;b&gt;&#34;"' in html
    assert all(name.startswith("f7-") for name in re.findall(r'id="([^"]*)"', html))


def test_a_page_with_many_figures_has_every_id_once(tmp_path):
    ids = re.findall(r' id="([^"]*)"', page(fake(tmp_path / "a"), fake(tmp_path / "b")))
    assert len(ids) == len(set(ids))


def test_rows_of_samples_share_one_axes_and_keep_their_titles_and_shapes():
    rows = {name: np.zeros((8, 1, 6, 9), np.uint8) for name in ("real", "rebuilt", "task 1")}
    (axes,) = figures.images(rows).axes  # to make axes takes most of the time of a figure
    assert [label.get_text() for label in axes.get_yticklabels()] == list(rows)
    tops = [image.get_extent()[3] for image in axes.images]
    assert tops == sorted(tops) and axes.yaxis_inverted() and axes.get_aspect() == 1
    for left, right, bottom, top in (image.get_extent() for image in axes.images):
        assert (right - left, bottom - top) == pytest.approx((8 * 9 + 7, 6))  # a pixel is a square


def test_classes_of_several_tasks_with_one_label_are_told_apart():
    story = RunEvents()
    for task, values in enumerate([[0.9], [0.5, 0.8]]):
        for value in values:
            story.take({"event": "health", "task": task, "class": 3, "agreement_decoded": [value]})
    labels, agreement = story.agreement()
    assert labels == ["3", "3, task 2"]
    np.testing.assert_allclose(agreement, [[90, 50], [np.nan, 80]])


# -- what the memory holds ---------------------------------------------------------------------------------------------


def test_the_memory_of_a_real_run(real):
    memory = remembered.remembered(Run.read(real))
    assert [c.label for c in memory.classes] == [str(c) for c in range(10)] and memory.generates
    for number, c in enumerate(memory.classes):
        after = [f"task {task}" for task in range(number // 2 + 1, 6)]  # the run wrote these down
        assert {name: x.shape for name, x in c.rows.items()} == dict.fromkeys(("real", "rebuilt", *after), (8, 1, 8, 8))
        assert c.real.shape[1] == c.sampled.shape[1] == 2
    assert memory.notes == []
    result = json.loads((real / "result.json").read_text())
    # All classes have about as many test samples, so the mean over them is about the final accuracy.
    mean = np.mean([c.accuracy for c in memory.classes], axis=0)
    np.testing.assert_allclose(mean, result["final_accuracy"]["values"], atol=0.5)
    html = page(real)
    assert html.count("real and 60 sampled embeddings") == 10 and "What the flow remembers" in html


def test_a_model_is_looked_at_with_one_thread_and_the_process_is_left_as_it_was(monkeypatch, real, tmp_path):
    seen = []

    def look(learner, stream):
        seen.append(torch.get_num_threads())
        raise ValueError

    monkeypatch.setattr(remembered, "look", look)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        remembered.remembered(Run.read(Path(shutil.copytree(real, tmp_path / real.name))))
        assert (seen, torch.get_num_threads()) == ([1], 3)
    finally:
        torch.set_num_threads(before)


def with_samples(folder, tasks=2, shape=(1, 8, 8), dtype=np.uint8):
    (folder / "memory").mkdir()
    for task in range(1, tasks + 1):
        samples = np.full((2 * task, 8, *shape), task, dtype)
        (folder / f"memory/task-{task}.safetensors").write_bytes(save({"samples": samples}))
    return folder


@pytest.mark.parametrize(("shape", "dtype"), [((1, 8, 8), np.uint8), ((3, 8, 9), np.uint8), ((5,), np.float32)])
def test_samples_after_each_task_are_shown(tmp_path, shape, dtype):
    run = Run.read(with_samples(fake(tmp_path / "a"), shape=shape, dtype=dtype))
    memory = remembered.remembered(run)
    assert [list(c.rows) for c in memory.classes] == [["task 1", "task 2"]] * 2 + [["task 2"]] * 2
    assert [c.label for c in memory.classes] == ["0", "1", "2", "3"]
    assert "are not shown: the run has no model" in memory.notes[0]
    assert page(tmp_path / "a").count("<image") == 2 + 2 + 1 + 1


def test_samples_of_the_final_model_give_way_to_those_that_were_kept(real, tmp_path):
    folder = Path(shutil.copytree(real, tmp_path / real.name))
    shutil.rmtree(folder / "memory")
    memory = remembered.remembered(Run.read(folder))
    assert list(memory.classes[0].rows) == ["real", "rebuilt", "samples"] and "the final model's" in memory.notes[0]
    memory = remembered.remembered(Run.read(with_samples(folder)))
    assert list(memory.classes[0].rows) == ["real", "rebuilt", "task 1", "task 2"] and memory.notes == []


@pytest.mark.parametrize("what", [b"", b"\x80\x04]\x94.", save({"samples": np.zeros((2, 8, 7, 8, 8), np.uint8)})])
def test_strange_samples_are_left_out(tmp_path, what, undrawn):
    folder = with_samples(fake(tmp_path / "a"))
    (folder / "memory/task-1.safetensors").write_bytes(what)
    assert remembered.samples_after(folder) == {}
    assert page(folder)


def test_data_is_shown_only_to_who_knows_its_checksum(real, tmp_path):
    folder = Path(shutil.copytree(real, tmp_path / real.name))
    noted = json.loads((folder / "environment.json").read_text())
    for forged_sum, why in ((None, "does not know the checksum"), ("0" * 64, "the data has changed")):
        (folder / "environment.json").write_text(json.dumps(noted | {"data_sha256": forged_sum}))
        remembered._loaded.cache_clear()
        memory = remembered.remembered(Run.read(folder))
        assert why in memory.notes[0]
        assert not any({"real", "rebuilt"} & c.rows.keys() for c in memory.classes)
        assert str(tmp_path) not in memory.notes[0]


def test_no_data_is_fetched(monkeypatch, real, tmp_path):
    folder = Path(shutil.copytree(real, tmp_path / real.name))
    monkeypatch.setenv("PRER_DATA", str(tmp_path / "none"))
    toml = (folder / "experiment.toml").read_text().replace('data = "digits"', 'data = "mnist"')
    (folder / "experiment.toml").write_text(toml)
    memory = remembered.remembered(Run.read(folder))
    assert "the data is not on this machine, and a page fetches none" in memory.notes[0]
    assert not (tmp_path / "none").exists()


def test_a_model_that_asks_for_too_much_is_not_loaded(real, tmp_path):
    folder = Path(shutil.copytree(real, tmp_path / real.name))
    toml = (folder / "experiment.toml").read_text().replace("hidden = [128, 64]", "hidden = [65536, 65536]")
    (folder / "experiment.toml").write_text(toml)
    assert "too large to be loaded for a page" in remembered.remembered(Run.read(folder)).notes[0]


# -- several runs ------------------------------------------------------------------------------------------------------


def test_paired_tests_are_those_of_scipy_with_holms_correction(tmp_path):
    seeds = {"prer": (0, 1, 2, 3), "ewc": (3, 1, 0, 7), "si": (0, 1, 2, 3), "er": (9, 10)}
    for draw, (name, of) in enumerate(seeds.items()):
        fake(tmp_path / "runs" / name, learner=name, seeds=of, draw=draw, level=95 - draw)
    runs, _ = runs_in([tmp_path / "runs"])
    (found,) = comparison.tests(runs)
    assert found.reference == "prer"
    values = {run.name: dict(zip(run.result["seeds"], run.result["accuracy"]["values"], strict=True)) for run in runs}
    p = {
        name: ttest_rel(*([values[of][seed] for seed in common] for of in (name, "prer"))).pvalue
        for name, common in (("ewc", (0, 1, 3)), ("si", (0, 1, 2, 3)))
    }
    least, most = sorted(p, key=p.get)
    expected = {least: min(2 * p[least], 1), most: max(min(2 * p[least], 1), p[most])}
    rows = {name: (count, test) for name, count, test in found.rows}
    assert rows["er"] == (0, None)
    for name, adjusted in expected.items():
        assert rows[name][1].adjusted == pytest.approx(adjusted)


def test_runs_on_other_data_are_not_tested_against_each_other(tmp_path):
    fake(tmp_path / "a"), fake(tmp_path / "b")
    (tmp_path / "b/environment.json").write_text(json.dumps({"data_sha256": "1" * 64}))
    assert comparison.tests(runs_in([tmp_path])[0]) == []


def test_many_runs_are_compact(tmp_path):
    for i in range(13):
        fake(tmp_path / f"runs/{i}", draw=i)
    html = page("runs")
    assert html.count("<svg") == 2  # accuracy against memory and time, for all together
    assert html.count('class="matrix"') == 13
    assert len(html) < 13 * 25_000


# -- watching ----------------------------------------------------------------------------------------------------------


def test_watching_ends_when_all_runs_are_finished(capsys, monkeypatch, tmp_path, undrawn):
    fake(tmp_path / "runs/a", until=1), fake(tmp_path / "done/b")
    pages = []

    def sleep(seconds):
        pages.append(Path("report.html").read_text("utf-8"))
        if len(pages) == 3:
            shutil.rmtree(tmp_path / "runs/a")
            fake(tmp_path / "runs/a")

    monkeypatch.setattr(watch.time, "sleep", sleep)
    code, out, _ = outcome(capsys, "report", "runs/a", "done", "--watch")
    assert code == 0 and "Written: report.html" in out
    assert len(pages) == 3 and all('data-watch="3"' in html and 'http-equiv="refresh"' in html for html in pages)
    last = Path("report.html").read_text("utf-8")
    assert "data-watch" not in last and 'http-equiv="refresh"' not in last and "not finished" not in last


def test_watching_writes_only_what_has_changed(monkeypatch, tmp_path, undrawn):
    folder, written = fake(tmp_path / "a", until=1), []
    beats = iter([None, None, "event", None, KeyboardInterrupt])

    def sleep(seconds):
        beat = next(beats)
        if beat is KeyboardInterrupt:
            raise beat
        if beat:
            with (folder / "events.jsonl").open("a") as file:
                file.write("\n")

    monkeypatch.setattr(watch.time, "sleep", sleep)
    monkeypatch.setattr(watch, "write", lambda html, file: written.append(html))
    with pytest.raises(KeyboardInterrupt):
        watch.report([folder], Path("report.html"), lambda line: None, watch=True)
    assert ["data-watch" in html for html in written] == [True, True, False]


def test_an_interrupted_watch_ends_with_130_and_one_sentence(capsys, monkeypatch, tmp_path, undrawn):
    def interrupt(seconds):
        raise KeyboardInterrupt

    fake(tmp_path / "a", until=1)
    monkeypatch.setattr(watch.time, "sleep", interrupt)
    with pytest.raises(SystemExit) as caught:
        main(["report", "a", "--watch"])
    err = capsys.readouterr().err
    assert caught.value.code == 130 and re.fullmatch(r"interrupted[^\n]+", err.strip())
    assert "data-watch" not in Path("report.html").read_text("utf-8")


# -- what it costs others ----------------------------------------------------------------------------------------------


def test_training_never_imports_the_report(tmp_path):
    code = (
        "import sys; from prer.cli.main import main\n"
        "main(['run', 'learner.name=naive', 'learner.epochs=1', '--seeds', '1', '--device', 'cpu', '--quiet'])\n"
        "print(sorted({'matplotlib', 'jinja2', 'prer.report'} & set(sys.modules)))"
    )
    assert process("-c", code).splitlines()[-1] == "[]"
