"""`prer track`: TensorBoard reads what the run says, and wrong input is a sentence."""

import json
import resource

import numpy as np
import pytest
from support.commands import begun, ended, refused
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from prer.cli.main import main


def events(run, kind):
    return [e for e in map(json.loads, (run / "events.jsonl").read_text().splitlines()) if e["event"] == kind]


def test_tensorboard_reads_back_what_the_run_says(finished, tmp_path, capsys):
    main(["track", str(finished), "--logdir", str(tmp_path)])
    assert "values written to" in capsys.readouterr().out
    for place, seed in enumerate((3, 8)):
        board = EventAccumulator(str(tmp_path / finished.name / f"seed-{seed}"))
        board.Reload()
        losses = {
            (e["phase"], e["task"] * e["epochs"] + e["epoch"]): e["loss"][place] for e in events(finished, "epoch")
        }
        for phase in ("autoencoder", "flow", "head"):
            found = {(phase, s.step): s.value for s in board.Scalars(f"loss/{phase}")}
            assert found == pytest.approx({key: loss for key, loss in losses.items() if key[0] == phase}, rel=1e-6)
        matrix = json.loads((finished / "result.json").read_text())["matrix"][place]
        for j in range(5):
            found = [s.value for s in board.Scalars(f"accuracy/task {j + 1}")]
            np.testing.assert_allclose(found, [matrix[i][j] for i in range(j, 5)], rtol=1e-6)
        agreement = [e["agreement"][place] for e in events(finished, "health") if e["class"] == 0]
        np.testing.assert_allclose([s.value for s in board.Scalars("agreement/class 0")], agreement, rtol=1e-6)


@pytest.mark.parametrize("seeds", ["1.5", '"two"', "{}", '[0, "1"]'])
def test_invalid_seeds_are_refused(tmp_path, capsys, seeds):
    (tmp_path / "experiment.toml").write_text(f"seeds = {seeds}\n")
    assert "whole number" in refused(capsys, "track", tmp_path)


def test_several_runs_cannot_be_followed(finished, capsys):
    assert "one run" in refused(capsys, "track", finished, finished, "--follow")


def test_a_folder_without_a_run_is_refused(tmp_path, capsys):
    assert "is not a run folder" in refused(capsys, "track", tmp_path)


def test_a_full_disk_is_one_sentence_and_leaves_no_partial_file(finished, tmp_path):
    boards = tmp_path / "boards"

    def before():  # as on a disk that has room for little more
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

    code, out, err = ended(begun(["track", finished, "--logdir", boards], before))
    assert (code, out, err) == (2, "", f"prer: cannot write {boards}: File too large; use another --logdir\n")
    assert not any(path.is_file() for path in boards.rglob("*"))


def test_a_log_folder_that_cannot_be_written_is_one_sentence(finished, tmp_path, capsys):
    (tmp_path / "boards").write_text("mine")
    assert "use another --logdir" in refused(capsys, "track", finished, "--logdir", tmp_path / "boards")
    assert (tmp_path / "boards").read_text() == "mine"
