"""Distillation by the frozen old network, against plain torch, and PRER that learns with labels and is held by it."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from support.learners import (
    SEEDS,
    STREAMS,
    TINY,
    TINY_PRER,
    blobs,
    captured,
    first_step,
    pictures,
    started,
    tiny_prer,
    vectors,
)
from support.one_seed import alone, disturb, new_loss

from prer import Stream, learn
from prer.densities.base import Density
from prer.errors import InputError
from prer.learners import PRER, Naive
from prer.learners.distilling import Before, divergence
from prer.learners.rehearsal import Past
from prer.nn.stacked import floats


def learned(stream, learner, tasks=2, seeds=SEEDS):
    """The learner after the first tasks, and the network as it was then."""
    started(learner, stream, seeds)
    for task in stream.tasks[:tasks]:
        learner.learn(task)
    return learner, Before.of(learner)


def copied(*modules):
    """The parameters of modules, as they are now."""
    return [p.detach().clone() for module in modules for p in module.parameters()]


def same(a, b):
    return all(torch.equal(p, q) for p, q in zip(a, b, strict=True))


def logits_of(encoder, heads, x):
    """Logits of each head for inputs x, of one seed or of all."""
    z = encoder(x)
    return [head(z) for head in heads]


def kl(before, now, softness):
    """T^2 KL(before || now) summed over heads and averaged over samples, of one seed."""
    pairs = [((b / softness).softmax(-1), (n / softness).log_softmax(-1)) for b, n in zip(before, now, strict=True)]
    return softness**2 * sum(F.kl_div(log_q, p, reduction="batchmean") for p, log_q in pairs)


# -- the old network ---------------------------------------------------------------------------------------------------


def test_the_divergence_is_that_of_the_outputs_that_are_there():
    before, now = torch.randn(2, 3, 7, 4, generator=torch.Generator().manual_seed(0))
    for there in (None, torch.tensor([True, True, False, True])):
        found = divergence(before, now, 3.0, there)
        for i in np.ndindex(3, 7):
            b, n = (t[i] if there is None else t[i][there] for t in (before, now))
            torch.testing.assert_close(found[i], kl([b[None]], [n[None]], 3.0))


@STREAMS
def test_the_change_is_a_sum_over_the_old_heads(stream):
    learner, before = learned(stream, Naive(**TINY))
    x = learner.inputs_(stream[2].samples(stream[2].train_rows(SEEDS))[0])
    old = [logits_of(*networks, x[seed]) for seed, networks in enumerate(networks_of(learner))]
    learner.meet(stream[2])
    disturb(learner.encoder_, learner.heads_)
    now = before.heads.every(learner.encoder_(x))
    found = before.change(x, now, 3.0)
    for seed in range(len(SEEDS)):
        each = [now[seed, :, t, :width] for t, width in enumerate((3, 2))]
        torch.testing.assert_close(found[seed].mean(), kl(old[seed], each, 3.0), atol=1e-5, rtol=1e-4)


def networks_of(learner):
    """Encoder and heads of each seed, as ordinary layers of torch."""
    for seed in range(len(SEEDS)):
        pairs = [alone(learner, seed, head) for head in range(len(learner.heads_))]
        yield pairs[0][0], [head for _, head in pairs]


def test_the_old_network_is_a_frozen_copy():
    stream = vectors()
    learner, before = learned(stream, Naive(**TINY))
    x = learner.inputs_(stream[2].samples(stream[2].train_rows(SEEDS))[0]).requires_grad_()
    said = before.logits(x)
    live = {p.data_ptr() for p in (*learner.encoder_.parameters(), *learner.heads_.parameters())}
    frozen = [*before.encoder.parameters(), *before.heads.parameters()]
    assert frozen and not any(p.requires_grad or p.data_ptr() in live for p in frozen)
    assert not said.requires_grad
    learner.learn(stream[2])
    disturb(learner.encoder_, learner.heads_)
    assert torch.equal(before.logits(x), said)
    assert before.floats() == sum(p[0].numel() for p in frozen)


def test_of_a_head_that_grows_the_old_network_has_the_old_outputs():
    stream = vectors(scenario="class")
    learner, before = learned(stream, Naive(**TINY))
    learner.meet(stream[2])
    assert (before.heads.widths, learner.head_.classes) == ([5], 9)
    x = learner.inputs_(stream[2].samples(stream[2].train_rows(SEEDS))[0])
    torch.testing.assert_close(before.logits(x)[:, :, 0], learner.head_(learner.encoder_(x))[..., :5])


def test_there_is_no_old_network_before_the_first_task():
    assert Before.of(started(Naive(**TINY), vectors())) is None


# -- PRER with labels --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", ["task", "class"])
def test_encoder_and_head_minimise_cross_entropy_and_distillation(scenario, monkeypatch):
    stream = vectors(scenario=scenario)
    learner, before = learned(stream, PRER(**TINY_PRER, labels="distilled", weight=3.0))
    phases = captured(learner, stream[2], monkeypatch)
    assert list(phases) == ["classifier", "autoencoder", "flow", "head"]
    networks, _, fed, options = phases["classifier"]
    assert networks == [learner.encoder_, learner.head_]
    at, *others = (t[:, 0] for t in fed)
    (batch,) = options["prepare"](*options["gather"](at), *others)
    assert batch.x.shape[1] == learner.batch  # pseudo-samples replace no new samples
    learner.before_ = before
    disturb(learner.encoder_, learner.head_)
    found, old = learner.loss(batch), before.logits(batch.x)
    for seed in range(len(SEEDS)):
        now = before.heads.every(learner.encoder_(batch.x))[seed]
        widths = before.heads.widths
        held = kl(*([of[:, t, :width] for t, width in enumerate(widths)] for of in (old[seed], now)), 2.0)
        z = learner.encoder_(batch.x)
        new = F.cross_entropy(learner.head_(z, batch.noise)[seed], batch.y[seed])
        if scenario == "task":
            torch.testing.assert_close(new, new_loss(learner, batch, seed))
        assert held > 1e-4
        torch.testing.assert_close(found[seed], new + 3.0 * held, atol=1e-5, rtol=1e-4)


def test_without_old_tasks_it_is_plain_supervised_training():
    stream = pictures()
    ours, naive = (
        started(tiny_prer(labels="distilled"), stream),
        started(Naive(**TINY | {"channels": (12,) * 3}), stream),
    )
    heads, train = [], ours.train_autoencoder
    ours.train_autoencoder = lambda *past: heads.append(copied(ours.head_)) or train(*past)
    ours.learn(stream[0])
    naive.learn(stream[0])
    assert same(copied(ours.encoder_), copied(naive.encoder_))
    assert same(heads[0], copied(naive.head_))


def test_the_old_network_and_the_old_heads_keep_their_weights(monkeypatch):
    stream, used = pictures(), []
    learner, _ = learned(stream, tiny_prer(labels="distilled", lr=0.01), tasks=1)
    train = PRER.train_classifier

    def watched(self, task, networks):
        used.append((self.before_, copied(self.before_.encoder, self.before_.heads)))
        train(self, task, networks)

    monkeypatch.setattr(PRER, "train_classifier", watched)
    encoder, old = copied(learner.encoder_), copied(learner.heads_[0])
    learner.learn(stream[1])
    ((before, weights),) = used
    assert same(copied(before.encoder, before.heads), weights)
    assert same(encoder, weights[: len(encoder)])
    assert same(copied(learner.heads_[0]), old)
    assert not same(copied(learner.encoder_), encoder)


def test_the_decoder_learns_and_the_encoder_does_not_see_it(monkeypatch):
    stream = pictures()
    learner, _ = learned(stream, tiny_prer(labels="distilled"), tasks=1)
    networks, _, _, _ = phase = captured(learner, stream[1], monkeypatch)["autoencoder"]
    assert networks == [learner.decoder_]
    loss, batch = first_step(phase)
    loss(*batch).sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in learner.decoder_.parameters())
    assert not any(p.grad is not None and p.grad.any() for p in learner.encoder_.parameters())


@pytest.mark.parametrize("reencode", [False, True])
def test_the_decoder_is_rehearsed_on_the_embeddings_that_the_density_learns(reencode, monkeypatch):
    stream = pictures()
    learner, _ = learned(stream, tiny_prer(labels="distilled", reencode=reencode), tasks=1)
    loss, (at, x, y, moves, noise, y_hat, z_hat) = first_step(captured(learner, stream[1], monkeypatch)["autoencoder"])
    x_hat = learner.decoder_(z_hat).detach()  # nothing was trained since the copies were frozen
    x_new = x.float() / 255
    z = torch.cat([learner.encoder_(x_new), learner.encoder_(x_hat) if reencode else z_hat], 1)
    disturb(learner.decoder_, scale=1.0)
    expected = (torch.cat([x_new, x_hat], 1) - learner.decoder_(z)).square().sum((2, 3, 4)).mean(1)
    torch.testing.assert_close(loss(at, x, y, moves, noise, y_hat, z_hat), expected, atol=1e-4, rtol=1e-4)


def test_sparsity_and_the_weight_of_other_labels_have_no_effect():
    usual, other = (
        learn(pictures(), tiny_prer(labels="distilled", **more), seeds=2, device="cpu")
        for more in ({}, {"sparsity": 0.5, "label_weight": 3.0})
    )
    assert (usual.digest, usual.transient_floats) == (other.digest, other.transient_floats)
    assert learn(pictures(), tiny_prer(labels="distilled", weight=9.0), seeds=2, device="cpu").digest != usual.digest


def prepared(stream, monkeypatch, **settings):
    """A learner in its third task, the old network, the networks it trains, and its first batch."""
    learner, before = learned(stream, PRER(**TINY_PRER, labels="distilled", weight=3.0, **settings))
    past = Past.of(learner)
    networks, _, fed, options = captured(learner, stream[2], monkeypatch)["classifier"]
    at, *others = (t[:, 0] for t in fed)
    (batch,) = options["prepare"](*options["gather"](at), *others)
    learner.before_, learner.past_ = before, past
    disturb(learner.encoder_, learner.head_)
    return learner, networks, batch


def without(learner, setting, batch):
    """The loss without one part."""
    value = getattr(learner, setting)
    setattr(learner, setting, 0.0)
    loss = learner.loss(batch._replace(past=()) if setting == "generated" else batch)
    setattr(learner, setting, value)
    return loss


def test_the_anchor_holds_embeddings_of_new_samples(monkeypatch):
    learner, _, batch = prepared(vectors(), monkeypatch, anchor=0.7)
    moved = learner.encoder_(batch.x) - learner.before_.encoder(batch.x)
    added = learner.loss(batch) - without(learner, "anchor", batch)
    torch.testing.assert_close(added, 0.7 * moved.square().sum(-1).mean(1), atol=1e-4, rtol=1e-4)


def test_the_encoder_may_learn_to_reconstruct_besides(monkeypatch):
    learner, networks, batch = prepared(vectors(), monkeypatch, autoencoder=0.7, sparsity=0.1)
    assert networks == [learner.encoder_, learner.head_, learner.decoder_]
    z = learner.encoder_(batch.x)
    eq2 = (batch.x - learner.decoder_(z)).square().sum(-1).mean(1) + 0.1 * z.abs().sum(-1).mean(1)
    added = learner.loss(batch) - without(learner, "autoencoder", batch)
    torch.testing.assert_close(added, 0.7 * eq2, atol=1e-4, rtol=1e-4)


def test_generated_samples_are_distilled_if_asked(monkeypatch):
    learner, _, batch = prepared(vectors(), monkeypatch, generated=0.7)
    (z_hat,) = batch.past
    assert z_hat.shape[:2] == batch.y.shape == (len(SEEDS), learner.batch)  # as many as new ones, which stay
    disturb(learner.encoder_, scale=1.0)
    x_hat = learner.past_.decoder(z_hat)
    held = learner.before_.change(x_hat, learner.before_.heads.every(learner.encoder_(x_hat))).mean(1)
    assert (held > 1e-3).all()
    added = learner.loss(batch) - without(learner, "generated", batch)
    torch.testing.assert_close(added, 0.7 * held, atol=1e-4, rtol=1e-4)


def test_generated_samples_are_of_all_old_classes_and_no_new_one(monkeypatch):
    learner, _, batch = prepared(vectors(), monkeypatch, generated=0.7)
    asked, sample = [], Density.sample
    monkeypatch.setattr(Density, "sample", lambda self, y, *more: asked.append(y) or sample(self, y, *more))
    (z_hat,) = learner.rehearse(batch.rows.unsqueeze(1).expand(-1, 20, -1), learner.address_)
    assert z_hat.shape[:3] == (len(SEEDS), 20, learner.batch)
    assert [set(y.unique().tolist()) for y in asked] == [set(range(learner.tasks_[-1].start))]


@pytest.mark.parametrize("more", [{"generated": 1.0}, {"autoencoder": 0.1}, {"anchor": 0.1, "autoencoder": 0.1}])
def test_each_part_changes_what_is_learned_and_leaves_nothing_behind(more):
    learner = tiny_prer(labels="distilled", **more)
    result = learn(pictures(), learner, seeds=2, device="cpu")
    assert result.digest != learn(pictures(), tiny_prer(labels="distilled"), seeds=2, device="cpu").digest
    assert learner.before_ is learner.past_ is None


def test_the_old_network_is_counted_and_not_kept():
    distilled, usual = (tiny_prer(labels=labels) for labels in ("distilled", "none"))
    with_it, without = (learn(blobs(), each, seeds=2, device="cpu") for each in (distilled, usual))
    assert with_it.memory_floats == without.memory_floats
    more = np.subtract(with_it.transient_floats, without.transient_floats)
    head = floats(usual.heads_[0])
    assert more.tolist() == [0, floats(usual.encoder_) + head, floats(usual.encoder_) + 2 * head]
    assert distilled.before_ is None


def test_an_encoder_that_rests_learns_with_labels_once(monkeypatch):
    stream = pictures()
    learner = started(tiny_prer(labels="distilled", encoder="rests"), stream)
    assert "classifier" in captured(learner, stream[0], monkeypatch)
    assert "classifier" not in captured(learner, stream[1], monkeypatch)


@pytest.mark.parametrize("autoencoder", [0.0, 0.1])
def test_encoder_and_heads_do_not_depend_on_the_memory_unless_they_learn_beside_the_decoder(autoencoder):
    settings = {"labels": "distilled", "anchor": 0.1, "autoencoder": autoencoder}
    whole = learn(pictures(), tiny_prer(**settings), seeds=2, device="cpu")
    without = tiny_prer(**settings, epochs_autoencoder=0, density="gaussian")
    short = learn(pictures(), without, seeds=2, device="cpu")
    states = [result.learned.learner.state() for result in (whole, short)]
    shared = [name for name in states[0] if name.startswith(("encoder.", "heads."))]
    assert all(torch.equal(states[0][name], states[1][name]) for name in shared) == (not autoencoder)
    assert shared and (autoencoder or np.array_equal(whole.matrix, short.matrix, equal_nan=True))


def test_it_forgets_far_less_than_naive():
    digits = load_digits()
    stream = Stream.split(digits.images.astype(np.uint8) * 15, digits.target)
    common = {"channels": (12, 24, 48), "embedding": 32, "batch": 32, "epochs": 20}
    naive = learn(stream, Naive(**common), seeds=2, device="cpu")
    short = {"epochs_autoencoder": 1, "density": "gaussian"}
    ours = learn(stream, PRER(**common, **short, labels="distilled"), seeds=2, device="cpu")
    lost, lost_by_naive = (np.array(result.metrics["bwt"]["values"]) for result in (ours, naive))
    assert (lost_by_naive < -10).all() and (lost > lost_by_naive / 3).all(), (lost, lost_by_naive)


@pytest.mark.parametrize("encoder", ["patches", "identity", "random"])
def test_an_encoder_that_is_not_trained_is_refused(encoder):
    with pytest.raises(InputError, match=f"'{encoder}' is not trained; take learner.encoder='continues'"):
        learn(blobs(), tiny_prer(labels="distilled", encoder=encoder), seeds=1, device="cpu")


def test_a_joint_schedule_is_refused():
    with pytest.raises(InputError, match=r"take learner\.schedule='separate' or learner\.labels='head'"):
        learn(blobs(), tiny_prer(labels="distilled", schedule="joint"), seeds=1, device="cpu")


@pytest.mark.parametrize("name", ["generated", "autoencoder"])
def test_a_setting_that_would_have_no_effect_is_refused(name):
    learner = tiny_prer(labels="head", **{name: 0.5})
    with pytest.raises(InputError, match=f"learner.{name} has an effect only with learner.labels='distilled'"):
        learner.start((4,), SEEDS)
