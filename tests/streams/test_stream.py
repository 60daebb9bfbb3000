"""Streams: which classes each task has, and in what order; views; tasks that arrive one by one; the checksum."""

import numpy as np
import pandas
import pytest
import torch
from support.arrays import FOUR, IMAGES, NAMES, X, Y, images, parts, vectors
from support.tables import FEATURES, table

from prer.data.reading import Reading
from prer.errors import InputError
from prer.streams.stream import Stream, arriving

# -- classes in order -------------------------------------------------------------------------------------------------


def test_classes_keep_the_order_they_are_given():
    stream = Stream.split(vectors(12), NAMES[FOUR], tasks=[["dog", "ant"], ["cat", "bee"]])
    assert [(task.index, task.head, task.labels) for task in stream] == [(0, 0, ("dog", "ant")), (1, 1, ("cat", "bee"))]
    assert stream[0].y.tolist() == [1] * 3 + [1] * 3 + [0] * 3 + [0] * 3


def test_classes_that_no_task_names_are_left_out():
    (task,) = Stream.split(vectors(12), FOUR, tasks=[[3, 1]])
    train, test = parts(task)
    assert sorted(train + test) == [3, 4, 5, 9, 10, 11]
    assert task.y.tolist() == [-1] * 3 + [1] * 3 + [-1] * 3 + [0] * 3


@pytest.mark.parametrize(
    ("classes", "per_task", "sizes"), [(5, 3, [3, 2]), (6, 4, [4, 2]), (4, 2, [2, 2]), (3, 9, [3])]
)
def test_the_last_task_may_have_fewer_classes(classes, per_task, sizes):
    y = np.arange(classes * 4) % classes
    stream = Stream.split(vectors(len(y)), y, classes_per_task=per_task)
    assert [len(task.labels) for task in stream] == [task.width for task in stream] == sizes
    assert [label for task in stream for label in task.labels] == list(range(classes))
    assert len(stream) == len(sizes)


@pytest.mark.parametrize("name", ["dog", 7])
def test_an_order_of_labels_may_be_given_and_leaves_the_others_out(name):
    labels = ["ant", "bee", "cat", "dog"] if name == "dog" else [0, 3, 5, 7]
    stream = Stream.split(vectors(12), np.array(labels)[FOUR], order=[name, labels[1], labels[0]], classes_per_task=3)
    assert [task.labels for task in stream] == [(name, labels[1], labels[0])]
    assert sorted(np.concatenate(parts(stream[0])).tolist()) == [*range(6), *range(9, 12)]


# Like the splits: they must never change.
SHUFFLED = {0: [6, 7, 0, 5, 9, 2, 4, 3, 8, 1], 1: [2, 8, 1, 5, 3, 9, 6, 0, 4, 7]}


@pytest.mark.parametrize("seed", SHUFFLED)
def test_a_random_order_of_classes_is_the_same_for_ever(seed):
    stream = Stream.split(vectors(40), np.arange(40) % 10, shuffle=seed)
    assert [label for task in stream for label in task.labels] == SHUFFLED[seed]


def test_false_does_not_shuffle():
    assert Stream.split(vectors(12), FOUR, shuffle=False)[0].labels == (0, 1)
    assert Stream.split(vectors(12), FOUR, order=np.array([3, 2, 1, 0]))[0].labels == (3, 2)


def test_many_classes_are_no_trouble():
    y = np.arange(60_000) % 2000
    stream = Stream.split(np.zeros((60_000, 1), np.float32), y)
    assert len(stream) == 1000
    assert sorted(np.concatenate(stream[999].split.rows).tolist()) == sorted(np.flatnonzero(y >= 1998).tolist())


BAD_OPTIONS = {
    "one class per task": ({"classes_per_task": 1}, "at least two classes"),
    "no class per task": ({"classes_per_task": 0}, "at least two classes"),
    "a task with one class": ({"tasks": [[0]]}, "task 1 has one class"),
    "a class in two tasks": ({"y": FOUR[:8], "tasks": [[0, 1], [1, 2]]}, "class 1 is named twice"),
    "a class twice in a task": ({"tasks": [[0, 0]]}, "class 0 is named twice"),
    "an unknown class": ({"tasks": [[0, 7]]}, "class 7 is requested, but no sample has this label"),
    "a class by another type": ({"tasks": [["0", "1"]]}, "class '0' is requested"),
    "no tasks": ({"tasks": []}, "task"),
    "an empty task": ({"tasks": [[]]}, "task 1 has no class"),
    "resplit 0": ({"resplit": 0.0}, "between 0 and 1"),
    "resplit 1": ({"resplit": 1.0}, "between 0 and 1"),
    "resplit NaN": ({"resplit": float("nan")}, "between 0 and 1"),
    "resplit negative": ({"resplit": -0.2, "test": (X, Y)}, "between 0 and 1"),
    "a class with one sample": ({"y": [0] * 7 + [1]}, "class 1 has only one sample"),
    "only one class": ({"y": [0] * 8}, "one class"),
    "test labels of another kind": ({"test": (X, np.array(["a", "b"])[Y])}, "numbers and those of the other strings"),
    "test part of another width": ({"test": (vectors(8, 4), Y)}, "different shapes or types"),
    "test part of another type": ({"x": IMAGES, "test": (IMAGES / 255, Y)}, "different shapes or types"),
    "test part of images": ({"test": (IMAGES, Y)}, "different shapes or types"),
    "test part of another length": ({"test": (X, Y[:5])}, "x has 8 samples and y has 5 labels"),
    "a class not in the test part": ({"test": (X, Y * 0)}, "class 1 has no sample in the test part"),
    "a class not in the training part": (
        {"y": Y + 1, "test": (X, [0, 1, 1, 1, 2, 2, 2, 2]), "classes_per_task": 3},
        "class 0 has no sample in the training",
    ),
}


@pytest.mark.parametrize(("given", "said"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_bad_options_are_refused_in_one_sentence(given, said):
    with pytest.raises(InputError, match=said) as caught:
        Stream.split(**{"x": X, "y": Y} | given)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_lone_last_class_is_refused_with_what_would_fit():
    with pytest.raises(InputError, match=r"task 2 has one class, 2; .* to one of 3$"):
        Stream.split(vectors(12), np.arange(12) % 3, classes_per_task=2)


# -- the same classes, seen in another way ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["permuted", "rotated"])
def test_views_share_one_copy_one_head_and_one_split(kind):
    stream = getattr(Stream, kind)(images(40, 9, 9), np.arange(40) % 4, tasks=4, name="n")
    assert (len(stream), stream.name) == (4, "n")
    for task in stream:
        assert (task.head, task.width, task.outputs) == (0, 4, (0, 1, 2, 3))
        assert task.x is stream[0].x
        assert task.y is stream[0].y
        assert parts(task, 5) == parts(stream[0], 5)
    rows = stream[0].test_rows([0, 1])
    seen = [task.samples(rows)[0] for task in stream]
    assert torch.equal(seen[0], stream[0].x[rows])  # the first task sees things as they are
    assert all(not torch.equal(a, b) for i, a in enumerate(seen) for b in seen[:i])
    assert {(s.dtype, s.shape) for s in seen} == {(torch.uint8, (2, 8, 1, 9, 9))}


def test_rotations_go_in_equal_steps():
    stream = Stream.rotated(images(8, 8, 8), Y, tasks=4, degrees=270)
    for turns, task in enumerate(stream):
        assert torch.equal(task.transformed(task.x), torch.rot90(task.x, turns, (-2, -1)))


def test_a_seed_gives_the_orders_of_the_pixels():
    kinds = [Stream.permuted(images(8, 8, 8), Y, tasks=2, seed=seed)[1] for seed in (0, 0, 1)]
    first, again, other = (task.transformed(task.x) for task in kinds)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_vectors_cannot_be_rotated_cropped_or_flipped():
    with pytest.raises(InputError, match="only images can be rotated"):
        Stream.rotated(X, Y)
    with pytest.raises(InputError, match="only images can be cropped"):
        Stream.split(X, Y).augmented(flip=True)


# -- tasks that are given one by one ----------------------------------------------------------------------------------


def test_each_pair_is_a_task_of_its_own_size_and_classes():
    stream = Stream.of([(vectors(9), [4, 4, 4, 2, 2, 2, 3, 3, 3]), (vectors(20), np.repeat(["a", "b"], 10))])
    assert [task.labels for task in stream] == [(2, 3, 4), ("a", "b")]
    assert [task.head for task in stream] == [0, 1]
    assert sorted(np.concatenate(parts(stream[1])).tolist()) == list(range(20))
    assert stream[0].y.tolist() == [2] * 3 + [0] * 3 + [1] * 3


def test_known_classes_go_on_with_their_head_and_others_get_a_new_one():
    brought = [["b", "a", "c"], ["c", "a"], ["b"], ["c", "d"], ["d", "c"], ["a", "b", "c"]]
    stream = Stream.of((vectors(6 * len(labels)), labels * 6) for labels in brought)
    assert [task.head for task in stream] == [0, 0, 0, 1, 1, 0]
    assert [task.labels for task in stream] == [tuple(sorted(labels)) for labels in brought]
    heads = {0: ("a", "b", "c"), 1: ("c", "d")}
    for task in stream:
        assert task.width == len(heads[task.head])
        assert tuple(heads[task.head][output] for output in task.outputs) == task.labels


def test_a_given_test_part_may_come_with_each_pair():
    stream = Stream.of([(X, Y, X[:2] + 100, [0, 1]), (X, Y)])
    assert [len(part) for part in parts(stream[0])] == [8, 2]
    assert [len(part) for part in parts(stream[1])] == [6, 2]
    assert (stream[0].x[parts(stream[0])[1]] >= 100).all()


def test_tasks_arrive_one_by_one_and_are_not_asked_for_in_advance():
    asked = []

    def days():
        for day in range(3):
            asked.append(day)
            yield vectors(8) + day, Y

    coming = arriving(days())
    assert asked == []
    assert next(coming).index == 0
    assert asked == [0]
    assert [task.head for task in coming] == [0, 0]


def test_an_array_that_is_filled_anew_for_each_task_is_copied():
    x = vectors(8)

    def days():
        for day in range(2):
            x[:] = day
            yield x, Y

    assert [float(task.x.mean()) for task in list(arriving(days()))] == [0.0, 1.0]
    read_only = vectors(8)
    read_only.flags.writeable = False  # as a mapped file is
    assert next(arriving([(read_only, Y)])).x.data_ptr() == read_only.ctypes.data


BAD_TASKS = {
    "a new class alone": ([(X, Y), (X, np.full(8, 5))], "task 2 has one class, 5"),
    "another shape": ([(X, Y), (vectors(8, 4), Y)], "task 2 differs from the first task in the shape or type"),
    "another type": ([(IMAGES, Y), (IMAGES / 255, Y)], "task 2 differs from the first task in the shape or type"),
    "three parts": ([(X, Y, X)], r"task 1: give \(x, y\)"),
    "no samples": ([(X[:0], Y[:0])], "x has shape"),
    "samples alone": ([(X,)], "task 1: give"),
    "nothing": ([], "there are no tasks"),
}


@pytest.mark.parametrize(("sources", "said"), BAD_TASKS.values(), ids=BAD_TASKS)
def test_a_bad_task_is_refused_in_one_sentence(sources, said):
    with pytest.raises(InputError, match=said):
        Stream.of(sources)


# -- the checksum -----------------------------------------------------------------------------------------------------


def test_a_checksum_is_of_the_data_and_the_labels():
    x, y = images(8, 8, 8), np.arange(8) % 4
    assert Stream.split(x, y).sha256 == Stream.split(x.copy(), y.copy()).sha256
    changed = x.copy()
    changed[7, 7, 7] ^= 1
    swapped = np.array([2, 1, 0, 3])[y]  # each label changes its task, and keeps its place there
    given = [Stream.split(x[:n], y[:n], test=(x[n:], y[n:])) for n in (4,)]
    others = [Stream.split(changed, y), Stream.split(x, (y + 1) % 4), Stream.split(x, y + 1), Stream.split(x, swapped)]
    assert len({stream.sha256 for stream in (Stream.split(x, y), *others, *given)}) == 6
    assert Stream.split(x, y, tasks=np.array([[0, 1], [2, 3]])).sha256 == Stream.split(x, y).sha256
    assert Stream.of([(x, y)]).sha256 == Stream.split(x, y).sha256  # the same data, in other tasks
    second = images(8, 8, 8) // 2
    assert Stream.of([(x, y), (x, y)]).sha256 != Stream.of([(x, y), (second, y)]).sha256


def test_how_data_is_read_does_not_change_its_checksum():
    frame = table()
    named, bare = Stream.split(frame, "kind"), Stream.split(frame[FEATURES].to_numpy(), frame["kind"].to_numpy(str))
    assert named.reading != bare.reading == Reading() and named.sha256 == bare.sha256


def test_a_label_that_is_a_number_and_text_is_refused():
    first, second = (vectors(8), [1, 2] * 4), (vectors(8), ["1", "x"] * 4)
    with pytest.raises(InputError, match="label '1' was 1 in an earlier task; use numbers or text in all tasks"):
        Stream.of([first, second], scenario="class")


def test_a_test_class_without_training_samples_says_what_to_do():
    with pytest.raises(InputError, match="class 2 has no sample in the training part; drop it from the test part"):
        Stream.of([(vectors(8), [0, 1] * 4, vectors(9), [0, 1, 2] * 3)], scenario="class")


def test_later_frames_are_encoded_as_the_first():
    first = pandas.DataFrame({"city": ["Rome", "Oslo"] * 6, "age": [1.0, 2, None] * 4, "kind": list("xyxyxy") * 2})
    later = first.assign(city=["Rome"] * 12, age=[None, 9.0, 8.0] * 4)[["kind", "age", "city"]]
    stream = Stream.of([(first, "kind"), (later, "kind")], missing="median")
    assert stream[1].x[:2].tolist() == [[0, 1, 1.5], [0, 1, 9]] and stream[1].reading == stream.reading
    labels = later.pop("kind")
    whole = Stream.split(first, "kind", test=(later, labels), missing="median")
    assert whole[0].x[12:14].tolist() == [[0, 1, 1.5], [0, 1, 9]]
    permuted = Stream.permuted(first, "kind", tasks=2, missing="median")
    assert permuted.reading == stream.reading


def test_later_arrays_are_filled_by_the_medians_of_the_first():
    x, y = np.array([[1.0], [np.nan], [3], [2]] * 3), list("xyxy") * 3
    stream = Stream.of([(x, y), (x + 5, y)], missing="median")
    assert stream[0].x[1].tolist() == stream[1].x[1].tolist() == [2] and stream[1].x[0].tolist() == [6]
