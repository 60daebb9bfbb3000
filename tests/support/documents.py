"""The documents of the repository: their blocks, commands, tables and links."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "benchmarks/README.md", *PAGES]


def text_of(document):
    """The text of a document, given by its path in the repository."""
    return (ROOT / document).read_text("utf-8")


def blocks(document, language):
    """The fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(document), re.DOTALL | re.MULTILINE)


def prose(document):
    """The text without fenced and indented blocks."""
    return re.sub(r"^    .*$", "", re.sub(r"^```.*?^```", "", text_of(document), flags=re.DOTALL | re.M), flags=re.M)


def codes(document):
    """The inline code, with line breaks as spaces."""
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose(document))]


def commands(document):
    """The shell commands of indented blocks, without the remarks beside them."""
    return re.findall(r"^    ((?:prer|scripts/run) .*?)(?:  +.*)?$", text_of(document), re.MULTILINE)


def anchors(document):
    """The anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text_of(document), flags=re.DOTALL | re.M), re.M)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def links(document):
    """The targets of links and images that are no web addresses, as pairs of path and anchor."""
    targets = re.findall(r"\]\(([^()\s]+)\)", text_of(document))
    return [tuple(t.partition("#")[::2]) for t in targets if not re.match(r"https?:", t)]


def tables(document):
    """The Markdown tables, each a list of rows of cells; the first row has the columns' names."""
    found = re.findall(r"(?:^\|.*\n)+", text_of(document), re.MULTILINE)
    split = [[[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in t.splitlines()] for t in found]
    return [[table[0], *table[2:]] for table in split]


def table(document, *columns):
    """The rows of the only table with these columns, by their first cell; minus signs are those of Python."""
    (rows,) = (found[1:] for found in tables(document) if tuple(found[0]) == columns)
    plain = [[cell.replace("−", "-").replace("**", "").replace("*", "") for cell in row] for row in rows]
    assert len({row[0] for row in plain}) == len(plain)
    return {row[0]: row[1:] for row in plain}
