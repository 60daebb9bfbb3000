"""The progress of downloads, on a terminal and in a log."""

from io import StringIO

import pytest
from rich.console import Console

from prer.terminal import downloads as module
from prer.terminal.downloads import Downloads


def test_a_terminal_shows_bytes_speed_and_time():
    console = Console(file=StringIO(), width=150, force_terminal=True, force_interactive=True)
    with Downloads(console) as downloads:
        downloads("[red]tiny/x", 0, 4_000_000)
        downloads("[red]tiny/x", 500_000, 4_000_000)
        downloads("[red]tiny/x", 1_000_000, 4_000_000)
        downloads.bars.refresh()
        said = console.file.getvalue()
    assert "[red]tiny/x" in said and "1.0/4.0 MB" in said and "/s" in said and "fetching" not in said


def test_a_log_shows_one_line_for_each_file():
    console = Console(file=StringIO(), width=20)
    with Downloads(console) as downloads:
        for done in (0, 1, 4_000_000):
            downloads("tiny/a-long-name.gz", done, 4_000_000)
    assert console.file.getvalue() == "tiny/a-long-name.gz: downloading 4.0 MB\n"


@pytest.mark.parametrize(
    ("unit", "lines"),
    [
        (
            "texts",
            ["1,500 of 5,000 texts, 28 s left", "3,000 of 5,000 texts, 16 s left", "4,500 of 5,000 texts, 4 s left"],
        ),
        ("bytes", ["1.5 kB of 5.0 kB, 28 s left", "3.0 kB of 5.0 kB, 16 s left", "4.5 kB of 5.0 kB, 4 s left"]),
    ],
)
def test_a_log_says_every_ten_seconds_how_much_is_done(monkeypatch, unit, lines):
    console, now = Console(file=StringIO(), width=20), [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    with Downloads(console) as reading:
        for done in range(0, 5001, 500):
            reading("tiny", done, 5000, unit)
            now[0] += 4
    assert console.file.getvalue().splitlines()[1:] == [f"tiny: {line}" for line in lines]


def test_features_are_counted_in_samples():
    console = Console(file=StringIO(), width=150, force_terminal=True, force_interactive=True)
    with Downloads(console) as reading:
        reading("features (tiny)", 512, 13_083, "texts")
        reading.bars.refresh()
        said = console.file.getvalue()
    assert "features (tiny)" in said and "512/13,083 texts" in said and "/s" not in said
    log = Console(file=StringIO(), width=20)
    with Downloads(log) as reading:
        for done in (0, 256, 13_083):
            reading("features (tiny)", done, 13_083, "texts")
    assert log.file.getvalue() == "features (tiny): computing those of 13,083 texts\n"
