"""Which library of the C extension is opened; nothing but the package's own is ever loaded."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from support.extension import LIBRARIES, MADE_BY, SHORT, needs_compiler, python
from support.kernels import compiled, numbers

from prer.address import Address
from prer.densities.flow import Flow, FlowSettings
from prer.densities.gaussian import GaussianSettings
from prer.errors import InputError
from prer.kernels.cpu import library
from prer.kernels.registry import kernels
from prer.nn.stacked import stack
from prer.runs.autosave import platform_of

HERE = library.loaded()


def log_prob(address, z, y):
    flow = stack(lambda: Flow(6, blocks=3), address)
    flow.add(torch.tensor([10, 10]), address)
    flow.start(z, y)
    return flow.train().log_prob(z, y)


def clear_caches():
    library.loaded.cache_clear()
    library.switched_on.cache_clear()


@pytest.fixture
def look_in(monkeypatch):
    """Looks for libraries in another folder, with the present environment, as a new process would."""

    def look(folder):
        monkeypatch.setattr(library, "__file__", str(folder / "library.py"))
        clear_caches()

    yield look
    monkeypatch.undo()
    clear_caches()


def library_file(variant, folder=Path(library.__file__).parent):
    return folder / f"_{variant}{library.EXTENSION_SUFFIXES[0]}"


@pytest.mark.parametrize("reason", ["not built", "no library", "of another version", "switched off"])
def test_without_the_library_torch_computes_the_same(reason, look_in, tmp_path, monkeypatch):
    z, y = numbers(2, 30, 6), (torch.arange(30) % 2).expand(2, -1)
    expected = log_prob(Address((0, 1)), z, y)
    if reason == "switched off":
        monkeypatch.setenv("PRER_KERNELS", "off")
    if reason == "no library":
        for variant in library.VARIANTS["AVX512"]:
            library_file(variant, tmp_path).write_text("nothing")
    if reason == "of another version":
        monkeypatch.setattr(library, "FUNCTIONS", ("forward", "of_another_version"))
    here = reason in ("switched off", "of another version")
    look_in(Path(library.__file__).parent if here else tmp_path)
    assert kernels("flow", z) is None
    assert platform_of("cpu", True)["kernels"] == "torch's"
    torch.testing.assert_close(log_prob(Address((0, 1)), z, y), expected)


@pytest.mark.parametrize("value", ["of", "OFF", "0", "/tmp/library.so"])
def test_an_unknown_value_of_the_switch_is_refused(value, look_in, tmp_path, monkeypatch):
    monkeypatch.setenv("PRER_KERNELS", value)
    look_in(tmp_path)
    with pytest.raises(InputError, match=f"PRER_KERNELS is '{value}'; set it to 'off'"):
        platform_of("cpu", False)


@compiled
def test_a_run_notes_the_library_where_it_has_a_flow_or_large_maps():
    assert HERE.made_by.startswith("C, ")
    assert platform_of("cpu", True)["kernels"] == HERE.made_by
    assert FlowSettings().has_kernels and not GaussianSettings().has_kernels
    assert platform_of("cpu", False)["kernels"] == "torch's"
    assert kernels("something else", torch.zeros(2)) is None


@compiled
@pytest.mark.parametrize(("processor", "fitting"), [*library.VARIANTS.items(), ("DEFAULT", ("baseline",))])
def test_the_widest_library_that_the_processor_supports_is_opened(processor, fitting, look_in, tmp_path, monkeypatch):
    every = library.VARIANTS["AVX512"]
    if not all(library_file(variant).exists() for variant in every):
        pytest.skip("not all are built here")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: processor)
    for missing in range(len(fitting) + 1):
        folder = tmp_path / str(missing)
        folder.mkdir()
        for variant in {*every} - {*fitting[:missing]}:
            shutil.copy(library_file(variant), folder)
        look_in(folder)
        found = library.loaded()
        assert (found and found.made_by.split(", ")[1]) == (fitting[missing] if missing < len(fitting) else None)


# -- hostile libraries -------------------------------------------------------------------------------------------------


HOSTILE = '#include <stdio.h>\n__attribute__((constructor)) void ours(void) { fclose(fopen("%s", "w")); }'


@pytest.fixture
def executed(tmp_path):
    """A file that the hostile library or compiler makes when it is executed."""
    return tmp_path / "executed"


@pytest.fixture
def hostile(tmp_path, executed):
    source, built = tmp_path / "hostile.c", tmp_path / "hostile.so"
    source.write_text(HOSTILE % executed)
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", built], check=True)
    return built


@needs_compiler
def test_an_execution_of_the_hostile_library_is_noticed(hostile, executed, tmp_path):
    python("-c", f"import ctypes; ctypes.CDLL({str(hostile)!r})", cwd=tmp_path)
    assert executed.exists()


@needs_compiler
@pytest.mark.parametrize("relative", [False, True])
def test_no_library_of_a_cache_is_loaded(relative, hostile, executed, tmp_path):
    """The attack on a version that compiled at run time: libraries of its names, with the digest that it checked."""
    cache = "cache" if relative else str(tmp_path / "cache")
    folder = tmp_path / "cache" / "prer" / "kernels"
    python("-c", MADE_BY, cwd=tmp_path, XDG_CACHE_HOME=cache)
    names = [path.name for path in folder.glob("*.so")] or ["native-0123456789abcdef.so"]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = hostile.read_bytes()
    for name in names:
        (folder / name).write_bytes(content + hashlib.sha256(content).digest())
    run = ["-c", MADE_BY] if relative else ["-m", "prer", "run", *SHORT, "--quiet"]
    python(*run, cwd=tmp_path, XDG_CACHE_HOME=cache)
    assert not executed.exists()


@needs_compiler
def test_no_library_of_the_current_folder_or_a_search_path_is_loaded(hostile, executed, tmp_path):
    for name in {Path(name).name for name in LIBRARIES} | {"native.so", "libnative.so"}:
        shutil.copy(hostile, tmp_path / name)
    python("-c", MADE_BY, cwd=tmp_path, LD_LIBRARY_PATH=".", PATH=f".:{os.environ['PATH']}")
    assert not executed.exists()


def test_no_compiler_is_started_and_nothing_is_written(executed, tmp_path):
    for name in ("cc", "gcc", "clang"):
        (tmp_path / name).write_text(f"#!/bin/sh\ntouch '{executed}'\n")
        (tmp_path / name).chmod(0o700)
    before = sorted(tmp_path.iterdir())
    search = f"{tmp_path}:{os.environ['PATH']}"
    python("-c", MADE_BY, cwd=tmp_path, CC=str(tmp_path / "cc"), PATH=search, HOME=str(tmp_path), TMPDIR=str(tmp_path))
    assert sorted(tmp_path.iterdir()) == before
