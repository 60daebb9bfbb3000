"""Standard output and standard error as commands use them: any text can be written, and an error names the stream."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TextIO

from prer.errors import RunError

SIGPIPE = 13  # its number everywhere; Windows does not have it


class Stream(io.TextIOBase):
    """A standard stream. What its encoding lacks is written in ASCII, and no error of it is taken for one of a file.

    It has no `buffer`, so click does not write UTF-8 to a stream that is ASCII.
    """

    def __init__(self, stream: TextIO, name: str) -> None:
        self.stream, self.name = stream, name

    @property
    def encoding(self) -> str:  # pyrefly: ignore[bad-override]
        """The stream's own."""
        return self.stream.encoding or "utf-8"

    def isatty(self) -> bool:
        """Whether somebody watches."""
        return self.stream.isatty()

    def fileno(self) -> int:
        """The stream's own."""
        return self.stream.fileno()

    def write(self, text: str, /) -> int:
        """Write text, as far as possible as it is."""
        if text == "":  # click tries a stream by writing nothing, and would swallow the error of one that is full
            return 0
        with self._named():
            return self.stream.write(self._writable(text))

    def flush(self) -> None:
        """Write what is left to be written."""
        with self._named():
            self.stream.flush()

    def _writable(self, text: str) -> str:
        try:
            text.encode(self.encoding, self.stream.errors or "strict")
            return text
        except UnicodeEncodeError:
            plain = text.replace(" ± ", " +-")  # as wide as before, for tables
            return plain.encode(self.encoding, "backslashreplace").decode(self.encoding)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:  # nobody reads any more, as after `| head -1`: end as silently as other programs do
            self._discard()
            raise SystemExit(128 + SIGPIPE) from None
        except OSError as error:
            self._discard()
            raise RunError(f"cannot write to {self.name}: {error.strerror}") from None

    def _discard(self) -> None:
        """Let all that is still to be written go nowhere: Python would try again when it ends."""
        with suppress(OSError):  # a stream without a file behind it
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)


@contextmanager
def standard_streams() -> Iterator[None]:
    """Write to standard output and standard error, where there are any, through `Stream`."""
    with ExitStack() as stack:
        if sys.stdout is not None:
            stack.enter_context(redirect_stdout(Stream(sys.stdout, "standard output")))
        if sys.stderr is not None:
            stack.enter_context(redirect_stderr(Stream(sys.stderr, "standard error")))
        yield
