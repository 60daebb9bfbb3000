"""PRER: the loss of each phase by hand, what it keeps, and what its settings change."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support.learners import (
    TINY,
    TINY_OF,
    blobs,
    captured,
    digest_of_prer,
    first_step,
    one_head,
    pictures,
    started,
    tiny_prer,
    two_tasks,
)

from prer import learn
from prer.densities.gaussian import Gaussian
from prer.learners import PRER, Naive
from prer.learners.rehearsal import current, mixed
from prer.nn.stacked import floats
from prer.testing.streams import vectors
from prer.testing.tensors import reachable_tensors


def test_phase_1_minimises_equations_2_and_3(monkeypatch):
    learner, _, phases = two_tasks(monkeypatch, weight=3.0, sparsity=0.05)
    loss, (at, x, y, moves, noise, y_hat, z_hat) = first_step(phases["autoencoder"])
    x_hat = learner.decoder_(z_hat)  # nothing was trained since the copies were frozen
    inputs = torch.cat([x.float() / 255, x_hat], 1)
    z = learner.encoder_(inputs)
    reconstruction = ((inputs - learner.decoder_(z)) ** 2).sum((2, 3, 4)).mean(1)
    sparsity = z.abs().sum(2).mean(1)
    pulled = ((z_hat - learner.encoder_(x_hat)) ** 2).sum(2).mean(1)
    expected = reconstruction + 0.05 * sparsity + 3.0 * pulled
    torch.testing.assert_close(loss(at, x, y, moves, noise, y_hat, z_hat), expected)


def test_an_anchor_holds_new_samples_where_the_old_encoder_had_them(monkeypatch):
    learner, _, phases = two_tasks(monkeypatch, weight=0.0, sparsity=0.0, augment=False, anchor=2.0)
    loss, (at, x, *others) = first_step(phases["autoencoder"])
    z_old = learner.encoder_(x.float() / 255).detach()
    with torch.no_grad():
        for p in learner.encoder_.parameters():
            p.mul_(1.1)
    z = learner.encoder_(x.float() / 255)
    reconstruction = ((x.float() / 255 - learner.decoder_(z)) ** 2).sum((2, 3, 4)).mean(1)  # of new samples alone
    expected = reconstruction + 2.0 * ((z - z_old) ** 2).sum(2).mean(1)
    torch.testing.assert_close(loss(at, x, *others), expected)


def test_the_copy_of_the_encoder_for_an_anchor_is_counted_and_not_kept():
    networks = tiny_prer()
    anchored, usual = (learn(blobs(), each, seeds=2, device="cpu") for each in (tiny_prer(anchor=1.0), networks))
    assert anchored.memory_floats == usual.memory_floats
    more = np.subtract(anchored.transient_floats, usual.transient_floats)
    assert more.tolist() == [0] + 2 * [floats(networks.encoder_)]


def test_the_regulariser_moves_the_encoder_and_nothing_else(monkeypatch):
    learner, _, phases = two_tasks(monkeypatch, sparsity=0.0)
    networks = phases["autoencoder"][0]
    loss, batch = first_step(phases["autoencoder"])
    with_r = loss(*batch)
    learner.weight = 0.0
    without = loss(*batch)
    regulariser = (with_r - without).sum()
    decoder = list(learner.decoder_.parameters())
    assert any(network is learner.decoder_ for network in networks)
    to_encoder = torch.autograd.grad(regulariser, list(learner.encoder_.parameters()), retain_graph=True)
    assert all(g.abs().sum() > 0 for g in to_encoder)
    to_decoder = torch.autograd.grad(regulariser, decoder, retain_graph=True)
    assert all(g.abs().max() < 1e-5 for g in to_decoder)


def snapshot(*modules):
    return [t.clone() for m in modules for t in m.state_dict().values()]


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_each_phase_trains_its_own_part_only(monkeypatch):
    stream = pictures()
    learner = started(tiny_prer(anchor=1.0), stream)
    learner.learn(stream[0])
    learner.meet(stream[1])
    past = learner.freeze()
    copies = [past.density, past.decoder, past.encoder]
    frozen = snapshot(*copies)
    parts = {"encoder": learner.encoder_, "decoder": learner.decoder_, "density": learner.density_}
    parts |= {"old head": learner.heads_[0], "head": learner.heads_[1]}

    def moved(phase):
        before = {k: snapshot(m) for k, m in parts.items()}
        phase()
        after = {k: snapshot(m) for k, m in parts.items()}
        return {k for k in parts if len(before[k]) != len(after[k]) or not all(map(torch.equal, before[k], after[k]))}

    assert moved(lambda: learner.train_autoencoder(stream[1], past)) == {"encoder", "decoder"}
    assert moved(lambda: learner.train_density(stream[1], past)) == {"density"}
    assert moved(lambda: learner.train_head(stream[1])) == {"head"}
    assert same(frozen, snapshot(*copies))
    assert not any(p.requires_grad for module in copies for p in module.parameters())


def test_the_flow_learns_reencoded_embeddings_of_old_classes(monkeypatch):
    stream = pictures()
    learner = started(tiny_prer(density={"jitter": 0.0}), stream)
    learner.learn(stream[0])
    past = learner.freeze()
    _, _, (z, condition), _ = captured(learner, stream[1], monkeypatch)["flow"]
    _, (y_hat, z_hat) = mixed(learner, stream[1].size[0], past.density, range(2), learner.address_ / "test" / "flow")
    old = z_hat.shape[2]
    assert torch.equal(condition[:, :, -old:], y_hat)
    reencoded = learner.encoder_(learner.decoder_(z_hat.flatten(1, 2))).view(z_hat.shape)
    torch.testing.assert_close(z[:, :, -old:], reencoded, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(z_hat, reencoded, atol=1e-3)
    _, _, (literal, _), _ = two_tasks(monkeypatch, density={"jitter": 0.0}, reencode=False)[2]["flow"]
    torch.testing.assert_close(literal[:, :, -old:], z_hat, atol=1e-5, rtol=1e-4)


def test_a_shared_head_learns_from_embeddings_of_its_earlier_tasks(monkeypatch):
    stream = one_head()
    learner = started(tiny_prer(), stream)
    learner.learn(stream[0])
    _, loss, fed, _ = captured(learner, stream[1], monkeypatch)["head"]
    where, noise, y_hat, z_hat = (t[:, 0] for t in fed)
    assert where.shape[1] == y_hat.shape[1] == 8  # three old classes and three new
    assert set(y_hat.flatten().tolist()) <= {0, 1, 2}
    rows = stream[1].train_rows((0, 1))
    z = torch.cat([learner.embed(stream[1], rows.gather(1, where)), z_hat], 1)
    y = torch.cat([stream[1].y[rows.gather(1, where)], y_hat], 1)
    logits = learner.heads_[0](z, noise)
    expected = F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none").view(y.shape).mean(1)
    torch.testing.assert_close(loss(where, noise, y_hat, z_hat), expected)
    # The third task has one class, the second output; five classes were learned before.
    learner.learn(stream[2])
    _, _, fed, _ = captured(started(tiny_prer(), pictures()), pictures()[0], monkeypatch)["head"]
    assert len(fed) == 2  # a head of its own sees the new task only


def test_gaussians_have_no_second_phase():
    learner = tiny_prer(density="gaussian")
    learn(blobs(), learner, seeds=1, device="cpu")
    assert isinstance(learner.density_, Gaussian)
    assert "flow" not in learner.loop_.seconds
    assert "flow" not in learner.phases(64, 2)


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_memory_grows_by_one_small_vector_for_each_class():
    learner = tiny_prer()
    result = learn(blobs(), learner, seeds=2, device="cpu")
    steps = np.diff(result.memory_floats)
    assert steps.tolist() == [2 * (4 + 1)] * 2  # two classes: a vector of four and a count each
    assert result.memory_floats[-1] == floats(learner.decoder_, learner.density_)
    assert result.transient_floats[0] == 0
    assert result.transient_floats[1] == result.memory_floats[0]  # frozen copies of all that is kept


def test_memory_of_gaussians_grows_by_a_mean_and_a_triangle():
    result = learn(blobs(), tiny_prer(density="gaussian"), seeds=1, device="cpu")
    assert np.diff(result.memory_floats).tolist() == [2 * (16 + 136 + 1)] * 2


class Leaky(PRER):
    def learn(self, task):
        super().learn(task)
        self.kept_ = [lambda: task.x]


@pytest.mark.parametrize(("kind", "clean"), [(PRER, True), (Leaky, False)])
def test_no_sample_of_a_past_task_is_reachable_from_the_learner(kind, clean):
    stream = blobs()
    learner = started(kind(**TINY_OF["prer"]), stream)
    for task in stream:
        learner.learn(task)
    kept = {t.data_ptr() for t in learner.state().values()}
    assert all(t.data_ptr() in kept for t in reachable_tensors(learner)) == clean


# -- what settings change ----------------------------------------------------------------------------------------------


OPTIONS = [
    {"labels": "head"},
    {"labels": "auxiliary"},
    {"labels": "distilled"},
    {"sparsity": 0.0},
    {"weight": 0.0},
    {"anchor": 1.0},
    {"share": 0.0},
    {"temperature": 0.5},
    {"density": {"name": "gaussian"}},
    {"density": {"condition": "first"}},
    {"density": {"class_prior": False}},
    {"reencode": False},
    {"density": {"jitter": 0.0}},
    {"density": {"clamp": 1e-6}},
    {"density": {"decay": False}},
    {"density": {"levels": 1}},
    {"optimiser": "sgd"},
    {"dropout": 0.0},
]


@pytest.fixture(scope="module")
def usual():
    return digest_of_prer()


@pytest.mark.parametrize("option", OPTIONS, ids=str)
def test_every_option_works_and_makes_a_difference(option, usual):
    assert digest_of_prer(**option) != usual


def test_one_head_forgets_less_than_naive_where_the_domain_changes():
    settings = {"epochs": 30, "lr": 5e-3, "channels": (12, 24, 48), "dropout": 0.0}
    more = {"epochs_autoencoder": 60, "lr_autoencoder": 5e-3, "sparsity": 1e-3, "density": {"epochs": 40, "lr": 5e-3}}
    stream = one_head()
    stream = replace(stream, tasks=stream.tasks[:2])
    naive = learn(stream, Naive(**TINY | settings), seeds=3, device="cpu")
    ours = learn(stream, tiny_prer(**settings, **more), seeds=3, device="cpu")
    assert ours.matrix[:, 1, 0].mean() > naive.matrix[:, 1, 0].mean() + 20, (ours.matrix, naive.matrix)


def test_health_is_that_of_the_answer():
    """With answer="density" the head predicts nothing, so its errors are no sign of a weak memory."""
    events = []
    density = {"name": "gaussian"}
    learner = PRER(**TINY | {"epochs": 0}, epochs_autoencoder=20, answer="density", density=density)
    stream = blobs()
    learn(stream, learner, seeds=1, device="cpu", observe=events.append, warned=True)
    found = [event["agreement"][0] for event in events if event["event"] == "health"]
    assert np.mean(found) > 0.8  # a head without training would be right in half of the cases


# -- if nobody tells the task ------------------------------------------------------------------------------------------


def after_two_tasks(**settings):
    """PRER that has learned two tasks of blobs, and the state of its encoder and decoder after the first."""
    stream = vectors(scenario="class")
    learner = started(PRER(**TINY | settings), stream)
    learner.learn(stream[0])
    before = {name: p.clone() for name, p in learner.state().items()}
    learner.learn(stream[1])
    return stream, learner, before


@pytest.mark.parametrize("encoder", ["rests", "continues"])
def test_an_encoder_that_rests_keeps_its_weights_and_the_decoder_learns(encoder):
    _, learner, before = after_two_tasks(encoder=encoder, anchor=1.0)
    same = {name.partition(".")[0]: [] for name in before}
    for name, tensor in learner.state().items():
        if name in before and tensor.shape == before[name].shape:
            same[name.partition(".")[0]].append(torch.equal(tensor, before[name]))
    assert all(same["encoder"]) == (encoder == "rests")
    assert not any(same["decoder"])


def test_what_rests_is_not_reencoded():
    """The density learns z itself, since E(D(z)) would differ from it."""
    learner = PRER(**TINY, encoder="rests", reencode=True)
    learner.tasks_, z = [range(2), range(2, 4)], torch.zeros(1, 3, 4)
    assert current(learner, z, past=None) is z


def test_the_head_that_grows_sees_every_class_equally_often(monkeypatch):
    stream, seen = vectors(scenario="class"), []
    learner = started(PRER(**TINY), stream)
    for task in stream.tasks[:2]:
        learner.learn(task)

    def train(phase, networks, loss, feed, **how):
        if phase == "head":
            at, _, *replayed = feed(learner.address_ / "counted")
            seen.append((at.shape[2], replayed[0]))

    monkeypatch.setattr(learner, "train", train)
    learner.learn(stream[2])
    ((new, ids),) = seen
    old = ids.shape[2]
    assert abs(old - 2 * new) <= 1  # four old classes, two new ones
    counts = torch.bincount(ids.flatten(), minlength=4).float()
    assert (counts / counts.sum() - 0.25).abs().max() < 0.1


def test_the_answer_of_the_density_is_the_most_likely_class():
    stream, learner, _ = after_two_tasks(answer="density", density="gaussian")
    x = torch.cat([task.samples(task.test_rows((0, 4)))[0] for task in stream.tasks[:2]], dim=1)
    z = learner.encoder_(learner.inputs_(x))
    each = [learner.density_.log_prob(z, torch.full(z.shape[:2], c)) for c in range(4)]
    assert torch.equal(learner.predict(x, 0), torch.stack(each).argmax(0))
    among = learner.predict(x, 0, [2, 3])
    assert torch.equal(among, torch.stack(each[2:]).argmax(0) + 2)
