"""Exceptions that end a command early, and their exit codes."""

import re

NO_MEMORY = "out of memory; use fewer seeds, or smaller networks and batches"


class InputError(ValueError):
    """Invalid user input; the message is one sentence that says what to do. Exit code 2."""


class RunError(RuntimeError):
    """A run failed after it had started; the message says what happened and where. Exit code 1."""


class Interrupted(BaseException):
    """A signal stopped the run, which is saved; like KeyboardInterrupt, not an error. Exit code 130 or 143."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number, self.folder = number, ""  # without a folder, the same command resumes
        self.options: list[str] = []  # what `prer resume` needs besides the folder


def out_of_memory(error: BaseException) -> bool:
    """Whether this is an out-of-memory error of Python, torch or a GPU."""
    torchs = isinstance(error, RuntimeError) and re.search("out of memory|allocate memory", str(error))
    return isinstance(error, MemoryError) or bool(torchs)
