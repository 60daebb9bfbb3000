import copy
import functools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import AffineTransform, Categorical, MixtureSameFamily, MultivariateNormal, Normal
from zuko.distributions import NormalizingFlow
from zuko.transforms import ComposedTransform, CouplingTransform, DependentTransform, PermutationTransform

from prer.address import Address
from prer.densities.base import Density
from prer.densities.flow import Flow
from prer.densities.gaussian import Gaussian
from prer.errors import InputError
from prer.nn.stacked import floats, stack

CLASSES = 3
PAPER = {"norm": "running", "condition": "first", "one_hot": True, "class_prior": False, "permutation": "random"}
both_norms = pytest.mark.parametrize("norm", ["batch", "running"])


def seeds(n):
    return Address(tuple(range(n)))


def new(dimension, n=2, classes=CLASSES, **options) -> Flow:
    """A flow as it is before it has seen any data."""
    flow = stack(lambda: Flow(dimension, **options), seeds(n) / "flow").eval()
    flow.add(torch.full((classes,), 100), seeds(n))
    return flow


@torch.no_grad()
def rough(*arguments, **options) -> Flow:
    """A flow far from the identity without any training: every parameter and every statistic does something."""
    flow = new(*arguments, **{"blocks": 3} | options).double()
    address = seeds(len(flow.table)) / "rough"
    tensors = {**dict(flow.named_parameters()), **dict(flow.named_buffers())}
    for name, tensor in tensors.items():
        noise = (address / name).normal(*tensor.shape[1:]).to(tensor)
        last = name.split(".")[-1]
        if last in ("std", "var"):
            tensor.copy_(torch.exp(0.3 * noise))
        elif last in ("mean", "weight_out", "bias_out", "weight_prior"):
            tensor.copy_(0.3 * noise)
    return flow


def assert_close(actual, expected, tolerance=1e-9):
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance, check_dtype=False)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


# -- the data: a mixture of which everything is known ----------------------------------------------------------------


@functools.cache
def truth(dimension):
    """For each class two Gaussians, correlated, far from the origin and of no unit scale: means and factors."""
    address = Address(tuple(range(CLASSES))) / "truth" / dimension
    angle = 2 * math.pi * torch.arange(CLASSES) / CLASSES
    means = 10 + 1.5 * address.normal(2, dimension)
    means[..., :2] += 5 * torch.stack([angle.cos(), angle.sin()], dim=-1).unsqueeze(1)
    below = (address / "below").normal(2, dimension, dimension).tril(-1) / math.sqrt(dimension)
    return means, below + torch.diag_embed(0.5 + (address / "diagonal").uniform(2, dimension))


def true_density(dimension, c):
    means, factors = truth(dimension)
    return MixtureSameFamily(Categorical(torch.tensor([0.3, 0.7])), MultivariateNormal(means[c], scale_tril=factors[c]))


def draw(dimension, n, address):
    """Embeddings of the truth [S, n, D] and their classes [S, n]."""
    means, factors = truth(dimension)
    y = torch.arange(n).expand(len(address.seeds), -1) % CLASSES
    mode = ((address / "mode").uniform(n) > 0.3).long()
    z, noise = means[y, mode], (address / "noise").normal(n, dimension)
    for c in range(CLASSES):
        for m in range(2):
            z += torch.where(((y == c) & (mode == m)).unsqueeze(-1), noise @ factors[c, m].T, 0)
    return z, y


@functools.cache
@torch.enable_grad()
def trained(dimension, n=1, batch=32, lr=1e-3, **options) -> Flow:
    """A flow after 300 steps on the truth; whoever changes it takes a copy."""
    flow = new(dimension, n, **options)
    z, y = draw(dimension, 4096, seeds(n) / "training")
    flow.start(z, y)
    flow.train()
    optimiser = torch.optim.Adam([p for p in flow.parameters() if p.requires_grad], lr, fused=True)
    decay = torch.optim.lr_scheduler.LinearLR(optimiser, 1, 0, total_iters=300)
    for step in range(300):
        begin = step * batch % 4096
        optimiser.zero_grad()
        (-flow.log_prob(z[:, begin : begin + batch], y[:, begin : begin + batch])).mean(1).sum().backward()
        optimiser.step()
        decay.step()
    return flow.eval()


# Few dimensions learn well within 300 steps; the paper's two levels of ten blocks have to be exact, not good.
FEW = {"n": 2, "batch": 256, "lr": 1e-2, "blocks": 6}
TRAINED = {
    "2": (2, FEW),
    "2 running": (2, FEW | {"norm": "running"}),
    "3": (3, FEW),
    "4 running": (4, FEW | {"norm": "running"}),
    "7 unbounded": (7, FEW | {"bounded": False, "levels": 3}),
    "50": (50, {"n": 2}),
    "50 paper": (50, PAPER),
    "200": (200, {"n": 1}),
}
every_state = pytest.mark.parametrize("state", ["initial", "started", "trained"])


# The scope groups the tests by case, so that two workers seldom train the same flow.
@pytest.fixture(scope="module", params=TRAINED)
def case(request) -> str:
    return request.param


def only(*names):
    return pytest.mark.parametrize("case", names, indirect=True)


def flow_of(case, state="trained") -> Flow:
    dimension, options = TRAINED[case]
    if state == "trained":
        return copy.deepcopy(trained(dimension, **options))
    flow = new(dimension, **{name: value for name, value in options.items() if name not in ("batch", "lr")})
    if state == "started":
        flow.start(*draw(dimension, 300, seeds(len(flow.table)) / "start"))
    return flow


# -- exactness -------------------------------------------------------------------------------------------------------


@every_state
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.float64, 1e-10)], ids=["32", "64"])
@torch.no_grad()
def test_the_inverse_is_exact(case, state, dtype, tolerance):
    flow = flow_of(case, state).to(dtype)
    address = seeds(len(flow.table)) / "test"
    z, y = draw(flow.dimension, 100, address)
    z, noise = z.to(dtype), address.normal(100, flow.dimension).to(dtype)
    for x, again in [(z, flow.inverse(flow(z, y)[0], y)), (noise, flow(flow.inverse(noise, y), y)[0])]:
        assert again.dtype == dtype
        assert ((again - x).abs() / x.abs().clamp_min(1)).max() <= tolerance


@every_state
def test_the_log_determinant_is_that_of_autograds_jacobian(case, state):
    flow = flow_of(case, state).double()
    z, y = draw(flow.dimension, 3, seeds(len(flow.table)) / "test")
    # Samples do not see each other in evaluation, so the Jacobian of their sum holds each one's own.
    jacobian = torch.autograd.functional.jacobian(lambda z: flow(z, y)[0].sum((0, 1)), z.double(), vectorize=True)
    expected = torch.linalg.slogdet(jacobian.permute(1, 2, 0, 3)).logabsdet
    assert_close(flow(z.double(), y)[1], expected)


@pytest.mark.parametrize("training", [True, False])
def test_gradients_are_those_of_finite_differences(training):
    flow, names = rough(5).train(training), ["table", "parts.0.weight_in", "parts.0.weight_condition"]
    z, y = seeds(2).normal(6, 5).double().requires_grad_(), torch.arange(6).expand(2, -1) % CLASSES

    def run(z, *changed):
        return torch.func.functional_call(flow, dict(zip(names, changed, strict=True)), (z, y))

    assert torch.autograd.gradcheck(run, (z, *map(flow.get_parameter, names)), fast_mode=True)


@torch.no_grad()
def test_samples_and_seeds_do_not_see_each_other_in_evaluation():
    flow = rough(5, n=3)
    z, y = draw(5, 6, seeds(3))
    one = rough(5, n=1)
    assert_close(flow.log_prob(z.double(), y)[:, 2:4], flow.log_prob(z[:, 2:4].double(), y[:, 2:4]))
    assert_close(flow.log_prob(z.double(), y)[:1], one.log_prob(z[:1].double(), y[:1]))


def oracle(flow, seed, c) -> NormalizingFlow:
    """The density of one class in one seed, put together from zuko's layers."""

    def affine(shift, scale):
        return DependentTransform(AffineTransform(shift, scale), 1)

    def coupling(level, k, a):
        h = a @ level.weight_in[seed, k] + level.bias_in[seed, k]
        if k < level.weight_condition.shape[1]:
            h = h + flow.table[seed, c] @ level.weight_condition[seed, k]
        s, shift = (h.relu() @ level.weight_out[seed, k] + level.bias_out[seed, k]).chunk(2, dim=-1)
        return affine(shift, torch.sigmoid((3 * torch.tanh(s / 3) if level.bounded else s) + 2))

    mean, std = flow.mean[seed], flow.std[seed]
    transforms, gone = [affine(-mean / std, 1 / std)], 0
    for level in flow.levels:
        blocks = []
        for k in range(level.order.shape[1]):
            mean, std = level.mean[seed, k], (level.var[seed, k] + 1e-3).sqrt()
            mask = torch.arange(level.order.shape[2]) < level.leaving
            blocks.append(affine(-mean / std, 1 / std))
            blocks.append(CouplingTransform(functools.partial(coupling, level, k), mask))
            blocks.append(PermutationTransform(level.order[seed, k]))
        inner = ComposedTransform(*blocks)
        transforms.append(CouplingTransform(lambda _, inner=inner: inner, torch.arange(flow.dimension) < gone))
        gone += level.leaving
    mean, raw = torch.zeros(2, flow.dimension).double()
    if flow.weight_prior is not None:
        mean, raw = (flow.table[seed, c] @ flow.weight_prior[seed]).chunk(2)
    return NormalizingFlow(ComposedTransform(*transforms), Normal(mean, (2 * torch.tanh(raw / 2)).exp()))


@pytest.mark.parametrize("options", [{}, {"bounded": False}, {"condition": "first"}, PAPER, {"levels": 3}], ids=str)
@pytest.mark.parametrize("dimension", [2, 7])
@torch.no_grad()
def test_density_and_samples_are_those_of_zuko(dimension, options):
    flow, address = rough(dimension, **options), seeds(2) / "test"
    z, noise = (2 * (address / i).normal(20, dimension).double() for i in range(2))
    for c in range(CLASSES):
        y = torch.full((2, 20), c)
        for seed in range(2):
            density = oracle(flow, seed, c)
            assert_close(flow.log_prob(z, y)[seed], density.log_prob(z[seed]))
            assert_close(flow.inverse(noise, y)[seed], density.transform.inv(noise[seed]))


@only("2", "2 running")
@torch.no_grad()
def test_the_density_integrates_to_one(case):
    flow, points = flow_of(case), 400
    (sx, sy), (mx, my) = 7 * flow.std[0], flow.mean[0]
    axis = torch.linspace(-1, 1, points)
    z = torch.cartesian_prod(mx + sx * axis, my + sy * axis).expand(2, -1, -1)
    cell = sx * sy * (axis[1] - axis[0]) ** 2
    for c in range(CLASSES):
        mass = flow.log_prob(z, torch.full(z.shape[:2], c)).exp().double().sum(1) * cell
        assert_close(mass, torch.ones(2), 1e-3)


# -- likeness --------------------------------------------------------------------------------------------------------


@only("2", "2 running", "3", "4 running")
@torch.no_grad()
def test_samples_of_a_class_are_like_that_class_of_a_known_mixture(case):
    flow, address = flow_of(case), seeds(2)
    real, y = draw(flow.dimension, 6000, address / "real")
    fake = flow.sample(y, address / "fake")
    classes = [true_density(flow.dimension, c) for c in range(CLASSES)]
    recognised = torch.stack([density.log_prob(fake) for density in classes]).argmax(0) == y
    for c, density in enumerate(classes):
        for seed in range(2):
            mine, theirs = fake[seed][y[seed] == c], real[seed][y[seed] == c]
            assert recognised[seed][y[seed] == c].double().mean() > 0.95
            spread = theirs.std(0)
            assert ((mine.mean(0) - theirs.mean(0)).abs() / spread).max() < 0.3
            assert ((mine.T.cov() - theirs.T.cov()).abs() / spread.outer(spread)).max() < 0.4
        kl = density.log_prob(real[y == c]) - flow.log_prob(real, y)[y == c]
        assert -0.02 < kl.mean() < 0.5


# -- norms -----------------------------------------------------------------------------------------------------------


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
    # Where the estimates are this batch's statistics, a batch that is normalised by its own is in no way different.
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
    # A new coupling is the identity but for the scale with which it begins.
    begin = torch.tensor([1, 1, sigmoid(2), sigmoid(2)], dtype=torch.float64)
    expected = (z - mean.unsqueeze(1)) / std * begin
    assert_close(u[..., level.back[0, 0]], expected)
    assert_close(log_det, (begin.log().sum() - std.log().sum(-1)).expand(2, 50))
    after = moved if training else before
    assert_close(level.mean[:, 0], after[0])
    assert_close(level.var[:, 0], after[1])


# -- couplings, permutations, levels ---------------------------------------------------------------------------------


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
            if k % 2 == 0:  # what this block leaves alone goes to where the next one transforms it
                assert (back[: level.leaving] >= level.leaving).all()


def test_random_permutations_are_bound_to_nothing():
    swapping, random = (Flow(40, levels=1, blocks=40, permutation=kind).levels[0] for kind in ("swapping", "random"))
    assert torch.equal(random.order.sort(1).values, torch.arange(40).expand(40, -1))
    assert torch.equal(random.order[1::2], swapping.order[1::2])
    moved = (random.back[:, :20] >= 20).float().mean(1)  # of what a block leaves alone, what the next one transforms
    assert 0.4 < moved[::2].mean() < 0.6 and moved[::2].max() < 1


@torch.no_grad()
def test_two_blocks_let_every_dimension_know_the_class():
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
def test_what_left_after_the_first_level_is_beyond_the_second():
    flow, z, y = rough(7), seeds(2).normal(20, 7).double(), torch.zeros(2, 20).long()
    u, _ = flow(z, y)
    flow.levels[1].weight_out.add_(0.1)
    same = (flow(z, y)[0] == u).all(1).all(0)
    assert same.tolist() == [True] * 3 + [False] * 4


# -- the condition ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one_hot", [True, False])
@pytest.mark.parametrize("condition", ["every", "first"])
@torch.no_grad()
def test_the_class_enters_the_couplings_it_should(condition, one_hot):
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


def test_one_hot_vectors_are_not_learned_and_must_find_room():
    flow = new(4, classes=2, one_hot=True, condition_size=3)
    flow.add(torch.tensor([5]), seeds(2))
    assert torch.equal(flow.table, torch.eye(3).expand(2, 3, 3))
    assert not flow.table.requires_grad
    with pytest.raises(InputError, match=r"4 classes need learner\.condition_size of as many, it is 3"):
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
    # No more than rounding: a matrix product may round a row otherwise when there is one row more.
    assert_close(flow.log_prob(z, y), log_prob, 1e-11)
    assert_close(flow.sample(y, address), samples, 1e-11)


# -- the prior -------------------------------------------------------------------------------------------------------


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
    flow.weight_prior[..., 5:].fill_(1e3)  # of the scales alone, to either side
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
    base = oracle(flow, 0, 1).base.base_dist
    assert_close(flow(mode, y)[0][0, 1], base.mean.expand(4))
    u = [flow(flow.sample(y, seeds(2), temperature=t, limit=math.inf), y)[0][0, 1] for t in (0.5, 1)]
    assert_close(2 * (u[0] - base.mean), u[1] - base.mean)


# -- sampling, for both densities ------------------------------------------------------------------------------------


def gaussian(dimension=4, n=2, dtype=torch.float64):
    density = stack(lambda: Gaussian(dimension), seeds(n)).to(dtype)
    density.add(torch.full((CLASSES,), 100), seeds(n))
    z, y = draw(dimension, 600, seeds(n) / "data")
    density.start(z.to(dtype), y)
    return density


both_densities = pytest.mark.parametrize(
    "build", [lambda n=2: rough(4, n), lambda n=2: gaussian(4, n)], ids=["flow", "gaussian"]
)


@both_densities
def test_five_seeds_draw_the_same_with_and_without_a_sixth(build):
    y = torch.arange(50).expand(6, -1) % CLASSES
    five, six = build(5).sample(y[:5], seeds(5) / "draw"), build(6).sample(y, seeds(6) / "draw")
    assert_close(six[:5], five, 1e-12)
    assert len(six.flatten(1).unique(dim=0)) == 6


@both_densities
def test_the_same_place_draws_the_same_and_another_does_not(build):
    density, y = build(), torch.arange(50).expand(2, -1) % CLASSES
    z, again, other = (density.sample(y, seeds(2) / place, limit=math.inf) for place in "aab")
    assert torch.equal(again, z)
    assert not (other == z).any()
    assert not z.requires_grad


def scripted(density: Density, monkeypatch, attempts):
    """Let it draw these, in standard deviations from its mean, one attempt after another, the last one for ever.

    What is asked for as a class is here the number of the sample.
    """
    mean, std = density._centre()
    asked = []

    def draw(condition, noise):
        asked.append(noise[0, 0, 0].item())
        values = attempts[min(len(asked), len(attempts)) - 1]
        return values.gather(1, condition.unsqueeze(-1).expand_as(noise)) * std + mean

    monkeypatch.setattr(density, "_draw", draw)
    return asked


@both_densities
def test_samples_that_are_not_finite_or_far_off_are_drawn_again(build, monkeypatch):
    density, y = build(), torch.arange(4).expand(2, -1)
    first, second = torch.zeros(2, 4, 4).double(), torch.full((2, 4, 4), 0.5).double()
    first[0, 0, 1], first[0, 2, 3], first[1, 1, 0], first[1, 3, 2] = math.nan, math.inf, -8.01, 7.99
    asked = scripted(density, monkeypatch, [first, second])
    z = density._standardised(density.sample(y, seeds(2) / "draw"))
    expected = first.clone()
    expected[0, 0] = expected[0, 2] = expected[1, 1] = 0.5
    assert_close(z, expected)
    assert len(asked) == len(set(asked)) == 2


@both_densities
def test_a_sample_drawn_again_is_the_same_however_many_are(build):
    density, y = build(), torch.arange(50).expand(2, -1) % CLASSES
    alone = density.sample(y, seeds(2), limit=1.0, attempts=2)
    every = torch.where(
        (density._standardised(density.sample(y, seeds(2), limit=math.inf)).abs() <= 1).all(-1, keepdim=True),
        density._draw(y, (seeds(2) / 0).normal(50, 4).double()),
        density._draw(y, (seeds(2) / 1).normal(50, 4).double()),
    )
    mean, std = density._centre()
    assert_close(alone, torch.minimum(torch.maximum(every, mean - std), mean + std))


@both_densities
def test_a_broken_density_ends_finite_on_the_border(build, monkeypatch):
    density, y = build(), torch.arange(4).expand(2, -1)
    broken = torch.zeros(2, 4, 4).double()
    broken[0, 0, 1], broken[0, 2, 3], broken[1, 1, 0], broken[1, 3, 2] = math.nan, math.inf, -math.inf, 1e30
    asked = scripted(density, monkeypatch, [broken])
    z = density._standardised(density.sample(y, seeds(2), limit=6, attempts=3))
    assert z.isfinite().all()
    assert z.abs().max() < 6 + 1e-9
    assert_close(torch.stack([z[0, 2, 3], z[1, 1, 0], z[1, 3, 2]]), torch.tensor([6.0, -6, 6]))
    assert_close(z[0, 1], broken[0, 1])
    assert len(asked) == len(set(asked)) == 3


@pytest.mark.parametrize("broken", [math.nan, math.inf, 1e30])
@torch.no_grad()
def test_no_caller_meets_what_a_broken_flow_draws(broken):
    flow, y = rough(4), torch.arange(50).expand(2, -1) % CLASSES
    flow.levels[1].bias_out.fill_(broken)
    assert not flow._draw(y, seeds(2).normal(50, 4).double()).abs().max() < 1e9
    assert (flow._standardised(flow.sample(y, seeds(2))).abs() < 8 + 1e-9).all()


@both_densities
def test_labels_follow_the_proportions_seen(build):
    density = build()
    density.counts = torch.tensor([[10.0, 0, 30, 60, 0], [50, 50, 0, 0, 900]])
    labels = density.labels(20_000, seeds(2), range(5))
    assert labels.shape == (2, 20_000)
    assert labels.dtype == torch.long
    shares = torch.stack([row.bincount(minlength=5) / 20_000 for row in labels])
    assert_close(shares, density.counts / density.counts.sum(1, keepdim=True), 0.015)
    assert (shares[density.counts == 0] == 0).all()


@pytest.mark.parametrize("count", [1, 4801, 2**23 - 1])
def test_labels_at_the_very_borders_are_of_classes_that_were_seen(count, monkeypatch):
    density = new(4)
    density.counts = torch.tensor([[0.0, count, count, 0]])
    monkeypatch.setattr(Address, "uniform", lambda self, n: torch.tensor([[0, 0.5, 1 - 2**-24]]))
    assert density.labels(3, seeds(1), range(4)).tolist() == [[1, 2, 2]]


@both_densities
def test_a_copy_is_independent(build):
    density, y = build(), torch.arange(9).expand(2, -1) % CLASSES
    twin, z = copy.deepcopy(density), density.sample(y, seeds(2))
    assert torch.equal(twin.sample(y, seeds(2)), z)
    with torch.no_grad():
        for tensor in (*density.parameters(), *density.buffers()):
            tensor.zero_()
    density.add(torch.tensor([1]), seeds(2))
    assert torch.equal(twin.sample(y, seeds(2)), z)
    assert twin.counts.shape == (2, CLASSES)


# -- standardisation -------------------------------------------------------------------------------------------------


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


# -- one Gaussian for each class -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    """A fitted density, its data, and for each seed and class what numpy makes of the same data."""
    z, y = draw(4, 600, seeds(2) / "data")
    expected = {}
    for seed in range(2):
        for c in range(CLASSES):
            own = z[seed][y[seed] == c].double().numpy()
            covariance = np.cov(own.T, bias=True)
            covariance += (1e-4 * covariance.trace() / 4 + 1e-8) * np.eye(4)  # so that few samples do, too
            expected[seed, c] = torch.from_numpy(own.mean(0)), torch.from_numpy(covariance)
    return gaussian(), z.double(), y, expected


def test_gaussians_are_fitted_in_closed_form(fitted):
    density, _, _, expected = fitted
    factors = density._unpacked()
    for (seed, c), (mean, covariance) in expected.items():
        assert_close(density.means[seed, c], mean)
        assert_close(factors[seed, c] @ factors[seed, c].T, covariance)


def test_gaussian_log_prob_is_that_of_torch(fitted):
    density, z, y, expected = fitted
    log_prob = density.log_prob(z, y)
    for (seed, c), (mean, covariance) in expected.items():
        own = y[seed] == c
        assert_close(log_prob[seed][own], MultivariateNormal(mean, covariance).log_prob(z[seed][own]))


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_gaussian_samples_have_the_mean_and_covariance_of_their_class(fitted, temperature):
    density, _, _, expected = fitted
    y = torch.arange(30_000).expand(2, -1) % CLASSES
    z, noise = density.sample(y, seeds(2), temperature), (seeds(2) / 0).normal(30_000, 4).double()
    for (seed, c), (mean, covariance) in expected.items():
        own, spread = z[seed][y[seed] == c], covariance.diagonal().sqrt()
        assert_close(own, mean + temperature * noise[seed][y[seed] == c] @ torch.linalg.cholesky(covariance).T)
        assert_close((own.mean(0) - mean) / spread, torch.zeros(4), 0.05)
        assert_close((own.T.cov() / temperature**2 - covariance) / spread.outer(spread), torch.zeros(4, 4), 0.06)


def test_gaussian_knows_the_spread_of_all_its_data(fitted):
    density, z, _, _ = fitted
    mean, std = density._centre()
    assert_close(mean.squeeze(1), z.mean(1))
    assert_close(std.squeeze(1), z.std(1), 1e-2)


@pytest.mark.parametrize(("dimension", "count"), [(4, 14), (50, 1325), (200, 20_300)])
def test_gaussian_grows_by_mean_and_triangle_for_each_class(dimension, count):
    density = stack(lambda: Gaussian(dimension), seeds(2))
    assert floats(density) == 0
    for classes in (1, 3):
        density.add(torch.full((classes - density.counts.shape[1],), 10), seeds(2))
        density.start(seeds(2).normal(30, dimension), torch.arange(30).expand(2, -1) % classes)
        assert floats(density) == classes * (count + 1)


@pytest.mark.parametrize("samples", [0, 1, 2])
def test_gaussian_of_hardly_any_sample_is_finite(samples):
    density = stack(lambda: Gaussian(6), seeds(2))
    density.add(torch.tensor([20, samples]), seeds(2))
    y = torch.tensor([0] * 20 + [1] * samples).expand(2, -1)
    z = seeds(2).normal(20 + samples, 6)
    density.start(z, y)
    assert density.log_prob(z, y).isfinite().all()
    assert density.sample(torch.ones(2, 5).long(), seeds(2)).isfinite().all()


def test_a_gaussian_without_enough_new_embeddings_keeps_what_it_has():
    address = Address((0, 1))
    density = stack(lambda: Gaussian(3), address)
    density.add(torch.tensor([50, 50]), address)
    z, condition = address.normal(100, 3), (torch.arange(100) % 2).expand(2, -1)
    density.start(z, condition)
    means, factors = density.means, density.factors
    density.add(torch.tensor([50]), address)
    few = torch.cat([torch.zeros(2, 2), torch.ones(2, 40), torch.full((2, 50), 2.0)], dim=1).long()
    density.start(5 + (address / "more").normal(92, 3), few)
    assert torch.equal(density.means[:, 0], means[:, 0])
    assert torch.equal(density.factors[:, 0], factors[:, 0])
    assert (density.means[:, 1:] > 4).all()
