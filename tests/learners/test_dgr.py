"""DGR: the bound of its generator, its replayed loss by hand, and what it keeps."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from support.learners import SEEDS, TASKS, captured, first_step, images, make, one_head, pictures, started, vectors
from support.one_seed import alone, disturb, first_batch, new_loss
from torch.distributions import Bernoulli, Normal, kl_divergence

from prer.address import Address
from prer.learners.dgr import DGR, VAE
from prer.nn.networks import Decoder
from prer.nn.stacked import floats, stack

STREAMS = {"vectors": vectors(), "images": images(), "one head": one_head()}


# -- the generator -----------------------------------------------------------------------------------------------------


@pytest.fixture(params=[(5,), (1, 8, 8), (3, 9, 10)], ids=str)
def shape(request):
    return request.param


@pytest.fixture
def vae(shape):
    """Two seeds of a generator that knows three classes."""
    made = stack(lambda: VAE(shape, 4, (3, 5), (7,)), Address(SEEDS) / "vae")
    made.add(torch.tensor([10, 30]), Address(SEEDS) / "first")
    made.add(torch.tensor([20]), Address(SEEDS) / "second")
    return made


def test_the_loss_is_the_negative_evidence_lower_bound(vae, shape):
    """Up to a constant of vectors, whose noise has unit variance."""
    address = Address(SEEDS) / "data"
    x, noise = address.uniform(6, *shape), (address / "noise").normal(6, 4)
    ids = torch.tensor([[0, 1, 2, 2, 1, 0], [2, 2, 2, 0, 0, 1]])
    found = vae.loss(x, ids, noise)
    for seed in range(len(SEEDS)):
        mean, log_variance = vae.encoder(x)[seed].split(4, dim=-1)
        posterior = Normal(mean, (log_variance / 2).exp())
        prior = Normal(vae.means[seed, ids[seed]], 1.0)
        latent = (mean + posterior.scale * noise[seed]).expand(len(SEEDS), -1, -1)
        decoded = vae.decoder(latent)[seed]
        if len(shape) == 1:
            likelihood = Normal(decoded, 1.0).log_prob(x[seed]).sum(-1) + shape[0] * math.log(2 * math.pi) / 2
        else:
            likelihood = Bernoulli(decoded, validate_args=False).log_prob(x[seed]).flatten(1).sum(-1)
        bound = likelihood - kl_divergence(posterior, prior).sum(-1)
        torch.testing.assert_close(found[seed], -bound.mean(), rtol=1e-4, atol=1e-4)


def test_new_classes_get_a_mean_of_their_own_and_old_means_stay(vae):
    before = vae.means.detach().clone()
    assert before.shape == (2, 3, 4) and vae.counts.tolist() == [[10, 30, 20]] * 2
    vae.add(torch.tensor([5, 6]), Address(SEEDS) / "third")
    assert torch.equal(vae.means[:, :3], before) and vae.means.shape == (2, 5, 4) and vae.means.requires_grad
    assert vae.counts.tolist() == [[10, 30, 20, 5, 6]] * 2
    assert len(vae.means.flatten().unique()) == vae.means.numel()  # also between seeds


def test_a_sample_is_decoded_from_noise_around_the_mean_of_its_class(vae, shape):
    ids, noise = torch.tensor([[0, 2], [1, 1]]), (Address(SEEDS) / "noise").normal(2, 4)
    found = vae.sample(ids, noise)
    around = torch.stack([vae.means[seed, ids[seed]] for seed in range(2)]) + noise
    assert torch.equal(found, vae.decoder(around)) and found.shape == (2, 2, *shape) and not found.requires_grad


# -- training ----------------------------------------------------------------------------------------------------------


def output_of(stream, label):
    """The number of a head and of its output for a label, from the tasks as the test wrote them."""
    if stream == "one head":
        return 0, ["class 0", "class 1", "class 2"].index(label)
    return next((head, classes.index(label)) for head, classes in enumerate(TASKS) if label in classes)


@pytest.mark.parametrize("stream", STREAMS)
def test_replayed_samples_are_classified_among_the_classes_of_their_head(stream, monkeypatch):
    tasks = STREAMS[stream]
    learner = started(make("dgr", weight=0.7, memory_batch=9, epochs_generator=1), tasks, SEEDS)
    for task in tasks.tasks[:2]:
        learner.learn(task)
    compared = []

    def compare(self, task):
        """Called where the classifier would be trained."""
        disturb(learner.encoder_, learner.heads_)
        batch = first_batch(learner, task)
        (ids, noise, dropout), found = batch.past, learner.loss(batch)
        assert ids.shape == (2, 9) and set(ids.flatten().tolist()) <= set(range(learner.tasks_[-1].start))
        for seed in range(len(SEEDS)):
            expected = new_loss(learner, batch, seed)
            decoder = Decoder(learner.shape_, learner.latent, learner.channels, learner.hidden)
            decoder.load_state_dict({name: t[seed] for name, t in learner.past_.decoder.state_dict().items()})
            for i, number in enumerate(ids[seed].tolist()):
                head, output = output_of(stream, learner.labels_[number])
                encoder, classifier = alone(learner, seed, head)
                x = decoder(learner.past_.means[seed, number] + noise[seed, i : i + 1])
                logits = classifier(encoder(x), dropout[seed, i : i + 1])
                expected = expected + 0.7 * F.cross_entropy(logits, torch.tensor([output])) / 9
            torch.testing.assert_close(found[seed], expected, atol=1e-5, rtol=1e-4)
            compared.append(seed)

    monkeypatch.setattr(DGR, "train_classifier", compare)
    learner.learn(tasks[2])
    assert compared == [0, 1]


def test_the_generator_learns_new_samples_and_those_of_its_predecessor(monkeypatch):
    stream = pictures()
    learner = started(make("dgr", memory_batch=9, epochs_generator=1), stream)
    loss, (at, x, y, moves, noise) = first_step(captured(learner, stream[0], monkeypatch)["generator"])
    expected = learner.generator_.loss(x.float() / 255, y, noise)
    torch.testing.assert_close(loss(at, x, y, moves, noise), expected)
    phase = captured(learner, stream[1], monkeypatch)["generator"]
    assert phase[0] == [learner.generator_] and phase[3]["lr"] == learner.lr_generator
    learner.past_ = copy.deepcopy(learner.generator_)  # nothing was trained since it was copied
    loss, (at, x, y, moves, noise, ids, past_noise) = first_step(phase)
    assert ids.shape == (2, 9) and set(ids.flatten().tolist()) == {0, 1}
    x_hat = learner.generator_.sample(ids, past_noise)
    expected = learner.generator_.loss(torch.cat([x.float() / 255, x_hat], 1), torch.cat([y + 2, ids], 1), noise)
    torch.testing.assert_close(loss(at, x, y, moves, noise, ids, past_noise), expected)


def test_old_classes_are_replayed_as_often_as_they_were_seen():
    learner = started(make("dgr"), pictures())
    learner.past_ = learner.generator_
    learner.generator_.add(torch.tensor([30, 10]), learner.address_)
    learner.meet(pictures()[0])
    ids, noise, dropout = learner.rehearse(torch.zeros(2, 400, 16, dtype=torch.long), learner.address_)
    assert ids.shape == (2, 400, 64) and noise.shape == (2, 400, 64, 50) and dropout.shape[:3] == (2, 400, 64)
    assert abs(float((ids == 0).float().mean()) - 0.75) < 0.01


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_the_generator_is_the_memory_and_its_predecessor_is_not_kept():
    stream = pictures()
    learner = started(make("dgr", epochs_generator=1), stream)
    sizes = []
    for task in stream.tasks[:2]:
        learner.learn(task)
        assert learner.past_ is None and list(learner.memory()) == ["generator"]
        assert learner.memory_size() == (floats(learner.generator_), 0, 4 * floats(learner.generator_))
        sizes.append(learner.memory_size().floats)
    assert sizes[1] - sizes[0] == 2 * (50 + 1)  # of each class a mean and a count
    heads = sum(floats(head) for head in learner.heads_)
    assert learner.transient_floats_ == sizes[0] + heads  # the copy of the generator, and the stacked heads


def test_without_weight_there_is_no_generator():
    stream = pictures()
    learner = started(make("dgr", weight=0.0), stream)
    assert list(learner.phases(100, 2)) == ["classifier"] and learner.memory() == {}
    for task in stream.tasks[:2]:
        learner.learn(task)
    assert len(learner.generator_.means[0]) == 0 and not learner.old_heads()
    assert list(make("dgr", epochs_generator=3).phases(100, 2).items()) == [("generator", 3), ("classifier", 2)]


def test_it_generates_inputs_of_the_given_classes():
    stream = pictures()
    learner = started(make("dgr", epochs_generator=1), stream)
    learner.learn(stream[0])
    ids, address = torch.tensor([[0, 1, 1], [1, 1, 0]]), learner.address_ / "generate"
    found = learner.generate(ids, address)
    assert torch.equal(found, learner.generator_.sample(ids, address.normal(3, learner.latent)))
