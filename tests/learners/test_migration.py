"""Settings of earlier versions are found where they are now."""

import pytest
from support.experiments import parsed

from prer.errors import InputError
from prer.learners import PRER
from prer.learners.migration import DENSITY, SWITCHES, former, present, present_name
from prer.learners.variants import PRERVariant


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
    with pytest.raises(InputError, match=r"unknown key 'learner.density.blocks'"):
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
