"""What each file format gives, compared with what another library wrote; and which part is which."""

import gzip
import io
import struct
import tarfile
import zipfile
import zlib

import numpy as np
import pandas
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from prer.data import guards as guard
from prer.data.files import find, read
from prer.data.formats import mat
from prer.errors import InputError
from prer.streams.config import load
from prer.streams.stream import Stream

few = settings(max_examples=40, deadline=None, database=None)
RNG = np.random.default_rng(0)


def pixels(*shape):
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def same(data, x, y, tests=0):
    assert np.array_equal(np.asarray(data.x), x)
    assert np.asarray(data.x).dtype == np.asarray(x).dtype
    assert data.y.tolist() == np.asarray(y).tolist()
    assert data.tests == tests
    return True


# -- idx -------------------------------------------------------------------------------------------------------------


def idx_bytes(array):
    code = {"u": 8, "i": 12}[array.dtype.kind]
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape) + array.tobytes()


def write_idx(folder, prefix, x, y, packed=False, ending="-idx{}-ubyte"):
    folder.mkdir(exist_ok=True)
    for word, array in (("images", x), ("labels", y)):
        data, name = idx_bytes(array), f"{prefix}{word}{ending.format(array.ndim)}"
        (folder / (name + ".gz" if packed else name)).write_bytes(gzip.compress(data) if packed else data)


X, Y = pixels(7, 9, 8), np.arange(7, dtype=np.uint8)
X2, Y2 = pixels(3, 9, 8), np.arange(3, dtype=np.uint8) + 4


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("test", ["t10k-", "test-", "emnist-letters-test-", "validation-", "val_", "Valid."])
@pytest.mark.parametrize("kind", ["u1", ">i4"])
def test_idx_files_are_paired_and_the_test_part_comes_last(tmp_path, packed, test, kind):
    write_idx(tmp_path, "train-", X, Y.astype(kind), packed)
    write_idx(tmp_path, test, X2, Y2, packed)
    (tmp_path / "readme.txt").write_text("hello, world")
    assert same(read(tmp_path), np.concatenate([X, X2])[:, None], [*Y, *Y2], 3)


@pytest.mark.parametrize("prefix", ["t10k-", "train-", ""])
def test_one_pair_of_idx_files_is_the_whole_pool(tmp_path, prefix):
    write_idx(tmp_path / "raw", prefix, X, Y, ending="")
    assert same(read(tmp_path / "raw"), X[:, None], Y)
    assert same(read(tmp_path), X[:, None], Y)  # one folder further up


def test_of_test_and_validation_files_those_for_validation_are_left_out(tmp_path):
    for prefix, x, y in (("train-", X, Y), ("test-", X2, Y2), ("valid-", X2[:1], Y2[:1])):
        write_idx(tmp_path, prefix, x, y)
    assert same(read(tmp_path), np.concatenate([X, X2])[:, None], [*Y, *Y2], 3)


def test_an_idx_file_beside_its_gz_is_read_once(tmp_path):
    write_idx(tmp_path, "train-", X, Y, packed=True)
    write_idx(tmp_path, "train-", X, Y)
    assert same(read(tmp_path), X[:, None], Y)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(b"\x1f\x8b, broken off")  # and it is not needed
    assert same(read(tmp_path), X[:, None], Y)


def test_a_name_that_ends_in_test_is_no_test_part(tmp_path):
    write_idx(tmp_path, "latest-train-", X, Y)
    write_idx(tmp_path, "latest-test-", X2, Y2)
    assert read(tmp_path).tests == 3


def test_only_the_files_that_are_named_are_read(tmp_path):
    write_idx(tmp_path, "letters-train-", X, Y)
    write_idx(tmp_path, "digits-train-", X2, Y2)
    with pytest.raises(InputError, match="several data sets"):
        read(tmp_path)
    names = ("digits-train-images-idx3-ubyte", "digits-train-labels-idx1-ubyte")
    assert same(read(tmp_path, only=names), X2[:, None], Y2)


# -- CIFAR -----------------------------------------------------------------------------------------------------------


def cifar_bytes(x, *labels):
    return np.concatenate([*(y[:, None].astype(np.uint8) for y in labels), x.reshape(len(x), -1)], 1).tobytes()


C = pixels(6, 3, 32, 32)
FINE = np.array([99, 3, 0, 55, 42, 7])


@pytest.mark.parametrize("coarse", [(), (np.arange(6) * 3,)], ids=["CIFAR-10", "CIFAR-100"])
def test_cifar_from_loose_files_a_folder_and_archives(tmp_path, coarse):
    y = FINE if coarse else FINE % 10
    parts = {"data_batch_2.bin": slice(1, 4), "data_batch_1.bin": slice(0, 1), "test_batch.bin": slice(4, 6)}
    folder = tmp_path / "cifar"
    folder.mkdir()
    for name, rows in parts.items():
        (folder / name).write_bytes(cifar_bytes(C[rows], *(c[rows] for c in coarse), y[rows]))
    (folder / "batches.meta.txt").write_text("airplane\n")
    for mode in ("w", "w:gz"):
        with tarfile.open(tmp_path / f"c{mode[2:]}.any", mode) as archive:
            for name in [*parts, "batches.meta.txt"]:  # not in the order of names, as the publisher's
                archive.add(folder / name, f"cifar/{name}")
            link = tarfile.TarInfo("cifar/data_batch_9.bin")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link)
    for path in (folder, tmp_path / "c.any", tmp_path / "cgz.any"):
        assert same(read(path), C, y, 2)
    assert same(read(folder / "data_batch_2.bin"), C[1:4], y[1:4])
    (folder / "test_batch.bin").rename(folder / "noname")  # no magic, no suffix; its size and its labels tell
    assert same(read(folder / "noname"), C[4:], y[4:])


def test_part_of_cifar_will_do(tmp_path):
    (tmp_path / "test_batch.bin").write_bytes(cifar_bytes(C, FINE % 10))
    assert same(read(tmp_path), C, FINE % 10)


def test_more_records_than_are_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("prer.data.formats.cifar.RECORDS_READ", 4)
    monkeypatch.setattr(guard, "CHUNK", 1000)
    (tmp_path / "a.bin").write_bytes(cifar_bytes(C, FINE % 10))
    assert same(read(tmp_path / "a.bin"), C, FINE % 10)


# -- .mat ------------------------------------------------------------------------------------------------------------

S = pixels(9, 8, 3, 7)  # H, W, C, N
SVHN = np.moveaxis(S, [3, 2], [0, 1])
DIGITS = np.array([1, 10, 3, 9, 10, 2, 5])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("x_kind", ["u1", "f8", "i2", "f4"])
@pytest.mark.parametrize("y_kind", ["u1", "f8"])
def test_svhn_against_scipy(tmp_path, packed, x_kind, y_kind):
    labels = DIGITS[:, None].astype(y_kind)
    others = {"note": "hello", "cell": np.array([{"a": 1}, "b"], object), "z": np.array([1j]), "last": np.eye(3)}
    scipy.io.savemat(
        tmp_path / "train_32x32.mat", {"y": labels} | others | {"X": S.astype(x_kind)}, do_compression=packed
    )
    scipy.io.savemat(tmp_path / "test_32x32.mat", {"X": S[..., :2], "y": labels[:2]}, do_compression=packed)
    (tmp_path / "extra_32x32.mat").write_bytes((tmp_path / "test_32x32.mat").read_bytes())
    expected = DIGITS % 10
    assert same(read(tmp_path), np.concatenate([SVHN, SVHN[:2]]), [*expected, *expected[:2]], 2)
    assert same(read(tmp_path / "train_32x32.mat"), SVHN, expected)
    assert same(read(tmp_path / "extra_32x32.mat"), SVHN[:2], expected[:2])


@pytest.mark.parametrize("labels", [[0, 10, 3, 9, 1, 2, 5], [1, 11, 3, 9, 1, 2, 10], [1, 2, 3, 4, 5, 6, 7]])
def test_labels_that_are_not_svhns_stay(tmp_path, labels):
    scipy.io.savemat(tmp_path / "a.mat", {"X": S, "y": np.array(labels)[:, None]})
    assert read(tmp_path / "a.mat").y.tolist() == labels


def test_a_mat_with_one_sample_or_grey_ones(tmp_path):
    scipy.io.savemat(tmp_path / "one.mat", {"X": S[..., 0], "y": [[4]]})
    assert same(read(tmp_path / "one.mat"), SVHN[:1], [4])
    scipy.io.savemat(tmp_path / "grey.mat", {"X": S[:, :, 0], "y": DIGITS})
    assert same(read(tmp_path / "grey.mat"), SVHN[:, :1], DIGITS % 10)


# -- .npz ------------------------------------------------------------------------------------------------------------


@few
@given(
    st.sampled_from(["u1", "<f4", "<f8", "i8", "bool", ">f4", "f2"]),
    st.sampled_from([(4,), (8, 9), (8, 9, 3)]),
    st.integers(1, 5),
    st.integers(0, 4),
    st.booleans(),
    st.sampled_from(["C", "F"]),
)
def test_an_npz_gives_the_arrays_as_they_are(tmp_path_factory, kind, shape, n, tests, packed, order):
    x = np.asarray(RNG.integers(0, 2, (n + tests, *shape)).astype(kind), order=order)
    y, path = np.arange(n + tests), tmp_path_factory.mktemp("npz") / "a"
    parts = {"x_train": x[:n], "y_train": y[:n], "x_test": x[n:], "y_test": y[n:]} if tests else {"x": x, "y": y}
    with path.open("wb") as file:
        (np.savez_compressed if packed else np.savez)(file, **parts, more=np.array([None]))
    assert same(read(path), x, y, tests)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"x_test": X2[:, :8]}, "other shapes or types"),
        ({"x_test": X2 / 255}, "other shapes or types"),
        ({"y_test": Y2.astype(str)}, "numbers and of the other strings"),
        ({"y_test": Y2[:2]}, "3 samples and y has 2 labels"),
        ({"y_train": Y[:2]}, "7 samples and y has 2 labels"),
        ({"y_train": np.where(Y, np.nan, 0)}, "labels are missing"),
        ({"y_train": np.array(3)}, "lone number"),
    ],
)
def test_parts_of_an_npz_must_be_alike(tmp_path, more, said):
    np.savez(tmp_path / "a.npz", **{"x_train": X, "y_train": Y, "x_test": X2, "y_test": Y2} | more)
    with pytest.raises(InputError, match=rf"a\.npz: .*{said}"):
        read(tmp_path / "a.npz")


def test_parts_of_kinds_that_mean_the_same_go_together(tmp_path):
    np.savez(tmp_path / "a.npz", x_train=X.astype("i8"), y_train=Y, x_test=X2.astype("u8"), y_test=Y2)
    assert same(read(tmp_path / "a.npz"), np.concatenate([X, X2]).astype("i8"), [*Y, *Y2], 3)
    flat = X.reshape(7, -1)
    np.savez(tmp_path / "a.npz", x_train=flat / 2, y_train=Y, x_test=flat, y_test=Y)
    assert same(read(tmp_path / "a.npz"), np.concatenate([flat / 2, flat]), [*Y, *Y], 7)


# -- images ----------------------------------------------------------------------------------------------------------


def put(path, array, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    (array if isinstance(array, Image.Image) else Image.fromarray(array)).save(path, **options)


def tree(root, layout, grey=True):
    """Files by their names, and what reading them must give, in that order."""
    x = pixels(len(layout), 8, 9) if grey else pixels(len(layout), 8, 9, 3)
    for name, image in zip(layout, x, strict=True):
        put(root / name, image)
    return x[:, None] if grey else np.moveaxis(x, -1, 1)


def zipped(folder, path, top=""):
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
    assert same(read(zipped(tmp_path / "d", tmp_path / "z")), x, labels)
    for junk in ("ant/Thumbs.db", "ant/.hidden", "__MACOSX/ant/1.png", "desktop.ini", "notes.TXT", "ant/l.json"):
        (tmp_path / "d" / top / junk).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "d" / top / junk).write_text("junk")
    assert same(read(tmp_path / "d"), x, labels)
    assert same(read(zipped(tmp_path / "d", tmp_path / "z")), x, labels)


@pytest.mark.parametrize("test", ["test", "val", "valid", "Validation"])
@pytest.mark.parametrize("top", ["", "photos/"])
def test_a_train_and_a_test_folder_are_the_parts(tmp_path, test, top):
    x = tree(tmp_path / "d" / top, [name.replace("test/", f"{test}/") for name in SPLIT])
    labels = ["ant", "bee", "bee", "ant", "bee"]
    assert same(read(tmp_path / "d"), x, labels, 2)
    assert same(read(zipped(tmp_path / "d", tmp_path / "z.zip")), x, labels, 2)


def test_validation_images_are_left_out_beside_test_images(tmp_path):
    x = tree(tmp_path, [*SPLIT, "val/ant/9.png"])
    assert same(read(tmp_path), x[:5], ["ant", "bee", "bee", "ant", "bee"], 2)


def test_a_zip_whose_names_begin_with_a_dot_and_a_slash(tmp_path):
    x = tree(tmp_path / "d", PLAIN)
    assert same(read(zipped(tmp_path / "d", tmp_path / "z", "./")), x, ["ant", "ant", "bee", "bee", "cat"])


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


# -- tables ----------------------------------------------------------------------------------------------------------

names = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8).filter(
    lambda name: name.lower() != "nan" and not name.replace(".", "").isnumeric()
)


@few
@given(
    st.lists(names, min_size=2, max_size=5, unique=True),
    st.integers(1, 20),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["utf-8", "utf-8-sig"]),
    st.data(),
)
def test_a_csv_gives_what_pandas_wrote(tmp_path_factory, columns, n, comma, encoding, data):
    if sum(name.count(other) for name in columns for other in ",;\t") > 0:
        columns = [f"c{i}" for i in range(len(columns))]
    label = data.draw(st.sampled_from(columns))
    kind = data.draw(st.sampled_from(["ints", "floats", "strings"]))
    labels = {
        "ints": np.arange(n) * 7,
        "floats": np.arange(n) * 1.0,
        "strings": [f'a "{comma}\n{i % 2}' for i in range(n)],
    }
    frame = pandas.DataFrame(RNG.normal(size=(n, len(columns))).astype(np.float32), columns=columns)
    frame[label] = labels[kind]
    path = tmp_path_factory.mktemp("csv") / "a"
    frame.to_csv(path, index=False, sep=comma, encoding=encoding)
    expected = frame.drop(columns=label).to_numpy(np.float32)
    assert same(read(path, label=label), expected, frame[label])
    if label == columns[-1]:
        assert same(read(path), expected, frame[label])


def test_labels_of_a_csv_are_numbers_only_if_all_are_whole(tmp_path):
    for labels, expected in (
        (["1", "2.0", "+3"], [1, 2, 3]),
        (["1", "b", "3"], ["1", "b", "3"]),
        (["0.5", "b", "3"], ["0.5", "b", "3"]),
        (["1_0", "2", "3"], ["1_0", "2", "3"]),
        (["9007199254740993", "2", "3"], [9007199254740993, 2, 3]),
        (["1e30", "2", "3"], ["1e30", "2", "3"]),
    ):
        (tmp_path / "a.csv").write_text("x,label\n" + "\n\n".join(f"{i},{v}" for i, v in enumerate(labels)))
        assert same(read(tmp_path / "a.csv"), np.arange(3, dtype=np.float32)[:, None], expected)


FRACTIONS = r"column 'price' holds fractions \(0.0005 in row 2\); labels are classes: .*, or name another column with "


def test_labels_with_fractions_are_refused_by_row_and_column(tmp_path):
    frame = pandas.DataFrame({"a": [1.0, 2, 3], "price": [1, 0.0005, 3.25]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        with pytest.raises(InputError, match=FRACTIONS + "stream.label"):
            read(tmp_path / name)
    with pytest.raises(InputError, match=FRACTIONS + "y="):
        Stream.split(frame)


def test_text_in_a_feature_is_refused_by_row_and_column(tmp_path):
    frame = pandas.DataFrame({"a": [1.0, 2, 3], "city": ["rome", "paris", "oslo"], "label": [0, 1, 0]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    said = r"row 1, column 'city' holds text \('rome'\); encode it as numbers, or name the label column with "
    for name in ("a.csv", "a.parquet"):
        with pytest.raises(InputError, match=said + "stream.label"):
            read(tmp_path / name)
    with pytest.raises(InputError, match=said + "y="):
        Stream.split(frame)


def test_the_row_of_a_value_is_counted_over_all_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("prer.data.formats.parquet.ROWS_READ", 2)
    for bad, said in (
        (None, "row 4, column 'a': a value is missing"),
        (1e300, r"row 4, column 'a': 1e\+300 is beyond"),
    ):
        pandas.DataFrame({"a": [1.0, 2, 3, bad, 5], "label": range(5)}).to_parquet(tmp_path / "a")
        with pytest.raises(InputError, match=said):
            read(tmp_path / "a")


def test_empty_lines_before_the_header_are_stepped_over(tmp_path):
    (tmp_path / "a.csv").write_text("\n\na;label\n1;x\n")
    assert same(read(tmp_path / "a.csv"), np.array([[1]], np.float32), ["x"])


def test_separators_in_quotes_do_not_count(tmp_path):
    (tmp_path / "a.csv").write_text('"a,b,c";"d,e";label\n1;2;x\n')
    assert same(read(tmp_path / "a.csv"), np.array([[1, 2]], np.float32), ["x"])


def test_a_csv_of_more_rows_than_are_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("prer.data.formats.csvs.ROWS_READ", 3)
    (tmp_path / "a.csv").write_text("x,label\n" + "".join(f"{i},{i % 2}\n" for i in range(10)))
    assert same(read(tmp_path / "a.csv"), np.arange(10, dtype=np.float32)[:, None], np.arange(10) % 2)
    (tmp_path / "a.csv").write_text("x,y,label\n" + "".join(f"{i},{'?' if i == 7 else 1},0\n" for i in range(10)))
    with pytest.raises(InputError, match="row 8, column 'y' holds text \\('\\?'\\)"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize("labels", [["cat", "dog", "cat"], [3, 1, 2], [1.0, 2.0, 3.0]])
@pytest.mark.parametrize("kind", ["as it is", "category"])
def test_parquet_against_pandas(tmp_path, labels, kind, monkeypatch):
    monkeypatch.setattr("prer.data.formats.parquet.ROWS_READ", 2)
    frame = pandas.DataFrame({"a": [1.5, 2, 3], "kind": labels, "b": [1, 2, 3], "c": [True, False, True]})
    if kind == "category":
        frame["kind"] = frame["kind"].astype("category")
    frame.to_parquet(tmp_path / "a")
    expected = frame[["a", "b", "c"]].to_numpy(np.float32)
    assert same(read(tmp_path / "a", label="kind"), expected, labels)


# -- the whole way ---------------------------------------------------------------------------------------------------


def test_load_gives_the_parts_of_a_path(tmp_path):
    write_idx(tmp_path, "train-", X, Y)
    write_idx(tmp_path, "t10k-", X2, Y2)
    data = load(str(tmp_path))
    assert np.array_equal(data.x, np.concatenate([X, X2])[:, None])
    assert data.y.tolist() == [*Y.tolist(), *Y2.tolist()]
    assert data.tests == len(Y2)
    assert find(str(tmp_path / "nothing")) is None


def test_gzip_in_several_members_is_one_file(tmp_path):
    data = idx_bytes(X)
    write_idx(tmp_path, "train-", X, Y)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(gzip.compress(data[:100]) + gzip.compress(data[100:]))
    assert same(read(tmp_path), X[:, None], Y)


@few
@given(st.binary(max_size=5000), st.integers(1, 6000), st.integers(1, 3000))
def test_inflating_gives_what_was_deflated_and_never_more_than_asked_for(data, most, block):
    packed = zlib.compress(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mat, "BLOCK", block)
        got = mat.Element(3, len(packed), packed=True).read(io.BytesIO(b"abc" + packed + b"what follows"), most)
    assert got == data[:most]


def test_inflating_stops_where_its_part_of_the_file_ends():
    packed = zlib.compress(pixels(3000).tobytes())
    assert 900 < len(mat.Element(0, 1000, packed=True).read(io.BytesIO(packed), 5000)) < 1000
