"""The ways in which a command can end before its time, and their exit codes."""

import difflib
import re
from collections.abc import Iterable

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


def printable(text: str) -> str:
    """Text that a terminal can be given: what could move the cursor or change colours becomes escapes such as \\x1b."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)


def sentence(error: Exception, most: int = 2000) -> str:
    """What an error says in one line that a terminal can be given, whatever names of files are in it."""
    text = printable(str(error))
    return text if len(text) <= most else f"{text[:most]}..."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """How a sentence about an unknown word goes on.

    Example:
        >>> did_you_mean("mnits", ["mnist", "svhn"]), did_you_mean("x", ["mnist", "svhn"])
        (", did you mean 'mnist'?", '; known are mnist, svhn')
    """
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f", did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}"
