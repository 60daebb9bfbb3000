"""Tasks from a pool of samples and the tasks before: heads, outputs, and what a model's next lesson holds."""

import numpy as np
import pytest
from support.arrays import NAMES, parts, vectors

from prer.data.arrays import Data
from prer.errors import InputError
from prer.streams.making import lesson_of, places_in
from prer.streams.pool import as_pool

ASKED = {"class": ("ab", "c", "da"), "task": ("ab", "cd", "b"), "domain": ("abc", "abc", "ca")}


def pool(labels, tests=0):
    """A pool with one sample for each label, the last ones as a test part."""
    y = np.array(list(labels) if isinstance(labels, str) else labels)
    return as_pool(Data(vectors(len(y)), y, tests), None, None, None)


def made(scenario, *given):
    """The tasks of a model that is taught these labels, eight samples of each."""
    tasks = []
    for labels in given:
        tasks.append(lesson_of(pool(np.repeat(list(labels), 8)), tasks, scenario))
    return tasks


# -- heads and outputs -------------------------------------------------------------------------------------------------


def test_without_the_task_one_head_grows_and_known_classes_keep_their_outputs():
    tasks = made("class", *ASKED["class"])
    assert [(task.index, task.head, task.width) for task in tasks] == [(0, 0, 2), (1, 0, 3), (2, 0, 4)]
    assert [dict(zip(task.labels, task.outputs, strict=True)) for task in tasks] == [
        {"a": 0, "b": 1},
        {"c": 2},
        {"a": 0, "d": 3},
    ]


def test_with_the_task_new_classes_get_a_head_and_known_ones_use_theirs():
    tasks = made("task", *ASKED["task"])
    assert [(task.head, task.width, task.outputs) for task in tasks] == [(0, 2, (0, 1)), (1, 2, (0, 1)), (0, 2, (1,))]


def test_the_task_whose_head_learns_more_may_be_named():
    earlier = made("task", "ab", "abc")
    assert lesson_of(pool("aabb"), earlier, "task").head == 0
    named = lesson_of(pool("aabb"), earlier, "task", task=2)
    assert (named.head, named.width, named.outputs) == (1, 3, (0, 1))


def test_domains_share_a_head_and_may_lack_classes():
    tasks = made("domain", *ASKED["domain"])
    assert [(task.head, task.width, task.outputs) for task in tasks] == [(0, 3, (0, 1, 2))] * 2 + [(0, 3, (0, 2))]


def test_a_single_class_is_a_lesson_if_nobody_tells_the_task_or_a_head_knows_it():
    assert [task.labels for task in made("class", "a", "b")] == [("a",), ("b",)]
    assert made("task", "ab", "a")[1].head == 0
    for scenario in ("task", "domain"):
        with pytest.raises(
            InputError, match=r"task 1 has one class, 'a'; at least two are needed, or scenario='class'"
        ):
            made(scenario, "a")


# -- rows --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", ASKED)
def test_every_sample_is_learned_unless_something_else_is_asked(scenario):
    for task in made(scenario, *ASKED[scenario]):
        for seed in (0, 7):
            train, test = parts(task, seed)
            assert (sorted(train), test) == (list(range(len(task.labels) * 8)), [])


def test_a_share_of_every_class_is_held_out_by_each_seed_for_itself():
    task = lesson_of(pool("a" * 40 + "b" * 10), [], "class", validation=0.2)
    splits = [parts(task, seed) for seed in (0, 1)]
    for train, test in splits:
        assert sorted(train + test) == list(range(50))
        assert [sum(row < 40 for row in rows) for rows in (train, test)] == [32, 8] and len(test) == 10
    assert splits[0] != splits[1]


def test_a_given_test_part_is_not_learned():
    train, test = parts(lesson_of(pool("abababab", tests=2), [], "class"))
    assert (sorted(train), sorted(test)) == ([0, 1, 2, 3, 4, 5], [6, 7])


def test_balance_repeats_small_classes_but_not_what_is_held_out():
    y = "a" * 20 + "b" * 7 + "c"
    train, test = parts(lesson_of(pool(y), [], "class", balance=True))
    assert test == [] and set(train) == set(range(28))
    assert {label: sum(y[row] == label for row in train) for label in "abc"} == {"a": 20, "b": 20, "c": 20}
    assert {train.count(row) for row in range(20, 27)} == {2, 3}  # as evenly as possible
    train, test = parts(lesson_of(pool(y[:-1]), [], "class", balance=True, validation=0.5))
    assert not set(train) & set(test) and len(set(test)) == len(test) == 14
    assert sum(row < 20 for row in train) == sum(row >= 20 for row in train) == 10


def test_the_split_of_a_lesson_does_not_depend_on_the_data_of_earlier_ones():
    x, others = pool("c" * 20), (pool("a" * 20 + "b" * 20), pool("ab"))
    splits = [parts(lesson_of(x, [lesson_of(other, [], "class")], "class", validation=0.3), 5) for other in others]
    assert splits[0] == splits[1]


def test_places_are_those_in_the_group_of_a_label():
    found = places_in(pool(NAMES[[0, 1, 2, 3, 2]]), [["cat", "ant"], ["bee"]])
    assert found.tolist() == [1, 0, 0, -1, 0]


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "labels", "more", "sentence"),
    [
        ("class", "aabb", {"validation": 1}, "validation=1: the share to hold out must be at least 0 and less than 1"),
        ("class", "aabb", {"validation": -0.1}, "validation=-0.1"),
        ("class", "aabb", {"validation": float("nan")}, "validation=nan"),
        ("class", "aab", {"validation": 0.5}, "class 'b' has only one sample, so none can be held out"),
        ("class", "aa", {"task": 1}, "task=1 has no meaning in scenario='class', which has one head; leave it out"),
        ("domain", "aa", {"task": 1}, "no meaning in scenario='domain'"),
        ("domain", "aaxx", {}, "class 'x' is new, but all domains have the same classes; use scenario='class'"),
        ("task", "aa", {"task": 3}, "task 3 does not exist; give 1 to 2, or leave it out for a new task"),
        ("task", "aa", {"task": 0}, "task 0 does not exist"),
        ("task", "aaxx", {"task": 1}, "task 1 does not know class 'x'; leave out task, and a new one is made"),
        ("task", "xx", {}, "task 3 has one class, 'x'; at least two are needed, or scenario='class'"),
    ],
)
def test_a_lesson_that_cannot_be_is_refused_in_a_sentence(scenario, labels, more, sentence):
    earlier = made(scenario, *ASKED[scenario][:2])
    with pytest.raises(InputError, match=sentence) as caught:
        lesson_of(pool(labels), earlier, scenario, **more)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("first", "then"), [([1, 1, 2, 2], ["1", "3"]), (["1", "1", "2", "2"], [3, 1])])
def test_a_label_is_a_number_or_a_text_in_all_lessons(first, then):
    earlier = [lesson_of(pool(first), [], "class")]
    with pytest.raises(InputError, match=r"label '?1'? was '?1'? in an earlier task; use numbers or text in all tasks"):
        lesson_of(pool(then), earlier, "class")


def test_a_class_that_is_only_in_the_test_part_is_refused():
    with pytest.raises(InputError, match="class 'b' has no sample in the training part; drop it from the test part"):
        lesson_of(pool("aaab", tests=2), [], "class")
