"""Make text from files and users safe to show in messages, on a terminal or on a page."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # Unicode categories
JOINERS = "\u200c\u200d"  # zero-width (non-)joiners, which some letters and emoji need
MOST_KNOWN = 20  # maximum number of words that a hint lists


def printable(text: str, keep: str = "") -> str:
    """Escape invisible characters, except those to `keep`, and those that control a terminal or the text direction.

    Example:
        >>> printable("caf\\u00e9 \\u202e \\x1b[31m")
        'café \\\\u202e \\\\x1b[31m'
    """
    if text.isprintable():
        return text
    shown = (c in keep or unicodedata.category(c) not in INVISIBLE for c in text)
    return "".join(
        c if ok else c.encode("unicode_escape", "replace").decode() for c, ok in zip(text, shown, strict=True)
    )


def shown(name: object, most: int = 60) -> str:
    """A path or name as printable text for a message; a long one is cut to its end, which says most.

    Example:
        >>> shown("a/very/long/path/to/file.csv", 15)
        '...to/file.csv'
    """
    text = printable(str(name))
    return text if len(text) <= most else f"...{text[3 - most :]}"


def excerpt(value: object, most: int = 400) -> str:
    """Any value as printable text; a long one is cut to its beginning.

    Example:
        >>> excerpt("x" * 9, 5)
        'xxxx…'
    """
    text = str(value)
    return printable(text if len(text) <= most else f"{text[: most - 1]}…", keep=JOINERS)


def sentence(error: Exception, most: int = 2000) -> str:
    """The message of an error as one printable line."""
    text = printable(str(error))
    return text if len(text) <= most else f"{text[:most]}..."


def reason(error: Exception) -> str:
    """The first line of the message of an error, or its type if it has no message.

    Example:
        >>> reason(ValueError("bad shape\\nmore")), reason(KeyError())
        ('bad shape', 'KeyError')
    """
    return excerpt(next(iter(str(error).strip().splitlines()), type(error).__name__), 120)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the closest known word, or a list of the known words.

    Example:
        >>> did_you_mean("mnits", ["mnist", "svhn"]), did_you_mean("x", ["mnist", "svhn"])
        (", did you mean 'mnist'?", '; known: mnist, svhn')
    """
    words = list(known)
    close = difflib.get_close_matches(word, words[:1000], n=1, cutoff=0.65)
    if close:
        return f", did you mean {shown(close[0], 30)!r}?"
    more = ", ..." if len(words) > MOST_KNOWN else ""
    return f"; known: {', '.join(shown(name, 30) for name in words[:MOST_KNOWN])}{more}"


def plus_minus(metric: Mapping[str, Any]) -> str:
    """Format the mean and standard deviation of a metric, as far as they are known.

    Example:
        >>> plus_minus({"mean": 99.414, "std": 0.1}), plus_minus({"mean": None, "std": None})
        ('99.41 ± 0.10', '-')
    """
    if metric["mean"] is None:
        return "-"
    return f"{metric['mean']:.2f}" + ("" if metric["std"] is None else f" ± {metric['std']:.2f}")


def clock(seconds: float) -> str:
    """Format a duration in seconds for people to read.

    Example:
        >>> clock(7.2), clock(83), clock(7300)
        ('7 s', '1 min 23 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
