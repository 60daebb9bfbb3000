"""The parts of a flow: norms, couplings, permutations, levels, the condition and the prior."""

import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.densities import CLASSES, PAPER, assert_close, draw, new, rough, seeds, zuko_flow
from torch.distributions import Normal

from prer.densities.flow import Flow
from prer.errors import InputError
from prer.nn.stacked import floats

both_norms = pytest.mark.parametrize("norm", ["batch", "running"])


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


# -- norms and standardisation -----------------------------------------------------------------------------------------


@both_norms
@torch.no_grad()
def test_the_first_batch_sets_the_running_estimates_of_every_block(norm):
    flow = rough(5, norm=norm)
    flow.started.fill_(False)
    z, y = draw(5, 300, seeds(2))
    z = z.double()
    flow.start(z, y)
    standardised = (z - z.mean(1, keepdim=True)) / z.std(1, keepdim=True)
    assert_close(flow.levels[0].mean[:, 0], standardised.mean(1))
    assert_close(flow.levels[0].var[:, 0], standardised.var(1))
    # The estimates are the statistics of this batch, by which it is normalised in training.
    evaluated = flow.log_prob(z, y)
    assert_close(flow.train().log_prob(z, y), evaluated)


@torch.no_grad()
def test_a_later_start_moves_the_standardisation_and_not_the_norms():
    flow = rough(4, blocks=2)
    (z, y), (later, _) = draw(4, 100, seeds(2)), draw(4, 100, seeds(2) / "later")
    flow.start(z.double(), y)
    norms = {name: tensor.clone() for name, tensor in flow.named_buffers() if name.startswith("parts.")}
    flow.start(3 * later.double(), y)
    assert_close(flow.mean, 3 * later.double().mean(1))
    assert_close(flow.std, 3 * later.double().std(1))
    assert all(torch.equal(flow.get_buffer(name), tensor) for name, tensor in norms.items())


@both_norms
@pytest.mark.parametrize("training", [True, False])
@torch.no_grad()
def test_a_block_normalises_by_the_statistics_of_its_mode(norm, training):
    flow = new(4, norm=norm, levels=1, blocks=1, momentum=0.8).double().train(training)
    (level,) = flow.levels
    level.mean.fill_(3)
    level.var.fill_(2)
    z = 2 * seeds(2).normal(50, 4).double() + 1
    moved = 0.8 * 3 + 0.2 * z.mean(1), 0.8 * 2 + 0.2 * z.var(1)
    before = level.mean[:, 0].clone(), level.var[:, 0].clone()
    mean, var = {(True, "batch"): (z.mean(1), z.var(1)), (True, "running"): moved}.get((training, norm), before)
    std = (var + 1e-3).sqrt().unsqueeze(1)
    u, log_det = flow(z, torch.zeros(2, 50).long())
    # A new coupling is the identity but for its initial scale.
    begin = torch.tensor([1, 1, sigmoid(2), sigmoid(2)], dtype=torch.float64)
    expected = (z - mean.unsqueeze(1)) / std * begin
    assert_close(u[..., level.back[0, 0]], expected)
    assert_close(log_det, (begin.log().sum() - std.log().sum(-1)).expand(2, 50))
    after = moved if training else before
    assert_close(level.mean[:, 0], after[0])
    assert_close(level.var[:, 0], after[1])


@torch.no_grad()
def test_standardisation_is_part_of_the_density():
    flow, (z, y) = rough(4), draw(4, 300, seeds(2))
    scale, shift = torch.tensor([2, 0.5, 7, 1]).double(), torch.tensor([0, -30, 5, 1]).double()
    z, moved = z.double(), copy.deepcopy(flow)
    flow.start(z, y)
    moved.start(scale * z + shift, y)
    assert_close(moved.log_prob(scale * z + shift, y), flow.log_prob(z, y) - scale.log().sum())
    assert_close(moved.sample(y, seeds(2)), scale * flow.sample(y, seeds(2)) + shift)


@torch.no_grad()
def test_a_dead_dimension_stays_invertible():
    flow, (z, y) = new(4), draw(4, 300, seeds(2))
    z[..., 1] = 3
    flow.start(z, y)
    assert flow.log_prob(z, y).isfinite().all()
    assert_close(flow.inverse(flow(z, y)[0], y), z, 1e-4)
    assert_close(flow.sample(y, seeds(2))[..., 1], z[..., 1], 0.02)


# -- couplings, permutations, levels -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bounded", [True, False])
@torch.no_grad()
def test_the_scale_is_bounded(bounded):
    flow = rough(6, levels=1, blocks=1, bounded=bounded)
    (level,) = flow.levels
    level.weight_out.mul_(100)
    flow.mean.zero_(), flow.std.fill_(1), level.var.fill_(1 - 1e-3)
    z, y = 3 * seeds(2).normal(500, 6).double(), torch.zeros(2, 500).long()
    step = torch.tensor([0, 0, 0, 1, 1, 1]).double()
    scale = (flow(z + step, y)[0] - flow(z, y)[0])[..., level.back[0, 0]][..., 3:]
    if bounded:
        assert_close(torch.stack([scale.min(), scale.max()]), torch.tensor([sigmoid(-1), sigmoid(5)]), 1e-6)
    else:
        assert scale.min() < 1e-6 and scale.max() > 1 - 1e-6


@given(dimension=st.integers(2, 64), levels=st.integers(1, 3), blocks=st.integers(1, 7))
@settings(derandomize=True, database=None, deadline=None, max_examples=30)
def test_permutations_are_inverted_and_pairs_of_blocks_transform_every_dimension(dimension, levels, blocks):
    for level in Flow(dimension, levels=levels, blocks=blocks).levels:
        size = level.leaving + level.staying
        for k, (order, back) in enumerate(zip(level.order, level.back, strict=True)):
            assert torch.equal(order.sort().values, torch.arange(size))
            assert torch.equal(order[back], torch.arange(size))
            if k % 2 == 0:  # the next block transforms what this one leaves unchanged
                assert (back[: level.leaving] >= level.leaving).all()


def test_random_permutations_may_leave_dimensions_where_they_are():
    swapping, random = (Flow(40, levels=1, blocks=40, permutation=kind).levels[0] for kind in ("swapping", "random"))
    assert torch.equal(random.order.sort(1).values, torch.arange(40).expand(40, -1))
    assert torch.equal(random.order[1::2], swapping.order[1::2])
    moved = (random.back[:, :20] >= 20).float().mean(1)  # share of the unchanged half that comes to be transformed
    assert 0.4 < moved[::2].mean() < 0.6 and moved[::2].max() < 1


@torch.no_grad()
def test_after_two_blocks_every_dimension_depends_on_the_class():
    for dimension in (2, 5, 8):
        flow, z = rough(dimension, levels=1, blocks=2, class_prior=False), seeds(2).normal(20, dimension).double()
        a, b = (flow(z, torch.full((2, 20), c))[0] for c in (0, 1))
        assert ((a - b).abs().amax((0, 1)) > 1e-3).all()


def test_permutations_differ_between_blocks_and_levels_but_not_between_seeds():
    flow = new(32, n=3, levels=2, blocks=4)
    for level in flow.levels:
        assert (level.order == level.order[:1]).all()
        assert len(level.order[0].unique(dim=0)) == 4
    assert not torch.equal(new(16, levels=1).levels[0].order[0, 0], flow.levels[1].order[0, 0])


@pytest.mark.parametrize(
    ("dimension", "levels", "splits"),
    [
        (2, 2, [(1, 1)]),
        (3, 2, [(1, 2), (1, 1)]),
        (3, 9, [(1, 2), (1, 1)]),
        (7, 9, [(3, 4), (2, 2), (1, 1)]),
        (50, 1, [(25, 25)]),
        (50, 2, [(25, 25), (12, 13)]),
        (200, 2, [(100, 100), (50, 50)]),
    ],
)
def test_half_leaves_after_each_level_and_a_level_needs_two_dimensions(dimension, levels, splits):
    assert [(level.leaving, level.staying) for level in Flow(dimension, levels=levels).levels] == splits


@torch.no_grad()
def test_the_second_level_does_not_change_what_left_after_the_first():
    flow, z, y = rough(7), seeds(2).normal(20, 7).double(), torch.zeros(2, 20).long()
    u, _ = flow(z, y)
    flow.levels[1].weight_out.add_(0.1)
    same = (flow(z, y)[0] == u).all(1).all(0)
    assert same.tolist() == [True] * 3 + [False] * 4


# -- the condition -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one_hot", [True, False])
@pytest.mark.parametrize("condition", ["every", "first"])
@torch.no_grad()
def test_the_class_enters_the_couplings_that_the_setting_says(condition, one_hot):
    flow = rough(6, condition=condition, one_hot=one_hot, class_prior=False)
    z = seeds(2).normal(9, 6).double()
    sees = []
    for i in range(2):
        for k in range(3):
            alone = copy.deepcopy(flow)
            for j, level in enumerate(alone.levels):
                level.weight_out *= torch.tensor([(j, b) == (i, k) for b in range(3)])[:, None, None]
            a, b = (alone(z, torch.full((2, 9), c))[0] for c in (0, 1))
            sees.append(not torch.equal(a, b))
    assert sees == ([True] * 6 if condition == "every" else [True] + [False] * 5)


def test_one_hot_vectors_are_not_learned_and_limit_the_number_of_classes():
    flow = new(4, classes=2, one_hot=True, condition_size=3)
    flow.add(torch.tensor([5]), seeds(2))
    assert torch.equal(flow.table, torch.eye(3).expand(2, 3, 3))
    assert not flow.table.requires_grad
    with pytest.raises(InputError, match=r"4 classes need learner\.density\.condition_size of as many, it is 3"):
        flow.add(torch.tensor([5]), seeds(2))


def test_learned_vectors_are_drawn_for_each_class_and_seed():
    flow = new(4, n=3, classes=4, condition_size=5)
    assert flow.table.shape == (3, 4, 5)
    assert flow.table.requires_grad
    assert len(flow.table.flatten(0, 1).unique(dim=0)) == 12
    gradually = new(4, n=3, classes=1, condition_size=5)
    gradually.add(torch.tensor([100, 100, 100]), seeds(3))
    assert torch.equal(gradually.table, flow.table)


@pytest.mark.parametrize("options", [{}, PAPER, {"condition_size": 5}], ids=str)
@pytest.mark.parametrize("classes", [1, 2, 10])
@torch.no_grad()
def test_a_new_class_adds_a_row_and_changes_nothing_for_the_old_ones(classes, options):
    flow, address = rough(7, classes=classes, **options), seeds(2)
    z, y = address.normal(200, 7).double(), torch.arange(200).expand(2, -1) % classes
    before, kept = floats(flow), {name: tensor.clone() for name, tensor in flow.state_dict().items()}
    log_prob, samples = flow.log_prob(z, y), flow.sample(y, address)
    flow.add(torch.tensor([50]), address)
    assert floats(flow) == before + flow.table.shape[2] + 1
    for name, tensor in flow.state_dict().items():
        assert torch.equal(tensor[:, :classes] if name in ("table", "counts") else tensor, kept[name]), name
    assert flow.counts[:, -1].tolist() == [50, 50]
    # Up to rounding: a matrix product may round a row differently when there is one more.
    assert_close(flow.log_prob(z, y), log_prob, 1e-11)
    assert_close(flow.sample(y, address), samples, 1e-11)


# -- the prior ---------------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_without_class_prior_the_prior_is_standard_normal():
    flow, z = rough(5, class_prior=False), seeds(2).normal(30, 5).double()
    y = torch.arange(30).expand(2, -1) % CLASSES
    u, log_det = flow(z, y)
    assert_close(flow.log_prob(z, y), Normal(0.0, 1.0).log_prob(u).sum(-1) + log_det)
    noise = (seeds(2) / 0).normal(30, 5).double()
    assert_close(flow.sample(y, seeds(2), 0.7, limit=math.inf), flow.inverse(0.7 * noise, y))
    assert floats(rough(5)) - floats(flow) == 16 * 10


@torch.no_grad()
def test_a_new_class_prior_is_standard_normal_and_its_scale_is_bounded():
    y, flow = torch.arange(30).expand(2, -1) % CLASSES, new(5).double()
    z, noise = ((seeds(2) / place).normal(30, 5).double() for place in ("data", 0))
    assert_close(flow.log_prob(z, y), new(5, class_prior=False).double().log_prob(z, y))
    flow.weight_prior[..., 5:].fill_(1e3)  # of the scales alone, positive or negative
    stretched = (flow(flow.sample(y, seeds(2), limit=math.inf), y)[0] / noise).log()
    assert_close(stretched.abs(), torch.full((2, 30, 5), 2.0), 1e-6)
    assert len(stretched.round().unique()) == 2


@pytest.mark.parametrize("class_prior", [True, False])
@torch.no_grad()
def test_temperature_zero_gives_the_priors_mode_and_scales_the_noise_otherwise(class_prior):
    flow, y = rough(4, class_prior=class_prior), torch.tensor([[0, 1, 1], [2, 0, 0]])
    mode = flow.sample(y, seeds(2), temperature=0, limit=math.inf)
    assert torch.equal(mode, flow.sample(y, seeds(2) / "elsewhere", temperature=0, limit=math.inf))
    assert torch.equal(mode[0, 1], mode[0, 2]) and not torch.equal(mode[0, 0], mode[0, 1])
    base = zuko_flow(flow, 0, 1).base.base_dist
    assert_close(flow(mode, y)[0][0, 1], base.mean.expand(4))
    u = [flow(flow.sample(y, seeds(2), temperature=t, limit=math.inf), y)[0][0, 1] for t in (0.5, 1)]
    assert_close(2 * (u[0] - base.mean), u[1] - base.mean)
