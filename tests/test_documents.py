"""What the documents show works as it stands."""

import re
import sys
import textwrap
import tomllib
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import MagicMock

import click
import pytest
import torch
from support.documents import DOCUMENTS, PAGES, ROOT, anchors, blocks, codes, links, tables, text_of
from support.documents import commands as commands_of
from support.fake_runs import fake_run

import prer
from prer.cli.lesson import lesson_of
from prer.cli.main import commands
from prer.densities.base import DensitySettings
from prer.learners import LEARNERS, registry
from prer.presets import recommended
from prer.runs.experiment import Experiment
from prer.sweeps.sweep import Sweep
from prer.testing import check_learner

RESULTS = ROOT / "docs/reproducibility"
TINY = 'PRER(epochs=1, epochs_autoencoder=1, density={"epochs": 1, "blocks": 1})'
SHORT = (r"ContinualClassifier\((?=\)|features=)", f"ContinualClassifier(prer.{TINY}, ")
REQUIRES = "python requires minilm"  # of blocks that are run with a network that takes no time
SHAPES = {  # of the accuracy matrix that the Python of a document computes, or the classes that its model learns
    "README.md": (5, 5, 5),
    "docs/data.md": (2, 5, 5),
    "docs/models.md": 4,
    "docs/streams.md": (2, 3, 3),
    "docs/class-incremental.md": (5, 5, 5),
    "docs/experiments.md": (5, 5, 5),
    "docs/features.md": 10,
}
RECORDED = ["REPRODUCIBILITY.md", *sorted(f"docs/reproducibility/{p.name}" for p in RESULTS.glob("*.md"))]
OF_RUNS = {"checkpoint.json", "environment.json", "events.jsonl", "model.json", "report.html", "result.json"}
PATH = r"[\w/*.-]+\.(?:py|sh|c|jsonl?|txt)|[a-z]+(?:/[a-z]+)+/?"
NUMBER = r"[−+-]?\d[\d,.]*(?<![,.])(?: ± [\d.]+)?(?: %)?"


def everywhere(find, of=DOCUMENTS):
    """What `find` finds in each document, as pairs."""
    return [(document, found) for document in of for found in find(document)]


def parse(command, words):
    """The context of a command that is given these words; groups are followed down to their commands."""
    context = command.make_context(command.name, list(words))
    if isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        _, inner, rest = command.resolve_command(context, rest)
        return parse(inner, rest)
    return context


def tables_of(*settings):
    return Experiment.parse({}, settings).tables()


def keys(table, prefix=""):
    """The dotted names of the settings of a table."""
    for key, value in table.items():
        yield prefix + key
        if isinstance(value, dict):
            yield from keys(value, f"{prefix}{key}.")


@pytest.fixture(scope="module")
def known():
    """The dotted names of all settings of all learners."""
    chosen = [(f"learner.name={learner}",) for learner in LEARNERS]
    chosen += [("learner.name=prer", f"learner.density={density}") for density in DensitySettings.kinds]
    return {key for settings in chosen for key in keys(tables_of(*settings))}


def section(document, heading):
    return re.split(r"^#+ ", text_of(document).split(f"## {heading}\n")[1], maxsplit=1, flags=re.M)[0]


def test_the_readme_is_short_and_leads_to_every_page():
    assert len(text_of("README.md").splitlines()) <= 200
    assert {path for path, _ in links("README.md")} >= {*PAGES, "CONTRIBUTING.md"}
    assert len([t for t in tables("README.md") if re.fullmatch(NUMBER, t[1][1])]) == 1  # one table of results


@pytest.mark.parametrize(("document", "link"), everywhere(links, [*DOCUMENTS, *RECORDED, "CHANGELOG.md"]))
def test_links_lead_somewhere(document, link):
    path, anchor = link
    target = (ROOT / document).parent / path if path else ROOT / document
    assert target.exists()
    if anchor:
        assert anchor in anchors(target.resolve().relative_to(ROOT).as_posix())


@pytest.mark.parametrize("document", DOCUMENTS)
def test_tables_are_narrow_and_have_one_number_in_a_cell(document):
    for table in tables(document):
        assert len(table[0]) <= 7 and {len(row) for row in table} == {len(table[0])}
        cells = [cell.strip("*") for row in table[1:] for cell in row]
        assert [cell for cell in cells if re.fullmatch(rf"{NUMBER}(?:\s*(?:, |;|/)\s*{NUMBER})+", cell)] == []


@pytest.mark.parametrize(("document", "block"), everywhere(lambda document: blocks(document, "toml")))
def test_toml_is_an_experiment_or_a_sweep(document, block, tmp_path):
    read = tomllib.loads(block)
    if "project" in read:
        assert list(read["project"]["entry-points"]) == [registry.GROUP]
        return
    if "axes" not in read:
        assert Experiment.parse(read).name == read["name"]
        return
    for other in blocks(document, "toml"):
        (tmp_path / f"{tomllib.loads(other).get('name', 'sweep')}.toml").write_text(other)
    (said,) = re.findall(r"has (\d+) points", text_of(document))
    assert len(Sweep.read(tmp_path / "sweep.toml").points()) == int(said)


def test_the_example_sets_the_density():
    experiment = Experiment.parse(tomllib.loads(blocks("docs/experiments.md", "toml")[0]))
    density = experiment.tables()["learner"]["density"]
    assert (density["name"], density["epochs"]) == ("flow", 50)


@pytest.mark.filterwarnings("ignore:after task .* the memory's samples")  # of a memory that is too short on purpose
@pytest.mark.parametrize("document", SHAPES)
def test_python_runs_from_the_first_line_to_the_last(document, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(document, "python"):
        exec(re.sub(*SHORT, re.sub(r'PRER\(\)|PRER\.like\("digits"\)', TINY, block)), names)
    if isinstance(SHAPES[document], int):
        assert len(names["model"].classes_) == SHAPES[document]
    else:
        assert names["result"].matrix.shape == SHAPES[document]
    assert not Path("checkpoint").exists()


@pytest.mark.filterwarnings("ignore:some classes have fewer than 10 samples")
@pytest.mark.filterwarnings("ignore:after task .* the memory's samples")
@pytest.mark.parametrize(("document", "block"), everywhere(lambda document: blocks(document, REQUIRES)))
def test_python_over_a_pretrained_network_runs(document, block, capsys, extractors):
    names = {}
    exec(re.sub(*SHORT, block), names)
    (answer,) = capsys.readouterr().out.splitlines()
    assert answer in {f"['{label}']" for label in names["model"].classes_}
    assert sum(extractors) > 0  # it was asked


def test_no_python_is_left_out():
    fences = everywhere(lambda d: re.findall(r"^```(python.*)$", text_of(d), re.MULTILINE))
    assert {fence for _, fence in fences} == {"python", REQUIRES}
    assert {document for document, _ in everywhere(lambda d: blocks(d, "python"))} == {
        *SHAPES,
        "docs/trackers.md",
        "CONTRIBUTING.md",
    }


def test_the_learner_of_ones_own_keeps_every_promise(tmp_path, monkeypatch):
    (block,) = blocks("CONTRIBUTING.md", "python")
    (tmp_path / "l2.py").write_text(block)
    monkeypatch.setattr(registry, "_registered", {})
    (kind,) = registry.load_plugin(tmp_path / "l2.py")
    check_learner(kind)


@pytest.mark.parametrize("tracker", ["mlflow", "wandb"])
def test_lines_for_trackers_send_every_scalar(tracker, monkeypatch, tmp_path):
    (block,) = (block for block in blocks("docs/trackers.md", "python") if f"import {tracker}" in block)
    run = fake_run(tmp_path / re.search(r"runs/[\w-]+", block)[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, tracker, stand_in := MagicMock())
    names = {}
    exec(block, names)
    expected = len(list(names["scalars"](run)))
    board = stand_in.init.return_value.__enter__.return_value
    sent = stand_in.log_metric if tracker == "mlflow" else board.log
    assert sent.call_count == expected > 0


@pytest.mark.slow
def test_python_gives_the_numbers_it_says(capsys):
    (said,) = re.findall(r"prints an Accuracy of ([\d.]+) and a BWT of (−?[\d.]+)", text_of("README.md"))
    names = {}
    exec(next(block for block in blocks("README.md", "python") if " learn(" in block), names)
    metrics = names["result"].metrics
    found = [metrics[key]["mean"] for key in ("accuracy", "bwt")]
    assert found == pytest.approx([float(text.replace("−", "-")) for text in said], abs=1)  # processors round otherwise


@pytest.mark.parametrize(
    ("document", "code"),
    everywhere(lambda d: [c for c in codes(d) if re.match(r"from prer |[A-Z]{2,5}(\.like)?\(", c)]),
)
def test_python_in_sentences_works(document, code):
    exec(code, {name: getattr(prer, name) for name in prer.__all__})


def test_the_settings_of_a_default_are_those_it_has():
    (code,) = (code for code in codes("docs/models.md") if code.startswith("PRER(encoder="))
    usual = recommended("", "prer", "class")["learner"]
    assert eval(code, {"PRER": prer.PRER}) == prer.PRER(**usual | {"embedding": 384})
    assert recommended("", "prer", "class", features=True)["learner"] == usual | {"encoder": "identity"}


@pytest.mark.skipif(find_spec("transformers") is None, reason="needs prer[text]")
@pytest.mark.filterwarnings("ignore:some classes have fewer than 10 samples")
def test_a_model_of_hugging_face_for_texts_learns():
    from transformers import BertConfig, BertModel

    def tokenizer(texts, padding, truncation, return_tensors):
        rows = torch.tensor([[len(text), 1] for text in texts])
        return {"input_ids": rows, "attention_mask": torch.ones_like(rows)}

    (code,) = re.findall(r"^      def embed.*?features=embed\)$", text_of("docs/features.md"), re.DOTALL | re.MULTILINE)
    names = {"prer": prer, "tokenizer": tokenizer}
    names["network"] = BertModel(
        BertConfig(vocab_size=50, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    ).eval()
    exec(textwrap.dedent(code).replace("=embed)", "=embed, method='ncm')"), names)
    model = names["model"].partial_fit(["a", "b", "ccc", "ddd"], [0, 0, 1, 1])
    assert model.predict(["e", "fff"]).tolist() == [0, 1]


@pytest.mark.parametrize(("document", "line"), everywhere(commands_of))
def test_commands_are_understood(document, line):
    words = [word.strip("'") for word in line.split()[1:]]
    context = parse(commands, words)
    settings = [word for word in context.params.get("settings", ()) if "=" in word]
    if context.command.name == "teach":
        assert lesson_of(settings, "digits", None, None)
    if context.params.get("plugins"):  # its learner is the one of the document
        settings = [s for s in settings if not s.startswith("learner.name=")]
    assert Experiment.parse({}, [s for s in settings if not s.startswith("stream.data")])


@pytest.mark.parametrize(
    ("document", "code"), everywhere(lambda d: [c for c in codes(d) if c.startswith(("prer ", "scripts/run "))])
)
def test_commands_in_sentences_exist(document, code):
    _, *words = code.split()
    command, options = commands, {"--help", "--version"}
    while isinstance(command, click.Group) and words and words[0] in command.commands:
        command = command.commands[words.pop(0)]
        options |= {option for parameter in command.params for option in parameter.opts}
    assert command is not commands or words == ["--help"]
    assert {word for word in words if word.startswith("-")} <= options


@pytest.mark.parametrize(
    ("document", "name"),
    everywhere(lambda d: sorted({m for c in codes(d) for m in re.findall(r"(?<!/)\b(?:learner|stream)\.[\w.]*\w", c)})),
)
def test_settings_in_sentences_exist(document, name, known):
    old = {"learner.epochs_flow"}  # shown as a name that is still read
    assert name in known | old


@pytest.mark.parametrize(
    ("document", "path"),
    everywhere(lambda d: [c for c in codes(d) if re.fullmatch(PATH, c)]),
)
def test_files_in_sentences_exist(document, path):
    folders = [ROOT, *(ROOT / name for name in ("prer", "benchmarks", "benchmarks/records", "tests/runs"))]
    assert path in OF_RUNS or any(next(folder.glob(path.rstrip("/")), None) for folder in folders)


def test_learners_are_all_there_are():
    listed = re.findall(r"^\| `([\w-]+)` \| ", section("docs/experiments.md", "The learners"), re.MULTILINE)
    assert len(listed) == len(set(listed)) and set(listed) == set(LEARNERS) - {"prer-variant"}
    assert "the fifteen learners" in text_of("README.md") and len(listed) == 15


def test_settings_of_the_density_are_all_there_are():
    rows = re.findall(r"^\| (`.*?`) \| ", section("docs/experiments.md", "PRER's settings"), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set().union(
        *(
            tables_of("learner.name=prer", f"learner.density={kind}")["learner"]["density"]
            for kind in DensitySettings.kinds
        )
    )


def test_settings_of_the_variant_are_those_that_prer_has_not():
    text = section("docs/experiments.md", "PRER's settings")
    (said,) = re.findall(r"`learner.name=prer-variant` is (.*?)\.", text, re.S)
    variant, ours = tables_of("learner.name=prer-variant")["learner"], tables_of()["learner"]
    assert set(re.findall(r"`(\w+)`", said)) == set(keys(variant)) - set(keys(ours))


@pytest.mark.parametrize("file", [*DOCUMENTS, "prer/cli/run.py"])
def test_the_run_they_name_is_the_built_in_one(file):
    assert set(re.findall(r"digits-prer-[0-9a-f]{8}", text_of(file))) <= {Experiment.parse({}).folder}


def test_the_file_list_is_the_files():
    listed = set(re.findall(r"^    (prer/\S+)", text_of("CONTRIBUTING.md"), re.MULTILINE))
    plumbing, package = {"__init__.py", "__main__.py", "errors.py", "version.py"}, ROOT / "prer"
    there = {f"prer/{p.name}" for p in package.glob("*.py") if p.name not in plumbing}
    assert listed == there | {f"prer/{p.parent.name}/" for p in package.glob("*/__init__.py")}
