"""The made-up streams of the checks."""

import numpy as np
import torch

from prer.testing.streams import domains, images, vectors


def of_class(task, place):
    """The samples of a class, from both parts of the task; tasks share their tensors."""
    rows = torch.cat([task.train_rows([0])[0], task.test_rows([0])[0]])
    return task.x[rows][task.y[rows] == place]


def test_vectors_are_in_clouds_that_lie_apart():
    stream = vectors()
    assert [list(task.labels) for task in stream] == [[f"class {2 * t}", f"class {2 * t + 1}"] for t in range(3)]
    assert stream.shape == (5,)
    for task in stream:
        assert len(of_class(task, 0)) == len(of_class(task, 1)) == 40
        first, second = (of_class(task, c).mean(0) for c in (0, 1))
        assert float((first - second).norm()) > 4  # in standard deviations of a cloud


def test_each_class_of_images_has_its_bright_rows():
    stream = images()
    assert stream.shape == (1, 8, 8) and len(stream) == 2
    for number, task in enumerate(stream):
        assert task.x.dtype == torch.uint8
        for place in (0, 1):
            rows, c = of_class(task, place)[:, 0], 2 * number + place
            assert (rows[:, c : c + 3] == 250).all() and len(rows) == 24
            assert (rows[:, [r for r in range(8) if not c <= r < c + 3]] < 60).all()


def test_domains_share_one_head_and_the_second_is_upside_down():
    first, second, third = domains()
    assert [task.head for task in (first, second, third)] == [0, 0, 0]
    assert torch.equal(second.x, first.x.flip(2)) and list(third.labels) == ["class 1"]
    assert third.outputs == (1,)


def test_streams_are_the_same_each_time():
    for made in (vectors, images, domains):
        for one, other in zip(made(), made(), strict=True):
            np.testing.assert_array_equal(one.x, other.x)
