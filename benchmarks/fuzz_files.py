"""Check that no file makes reading crash or hang: thousands of damaged files, each read in a worker process.

python benchmarks/fuzz_files.py [--count 12000] [--seed 0] [--seconds 10] [--json FILE]

Each file starts as a valid one of its format, with random sizes and contents. It is then damaged: bits are flipped, the file
is cut or spliced, bytes are inserted, header fields are set to extreme values; compressed formats are also damaged inside.
Reading must end with a stream or with an error of one sentence, within the time limit and within 4 GiB of address space
above what the worker needs to start.
"""

import argparse
import gzip
import hashlib
import io
import itertools
import json
import os
import platform
import shutil
import struct
import tarfile
import tempfile
import time
import zipfile
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
from worker import Worker, answer, noted, shared

from prer.runs.environment import environment

EXTREME = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)


# -- valid files: each returns {name: bytes}, and the name to damage (or "" for the file itself) -------------------------


def pixels(rng, *shape):
    return rng.integers(0, 256, shape, dtype=np.uint8)


def idx_bytes(array):
    code = {"u": 8, "i": 12}[array.dtype.kind]
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape) + array.tobytes()


def idx(rng, packed=False):
    files = {}
    for part in ("train", "t10k"):
        n = int(rng.integers(4, 9))
        labels = (np.arange(n) % 2).astype(np.uint8 if rng.random() < 0.7 else ">i4")
        files[f"{part}-images-idx3-ubyte"] = idx_bytes(pixels(rng, n, 8, 9))
        files[f"{part}-labels-idx1-ubyte"] = idx_bytes(labels)
    target = str(rng.choice(list(files)))
    if packed:
        if rng.random() < 0.6:
            files[target] = damaged(rng, files[target], 16)
        files = {f"{name}.gz": gzip.compress(data, 1, mtime=0) for name, data in files.items()}
        target += ".gz"
    return files, target, 16


def cifar_bytes(rng, n):
    fine = np.arange(n) % 2
    labels = (fine[:, None] if rng.random() < 0.5 else np.stack([rng.integers(0, 20, n), fine], 1)).astype(np.uint8)
    return np.concatenate([labels, pixels(rng, n, 3072)], 1).tobytes()


def cifar(rng):
    files = {"data_batch_1.bin": cifar_bytes(rng, 4)}
    return files, "data_batch_1.bin" if rng.random() < 0.5 else "", 4


def tar(rng):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in ("c/data_batch_1.bin", "c/test_batch.bin", "c/readme.html"):
            data = cifar_bytes(rng, 2) if name.endswith("bin") else b"hello"
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    data = buffer.getvalue()
    data = damaged(rng, data, 512) if rng.random() < 0.7 else data
    return {"c.tar.gz": gzip.compress(data, 1, mtime=0) if rng.random() < 0.8 else data}, "", 32


def mat(rng):
    from scipy.io import savemat

    n, buffer = int(rng.integers(1, 8)), io.BytesIO()
    kind = rng.choice([np.uint8, np.float64, np.int16])
    arrays = {
        "X": pixels(rng, 8, 9, 3, n).astype(kind),
        "y": (np.arange(n)[:, None] % 2 + rng.integers(1, 10)).astype(rng.choice([np.uint8, np.float64])),
    }
    savemat(buffer, arrays)
    data = buffer.getvalue()
    return (
        {"train_32x32.mat": mat_packed(rng, data) if rng.random() < 0.6 else data},
        "" if rng.random() < 0.5 else "train_32x32.mat",
        200,
    )


def mat_packed(rng, data):
    """The same with compressed arrays, some of them damaged before compression."""
    parts, rest = [data[:128]], data[128:]
    while rest:
        length = 8 + struct.unpack("<II", rest[:8])[1]
        element = damaged(rng, rest[:length], 64) if rng.random() < 0.3 else rest[:length]
        packed, rest = zlib.compress(element, 1), rest[length:]
        parts.append(struct.pack("<II", 15, len(packed)) + packed)
    return b"".join(parts)


def npz(rng):
    n, inner = int(rng.integers(2, 9)), {}
    for name in ("x", "y") if rng.random() < 0.5 else ("x_train", "y_train", "x_test", "y_test"):
        buffer = io.BytesIO()
        labels = np.array(["a", "b"])[np.arange(n) % 2] if rng.random() < 0.3 else np.arange(n) % 2
        np.save(
            buffer, labels if name[0] == "y" else pixels(rng, n, 8, 8) if rng.random() < 0.5 else rng.random((n, 4))
        )
        inner[f"{name}.npy"] = buffer.getvalue()
    if rng.random() < 0.6:
        name = str(rng.choice(list(inner)))
        inner[name] = damaged(rng, inner[name], 128)
    return {"a.npz": zipped(rng, inner)}, "", 64


def zipped(rng, files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if rng.random() < 0.5 else zipfile.ZIP_STORED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()


def image_bytes(rng):
    from PIL import Image

    mode = str(rng.choice(["L", "RGB", "P", "RGBA", "1", "LA", "CMYK", "I;16"]))
    form = str(rng.choice(["PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM"]))
    array = pixels(rng, 8, 8, 3)
    image = Image.fromarray(array)
    image = Image.fromarray(array[..., 0].astype(np.uint16) * 257) if mode == "I;16" else image.convert(mode)
    buffer = io.BytesIO()
    try:
        image.save(buffer, form)
    except (OSError, ValueError, KeyError):  # not every format has every mode
        image.convert("RGB").save(buffer, form)
    return buffer.getvalue()


def image_files(rng):
    names = [f"{part}{label}/{i}.png" for part in ("train/", "test/") for label in "ab" for i in range(2)]
    return {name: image_bytes(rng) for name in names[: int(rng.choice([4, 8]))]}


def folder(rng):
    files = image_files(rng)
    return files, str(rng.choice(list(files))), 64


def zip_of_images(rng):
    files = image_files(rng)
    if rng.random() < 0.6:
        name = str(rng.choice(list(files)))
        files[name] = damaged(rng, files[name], 64)
    return {"a.zip": zipped(rng, files)}, "", 64


def csv(rng):
    comma, n = str(rng.choice([",", ";", "\t"])), int(rng.integers(1, 9))
    rows = [["a", "b", '"c d"', "label"]]
    rows += [[f"{v:.3g}" for v in rng.normal(size=3)] + [str(rng.choice(["cat", "dog", "1", "2.0"]))] for _ in range(n)]
    text = str(rng.choice(["\n", "\r\n"])).join(comma.join(row) for row in rows)
    return {"a.csv": (b"\xef\xbb\xbf" if rng.random() < 0.2 else b"") + text.encode() + b"\n"}, "", 40


def parquet(rng):
    import pyarrow
    from pyarrow import parquet as writer

    n, buffer = int(rng.integers(1, 20)), io.BytesIO()
    label = pyarrow.array(rng.choice(["cat", "dog"], n)) if rng.random() < 0.5 else pyarrow.array(rng.integers(0, 3, n))
    table = pyarrow.table({"a": rng.normal(size=n), "b": rng.integers(0, 9, n), "label": label})
    writer.write_table(table, buffer, compression=str(rng.choice(["none", "snappy", "gzip", "zstd"])))
    return {"a.parquet": buffer.getvalue()}, "", 64


FORMATS = {
    "idx": idx,
    "idx.gz": lambda rng: idx(rng, packed=True),
    "cifar .bin": cifar,
    "tar.gz": tar,
    "mat": mat,
    "npz": npz,
    "zip of images": zip_of_images,
    "folder of images": folder,
    "csv": csv,
    "parquet": parquet,
}


# -- damage ------------------------------------------------------------------------------------------------------------


def damaged(rng, data, header):
    """The same bytes with one to four faults."""
    data = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        if data:
            data = ACCIDENTS[int(rng.integers(len(ACCIDENTS)))](rng, data, header)
    return bytes(data)


def _flip(rng, data, header):
    for place in rng.integers(0, len(data), int(rng.integers(1, 9))):
        data[place] ^= 1 << int(rng.integers(8))
    return data


def _cut(rng, data, header):
    return data[: int(rng.integers(0, len(data)))]


def _splice(rng, data, header):
    a, b, to = (int(v) for v in rng.integers(0, len(data), 3))
    piece = data[min(a, b) : max(a, b)][:2048]
    return data[:to] + piece + data[to + (len(piece) if rng.random() < 0.5 else 0) :]


def _insert(rng, data, header):
    to = int(rng.integers(0, len(data) + 1))
    return data[:to] + rng.bytes(int(rng.integers(1, 64))) + data[to:]


def _field(rng, data, header):
    """Set a field of the header, or of the directory at the end, to an extreme value."""
    value, width = int(rng.choice(EXTREME)), int(rng.choice([1, 2, 4, 8]))
    field = (value & (256**width - 1)).to_bytes(width, "little" if rng.random() < 0.5 else "big")
    place = int(rng.integers(0, min(header, len(data))))
    place = place if rng.random() < 0.7 else max(len(data) - place - width, 0)
    data[place : place + width] = field
    return data


def _text(rng, data, header):
    """Insert words that parsers know at random places."""
    word = rng.choice(
        [b"nan", b"", b",", b'"', b"\n", b"\0", b"1e999", b"-1", b"../", b"PK\x03\x04", b"PAR1", b"ustar", b"\xff\xfe"]
    )
    to = int(rng.integers(0, len(data) + 1))
    return data[:to] + word + data[to + (len(word) if rng.random() < 0.5 else 0) :]


ACCIDENTS = (_flip, _cut, _splice, _insert, _field, _field, _text)


def case(seed, number, attempt):
    """The files of one case, and the name that is read; '.' is their folder."""
    rng = np.random.default_rng([seed, number, attempt])
    kind = list(FORMATS)[number % len(FORMATS)]
    files, target, header = FORMATS[kind](rng)
    name = target or next(iter(files))
    inside = (
        kind in ("tar.gz", "npz", "zip of images", "idx.gz", "mat") and rng.random() < 0.4
    )  # damaged inside a valid zip
    if number >= 2 * len(FORMATS) and not inside:
        files[name] = damaged(rng, files[name], header)
    return kind, files, name, "." if target else name


# -- workers -----------------------------------------------------------------------------------------------------------


def judge(path):
    """Read one path and return the outcome."""
    from prer.data.files import read
    from prer.errors import InputError

    try:
        data = read(Path(path))
        sound = len(data.x) == len(data.y) > 0 and 0 <= data.tests < len(data.y)
        result, said = "read" if sound else "tracebacks", f"{data.x.shape} {len(data.y)} {data.tests}"
        return "streams" if sound and made(data) else result, said
    except InputError as error:
        said = str(error)
        return "refused" if said.isprintable() and len(said) < 300 else "tracebacks", said


def made(data):
    """Whether the data makes a stream; if not, the error must be one sentence, too."""
    from prer.errors import InputError
    from prer.streams.stream import Stream

    try:
        return bool(Stream.split(data, classes_per_task=max(len(set(data.y.tolist())), 2)))
    except InputError as error:
        assert str(error).isprintable() and len(str(error)) < 300, error
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json")
    parser.add_argument("--keep", help="a folder for the files that were neither accepted nor refused")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        answer(judge)
    else:
        fuzz(options)


def fuzz(options):
    """Make the files, let workers read them, and write the record of outcomes."""
    seen, tables, faults = set(), {kind: Counter() for kind in FORMATS}, []

    def one(worker, number):
        for attempt in itertools.count():
            kind, files, name, path = case(options.seed, number, attempt)
            digest = hashlib.sha256(files[name]).digest()
            if digest not in seen:
                break
        seen.add(digest)
        with tempfile.TemporaryDirectory() as root:
            for relative, data in files.items():
                place = Path(root, "data", relative)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
            result, said, seconds, peak = worker.tried(str(Path(root, "data", path)))
            if result not in ("streams", "read", "refused"):
                faults.append(
                    {
                        "format": kind,
                        "number": number,
                        "attempt": attempt,
                        "result": result,
                        "said": said.replace(root, "")[:300],
                    }
                )
                print(faults[-1], flush=True)
                if options.keep:
                    shutil.copytree(Path(root, "data"), Path(options.keep, str(number)), dirs_exist_ok=True)
        noted(tables[kind], "files", result, seconds, peak)

    start = time.perf_counter()
    numbers = range(options.count)
    shared(one, numbers, options.workers, lambda: Worker(__file__, os.devnull, options.seconds))
    fields = (
        "files",
        "distinct",
        "streams",
        "read",
        "refused",
        "crashes",
        "hangs",
        "tracebacks",
        "slowest seconds",
        "peak MiB of a worker",
    )
    record = {
        "command": f"python benchmarks/fuzz_files.py --count {options.count} --seed {options.seed} --seconds {options.seconds:g}",
        "hardware": f"{platform.machine()}, {options.workers} workers, 4 GiB of memory for each",
        "versions": versions(),
        "commit": environment()["commit"],
        "seed": options.seed,
        "total": {field: sum(table[field] for table in tables.values()) for field in fields[:8]},
        "formats": {kind: {field: table[field] for field in fields} for kind, table in tables.items()},
        "faults": faults,
        "seconds": round(time.perf_counter() - start),
    }
    print(json.dumps(record, indent=1))
    if options.json:
        Path(options.json).write_text(json.dumps(record, indent=1) + "\n")


def versions():
    from importlib.metadata import version

    names = ("numpy", "torch", "pillow", "pyarrow", "scipy")
    return {"python": platform.python_version()} | {name: version(name) for name in names}


if __name__ == "__main__":
    main()
