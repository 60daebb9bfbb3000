"""benchmarks/training_cost.py: the flow's floor, long streams and other libraries. Nothing is timed here."""

import importlib.util
import json
import sys

import pytest
import torch
from support.bench import STREAM, TINY, assert_compared
from support.benchmarks import script

from prer.bench import steps, suite

training_cost = script("training_cost")
flow_steps, growth, peer_flows = map(script, ("flow_steps", "growth", "peer_flows"))
GROWTH = growth.Size(("naive", "prer"), 2, 3, 64, 1)


def test_the_floor_has_the_products_of_the_couplings(monkeypatch):
    done = []
    multiply = torch.mm
    monkeypatch.setattr(torch, "mm", lambda a, b: done.append((*a.shape, b.shape[1])) or multiply(a, b))
    flow_steps.products(50, 64, True, "cpu")()
    assert len(done) == 2 * 10 * 2 * 3  # levels, blocks, layers, one product forward and two back
    level = next(iter(flow_steps.our_flow(50).levels))
    assert done[0] == (64, *level.weight_in.shape[2:])
    assert done[3] == (64, *level.weight_out.shape[2:])


def test_memory_of_prer_grows_by_a_head_and_its_classes():
    grown = growth.compare(GROWTH)["prer"]
    classes, size = 2, 16
    added = grown["floats of a head"] + classes * size + classes  # a head, vectors, and how often a class was seen
    first, second, third = grown["floats in all"]
    assert second - first == third - second == added


def test_the_script_prints_tables_and_writes_json(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # the benchmark takes one thread; tests have set that already
    for module, size in ((suite, TINY), (flow_steps, flow_steps.Size(((8, 16),), 1, 2)), (growth, GROWTH)):
        monkeypatch.setattr(module, "QUICK", size)
    file = tmp_path / "cost.json"
    monkeypatch.setattr("sys.argv", ["training_cost.py", "--quick", "--device", "cpu", "--json", str(file)])
    training_cost.main()
    printed = capsys.readouterr().out
    for text in ("measuring a step of naive", "times as fast as bare loop", "matrix products", "task 3 over task 2"):
        assert text in printed
    record = json.loads(file.read_text())
    assert record.keys() == {"command", "environment", "steps", "seeds", "flow", "growth"}
    assert record["command"] == "python benchmarks/training_cost.py --quick --device cpu"
    assert record["environment"].keys() >= {"commit", "device", "peers"}
    for part in ("steps", "flow"):
        assert_compared(record[part])
    assert all(len(record["growth"]["prer"][key]) == 3 for key in growth.SERIES)


# -- other libraries ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("normflows", "--against normflows needs normflows"),
        ("avalanche", "pip install avalanche-lib"),
        ("nflow", "use one of avalanche, normflows, nflows"),
    ],
)
def test_a_missing_peer_is_named(monkeypatch, name, sentence):
    monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    with pytest.raises(SystemExit, match=sentence):
        training_cost.measure(True, [name], "cpu", str)


@pytest.mark.parametrize("name", peer_flows.FLOWS)
def test_a_peers_flow_is_as_large_as_ours_and_learns(name):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    for dimension in (50, 200):
        peer = peer_flows.FLOWS[name](dimension, "cpu")
        ours = sum(p.numel() for p in flow_steps.our_flow(dimension).parameters())
        assert abs(sum(p.numel() for p in peer.parameters) / ours - 1) < 0.03
    z, classes = 3 + torch.randn(64, 200), torch.arange(64) % flow_steps.CLASSES
    losses = []
    optimiser = torch.optim.Adam(peer.parameters, 1e-3)
    for _ in range(5):
        optimiser.zero_grad()
        losses.append(peer.loss(z, classes))
        losses[-1].backward()
        optimiser.step()
    assert losses[-1] < losses[0]
    assert all(p.grad is not None for p in peer.parameters)


def test_avalanche_trains_on_the_same_stream():
    if importlib.util.find_spec("avalanche") is None:
        pytest.skip("avalanche is not installed")
    for method in steps.METHODS:
        turn = training_cost.STEPS["avalanche"](method, STREAM, 2, 2, "cpu")
        assert (turn is None) == (method == "lwf, rehearsal")
        assert turn is None or turn() > 0
