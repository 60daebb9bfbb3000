"""Why a command ends early, with exit codes."""

import re

NO_MEMORY = "the memory is not enough for this; take fewer seeds, or smaller networks and batches"


class InputError(ValueError):
    """What the user gave is wrong; the message is one sentence that says what to do. Exit code 2."""


class RunError(RuntimeError):
    """A run that started well could not go on; the message says what happened and where. Exit code 1."""


class Interrupted(BaseException):
    """A signal came, and the run is saved; like KeyboardInterrupt, no error. Exit code 130 or 143."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number, self.folder = number, ""  # where there is no folder, the same command goes on


def out_of_memory(error: BaseException) -> bool:
    """Whether this is Python's, torch's or a GPU's way to say that memory is short."""
    torchs = isinstance(error, RuntimeError) and re.search("out of memory|allocate memory", str(error))
    return isinstance(error, MemoryError) or bool(torchs)
