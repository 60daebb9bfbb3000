"""One request for one file: what is there already is not asked for again, and what comes is distrusted."""

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

TIMEOUT = 30.0  # seconds without one byte
LONGEST_WAIT = 60.0  # seconds that a server may ask us to wait
BLOCK = 1 << 16
PASSING = (408, 416, 425, 429)  # answers that may be others next time, as those from 500 up


class Failed(Exception):
    """A mirror did not give the file.

    Args:
        reason: why, in some words.
        again: whether it may do so when asked again.
        wait: seconds that it asked us to wait.
    """

    def __init__(self, reason: str, again: bool = True, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.again, self.wait = again, wait


def transfer(url: str, file: File, part: Path, progress: Callable[[int, int], None]) -> None:
    """Bring the missing bytes of a file into its part.

    Raises:
        Failed: they did not all come.
        OSError: the part cannot be written.
    """
    have = size_of(part)
    if have == file.size:  # its process ended before it could be checked
        return
    with _answer(url, part, have) as response:
        start = _start(response, file, part, have)
        done = _write(response, file, part, start, progress)
        length = response.headers.get("Content-Length", "")
    whole = file.size if file.sha256 else start + int(length) if length.isdecimal() else done
    if done < whole:
        raise Failed(f"the connection ended after {done:,} of {whole:,} bytes")


def size_of(path: Path) -> int:
    """The bytes of a file, 0 where there is none."""
    return path.stat().st_size if path.exists() else 0


def _answer(url: str, part: Path, have: int) -> HTTPResponse:
    """A mirror's answer to the request for the bytes from `have` on."""
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
    """Where the bytes of an answer belong: at the end of what is there, or at the beginning."""
    if response.status == 206:
        given = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        whole = ("*", str(file.size)) if file.sha256 else None
        if given and int(given[1]) == have and (whole is None or given[2] in whole):
            return have
        part.unlink(missing_ok=True)  # so that the next try asks for all of it
        raise Failed("sent another part than was asked for")
    if file.sha256 and response.headers.get("Content-Length", str(file.size)) != str(file.size):
        raise Failed("has another file, of another size", again=False)  # an error page, say: what is there stays
    return 0


def _write(response: HTTPResponse, file: File, part: Path, done: int, progress: Callable[[int, int], None]) -> int:
    """Write what comes, and stop a server that sends more than there can be; how many bytes there are then."""
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
        raise Failed("sends more bytes than the file has", again=begun > 0)
    return done


def _blocks(response: HTTPResponse) -> Iterator[bytes]:
    """The bytes of an answer; a failure of the network is told from one of the disk by being raised here."""
    try:
        while block := response.read(BLOCK):
            yield block
    except (OSError, HTTPException, ValueError) as error:
        raise _broken(error) from None


def _broken(error: Exception) -> Failed:
    """What went wrong on the way, in some words."""
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, TimeoutError):
        return Failed(f"no answer within {TIMEOUT:g} s")
    if isinstance(reason, gaierror):
        return Failed("no such address, or no network")
    if isinstance(reason, ssl.SSLCertVerificationError):
        return Failed(f"its certificate is not trusted, {reason.verify_message}", again=False)
    text = str(getattr(reason, "strerror", None) or reason or type(reason).__name__)
    return Failed("the connection failed, " + "".join(filter(str.isprintable, text))[:100])  # a stranger wrote it


def _retry_after(text: str) -> float:
    """The seconds that a server asks us to wait, given as such or as a date, within reason."""
    try:
        seconds = float(text) if text.isdecimal() else (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError, OverflowError):  # nothing, nonsense, or a date of no time zone
        return 0.0
    return min(max(seconds, 0.0), LONGEST_WAIT)
