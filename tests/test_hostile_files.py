"""Damaged and hostile files: each ends in one sentence that names it, never in a traceback, a hang or a full memory."""

import builtins
import gc
import gzip
import io
import os
import pickle
import re
import resource
import struct
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas
import pyarrow
import pytest
import scipy.io
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pyarrow import parquet

import prer.data.formats.parquet
from prer.cli.main import main
from prer.data import guards as guard
from prer.data.files import read, read_new
from prer.data.reading import Reading
from prer.errors import InputError

few = settings(max_examples=60, deadline=None, database=None)
RNG = np.random.default_rng(0)
CALLED = []


class Bomb:
    """What a hostile pickle does when it is loaded."""

    def __reduce__(self):
        return (CALLED.append, ("unpickled",))


def picture(shape=(8, 8), form="PNG"):
    buffer = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, shape, dtype=np.uint8)).save(buffer, form)
    return buffer.getvalue()


def idx_bytes(array, shape=None):
    shape = array.shape if shape is None else shape
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape) + array.astype(np.uint8).tobytes()


def idx(path, images=None, labels=None, ending=""):
    path.mkdir()
    for word, data, array in (("images", images, np.ones((4, 8, 8))), ("labels", labels, np.arange(4))):
        (path / f"train-{word}{ending}").write_bytes(idx_bytes(array) if data is None else data)


def zipped(path, files, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)


def patched(path, at, data):
    whole = bytearray(path.read_bytes())
    whole[at : at + len(data)] = data
    path.write_bytes(whole)


def npy(header, data=b""):
    text = repr(header).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def float_header(*shape, kind="<f8", fortran=False):
    return {"descr": kind, "fortran_order": fortran, "shape": shape}


LABELS = npy({"descr": "<i8", "fortran_order": False, "shape": (4,)}, np.arange(4).tobytes())


def savez(path, **arrays):
    with path.open("wb") as file:
        np.savez(file, **arrays)


def folder(path, files):
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)


def text(content):
    return lambda path: path.write_bytes(content if isinstance(content, bytes) else content.encode())


# -- makers that need more than one line -----------------------------------------------------------------------------


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


def tar_of(path, *members, packed=True):
    with tarfile.open(path, "w:gz" if packed else "w") as archive:
        for name, kind, data in members:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, len(data), "/etc/passwd"
            archive.addfile(info, io.BytesIO(data))


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


def image_bomb(path):
    buffer = io.BytesIO()
    Image.new("L", (4096, 4096)).save(buffer, "PNG", compress_level=9)
    folder(path, {f"a/{i}.png": buffer.getvalue() for i in range(20)})


def torch_file(path):
    torch.save({"x": Bomb()}, path)


def parquet_with(path, **columns):
    pandas.DataFrame({"a": [1.0, 2], "b": [1, 2], "label": [0, 1]} | columns).to_parquet(path)


def loops(path):
    path.mkdir()
    (path / "a").symlink_to(path)
    (path / "b").symlink_to("b")


def broken_image(path):
    folder(path, {"a/1.png": picture(), "b/2.png": picture((64, 64))[:600]})


GOOD = {"a/1.png": picture(), "b/2.png": picture()}
ROWS = "a,b,label\n1,2,x\n3,4,y\n"

# Each: how the path is made, and what is said of it.
HOSTILE = {
    # idx
    "truncated idx": (lambda p: idx(p, idx_bytes(np.ones((4, 8, 8)))[:-1]), "size is not what its header says"),
    "too long an idx": (lambda p: idx(p, idx_bytes(np.ones((4, 8, 8))) + b"1"), "size is not what its header says"),
    "truncated idx header": (lambda p: idx(p, b"\0\0\x08\x03\0\0"), "cannot be read"),
    "an idx that claims 2^40": (
        lambda p: idx(p, idx_bytes(np.ones(9), (2**16, 2**12, 2**12))),
        "size is not what its header says",
    ),
    "an idx that claims 2^96": (lambda p: idx(p, idx_bytes(np.ones(9), (2**32 - 1,) * 3)), "not what its header says"),
    "an idx.gz that claims 2^40": (
        lambda p: idx(p, gzip.compress(idx_bytes(np.ones(9), (2**16, 2**12, 2**12)))),
        "zip bomb",
    ),
    "an idx.gz that claims a little more": (
        lambda p: idx(p, gzip.compress(idx_bytes(np.ones((4, 8, 8)), (4, 8, 9)))),
        "cannot be read",
    ),
    "an idx.gz that holds more": (
        lambda p: idx(p, gzip.compress(idx_bytes(np.ones((4, 8, 8))) + b"1")),
        "cannot be read",
    ),
    "gzip bomb": (gzip_bomb, "zip bomb"),
    "truncated gzip": (
        lambda p: idx(p, gzip.compress(idx_bytes(RNG.integers(0, 255, (4, 8, 8))))[:-20]),
        "cannot be read",
    ),
    "fewer labels than images": (
        lambda p: idx(p, labels=idx_bytes(np.arange(3))),
        "4 images and 3 labels do not match",
    ),
    "images without labels": (
        lambda p: folder(p, {"train-images": idx_bytes(np.ones((4, 8, 8)))}),
        "labels are missing",
    ),
    "labels without images": (lambda p: folder(p, {"train-labels": idx_bytes(np.arange(4))}), "images are missing"),
    "idx of no images": (lambda p: idx(p, idx_bytes(np.ones((0, 8, 8))), idx_bytes(np.ones(0))), "nothing in it"),
    "idx of floats": (lambda p: idx(p, b"\0\0\x0d\x03" + bytes(100)), "neither images"),
    "idx of two dimensions": (lambda p: idx(p, idx_bytes(np.ones((4, 8)))), "neither images"),
    "idx images of integers": (
        lambda p: idx(p, b"\0\0\x0c\x03" + struct.pack(">3I", 4, 2, 2) + bytes(64)),
        "images of type >i4",
    ),
    "idx images of two sizes": (
        lambda p: (
            idx(p) or folder(p, {"test-images": idx_bytes(np.ones((2, 8, 9))), "test-labels": idx_bytes(np.ones(2))})
        ),
        "another size",
    ),
    "one idx file": (text(idx_bytes(np.ones((4, 8, 8)))), "give the folder"),
    "one idx.gz file": (text(gzip.compress(idx_bytes(np.ones((4, 8, 8))))), "give the folder"),
    # CIFAR
    "truncated CIFAR": (lambda p: folder(p, {"data_batch_1.bin": bytes(3073 * 3 - 1)}), "no multiple of 3073"),
    "CIFAR batches of two kinds": (
        lambda p: folder(p, {"a.bin": bytes(3073), "b.bin": bytes(3074)}),
        "no multiple of 3073",
    ),
    "CIFAR with a wrong label": (
        lambda p: folder(p, {"a.bin": bytes(3073) + b"\x0a" + bytes(3072)}),
        "labels are out of range",
    ),
    "an empty .bin": (lambda p: folder(p, {"a.bin": b"", "b.bin": bytes(3073)}), "a.bin cannot be read, its size"),
    "an error page among .mat": (
        lambda p: p.mkdir() or mat(p / "train.mat") or (p / "test.mat").write_text("404"),
        "cannot be",
    ),
    "an error page for an idx": (
        lambda p: folder(p, {"a-images-idx3.gz": b"<html>404, sorry</html>"}),
        "neither images",
    ),
    "tar without .bin": (lambda p: tar_of(p, ("a.txt", tarfile.REGTYPE, b"hello")), "no .bin files"),
    "tar with links only": (lambda p: tar_of(p, ("data_batch_1.bin", tarfile.SYMTYPE, b"")), "no .bin files"),
    "tar bomb": (tar_bomb, "zip bomb"),
    "truncated tar.gz": (
        cut(lambda p: tar_of(p, ("a.bin", tarfile.REGTYPE, RNG.bytes(3073 * 4)))),
        "cannot be read|no .bin",
    ),
    "truncated tar": (
        cut(lambda p: tar_of(p, ("a.bin", tarfile.REGTYPE, bytes(30730)), packed=False)),
        "cannot be read",
    ),
    # .mat
    "truncated mat": (cut(mat), "cannot be read"),
    "truncated packed mat": (cut(lambda p: mat(p, True)), "cannot be read"),
    "mat with a wrong bit in X": (flipped_mat("X"), "cannot be read"),
    "mat with a wrong bit in y": (flipped_mat("y"), "cannot be read"),
    "mat with more than its numbers": (crafted_mat(mat_head(), element(2, bytes(4096)), bytes(1)), "cannot be read"),
    "mat bomb": (mat_bomb, "zip bomb"),
    "mat without y": (lambda p: mat(p, y=None), "no arrays X and y"),
    "mat with fewer labels": (lambda p: mat(p, y=np.ones((3, 1))), r"X has shape \(8, 8, 3, 4\) for 3 labels"),
    "mat with a flat X": (lambda p: mat(p, X=np.ones((4, 4))), "give X as"),
    "mat of floats": (lambda p: mat(p, X=np.full((8, 8, 3, 4), 0.5)), "whole numbers from 0 to 255"),
    "mat of complex numbers": (lambda p: mat(p, X=np.full((8, 8, 3, 4), 1j)), "no arrays X and y of plain numbers"),
    "mat of text": (lambda p: mat(p, X="hello"), "no arrays X and y of plain numbers"),
    "mat of cells": (lambda p: mat(p, X=np.array([1, "b"], object)), "no arrays X and y of plain numbers"),
    "mat of structs": (lambda p: mat(p, X={"a": np.eye(3)}), "no arrays X and y of plain numbers"),
    "sparse mat": (lambda p: mat(p, X=scipy.sparse.csc_array(np.eye(4))), "no arrays X and y of plain numbers"),
    "mat of a function": (crafted_mat(mat_head(kind=16), element(14, b"")), "no arrays X and y of plain numbers"),
    # scipy.io.loadmat crashes on the first two of these, and inflates all of the other two.
    "mat of unknown types": (crafted_mat(mat_head(), element(8, bytes(4096))), "cannot be read"),
    "mat of nested cells": (
        crafted_mat(*[mat_head((1, 1), kind=1), element(14, b"", 2**31)] * 100_000),
        "no arrays X and y of plain numbers",
    ),
    "mat with a long name": (crafted_mat(mat_head(name=bytes(1 << 26), claimed=2**32 - 8)), "cannot be read"),
    "mat that is longer than its shape": (crafted_mat(mat_head(), element(2, bytes(1 << 26))), "cannot be read"),
    "mat with fractional labels": (lambda p: mat(p, y=np.full((4, 1), 0.5)), "fractions"),
    "only the extra part": (lambda p: p.mkdir() or mat(p / "extra_32x32.mat"), "no train_"),
    "mat of two shapes": (
        lambda p: p.mkdir() or mat(p / "train.mat") or mat(p / "test.mat", X=np.ones((9, 8, 3, 4), np.uint8)),
        "another shape",
    ),
    "mat of many dimensions": (lambda p: mat(p, X=np.ones((1,) * 30 + (2, 2))), "give X as"),
    "mat 7.3": (text(b"MATLAB 7.3 MAT-file, HDF5".ljust(124) + b"\x00\x02IM" + bytes(400)), "save it with -v7"),
    "big-endian mat": (text(b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI" + bytes(400)), "big-endian"),
    # .npz
    "pickle in an npz": (lambda p: savez(p, x=np.array([Bomb()]), y=[0]), "Python objects"),
    "npz that claims a terabyte": (lying_zip, "zip bomb|cannot be read"),
    "npz whose header lies": (
        lambda p: zipped(p, {"x.npy": npy(float_header(2**40)), "y.npy": LABELS}),
        "cannot be read",
    ),
    "npz of negative shape": (
        lambda p: zipped(p, {"x.npy": npy(float_header(-1, -1), bytes(8)), "y.npy": LABELS}),
        "cannot be",
    ),
    "npz bomb": (
        lambda p: zipped(
            p, {"x.npy": npy(float_header(2**27, kind="u1"), bytes(2**27)), "y.npy": LABELS, "z": bytes(2**27)}, 8
        ),
        "zip bomb",
    ),
    "npz with a deep header": (lambda p: zipped(p, {"x.npy": npy("(" * 100), "y.npy": LABELS}), "cannot be read"),
    "npz with half a test part": (
        lambda p: savez(p, x=np.ones((4, 2)), y=np.arange(4), x_test=np.ones((4, 2))),
        "needs both",
    ),
    "npz without arrays of ours": (lambda p: zipped(p, {"data.npy": LABELS}), "no arrays x, y"),
    # zips and folders of images
    "zip slip": (lambda p: zipped(p, {**GOOD, "../../evil/1.png": picture()}), "leads out of the archive"),
    "zip slip with backslashes": (lambda p: zipped(p, {**GOOD, "a\\..\\..\\evil.png": picture()}), "leads out"),
    "absolute name in a zip": (lambda p: zipped(p, {**GOOD, "/etc/evil/1.png": picture()}), "leads out of the archive"),
    "drive letter in a zip": (lambda p: zipped(p, {**GOOD, "C:/evil/1.png": picture()}), "leads out of the archive"),
    "zip bomb": (lambda p: zipped(p, {**GOOD, "a/3.png": bytes(2**28)}, zipfile.ZIP_DEFLATED), "zip bomb"),
    "encrypted zip": (encrypted, "encrypted"),
    "zip with a name twice": (twice, "twice"),
    "zip with wrong UTF-8": (wrong_utf8, "cannot be read"),
    "zip packed by lzma": (lambda p: zipped(p, GOOD, zipfile.ZIP_LZMA), "zip it anew with deflate"),
    "truncated zip": (cut(lambda p: zipped(p, GOOD)), "cannot be read"),
    "empty zip": (lambda p: zipped(p, {}), "no folders with images"),
    "zip in a zip": (
        lambda p: zipped(p, {**GOOD, "b/more.zip": b"PK\x03\x04" + bytes(50)}),
        r"b/more\.zip: it is no image",
    ),
    "images of mixed sizes": (
        lambda p: folder(p, {**GOOD, "b/3.png": picture((9, 8))}),
        "8x8 and 8x9; set stream.size",
    ),
    "broken image": (broken_image, r"b/2\.png: it cannot be read"),
    "no image": (lambda p: folder(p, {**GOOD, "b/model.pt": b"\x80\x02hello"}), r"b/model\.pt: it is no image"),
    "image in no folder": (lambda p: folder(p, {**GOOD, "stray.png": picture()}), "'stray.png' lies in no folder"),
    "images without folders": (lambda p: folder(p, {"1.png": picture(), "2.png": picture()}), "lies in no folder"),
    "image of 5000x5000": (big_png, "5000x5000 pixels; 4096x4096 is the most"),
    "image bomb": (image_bomb, "zip bomb"),
    "floats beyond 1": (
        lambda p: (
            folder(p, {"a/1.tif": picture()}) or Image.fromarray(np.full((8, 8), 2.0, "f4")).save(p / "a" / "1.tif")
        ),
        r"1\.tif: .*floats beyond",
    ),
    "image of a rare format": (
        lambda p: folder(p, {**GOOD, "b/3.png": picture(form="PCX")}),
        r"3\.png: it is no image",
    ),
    "symlink loop": (loops, "cannot be read .Too many levels"),
    "one image": (text(picture()), "one image only"),
    "one JPEG": (text(picture(form="JPEG")), "one image only"),
    # tables
    "missing value": (text("a,b,label\n1,2,x\n3,,y\n"), "row 2, column 'b': a value is missing"),
    "NaN in a table": (text("a,b,label\n1,NaN,x\n3,4,y\n"), "row 1, column 'b': a value is missing"),
    "missing label": (text("a,b,label\n1,2,x\n3,4,\n"), "row 2 has no label"),
    "text in a feature": (text("a,b,label\n1,2,x\n3,blue,y\n"), r"row 2, column 'b' holds text \('blue'\)"),
    "number with underscores": (text("a,b,label\n1,2,x\n3,1_0,y\n"), r"row 2, column 'b' holds text \('1_0'\)"),
    "decimal commas": (text("a;b;label\n1,5;2,5;x\n"), r"row 1, column 'a' holds text \('1,5'\)"),
    "number beyond 32 bits": (text("a,b,label\n1,1e39,x\n"), "row 1, column 'b'"),
    "infinite number": (text("a,b,label\n1,inf,x\n"), "row 1, column 'b'"),
    "ragged rows": (text("a,b,label\n1,2,x\n3,y\n"), "row 2 has 2 values, the header 3"),
    "header only": (text("a,b,label\n"), "without rows"),
    "columns of one name": (text("a,a,label\n1,2,x\n"), "two columns are called 'a'"),
    "column without a name": (text(",a,label\n0,2,x\n"), "column 1 has no name"),
    "no header": (text("1.5,2,3\n1,2,4\n"), "first line holds numbers"),
    "a byte order mark only": (text(b"\xef\xbb\xbf"), "no columns in it"),
    "empty lines": (text("\n\r\n\n"), "no columns in it"),
    "Parquet without columns": (
        lambda p: pandas.DataFrame(index=[1, 2]).to_parquet(p, index=False),
        "no columns in it",
    ),
    "one column": (text("label\n1\n2\n"), "one column only"),
    "NUL in a table": (text(ROWS.replace("3", "\0") + "1,2,x\n" * 200), "format is unknown|NUL"),
    "NUL late in a table": (text(ROWS + "1,2,x\n" * 200 + "1,\0,x\n"), "line 204 holds a NUL"),
    "huge field": (text("a,b,label\n1,2,x\n1,2," + "x" * 200_000), "cannot be read as CSV: field larger"),
    "huge line": (text("a,b,label\n" + "1" * (guard.CHUNK * 17)), "line 2 is longer"),
    "label that is no name": (text("a,b,label\n1,2,x\n1,2," + "x" * 2000), "a label of 2000 characters"),
    "Parquet label that is no name": (lambda p: parquet_with(p, label=["x", "y" * 2000]), "a label of 2000 characters"),
    "class that is no name": (lambda p: zipped(p, {"n" * 2000 + "/1.png": picture()}), "a label of 2000 characters"),
    "many columns of one name": (text(",".join(["a"] * 200_000) + "\n1\n"), "two columns are called 'a'"),
    "many columns": (
        text(",".join(f"a{i}" for i in range(200_000)) + "\n1\n"),
        "row 1 has 1 values, the header 200000",
    ),
    "quote left open": (text('a,b,label\n1,2,"x\n' + "1,2,x\n" * 40_000), "cannot be read as CSV"),
    "Latin-1": (text("a,b,label\n1,2,caf\xe9\n".encode("latin-1")), "not text in UTF-8"),
    "UTF-16": (text(ROWS.encode("utf-16")), "format is unknown"),
    "plain text": (text("Call me Ishmael.\nSome years ago\n"), "one column only"),
    "Parquet with a missing value": (lambda p: parquet_with(p, a=[1.0, None]), "column 'a': a value is missing"),
    "Parquet with text": (lambda p: parquet_with(p, a=["x", "y"]), r"row 1, column 'a' holds text \('x'\)"),
    "Parquet with a missing label": (lambda p: parquet_with(p, label=["x", None]), "labels are missing"),
    "Parquet with lists": (lambda p: parquet_with(p, a=[[1], [2]]), "row 1, column 'a' holds ndarray"),
    "Parquet with a missing truth value": (lambda p: parquet_with(p, a=[True, None]), "column 'a': a value is missing"),
    "Parquet bomb": (
        lambda p: parquet.write_table(
            pyarrow.table({"a": np.zeros(2**24 + 1, "u1"), "b": np.zeros(2**24 + 1, "u1")}), p
        ),
        "zip bomb",
    ),
    "Parquet beyond 32 bits": (lambda p: parquet_with(p, a=[1.0, 1e300]), r"row 2, column 'a': 1e\+300 is beyond"),
    "Parquet of nothing": (lambda p: pandas.DataFrame({"a": [], "label": []}).to_parquet(p), "without rows"),
    "truncated Parquet": (cut(parquet_with), "format is unknown"),
    "broken Parquet": (text(b"PAR1" + bytes(100) + b"PAR1"), "cannot be read"),
    # anything else
    "pickle": (lambda p: p.write_bytes(pickle.dumps(Bomb())), "Python objects"),
    "folder of pickles": (lambda p: folder(p, {"data_batch_1": pickle.dumps(Bomb())}), "take the binary version"),
    "torch file": (torch_file, "Python objects"),
    "HDF5": (text(b"\x89HDF\r\n\x1a\n" + bytes(100)), "HDF5 is not read"),
    "npy": (text(npy(float_header(3), bytes(24))), "one array only"),
    "empty file": (text(b""), "it is empty; give"),
    "empty folder": (lambda p: p.mkdir(), "no folders with images in it; give"),
    "random bytes": (text(RNG.bytes(5000)), "format is unknown; give"),
    "FIFO": (os.mkfifo, "no ordinary file; give"),
    "folder with a FIFO": (lambda p: p.mkdir() or os.mkfifo(p / "train-images.idx"), "no ordinary file; take it away"),
    "device": (lambda p: p.symlink_to("/dev/zero"), "no ordinary file; give"),
}
# Those that are tried through the command line, too.
NAMED = [
    *("truncated idx", "an idx that claims 2^40", "gzip bomb", "fewer labels than images", "tar bomb", "mat bomb"),
    *("pickle in an npz", "npz whose header lies", "zip slip", "zip bomb", "encrypted zip", "zip with wrong UTF-8"),
    *(
        "images of mixed sizes",
        "broken image",
        "symlink loop",
        "missing value",
        "FIFO",
        "device",
        "pickle",
        "torch file",
    ),
    *("empty file", "empty folder", "random bytes", "text in a feature", "image bomb"),
]


@pytest.fixture(autouse=True)
def little_memory():
    """Files that claim much must be refused before anything is allocated for them."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30), limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)
    assert not CALLED


@pytest.fixture(autouse=True, scope="module")
def closed_files():
    """So that a file left open fails here and not in a later test."""
    yield
    gc.collect()


def refused(path, said, **options):
    with pytest.raises(InputError, match=said) as caught:
        read(path, **options)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 200
    assert path.name[-20:] in message or "..." in message
    return message


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused_in_one_sentence(tmp_path, case):
    make, said = HOSTILE[case]
    make(tmp_path / "data")
    refused(tmp_path / "data", said)


KNOWN = [
    Reading(columns=("a", "b"), label="label", shape=(2,)),
    Reading(shape=(1, 8, 8)),
    Reading(size=8, shape=(3, 8, 8)),
]


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_does_no_harm_where_it_is_to_be_predicted(tmp_path, case):
    path = tmp_path / "data"
    HOSTILE[case][0](path)
    for name in ("data", "data.npy", "data.png"):
        path = path.rename(tmp_path / name)
        for known in KNOWN:
            try:
                assert len(read_new(path, known).x)
            except InputError as error:
                assert str(error).isprintable() and len(str(error)) < 300


@pytest.mark.parametrize("case", NAMED)
def test_so_it_is_on_the_command_line(tmp_path, case, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, said = HOSTILE[case]
    make(tmp_path / "data")
    with pytest.raises(SystemExit) as caught:
        main(["run", "stream.data=data", "--seeds", "1"])
    output = capsys.readouterr()
    assert re.search(said, output.err)
    assert caught.value.code == 2
    assert output.err.count("\n") == 1
    assert "Traceback" not in output.err
    assert "data" in output.err
    assert not (tmp_path / "runs").exists()


def test_a_loop_of_links_is_no_file(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    refused(tmp_path / "loop", "cannot be read")


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


def test_what_may_not_be_read_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text(ROWS)

    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "open", forbidden)  # the superuser may read everything
    refused(tmp_path / "a.csv", r"cannot be read \(Permission denied\); check")


def test_what_does_not_fit_into_memory_is_refused(tmp_path):
    with (tmp_path / "a.bin").open("wb") as file:
        file.truncate(3073 << 20)  # a file with holes: all of it would be zeros
    refused(tmp_path / "a.bin", "does not fit into memory")


def test_a_full_memory_is_not_taken_for_a_damaged_file():
    with pytest.raises(MemoryError), guard.sound("file"):
        raise MemoryError


def test_an_image_bomb_does_not_go_off_where_images_are_made_small(tmp_path, monkeypatch):
    monkeypatch.setattr(guard, "FREE", 1 << 20)
    image_bomb(tmp_path)
    refused(tmp_path, "zip bomb", size=8)


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


def test_a_path_with_a_line_break_and_no_utf8_stays_in_one_line(tmp_path):
    path = tmp_path / "a\nb\udcff.csv"
    path.write_bytes(b"")
    refused(path, r"a\\nb.*\.csv: it cannot be read")


def test_a_long_path_leaves_room_for_the_sentence(tmp_path):
    path = tmp_path / ("n" * 200) / ("m" * 200)
    path.mkdir(parents=True)
    refused(path, r"^\.\.\.m+: no folders")


@pytest.mark.parametrize(
    ("label", "said"),
    [("lable", "no column 'lable', did you mean 'label'"), ("zzzz", "no column 'zzzz'; known are a, b, label")],
)
def test_an_unknown_label_column_is_refused_with_a_guess(tmp_path, label, said):
    (tmp_path / "a.csv").write_text(ROWS)
    refused(tmp_path / "a.csv", said, label=label)
    parquet_with(tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", said, label=label)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    parquet_with(tmp_path / "a")
    plain = builtins.__import__

    def without(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return plain(name, *rest)

    for name in [name for name in sys.modules if name.startswith("pyarrow")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    refused(tmp_path / "a", "pip install pyarrow")


def test_parquet_that_has_fewer_rows_than_it_says_is_refused():
    class Lying:
        metadata = SimpleNamespace(num_rows=5)

        def iter_batches(self, *_, **__):
            return [pyarrow.record_batch({"a": [1.0, 2.0], "label": [0, 1]})]

    with pytest.raises(InputError, match="not as many rows as it says"):
        prer.data.formats.parquet._read(Path("a"), Lying(), ["a", "label"], 1, None)


@pytest.mark.parametrize(
    ("most", "said"),
    [("prer.data.formats.zips.ENTRIES", "more than 1 files"), ("prer.data.formats.cifar.MEMBERS", "cannot be")],
)
def test_archives_of_too_many_files_are_refused(tmp_path, monkeypatch, most, said):
    monkeypatch.setattr(most, 1)
    make = (
        (lambda p: zipped(p, GOOD))
        if "zips" in most
        else (lambda p: tar_of(p, *[("a.bin", tarfile.REGTYPE, bytes(3073))] * 2))
    )
    make(tmp_path / "a")
    refused(tmp_path / "a", said)


SOUND = {
    "npz": lambda p: savez(p, x=RNG.random((4, 3)), y=np.arange(4)),
    "mat": mat,
    "zip": lambda p: zipped(p, GOOD),
    "csv": text(ROWS),
    "tar": lambda p: tar_of(p, ("a.bin", tarfile.REGTYPE, bytes(3073))),
    "parquet": parquet_with,
}


@few
@given(st.sampled_from(sorted(SOUND)), st.data())
def test_any_damage_gives_data_or_one_sentence(tmp_path_factory, kind, data):
    path = tmp_path_factory.mktemp("damaged") / "data"
    SOUND[kind](path)
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place : place + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
        whole = whole or bytearray(b"0")
    path.write_bytes(whole)
    try:
        x, y, tests, *_ = read(path)
        assert len(x) == len(y) > tests
    except InputError as error:
        assert str(error).isprintable()
        assert len(str(error)) < 200
