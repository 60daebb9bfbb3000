"""Settings: unknown keys, wrong types, ranges and choices, former names, and what differs from the defaults."""

from dataclasses import dataclass, fields
from typing import Literal

import pytest
from support.experiments import parsed, refused

from prer.errors import InputError
from prer.migration import MOVED, moved
from prer.runs.experiment import Experiment
from prer.settings import Auto, build, chosen, setting
from prer.streams.config import StreamConfig

# -- wrong keys and values --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("learner.wieght=1", r"^unknown key 'learner.wieght', did you mean 'weight'\?$"),
        ("learner.epoch=1", r"'learner.epoch', did you mean 'epochs'\?"),
        ("learner.density.bloks=1", r"unknown key 'learner.density.bloks', did you mean 'blocks'\?"),
        ("stream.class_per_task=2", r"'stream.class_per_task', did you mean 'classes_per_task'\?"),
        ("learnr.epochs=1", r"^unknown key 'learnr', did you mean 'learner'\?$"),
        ("seed=1", r"did you mean 'seeds'\?"),
        ("zzz=1", "unknown key 'zzz'; known: name, seeds, device, like, stream, learner"),
        ("stream.zzz=1", "unknown key 'stream.zzz'; known: data, kind"),
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
        ("learner.epochs=many", "learner.epochs='many': expected a whole number or auto"),
        ("learner.epochs=true", "learner.epochs=True: expected a whole number"),
        ("learner.epochs=3.0", "learner.epochs=3.0: expected a whole number"),
        ("learner.epochs=[3]", r"learner.epochs=\[3\]: expected a whole number"),
        ("learner.epochs={a=1}", "learner.epochs={'a': 1}: expected a whole number"),
        ("learner.epochs=", "learner.epochs='': expected a whole number"),
        ("learner.epochs=2020-01-01", "learner.epochs=.*: expected a whole number"),
        ("learner.lr=fast", "learner.lr='fast': expected a number"),
        ("learner.lr=true", "learner.lr=True: expected a number"),
        ("learner.lr=[0.1]", "expected a number"),
        ("learner.reencode=1", "learner.reencode=1: expected true or false"),
        ("learner.reencode=yes", "expected true or false"),
        ("learner.density.levels=true", "learner.density.levels=True: expected a whole number"),
        ("learner.channels=5", "learner.channels=5: expected a list"),
        ('learner.channels=["a"]', r"learner.channels\[0\]='a': expected a whole number"),
        ("learner.channels=[1, 2.5]", r"learner.channels\[1\]=2.5: expected a whole number"),
        ("stream.data=5", "stream.data=5: expected a string"),
        ('stream.data=["digits"]', "stream.data=.*: expected a string"),
        ("stream.tasks=[0, 1]", r"stream.tasks\[0\]=0: expected a list"),
        ("stream.tasks=[[0, true]]", r"stream.tasks\[0\]\[1\]=True: expected a (string|whole number|label)"),
        ("name=5", "name=5: expected a string"),
        ("device=0", "device=0: expected a string"),
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
        ("learner.lr=nan", "learner.lr=nan: expected a finite number"),
        ("learner.lr=inf", "learner.lr=inf: expected a finite number"),
        ("learner.channels=[3, 0]", "learner.channels=0: take from 1 to 65536"),
        ("learner.hidden=[]", r"learner.hidden=\[\]: give one value at least"),
        ("stream.classes_per_task=0", "stream.classes_per_task=0: take 1 or more"),
        ("stream.resplit=0.96", "take from 0 to 0.95"),
        ("stream.resplit=-1", "take from 0 to 0.95"),
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
        ("learner.density=spline", "learner.density='spline': choose one of flow, gaussian"),
        ('learner.labels=["head"]', "choose one of none, head, auxiliary, distilled"),
        ("stream.kind=sorted", "stream.kind='sorted': choose one of split"),
    ],
)
def test_a_wrong_choice_is_refused_with_all_choices(override, said):
    refused(said, override)


def test_settings_of_one_learner_are_unknown_to_another():
    assert parsed("learner.weight=2").learner.weight == 2
    refused("unknown key 'learner.weight'", "learner.name=naive", "learner.weight=2")


def test_what_was_meant_is_said():
    refused("unknown key 'data': did you mean 'stream.data'", "data=mnist")
    refused("it is a setting of prer, not of naive", "learner.name=naive", "learner.density.epochs=3")


# -- one setting ------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Some:
    """Settings of every kind."""

    share: float = setting(0.5, "a share", low=0, high=1)
    count: int | Auto = setting("auto", "how many", low=1)
    ridge: float | Auto = setting("auto", "a penalty", low=0)
    sizes: tuple[int, ...] = setting((3,), "sizes", low=1)
    fit: Literal["resize", "pad"] = setting("resize", "how")
    on: bool = setting(False, "whether")
    label: str | int = setting("", "which")


def test_a_setting_has_a_default_a_meaning_and_a_range():
    share = fields(Some)[0]
    assert (share.default, dict(share.metadata)) == (0.5, {"help": "a share", "low": 0, "high": 1})


def test_values_become_the_types_of_their_settings():
    made = build(Some, {"share": 1, "count": 7, "sizes": [1, 2], "fit": "pad", "on": True, "label": 3}, "some", {})
    assert made == Some(share=1.0, count=7, sizes=(1, 2), fit="pad", on=True, label=3)
    assert type(made.share) is float
    assert build(Some, {"count": "auto"}, "some", {}) == Some()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"share": 10**400}, "some.share is too large for a number; choose a smaller one"),
        ({"share": 2}, "some.share=2.0: take from 0 to 1"),
        ({"count": 0}, "some.count=0: take 1 or more"),
        ({"count": "many"}, "some.count='many': expected a whole number or auto"),
        ({"sizes": []}, "some.sizes=[]: give one value at least"),
        ({"label": True}, "some.label=True: expected a label"),
        ({"label": "a\ud800"}, "some.label='a\\ud800': this is not text in UTF-8"),
        ({"shares": 1}, "unknown key 'some.shares', did you mean 'share'?"),
        ({"kind": 1}, "unknown key 'some.kind': it is a setting of another"),
        ({"kin": 1}, "unknown key 'some.kin', did you mean 'kind'?"),
    ],
)
def test_a_wrong_table_is_refused_in_one_sentence(table, said):
    with pytest.raises(InputError) as caught:
        build(Some, table, "some", {"kind": "it is a setting of another"})
    assert str(caught.value) == said


def test_text_that_cannot_be_seen_is_text():
    assert build(Some, {"label": "a\nb\u200b"}, "some", {}).label == "a\nb\u200b"


def test_the_settings_that_differ_from_their_defaults():
    assert chosen(Some()) == {}
    assert chosen(Some(share=0.5, sizes=(3, 3), on=True)) == {"sizes": [3, 3], "on": True}


# -- settings that have another name now ------------------------------------------------------------------------------


def test_the_former_names_are_known_settings_no_more():
    known = {f"stream.{f.name}" for f in fields(StreamConfig)}
    assert known >= set(MOVED.values()) and not known & set(MOVED)


def test_tables_with_former_names_get_the_present_ones():
    tables = {"name": "a", "stream": {"data": "digits", "draw": 3}, "learner": {"draw": 4}}
    assert moved(tables) == {"name": "a", "stream": {"data": "digits", "shuffle_seed": 3}, "learner": {"draw": 4}}
    assert tables["stream"] == {"data": "digits", "draw": 3}  # what was given stays as it is
    assert moved({"stream": 5}) == {"stream": 5}


def test_an_experiment_is_read_by_former_names_too(tmp_path):
    (tmp_path / "e.toml").write_text("[stream]\nshuffle = true\ndraw = 3\n")
    now = parsed("stream.shuffle=true", "stream.shuffle_seed=3")
    assert Experiment.read(tmp_path / "e.toml") == parsed("stream.shuffle=true", "stream.draw=3") == now
    assert "draw" not in now.to_toml().replace("drawn", "")
    assert Experiment.read(tmp_path / "e.toml", ["stream.shuffle_seed=4"]).stream.shuffle_seed == 4
    assert parsed("stream.draw=4", "stream.shuffle=true", stream={"shuffle_seed": 3}).stream.shuffle_seed == 4


def test_a_setting_by_both_of_its_names_is_refused():
    said = "^stream.draw is called stream.shuffle_seed now, and both are given; leave stream.draw out$"
    refused(said, stream={"shuffle": True, "draw": 3, "shuffle_seed": 3})
    refused(said, "stream={draw=3, shuffle_seed=3}")


@pytest.mark.parametrize(("given", "read"), [("auto", "auto"), (2, 2.0), (0.5, 0.5)])
def test_a_number_may_be_chosen_automatically(given, read):
    ridge = build(Some, {"ridge": given}, "some", {}).ridge
    assert ridge == read and type(ridge) is type(read)


@pytest.mark.parametrize("wrong", ["much", True, [1.0]])
def test_what_is_neither_a_number_nor_auto_is_refused(wrong):
    with pytest.raises(InputError, match="expected a number or auto"):
        build(Some, {"ridge": wrong}, "some", {})
