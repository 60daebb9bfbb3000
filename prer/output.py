"""Files that the user names by an option, such as -o: written whole or not at all."""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from prer.disk import replace_file
from prer.errors import InputError


def write_output(file: Path, data: bytes, option: str) -> None:
    """Replace a file atomically, or write into a pipe or device. A link stays: what it leads to is written."""
    with _explained(file, option):
        if _is_stream(file):
            file.write_bytes(data)
            return
        target = Path(os.path.realpath(file))
        try:
            replace_file(target, data)
        except PermissionError:  # its folder may not be ours, and the file may be
            if not target.exists():
                raise
            target.write_bytes(data)


def write_into(folder: Path, files: Mapping[str, bytes], option: str) -> list[Path]:
    """Write files by name into a folder, which is made where there is none; their paths."""
    with _explained(folder, option):
        folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        write_output(folder / name, data, option)
    return [folder / name for name in files]


def check_output(file: Path, option: str) -> None:
    """Refuse a file that cannot be written, before minutes are spent on what would go there."""
    with _explained(file, option):
        if not _is_stream(file):
            trial = Path(os.path.realpath(file)).with_name(f".{file.name}.new")
            trial.touch()
            trial.unlink()


def _is_stream(file: Path) -> bool:
    """Whether this is a pipe or a character device; OSError where it is something else than these or a file."""
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        return True
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "this is not a file")
    return False


@contextmanager
def _explained(file: Path, option: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}; give another {option}") from None
