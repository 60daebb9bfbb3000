"""The C extension: how it is built and shipped, and that no library but the package's own is ever loaded."""

import hashlib
import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import prer

PACKAGE = Path(prer.__file__).parent
ROOT = Path(__file__).parents[1]
VARIANTS = ["baseline", "avx2", "avx512"] if sysconfig.get_platform() == "linux-x86_64" else ["baseline"]
LIBRARIES = {f"prer/kernels/cpu/_{variant}{EXTENSION_SUFFIXES[0]}" for variant in VARIANTS}
SOURCES = ["flow.c", "convolution.c", "products.h"]
SHORT = ["seeds=1", "learner.epochs=1", "learner.epochs_autoencoder=1", "learner.epochs_flow=1", "learner.blocks=1"]
WHO = "from prer.kernels.registry import made_by; print(made_by('cpu'))"
needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")


def python(*arguments, cwd, package=PACKAGE.parent, **environment):
    """What Python prints in a process of its own, with the package from this folder."""
    known = {key: value for key, value in os.environ.items() if key not in ("PRER_KERNELS", "XDG_CACHE_HOME", "CC")}
    known |= {"PYTHONPATH": str(package)} | environment
    done = subprocess.run([sys.executable, "-W", "ignore", *arguments], cwd=cwd, env=known, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return done.stdout.decode().strip()


# -- the attack ------------------------------------------------------------------------------------------------------

HOSTILE = '#include <stdio.h>\n__attribute__((constructor)) void ours(void) { fclose(fopen("%s", "w")); }'


@pytest.fixture
def executed(tmp_path):
    """A file that is there once the hostile library, or the hostile compiler, has been executed."""
    return tmp_path / "executed"


@pytest.fixture
def hostile(tmp_path, executed):
    source, library = tmp_path / "hostile.c", tmp_path / "hostile.so"
    source.write_text(HOSTILE % executed)
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    return library


@needs_compiler
def test_the_hostile_library_would_be_noticed(hostile, executed, tmp_path):
    python("-c", f"import ctypes; ctypes.CDLL({str(hostile)!r})", cwd=tmp_path)
    assert executed.exists()


@needs_compiler
@pytest.mark.parametrize("relative", [False, True])
def test_no_library_of_a_cache_is_loaded(relative, hostile, executed, tmp_path):
    """The attack on what compiled at run time: libraries of its names, each with the digest that it asked for."""
    cache = "cache" if relative else str(tmp_path / "cache")
    folder = tmp_path / "cache" / "prer" / "kernels"
    python("-c", WHO, cwd=tmp_path, XDG_CACHE_HOME=cache)
    names = [path.name for path in folder.glob("*.so")] or ["native-0123456789abcdef.so"]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = hostile.read_bytes()
    for name in names:
        (folder / name).write_bytes(content + hashlib.sha256(content).digest())
    run = ["-c", WHO] if relative else ["-m", "prer", "run", *SHORT, "--quiet"]
    python(*run, cwd=tmp_path, XDG_CACHE_HOME=cache)
    assert not executed.exists()


@needs_compiler
def test_no_library_of_the_current_folder_or_a_search_path_is_loaded(hostile, executed, tmp_path):
    for name in {Path(library).name for library in LIBRARIES} | {"native.so", "libnative.so"}:
        shutil.copy(hostile, tmp_path / name)
    python("-c", WHO, cwd=tmp_path, LD_LIBRARY_PATH=".", PATH=f".:{os.environ['PATH']}")
    assert not executed.exists()


def test_no_compiler_is_started_and_nothing_is_written(executed, tmp_path):
    for name in ("cc", "gcc", "clang"):
        (tmp_path / name).write_text(f"#!/bin/sh\ntouch '{executed}'\n")
        (tmp_path / name).chmod(0o700)
    before = sorted(tmp_path.iterdir())
    search = f"{tmp_path}:{os.environ['PATH']}"
    python("-c", WHO, cwd=tmp_path, CC=str(tmp_path / "cc"), PATH=search, HOME=str(tmp_path), TMPDIR=str(tmp_path))
    assert sorted(tmp_path.iterdir()) == before


# -- the installation ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """Made in a copy of what is under version control, since it is built there."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("sdist")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "prer", copy / "prer", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    python("setup.py", "-q", "sdist", "-d", str(out), cwd=copy)
    (file,) = out.iterdir()
    return file


def installed(sdist, folder, **environment):
    """The names in a wheel that is made of it, and unpacked here."""
    pip = ["-m", "pip", "wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation", "-w", str(folder), str(sdist)]
    python(*pip, cwd=folder, **environment)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder / "site")
        return set(file.namelist())


@pytest.mark.slow
def test_an_sdist_holds_the_sources(sdist):
    with tarfile.open(sdist) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {"setup.py", *(f"prer/kernels/cpu/{name}" for name in SOURCES)} <= names
    assert not any(name.endswith(".so") for name in names)


@pytest.mark.slow
@needs_compiler
def test_a_wheel_holds_the_libraries_and_opens_one(sdist, tmp_path):
    assert {name for name in installed(sdist, tmp_path) if name.endswith(".so")} == LIBRARIES
    assert python("-c", WHO, cwd=tmp_path, package=tmp_path / "site").startswith("C, ")
    for variant, never in {"baseline": ("%ymm", "%zmm"), "avx2": ("%zmm",)}.items():
        if variant in VARIANTS[:-1] and shutil.which("objdump"):
            (library,) = (tmp_path / "site" / "prer" / "kernels").glob(f"_{variant}.*")
            code = subprocess.run(["objdump", "-d", library], check=True, capture_output=True, text=True).stdout
            assert not any(register in code for register in never)


@pytest.mark.slow
def test_without_a_compiler_it_is_installed_without_libraries_and_runs(sdist, tmp_path):
    names = installed(sdist, tmp_path, PATH=str(tmp_path), CC="/nowhere/cc")
    assert "prer/kernels/cpu/library.py" in names and not any(name.endswith(".so") for name in names)
    site = tmp_path / "site"
    assert python("-c", WHO, cwd=tmp_path, package=site) == "None"
    folder = python("-m", "prer", "run", *SHORT, "--quiet", cwd=tmp_path, package=site)
    assert '"kernels": "torch\'s"' in (tmp_path / folder / "environment.json").read_text()


@pytest.mark.parametrize("name", ["setup.py", *(f"prer/kernels/cpu/{name}" for name in SOURCES)])
def test_the_environment_is_stale_when_the_extension_changes(name, tmp_path, monkeypatch):
    environment = runpy.run_path(str(ROOT / "scripts" / "environment.py"))["fingerprint"].__globals__
    (tmp_path / "prer" / "kernels" / "cpu").mkdir(parents=True)
    for path in ("pyproject.toml", "constraints.txt", "setup.py", *(f"prer/kernels/cpu/{name}" for name in SOURCES)):
        shutil.copy(ROOT / path, tmp_path / path)
    monkeypatch.setitem(environment, "ROOT", tmp_path)
    before = environment["fingerprint"]()
    (tmp_path / name).write_text((tmp_path / name).read_text() + "\n")
    assert environment["fingerprint"]() != before


def test_every_other_file_of_the_package_is_shipped():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    shipped = project["tool"]["setuptools"]["package-data"]["prer"]
    others = {path for path in PACKAGE.rglob("*") if path.is_file()}
    others = {path for path in others if path.suffix not in (".py", ".pyc", ".c", ".h", ".so")}
    assert others == {path for pattern in shipped for path in PACKAGE.glob(pattern)}
