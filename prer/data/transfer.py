"""One request for one file: resume a partial download, and check everything the server sends."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse, responses
from pathlib import Path
from socket import gaierror
from urllib.error import HTTPError, URLError
from urllib.request import Request, build_opener

from prer.data.entry import File
from prer.version import __version__

TIMEOUT = 30.0  # seconds without receiving a byte
LONGEST_WAIT = 60.0  # maximum seconds that a server may ask us to wait
BLOCK = 1 << 16
PASSING = (408, 416, 425, 429)  # temporary errors that may be retried, as may all from 500 up


class Failed(Exception):
    """A mirror did not deliver the file.

    Args:
        reason: why, in a few words.
        again: whether a retry may succeed.
        wait: seconds that the mirror asked us to wait.
    """

    def __init__(self, reason: str, again: bool = True, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.again, self.wait = again, wait


def transfer(url: str, file: File, part: Path, progress: Callable[[int, int], None]) -> None:
    """Download the missing bytes of a file to its .part file.

    Raises:
        Failed: the download is incomplete.
        OSError: the .part file cannot be written.
    """
    have = size_of(part)
    if have == file.size:  # complete, but its process ended before the check
        return
    with _answer(url, part, have) as response:
        start = _start(response, file, part, have)
        done = _write(response, file, part, start, progress)
        length = response.headers.get("Content-Length", "")
    whole = file.size if file.sha256 else start + int(length) if length.isdecimal() else done
    if done < whole:
        raise Failed(f"the connection was closed after {done:,} of {whole:,} bytes")


def size_of(path: Path) -> int:
    """Size of a file in bytes, 0 if it does not exist."""
    return path.stat().st_size if path.exists() else 0


def _answer(url: str, part: Path, have: int) -> HTTPResponse:
    """Request the bytes from `have` on and return the response of the mirror."""
    headers = {"User-Agent": f"prer/{__version__}"} | ({"Range": f"bytes={have}-"} if have else {})
    try:  # a new opener, because the global one remembers the proxies of its first use
        return build_opener().open(Request(url, headers=headers), timeout=TIMEOUT)
    except HTTPError as error:
        with error:
            if error.code == 416:
                part.unlink(missing_ok=True)
            again = error.code in PASSING or error.code >= 500
            said = f"answered {error.code} {responses.get(error.code, '')}".rstrip()
            raise Failed(said, again, _retry_after(error.headers.get("Retry-After", ""))) from None
    except (OSError, HTTPException, ValueError) as error:
        raise _broken(error) from None


def _start(response: HTTPResponse, file: File, part: Path, have: int) -> int:
    """Offset of a response in the .part file: its end, or 0."""
    if response.status == 206:
        given = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        whole = ("*", str(file.size)) if file.sha256 else None
        if given and int(given[1]) == have and (whole is None or given[2] in whole):
            return have
        part.unlink(missing_ok=True)  # so that the next attempt requests the whole file
        raise Failed("sent a different byte range than requested")
    if file.sha256 and response.headers.get("Content-Length", str(file.size)) != str(file.size):
        raise Failed("has a file of a different size", again=False)  # an error page, say: keep the .part file
    return 0


def _write(response: HTTPResponse, file: File, part: Path, done: int, progress: Callable[[int, int], None]) -> int:
    """Write a response to the .part file, up to the size limit of the file; return the size of the .part file."""
    begun = done
    with part.open("ab" if done else "wb") as out:
        for block in _blocks(response):
            done += len(block)
            if done > file.limit:
                break
            out.write(block)
            progress(done, file.size)
        out.flush()
        os.fsync(out.fileno())
    if done > file.limit:
        part.unlink()
        raise Failed("sent more bytes than the file has", again=begun > 0)
    return done


def _blocks(response: HTTPResponse) -> Iterator[bytes]:
    """Yield the bytes of a response; raising `Failed` here distinguishes network errors from disk errors."""
    try:
        while block := response.read(BLOCK):
            yield block
    except (OSError, HTTPException, ValueError) as error:
        raise _broken(error) from None


def _broken(error: Exception) -> Failed:
    """Convert a network error to `Failed`, with a short reason."""
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, TimeoutError):
        return Failed(f"no answer within {TIMEOUT:g} s")
    if isinstance(reason, gaierror):
        return Failed("unknown address, or no network")
    if isinstance(reason, ssl.SSLCertVerificationError):
        return Failed(f"its certificate is not trusted: {reason.verify_message}", again=False)
    text = str(getattr(reason, "strerror", None) or reason or type(reason).__name__)
    return Failed("the connection failed: " + "".join(filter(str.isprintable, text))[:100])  # untrusted text


def _retry_after(text: str) -> float:
    """Seconds to wait by a Retry-After header, which holds seconds or a date; at most LONGEST_WAIT."""
    try:
        seconds = float(text) if text.isdecimal() else (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError, OverflowError):  # empty, invalid, or a date without a time zone
        return 0.0
    return min(max(seconds, 0.0), LONGEST_WAIT)
