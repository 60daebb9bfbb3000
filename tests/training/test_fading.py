"""Which classes a memory is losing, by the health events of a run."""

import pytest

from prer.training.fading import LOW_AGREEMENT, MOST_NAMES, Fading, agreement, fades


@pytest.mark.parametrize(
    ("values", "worst"),
    [
        ([0.9, 0.5, 1.0], 0.5),
        ([1], 1),
        (None, None),
        ([], None),
        ("0.5", None),
        ([0.5, None], None),
        ([0.5, -1], None),
        ([0.5, float("nan")], None),
    ],
)
def test_the_worst_seed_counts(values, worst):
    assert agreement({"agreement_decoded": values}) == worst


def test_samples_that_are_replayed_as_embeddings_count_before_decoding():
    event = {"agreement": [0.95, 0.9], "agreement_decoded": [0.2, 0.1]}
    assert agreement(event) == 0.1 and agreement(event | {"replayed": "embeddings"}) == 0.9


def test_a_class_fades_below_a_limit():
    assert fades(LOW_AGREEMENT - 0.001) and not fades(LOW_AGREEMENT)


def health(label, share):
    return {"event": "health", "class": label, "agreement_decoded": [share, 1.0]}


def test_a_warning_comes_after_the_task_and_names_the_worst_first():
    fading = Fading()
    assert [fading.warnings(health(name, share)) for name, share in (("a", 0.7), ("b", 0.9), ("c", 0.1))] == [[]] * 3
    (warning,) = fading.warnings({"event": "task", "task": 1})
    assert warning.startswith("after task 2 ") and "(recognised in the worst seed: 10% of 'c', 70% of 'a')" in warning
    assert fading.warnings({"event": "task", "task": 2}) == []  # each task has health events of its own


@pytest.mark.parametrize(
    ("about", "setting"), [({}, "learner.epochs_autoencoder"), ({"replayed": "embeddings"}, "learner.epochs")]
)
def test_the_setting_that_may_help_is_one_that_has_an_effect(about, setting):
    fading = Fading()
    fading.warnings(health("a", 0.1) | {"agreement": [0.1]} | about)
    (warning,) = fading.warnings({"event": "task", "task": 1})
    assert warning.endswith(f"More epochs may help, {setting} first.")


def test_a_class_with_several_entries_is_named_once_with_its_worst():
    fading = Fading()
    for name, share in (("a", 0.7), ("a", 0.2), ("b", 0.5), ("a", 0.6)):
        fading.warnings(health(name, share))
    (warning,) = fading.warnings({"event": "task", "task": 1})
    assert "(recognised in the worst seed: 20% of 'a', 50% of 'b')" in warning


def test_many_classes_are_counted():
    fading = Fading()
    for label in range(MOST_NAMES + 3):
        fading.warnings(health(label, 0.5))
    (warning,) = fading.warnings({"event": "task", "task": "x"})
    assert warning.startswith("after a task ") and warning.count("50% of ") == MOST_NAMES and "and 3 more" in warning
