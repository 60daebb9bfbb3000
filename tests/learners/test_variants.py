"""Variants of PRER: the losses of their switches by hand, and that each switch makes a difference."""

from dataclasses import fields

import pytest
import torch
import torch.nn.functional as F
from support.learners import TINY_OF, captured, digest_of_prer, first_step, pictures, started, tiny_prer, two_tasks

from prer import learn
from prer.densities.gaussian import Gaussian
from prer.errors import InputError
from prer.learners import PRER
from prer.learners.variants import PRERVariant
from prer.migration import SWITCHES
from prer.nn.networks import Reshape
from prer.training.loop import Loop

OTHERS = [
    {"distance": "cosine"},
    {"sparsity_on": "layers"},
    {"augment": False},
    {"schedule": "joint"},
    {"schedule": "joint", "reencode": False, "labels": "head"},
    {"norm": "running"},
    {"one_hot": True, "density": {"condition_size": 6}},
    {"bounded": False},
    {"restart": True},
    {"permutation": "random"},
]


@pytest.fixture(scope="module")
def usual():
    return digest_of_prer()


@pytest.mark.parametrize("switch", OTHERS, ids=lambda s: " ".join(f"{k}={v}" for k, v in s.items()))
def test_every_switch_works_and_makes_a_difference(switch, usual):
    assert digest_of_prer(**switch) != usual


def test_every_switch_is_tried():
    tried = {key for switches in OTHERS for key in switches}
    assert tried >= SWITCHES.keys() == {f.name for f in fields(PRERVariant)} - {f.name for f in fields(PRER)}


def test_with_its_defaults_a_variant_is_prer():
    ours, variant = (learn(pictures(), kind(**TINY_OF["prer"]), seeds=2, device="cpu") for kind in (PRER, PRERVariant))
    assert ours.digest == variant.digest


# -- phase 1 -----------------------------------------------------------------------------------------------------------


def test_sparsity_on_layers_is_the_mean_of_each_layer_but_the_last(monkeypatch):
    learner, _, phases = two_tasks(monkeypatch, weight=0.0, sparsity=0.5, sparsity_on="layers")
    loss, (at, x, y, moves, noise, *_) = first_step(phases["autoencoder"])
    batch = at, x, y, moves, noise
    x = x.float() / 255
    z = learner.encoder_(x)
    with_penalty = loss(*batch)
    learner.sparsity = 0.0
    h, penalty = x, torch.zeros(2)
    for layer in [*learner.encoder_.layers, *learner.decoder_.layers][:-1]:
        h = layer(h)
        penalty = penalty + (0 if isinstance(layer, Reshape) else h.abs().flatten(1).mean(1))
    assert h.shape[:2] == z.shape[:2]
    torch.testing.assert_close(with_penalty - loss(*batch), 0.5 * penalty, atol=1e-4, rtol=1e-4)


def test_the_cosine_distance_is_one_minus_the_cosine(monkeypatch):
    learner, _, phases = two_tasks(monkeypatch, weight=3.0, distance="cosine")
    loss, batch = first_step(phases["autoencoder"])
    z_hat = batch[-1]
    total = loss(*batch)
    learner.weight = 0.0
    a, b = z_hat, learner.encoder_(learner.decoder_(z_hat))
    cosine = (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))
    torch.testing.assert_close(total - loss(*batch), 3 * (1 - cosine).mean(1), atol=1e-4, rtol=1e-4)


def test_without_augmentation_pseudo_samples_are_not_reconstructed(monkeypatch):
    learner, _, phases = two_tasks(monkeypatch, weight=3.0, sparsity=0.0, augment=False)
    loss, (at, x, y, moves, noise, y_hat, z_hat) = first_step(phases["autoencoder"])
    x_new = x.float() / 255
    reconstruction = ((x_new - learner.decoder_(learner.encoder_(x_new))) ** 2).sum((2, 3, 4)).mean(1)
    pulled = ((z_hat - learner.encoder_(learner.decoder_(z_hat))) ** 2).sum(2).mean(1)
    torch.testing.assert_close(loss(at, x, y, moves, noise, y_hat, z_hat), reconstruction + 3.0 * pulled)


# -- the flow ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("restart", [False, True])
def test_a_restarted_flow_has_its_initial_weights_and_knows_all_classes(restart):
    stream = pictures()
    learner = started(tiny_prer(restart=restart, density={"lr": 0.01}), stream)
    initial = {name: p.clone() for name, p in learner.density_.named_parameters() if name.startswith("parts")}
    learner.learn(stream[0])
    learner.meet(stream[1])
    learner.add_classes(stream[1], learner.freeze())
    found = dict(learner.density_.named_parameters())
    assert initial and all(torch.equal(found[name], p) for name, p in initial.items()) == restart
    assert learner.density_.counts.tolist() == [[19, 19, 19, 19]] * 2  # 80 % of 24
    assert len(found["table"][0]) == 4


def test_switches_of_the_flow_do_not_change_a_gaussian():
    learner = started(tiny_prer(norm="running", restart=True, density="gaussian"), pictures())
    assert isinstance(learner, PRERVariant) and isinstance(learner.density_, Gaussian)
    learn(pictures(), learner, seeds=1, device="cpu")
    assert learner.density_.counts.shape == (1, 6)


# -- one joint phase ---------------------------------------------------------------------------------------------------


def test_a_joint_schedule_has_one_phase_with_the_epochs_and_the_rate_of_phase_1():
    learner = tiny_prer(schedule="joint", epochs_autoencoder=5, epochs=7, lr_autoencoder=0.03)
    assert learner.phases(100, 2) == {"joint": 5}
    assert list(tiny_prer(restart=True).phases(100, 2)) == ["autoencoder", "flow", "head"]
    assert learner.density_rate == "learner.lr_autoencoder"
    assert tiny_prer(restart=True).density_rate == PRER.density_rate == "learner.density.lr"
    plans = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "run", lambda loop, phase, task, epochs, plan, address: plans.append((phase, epochs, plan)))
        started(learner, pictures()).learn(pictures()[0])
    ((phase, epochs, plan),) = plans
    assert (phase, epochs, plan.lr, plan.decay) == ("joint", 5, 0.03, False)


def test_a_gaussian_cannot_be_trained_jointly():
    with pytest.raises(InputError, match="trains a flow in every step; a Gaussian is not trained"):
        started(tiny_prer(schedule="joint", density="gaussian"), pictures())


@pytest.mark.parametrize("reencode", [True, False])
def test_the_joint_loss_is_the_sum_of_the_three(monkeypatch, reencode):
    learner, _, phases = two_tasks(
        monkeypatch, schedule="joint", reencode=reencode, weight=3.0, sparsity=0.0, dropout=0.0
    )
    networks, _, _, _ = phases["joint"]
    parts = learner.encoder_, learner.decoder_, learner.head_, learner.density_
    assert [id(network) for network in networks] == list(map(id, parts))
    loss, (at, x, y, moves, noise, y_hat, z_hat) = first_step(phases["joint"])
    x_hat = learner.decoder_(z_hat).detach()
    inputs = torch.cat([x.float() / 255, x_hat], 1)
    z = learner.encoder_(inputs)
    expected = ((inputs - learner.decoder_(z)) ** 2).sum((2, 3, 4)).mean(1)
    expected = expected + 3.0 * ((z_hat - z[:, y.shape[1] :]) ** 2).sum(2).mean(1)
    logits = learner.head_(z[:, : y.shape[1]])
    expected = expected + F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none").view(y.shape).mean(1)
    followed = z.detach() if reencode else torch.cat([z[:, : y.shape[1]], z_hat], 1).detach()
    condition = torch.cat([y + 2, y_hat], 1)  # two classes were learned before
    expected = expected - learner.density_.log_prob(followed, condition).mean(1)
    torch.testing.assert_close(loss(at, x, y, moves, noise, y_hat, z_hat), expected, rtol=1e-4, atol=1e-4)


def test_the_density_of_a_joint_phase_does_not_move_the_encoder(monkeypatch):
    stream = pictures()
    learner = started(tiny_prer(schedule="joint", labels="head"), stream)
    phases = captured(learner, stream[0], monkeypatch)
    loss, batch = first_step(phases["joint"])
    before = learner.density_.log_prob
    with_density = torch.autograd.grad(loss(*batch).sum(), list(learner.encoder_.parameters()))
    monkeypatch.setattr(type(learner.density_), "log_prob", lambda self, z, condition: 0 * before(z, condition))
    without = torch.autograd.grad(loss(*batch).sum(), list(learner.encoder_.parameters()))
    for a, b in zip(with_density, without, strict=True):
        torch.testing.assert_close(a, b)
