"""The verdicts of all tables in a few lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from prer.paper.table1 import OF_TEST
from prer.paper.tables import Cell, Table

T = TypeVar("T")


def in_short(tables: Iterable[Table]) -> list[str]:
    """A line about PRER's numbers against the paper's, and one for each data set."""
    rows = {table.name: [[str(cell) for cell in row] for row in (table.columns, *table.rows)] for table in tables}
    return [
        *(beside_the_paper(rows["table1"]) if "table1" in rows else []),
        *(against_the_others(rows["significance"][1:]) if "significance" in rows else []),
    ]


def beside_the_paper(rows: Sequence[Sequence[str]]) -> list[str]:
    """Which of PRER's numbers in Table 1 are above the paper's, and which are not."""
    lines, columns = [], rows[0][1:]
    for label, *words in rows:
        method, _, what = label.rpartition(", ")
        if method.startswith("PRER") and what == OF_TEST:
            of_word = grouped((word, column) for word, column in zip(words, columns, strict=True) if word != "-")
            lines += [f"{method}, our numbers against the paper's ({OF_TEST}): {listed(of_word)}."] if of_word else []
    return lines


def against_the_others(rows: Sequence[Sequence[str]]) -> list[str]:
    """PRER's verdict against each method, by data set."""
    lines = []
    for own, of_own in grouped((row[1].partition(" - ")[0], row) for row in rows).items():
        of_column = grouped((row[0], (row[-1], row[1].partition(" - ")[2])) for row in of_own)
        of_data = grouped((column.rpartition(" ")[0], column) for column in of_column)
        for data, columns in of_data.items():
            of_metrics = (
                f"{column.rpartition(' ')[2]} {listed(grouped(of_column[column]), ', ')}" for column in columns
            )
            lines.append(f"{own} against the others on {data} (corrected t-test): {'; '.join(of_metrics)}.")
    return lines


def of_claims(claims: Table) -> Table:
    """A table of verdicts with a row for each claim and a column for each data set."""
    verdicts: dict[str, dict[str, Cell]] = {}
    for claim, data, _, verdict, *_ in claims.rows:
        verdicts.setdefault(str(claim), {})[str(data)] = verdict
    names = list(dict.fromkeys(str(row[1]) for row in claims.rows))
    rows = [[claim, *(of_claim.get(name, "-") for name in names)] for claim, of_claim in verdicts.items()]
    return Table("verdicts", "Verdicts on the paper's claims, corrected t-test", ["claim", *names], rows)


def grouped(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    """The values of each key, in their order."""
    groups: dict[str, list[T]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def listed(groups: Mapping[str, Sequence[str]], between: str = "; ") -> str:
    """Groups as text.

    Example:
        >>> listed({"better": ["GEM", "ER"], "not worse": ["LWF"]})
        'better (GEM, ER); not worse (LWF)'
    """
    return between.join(f"{word} ({', '.join(of_word)})" for word, of_word in groups.items())
