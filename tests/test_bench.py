"""The benchmark: that both sides of a comparison do the same work, and what is written of it. Nothing is timed here."""

import copy
import functools
import importlib.util
import json
import sys

import pytest
import torch

from prer.bench import flows, growth, peers, seeds, steps, suite
from prer.bench.clock import alternate, summary
from prer.bench.ready import after, pictures
from prer.cli.main import main
from prer.errors import InputError
from prer.learners.base import Batch
from prer.nn.heads import Heads

CLASSIC = "lwf, classic"
STREAM = pictures(3, 128, 8)
TINY = suite.Sizes(
    steps.Size(64, 2, 1),
    seeds.Size((8,), 64, 1),
    flows.Size(((8, 16),), 1, 2),
    growth.Size(("naive", "prer"), 2, 3, 64, 1),
)


@pytest.fixture
def no_threads(monkeypatch):
    """The benchmark takes one thread; tests have set that already."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@functools.cache
def weights_after(name):
    """After the same steps without dropout, the weights of our learner and of the bare loop; and those before."""
    method = steps.METHODS[name]
    ready = after(2, steps.built(method, epochs=1, dropout=0.0, batch=16), STREAM)
    ours, met, task = copy.deepcopy(ready.learner), copy.deepcopy(ready.learner), ready.task
    met.meet(task)
    bare = method.bare(met, task, 1)
    before = [p.detach().clone() for p in bare.parameters]
    address = ours.address_ / 2 / "classifier" / 0
    batches = ours.batches(torch.arange(128).unsqueeze(0), address)
    drawn = met.rehearse(batches, address)[0][0] if bare.memory else batches[0, :, :0]
    for rows, numbers in zip(batches[0], drawn, strict=True):
        bare.step(rows, numbers)
    ours.learn(task)
    heads = ours.heads_ if bare.trains_old_heads else ours.head_
    trained = [p[0].detach() for p in (*ours.encoder_.parameters(), *heads.parameters())]
    return trained, [p.detach() for p in bare.parameters], before


@pytest.mark.parametrize("name", [name for name in steps.METHODS if name != CLASSIC])
def test_the_bare_loop_does_the_same_mathematics(name):
    ours, bare, before = (torch.cat([t.flatten() for t in weights]) for weights in weights_after(name))
    # All weights together: where a gradient is nearly 0, Adam makes a full step of its rounding.
    assert (ours - bare).norm() < 1e-3 * (ours - before).norm()
    assert (ours - before).abs().max() > 1e-3


def test_the_bare_loop_distils_alike():
    """Of classic LwF one gradient: in its first step that of the old heads is 0, and Adam makes a step of rounding."""
    method = steps.METHODS[CLASSIC]
    ready = after(2, steps.built(method, dropout=0.0, epochs=1, weight=1000.0), STREAM)
    learner, task = ready.learner, ready.task
    learner.said_ = learner._record(task)
    learner.meet(task)
    learner.bank_, bare = Heads(learner._heads()), method.bare(learner, task, 1)
    rows = torch.arange(0, 128, 2)
    with torch.no_grad():
        for p, other in zip(learner.encoder_.parameters(), bare.encoder.parameters(), strict=True):
            p += 0.1 * torch.randn(p.shape, generator=torch.Generator().manual_seed(p.numel()))
            other.copy_(p[0])
    x = bare.x[rows].float() / 255
    batch = Batch(x.unsqueeze(0), bare.y[rows].unsqueeze(0), torch.rand(1, 64, 37), (learner.said_[:, rows],))
    losses = learner.loss(batch).sum(), bare.loss(x, bare.y[rows], rows, rows[:0])
    learner.weight = bare.weight = 0.0
    alone = bare.loss(x, bare.y[rows], rows, rows[:0])
    torch.testing.assert_close(*losses, rtol=1e-4, atol=1e-5)
    assert losses[0] > alone + 0.01
    for a, b in zip(
        torch.autograd.grad(losses[0], list(learner.encoder_.parameters())),
        torch.autograd.grad(losses[1], list(bare.encoder.parameters())),
        strict=True,
    ):
        torch.testing.assert_close(a[0], b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in steps.METHODS if name != "naive"])
def test_what_a_method_adds_makes_a_difference(name):
    """Otherwise the comparison above would hold for methods that do nothing."""
    first, other = (weights_after(kind)[1][0] for kind in ("naive", name))
    assert (first - other).abs().max() > 1e-3


def test_a_turn_leaves_the_learner_as_it_was():
    ready = after(1, steps.built(steps.METHODS["replay"], epochs=2), STREAM)
    before = {name: t.clone() for name, t in ready.learner.state().items()}
    assert ready.turn() > 0
    assert all(torch.equal(t, before[name]) for name, t in ready.learner.state().items())
    assert ready.learner.state().keys() == before.keys()


def test_candidates_come_in_turn_and_the_order_is_reversed():
    called = []

    def candidate(name, seconds):
        return lambda: called.append(name) or seconds

    times = alternate({"ours": candidate("a", 1.0), "other": candidate("b", 3.0)}, 3)
    assert "".join(called) == "ab" + "ab" + "ba" + "ab"
    assert summary(times)["times as fast as"]["other"]["median"] == 3
    assert summary(times)["median"] == {"ours": 1000, "other": 3000}


def test_the_floor_has_the_products_of_the_couplings(monkeypatch):
    done = []
    multiply = torch.mm
    monkeypatch.setattr(torch, "mm", lambda a, b: done.append((*a.shape, b.shape[1])) or multiply(a, b))
    flows.products(50, 64, True, "cpu")()
    assert len(done) == 2 * 10 * 2 * 3  # levels, blocks, layers, one product forward and two back
    level = next(iter(flows.our_flow(50).levels))
    assert done[0] == (64, *level.weight_in.shape[2:])
    assert done[3] == (64, *level.weight_out.shape[2:])


def test_memory_of_prer_grows_by_a_head_and_its_classes():
    grown = growth.compare(TINY.growth)["prer"]
    classes, size = 2, 16
    added = grown["floats of a head"] + classes * size + classes  # a head, vectors, and how often a class was seen
    first, second, third = grown["floats in all"]
    assert second - first == third - second == added


def test_the_command_prints_tables_and_writes_json(no_threads, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(suite, "QUICK", TINY)
    main(["bench", "--quick", "--device", "cpu", "--json", str(tmp_path / "bench.json")])
    printed = capsys.readouterr().out
    for text in ("measuring a step of naive", "times as fast as bare loop", "matrix products", "task 3 over task 2"):
        assert text in printed
    record = json.loads((tmp_path / "bench.json").read_text())
    assert record.keys() == {"command", "environment", "steps", "seeds", "flow", "growth"}
    assert record["command"] == "prer bench --quick --device cpu"
    assert record["environment"].keys() >= {"commit", "processor", "cores", "threads", "packages", "device", "peers"}
    assert record["steps"].keys() == steps.METHODS.keys()
    for row in (*record["steps"].values(), *record["flow"].values()):
        assert row.keys() == {"milliseconds", "median", "times as fast as"}
        assert all(ratios.keys() >= {"median", "low", "high"} for ratios in row["times as fast as"].values())
    assert len(record["steps"]["gem"]["milliseconds"]["bare loop"]) == TINY.steps.repeats
    assert all(set(row["throughput of a seed"]) == {"1", "5", "20"} for row in record["seeds"].values())
    assert all(len(record["growth"]["prer"][key]) == 3 for key in growth.SERIES)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--against", "avalanche"], "pip install avalanche-lib"),
        (["--against", "nflow"], "did you mean 'nflows'?"),
        (["--device", "tpu"], "device 'tpu' is not there"),
        (["--json", "no/such/folder/bench.json"], "give another --json"),
    ],
)
def test_wrong_input_is_a_sentence(arguments, text, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "avalanche", None)  # as if it were not installed
    with pytest.raises(SystemExit) as ended:
        main(["bench", *arguments])
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert text in message and message.count("\n") == 1


def test_a_peer_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "normflows", None)
    with pytest.raises(InputError, match="--against normflows needs normflows"):
        peers.required("normflows")


@pytest.mark.parametrize("name", peers.FLOWS)
def test_a_peers_flow_is_as_large_as_ours_and_learns(name):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    for dimension in (50, 200):
        peer = peers.FLOWS[name](dimension, "cpu")
        ours = sum(p.numel() for p in flows.our_flow(dimension).parameters())
        assert abs(sum(p.numel() for p in peer.parameters) / ours - 1) < 0.03
    z, classes = 3 + torch.randn(64, 200), torch.arange(64) % flows.CLASSES
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
        turn = peers.STEPS["avalanche"](method, STREAM, 2, 2, "cpu")
        assert (turn is None) == (method == "lwf, rehearsal")
        assert turn is None or turn() > 0
