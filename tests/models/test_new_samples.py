"""Samples to be predicted, from files of many forms, and images of samples as one picture."""

import numpy as np
import pytest
from PIL import Image
from support.models import random_images

from prer.cli.main import main
from prer.data.grid import grid
from prer.data.reading import Reading
from prer.errors import InputError
from prer.models.folder import load
from prer.models.samples import samples


def test_samples_to_predict_come_in_many_forms(finished, tmp_path, capsys):
    x = random_images()
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x=x)
    Image.fromarray(x[0]).save(tmp_path / "one.png")
    for name, count in (("x.npy", 20), ("x.npz", 20), ("one.png", 1)):
        found, labels, names = samples(tmp_path / name, load(finished).reading)
        assert labels is None and names == (("one.png",) if name == "one.png" else ())
        np.testing.assert_array_equal(found.reshape(-1, 8, 8), x[:count])
    main(["predict", str(finished), str(tmp_path / "one.png"), "--task", "1"])
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_pickle_is_not_read(finished, tmp_path):
    np.save(tmp_path / "x.npy", np.array([object()]), allow_pickle=True)
    with pytest.raises(InputError, match="contains Python objects"):
        samples(tmp_path / "x.npy", load(finished).reading)


@pytest.mark.parametrize("mode", ["1", "L", "LA"])
def test_grey_pictures_stay_grey(tmp_path, mode):
    Image.fromarray(np.full((8, 8), 255, np.uint8)).convert(mode).save(tmp_path / "x.png")
    found, *_ = samples(tmp_path / "x.png", Reading(shape=(1, 8, 8)))
    assert found.shape == (1, 1, 8, 8) and found.dtype == np.uint8


def test_a_grid_has_colours_where_images_have_them():
    images = np.random.default_rng(0).integers(0, 256, size=(3, 3, 4, 6), dtype=np.uint8)
    page = grid(images)
    assert page.shape == (9, 13, 3)
    np.testing.assert_array_equal(page[5:, :6], np.moveaxis(images[2], 0, -1))
