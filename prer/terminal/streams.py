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


class Output(io.TextIOBase):
    """A standard stream. It escapes what its encoding lacks, and its errors are not mistaken for those of a file.

    It has no `buffer`, so click does not write UTF-8 to a stream that is ASCII.
    """

    def __init__(self, stream: TextIO, name: str) -> None:
        self.stream, self.name = stream, name

    @property
    def encoding(self) -> str:  # pyrefly: ignore[bad-override]
        """The encoding of the stream."""
        return self.stream.encoding or "utf-8"

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self.stream.isatty()

    def fileno(self) -> int:
        """The file descriptor of the stream."""
        return self.stream.fileno()

    def write(self, text: str, /) -> int:
        """Write text; escape what the encoding lacks."""
        if text == "":  # click tests a stream with an empty write, and would swallow the error of a full one
            return 0
        with self._named():
            return self.stream.write(self._writable(text))

    def flush(self) -> None:
        """Flush the stream."""
        with self._named():
            self.stream.flush()

    def _writable(self, text: str) -> str:
        try:
            text.encode(self.encoding, self.stream.errors or "strict")
            return text
        except UnicodeEncodeError:
            plain = text.replace(" ± ", " +-")  # the same width, for tables
            return plain.encode(self.encoding, "backslashreplace").decode(self.encoding)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:  # the reader is gone, as after `| head -1`: end silently, like other programs
            self._discard()
            raise SystemExit(128 + SIGPIPE) from None
        except OSError as error:
            self._discard()
            raise RunError(f"cannot write to {self.name}: {error.strerror}") from None

    def _discard(self) -> None:
        """Redirect the stream to the null device: Python would try to flush it again at exit."""
        with suppress(OSError):  # a stream without a file behind it
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)


@contextmanager
def standard_streams() -> Iterator[None]:
    """Route standard output and standard error, where they exist, through `Output`."""
    with ExitStack() as stack:
        if sys.stdout is not None:
            stack.enter_context(redirect_stdout(Output(sys.stdout, "standard output")))
        if sys.stderr is not None:
            stack.enter_context(redirect_stderr(Output(sys.stderr, "standard error")))
        yield
