"""The flow's blocks in C: what they compute, when they are used, and how our C is compiled and kept."""

import copy
import math
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prer import flow as flows
from prer import kernels as selection
from prer.address import Address
from prer.flow import Flow, Level
from prer.keeper import platform_of
from prer.kernels import kernels, library
from prer.networks import stack

HERE = library.loaded()
compiled = pytest.mark.skipif(HERE is None, reason="no C compiler")


def level(S, D, K, V, bounded=True, seed=0):
    """A level in which everything does something; its estimates become a batch's own statistics at once."""
    orders = Address(tuple(range(K))).permutation(D)
    made = stack(lambda: Level(orders, K, V, "batch", bounded, 0.0), Address(tuple(range(S))))
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
def test_values_and_gradients_are_those_of_plain_operations_in_double_precision(S, D, K, B, V, bounded):
    ours = level(S, D, K, V, bounded)
    u, v = 2 * numbers(S, D, B) + 1, numbers(S, V, B, seed=1)
    exact = results(copy.deepcopy(ours).double(), u.double(), v.double(), True)  # by autograd, as on a first batch
    for mine, plain, true in zip(results(ours, u, v), by_torch(ours, u, v), exact, strict=True):
        assert mine.shape == true.shape
        error, theirs = ((t.double() - true).abs().max() for t in (mine, plain))
        assert error <= 1e-6 * true.abs().max().clamp_min(1) + 8 * theirs


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
def test_the_density_is_that_of_plain_operations_in_double_precision(S, D, V, B, gain):
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
    assert kernels("flow", x, x).__name__ == "prer.kernels.native"
    assert kernels("convolution", x, x).__name__ == "prer.kernels.pictures"
    assert kernels("flow", x, x.double()) is None
    assert kernels("flow", x.to("meta"), x.to("meta")) is None


def log_prob(address, z, y):
    flow = stack(lambda: Flow(6, blocks=3), address)
    flow.add(torch.tensor([10, 10]), address)
    flow.start(z, y)
    return flow.train().log_prob(z, y)


@pytest.fixture
def anew(tmp_path, monkeypatch):
    """Forgets the library, and has an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    library.loaded.cache_clear()
    yield tmp_path / "cache" / "prer" / "kernels"
    monkeypatch.undo()
    library.loaded.cache_clear()


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


COMPILERS = {
    "none": "/nowhere/cc",
    "one that fails": "false",
    "one that says nothing": "true",
    "one that does not compile": 'test "$1" = --version && echo 1.0',
    "one that makes something else": """test "$1" = --version && echo 1.0 && exit
        while test "$1" != -o; do shift; done; echo nothing > "$2"; chmod +x "$2"; """,
    "words without sense": "cc 'unclosed",
}


@pytest.mark.parametrize("compiler", COMPILERS.values(), ids=COMPILERS)
def test_without_a_compiler_torch_computes_the_same(compiler, anew, tmp_path, monkeypatch):
    z, y = numbers(2, 30, 6), (torch.arange(30) % 2).expand(2, -1)
    expected = log_prob(Address((0, 1)), z, y)
    library.loaded.cache_clear()
    monkeypatch.setenv("CC", script(tmp_path / "cc", compiler) if "$1" in compiler else compiler)
    assert kernels("flow", z) is None
    assert platform_of("cpu", ["flow"], False)["kernels"] == "torch's"
    torch.testing.assert_close(log_prob(Address((0, 1)), z, y), expected)


@compiled
def test_a_run_knows_who_compiled_and_compiles_only_for_a_flow_or_pictures(monkeypatch):
    assert platform_of("cpu", ["autoencoder", "flow"], False)["kernels"] == f"ours, by {HERE.compiler}"
    assert platform_of("cpu", ["classifier"], True)["kernels"] == f"ours, by {HERE.compiler}"
    monkeypatch.setattr(selection, "loaded", lambda: pytest.fail("compiled"))
    assert platform_of("cpu", ["classifier"], False)["kernels"] == "torch's"
    assert kernels("something else", torch.zeros(2)) is None


# -- how it is kept --------------------------------------------------------------------------------------------------


def built(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@compiled
def test_it_is_compiled_once_for_each_source_compiler_and_processor(anew, monkeypatch, tmp_path):
    assert library.loaded()
    (name,) = built(anew)
    monkeypatch.setattr(library, "_compile", lambda *_: pytest.fail("compiled again"))
    library.loaded.cache_clear()
    assert library.loaded()
    monkeypatch.setattr(library, "_compile", lambda compiler, path: names.append(path.name))
    names: list[str] = []
    others = [tmp_path / source.name for source in library.SOURCES]
    for other, source in zip(others, library.SOURCES, strict=True):
        other.write_text(source.read_text() + "\n" * (source.suffix == ".h"))
    changes = {
        "_processor": lambda: "another",
        "FLAGS": (*library.FLAGS, "-g"),
        "SOURCES": others,
        "_said_by": lambda _: "another version",
    }
    for attribute, value in changes.items():
        with monkeypatch.context() as patch:
            patch.setattr(library, attribute, value)
            library.loaded.cache_clear()
            assert library.loaded() is None  # nothing is there to be loaded
    assert len({*names, name}) == 5


@compiled
def test_a_damaged_library_is_compiled_again(anew):
    assert library.loaded()
    (path,) = anew.iterdir()
    whole = path.read_bytes()
    flipped = whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:]
    for damaged in (whole[: len(whole) // 2], b"", whole[:-1], flipped, b"#!/bin/sh\n"):
        path.unlink()
        path.write_bytes(damaged)
        library.loaded.cache_clear()
        assert library.loaded()
        assert path.read_bytes() == whole
    assert built(anew) == [path.name]


@compiled
@pytest.mark.parametrize("folder", ["open to a group", "a link", "of somebody else", "a file", "under a file"])
def test_a_folder_in_which_others_could_write_is_not_used(folder, anew, tmp_path, monkeypatch):
    anew.parent.mkdir(parents=True)
    if folder == "a link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        anew.symlink_to(tmp_path / "theirs")
    elif folder == "a file":
        anew.write_text("")
    elif folder == "under a file":
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    else:
        anew.mkdir(mode=0o700)
    if folder == "open to a group":
        anew.chmod(0o770)
    if folder == "of somebody else":
        monkeypatch.setattr(os, "getuid", lambda: 123_456)
    assert library.loaded() is None
    assert anew.is_file() or built(anew) == []


@compiled
def test_the_folder_is_private(anew):
    assert library.loaded()
    assert anew.stat().st_mode & 0o777 == 0o700


@compiled
def test_processes_may_compile_at_once(anew):
    code = "from prer.kernels.library import loaded; assert loaded()"
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert len(built(anew)) == 1


def test_the_source_is_part_of_the_package():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    shipped = project["tool"]["setuptools"]["package-data"]["prer"]
    root = Path(flows.__file__).parent
    others = {p for p in root.rglob("*") if p.is_file() and p.suffix not in (".py", ".pyc")}
    assert {*library.SOURCES} <= others
    assert others == {p for pattern in shipped for p in root.glob(pattern)}
