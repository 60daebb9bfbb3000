"""Damaged and hostile data files, by name: how each is made, and what is said of it."""

import gzip
import os
import pickle
import resource
import struct
import tarfile
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas
import pyarrow
import scipy.sparse
from PIL import Image
from pyarrow import parquet
from support.data_files import (
    CALLED,
    GOOD,
    LABELS,
    RNG,
    ROWS,
    Bomb,
    big_png,
    broken_image,
    crafted_mat,
    cut,
    element,
    encrypted,
    flipped_mat,
    float_header,
    folder,
    gzip_bomb,
    idx,
    idx_bytes,
    image_bomb,
    loops,
    lying_zip,
    mat,
    mat_bomb,
    mat_head,
    npy,
    npz_bomb,
    parquet_with,
    picture,
    savez,
    tar_bomb,
    tar_of,
    text,
    torch_file,
    twice,
    wrong_utf8,
    zip_bomb,
    zipped,
)

from prer.data import guards


@contextmanager
def bounded_memory():
    """Files that claim much must be refused before anything is allocated for them, and none may be unpickled."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30), limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    assert not CALLED


# Each: how the path is made, and what is said of it.
HOSTILE = {
    # idx
    "truncated idx": (lambda p: idx(p, idx_bytes(np.ones((4, 8, 8)))[:-1]), "size does not match its header"),
    "too long an idx": (lambda p: idx(p, idx_bytes(np.ones((4, 8, 8))) + b"1"), "size does not match its header"),
    "truncated idx header": (lambda p: idx(p, b"\0\0\x08\x03\0\0"), "cannot be read"),
    "an idx that claims 2^40": (
        lambda p: idx(p, idx_bytes(np.ones(9), (2**16, 2**12, 2**12))),
        "size does not match its header",
    ),
    "an idx that claims 2^96": (lambda p: idx(p, idx_bytes(np.ones(9), (2**32 - 1,) * 3)), "does not match its header"),
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
    "idx of no images": (
        lambda p: idx(p, idx_bytes(np.ones((0, 8, 8))), idx_bytes(np.ones(0))),
        "it contains no samples",
    ),
    "idx of floats": (lambda p: idx(p, b"\0\0\x0d\x03" + bytes(100)), "neither images"),
    "idx of two dimensions": (lambda p: idx(p, idx_bytes(np.ones((4, 8)))), "neither images"),
    "idx images of integers": (
        lambda p: idx(p, b"\0\0\x0c\x03" + struct.pack(">3I", 4, 2, 2) + bytes(64)),
        "images have idx type >i4",
    ),
    "idx images of two sizes": (
        lambda p: (
            idx(p) or folder(p, {"test-images": idx_bytes(np.ones((2, 8, 9))), "test-labels": idx_bytes(np.ones(2))})
        ),
        "differ in size",
    ),
    "one idx file": (text(idx_bytes(np.ones((4, 8, 8)))), "give the folder"),
    "one idx.gz file": (text(gzip.compress(idx_bytes(np.ones((4, 8, 8))))), "give the folder"),
    # CIFAR
    "truncated CIFAR": (lambda p: folder(p, {"data_batch_1.bin": bytes(3073 * 3 - 1)}), "not a multiple of 3073"),
    "CIFAR batches of two kinds": (
        lambda p: folder(p, {"a.bin": bytes(3073), "b.bin": bytes(3074)}),
        "not a multiple of 3073",
    ),
    "CIFAR with a wrong label": (
        lambda p: folder(p, {"a.bin": bytes(3073) + b"\x0a" + bytes(3072)}),
        "labels are out of range",
    ),
    "an empty .bin": (lambda p: folder(p, {"a.bin": b"", "b.bin": bytes(3073)}), "a.bin cannot be read: its size"),
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
    "mat without y": (lambda p: mat(p, y=None), "no numeric arrays named X and y"),
    "mat with fewer labels": (lambda p: mat(p, y=np.ones((3, 1))), r"X has shape \(8, 8, 3, 4\) for 3 labels"),
    "mat with a flat X": (lambda p: mat(p, X=np.ones((4, 4))), "give X as"),
    "mat of floats": (lambda p: mat(p, X=np.full((8, 8, 3, 4), 0.5)), "whole numbers from 0 to 255"),
    "mat of complex numbers": (lambda p: mat(p, X=np.full((8, 8, 3, 4), 1j)), "no numeric arrays named X and y"),
    "mat of text": (lambda p: mat(p, X="hello"), "no numeric arrays named X and y"),
    "mat of cells": (lambda p: mat(p, X=np.array([1, "b"], object)), "no numeric arrays named X and y"),
    "mat of structs": (lambda p: mat(p, X={"a": np.eye(3)}), "no numeric arrays named X and y"),
    "sparse mat": (lambda p: mat(p, X=scipy.sparse.csc_array(np.eye(4))), "no numeric arrays named X and y"),
    "mat of a function": (crafted_mat(mat_head(kind=16), element(14, b"")), "no numeric arrays named X and y"),
    # scipy.io.loadmat crashes on the first two of these, and inflates all of the other two.
    "mat of unknown types": (crafted_mat(mat_head(), element(8, bytes(4096))), "cannot be read"),
    "mat of nested cells": (
        crafted_mat(*[mat_head((1, 1), kind=1), element(14, b"", 2**31)] * 100_000),
        "no numeric arrays named X and y",
    ),
    "mat with a long name": (crafted_mat(mat_head(name=bytes(1 << 26), claimed=2**32 - 8)), "cannot be read"),
    "mat that is longer than its shape": (crafted_mat(mat_head(), element(2, bytes(1 << 26))), "cannot be read"),
    "mat with fractional labels": (lambda p: mat(p, y=np.full((4, 1), 0.5)), "fractions"),
    "only the extra part": (lambda p: p.mkdir() or mat(p / "extra_32x32.mat"), "no train_"),
    "mat of two shapes": (
        lambda p: p.mkdir() or mat(p / "train.mat") or mat(p / "test.mat", X=np.ones((9, 8, 3, 4), np.uint8)),
        "differ in shape",
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
    "npz bomb": (lambda p: p.write_bytes(npz_bomb()), "zip bomb"),
    "npz with a deep header": (lambda p: zipped(p, {"x.npy": npy("(" * 100), "y.npy": LABELS}), "cannot be read"),
    "npz with half a test part": (
        lambda p: savez(p, x=np.ones((4, 2)), y=np.arange(4), x_test=np.ones((4, 2))),
        "needs both",
    ),
    "npz without arrays of ours": (lambda p: zipped(p, {"data.npy": LABELS}), "no arrays x, y"),
    # zips and folders of images
    "zip slip": (lambda p: zipped(p, {**GOOD, "../../evil/1.png": picture()}), "points outside the archive"),
    "zip slip with backslashes": (lambda p: zipped(p, {**GOOD, "a\\..\\..\\evil.png": picture()}), "points outside"),
    "absolute name in a zip": (
        lambda p: zipped(p, {**GOOD, "/etc/evil/1.png": picture()}),
        "points outside the archive",
    ),
    "drive letter in a zip": (lambda p: zipped(p, {**GOOD, "C:/evil/1.png": picture()}), "points outside the archive"),
    "zip bomb": (lambda p: p.write_bytes(zip_bomb()), "zip bomb"),
    "encrypted zip": (encrypted, "encrypted"),
    "zip with a name twice": (twice, "twice"),
    "zip with wrong UTF-8": (wrong_utf8, "cannot be read"),
    "zip packed by lzma": (lambda p: zipped(p, GOOD, zipfile.ZIP_LZMA), "create the zip again with deflate"),
    "truncated zip": (cut(lambda p: zipped(p, GOOD)), "cannot be read"),
    "empty zip": (lambda p: zipped(p, {}), "no folders with images"),
    "zip in a zip": (
        lambda p: zipped(p, {**GOOD, "b/more.zip": b"PK\x03\x04" + bytes(50)}),
        r"b/more\.zip: it is not an image",
    ),
    "images of mixed sizes": (
        lambda p: folder(p, {**GOOD, "b/3.png": picture((9, 8))}),
        "8x8 and 8x9; set stream.size",
    ),
    "broken image": (broken_image, r"b/2\.png: it cannot be read"),
    "no image": (lambda p: folder(p, {**GOOD, "b/model.pt": b"\x80\x02hello"}), r"b/model\.pt: it is not an image"),
    "image in no folder": (
        lambda p: folder(p, {**GOOD, "stray.png": picture()}),
        "'stray.png' is not in a class folder",
    ),
    "images without folders": (
        lambda p: folder(p, {"1.png": picture(), "2.png": picture()}),
        "is not in a class folder",
    ),
    "image of 5000x5000": (big_png, "5000x5000 pixels, more than the limit of 4096x4096"),
    "image bomb": (image_bomb, "zip bomb"),
    "floats beyond 1": (
        lambda p: (
            folder(p, {"a/1.tif": picture()}) or Image.fromarray(np.full((8, 8), 2.0, "f4")).save(p / "a" / "1.tif")
        ),
        r"1\.tif: .*floats beyond",
    ),
    "image of a rare format": (
        lambda p: folder(p, {**GOOD, "b/3.png": picture(form="PCX")}),
        r"3\.png: it is not an image",
    ),
    "symlink loop": (loops, "cannot be read .Too many levels"),
    "one image": (text(picture()), "a single image"),
    "one JPEG": (text(picture(form="JPEG")), "a single image"),
    # tables
    "missing value": (text("a,b,label\n1,2,x\n3,,y\n"), "row 2, column 'b': a value is missing"),
    "NaN in a table": (text("a,b,label\n1,NaN,x\n3,4,y\n"), "row 1, column 'b': a value is missing"),
    "missing label": (text("a,b,label\n1,2,x\n3,4,\n"), "row 2 has no label"),
    "text in a feature": (text("a,b,label\n1,2,x\n3,blue,y\n"), r"row 2, column 'b' holds text \('blue'\)"),
    "number with underscores": (text("a,b,label\n1,2,x\n3,1_0,y\n"), r"row 2, column 'b' holds text \('1_0'\)"),
    "decimal commas": (text("a;b;label\n1,5;2,5;x\n"), r"row 1, column 'a' holds text \('1,5'\)"),
    "number beyond 32 bits": (text("a,b,label\n1,1e39,x\n"), "row 1, column 'b'"),
    "infinite number": (text("a,b,label\n1,inf,x\n"), "row 1, column 'b'"),
    "ragged rows": (text("a,b,label\n1,2,x\n3,y\n"), "row 2 has 2 values, but the header has 3"),
    "header only": (text("a,b,label\n"), "no rows"),
    "columns of one name": (text("a,a,label\n1,2,x\n"), "two columns are called 'a'"),
    "column without a name": (text(",a,label\n0,2,x\n"), "column 1 has no name"),
    "no header": (text("1.5,2,3\n1,2,4\n"), "first line contains numbers"),
    "a byte order mark only": (text(b"\xef\xbb\xbf"), "it has no columns"),
    "empty lines": (text("\n\r\n\n"), "it has no columns"),
    "Parquet without columns": (
        lambda p: pandas.DataFrame(index=[1, 2]).to_parquet(p, index=False),
        "it has no columns",
    ),
    "one column": (text("label\n1\n2\n"), "only one column"),
    "NUL in a table": (text(ROWS.replace("3", "\0") + "1,2,x\n" * 200), "format is unknown|NUL"),
    "NUL late in a table": (text(ROWS + "1,2,x\n" * 200 + "1,\0,x\n"), "line 204 contains a NUL"),
    "huge field": (text("a,b,label\n1,2,x\n1,2," + "x" * 200_000), "cannot be read as CSV: field larger"),
    "huge line": (text("a,b,label\n" + "1" * (guards.CHUNK * 17)), "line 2 is too long"),
    "label that is no name": (text("a,b,label\n1,2,x\n1,2," + "x" * 2000), "a label has 2000 characters"),
    "Parquet label that is no name": (
        lambda p: parquet_with(p, label=["x", "y" * 2000]),
        "a label has 2000 characters",
    ),
    "class that is no name": (lambda p: zipped(p, {"n" * 2000 + "/1.png": picture()}), "a label has 2000 characters"),
    "many columns of one name": (text(",".join(["a"] * 200_000) + "\n1\n"), "two columns are called 'a'"),
    "many columns": (
        text(",".join(f"a{i}" for i in range(200_000)) + "\n1\n"),
        "row 1 has 1 values, but the header has 200000",
    ),
    "quote left open": (text('a,b,label\n1,2,"x\n' + "1,2,x\n" * 40_000), "cannot be read as CSV"),
    "Latin-1": (text("a,b,label\n1,2,caf\xe9\n".encode("latin-1")), "not UTF-8 text"),
    "UTF-16": (text(ROWS.encode("utf-16")), "format is unknown"),
    "plain text": (text("Call me Ishmael.\nSome years ago\n"), "only one column"),
    "Parquet with a missing value": (lambda p: parquet_with(p, a=[1.0, None]), "column 'a': a value is missing"),
    "Parquet with text": (lambda p: parquet_with(p, a=["x", "y"]), "column 'a' holds text, and the last column"),
    "Parquet with a missing label": (lambda p: parquet_with(p, label=["x", None]), "labels are missing"),
    "Parquet with lists": (lambda p: parquet_with(p, a=[[1], [2]]), "row 1, column 'a' holds ndarray"),
    "Parquet with a missing truth value": (lambda p: parquet_with(p, a=[True, None]), "column 'a': a value is missing"),
    "Parquet bomb": (
        lambda p: parquet.write_table(
            pyarrow.table({"a": np.zeros(2**24 + 1, "u1"), "b": np.zeros(2**24 + 1, "u1")}), p
        ),
        "zip bomb",
    ),
    "Parquet beyond 32 bits": (lambda p: parquet_with(p, a=[1.0, 1e300]), r"row 2, column 'a': 1e\+300 does not fit"),
    "Parquet of nothing": (lambda p: pandas.DataFrame({"a": [], "label": []}).to_parquet(p), "no rows"),
    "truncated Parquet": (cut(parquet_with), "format is unknown"),
    "broken Parquet": (text(b"PAR1" + bytes(100) + b"PAR1"), "cannot be read"),
    # anything else
    "pickle": (lambda p: p.write_bytes(pickle.dumps(Bomb())), "it is a pickle"),
    "folder of pickles": (lambda p: folder(p, {"data_batch_1": pickle.dumps(Bomb())}), "use the binary version"),
    "torch file": (torch_file, "it is a pickle"),
    "HDF5": (text(b"\x89HDF\r\n\x1a\n" + bytes(100)), "HDF5 is not supported"),
    "npy": (text(npy(float_header(3), bytes(24))), "only one array"),
    "empty file": (text(b""), "it is empty; give"),
    "empty folder": (lambda p: p.mkdir(), "no folders with images; give"),
    "random bytes": (text(RNG.bytes(5000)), "format is unknown; give"),
    "FIFO": (os.mkfifo, "not a regular file; give"),
    "folder with a FIFO": (lambda p: p.mkdir() or os.mkfifo(p / "train-images.idx"), "not a regular file; remove it"),
    "device": (lambda p: p.symlink_to("/dev/zero"), "not a regular file; give"),
}
