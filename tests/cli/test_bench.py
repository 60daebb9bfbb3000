"""`prer bench`: its tables, its JSON, and what it refuses."""

import json

import pytest
from support.bench import TINY, assert_compared
from support.commands import refused

from prer.bench import steps, suite
from prer.cli.main import main


def test_the_command_prints_tables_and_writes_json(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # the benchmark takes one thread; tests have set that already
    monkeypatch.setattr(suite, "QUICK", TINY)
    main(["bench", "--quick", "--device", "cpu", "--json", str(tmp_path / "bench.json")])
    printed = capsys.readouterr().out
    for text in ("measuring a step of naive", "times as fast as bare loop", "throughput of each of 5"):
        assert text in printed
    record = json.loads((tmp_path / "bench.json").read_text())
    assert record.keys() == {"command", "environment", "steps", "seeds"}
    assert record["command"] == "prer bench --quick --device cpu"
    assert record["environment"].keys() >= {"commit", "processor", "cores", "threads", "packages", "device"}
    assert record["steps"].keys() == steps.METHODS.keys()
    assert_compared(record["steps"])
    assert len(record["steps"]["gem"]["milliseconds"]["bare loop"]) == TINY.steps.repeats
    assert all(set(row["throughput of a seed"]) == {"1", "5", "20"} for row in record["seeds"].values())


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--device", "tpu"], "device 'tpu' is not available"),
        (["--json", "no/such/folder/bench.json"], "use another --json"),
    ],
)
def test_wrong_input_is_a_sentence(capsys, arguments, text):
    assert text in refused(capsys, "bench", *arguments)
