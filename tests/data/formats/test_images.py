"""Folders and zips of images: classes and parts by their folders, every mode, one size."""

import os
import zipfile

import numpy as np
import pytest
from PIL import Image
from support.data_files import GOOD, RNG, folder, picture, pixels, same, zipped

from prer.data import files
from prer.data.files import read
from prer.data.reading import Reading
from prer.errors import InputError


def put(path, array, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    (array if isinstance(array, Image.Image) else Image.fromarray(array)).save(path, **options)


def tree(root, layout, grey=True):
    """Files by their names, and what reading them must give, in that order."""
    x = pixels(len(layout), 8, 9) if grey else pixels(len(layout), 8, 9, 3)
    for name, image in zip(layout, x, strict=True):
        put(root / name, image)
    return x[:, None] if grey else np.moveaxis(x, -1, 1)


def archived(folder, path, top=""):
    """A folder as a zip, in the reverse order of names."""
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*"), reverse=True):
            archive.write(file, top + str(file.relative_to(folder)))
    return path


PLAIN = ["ant/1.png", "ant/2.bmp", "bee/1.gif", "bee/sub/2.ppm", "cat/0.tif"]
SPLIT = ["train/ant/1.png", "train/bee/1.png", "train/bee/2.png", "test/ant/1.png", "test/bee/3.png"]


@pytest.mark.parametrize("grey", [True, False])
@pytest.mark.parametrize("top", ["", "photos/"])
def test_folders_and_zips_of_classes(tmp_path, grey, top):
    layout = PLAIN if grey else [name.replace("gif", "png") for name in PLAIN]
    x, labels = tree(tmp_path / "d" / top, layout, grey), ["ant", "ant", "bee", "bee", "cat"]
    assert same(read(tmp_path / "d"), x, labels)
    assert same(read(archived(tmp_path / "d", tmp_path / "z")), x, labels)
    for junk in ("ant/Thumbs.db", "ant/.hidden", "__MACOSX/ant/1.png", "desktop.ini", "notes.TXT", "ant/l.json"):
        (tmp_path / "d" / top / junk).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "d" / top / junk).write_text("junk")
    assert same(read(tmp_path / "d"), x, labels)
    assert same(read(archived(tmp_path / "d", tmp_path / "z")), x, labels)


@pytest.mark.parametrize("test", ["test", "val", "valid", "Validation"])
@pytest.mark.parametrize("top", ["", "photos/"])
def test_a_train_and_a_test_folder_are_the_parts(tmp_path, test, top):
    x = tree(tmp_path / "d" / top, [name.replace("test/", f"{test}/") for name in SPLIT])
    labels = ["ant", "bee", "bee", "ant", "bee"]
    assert same(read(tmp_path / "d"), x, labels, 2)
    assert same(read(archived(tmp_path / "d", tmp_path / "z.zip")), x, labels, 2)


def test_validation_images_are_left_out_beside_test_images(tmp_path):
    x = tree(tmp_path, [*SPLIT, "val/ant/9.png"])
    assert same(read(tmp_path), x[:5], ["ant", "bee", "bee", "ant", "bee"], 2)


def test_a_zip_whose_names_begin_with_a_dot_and_a_slash(tmp_path):
    x = tree(tmp_path / "d", PLAIN)
    assert same(read(archived(tmp_path / "d", tmp_path / "z", "./")), x, ["ant", "ant", "bee", "bee", "cat"])


def test_a_train_folder_alone_and_classes_called_like_parts(tmp_path):
    x = tree(tmp_path / "a", SPLIT[:3])
    assert same(read(tmp_path / "a"), x, ["ant", "bee", "bee"])
    x = tree(tmp_path / "b", ["bus/1.png", "train/1.png", "train/2.png"])  # vehicles
    assert same(read(tmp_path / "b"), x, ["bus", "train", "train"])


RGB = pixels(8, 8, 3)


MODES = {
    "1": lambda image: np.asarray(image.convert("L"))[None],
    "L": lambda image: np.asarray(image)[None],
    "LA": lambda image: np.asarray(image)[None, ..., 0],
    "P": lambda image: np.moveaxis(np.asarray(image.convert("RGB")), -1, 0),
    "RGB": lambda image: np.moveaxis(np.asarray(image), -1, 0),
    "RGBA": lambda image: np.moveaxis(np.asarray(image), -1, 0)[:3],
    "CMYK": lambda image: np.moveaxis(np.asarray(image.convert("RGB")), -1, 0),
}


@pytest.mark.parametrize("mode", MODES)
def test_images_of_every_mode(tmp_path, mode):
    image = Image.fromarray(RGB).convert("RGBA").convert(mode)
    put(tmp_path / "a" / "1.tif", image)
    assert same(read(tmp_path), MODES[mode](image)[None], ["a"])


def test_grey_among_coloured_images_gets_three_channels(tmp_path):
    put(tmp_path / "a" / "1.png", RGB[..., 0])
    put(tmp_path / "a" / "2.png", RGB)
    put(tmp_path / "a" / "3.png", RGB[..., 1])
    grey = [np.repeat(RGB[None, ..., i], 3, axis=0) for i in range(2)]
    assert same(read(tmp_path), np.stack([grey[0], np.moveaxis(RGB, -1, 0), grey[1]]), ["a"] * 3)


@pytest.mark.parametrize("name", ["1.png", "1.tif", "1.pgm"])
def test_sixteen_bits_are_scaled_to_eight(tmp_path, name):
    deep = RNG.integers(0, 65536, (8, 8)).astype(np.uint16)
    deep[0, :2] = 0, 65535
    put(tmp_path / "a" / name, deep)
    assert same(read(tmp_path), np.round(deep / 257)[None, None].astype(np.uint8), ["a"])


def test_floats_are_scaled_to_bytes(tmp_path):
    put(tmp_path / "a" / "1.tif", (RGB[..., 0] / 255).astype(np.float32))
    assert same(read(tmp_path), RGB[None, None, ..., 0], ["a"])


def test_a_suffix_does_not_matter_and_the_orientation_is_ignored(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    put(tmp_path / "a" / "picture", pixels(8, 9), format="PNG", exif=exif)
    assert read(tmp_path).x.shape == (1, 1, 8, 9)


@pytest.mark.parametrize("fit", ["resize", "pad"])
def test_images_of_mixed_sizes_are_brought_to_one(tmp_path, fit):
    put(tmp_path / "a" / "1.png", np.full((20, 10), 200, np.uint8))
    put(tmp_path / "a" / "2.png", np.full((12, 12, 3), 200, np.uint8))
    with pytest.raises(InputError, match=r"different sizes, 10x20 and 12x12; set stream\.size"):
        read(tmp_path)
    x = read(tmp_path, size=12, fit=fit).x
    assert x.shape == (2, 3, 12, 12)
    assert (x[1] == 200).all()
    if fit == "resize":
        assert (x[0] == 200).all()
    else:
        assert (x[0, :, :, 1:-1] == 200).all()
        assert (x[0, :, :, [0, -1]] == 0).all()


def test_an_image_is_known_by_its_content_and_a_folder_is_sorted_by_path(tmp_path):
    known = Reading(size=8, shape=(1, 8, 8))
    for i, name in enumerate(("train/b", "test/a", "c")):
        (tmp_path / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8), 50 * (i + 1), np.uint8)).save(tmp_path / "folder" / name, "PNG")
    assert int(files.read_new(tmp_path / "folder" / "c", known).x.max()) == 150
    assert [int(image.max()) for image in files.read_new(tmp_path / "folder", known).x] == [150, 100, 50]


# -- names and links --------------------------------------------------------------------------------------------------


def test_a_loop_among_sound_classes_does_no_harm(tmp_path):
    folder(tmp_path, GOOD)
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    assert read(tmp_path).y.tolist() == ["a", "b"]


def test_classes_may_be_links(tmp_path):
    folder(tmp_path / "real", GOOD)
    (tmp_path / "few").mkdir()
    for name in "ab":
        (tmp_path / "few" / f"class {name}").symlink_to(tmp_path / "real" / name)
    assert read(tmp_path / "few").y.tolist() == ["class a", "class b"]


def test_names_that_are_no_utf8_become_usable_labels(tmp_path):
    for name in (b"caf\xe9", b"th\xff"):
        folder(tmp_path, {os.fsdecode(name + b"/\xfe.png"): picture()})
    labels = read(tmp_path).y.tolist()
    assert labels == ["caf\\xe9", "th\\xff"]
    assert all(label.encode() for label in labels)


def test_names_of_another_code_page_in_a_zip_become_usable_labels(tmp_path):
    zipped(tmp_path / "z", {"cafe1/1.png": picture(), "tea22/1.png": picture()})
    whole = (tmp_path / "z").read_bytes()
    (tmp_path / "z").write_bytes(whole.replace(b"cafe1", b"caf\xe9\xe8"))
    labels = read(tmp_path / "z").y.tolist()
    assert len(set(labels)) == 2
    assert all(label.isprintable() and label.encode() for label in labels)


# -- the files of the images ------------------------------------------------------------------------------------------


def test_each_image_has_the_path_of_its_file(tmp_path):
    files_ = {f"top/{part}/{name}": picture() for part in ("train", "test") for name in ("a/2.png", "b/1.png")}
    folder(tmp_path / "folder", files_)
    zipped(tmp_path / "z", files_)
    expected = ("top/train/a/2.png", "top/train/b/1.png", "top/test/a/2.png", "top/test/b/1.png")
    for path in (tmp_path / "folder", tmp_path / "z"):
        data = read(path)
        assert (data.names, data.y.tolist(), data.tests) == (expected, ["a", "b", "a", "b"], 2)
        assert files.read_new(path, Reading(shape=(1, 8, 8))).names == tuple(sorted(files_))


def test_images_outside_class_folders_have_names_too(tmp_path):
    folder(tmp_path / "photos", {name: picture() for name in ("b.png", "a.png", "c/d/e.png")})
    known = Reading(shape=(1, 8, 8))
    assert files.read_new(tmp_path / "photos", known).names == ("a.png", "b.png", "c/d/e.png")
    assert files.read_new(tmp_path / "photos" / "a.png", known).names == ("a.png",)


def test_names_of_files_are_valid_text(tmp_path):
    folder(tmp_path, {os.fsdecode(b"caf\xe9/\xfe.png"): picture()})
    assert read(tmp_path).names == ("caf\\xe9/\\xfe.png",)


# -- more images to learn from ----------------------------------------------------------------------------------------


def test_more_images_are_read_as_the_first_were(tmp_path):
    put(tmp_path / "more" / "train" / "a" / "1.png", np.full((20, 10), 9, np.uint8))
    put(tmp_path / "more" / "test" / "a" / "1.png", np.full((12, 12), 3, np.uint8))
    known = Reading(size=12, fit="pad", shape=(3, 12, 12))
    data = read(tmp_path / "more", known=known)
    assert (tuple(data.x.shape), data.tests, data.reading, data.y.tolist()) == ((2, 3, 12, 12), 1, known, ["a", "a"])
    assert int(data.x[0, 0, 6, 6]) == 9 and int(data.x[0, 0, 6, 0]) == 0
    with pytest.raises(InputError, match=r"1\.png: it has 10x20 pixels, but the model was trained on images of 8x8"):
        read(tmp_path / "more", known=Reading(shape=(1, 8, 8)))
    put(tmp_path / "lone" / "1.png", np.zeros((8, 8), np.uint8))
    with pytest.raises(InputError, match=r"'1\.png' is not in a class folder"):
        read(tmp_path / "lone", known=known)
