"""The verdicts of all tables in a few lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from prer.paper.rules import FAILS, HOLDS, OPEN
from prer.paper.tables import Table

T = TypeVar("T")
TITLES = {HOLDS: "hold", FAILS: "do not hold", OPEN: "are not decided"}


def in_short(tables: Iterable[Table]) -> list[str]:
    """A line for PRER beside the paper, for each data set and for each verdict on claims."""
    rows = {table.name: [[str(cell) for cell in row] for row in (table.columns, *table.rows)] for table in tables}
    return [
        *(beside_the_paper(rows["table1"]) if "table1" in rows else []),
        *(against_the_others(rows["significance"][1:]) if "significance" in rows else []),
        *(of_claims(rows["claims"][1:]) if "claims" in rows else []),
    ]


def beside_the_paper(rows: Sequence[Sequence[str]]) -> list[str]:
    """Of PRER, which numbers of Table 1 are above the paper's, and which are not."""
    lines, columns = [], rows[0][1:]
    for label, *words in rows:
        method, _, what = label.rpartition(", ")
        if method in ("PRER", "PRER, literal") and what == "verdict":
            of_word = grouped((word, column) for word, column in zip(words, columns, strict=True) if word != "-")
            lines += [f"{method}, ours beside the paper's: {told(of_word)}."] if of_word else []
    return lines


def against_the_others(rows: Sequence[Sequence[str]]) -> list[str]:
    """What PRER is on each data set, than whom."""
    of_column = grouped((row[0], (row[-1], row[1].removeprefix("PRER - "))) for row in rows)
    of_data = grouped((column.rpartition(" ")[0], column) for column in of_column)
    lines = []
    for data, columns in of_data.items():
        of_metrics = (f"{column.rpartition(' ')[2]} {told(grouped(of_column[column]), ', ')}" for column in columns)
        lines.append(f"PRER against the others on {data}: {'; '.join(of_metrics)}.")
    return lines


def of_claims(rows: Sequence[Sequence[str]]) -> list[str]:
    """Which claims hold, which do not, and which are open, and where."""
    lines = []
    for word, title in TITLES.items():
        of_claim = grouped((claim.partition(" (")[0], data) for claim, data, _, verdict in rows if verdict == word)
        lines += [f"Claims that {title}: {told(of_claim)}."] if of_claim else []
    waiting = grouped((claim.partition(" (")[0], data) for claim, data, _, verdict in rows if verdict not in TITLES)
    return [*lines, *([f"Claims whose runs are missing: {told(waiting)}."] if waiting else [])]


def grouped(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    """The values of each key, in their order."""
    groups: dict[str, list[T]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def told(groups: Mapping[str, Sequence[str]], between: str = "; ") -> str:
    """Groups as a person says them.

    Example:
        >>> told({"better": ["GEM", "ER"], "not worse": ["LWF"]})
        'better (GEM, ER); not worse (LWF)'
    """
    return between.join(f"{word} ({', '.join(of_word)})" for word, of_word in groups.items())
