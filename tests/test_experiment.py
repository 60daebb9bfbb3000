"""Experiments: strict TOML in and out, overrides, recommended settings, the hash, the folder, and data files."""

import gc
import re
import tomllib
import zipfile
from dataclasses import fields, replace
from typing import get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prer.data.catalogue import CATALOGUE
from prer.errors import InputError
from prer.learners import LEARNERS
from prer.presets.tables import TABLES
from prer.runs import environment
from prer.runs.experiment import Experiment, parse_override
from prer.settings import Auto
from prer.streams.config import StreamConfig

few = settings(max_examples=60, deadline=None, database=None)
some_text = st.text(max_size=30) | st.sampled_from(
    ['"', "\\", '\\"""', "a\nb\r\nc", "\x00\x1f\x7f\x85\u2028", "🦉", "[x]", "#"]
)


def parsed(*overrides, **tables):
    return Experiment.parse(tables, overrides)


def refused(said, *overrides, **tables):
    with pytest.raises(InputError, match=said) as caught:
        parsed(*overrides, **tables)
    assert "\n" not in str(caught.value)


# -- wrong keys and values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("learner.wieght=1", r"^unknown key 'learner.wieght', did you mean 'weight'\?$"),
        ("learner.epoch=1", r"'learner.epoch', did you mean 'epochs'\?"),
        ("learner.lr_flwo=1", r"did you mean 'lr_flow'\?"),
        ("stream.class_per_task=2", r"'stream.class_per_task', did you mean 'classes_per_task'\?"),
        ("learnr.epochs=1", r"^unknown key 'learnr', did you mean 'learner'\?$"),
        ("seed=1", r"did you mean 'seeds'\?"),
        ("zzz=1", "unknown key 'zzz'; known are name, seeds, device, like, stream, learner"),
        ("stream.zzz=1", "unknown key 'stream.zzz'; known are data, kind"),
        ("learner.wieght.deep=1", "unknown key 'learner.wieght'"),
        ("learner.nmae=naive", r"did you mean 'name'\?"),
        ("a\nb=1", r"unknown key 'a\\nb'"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(override, said):
    refused(said, override)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("learner.epochs=many", "learner.epochs='many': a whole number or auto is wanted"),
        ("learner.epochs=true", "learner.epochs=True: a whole number"),
        ("learner.epochs=3.0", "learner.epochs=3.0: a whole number"),
        ("learner.epochs=[3]", r"learner.epochs=\[3\]: a whole number"),
        ("learner.epochs={a=1}", "learner.epochs={'a': 1}: a whole number"),
        ("learner.epochs=", "learner.epochs='': a whole number"),
        ("learner.epochs=2020-01-01", "learner.epochs=.*: a whole number"),
        ("learner.lr=fast", "learner.lr='fast': a number is wanted"),
        ("learner.lr=true", "learner.lr=True: a number is wanted"),
        ("learner.lr=[0.1]", "a number is wanted"),
        ("learner.one_hot=1", "learner.one_hot=1: true or false is wanted"),
        ("learner.one_hot=yes", "true or false is wanted"),
        ("learner.channels=5", "learner.channels=5: a list is wanted"),
        ('learner.channels=["a"]', r"learner.channels\[0\]='a': a whole number"),
        ("learner.channels=[1, 2.5]", r"learner.channels\[1\]=2.5: a whole number"),
        ("stream.data=5", "stream.data=5: a string is wanted"),
        ('stream.data=["digits"]', "stream.data=.*: a string is wanted"),
        ("stream.tasks=[0, 1]", r"stream.tasks\[0\]=0: a list is wanted"),
        ("stream.tasks=[[0, true]]", r"stream.tasks\[0\]\[1\]=True: a (string|whole number|label)"),
        ("name=5", "name=5: a string is wanted"),
        ("device=0", "device=0: a string is wanted"),
        ("seeds=two", "seeds='two': give a whole number or a list of them"),
        ("seeds=1.5", "seeds=1.5: give a whole number or a list of them"),
        ("seeds=true", "seeds=True: give a whole number or a list of them"),
        ('seeds=[0, "1"]', r"seeds\[1\]='1': a whole number"),
        ("seeds=[0, true]", r"seeds\[1\]=True: a whole number"),
    ],
)
def test_a_wrong_type_is_refused_with_the_one_wanted(override, said):
    refused(said, override)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("learner.batch=1", "learner.batch=1: take 2 or more"),
        ("learner.epochs=-1", "take 0 or more"),
        ("learner.dropout=1", "learner.dropout=1.0: take from 0 to 0.99"),
        ("learner.dropout=-0.1", "take from 0 to 0.99"),
        ("learner.lr=-1e-3", "take from 0 to 1e\\+30"),
        ("learner.lr=nan", "learner.lr=nan: a finite number"),
        ("learner.lr=inf", "learner.lr=inf: a finite number"),
        ("learner.channels=[3, 0]", "learner.channels=0: take from 1 to 65536"),
        ("learner.hidden=[]", r"learner.hidden=\[\]: give one value at least"),
        ("stream.classes_per_task=1", "stream.classes_per_task=1: take 2 or more"),
        ("stream.resplit=0.96", "take from 0 to 0.95"),
        ("stream.resplit=-1", "take from 0 to 0.95"),
        ("seeds=0", "seeds=0: give a number from 1 to 1000"),
        ("seeds=-3", "seeds=-3"),
        ("seeds=[]", "seeds="),
        ("seeds=[1, 1]", "different numbers"),
        ("seeds=[-1]", "from 0 up"),
        ("seeds=1000000000000000000", "seeds=1000000000000000000"),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_range(override, said):
    refused(said, override)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("learner.optimiser=adamw", "learner.optimiser='adamw': choose one of adam, sgd"),
        ("learner.distance=L2", "choose one of l2, cosine"),
        ("learner.density=5", "learner.density=5: choose one of flow, gaussian"),
        ('learner.labels=["head"]', "choose one of none, head, auxiliary"),
        ("stream.kind=sorted", "stream.kind='sorted': choose one of split"),
        ("learner.name=prerr", r"unknown learner 'prerr', did you mean 'prer'\?$"),
        ("learner.name=zzz", "^unknown learner 'zzz'; known are naive, [a-z, ]*prer$"),
        ("learner.name=", "unknown learner ''"),
        ("learner.name=5", "unknown learner 5"),
        ("learner.name=[1]", r"unknown learner \[1\]"),
        ("learner.name.x=1", "unknown learner {'x': 1}"),
    ],
)
def test_a_wrong_choice_is_refused_with_all_choices(override, said):
    refused(said, override)


@pytest.mark.parametrize("table", ["stream", "learner"])
@pytest.mark.parametrize("value", ["5", "prer", "[1]", "true"])
def test_a_table_that_is_no_table_is_refused(table, value):
    refused(f"'{table}' must be a table", f"{table}={value}")


def test_settings_of_one_learner_are_unknown_to_another():
    assert parsed("learner.weight=2").learner.weight == 2
    refused("unknown key 'learner.weight'", "learner.name=naive", "learner.weight=2")


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"name = ", "cannot be read as TOML"),
        (b"name = 'a'\nname = 'b'", "cannot be read as TOML"),
        (b"\x00\x01", "cannot be read as TOML"),
        ("name = 'é'".encode("latin1"), "cannot be read as TOML"),
        (b"[learner]\nwieght = 1", r"did you mean 'weight'\?"),
        (b"[[learner]]\nname = 'prer'", "'learner' must be a table"),
        (b"seeds = " + b"[" * 5000, "cannot be read as TOML"),
        (b"seeds = " + b"9" * 5000, "cannot be read as TOML"),
    ],
)
def test_a_file_that_is_no_experiment_is_refused(tmp_path, content, said):
    path = tmp_path / "e.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        Experiment.read(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"there is no file .*nowhere\.toml"):
        Experiment.read(tmp_path / "nowhere.toml")
    with pytest.raises(InputError, match="cannot be read as TOML"):
        Experiment.read(tmp_path)


def test_a_file_is_read_and_the_command_line_has_the_last_word(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text('name = "é"\nseeds = [3]\n[learner]\nname = "naive"\nepochs = 7\nlr = 1\n', "utf-8")
    read = Experiment.read(path, ["learner.epochs=8", "seeds=2"])
    assert (read.name, read.seeds, read.learner.epochs, read.learner.lr) == ("é", (0, 1), 8, 1.0)
    assert type(read.learner.lr) is float


# -- overrides -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": 1}),
        ("a=1e-3", {"a": 0.001}),
        ("a=true", {"a": True}),
        ("a=[0, 1]", {"a": [0, 1]}),
        ('a="x y"', {"a": "x y"}),
        ("a.b.c='1'", {"a": {"b": {"c": "1"}}}),
        ("a={b = 1}", {"a": {"b": 1}}),
        (" a . b = 5 ", {"a": {"b": 5}}),
        ("a=naive", {"a": "naive"}),
        ("a= my file.npz ", {"a": "my file.npz"}),
        ("a=True", {"a": "True"}),
        ("a=", {"a": ""}),
        ("a=b=c", {"a": "b=c"}),
        ("a=1\nb=2", {"a": "1\nb=2"}),
        ("a=[1", {"a": "[1"}),
        ('a="', {"a": '"'}),
        ("a=cuda:0", {"a": "cuda:0"}),
        ("a=C:\\x", {"a": "C:\\x"}),
        ("a=2020-99-99", {"a": "2020-99-99"}),
        ("a=" + "[" * 5000, {"a": "[" * 5000}),
        ("a=" + "9" * 5000, {"a": "9" * 5000}),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_override_is_a_toml_value_or_else_a_string(text, expected):
    assert parse_override(text) == expected


@pytest.mark.parametrize("text", ["", "=", "=1", "a", "a.=1", ".a=1", "a..b=1", " =1", "experiment.toml"])
def test_a_malformed_override_is_refused(text):
    with pytest.raises(InputError, match=r"is not of the form key=value, such as learner\.epochs=5"):
        parse_override(text)


@few
@given(some_text)
def test_any_text_is_an_override_or_refused(text):
    try:
        (key,) = parse_override(text)
        assert "=" in text and text.strip().startswith(key)
    except InputError as error:
        assert "\n" not in str(error)


def test_the_last_override_wins_and_leaves_its_neighbours_alone():
    learner = parsed("learner.epochs=3", "learner.lr=0.5", "learner.epochs=4").learner
    assert (learner.epochs, learner.lr) == (4, 0.5)


# -- recommended settings --------------------------------------------------------------------------------------------


@pytest.fixture
def tuned(monkeypatch):
    """Recommendations that no tuning of the real ones can change."""
    settings = {"stream": {"resplit": 0.3}, "learner": {"epochs": 20, "batch": 31}, "prer": {"epochs": 41, "blocks": 3}}
    monkeypatch.setitem(TABLES, "digits", settings)


@pytest.mark.usefixtures("tuned")
def test_recommended_settings_hold_until_somebody_says_otherwise():
    recommended, naive = parsed(), parsed("learner.name=naive")
    assert (recommended.stream.resplit, recommended.learner.batch) == (0.3, 31)
    assert (recommended.learner.epochs, recommended.learner.blocks) == (41, 3)
    assert (naive.learner.epochs, naive.learner.batch) == (20, 31)  # what is PRER's alone is not naive's
    assert parsed(learner={"blocks": 5}).learner.blocks == 5
    assert parsed("learner.blocks=6", learner={"blocks": 5}).learner.blocks == 6
    assert parsed(learner={"blocks": 5}).learner.epochs == 41
    assert parsed("stream.resplit=0").stream.resplit == 0


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("data", CATALOGUE)
def test_what_is_recommended_is_allowed(data, name):
    assert parsed(f"stream.data={data}", f"learner.name={name}").learner.name == name


def test_other_data_has_the_defaults():
    other = parsed("stream.data=my.npz")
    assert other.learner == LEARNERS["prer"]()
    assert other.stream == StreamConfig(data="my.npz")
    assert other.name == "my.npz-prer"


def test_recommended_settings_stay_as_they_are_when_an_experiment_changes_its_own():
    before = parsed()
    parsed("learner.embedding=9", "stream.resplit=0.5")
    assert parsed() == before


# -- out and in again ------------------------------------------------------------------------------------------------


def again(experiment):
    return Experiment.parse(tomllib.loads(experiment.to_toml()))


@pytest.mark.parametrize("name", LEARNERS)
def test_an_experiment_survives_toml(name):
    experiment = parsed(
        f"learner.name={name}", 'stream.tasks=[["a", 1], [2, "é"]]', "seeds=[5, 3]", "learner.lr=1e-300"
    )
    assert again(experiment) == experiment
    assert again(experiment).hash == experiment.hash
    assert again(experiment).to_toml() == experiment.to_toml()
    for setting in fields(experiment.learner):
        assert f"\n{setting.name} = " in experiment.to_toml()


def values_of(kind, meta):
    """Any value that a setting may take."""
    low, high = meta["low"], meta["high"]
    if kind is bool:
        return st.booleans()
    if kind == int | Auto:
        return st.just("auto") | values_of(int, meta)
    if kind is int:
        return st.integers(low, 2**70 if high is None else high)
    if kind is float:
        return st.floats(low, high, allow_nan=False, allow_infinity=False)
    if get_args(kind) and get_args(kind)[-1] is Ellipsis:
        return st.lists(st.integers(low, 999), min_size=1, max_size=4).map(tuple)
    return st.sampled_from(get_args(kind))


def learners(name):
    kind, hints = LEARNERS[name], get_type_hints(LEARNERS[name])
    return st.builds(kind, **{f.name: values_of(hints[f.name], f.metadata) for f in fields(kind)})


@few
@given(
    learner=st.sampled_from(sorted(LEARNERS)).flatmap(learners),
    seeds=st.lists(st.integers(0, 2**70), min_size=1, max_size=4, unique=True).map(tuple),
    name=some_text,
    data=some_text,
    tasks=st.lists(st.lists(some_text | st.integers(), max_size=3).map(tuple), max_size=3).map(tuple),
    resplit=st.floats(0, 0.95),
)
def test_any_names_and_settings_survive_toml(learner, seeds, name, data, tasks, resplit):
    stream = StreamConfig(data=data, tasks=tasks, resplit=resplit)
    experiment = Experiment(name=name, seeds=seeds, device=name, stream=stream, learner=learner)
    assert again(experiment) == experiment
    assert again(experiment).hash == experiment.hash
    experiment.to_toml().encode()  # what cannot be written is of no use


def test_a_number_of_seeds_and_their_list_are_the_same():
    assert parsed("seeds=3") == parsed("seeds=[0, 1, 2]")
    assert parsed().seeds == (0, 1, 2, 3, 4)
    assert parsed("seeds=[2, 1, 0]").hash != parsed("seeds=3").hash


# -- hash and folder -------------------------------------------------------------------------------------------------


def test_the_hash_ignores_the_name_and_how_the_experiment_was_told():
    assert parsed("name=a").hash == parsed("name=b").hash
    lr = parsed().learner.lr
    told = parsed(stream={"kind": "split", "data": "digits"}, learner={"lr": lr, "name": "prer"}, device="auto")
    assert told.hash == parsed().hash
    assert re.fullmatch(r"[0-9a-f]{8}", parsed().hash)


@pytest.mark.parametrize("override", ["seeds=4", "device=cpu", "stream.classes_per_task=5", "stream.tasks=[[0, 1]]"])
def test_the_hash_differs_with_what_is_run(override):
    assert parsed(override).hash != parsed().hash


@pytest.mark.parametrize("setting", [f.name for f in fields(LEARNERS["prer"])])
def test_the_hash_differs_with_every_setting(setting):
    experiment = parsed()
    kind = get_type_hints(LEARNERS["prer"])[setting]
    old = getattr(experiment.learner, setting)
    if isinstance(old, bool):
        new = not old
    elif isinstance(old, str):
        new = next(choice for choice in get_args(kind) if choice != old)
    else:
        new = (*old, 3) if isinstance(old, tuple) else old + 0.125 if kind is float else old + 1
    changed = replace(experiment, learner=replace(experiment.learner, **{setting: new}))
    assert changed.hash != experiment.hash
    assert again(changed) == changed


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("digits-prer", "digits-prer"),
        ("My Run, 2nd!", "my-run-2nd"),
        ("../../etc/passwd", "etc-passwd"),
        ("..", "run"),
        ("/", "run"),
        ("", "run"),
        ("🦉", "run"),
        ("a" * 300, "a" * 40),
        ("a" * 39 + "-b", "a" * 39),
        ("<script>alert(1)</script>", "script-alert-1-script"),
        ("a\x00b\nc", "a-b-c"),
        ("CON", "con"),
    ],
)
def test_a_folder_is_named_by_a_safe_short_form_and_the_hash(name, slug):
    experiment = replace(parsed(), name=name)
    assert experiment.folder == f"{slug}-{experiment.hash}"


@few
@given(st.text(max_size=80))
def test_no_name_leads_out_of_the_folder_of_runs(name):
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?-[0-9a-f]{8}", replace(parsed(), name=name).folder)


# -- data files ------------------------------------------------------------------------------------------------------

X, Y = np.arange(60, dtype=np.float32).reshape(20, 3), np.arange(20) % 4


def build(path, **options):
    return StreamConfig(data=str(path), **options).build()


def test_an_npz_of_x_and_y_is_a_stream(tmp_path):
    np.savez(tmp_path / "my data.npz", x=X, y=Y, more=np.array([object()]))  # what is not asked for is not read
    stream = build(tmp_path / "my data.npz")
    assert (stream.name, stream.shape, len(stream)) == ("my data.npz", (3,), 2)
    assert stream[0].test_rows([0]).shape == (1, 2)
    assert len(build(tmp_path / "my data.npz", classes_per_task=4)) == 1
    assert [task.labels for task in build(tmp_path / "my data.npz", tasks=((3, 0),))] == [(3, 0)]


def test_an_npz_with_a_test_part_uses_it_unless_told_to_resplit(tmp_path):
    np.savez(tmp_path / "a.npz", x_train=X, y_train=Y, x_test=X[:8], y_test=Y[:8])
    assert sorted(build(tmp_path / "a.npz")[0].test_rows([0])[0].tolist()) == [20, 21, 24, 25]
    assert build(tmp_path / "a.npz", resplit=0.5)[0].test_rows([0]).shape == (1, 8)  # 4 of the 7 samples of each class


def test_the_same_npz_gives_the_same_as_its_arrays(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", x_train=X, y_train=Y)
    task = build(tmp_path / "a.npz")[0]
    assert np.array_equal(task.x.numpy(), X)
    assert task.y.tolist() == (Y % 2).tolist()  # the place within its task


def test_the_digits_are_there_without_a_file():
    stream = StreamConfig().build()
    assert (stream.name, stream.shape, len(stream)) == ("digits", (1, 8, 8), 5)
    assert (len(stream[0].x), int(stream[0].x.min()), int(stream[0].x.max())) == (1797, 0, 255)


def _flipped(path):
    """An archive whose compressed bytes are damaged, though its directory is whole."""
    np.savez_compressed(path, x=np.random.default_rng(0).normal(size=(400, 5)), y=np.arange(400) % 2)
    data = bytearray(path.read_bytes())
    data[200:3000] = bytes((byte * 7 + 13) % 256 for byte in data[200:3000])
    path.write_bytes(data)


def _encrypted(path):
    np.savez(path, x=X, y=Y)
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1  # the flag of the first entry in the archive's list
    path.write_bytes(data)


def _text_inside(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", "hello")
        archive.writestr("y.npy", "world")


def _npy(path):
    with path.open("wb") as file:
        np.save(file, X)


def _truncated(path):
    np.savez(path, x=X, y=Y)
    path.write_bytes(path.read_bytes()[:200])


BAD_FILES = {
    "objects": (lambda path: np.savez(path, x=np.array([{}, None]), y=Y), "it holds Python objects"),
    "object labels": (lambda path: np.savez(path, x=X, y=np.array(["a", None] * 10)), "it holds Python objects"),
    "a pickle": (
        lambda path: path.write_bytes(b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00K\x05."),
        "it cannot be read",
    ),
    "truncated": (_truncated, "it cannot be read"),
    "no zip": (lambda path: path.write_text("some text\n"), "one column only"),
    "empty": (lambda path: path.write_bytes(b""), "it cannot be read"),
    "a folder": (lambda path: path.mkdir(), "no folders with images in it"),
    "text inside": (_text_inside, "cannot be read|give numbers"),
    "other names": (lambda path: np.savez(path, data=X, target=Y), "no arrays x, y or x_train, y_train"),
    "no labels": (lambda path: np.savez(path, x=X), "no arrays x, y"),
    "no samples": (lambda path: np.savez(path, y_train=Y), "no arrays x, y"),
    "wrong arrays": (lambda path: np.savez(path, x=X, y=Y[:5]), "20 samples and y has 5 labels"),
    "one array": (_npy, "cannot be read|no arrays"),
    "damaged inside": (_flipped, "it cannot be read"),
    "encrypted": (_encrypted, "it cannot be read"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_data_file_is_refused_in_one_sentence(tmp_path, case):
    write, said = BAD_FILES[case]
    write(tmp_path / "bad.npz")
    with pytest.raises(InputError, match=said) as caught:
        build(tmp_path / "bad.npz")
    assert "\n" not in str(caught.value)
    del caught
    gc.collect()  # so that a file left open fails this test and not a later one


@pytest.mark.parametrize(
    "data",
    [
        "nowhere.npz",
        "mnits",
        "a\x00b",
        "~nobody-has-this-name/x.npz",
        "a" * 300,
    ],
)
def test_missing_data_is_refused_with_the_names_that_are_known(data):
    with pytest.raises(InputError, match="is neither a file nor a known data set"):
        build(data)


# -- like -------------------------------------------------------------------------------------------------------------


def test_the_settings_of_another_data_set_can_be_taken():
    experiment = parsed("stream.data=my.npz", "like=digits", "learner.batch=7")
    digits = parsed()
    assert experiment.learner.embedding == digits.learner.embedding != parsed("stream.data=my.npz").learner.embedding
    assert experiment.learner.batch == 7
    assert experiment.stream.data == "my.npz"
    assert "like" not in experiment.tables()
    assert Experiment.parse(tomllib.loads(experiment.to_toml())).hash == experiment.hash


def test_what_was_meant_is_said():
    refused("unknown key 'data': did you mean 'stream.data'", "data=mnist")
    refused("it is a setting of prer, not of naive", "learner.name=naive", "learner.epochs_flow=3")
    refused("like='mnits' names no data set with settings to take, did you mean 'mnist'\\?", "like=mnits")
    refused("seeds='a': give a whole number or a list of them: --seeds 0,1,7", "seeds=a")


def test_a_copy_without_a_checkout_is_told_its_commit(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "__file__", str(tmp_path / "prer" / "runs" / "environment.py"))
    monkeypatch.delenv("PRER_COMMIT", raising=False)
    assert environment.environment()["commit"] is None
    monkeypatch.setenv("PRER_COMMIT", "d1b603c0772c")
    assert environment.environment()["commit"] == "d1b603c0772c"
