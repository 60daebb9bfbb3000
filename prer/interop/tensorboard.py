"""Runs in TensorBoard, live or afterwards: each seed is a run of its own there."""

from __future__ import annotations

from pathlib import Path

from prer.errors import InputError
from prer.interop.scalars import scalars


def replay(run: Path, logdir: Path, follow: bool = False) -> int:
    """Write a run's scalars where TensorBoard finds them; how many there were."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise InputError("TensorBoard is not installed; pip install 'prer[track]' brings it") from None
    writers: dict[int, SummaryWriter] = {}
    count, name = 0, run.resolve().name
    try:
        for scalar in scalars(run, follow):
            if scalar.seed not in writers:
                writers[scalar.seed] = SummaryWriter(str(logdir / name / f"seed-{scalar.seed}"))
            writers[scalar.seed].add_scalar(scalar.name, scalar.value, scalar.step)
            count += 1
    except OSError as error:
        raise InputError(f"cannot write {logdir}: {error.strerror or error}; give another --logdir") from None
    finally:
        for writer in writers.values():
            writer.close()
    return count
