"""CIFAR's binary files: loose, in a folder, and in archives."""

import tarfile

import numpy as np
import pytest
from support.data_files import pixels, same

from prer.data import guards
from prer.data.files import read


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
    monkeypatch.setattr(guards, "CHUNK", 1000)
    (tmp_path / "a.bin").write_bytes(cifar_bytes(C, FINE % 10))
    assert same(read(tmp_path / "a.bin"), C, FINE % 10)
