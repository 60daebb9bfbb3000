"""Pseudo-rehearsal: frozen copies, and batches that mix the past with new samples."""

import numpy as np
import pytest
import torch
from support.learners import captured, pictures, started, tiny_prer
from torch import nn

from prer import Stream
from prer.learners import rehearsal
from prer.learners.rehearsal import Past, clamping, current, mixed, with_past
from prer.nn.stacked import floats
from prer.training.loop import batches


@pytest.fixture
def second_task():
    """A PRER that has learned the first of three tasks and has met the second, and the copies of its past."""

    def make(**settings):
        stream = pictures()
        learner = started(tiny_prer(**settings), stream)
        learner.learn(stream[0])
        learner.meet(stream[1])
        return learner, Past.of(learner)

    return make


# -- copies ------------------------------------------------------------------------------------------------------------


def test_there_is_no_past_on_the_first_task():
    assert Past.of(started(tiny_prer(), pictures())) is None


def test_the_past_is_a_frozen_copy_of_density_and_decoder(second_task):
    learner, past = second_task()
    assert past.encoder is None
    assert past.floats() == floats(learner.density_, learner.decoder_)
    copies = {learner.density_: past.density, learner.decoder_: past.decoder}
    for module, copied in copies.items():
        for mine, theirs in zip(module.parameters(), copied.parameters(), strict=True):
            assert mine.requires_grad and not theirs.requires_grad
            assert torch.equal(mine, theirs) and mine.data_ptr() != theirs.data_ptr()


def test_an_anchor_needs_a_copy_of_the_encoder(second_task):
    learner, past = second_task(anchor=0.5)
    assert past.floats() == floats(learner.density_, learner.decoder_, learner.encoder_)
    x = torch.rand(2, 3, 1, 8, 8)
    before = learner.encoder_(x).detach()
    with torch.no_grad():
        for parameter in learner.encoder_.parameters():
            parameter.mul_(1.5)
    assert torch.equal(past.embed(x), before) and not torch.allclose(learner.encoder_(x), before)


def test_pseudo_samples_are_inputs_without_a_gradient(second_task):
    learner, past = second_task(anchor=0.5)
    z_hat = torch.randn(2, 5, 16, requires_grad=True)
    x_hat = past.decode(z_hat)
    assert x_hat.shape == (2, 5, 1, 8, 8) and torch.equal(x_hat, learner.decoder_(z_hat))
    assert not x_hat.requires_grad and not past.embed(x_hat.requires_grad_()).requires_grad


# -- batches -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "expected"), [(0.8, [0, 8, 11, 12, 12]), (0.6, [0, 8, 9, 9, 9]), (0.0, [0] * 5)])
def test_every_class_is_seen_equally_often_up_to_a_share(share, expected, monkeypatch):
    stream = pictures(classes=10)
    learner = started(tiny_prer(share=share, density={"blocks": 1}), stream)
    seen = []
    for task in stream:
        _, _, (rows, _, _, *replayed), _ = captured(learner, task, monkeypatch)["autoencoder"]
        count = replayed[0].shape[2] if replayed else 0
        assert rows.shape[2] == 16 - count
        seen.append(count)
    assert seen == expected


def test_pseudo_labels_follow_the_proportions_of_training():
    rng = np.random.default_rng(0)
    counts = [150, 50, 40, 40]
    stream = Stream.split(rng.normal(size=(280, 3)), np.repeat(np.arange(4), counts))
    learner = started(tiny_prer(density={"epochs": 1}), stream)
    learner.learn(stream[0])
    assert learner.density_.counts.tolist() == [[120, 40]] * 2
    drawn = learner.density_.labels(20_000, learner.address_ / "test", range(2))
    assert abs(float((drawn == 0).float().mean()) - 0.75) < 0.02


def test_a_part_of_each_batch_is_replaced_by_samples_of_the_density(second_task):
    learner, past = second_task(temperature=0.7)
    address = learner.address_ / "here"
    at, (y_hat, z_hat) = mixed(learner, 40, past.density, range(2), address)
    assert torch.equal(at, batches(40, 16, address)[..., 8:])  # two classes of four are old
    assert y_hat.shape == (2, 2, 8) and z_hat.shape == (2, 2, 8, 16)
    assert set(y_hat.flatten().tolist()) == {0, 1}
    labels = past.density.labels(16, address / "labels", range(2))
    assert torch.equal(y_hat.flatten(1), labels)
    expected = past.density.sample(labels, address / "replay", temperature=0.7)
    assert torch.equal(z_hat.flatten(1, 2), expected)


def test_only_the_given_classes_are_replayed(second_task):
    learner, past = second_task()
    _, (y_hat, _) = mixed(learner, 40, past.density, [1], learner.address_)
    assert y_hat.shape[2] == round(16 / 3) and (y_hat == 1).all()  # one old class beside two new ones


def test_without_a_density_or_old_classes_a_batch_is_new(second_task):
    learner, past = second_task()
    for density, old in ((None, range(2)), (past.density, range(0))):
        at, replayed = mixed(learner, 40, density, old, learner.address_ / "here")
        assert replayed == () and torch.equal(at, batches(40, 16, learner.address_ / "here"))


@pytest.mark.parametrize(("share", "count"), [(0.8, 30), (0.5, 30), (0.25, 10), (0.0, 0)])
def test_the_statistics_see_each_old_class_as_often_up_to_the_share(second_task, share, count):
    learner, past = second_task(share=share, reencode=False)
    z, y = torch.randn(2, 30, 16), torch.full((2, 30), 2)
    every_z, every_y = with_past(learner, z, y, past, learner.address_ / "here")
    assert every_z.shape == (2, 30 + count, 16) and every_y.shape == (2, 30 + count)
    assert torch.equal(every_z[:, :30], z) and torch.equal(every_y[:, :30], y)
    if count:
        y_hat = past.density.labels(count, learner.address_ / "here" / "labels", range(2))
        assert torch.equal(every_y[:, 30:], y_hat)
        expected = past.density.sample(y_hat, learner.address_ / "here" / "start", learner.temperature)
        assert torch.equal(every_z[:, 30:], expected)
    assert with_past(learner, z, y, None, learner.address_)[0] is z


def test_old_embeddings_are_encoded_again_unless_reencode_is_off(second_task):
    learner, past = second_task()
    with torch.no_grad():
        for parameter in learner.encoder_.parameters():
            parameter.mul_(1.1)
    z, y, address = torch.randn(2, 8, 16), torch.full((2, 8), 2), learner.address_ / "here"
    found = with_past(learner, z, y, past, address)[0][:, 8:]
    learner.reencode = False
    drawn = with_past(learner, z, y, past, address)[0][:, 8:]
    torch.testing.assert_close(found, learner.encoder_(learner.decoder_(drawn)).detach())
    assert not torch.allclose(found, drawn, atol=1e-3) and not found.requires_grad


def test_many_embeddings_are_encoded_in_parts(second_task, monkeypatch):
    learner, past = second_task()
    z_hat, sizes = torch.randn(2, 10, 16), []
    whole = current(learner, z_hat, past)
    monkeypatch.setattr(rehearsal, "rows_at_once", lambda address: 4)
    past.decoder.register_forward_hook(lambda module, inputs, output: sizes.append(output.shape[1]))
    torch.testing.assert_close(current(learner, z_hat, past), whole)
    assert sizes == [4, 4, 2]


# -- gradients ---------------------------------------------------------------------------------------------------------


def test_gradients_are_clamped_to_both_sides():
    module = nn.Linear(2, 2)
    module.bias.requires_grad_(False)
    clamp = clamping(module, 0.5)
    clamp()  # without a gradient there is nothing to clamp
    assert module.weight.grad is None
    module.weight.grad = torch.tensor([[-3.0, 0.2], [0.5, 7.0]])
    clamp("arguments", "of a step")
    assert module.weight.grad.tolist() == [[-0.5, pytest.approx(0.2)], [0.5, 0.5]]
