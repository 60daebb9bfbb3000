"""Tables as Markdown, LaTeX and CSV, and on a terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prer.disk import write_into

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Value:
    """A number with full precision, and its format."""

    mean: float
    std: float | None = None
    digits: int = 2
    signed: bool = False
    mark: str = ""  # refers to a note

    def __str__(self) -> str:
        """As in "-0.14 ± 0.01"."""
        sign = "+" if self.signed else ""
        mean = f"{self.mean:{sign}z,.{self.digits}f}"
        return mean + ("" if self.std is None else f" ± {self.std:,.{self.digits}f}") + self.mark


@dataclass(frozen=True)
class Probability(Value):
    """A p-value, which is never shown as zero."""

    digits: int = 4

    def __str__(self) -> str:
        """As in "0.0300" or "<0.0001"."""
        least = 10.0**-self.digits
        return f"<{least:.{self.digits}f}" if self.mean < least else super().__str__()


Cell = Value | str


@dataclass(frozen=True)
class Table:
    """A table as data; `name` is the name of its CSV file."""

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()


def numbers(table: Table) -> list[bool]:
    """Which columns hold numbers, and so are aligned to the right."""
    return [any(isinstance(row[i], Value) for row in table.rows) for i in range(len(table.columns))]


def markdown(table: Table) -> str:
    """The table as Markdown, with its caption above and its notes below."""
    aligned = ["---:" if number else "---" for number in numbers(table)]
    rows = [table.columns, *table.rows]
    lines = [" | ".join(str(cell).replace("\\", "\\\\").replace("|", "\\|") for cell in row) for row in rows]
    lines.insert(1, " | ".join(aligned))
    parts = [
        f"**{table.caption}**",
        "\n".join(f"| {line} |" for line in lines),
        "\n".join(f"- {n}" for n in table.notes),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


LONG = 40  # characters; a column with a longer cell is wrapped
LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "−": "$-$"}
LATEX |= {c: f"\\{c}" for c in "&%$#_{}"} | {"<": "$<$", ">": "$>$", "|": "$|$", "–": "--", "×": r"$\times$"}


def escaped(text: str) -> str:
    """Text escaped for LaTeX, without the need for a package."""
    return "".join(LATEX.get(c, c) for c in text)


def _latex_cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return escaped(cell)
    plain = str(cell).removesuffix(cell.mark) if cell.mark else str(cell)
    number = plain.replace(" ± ", r" \pm ").replace(",", "{,}")
    return f"${number}${escaped(cell.mark)}"


def _text_column(table: Table, i: int) -> str:
    """The LaTeX type of a text column; long texts are wrapped, or the table would be wider than the page."""
    return r"p{0.3\textwidth}" if any(len(str(row[i])) > LONG for row in table.rows) else "l"


def latex(table: Table) -> str:
    """The table as a LaTeX float."""
    body = [" & ".join(map(escaped, table.columns)), *(" & ".join(map(_latex_cell, row)) for row in table.rows)]
    body.insert(1, r"\hline")
    lines = [line if line == r"\hline" else rf"{line} \\" for line in body]
    head = [r"\begin{table}", r"\centering", rf"\caption{{{escaped(table.caption)}}}"]
    layout = "".join("r" if number else _text_column(table, i) for i, number in enumerate(numbers(table)))
    notes = [rf"\par\small {escaped(note)}" for note in table.notes]
    return (
        "\n".join([*head, rf"\begin{{tabular}}{{{layout}}}", *lines, r"\end{tabular}", *notes, r"\end{table}"]) + "\n"
    )


def csv_text(table: Table) -> str:
    """The table as CSV with full precision; standard deviations have columns of their own."""
    width = range(len(table.columns))
    spread = [any(_fields(row[i])[1] for row in table.rows) for i in width]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([name for i in width for name in (table.columns[i], f"{table.columns[i]}, sd")[: 1 + spread[i]]])
    for row in table.rows:
        writer.writerow([field for i in width for field in _fields(row[i])[: 1 + spread[i]]])
    return file.getvalue()


def _fields(cell: Cell) -> tuple[str, str]:
    if isinstance(cell, str):
        return cell, ""
    return repr(cell.mean), "" if cell.std is None else repr(cell.std)


def show(console: Console, table: Table) -> None:
    """Print the table on a terminal or in a log."""
    from rich.table import Table as Grid
    from rich.text import Text

    from prer.terminal.console import say, whole

    say(console, table.caption, "italic")  # a title of the table itself would be wrapped to its width
    # A terminal wraps sentences; a log has one line for each row, for searching. No number is so long.
    fold = console.is_terminal and any(len(str(cell)) > LONG for row in table.rows for cell in row)
    grid = Grid(show_lines=fold)
    for column, number in zip(table.columns, numbers(table), strict=True):
        grid.add_column(Text(column), justify="right" if number else "left", max_width=LONG if fold else None)
    for row in table.rows:
        grid.add_row(*(Text(str(cell)) for cell in row))
    whole(console, grid)
    for note in table.notes:
        say(console, note)


def save(name: str, tables: Sequence[Table], out: Path) -> list[Path]:
    """Write tables that belong together as one Markdown and one LaTeX file, and each as a CSV file."""
    texts = {f"{name}.md": "\n".join(map(markdown, tables)), f"{name}.tex": "\n".join(map(latex, tables))}
    texts |= {f"{table.name}.csv": csv_text(table) for table in tables}
    return write_into(out, {file: text.encode() for file, text in texts.items()}, "--out")
