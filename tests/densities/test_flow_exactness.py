"""Inverse, log-determinant and density of a flow are exact; samples of a trained flow are like its data."""

import copy
import functools

import pytest
import torch
from support.densities import CLASSES, PAPER, assert_close, draw, new, rough, seeds, true_density, zuko_flow

from prer.densities.flow import Flow


@functools.cache
@torch.enable_grad()
def trained(dimension, n=1, batch=32, lr=1e-3, **options) -> Flow:
    """A flow after 300 steps on the mixture; copy it before you change it."""
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


# Few dimensions are learned well within 300 steps; those of the paper's size are tested for exactness only.
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
every_case = pytest.mark.parametrize("case", TRAINED)
every_state = pytest.mark.parametrize("state", ["initial", "started", "trained"])


def flow_of(case, state="trained") -> Flow:
    """A copy of the flow of a case."""
    dimension, options = TRAINED[case]
    if state == "trained":
        return copy.deepcopy(trained(dimension, **options))
    flow = new(dimension, **{name: value for name, value in options.items() if name not in ("batch", "lr")})
    if state == "started":
        flow.start(*draw(dimension, 300, seeds(len(flow.table)) / "start"))
    return flow


# -- exactness ---------------------------------------------------------------------------------------------------------


@every_case
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


@every_case
@every_state
def test_the_log_determinant_is_that_of_autograds_jacobian(case, state):
    flow = flow_of(case, state).double()
    z, y = draw(flow.dimension, 3, seeds(len(flow.table)) / "test")
    # Samples are independent in evaluation, so the Jacobian of their sum holds that of each.
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
def test_samples_and_seeds_are_independent_in_evaluation():
    flow = rough(5, n=3)
    z, y = draw(5, 6, seeds(3))
    one = rough(5, n=1)
    assert_close(flow.log_prob(z.double(), y)[:, 2:4], flow.log_prob(z[:, 2:4].double(), y[:, 2:4]))
    assert_close(flow.log_prob(z.double(), y)[:1], one.log_prob(z[:1].double(), y[:1]))


@pytest.mark.parametrize("options", [{}, {"bounded": False}, {"condition": "first"}, PAPER, {"levels": 3}], ids=str)
@pytest.mark.parametrize("dimension", [2, 7])
@torch.no_grad()
def test_density_and_samples_are_those_of_zuko(dimension, options):
    flow, address = rough(dimension, **options), seeds(2) / "test"
    z, noise = (2 * (address / i).normal(20, dimension).double() for i in range(2))
    for c in range(CLASSES):
        y = torch.full((2, 20), c)
        for seed in range(2):
            density = zuko_flow(flow, seed, c)
            assert_close(flow.log_prob(z, y)[seed], density.log_prob(z[seed]))
            assert_close(flow.inverse(noise, y)[seed], density.transform.inv(noise[seed]))


@pytest.mark.parametrize("case", ["2", "2 running"])
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


# -- likeness ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["2", "2 running", "3", "4 running"])
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
