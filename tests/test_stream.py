"""What a stream promises: splits, tasks, one copy of the data, addressed batches, and clear words about bad input."""

import gc
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prer.errors import InputError
from prer.learners.naive import Naive
from prer.runs.experiment import Experiment
from prer.runs.run import execute
from prer.streams.stream import Stream, arriving
from prer.streams.task import Split, merge

few = settings(max_examples=60, deadline=None, database=None)


def vectors(n, width=3):
    return np.arange(n * width, dtype=np.float32).reshape(n, width)


def images(n, *shape, dtype=np.uint8):
    return np.random.default_rng(0).integers(0, 2 if np.dtype(dtype).kind == "f" else 256, (n, *shape)).astype(dtype)


X, Y = vectors(8), np.repeat([0, 1], 4)
IMAGES = images(8, 8, 8)


def parts(task, seed=0):
    return task.train_rows([seed])[0].tolist(), task.test_rows([seed])[0].tolist()


# -- splits ----------------------------------------------------------------------------------------------------------


@st.composite
def labelled(draw):
    """Labels in any order with at least two samples of each class, and a number of classes per task that fits."""
    counts = draw(st.lists(st.integers(2, 25), min_size=2, max_size=7))
    per_task = draw(st.sampled_from([k for k in range(2, len(counts) + 2) if len(counts) % k != 1]))
    y = np.repeat(np.arange(len(counts)) * 3, counts)
    return np.random.default_rng(draw(st.integers(0, 99))).permutation(y), per_task


@few
@given(labelled(), st.floats(0.01, 0.99), st.integers(0, 2**40))
def test_train_and_test_are_disjoint_complete_and_balanced(data, share, seed):
    y, per_task = data
    stream = Stream.split(vectors(len(y)), y, classes_per_task=per_task, resplit=share)
    seen = []
    for task in stream:
        train, test = parts(task, seed)
        assert sorted(train + test) == np.flatnonzero(np.isin(y, task.labels)).tolist()
        for label in task.labels:
            n, kept = (y == label).sum(), (y[test] == label).sum()
            assert 1 <= kept < n
            assert abs(kept - share * n) <= 1
        seen += train + test
    assert sorted(seen) == list(range(len(y)))


@few
@given(labelled(), st.lists(st.integers(0, 2**40), min_size=1, max_size=4, unique=True))
def test_every_seed_has_as_many_rows_and_its_own_split_whoever_is_beside_it(data, seeds):
    y, per_task = data
    for task in Stream.split(vectors(len(y)), y, classes_per_task=per_task):
        train, test = task.train_rows(seeds), task.test_rows(seeds)
        assert train.shape[0] == test.shape[0] == len(seeds)
        assert [parts(task, seed) for seed in seeds] == list(zip(train.tolist(), test.tolist(), strict=True))


def test_a_sixth_seed_changes_nothing_for_the_first_five():
    task = Stream.split(vectors(60), np.arange(60) % 2)[0]
    assert task.train_rows(range(6))[:5].equal(task.train_rows(range(5)))
    assert task.test_rows(range(6))[:5].equal(task.test_rows(range(5)))
    assert len({tuple(rows) for rows in task.test_rows(range(6)).tolist()}) == 6


# Results of other people rest on these rows: they must never change, on no platform and with no version.
GOLDEN = {
    0: ([[24, 4, 37, 17], [14, 6, 27, 35]], [18, 26, 30, 38, 22, 10, 34, 2]),
    1: ([[4, 28, 9, 25], [34, 14, 23, 27]], [6, 38, 30, 10, 2, 22, 26, 18]),
    2**40: ([[28, 24, 29, 1], [14, 26, 15, 19]], [30, 38, 6, 22, 10, 34, 2, 18]),
}


@pytest.mark.parametrize("seed", GOLDEN)
def test_the_split_of_a_seed_is_the_same_for_ever(seed):
    stream = Stream.split(vectors(40), np.arange(40) % 4, resplit=0.2)
    tested, learned_first = GOLDEN[seed]
    assert [parts(task, seed)[1] for task in stream] == tested
    assert parts(stream[1], seed)[0][:8] == learned_first


def test_without_a_test_part_a_fifth_is_held_out():
    train, test = parts(Stream.split(vectors(40), np.arange(40) % 2)[0])
    assert (len(train), len(test)) == (32, 8)


def with_test_part(**options):
    y, y_test = np.arange(40) % 4, np.arange(12) % 4
    return Stream.split(vectors(40), y, test=(vectors(12) + 1000, y_test), **options)


def test_the_given_test_part_is_used_by_every_seed():
    for task in with_test_part():
        for seed in range(3):
            train, test = parts(task, seed)
            assert sorted(test) == [row for row in range(40, 52) if row % 4 in task.labels]
            assert sorted(train) == [row for row in range(40) if row % 4 in task.labels]
            assert (task.x[test] >= 1000).all()


def test_resplit_pours_the_given_test_part_into_one_pool():
    tasks = list(with_test_part(resplit=0.5))
    pool = [row for task in tasks for part in parts(task) for row in part]
    assert sorted(pool) == list(range(52))
    assert any(row >= 40 for row in parts(tasks[0])[0])
    assert any(row < 40 for row in parts(tasks[0])[1])
    assert parts(tasks[0], 0) != parts(tasks[0], 1)


@few
@given(labelled(), st.floats(0.05, 0.6), st.booleans(), st.integers(0, 2**40))
def test_validation_never_sees_the_test_part(data, share, given_test, seed):
    y, per_task = data
    y = np.concatenate([y, y])  # so that two of each class are left to learn from
    test = (vectors(len(y)) + 1000, y) if given_test else None
    stream = Stream.split(vectors(len(y)), y, classes_per_task=per_task, test=test)
    for task, held in zip(stream, stream.validated(share), strict=True):
        (train, tested), (learned, validated) = parts(task, seed), parts(held, seed)
        assert sorted(learned + validated) == sorted(train)
        assert not set(validated) & set(tested)
        for label in range(len(task.labels)):
            n, kept = (task.y[train] == label).sum(), (task.y[validated] == label).sum()
            assert 1 <= kept < n
            assert abs(kept - share * n) <= 1


def test_a_class_with_one_sample_cannot_be_validated():
    with pytest.raises(InputError, match="none can be held out"):
        Stream.split(vectors(4), [0, 0, 1, 1]).validated(0.5)


# -- tasks -----------------------------------------------------------------------------------------------------------

FOUR = np.repeat(np.arange(4), 3)
NAMES = np.array(["ant", "bee", "cat", "dog"])


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (FOUR.tolist(), (0, 1, 2, 3)),
        (FOUR.astype(np.uint8), (0, 1, 2, 3)),
        (FOUR.astype(">i2"), (0, 1, 2, 3)),
        (FOUR.astype(float), (0, 1, 2, 3)),
        (FOUR > 1, (0, 1)),
        (FOUR * 100 + 5, (5, 105, 205, 305)),
        (torch.tensor(FOUR), (0, 1, 2, 3)),
        (torch.tensor(FOUR).float(), (0, 1, 2, 3)),
        (torch.tensor(FOUR > 1), (0, 1)),
        ([np.int64(v) for v in FOUR], (0, 1, 2, 3)),
        # BUG: refused, though a data set that is iterated over gives such a list.
        ([torch.tensor(v) for v in FOUR], (0, 1, 2, 3)),
        ([np.array(v) for v in FOUR], (0, 1, 2, 3)),
        # BUG: refused as if they were no whole numbers.
        (FOUR + 2**60, (2**60, 2**60 + 1, 2**60 + 2, 2**60 + 3)),
        (NAMES[FOUR], ("ant", "bee", "cat", "dog")),
        (NAMES[FOUR].tolist(), ("ant", "bee", "cat", "dog")),
        (NAMES[FOUR].astype(object), ("ant", "bee", "cat", "dog")),
        (NAMES[FOUR].astype(bytes), ("ant", "bee", "cat", "dog")),
        (NAMES[FOUR].astype(bytes).astype(object), ("ant", "bee", "cat", "dog")),
        ((FOUR * 7).astype(str), ("0", "14", "21", "7")),
        ((FOUR * 7).astype(object), (0, 7, 14, 21)),
        (NAMES[FOUR].astype(np.dtypes.StringDType()), ("ant", "bee", "cat", "dog")),
    ],
)
def test_labels_of_any_kind_become_classes_in_their_order(y, expected):
    stream = Stream.split(vectors(12), y, classes_per_task=2)
    labels = [label for task in stream for label in task.labels]
    assert tuple(labels) == expected
    assert {type(label) for label in labels} == {type(expected[0])}  # plain ones, which JSON and TOML can hold
    back = [None] * len(y)
    for task in stream:
        for rows in parts(task):
            for row in rows:
                back[row] = task.labels[task.y[row]]  # from the place of each sample's class to its label
    assert back == [v.decode() if isinstance(v, bytes) else v for v in np.asarray(y).tolist()]


def test_a_refusal_keeps_nothing_of_the_data_alive():
    x, gone = vectors(8), []
    with pytest.raises(InputError) as caught:
        Stream.split(x, [None] * 8)
    weakref.finalize(x, gone.append, True)
    del x, caught
    gc.collect()
    # BUG: the error is one object for ever, and its traceback, which grows with each refusal, holds every x.
    assert gone


def test_bytes_that_are_no_utf8_stay_different_classes():
    stream = Stream.split(vectors(12), np.array([b"\xfc", b"\xfd", b"\xfe", b"\xff"])[FOUR])
    assert len({label for task in stream for label in task.labels}) == 4


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


def test_merge_sees_what_its_tasks_see():
    stream = Stream.split(vectors(60), np.arange(60) % 5, classes_per_task=3)
    merged = merge(stream.tasks)
    assert (merged.labels, merged.index, merged.width) == ((0, 1, 2, 3, 4), 1, 5)
    assert merged.y.tolist() == (np.arange(60) % 5).tolist()
    assert merged.x is stream[0].x
    for part in (0, 1):
        assert parts(merged, 7)[part] == [row for task in stream for row in parts(task, 7)[part]]


@pytest.mark.parametrize("name", ["dog", 7])
def test_an_order_of_labels_may_be_given_and_leaves_the_others_out(name):
    labels = ["ant", "bee", "cat", "dog"] if name == "dog" else [0, 3, 5, 7]
    stream = Stream.split(vectors(12), np.array(labels)[FOUR], order=[name, labels[1], labels[0]], classes_per_task=3)
    assert [task.labels for task in stream] == [(name, labels[1], labels[0])]
    assert sorted(np.concatenate(parts(stream[0])).tolist()) == [*range(6), *range(9, 12)]


# Like the splits: they must never change.
SHUFFLED = {0: [6, 7, 0, 5, 9, 2, 4, 3, 8, 1], 1: [2, 8, 1, 5, 3, 9, 6, 0, 4, 7]}


@pytest.mark.parametrize("draw", SHUFFLED)
def test_a_random_order_of_classes_is_the_same_for_ever(draw):
    stream = Stream.split(vectors(40), np.arange(40) % 10, shuffle=draw)
    assert [label for task in stream for label in task.labels] == SHUFFLED[draw]


# -- the same classes, seen in another way ---------------------------------------------------------------------------


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


def test_pixels_are_permuted_by_the_number_that_draws():
    kinds = [Stream.permuted(images(8, 8, 8), Y, tasks=2, seed=draw)[1] for draw in (0, 0, 1)]
    first, again, other = (task.transformed(task.x) for task in kinds)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_vectors_cannot_be_rotated_cropped_or_flipped():
    with pytest.raises(InputError, match="only images can be rotated"):
        Stream.rotated(X, Y)
    with pytest.raises(InputError, match="only images can be cropped"):
        Stream.split(X, Y).augmented(flip=True)


# -- tasks that are given one by one ---------------------------------------------------------------------------------


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


def test_a_data_set_may_be_the_test_part_of_another():
    pairs = [(x, int(y)) for x, y in zip(X, Y, strict=True)]
    stream = Stream.split(pairs, test=pairs[2:6])
    assert [len(part) for part in parts(stream[0])] == [8, 4]


def test_false_does_not_shuffle():
    assert Stream.split(vectors(12), FOUR, shuffle=False)[0].labels == (0, 1)
    assert Stream.split(vectors(12), FOUR, order=np.array([3, 2, 1, 0]))[0].labels == (3, 2)


def test_many_classes_are_no_trouble():
    y = np.arange(60_000) % 2000
    stream = Stream.split(np.zeros((60_000, 1), np.float32), y)
    assert len(stream) == 1000
    assert sorted(np.concatenate(stream[999].split.rows).tolist()) == sorted(np.flatnonzero(y >= 1998).tolist())


def test_a_dark_test_part_is_welcome_beside_bright_images():
    dark = np.full((2, 8, 8), 40, np.uint8)
    assert Stream.split(IMAGES, Y, test=(dark, [0, 1]))[0].x.dtype == torch.uint8


BAD_TASKS = {
    "a new class alone": ([(X, Y), (X, np.full(8, 5))], "task 2 has one class, 5"),
    "another shape": ([(X, Y), (vectors(8, 4), Y)], "task 2 has other shapes or types than the first"),
    "another type": ([(IMAGES, Y), (IMAGES / 255, Y)], "task 2 has other shapes or types"),
    "three parts": ([(X, Y, X)], r"task 1: give \(x, y\)"),
    "no samples": ([(X[:0], Y[:0])], "x has shape"),
    "samples alone": ([(X,)], "task 1: give"),
    "nothing": ([], "there are no tasks"),
}


@pytest.mark.parametrize(("sources", "said"), BAD_TASKS.values(), ids=BAD_TASKS)
def test_a_bad_task_is_refused_in_one_sentence(sources, said):
    with pytest.raises(InputError, match=said):
        Stream.of(sources)


def test_merging_views_and_pools_keeps_what_each_task_sees():
    views = Stream.permuted(images(40, 8, 8), np.arange(40) % 4, tasks=3)
    pools = Stream.of(
        [(vectors(8), Y), (vectors(12) + 50, np.arange(12) % 3 + 7), (vectors(6) + 90, [1, 0, 1, 0, 1, 0])]
    )
    for stream, columns in ((views, [0, 0, 0]), (pools, [0, 2, 0])):
        merged = merge(stream.tasks)
        for part in (0, 1):
            rows = torch.tensor([parts(merged, 3)[part]])
            x, y = merged.samples(rows)
            each = [task.samples(torch.tensor([parts(task, 3)[part]])) for task in stream]
            assert torch.equal(x, torch.cat([x for x, _ in each], 1))
            outputs = [torch.tensor(t.outputs)[y] + c for t, c, (_, y) in zip(stream, columns, each, strict=True)]
            assert torch.equal(y, torch.cat(outputs, 1))


# -- one copy --------------------------------------------------------------------------------------------------------


def test_a_file_that_is_mapped_is_not_copied(tmp_path):
    np.save(tmp_path / "x.npy", images(40, 8, 8))
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    stream = Stream.split(x, np.arange(40) % 4)
    assert stream[0].x.data_ptr() == x.ctypes.data
    assert stream.to("cpu")[1].x.data_ptr() == x.ctypes.data


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


# -- samples ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((9, 8), (1, 9, 8)),
        ((9, 8, 1), (1, 9, 8)),
        ((9, 8, 3), (3, 9, 8)),
        ((9, 8, 4), (4, 9, 8)),
        ((9, 10, 2), (2, 9, 10)),
        ((3, 9, 8), (3, 9, 8)),
        ((1, 9, 8), (1, 9, 8)),
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("wrap", [np.asarray, torch.as_tensor])
def test_images_come_as_channels_rows_columns(shape, expected, dtype, wrap):
    x = images(6, *shape, dtype=dtype)
    stream = Stream.split(wrap(x), np.arange(6) % 2)
    assert stream.shape == expected
    assert stream[0].x.dtype == (torch.float32 if np.dtype(dtype).kind == "f" else torch.uint8)
    last = x.reshape(6, 9, -1, 1) if x.ndim == 3 else x
    moved = last if last.shape[1:] == expected else np.moveaxis(last, -1, 1)
    assert np.array_equal(stream[0].x.numpy(), moved)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.uint8, np.int32, bool])
def test_vectors_come_as_floats(dtype):
    x = (vectors(6) % 2).astype(dtype)
    stream = Stream.split(x, np.arange(6) % 2)
    assert (stream.shape, stream[0].x.dtype) == ((3,), torch.float32)
    assert np.array_equal(stream[0].x.numpy(), x)


def test_one_copy_of_the_data_serves_all_tasks():
    stream = Stream.split(images(40, 8, 8), np.arange(40) % 4)
    for tasks in (stream, stream.to("cpu")):
        assert len({(task.x.data_ptr(), task.y.data_ptr()) for task in tasks}) == 1
    assert merge(stream.tasks).x.data_ptr() == stream[0].x.data_ptr()


def test_data_that_may_not_be_written_is_welcome():
    x = images(6, 8, 8)
    x.flags.writeable = False  # as np.frombuffer and a memory map give it
    torch.set_warn_always(True)
    try:
        assert Stream.split(x, np.arange(6) % 2).shape == (1, 8, 8)
    finally:
        torch.set_warn_always(False)


# -- batches ---------------------------------------------------------------------------------------------------------


def learner(seeds, batch=4):
    naive = Naive(batch=batch)
    naive.start((3,), seeds)
    return naive


@few
@given(st.integers(2, 50), st.integers(2, 60), st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True))
def test_an_epoch_is_cut_into_whole_batches_that_show_no_row_twice(n, batch, seeds):
    rows = torch.stack([torch.arange(n) + 1000 * seed for seed in seeds])
    naive = learner(seeds, batch)
    batches = naive.batches(rows, naive.address_ / 0 / "classifier" / 0)
    size = min(batch, n)
    assert batches.shape == (len(seeds), n // size, size)
    for of_seed, own in zip(batches.flatten(1).tolist(), rows.tolist(), strict=True):
        assert len(set(of_seed)) == len(of_seed)
        assert set(of_seed) <= set(own)


def test_an_address_gives_the_same_batches_whatever_happened_before():
    rows = torch.arange(40).expand(2, -1)
    first, second = learner((0, 1)), learner((0, 1))
    for epoch in range(3):  # history of the first, which the second has not
        first.batches(rows, first.address_ / 0 / "flow" / epoch)
    place = (3, "classifier", 7)
    batches = [n.batches(rows, n.address_ / place[0] / place[1] / place[2]) for n in (first, second)]
    assert batches[0].equal(batches[1])


def test_each_seed_task_phase_and_epoch_has_an_order_of_its_own():
    rows, orders = torch.arange(40).expand(3, -1), set()
    naive = learner((0, 1, 11))
    for task, phase, epoch in [(0, "a", 0), (0, "a", 1), (0, "b", 0), (1, "a", 0), (1, "a", 1), (11, "a", 1)]:
        batches = naive.batches(rows, naive.address_ / task / phase / epoch)
        orders |= {tuple(order) for order in batches.flatten(1).tolist()}
    assert len(orders) == 3 * 6


def test_a_seed_meets_the_same_batches_whoever_runs_beside_it():
    alone, beside = learner((7,)), learner((3, 7, 9))
    rows = torch.arange(40)
    one = alone.batches(rows.expand(1, -1), alone.address_ / 0 / "a" / 0)
    three = beside.batches(rows.expand(3, -1), beside.address_ / 0 / "a" / 0)
    assert one[0].equal(three[1])


# -- bad input -------------------------------------------------------------------------------------------------------


def spoiled(value, kind=float):
    x = X.astype(kind)
    x[2, 1] = value
    return x


BAD_LABELS = {
    "None": ([None, *Y[1:].tolist()], "missing"),
    "all None": ([None] * 8, "missing"),
    "nothing": (None, "give pairs"),
    "None among strings": (["a"] * 4 + ["b"] * 3 + [None], "missing"),
    "NaN": (np.array([0, 0, 0, 1, 1, 1, 1, np.nan]), "missing"),
    "NaN among objects": (np.array([*"aaabbbb", np.nan], object), "missing"),
    "NaN among strings": (["a"] * 4 + ["b"] * 2 + [float("nan")] * 2, "missing"),
    "empty string": ([*"aaabbbb", ""], "missing"),
    "NUL": ([*"aaabbb", "b\0", "b"], "NUL"),
    "masked": (np.ma.masked_equal(Y, 1), "masked"),
    "empty bytes": ([b"a"] * 4 + [b"b"] * 3 + [b""], "missing"),
    "negative": (Y - 1, "least is -1"),
    "negative objects": ((Y - 1).astype(object), "least is -1"),
    "fractional": (Y / 2, "fractions"),
    "infinite": (np.where(Y, np.inf, 0), "whole numbers"),
    "two dimensions": (Y[:, None], "one value for each sample"),
    "one-hot": (np.eye(2)[Y], "one value for each sample"),
    "a scalar": (3, "one value for each sample"),
    "too few": (Y[:7], "x has 8 samples and y has 7 labels"),
    "empty": ([], "8 samples and y has 0 labels"),
    "dates": (np.array(["2020-01-01", "2020-01-02"], "M8[D]")[Y], "labels must be"),
    "complex": (Y * 1j, "labels must be"),
    "huge": (Y.astype(np.uint64) + np.uint64(2**63), "labels must be"),
    "huge floats": (Y * 1e30, "labels must be"),
    "ragged": ([[1, 2], [1]] * 4, "one value for each sample"),
    # BUG: NumPy's ValueError about the truth of an array.
    "ragged arrays": ([np.array([1, 2]), np.array([1])] * 4, "label"),
}

BAD_SAMPLES = {
    "NaN": (spoiled(np.nan), "1 of 8 samples hold NaN or infinite"),
    "infinite": (spoiled(-np.inf), "1 of 8 samples hold NaN or infinite"),
    "NaN images": (IMAGES * np.nan, "8 of 8 samples hold NaN or infinite"),
    "NaN tensor": (torch.tensor(spoiled(np.nan)), "1 of 8 samples hold NaN or infinite"),
    "beyond float32": (spoiled(1e300), "samples"),
    "too small": (IMAGES[:, :7], "7x8 pixels are too small"),
    "too small, channels last": (images(8, 9, 5, 3), "9x5 pixels are too small"),
    "floats above 1": (IMAGES / 255 * 2, r"must lie in \[0, 1\], these lie in \[0, 2\]"),
    "floats below 0": (IMAGES / 255 - 1, r"must lie in \[0, 1\]"),
    "integers above 255": (IMAGES.astype(int) + 1, r"must lie in 0\.\.255, these lie in .*256"),
    "integers that reach 16": (IMAGES // 16, "these reach 15; divide by 15"),
    "integers below 0": (IMAGES.astype(int) - 1, r"must lie in 0\.\.255, these lie in -1"),
    "no samples": (X[:0], r"shape \(0, 3\)"),
    "no features": (X[:, :0], r"shape \(8, 0\)"),
    "objects": (X.astype(object), "type object"),
    "strings": (X.astype(str), "give numbers"),
    "complex": (X * 1j, "type complex"),
    "one dimension": (X[:, 0], r"shape \(8,\)"),
    "five dimensions": (IMAGES[..., None, None], "give numbers as images"),
    "nothing": (None, "give numbers as images"),
    "ragged": ([[1, 2], [1]] * 4, "give numbers as images"),
}

BAD_OPTIONS = {
    "one class per task": ({"classes_per_task": 1}, "two classes at least"),
    "no class per task": ({"classes_per_task": 0}, "two classes at least"),
    "a task with one class": ({"tasks": [[0]]}, "task 1 has one class"),
    "a class in two tasks": ({"y": FOUR[:8], "tasks": [[0, 1], [1, 2]]}, "class 1 is named twice"),
    "a class twice in a task": ({"tasks": [[0, 0]]}, "class 0 is named twice"),
    "an unknown class": ({"tasks": [[0, 7]]}, "class 7 is asked for, which no sample has"),
    "a class by another type": ({"tasks": [["0", "1"]]}, "class '0' is asked for"),
    "no tasks": ({"tasks": []}, "task"),
    "an empty task": ({"tasks": [[]]}, "task 1 has no class"),
    "resplit 0": ({"resplit": 0.0}, "between 0 and 1"),
    "resplit 1": ({"resplit": 1.0}, "between 0 and 1"),
    "resplit NaN": ({"resplit": float("nan")}, "between 0 and 1"),
    "resplit negative": ({"resplit": -0.2, "test": (X, Y)}, "between 0 and 1"),
    "a class with one sample": ({"y": [0] * 7 + [1]}, "class 1 has one sample"),
    "only one class": ({"y": [0] * 8}, "one class"),
    "test labels of another kind": ({"test": (X, np.array(["a", "b"])[Y])}, "numbers and of the other strings"),
    "test part of another width": ({"test": (vectors(8, 4), Y)}, "other shapes or types"),
    "test part of another type": ({"x": IMAGES, "test": (IMAGES / 255, Y)}, "other shapes or types"),
    "test part of images": ({"test": (IMAGES, Y)}, "other shapes or types"),
    "test part of another length": ({"test": (X, Y[:5])}, "x has 8 samples and y has 5 labels"),
    "a class not in the test part": ({"test": (X, Y * 0)}, "class 1 has no sample in the test part"),
    "a class not in the training part": (
        {"y": Y + 1, "test": (X, [0, 1, 1, 1, 2, 2, 2, 2]), "classes_per_task": 3},
        "class 0 has no sample in the training",
    ),
}
BAD = (
    {f"labels: {name}": ({"y": y}, said) for name, (y, said) in BAD_LABELS.items()}
    | {f"samples: {name}": ({"x": x}, said) for name, (x, said) in BAD_SAMPLES.items()}
    | {f"options: {name}": case for name, case in BAD_OPTIONS.items()}
)


@pytest.mark.parametrize(("given_", "said"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_one_sentence(given_, said):
    with pytest.raises(InputError, match=said) as caught:
        Stream.split(**{"x": X, "y": Y} | given_)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_lone_last_class_is_refused_with_what_would_fit():
    with pytest.raises(InputError, match=r"task 2 has one class, 2: .* take one of 3$"):
        Stream.split(vectors(12), np.arange(12) % 3, classes_per_task=2)


def test_numbers_of_half_precision_are_welcome():
    x = torch.ones(8, 3, dtype=torch.bfloat16)
    assert Stream.split(x, Y)[0].x.dtype == torch.float32


@pytest.mark.parametrize("validation", [0.0, 0.25])
@pytest.mark.parametrize("kind", ["permuted", "rotated"])
def test_tasks_that_differ_in_their_views_share_one_split(monkeypatch, tmp_path, kind, validation):
    """Ten thousand of them would take ten seconds to be split before a run says a word."""
    calls, split = [], Split.__call__
    monkeypatch.setattr(Split, "__call__", lambda self, seed: calls.append(seed) or split(self, seed))
    monkeypatch.setattr("prer.runs.run._train", lambda *_: None)
    overrides = [f"stream.kind={kind}", "stream.count=30", f"stream.validation={validation}", "device=cpu"]
    execute(Experiment.parse({}, [*overrides, "learner.name=naive"]), tmp_path)
    assert len(calls) <= 2  # one for all of them, and one where some of it is held out
