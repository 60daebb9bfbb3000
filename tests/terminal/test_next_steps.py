"""What to try after a run."""

from pathlib import Path

from prer.terminal.next_steps import next_steps


def test_proposals_have_a_line_for_the_command_and_one_for_its_purpose():
    settings = ["stream.data=some/rather/long/path/to/a/file.npz", "stream.classes_per_task=2", "like=digits"]
    _, *lines = next_steps(settings, ["--seeds", "2"], Path("runs"), lambda words: True).splitlines()
    assert f"  prer run {' '.join(settings)} learner.name=naive --seeds 2" in lines
    assert "      the lower reference: training without any remedy against forgetting" in lines
    assert all(line.startswith("  prer ") for line in lines[::2])


def test_the_closed_form_is_proposed_without_settings_of_networks_and_where_its_scenario_exists():
    steps = next_steps(["stream.data=my.csv", "learner.epochs=3"], [], Path("runs"), lambda words: True)
    assert "  prer run stream.data=my.csv stream.scenario=class learner.name=ranpac\n" in steps
    assert "ranpac" not in next_steps(["stream.kind=rotated"], [], Path("runs"), lambda words: True)
