"""Experiments: strict TOML in and out, overrides, the hash, and the folder."""

import re
import tomllib
from dataclasses import fields, replace
from typing import get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.experiments import parsed, refused
from support.learners import CLOSED

from prer.densities.flow import FlowSettings
from prer.errors import InputError
from prer.learners import ABLATION, LEARNERS, Learner
from prer.migration import SWITCHES, former
from prer.runs.experiment import Experiment, modernised, parse_override
from prer.settings import Auto, Options
from prer.streams.config import StreamConfig
from prer.version import __version__

few = settings(max_examples=60, deadline=None, database=None)
some_text = st.text(max_size=30) | st.sampled_from(
    ['"', "\\", '\\"""', "a\nb\r\nc", "\x00\x1f\x7f\x85\u2028", "🦉", "[x]", "#"]
)


# -- learners and seeds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("learner.name=prerr", r"unknown learner 'prerr', did you mean 'prer'\? \(a learner of .* --plugin FILE\)$"),
        (
            "learner.name=zzz",
            r"^unknown learner 'zzz'; known: naive, [a-z, ]*prer\b.* \(a learner of .* --plugin FILE\)$",
        ),
        ("learner.name=", "unknown learner ''"),
        ("learner.name=5", "unknown learner 5"),
        ("learner.name=[1]", r"unknown learner \[1\]"),
        ("learner.name.x=1", "unknown learner {'x': 1}"),
    ],
)
def test_an_unknown_learner_is_refused_with_those_that_are_known(override, said):
    refused(said, override)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("seeds=two", "seeds='two': give a whole number or a list of them"),
        ("seeds=1.5", "seeds=1.5: give a whole number or a list of them"),
        ("seeds=true", "seeds=True: give a whole number or a list of them"),
        ('seeds=[0, "1"]', r"seeds\[1\]='1': expected a whole number"),
        ("seeds=[0, true]", r"seeds\[1\]=True: expected a whole number"),
        ("seeds=0", "seeds=0: give a number from 1 to 1000"),
        ("seeds=-3", "seeds=-3"),
        ("seeds=[]", "seeds="),
        ("seeds=[1, 1]", "distinct seeds"),
        ("seeds=[-1]", "of 0 or more"),
        ("seeds=1000000000000000000", "seeds=1000000000000000000"),
        ("seeds=a", "seeds='a': give a whole number or a list of them: --seeds 0,1,7"),
    ],
)
def test_wrong_seeds_are_refused(override, said):
    refused(said, override)


def test_an_unknown_data_set_to_take_settings_of_is_refused_with_a_guess():
    refused(r"like='mnits' names no data set with settings to take, did you mean 'mnist'\?", "like=mnits")


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["stream", "learner"])
@pytest.mark.parametrize("value", ["5", "prer", "[1]", "true"])
def test_a_table_that_is_no_table_is_refused(table, value):
    refused(f"'{table}' must be a table", f"{table}={value}")


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


# -- overrides --------------------------------------------------------------------------------------------------------


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


# -- out and in again -------------------------------------------------------------------------------------------------


def again(experiment):
    return Experiment.parse(tomllib.loads(experiment.to_toml()))


@pytest.mark.parametrize("name", LEARNERS)
def test_an_experiment_survives_toml(name):
    experiment = parsed(
        f"learner.name={name}",
        'stream.tasks=[["a", 1], [2, "é"]]',
        "seeds=[5, 3]",
        *(() if name in CLOSED else ("learner.lr=1e-300",)),
    )
    assert again(experiment) == experiment
    assert again(experiment).hash == experiment.hash
    assert again(experiment).to_toml() == experiment.to_toml()
    for field in fields(experiment.learner):
        written = "\n[learner.density]\n" if field.name == "density" else f"\n{field.name} = "
        assert written in experiment.to_toml()


def values_of(kind, meta):
    """Any value that a setting may take."""
    low, high = meta["low"], meta["high"]
    if kind is bool:
        return st.booleans()
    if kind in (int | Auto, float | Auto):
        return st.just("auto") | values_of(int if kind == int | Auto else float, meta)
    if kind is int:
        return st.integers(low, 2**70 if high is None else high)
    if kind is float:
        return st.floats(low, high, allow_nan=False, allow_infinity=False)
    if isinstance(kind, type) and issubclass(kind, Options):
        return st.sampled_from(sorted(kind.kinds.values(), key=str)).flatmap(settings_of)
    if get_args(kind) and get_args(kind)[-1] is Ellipsis:
        return st.lists(st.integers(low, 999), min_size=1, max_size=4).map(tuple)
    return st.sampled_from(get_args(kind))


def settings_of(kind, without=()):
    hints = get_type_hints(kind)
    chosen = [f for f in fields(kind) if f.name not in without]
    return st.builds(kind, **{f.name: values_of(hints[f.name], f.metadata) for f in chosen})


def learners(name):
    kind = (LEARNERS | ABLATION)[name]
    if name in CLOSED:  # settings of networks are refused
        return settings_of(kind, without={f.name for f in fields(Learner)})
    return settings_of(kind)


@few
@given(
    learner=st.sampled_from(sorted(LEARNERS | ABLATION)).flatmap(learners),
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


# -- hash and folder --------------------------------------------------------------------------------------------------


def test_the_hash_ignores_the_name_and_how_the_experiment_was_told():
    assert parsed("name=a").hash == parsed("name=b").hash
    lr = parsed().learner.lr
    told = parsed(stream={"kind": "split", "data": "digits"}, learner={"lr": lr, "name": "prer"}, device="auto")
    assert told.hash == parsed().hash
    assert re.fullmatch(r"[0-9a-f]{8}", parsed().hash)


@pytest.mark.parametrize("override", ["seeds=4", "device=cpu", "stream.classes_per_task=5", "stream.tasks=[[0, 1]]"])
def test_the_hash_differs_with_what_is_run(override):
    assert parsed(override).hash != parsed().hash


def other_value(settings, name):
    """Another value of a setting."""
    old, kind = getattr(settings, name), get_type_hints(type(settings))[name]
    if isinstance(old, bool):
        return not old
    if isinstance(old, str):
        return next(choice for choice in get_args(kind) if choice != old)
    return (*old, 3) if isinstance(old, tuple) else old + 0.125 if kind is float else old + 1


OF_DENSITY = [f"density.{f.name}" for f in fields(FlowSettings)]


@pytest.mark.parametrize("setting", [*(f.name for f in fields(LEARNERS["prer"]) if f.name != "density"), *OF_DENSITY])
def test_the_hash_differs_with_every_setting(setting):
    experiment = parsed()
    learner, (*_, name) = experiment.learner, setting.split(".")
    if setting in OF_DENSITY:
        new = {"density": replace(learner.density, **{name: other_value(learner.density, name)})}
    else:
        new = {name: other_value(learner, name)}
    changed = replace(experiment, learner=replace(learner, **new))
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


# -- settings that are added later ------------------------------------------------------------------------------------


BEFORE = {overrides: parsed(*overrides).hash for overrides in ((), ("learner.epochs=3", "stream.resplit=0.3"))}


@pytest.mark.parametrize("overrides", BEFORE)
def test_adding_a_setting_renames_nothing(extra, overrides):
    assert parsed(*overrides, f"{extra}=3").tables()[extra.partition(".")[0]]["extra"] == 3
    assert parsed(*overrides).hash == parsed(*overrides, f"{extra}=3").hash == BEFORE[overrides]
    assert parsed(*overrides, f"{extra}=4").hash != BEFORE[overrides]


# -- the names of earlier versions ------------------------------------------------------------------------------------

FORMER = "f902fb16"  # the hash in version 0.1.0


def test_the_names_of_the_built_in_experiment_stay():
    assert parsed().folder == "digits-prer-3361c516"


def test_a_run_of_an_earlier_version_is_found_by_its_former_name(tmp_path):
    now, then = tmp_path / "digits-prer-3361c516", tmp_path / f"digits-prer-{FORMER}"
    assert parsed().path(tmp_path) == now
    then.mkdir()
    assert parsed().path(tmp_path) == then
    assert parsed("seeds=4").path(tmp_path) == tmp_path / parsed("seeds=4").folder
    now.mkdir()
    assert parsed().path(tmp_path) == now


def test_a_broken_link_is_a_run_that_is_there(tmp_path):
    then = tmp_path / f"digits-prer-{FORMER}"
    then.symlink_to("nowhere")
    assert parsed().path(tmp_path) == then
    (tmp_path / "digits-prer-3361c516").symlink_to("nowhere")
    assert parsed().path(tmp_path) == tmp_path / "digits-prer-3361c516"


def of_version_0_1_0(experiment):
    tables = experiment.tables()
    tables["stream"]["draw"] = tables["stream"].pop("shuffle_seed")
    return tables | {"learner": SWITCHES | former(tables["learner"])}


def test_tables_of_an_earlier_version_make_the_same_experiment():
    experiment = parsed("stream.shuffle=true", "stream.shuffle_seed=3")
    assert experiment.is_same(of_version_0_1_0(experiment)) and experiment.is_same(experiment.tables())
    assert not experiment.is_same(parsed().tables())
    for other in ({}, {"stream": {"data": 5}}, {"unknown": 1}):
        assert not parsed().is_same(other)


def test_a_setting_that_a_run_lacks_had_its_default_and_not_what_is_recommended_now():
    tables = parsed().tables()
    assert tables["learner"]["density"].pop("blocks") == 4
    assert Experiment.parse_run(tables).learner.density.blocks == LEARNERS["prer"]().density.blocks == 10
    assert Experiment.parse_run({}) == Experiment.parse({}, ["stream.data=digits"], presets=False)


def test_the_context_of_a_checkpoint_is_brought_up_to_date():
    now = {"experiment": parsed().tables(), "prer": __version__, "device": "cpu"}
    assert modernised(now | {"experiment": of_version_0_1_0(parsed()), "prer": "0.1.0"}) == modernised(now) == now
    assert modernised(now | {"prer": "0.0.9"})["prer"] == "0.0.9"  # its numbers may be others
    assert modernised({"prer": __version__}) == {"prer": __version__}
