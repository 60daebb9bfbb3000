"""The flow's blocks in C: what they compute, when they are used, and which library is opened."""

import copy
import math
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prer.address import Address
from prer.densities import flow as flows
from prer.densities.flow import Flow, Level
from prer.errors import InputError
from prer.kernels.cpu import library
from prer.kernels.registry import kernels
from prer.nn.stacked import stack
from prer.runs.autosave import platform_of

HERE = library.loaded()
compiled = pytest.mark.skipif(HERE is None, reason="the C extension is not built, or off")


def level(S, D, K, V, bounded=True, seed=0):
    """A level in which everything does something; its estimates become a batch's own statistics at once."""
    orders = Address(tuple(range(K))).permutation(D)
    made = stack(lambda: Level(orders, K, V, "batch", bounded, 0.0), Address(tuple(range(S)))).train()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in made.parameters():
            width = 1 if parameter.dim() == 3 else parameter.shape[2] ** 0.5
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / width)
    return made.train()


def numbers(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def results(level, u, v, first=False):
    """All that a level gives: u, log-determinant, gradients of everything, mean and variance."""
    u, v = u.clone().requires_grad_(), v.clone().requires_grad_()
    made, log_det = level(u, v, first=first)
    direction = numbers(*made.shape, seed=3).to(u), numbers(*log_det.shape, seed=4).to(u)
    gradients = torch.autograd.grad((made, log_det), (u, v, *level.parameters()), direction)
    return [t.detach().clone() for t in (made, log_det, *gradients, level.mean, level.var)]


def by_torch(*arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flows, "kernels", lambda *_: None)
        return results(*arguments)


# -- what is computed ------------------------------------------------------------------------------------------------


@compiled
@given(
    S=st.integers(1, 3),
    D=st.integers(2, 40) | st.sampled_from([64, 131, 150]),
    K=st.integers(1, 4),
    B=st.integers(2, 70) | st.sampled_from([128, 129]),
    V=st.integers(1, 20),
    bounded=st.booleans(),
)
@settings(derandomize=True, database=None, deadline=None, max_examples=60)
def test_values_and_gradients_are_those_of_plain_operations_in_double_precision(variant, S, D, K, B, V, bounded):
    ours = level(S, D, K, V, bounded)
    u, v = 2 * numbers(S, D, B) + 1, numbers(S, V, B, seed=1)
    exact = results(copy.deepcopy(ours).double(), u.double(), v.double(), True)  # by autograd, as on a first batch
    worse = 8 if B > 3 else 64  # the variance of two or three samples magnifies rounding
    for mine, plain, true in zip(results(ours, u, v), by_torch(ours, u, v), exact, strict=True):
        assert mine.shape == true.shape
        error, theirs = ((t.double() - true).abs().max() for t in (mine, plain))
        assert error <= 1e-6 * true.abs().max().clamp_min(1) + worse * theirs


@compiled
@pytest.mark.parametrize("spread", [1.0, 30.0])
@pytest.mark.parametrize("bounded", [True, False])
def test_scales_at_both_ends_are_exact(spread, bounded):
    ours = level(2, 150, 1, 3, bounded)
    with torch.no_grad():
        ours.bias_out.mul_(spread)
    u, v = numbers(2, 150, 40), numbers(2, 3, 40, seed=1)
    exact = results(copy.deepcopy(ours).double(), u.double(), v.double(), True)
    for mine, true in zip(results(ours, u, v), exact, strict=True):
        torch.testing.assert_close(mine.double(), true, rtol=1e-5, atol=1e-5 * float(true.abs().max()))


@compiled
def test_very_many_scales_of_a_half_are_no_problem():
    ours = level(1, 400, 1, 1, bounded=False)
    with torch.no_grad():
        ours.weight_out.zero_()
        ours.bias_out.fill_(-2)
    _, log_det = ours(numbers(1, 400, 9), numbers(1, 1, 9))
    expected = -200 * math.log(2) - 0.5 * (ours.var + ours.eps).log().sum()
    torch.testing.assert_close(log_det, expected.expand(1, 9))


@compiled
@pytest.mark.parametrize("sizes", [(4, 9, 3, 37), (3, 50, 2, 64)], ids=str)
def test_a_seed_is_the_same_alone_among_others_and_again(sizes):
    S, D, K, B = sizes
    together, u, v = level(S, D, K, 5), numbers(S, D, B), numbers(S, 5, B, seed=1)
    every = results(together, u, v)
    for s in range(S):
        alone = copy.deepcopy(together)
        for tensor in (*alone.parameters(), alone.mean, alone.var, alone.order, alone.back):
            tensor.data = tensor.data[s : s + 1].clone()
        alone_u, alone_v = u[s : s + 1].clone().requires_grad_(), v[s : s + 1].clone().requires_grad_()
        made, log_det = alone(alone_u, alone_v)
        whole = numbers(*every[0].shape, seed=3), numbers(*every[1].shape, seed=4)
        gradients = torch.autograd.grad(
            (made, log_det), (alone_u, alone_v, *alone.parameters()), [d[s : s + 1] for d in whole]
        )
        for one, many in zip((made, log_det, *gradients, alone.mean, alone.var), every, strict=True):
            assert torch.equal(one[0], many[s])
    assert all(torch.equal(a, b) for a, b in zip(results(together, u, v), every, strict=True))


@compiled
def test_any_strides_will_do_and_the_way_back_can_be_gone_twice():
    ours, u, v = level(2, 7, 2, 3), numbers(2, 7, 20), numbers(2, 3, 20, seed=1)
    turned = u.mT.contiguous().mT.requires_grad_()
    made, log_det = ours(turned, v.mT.contiguous().mT)
    total = made.sum() + log_det.sum()  # whose gradients have strides of zero
    (first,), (again,) = (torch.autograd.grad(total, turned, retain_graph=True) for _ in range(2))
    plain = u.clone().requires_grad_()
    same, same_log_det = ours(plain, v)
    ones = torch.ones_like(same), torch.ones_like(same_log_det)
    (expected,) = torch.autograd.grad((same, same_log_det), plain, ones)
    assert torch.equal(made, same)
    assert torch.equal(first, expected)
    assert torch.equal(again, expected)
    apply, weight = kernels("prior", u).Prior.apply, numbers(2, 3, 14)
    assert torch.equal(apply(turned, v.mT.contiguous().mT, weight.mT.contiguous().mT), apply(u, v, weight))


@compiled
@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["u", "v", "weight_in", "weight_condition", "bias_in", "weight_out", "bias_out"])
def test_what_is_not_finite_is_not_hidden(where, broken):
    ours, u, v = level(2, 6, 2, 3), numbers(2, 6, 20), numbers(2, 3, 20, seed=1)
    tensor = {"u": u, "v": v, **dict(ours.named_parameters())}[where]
    with torch.no_grad():
        tensor[1].view(-1)[0] = broken
    found = results(ours, u, v)
    for mine, plain in zip(found, by_torch(ours, u, v), strict=True):
        assert mine[0].isfinite().all()
        assert mine[1].isfinite().all() == plain[1].isfinite().all()
    if math.isnan(broken):
        assert not found[1][1].isfinite().any()


@compiled
def test_one_sample_has_no_variance():
    assert not level(1, 4, 1, 3)(numbers(1, 4, 1), numbers(1, 3, 1))[1].isfinite().any()


def likelihood(flow, z, y):
    """Of a flow in training: the log-density, and the gradients of all that is learned."""
    log_prob = flow.log_prob(z, y)
    return log_prob, *torch.autograd.grad(log_prob, list(flow.parameters()), numbers(*log_prob.shape, seed=3).to(z))


@compiled
@given(
    S=st.integers(1, 3),
    D=st.integers(2, 70),
    V=st.integers(1, 20),
    B=st.integers(2, 70),
    gain=st.sampled_from([0.3, 9.0]),
)
@settings(derandomize=True, database=None, deadline=None, max_examples=30)
def test_the_density_is_that_of_plain_operations_in_double_precision(variant, S, D, V, B, gain):
    address = Address(tuple(range(S)))
    ours = stack(lambda: Flow(D, blocks=2, condition_size=V), address).train()
    ours.add(torch.tensor([10, 10, 10]), address)
    with torch.no_grad():
        ours.weight_prior.copy_(gain / V**0.5 * numbers(S, V, 2 * D))
    z, y = numbers(S, B, D, seed=1), (torch.arange(B) % 3).expand(S, -1)
    exact = likelihood(copy.deepcopy(ours).double(), z.double(), y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flows, "kernels", lambda *_: None)
        plain = likelihood(copy.deepcopy(ours), z, y)
    for mine, theirs, true in zip(likelihood(ours, z, y), plain, exact, strict=True):
        error, rounding = ((t.double() - true).abs().max() for t in (mine, theirs))
        assert error <= 1e-6 * true.abs().max().clamp_min(1) + 8 * rounding


# -- when it is used -------------------------------------------------------------------------------------------------


@compiled
def test_only_single_precision_on_a_cpu_is_computed_by_it():
    x = torch.zeros(2)
    assert kernels("flow", x, x).__name__ == "prer.kernels.cpu.flow"
    assert kernels("convolution", x, x).__name__ == "prer.kernels.cpu.convolution"
    assert kernels("flow", x, x.double()) is None
    assert kernels("flow", x.to("meta"), x.to("meta")) is None


def log_prob(address, z, y):
    flow = stack(lambda: Flow(6, blocks=3), address)
    flow.add(torch.tensor([10, 10]), address)
    flow.start(z, y)
    return flow.train().log_prob(z, y)


def forget():
    library.loaded.cache_clear()
    library.switched_on.cache_clear()


@pytest.fixture
def look_in(monkeypatch):
    """Takes another folder for the package's own, and this environment, as a new process would."""

    def look(folder):
        monkeypatch.setattr(library, "__file__", str(folder / "library.py"))
        forget()

    yield look
    monkeypatch.undo()
    forget()


def file(variant, folder=Path(library.__file__).parent):
    return folder / f"_{variant}{library.EXTENSION_SUFFIXES[0]}"


@pytest.mark.parametrize("reason", ["not built", "no library", "of another version", "switched off"])
def test_without_the_library_torch_computes_the_same(reason, look_in, tmp_path, monkeypatch):
    z, y = numbers(2, 30, 6), (torch.arange(30) % 2).expand(2, -1)
    expected = log_prob(Address((0, 1)), z, y)
    if reason == "switched off":
        monkeypatch.setenv("PRER_KERNELS", "off")
    if reason == "no library":
        for variant in library.VARIANTS["AVX512"]:
            file(variant, tmp_path).write_text("nothing")
    if reason == "of another version":
        monkeypatch.setattr(library, "FUNCTIONS", ("forward", "of_another_version"))
    here = reason in ("switched off", "of another version")
    look_in(Path(library.__file__).parent if here else tmp_path)
    assert kernels("flow", z) is None
    assert platform_of("cpu", ["flow"], True)["kernels"] == "torch's"
    torch.testing.assert_close(log_prob(Address((0, 1)), z, y), expected)


@pytest.mark.parametrize("value", ["of", "OFF", "0", "/tmp/library.so"])
def test_a_switch_that_means_nothing_is_refused(value, look_in, tmp_path, monkeypatch):
    monkeypatch.setenv("PRER_KERNELS", value)
    look_in(tmp_path)
    with pytest.raises(InputError, match=f"PRER_KERNELS is '{value}'; set it to 'off'"):
        platform_of("cpu", ["classifier"], False)


@compiled
def test_a_run_notes_the_library_where_it_has_a_flow_or_pictures():
    assert HERE.made_by.startswith("C, ")
    assert platform_of("cpu", ["autoencoder", "flow"], False)["kernels"] == HERE.made_by
    assert platform_of("cpu", ["classifier"], True)["kernels"] == HERE.made_by
    assert platform_of("cpu", ["classifier"], False)["kernels"] == "torch's"
    assert kernels("something else", torch.zeros(2)) is None


@compiled
@pytest.mark.parametrize(("processor", "fitting"), [*library.VARIANTS.items(), ("DEFAULT", ("baseline",))])
def test_a_processor_gets_the_widest_library_that_it_knows(processor, fitting, look_in, tmp_path, monkeypatch):
    every = library.VARIANTS["AVX512"]
    if not all(file(variant).exists() for variant in every):
        pytest.skip("not all are built here")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: processor)
    for missing in range(len(fitting) + 1):
        folder = tmp_path / str(missing)
        folder.mkdir()
        for variant in {*every} - {*fitting[:missing]}:
            shutil.copy(file(variant), folder)
        look_in(folder)
        found = library.loaded()
        assert (found and found.made_by.split(", ")[1]) == (fitting[missing] if missing < len(fitting) else None)
