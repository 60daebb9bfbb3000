"""Which method is recommended."""

import pytest

from prer.runs.compare import Compared, advice, choice, classes_per_lesson


def found(**accuracy_and_bytes):
    return [Compared(name, accuracy, 0.5, kept, 0, 1.0) for name, (accuracy, kept) in accuracy_and_bytes.items()]


def test_the_most_accurate_method_is_taken():
    rivals = found(prer=(80, 100), slda=(90, 100), naive=(99, 0), joint=(99, 10_000))
    assert choice(rivals).name == "slda"


@pytest.mark.parametrize(("accuracy", "kept", "taken"), [(89.5, 50, "ncm"), (88.5, 50, "slda"), (89.5, 90, "slda")])
def test_a_method_that_is_as_good_and_keeps_far_less_is_taken(accuracy, kept, taken):
    assert choice(found(slda=(90, 100), ncm=(accuracy, kept))).name == taken


@pytest.mark.parametrize(("std", "taken"), [(None, "slda"), (1.4, "slda"), (1.6, "ncm")])
def test_a_lead_within_the_spread_over_seeds_is_none(std, taken):
    rivals = [Compared("slda", 90, std, 100, 0, 1.0), Compared("ncm", 88.5, 9.0, 50, 0, 1.0)]
    assert choice(rivals).name == taken


def test_the_advice_says_what_prer_and_joint_reach():
    rivals = found(prer=(80.04, 100), slda=(90, 100), joint=(95, 9))
    text = advice(rivals, {"prer": "1 kB", "slda": "2 kB", "joint": "9 bytes"})
    assert text == (
        "Take slda: 90.0 % correct after the last lesson; it keeps 2 kB and no samples. prer reaches 80.0 % here. "
        "If you may keep all data, train on all of it instead (joint): 95.0 %."
    )
    assert "joint" not in advice(found(slda=(90, 1), joint=(92.9, 9)), {"slda": "", "joint": ""})
    assert advice(found(naive=(20, 0)), {"naive": ""}) == "" and choice([]) is None


def test_the_advice_offers_a_method_that_keeps_far_less():
    rivals = found(ranpac=(98.6, 10_000), slda=(95.9, 1000), ncm=(92.5, 10))
    text = advice(rivals, {"ranpac": "10 kB", "slda": "1 kB", "ncm": "10 bytes"})
    assert text.endswith("If that is too much to keep, take slda: 95.9 %, 1 kB.")
    assert "too much" not in advice(rivals[::2], {"ranpac": "10 kB", "ncm": "10 bytes"})


@pytest.mark.parametrize("classes", range(1, 200))
def test_there_are_at_most_five_lessons_and_two_where_possible(classes):
    lessons = -(-classes // classes_per_lesson(classes))
    assert lessons <= 5 and (lessons >= 2 or classes == 1)
