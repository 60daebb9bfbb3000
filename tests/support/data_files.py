"""Data files of every format, sound, damaged and hostile, and what reading them must give."""

import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from functools import cache

import numpy as np
import pandas
import pytest
import scipy.io
import torch
from PIL import Image

RNG = np.random.default_rng(0)


def pixels(*shape):
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def same(data, x, y, tests=0):
    assert np.array_equal(np.asarray(data.x), x)
    assert np.asarray(data.x).dtype == np.asarray(x).dtype
    assert data.y.tolist() == np.asarray(y).tolist()
    assert data.tests == tests
    return True


# -- idx --------------------------------------------------------------------------------------------------------------


def idx_bytes(array, shape=None):
    """An array as an idx file, whose header may claim another shape."""
    shape, whole = array.shape if shape is None else shape, array.dtype == np.dtype(">i4")
    data = array.tobytes() if whole else array.astype(np.uint8).tobytes()
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, 12 if whole else 8, len(shape), *shape) + data


def write_idx(folder, prefix, x, y, packed=False, ending="-idx{}-ubyte"):
    folder.mkdir(exist_ok=True)
    for word, array in (("images", x), ("labels", y)):
        data, name = idx_bytes(array), f"{prefix}{word}{ending.format(array.ndim)}"
        (folder / (name + ".gz" if packed else name)).write_bytes(gzip.compress(data) if packed else data)


# -- npz --------------------------------------------------------------------------------------------------------------


def npy(header, data=b""):
    text = repr(header).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def float_header(*shape, kind="<f8", fortran=False):
    return {"descr": kind, "fortran_order": fortran, "shape": shape}


def savez(path, **arrays):
    with path.open("wb") as file:
        np.savez(file, **arrays)


# -- zips, tars and folders -------------------------------------------------------------------------------------------


def zipped(path, files, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)


def tar_of(path, *members, packed=True):
    with tarfile.open(path, "w:gz" if packed else "w") as archive:
        for name, kind, data in members:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, len(data), "/etc/passwd"
            archive.addfile(info, io.BytesIO(data))


def folder(path, files):
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)


def text(content):
    return lambda path: path.write_bytes(content if isinstance(content, bytes) else content.encode())


# -- images -----------------------------------------------------------------------------------------------------------


def picture(shape=(8, 8), form="PNG"):
    buffer = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, shape, dtype=np.uint8)).save(buffer, form)
    return buffer.getvalue()


GOOD = {"a/1.png": picture(), "b/2.png": picture()}


# -- mat --------------------------------------------------------------------------------------------------------------


def mat(path, packed=False, **arrays):
    arrays = {"X": RNG.integers(0, 256, (8, 8, 3, 4), dtype=np.uint8), "y": np.arange(4)[:, None] + 1} | arrays
    with path.open("wb") as file:
        scipy.io.savemat(
            file, {key: value for key, value in arrays.items() if value is not None}, do_compression=packed
        )


def element(kind, data, claimed=None):
    return struct.pack("<II", kind, len(data) if claimed is None else claimed) + data + bytes(-len(data) % 8)


def mat_head(shape=(32, 32, 1, 4), name=b"X", kind=9, claimed=None):
    """What precedes the numbers of an array."""
    dims = struct.pack(f"<{len(shape)}i", *shape)
    return element(6, struct.pack("<II", kind, 0)) + element(5, dims) + element(1, name, claimed)


def crafted_mat(*inside):
    """A compressed array made byte by byte, after a sound y."""

    def made(path):
        mat(path, X=None)
        packed = zlib.compress(struct.pack("<II", 14, 2**31) + b"".join(inside))
        path.write_bytes(path.read_bytes() + struct.pack("<II", 15, len(packed)) + packed)

    return made


# -- tables -----------------------------------------------------------------------------------------------------------


ROWS = "a,b,label\n1,2,x\n3,4,y\n"


def parquet_with(path, **columns):
    pandas.DataFrame({"a": [1.0, 2], "b": [1, 2], "label": [0, 1]} | columns).to_parquet(path)


# -- damaged and hostile files ----------------------------------------------------------------------------------------


CALLED = []


class Bomb:
    """What a hostile pickle does when it is loaded."""

    def __reduce__(self):
        return (CALLED.append, ("unpickled",))


LABELS = npy({"descr": "<i8", "fortran_order": False, "shape": (4,)}, np.arange(4).tobytes())


# -- damaged and hostile files ----------------------------------------------------------------------------------------


def idx(path, images=None, labels=None, ending=""):
    path.mkdir()
    for word, data, array in (("images", images, np.ones((4, 8, 8))), ("labels", labels, np.arange(4))):
        (path / f"train-{word}{ending}").write_bytes(idx_bytes(array) if data is None else data)


def encrypted(path):
    zipped(path, {"a/1.png": picture()})
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"PK\x01\x02") + 8] + b"\x01" + whole[whole.index(b"PK\x01\x02") + 9 :])


def twice(path):
    with zipfile.ZipFile(path, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("a/1.png", picture())
        archive.writestr("a/1.png", picture())


def wrong_utf8(path):
    zipped(path, {"caf\u00e9/1.png": picture()})
    path.write_bytes(path.read_bytes().replace("\u00e9".encode(), b"\xff\xfe"))


def lying_zip(path):
    """A member that claims a terabyte, in its own header and in the directory."""
    zipped(path, {"x.npy": npy(float_header(2**17, 2**20)), "y.npy": LABELS})
    whole = bytearray(path.read_bytes())
    place = whole.index(b"PK\x01\x02")
    whole[place + 24 : place + 28] = b"\xfe\xff\xff\xff"
    path.write_bytes(whole)


def tar_bomb(path):
    info = tarfile.TarInfo("data_batch_1.bin")
    info.size = 3073 << 20
    path.write_bytes(gzip.compress(info.tobuf() + bytes(1 << 20)))


def gzip_bomb(path):
    idx(
        path,
        gzip.compress(idx_bytes(np.zeros(1 << 22), (2**31, 28, 28))),
        gzip.compress(idx_bytes(np.zeros(1), (2**31,))),
    )


# A compressed X that claims more than there is: 2^28 images.
mat_bomb = crafted_mat(mat_head((32, 32, 1, 2**20 - 1)), element(2, bytes(1 << 20), (2**20 - 1) * 1024))


def flipped_mat(name):
    """A compressed array with one wrong bit, which only the checksum behind the padding can tell."""

    def made(path):
        arrays = {"X": np.full((5, 5, 1, 5), 7, np.uint8), "y": np.ones((5, 1), np.uint8)}
        mat(path, **dict.fromkeys(arrays) | {name: arrays[name]})
        packed = bytearray(zlib.compress(path.read_bytes()[128:], 0))
        packed[-12] ^= 2  # a number; three bytes of padding and four of the checksum follow the last one
        mat(path, **arrays | {name: None})
        path.write_bytes(path.read_bytes() + struct.pack("<II", 15, len(packed)) + packed)

    return made


def cut(make, share=0.6):
    def made(path):
        make(path)
        whole = path.read_bytes()
        path.write_bytes(whole[: int(len(whole) * share)])

    return made


def big_png(path):
    """5000x5000 pixels, announced by the header; there is no need to make them."""
    data = bytearray(picture())
    data[16:24] = struct.pack(">II", 5000, 5000)
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    folder(path, {"a/1.png": picture(), "b/2.png": bytes(data)})


@cache
def zip_bomb():
    """A zip of images, one of which inflates to 256 MiB of zeros."""
    archive = io.BytesIO()
    zipped(archive, {**GOOD, "a/3.png": bytes(2**28)}, zipfile.ZIP_DEFLATED)
    return archive.getvalue()


@cache
def npz_bomb():
    """An .npz whose arrays inflate to 256 MiB of zeros."""
    archive, zeros = io.BytesIO(), bytes(2**27)
    arrays = {"x.npy": npy(float_header(2**27, kind="u1"), zeros), "y.npy": LABELS, "z": zeros}
    zipped(archive, arrays, zipfile.ZIP_DEFLATED)
    return archive.getvalue()


def image_bomb(path):
    buffer = io.BytesIO()
    Image.new("L", (4096, 4096)).save(buffer, "PNG", compress_level=9)
    folder(path, {f"a/{i}.png": buffer.getvalue() for i in range(20)})


def torch_file(path):
    torch.save({"x": Bomb()}, path)


def loops(path):
    path.mkdir()
    (path / "a").symlink_to(path)
    (path / "b").symlink_to("b")


def broken_image(path):
    folder(path, {"a/1.png": picture(), "b/2.png": picture((64, 64))[:600]})
