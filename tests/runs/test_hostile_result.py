"""Forged results whose checksums are right are refused."""

import pytest
from support.commands import outcome, refused
from support.folders import sign_result


@pytest.mark.parametrize("matrix", [[[], []], [[[]], [[]]], [[[1.0], []], [[], [1.0]]]])
def test_a_matrix_of_no_task_is_refused(capsys, done, matrix):
    sign_result(done, matrix=matrix)
    for command in ("show", "resume"):
        assert "result.json cannot be read; delete it" in refused(capsys, command, done)


@pytest.mark.parametrize(
    "changes",
    [
        {"accuracy": {"mean": "", "std": None, "values": []}},
        {"bwt": {"mean": [], "std": {}, "values": []}},
        {"seconds": {"total": float("nan")}},
        {"seconds": {"total": float("inf")}},
        {"memory_floats": [10**400]},
        {"memory_samples": [float("nan")]},
        {"matrix": [[["", ""], ["", ""]]] * 2},
        {"matrix": [[[10**400] * 2] * 2] * 2},
        {"matrix": [[[float("inf")] * 2] * 2] * 2},
        {"matrix": {"a": 1}},
        {"seconds": []},
        {"accuracy": []},
    ],
    ids=repr,
)
def test_a_result_with_values_of_another_type_is_refused(capsys, done, changes):
    sign_result(done, **changes)
    for command in (["show", done], ["show", done, done], ["resume", done]):
        assert "result.json" in refused(capsys, *command)


def test_a_result_without_an_accuracy_is_shown_without(capsys, done):
    sign_result(done, accuracy={"mean": None, "std": None, "values": []})
    code, out, _ = outcome(capsys, "show", done)
    assert code == 0 and "the accuracy is unknown" in out
