"""Export runs to TensorBoard, live or afterwards; each seed is a separate run there."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

from prer.errors import InputError
from prer.interop.scalars import scalars


def replay(run: Path, logdir: Path, follow: bool = False) -> int:
    """Write a run's scalars for TensorBoard, all of them or none; return their number."""
    try:
        from tensorboard.compat.proto.summary_pb2 import Summary  # pyrefly: ignore[missing-module-attribute], generated
    except ImportError:
        raise InputError("TensorBoard is not installed; install it with: pip install 'prer[track]'") from None
    name = f"events.out.tfevents.{time.time():010.0f}.{socket.gethostname()}.{os.getpid()}.0"
    files: dict[int, Path] = {}
    count = 0
    for seed, tag, step, value in scalars(run, follow):
        try:
            if seed not in files:
                folder = logdir / run.resolve().name / f"seed-{seed}"
                folder.mkdir(parents=True, exist_ok=True)
                files[seed] = folder / name
                _append(files[seed], file_version="brain.Event:2")
            _append(files[seed], step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)]))
        except OSError as error:
            for file in files.values():
                file.unlink(missing_ok=True)
            raise InputError(f"cannot write {logdir}: {error.strerror}; use another --logdir") from None
        count += 1
    return count


def _append(file: Path, **content: Any) -> None:
    """Append one event. TensorBoard's own writer has a thread, which prints errors before we can catch them."""
    from tensorboard.compat.proto.event_pb2 import Event  # pyrefly: ignore[missing-module-attribute], generated
    from tensorboard.summary.writer.record_writer import RecordWriter

    with file.open("ab") as target:
        RecordWriter(target).write(Event(wall_time=time.time(), **content).SerializeToString())
