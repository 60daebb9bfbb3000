"""The training loop against plain loops of torch: steps, decay, gathering, resuming, events and errors."""

import copy

import pytest
import torch
from torch import nn

from prer.address import Address
from prer.errors import InputError, RunError
from prer.nn.stacked import Linear, stack
from prer.training import loop as loops
from prer.training.loop import STEPS_GATHERED, Loop, Plan, Step, batches

SEEDS = (3, 8)
N, BATCH, EPOCHS = 50, 8, 3  # samples, samples in a batch, epochs
THEIRS = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}


@pytest.fixture
def address():
    return Address(SEEDS) / "phase"


@pytest.fixture
def data(address):
    """Inputs [S, n, 4] and targets [S, n, 2] of a regression."""
    return (address / "x").normal(N, 4), (address / "target").normal(N, 2)


@pytest.fixture
def network(address):
    return stack(lambda: nn.Sequential(Linear(4, 5), nn.Tanh(), Linear(5, 2)), address / "network")


def rows_of(t, at):
    """The rows of each seed at these positions: [S, n, ...] and [S, ...] to [S, ..., ...]."""
    return torch.stack([of_seed[positions] for of_seed, positions in zip(t, at, strict=True)])


def plan_of(network, data, **options):
    """A regression: the feed has positions and noise on the targets, which the loss adds."""

    def feed(address):
        at = batches(N, BATCH, address)
        return at, (address / "noise").normal(*at.shape[1:], 2)

    def gather(at):
        return rows_of(data[0], at), rows_of(data[1], at)

    def loss(x, target, noise):
        return (network(x) - target - 0.1 * noise).square().sum(2).mean(1)

    return Plan(**{"networks": [network], "loss": loss, "feed": feed, "gather": gather, "lr": 0.05} | options)


def by_torch(network, data, address, optimiser="adam", decay=False, epochs=EPOCHS):
    """Train each seed alone with layers and optimisers of torch; weights, and the mean loss [epochs, S]."""
    weights, losses = [], torch.zeros(epochs, len(SEEDS))
    for seed in range(len(SEEDS)):
        alone = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
        alone.load_state_dict({name: t[seed] for name, t in network.state_dict().items()})
        descent = THEIRS[optimiser](alone.parameters(), 0.05)
        for epoch in range(epochs):
            descent.param_groups[0]["lr"] = 0.05 * (1 - epoch / epochs) if decay else 0.05
            place = address / epoch
            order = (place / "order").permutation(N)[seed]
            noise = (place / "noise").normal(N // BATCH, BATCH, 2)[seed]
            for step in range(N // BATCH):  # the last two samples of the order are left out
                at = order[step * BATCH : (step + 1) * BATCH]
                wanted = data[1][seed, at] + 0.1 * noise[step]
                loss = (alone(data[0][seed, at]) - wanted).square().sum(1).mean()
                descent.zero_grad()
                loss.backward()
                descent.step()
                losses[epoch, seed] += loss.detach() / (N // BATCH)
        weights.append(alone.state_dict())
    return weights, losses


@pytest.mark.parametrize("decay", [False, True])
@pytest.mark.parametrize("optimiser", THEIRS)
def test_a_phase_trains_like_a_plain_loop_of_torch(network, data, address, optimiser, decay):
    weights, losses = by_torch(network, data, address, optimiser, decay)
    events = []
    plan = plan_of(network, data, optimiser=optimiser, decay=decay)
    Loop(events.append).run("fit", 0, EPOCHS, plan, address)
    for seed, expected in enumerate(weights):
        for name, t in network.state_dict().items():
            torch.testing.assert_close(t[seed], expected[name], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(torch.tensor([event["loss"] for event in events]), losses, rtol=1e-4, atol=1e-6)


def test_the_rate_decays_linearly_and_does_not_reach_zero(network, data, address, monkeypatch):
    rates, slow_down = [], Step.slow_down

    def watched(step, factor):
        slow_down(step, factor)
        rates.append(float(step.rate))

    monkeypatch.setattr(Step, "slow_down", watched)
    Loop().run("fit", 0, 4, plan_of(network, data, decay=True), address)
    Loop().run("fit", 0, 2, plan_of(network, data), address)
    assert rates == pytest.approx([0.05, 0.0375, 0.025, 0.0125, 0.05, 0.05])


# -- samples -----------------------------------------------------------------------------------------------------------


def test_samples_are_gathered_for_a_few_steps_at_a_time(network, data, address, monkeypatch):
    whole = copy.deepcopy(network)
    Loop().run("fit", 0, EPOCHS, plan_of(whole, data), address)
    monkeypatch.setattr(loops, "STEPS_GATHERED", 4)
    gathered, plan = [], plan_of(network, data)

    def gather(at):
        gathered.append(at.shape[1])
        return plan.gather(at)

    Loop().run("fit", 0, EPOCHS, plan_of(network, data, gather=gather), address)
    assert STEPS_GATHERED == 32 and gathered == [4, 2] * EPOCHS  # six steps an epoch
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), whole.parameters(), strict=True))


def test_without_gather_the_first_tensor_of_the_feed_is_the_sample_itself(network, data, address):
    x = data[0][:, :48].unflatten(1, (6, 8))
    seen = []

    def loss(x):
        seen.append(x.clone())
        return network(x).square().sum((1, 2))

    Loop().run("fit", 0, 1, Plan(networks=[network], loss=loss, feed=lambda address: (x,), lr=0.01), address)
    assert torch.equal(torch.stack(seen, dim=1), x)


def test_batches_are_a_permutation_of_the_samples_without_the_rest(address):
    found = batches(50, 8, address)
    assert found.shape == (2, 6, 8)
    assert torch.equal(found.flatten(1), (address / "order").permutation(50)[:, :48])
    assert batches(8, 8, address).shape == (2, 1, 8)


def test_prepare_is_called_once_a_step_and_its_result_is_given_to_the_loss_and_before_the_update(address):
    weight = nn.Parameter(torch.zeros(2, 1))
    module, calls = nn.Module(), []
    module.weight = weight

    def prepare(x):
        calls.append("prepare")
        return x.sum(1), "more"

    def loss(total, more):
        calls.append("loss")
        assert weight.grad is None and more == "more"
        return (weight[:, 0] - total).square()

    def before_update(total, more):
        calls.append("before")
        torch.testing.assert_close(weight.grad[:, 0], 2 * (weight[:, 0] - total).detach())
        weight.grad.fill_(10.0)  # the update uses what is left here

    step = Step(loss, [weight], "sgd", 0.5, prepare, before_update)
    x = torch.arange(12.0).view(2, 3, 2)  # three steps of two samples
    total = step(x)
    assert calls == ["prepare", "loss", "before"] * 3
    assert weight.flatten().tolist() == [-15, -15]
    expected = [sum((-5.0 * i - s) ** 2 for i, s in enumerate(sums)) for sums in ((1, 5, 9), (13, 17, 21))]
    assert total.tolist() == expected and not total.requires_grad


def test_seeds_do_not_change_each_other(network, data, address):
    Loop().run("fit", 0, EPOCHS, plan_of(network, data), address)
    alone = stack(
        lambda: nn.Sequential(Linear(4, 5), nn.Tanh(), Linear(5, 2)), Address(SEEDS[1:]) / "phase" / "network"
    )
    Loop().run("fit", 0, EPOCHS, plan_of(alone, [t[1:] for t in data]), Address(SEEDS[1:]) / "phase")
    for both, one in zip(network.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(both[1:], one, rtol=1e-5, atol=1e-6)


def test_frozen_parameters_are_neither_trained_nor_saved(network, data, address):
    network[0].requires_grad_(False)
    before, loop, saved = copy.deepcopy(network), Loop(), []
    loop.after_epoch = lambda phase, tensors, *_: saved.extend(dict(tensors.tensors()))
    loop.run("fit", 0, 1, plan_of(network, data), address)
    assert [name for name in saved if name.startswith("parameter")] == ["parameter.0", "parameter.1"]
    assert torch.equal(network[0].weight, before[0].weight)
    assert not torch.equal(network[2].weight, before[2].weight)


def test_networks_are_in_training_mode_until_the_phase_ends(network, data, address):
    modes = []
    plan = plan_of(network, data, prepare=lambda *tensors: modes.append(network.training) or tensors)
    assert not network.training
    Loop().run("fit", 0, 1, plan, address)
    assert modes == [True] * 6 and not network.training


# -- events ------------------------------------------------------------------------------------------------------------


def test_every_epoch_is_observed_and_then_given_to_after_epoch(network, data, address):
    told, loop = [], Loop(lambda event: told.append(event))
    loop.after_epoch = lambda *of_epoch: told.append(of_epoch)
    loop.run("fit", 4, EPOCHS, plan_of(network, data), address)
    events, calls = told[::2], told[1::2]
    keys = ("event", "task", "phase", "epoch", "epochs")
    assert [tuple(e[key] for key in keys) for e in events] == [("epoch", 4, "fit", i, EPOCHS) for i in range(EPOCHS)]
    assert all(len(e["loss"]) == 2 and e["seconds"] > 0 for e in events)
    assert [(phase, done, epochs) for phase, _, done, epochs, _ in calls] == [("fit", i + 1, 3) for i in range(3)]
    assert [seconds for *_, seconds in calls] == [e["seconds"] for e in events]
    assert loop.seconds == {"fit": pytest.approx(sum(e["seconds"] for e in events))}
    tensors = dict(calls[-1][1].tensors())
    assert all(torch.equal(tensors[f"parameter.{i}"], p) for i, p in enumerate(network.parameters()))


def test_gradients_are_dropped_at_the_end_of_a_phase(network, data, address):
    seen = []
    loop = Loop()
    loop.after_epoch = lambda *of_epoch: seen.append(network[0].weight.grad is not None)
    loop.run("fit", 0, 2, plan_of(network, data), address)
    assert seen == [True, True] and all(p.grad is None for p in network.parameters())


# -- resuming ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimiser", THEIRS)
@pytest.mark.parametrize("done", range(EPOCHS + 1))
def test_a_phase_resumes_after_any_epoch(network, data, address, optimiser, done):
    """With the parameters, the optimiser state and the other tensors that steps change, and the decayed rate."""
    fresh, saved = copy.deepcopy(network), {}

    def options():
        count = torch.zeros(2)
        return count, {
            "optimiser": optimiser,
            "decay": True,
            "also": [count],
            "before_update": lambda *_: count.add_(1),
        }

    count, how = options()
    loop = Loop()
    loop.after_epoch = lambda phase, tensors, epochs, *_: saved.update({epochs: tensors.copied(epochs)})
    loop.run("fit", 0, EPOCHS, plan_of(network, data, **how), address)
    assert count.tolist() == [6 * EPOCHS] * 2
    again, how = options()
    events, loop = [], Loop(lambda event: events.append(event["epoch"]))
    loop.trained = {"fit": saved[done]} if done else {"another": saved[1]}
    loop.run("fit", 0, EPOCHS, plan_of(fresh, data, **how), address)
    assert events == list(range(done, EPOCHS))
    assert all(torch.equal(a, b) for a, b in zip(fresh.parameters(), network.parameters(), strict=True))
    assert torch.equal(again, count)


@pytest.mark.parametrize("done", [-1, EPOCHS + 1])
def test_a_state_of_another_number_of_epochs_is_refused(network, data, address, done):
    saved, loop = [], Loop()
    loop.after_epoch = lambda phase, tensors, *_: saved.append(tensors.copied(done))
    loop.run("fit", 0, 1, plan_of(network, data), address)
    loop.trained = {"fit": saved[0]}
    with pytest.raises(InputError, match=f"has {done} epochs of phase 'fit', which has 3; delete it to start over"):
        loop.run("fit", 0, EPOCHS, plan_of(network, data), address)


# -- numbers that are not finite ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", ["nan", "inf", "-inf"])
def test_a_loss_that_is_not_finite_stops_the_phase_and_names_the_seed(network, data, address, broken):
    told, usual = [], plan_of(network, data)
    spoiled = torch.tensor([0.0, float(broken)])

    def loss(*of_step):
        return usual.loss(*of_step) + (spoiled if len(told) == 1 else 0)  # in the second epoch

    loop = Loop(told.append)
    sentence = f"^the loss of seed 8 became {broken} in task 5, phase 'fit', epoch 2; try a lower learning rate$"
    with pytest.raises(RunError, match=sentence):
        loop.run("fit", 4, EPOCHS, plan_of(network, data, loss=loss), address)
    assert [event["epoch"] for event in told] == [0]
    assert not network.training


def test_a_weight_that_is_not_finite_stops_the_phase_though_the_loss_is(network, data, address):
    """The last update may break a weight that no loss shows."""
    unused = nn.Parameter(torch.ones(2, 1))
    network.register_parameter("unused", unused)

    def before_update(*of_step):
        unused.grad = torch.full_like(unused, torch.inf)

    sentence = "is no longer finite in task 1, phase 'fit', epoch 1; try a lower learning rate"
    with pytest.raises(RunError, match=sentence):
        Loop().run("fit", 0, 1, plan_of(network, data, before_update=before_update), address)
