"""From samples to a learned lesson: what is counted, held out and warned about, and what a failure leaves."""

from datetime import UTC, datetime

import numpy as np
import pytest
import torch
from support.learners import make
from support.lessons import lesson

from prer.data.arrays import Data, as_samples
from prer.errors import InputError
from prer.learners.naive import Naive
from prer.models.model import Model
from prer.models.teaching import FEW, count_right, now, recognised, teach


def data(classes, number=1, kind="vectors", x=None, y=None):
    """The samples of a lesson, or these, and their labels, or these."""
    samples, labels = lesson(classes, number, kind)
    return Data(as_samples(samples if x is None else x), labels if y is None else np.array(y))


def model(name="slda", seeds=1, scenario="class", **settings):
    return Model(make(name, **settings), seeds, "cpu", scenario)


def clouds(*counts, apart=6.0, seed=0):
    """So many samples of the classes a, b, ..., in clouds that are so far apart."""
    y = np.repeat([chr(ord("a") + i) for i in range(len(counts))], counts)
    centres = np.repeat(np.arange(len(counts)) * apart, counts)[:, None]
    return Data(as_samples((centres + np.random.default_rng(seed).normal(size=(len(y), 4))).astype(np.float32)), y)


# -- what is known of a lesson -----------------------------------------------------------------------------------------


def test_a_lesson_is_counted_timed_and_dated():
    known, before = model(), now()
    taught = teach(known, data("ab"))
    assert (taught.samples, taught.held_out, taught.warnings) == (25, None, []) and taught.seconds > 0
    assert known.lessons == [{"view": False, "samples": [12, 13], "when": known.lessons[0]["when"], "held_out": None}]
    assert before <= known.lessons[0]["when"] <= now()
    assert datetime.fromisoformat(now()).tzinfo == UTC


def test_who_asks_is_told_of_the_task_and_then_of_every_epoch():
    told = []

    def begin(task):
        told.append(task.labels)
        return lambda event: told.append(event["event"])

    teach(model("naive"), data("ab"), begin=begin)
    assert told[0] == ("a", "b") and told[1:].count("epoch") == 2


def test_held_out_samples_are_not_learned_and_their_accuracy_is_the_mean_of_the_seeds():
    known = model("ncm", seeds=[0, 1])
    given = clouds(40, 40, apart=1.5)
    taught = teach(known, given, validation=0.25)
    assert taught.samples == 60 and known.lessons[0]["samples"] == [30, 30]
    alone = []
    for seed in (0, 1):
        alone.append(teach(model("ncm", seeds=[seed]), given, validation=0.25).held_out)
    assert len(set(alone)) == 2 and taught.held_out == known.lessons[0]["held_out"] == pytest.approx(np.mean(alone))


def test_a_test_part_is_held_out_without_being_asked():
    given = clouds(20, 20)
    order = np.random.default_rng(0).permutation(40)
    taught = teach(model(), given._replace(x=given.x[order], y=given.y[order], tests=10))
    assert (taught.samples, taught.held_out) == (30, 1.0)


def test_balance_counts_a_small_class_as_much_as_a_large_one():
    given = clouds(400, 40, apart=1.0)
    asked, test = {"epochs": 10, "lr": 3e-3}, clouds(500, 500, apart=1.0, seed=1)
    right = {}
    for balance in (False, True):
        known = model("naive", **asked)
        taught = teach(known, given, balance=balance)
        assert taught.samples == 440 and known.lessons[0]["samples"] == [400, 40]  # repeated ones are not counted
        right[balance] = count_right(known, test.x, test.y.tolist())["b"][0] / 500
    assert right[False] < 0.4 < 0.6 < right[True], right


def test_balance_is_the_same_as_repeating_samples():
    given, repeated = clouds(20, 10, apart=2.0), Data(clouds(20, 10, apart=2.0).x[[*range(30), *range(20, 30)]], None)
    one, other = model(), model()
    teach(one, given, balance=True)
    teach(other, repeated._replace(y=np.repeat(["a", "b"], 20)))
    for name, tensor in one.learner.state().items():
        assert torch.allclose(tensor, other.learner.state()[name]), name


# -- samples as the first lesson had them ------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["bytes", "floats"])
def test_bytes_and_floats_are_the_same_images(first):
    as_bytes = [lesson("ab", 1, "images"), lesson("c", 2, "images")]
    digests = []
    for second in ("bytes", "floats"):
        known = model("slda")
        for (x, y), form in zip(as_bytes, (first, second), strict=True):
            teach(known, Data(as_samples(x if form == "bytes" else (x / 255).astype(np.float32)), y))
        digests.append(known.digest)
        assert known.dtype == (torch.uint8 if first == "bytes" else torch.float32)
    assert digests[0] == digests[1]


def test_a_memory_of_all_samples_is_not_changed_by_who_gave_them():
    known, given = model("joint"), data("ab")
    teach(known, given)
    before = known.tasks[0].x.clone()
    given.x.zero_()
    assert torch.equal(known.tasks[0].x, before)


def test_other_shapes_are_refused():
    known = model()
    teach(known, data("ab"))
    with pytest.raises(InputError, match="trained on samples of shape 5, but these have shape 4"):
        teach(known, clouds(4, 4))
    with pytest.raises(InputError, match="trained on samples of shape 5, but these have shape 1x8x8"):
        teach(known, data("ab", kind="images"))


# -- failures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["naive", "prer", "joint", "replay", "ewc", "slda"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.filterwarnings("ignore")
def test_a_lesson_that_fails_after_training_leaves_the_model_as_it_was(name, error):
    known, whole = model(name), model(name)
    for each in (known, whole):
        teach(each, data("ab"))
    before, learn = known.digest, type(known.learner).learn

    def failing(self, task):
        learn(self, task)
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(known.learner), "learn", failing)
        with pytest.raises(error):
            teach(known, data("cd", 2))
    assert known.digest == before and known.answers() == ["a", "b"]
    assert len(known.lessons) == len(known.tasks) == 1
    for each in (known, whole):
        teach(each, data("cd", 3))
    assert known.digest == whole.digest


def test_a_first_lesson_that_fails_leaves_a_model_that_has_learned_nothing(monkeypatch):
    known, whole = model("naive"), model("naive")
    with monkeypatch.context() as patch:
        patch.setattr(Naive, "after_task", lambda self, task: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            teach(known, data("ab"))
    assert known.tasks == [] and known.lessons == []
    for each in (known, whole):
        teach(each, data("abc", 2))
    assert known.digest == whole.digest


# -- warnings ----------------------------------------------------------------------------------------------------------


def test_classes_with_few_samples_are_named():
    known = model()
    said = teach(known, clouds(FEW, FEW - 1, 3)).warnings
    assert said == ["some classes have fewer than 10 samples to learn from: 'b' (9), 'c' (3)"]
    (said,) = teach(known, clouds(*[2] * 8)).warnings
    assert said.endswith("'a' (2), 'b' (2), 'c' (2), 'd' (2), 'e' (2) and 3 more")
    assert teach(known, clouds(FEW, FEW)).warnings == []


def test_repeated_and_held_out_samples_are_not_among_those_to_learn_from():
    (said,) = teach(model(), clouds(40, 4), balance=True).warnings
    assert said.endswith("'b' (4)")
    (said,) = teach(model(), clouds(40, 12), validation=0.5).warnings
    assert said.endswith("'b' (6)")


def test_too_few_steps_are_named_and_automatic_epochs_are_enough():
    (said,) = teach(model("naive"), clouds(40, 40)).warnings
    assert said.startswith("a task has 80 samples to learn from, so that phase 'classifier' has only 10 steps; raise")
    assert teach(model("naive", epochs="auto"), clouds(40, 40)).warnings == []


def test_known_classes_that_look_different_are_named_with_the_share_that_is_recognised():
    known = model()
    teach(known, clouds(40, 40, 40))
    assert teach(known, clouds(40, 40, seed=1)).warnings == []
    swapped = clouds(40, 20, seed=2)
    swapped.y[:30] = "b"
    (said,) = teach(known, swapped).warnings
    assert said == (
        "new samples of known classes look unlike what is remembered (recognised: 40% of 'b'); "
        "check their labels and how they were made"
    )


def test_what_looks_different_is_asked_of_the_head_that_learns_more():
    known = model("slda", scenario="task")
    teach(known, clouds(40, 40))
    teach(known, Data(clouds(40, 40, 40, 40).x[80:], np.repeat(["c", "d"], 40)))
    assert teach(known, clouds(40, 40, seed=1)).warnings == []
    wrong = clouds(40, 40, seed=1)
    (said,) = teach(known, wrong._replace(y=wrong.y[::-1].copy())).warnings
    assert "(recognised: 0% of 'a', 0% of 'b')" in said


def test_new_classes_look_unlike_nothing():
    known = model()
    for number, classes in enumerate(("ab", "c", "def")):
        assert teach(known, data(classes, number)).warnings == []


def test_the_share_that_is_recognised():
    known, given = model(), clouds(40, 40)
    teach(known, given)
    assert recognised(known, given.x[:40], "a") == 1 and recognised(known, given.x[:40], "b") == 0
    assert recognised(known, given.x[30:50], "a") == 0.5


@pytest.mark.filterwarnings("ignore")
def test_a_memory_that_fades_is_warned_about_and_one_that_holds_is_not():
    short = {"embedding": 8, "epochs": 1, "epochs_autoencoder": 1}
    known = model("prer", **short)
    (said,) = [text for text in teach(known, data("abcd")).warnings if "may be forgotten" in text]
    fading = {label for label, share in known.health.items() if share < 0.8}
    assert fading and all(repr(label) in said for label in fading) and said.startswith("after task 1 ")
    assert not any(repr(label) in said for label in {"a", "b", "c", "d"} - fading)


# -- asking ------------------------------------------------------------------------------------------------------------


def test_correct_predictions_are_counted_by_class_in_the_order_of_arrival():
    known = model()
    teach(known, Data(clouds(40, 40).x, np.repeat([7, 3], 40)))
    teach(known, Data(clouds(40, 40, 40).x[80:], np.repeat([10], 40)))
    test = clouds(3, 4, 5, seed=1)
    labels = np.repeat([7, 3, 10], [3, 4, 5])
    labels[0] = 10
    assert list(count_right(known, test.x, labels.tolist()).items()) == [(3, [4, 4]), (7, [2, 2]), (10, [5, 6])]
    assert count_right(known, test.x[:3], ["7"] * 3) == {7: [3, 3]}  # as a file without types has it
    with pytest.raises(InputError, match="the model has not learned class 'x'; teach it first, or leave out"):
        count_right(known, test.x, ["x"] * 12)
