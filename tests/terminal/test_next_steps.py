"""What to try after a run."""

from pathlib import Path

from prer.terminal.next_steps import next_steps


def test_what_to_try_next_keeps_commands_and_what_they_do_apart():
    settings = ["stream.data=some/rather/long/path/to/a/file.npz", "stream.classes_per_task=2", "like=digits"]
    _, *lines = next_steps(settings, ["--seeds", "2"], Path("runs"), lambda words: True).splitlines()
    assert f"  prer run {' '.join(settings)} learner.name=naive --seeds 2" in lines
    assert "      what is lost when nothing is done about forgetting" in lines
    assert all(line.startswith("  prer ") for line in lines[::2])
