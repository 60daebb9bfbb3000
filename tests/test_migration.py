"""Settings of earlier versions are found where they are now."""

from dataclasses import fields

import pytest
from support.experiments import parsed

from prer.densities.flow import FlowSettings
from prer.densities.gaussian import Gaussian
from prer.errors import InputError
from prer.learners import PRER
from prer.learners.variants import PRERVariant
from prer.migration import DENSITY, SWITCHES, former, present, present_name
from prer.runs.folder import RunFolder
from prer.sweeps.sweep import Sweep


@pytest.mark.parametrize(("old", "new"), DENSITY.items())
def test_a_setting_of_the_flow_is_read_under_its_old_name(old, new):
    default = getattr(parsed().learner.density, new)
    value = not default if isinstance(default, bool) else "first" if new == "condition" else 7
    given = parsed(f"learner.{old}={str(value).lower()}").learner.density
    assert getattr(given, new) == value
    assert given == parsed(f"learner.density.{new}={str(value).lower()}").learner.density


@pytest.mark.parametrize("key", SWITCHES)
def test_a_switch_of_the_ablation_makes_a_variant_unless_it_has_its_default(key):
    other = {"schedule": "joint", "distance": "cosine", "sparsity_on": "layers", "norm": "running"}
    other |= {"permutation": "random", "restart": True, "one_hot": True, "augment": False, "bounded": False}
    assert type(parsed(learner={"name": "prer", key: SWITCHES[key]}).learner) is PRER
    variant = parsed(learner={"name": "prer", key: other[key]}).learner
    assert type(variant) is PRERVariant and getattr(variant, key) == other[key]
    assert parsed(learner={"name": "prer-variant", key: other[key]}).learner == variant


def test_a_variant_has_the_settings_that_are_recommended_for_prer():
    assert parsed("learner.name=prer-variant").learner.density == parsed().learner.density
    assert parsed("learner.name=prer-variant").learner.weight == parsed().learner.weight


def test_a_later_name_wins_over_an_earlier_one_whichever_way_they_are_written():
    assert parsed("learner.density.blocks=6", learner={"blocks": 5}).learner.density.blocks == 6
    assert parsed("learner.blocks=6", learner={"density": {"blocks": 5}}).learner.density.blocks == 6


def test_both_names_in_one_place_are_refused():
    with pytest.raises(InputError, match=r"learner.blocks is called learner.density.blocks now, and both are given"):
        parsed(learner={"blocks": 5, "density": {"blocks": 5}})


def test_another_density_drops_the_settings_of_the_flow_that_are_recommended():
    assert parsed("learner.density=gaussian").learner.density.name == "gaussian"
    assert parsed(learner={"density": "gaussian", "blocks": 3}).learner.density.name == "gaussian"
    assert parsed("learner.density=gaussian", "learner.blocks=3").learner.density.name == "gaussian"
    with pytest.raises(InputError, match=r"learner.density is 'gaussian', which has no settings; leave out blocks"):
        parsed("learner.density=gaussian", "learner.density.blocks=3")


def test_settings_of_other_learners_stay_where_they_are():
    assert present({"blocks": 3, "density": "flow"}, "mine") == {"blocks": 3, "density": "flow"}
    assert present_name({"distance": "l2"}, "er") == ("er", {"distance": "l2"})
    assert former({"name": "er", "distance": "l2"}) == {"name": "er", "distance": "l2"}


def test_former_names_lead_back_to_the_same_settings():
    for overrides in ((), ("learner.schedule=joint", "learner.blocks=3"), ("learner.density=gaussian",)):
        table = parsed(*overrides).tables()["learner"]
        old = former(table)
        assert old.pop("name") == "prer" and not old.keys() & {"epochs"} - table.keys()
        name, new = present_name(present(old, "prer"), "prer")
        assert {**SWITCHES, **table} == {**SWITCHES, **new, "name": name}


def test_a_default_name_does_not_change_with_the_class():
    assert parsed("learner.schedule=joint").folder == "digits-prer-433e33fc"
    assert parsed("learner.name=prer-variant", "learner.schedule=joint").hash == "433e33fc"


@pytest.mark.parametrize("former", ["8ae3d119", "9fa872ef"])  # of the last version, and of 0.1.0
def test_a_gaussian_of_an_earlier_version_is_found_although_its_hash_covered_settings_of_a_flow(former, tmp_path):
    experiment = parsed("learner.density=gaussian")
    assert experiment.path(tmp_path) == tmp_path / experiment.folder
    (tmp_path / f"digits-prer-{former}").mkdir()
    assert experiment.path(tmp_path) == tmp_path / f"digits-prer-{former}"
    assert parsed("learner.density=gaussian", "learner.lr=1").path(tmp_path).name != f"digits-prer-{former}"


def test_a_switch_of_another_type_is_not_its_default():
    with pytest.raises(InputError, match=r"learner.restart=0: expected true or false"):
        parsed("learner.restart=0")


def test_recommended_settings_of_the_density_are_merged_in_python_as_on_the_command_line():
    assert PRER.like("digits", density={"blocks": 3}).density == parsed("learner.density.blocks=3").learner.density
    assert PRER.like("digits", density="flow").density == parsed().learner.density
    assert PRER.like("digits", density={"name": "gaussian"}).density.name == "gaussian"


def test_a_density_may_be_set_after_construction():
    learner = PRER(epochs=1, epochs_autoencoder=1)
    learner.density = "gaussian"
    learner.start((3,), (0,))
    assert isinstance(learner.density_, Gaussian)


def test_the_switches_are_the_settings_that_only_the_variant_has():
    of_prer = {f.name for f in fields(PRER)}
    assert {f.name: f.default for f in fields(PRERVariant) if f.name not in of_prer} == SWITCHES
    assert set(DENSITY.values()) == {f.name for f in fields(FlowSettings)}


# -- sweeps ------------------------------------------------------------------------------------------------------------


def points(text, overrides=(), base=None, tmp_path=None):
    if base is not None:
        (tmp_path / "base.toml").write_text(base)
    (tmp_path / "sweep.toml").write_text(text)
    return Sweep.read(tmp_path / "sweep.toml", overrides).points()


@pytest.mark.parametrize("base", ["[learner]\nlr_flow = 0.5", "[learner.density]\nlr = 0.5"])
@pytest.mark.parametrize("key", ["learner.lr_flow", "learner.density.lr"])
def test_an_axis_overrides_a_base_whichever_names_they_have(key, base, tmp_path):
    found = points(f'base = "base.toml"\n[axes]\n"{key}" = [0.1, 0.2]', base=base, tmp_path=tmp_path)
    assert [point.learner.density.lr for point in found] == [0.1, 0.2]


@pytest.mark.parametrize("key", ["learner.lr_flow", "learner.density.lr"])
def test_an_override_replaces_an_axis_under_either_name(key, tmp_path):
    found = points('[axes]\n"learner.lr_flow" = [0.1, 0.2]', [f"{key}=0.3"], tmp_path=tmp_path)
    assert [point.learner.density.lr for point in found] == [0.3]


def test_an_axis_over_densities_keeps_the_settings_of_the_flow(tmp_path):
    axes = '[axes]\n"learner.density.blocks" = [2, 3]\n"learner.density" = ["flow", "gaussian"]'
    text = f"[learner.density]\nepochs = 1\n{axes}"
    found = [point.learner.density for point in points(text, tmp_path=tmp_path)]
    assert [(d.name, getattr(d, "blocks", 0), getattr(d, "epochs", 0)) for d in found] == [
        ("flow", 2, 1),
        ("gaussian", 0, 0),
        ("flow", 3, 1),
    ]
    only = points(text, ["learner.density.name=flow"], tmp_path=tmp_path)
    assert [point.learner.density.blocks for point in only] == [2, 3]


def test_random_values_do_not_change_with_the_name_of_a_setting(tmp_path):
    rates = []
    for key, seed in (("learner.lr_flow", "draw"), ("learner.density.lr", "random_seed")):
        text = f'budget = 3\n{seed} = 7\n[draws]\n"{key}" = {{low = 0.1, high = 0.9}}'
        rates.append([point.learner.density.lr for point in points(text, tmp_path=tmp_path)])
    assert rates[0] == rates[1] and len(set(rates[0])) == 3


def test_both_names_of_the_seed_of_a_sweep_are_refused(tmp_path):
    with pytest.raises(InputError, match="draw is called random_seed now, and both are given"):
        points("draw = 1\nrandom_seed = 1", tmp_path=tmp_path)


# -- run folders -------------------------------------------------------------------------------------------------------


def test_the_settings_of_an_old_run_are_shown_where_they_are_now(tmp_path):
    folder = RunFolder(tmp_path)
    text = (
        'name = "old"\n[learner]\nname = "prer"\nlr_flow = 0.5\ndensity = "flow"\nschedule = "joint"\nnorm = "batch"\n'
    )
    (tmp_path / "experiment.toml").write_text(text)
    expected = {"name": "prer-variant", "schedule": "joint", "density": {"name": "flow", "lr": 0.5}}
    assert folder.experiment["learner"] == expected
    for key in ("learner.lr_flow", "learner.density.lr"):
        assert folder.setting(key) == "0.5"
    assert folder.setting("learner.nothing") == "-"
