"""setup.py: how the C extension is built and shipped."""

import runpy
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from support.extension import LIBRARIES, MADE_BY, PACKAGE, SHORT, VARIANTS, needs_compiler, python

ROOT = Path(__file__).parents[1]
SOURCES = ["flow.c", "convolution.c", "products.h"]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """A source distribution, built in a copy of the sources."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("sdist")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "prer", copy / "prer", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    python("setup.py", "-q", "sdist", "-d", str(out), cwd=copy)
    (file,) = out.iterdir()
    return file


def installed(sdist, folder, **environment):
    """The names of the files in the wheel of this sdist, which is unpacked in the folder `site`."""
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
    assert python("-c", MADE_BY, cwd=tmp_path, package=tmp_path / "site").startswith("C, ")
    for variant, never in {"baseline": ("%ymm", "%zmm"), "avx2": ("%zmm",)}.items():
        if variant in VARIANTS[:-1] and shutil.which("objdump"):
            (library,) = (tmp_path / "site" / "prer" / "kernels" / "cpu").glob(f"_{variant}.*")
            code = subprocess.run(["objdump", "-d", library], check=True, capture_output=True, text=True).stdout
            assert not any(register in code for register in never)


@pytest.mark.slow
def test_without_a_compiler_it_is_installed_without_libraries_and_runs(sdist, tmp_path):
    names = installed(sdist, tmp_path, PATH=str(tmp_path), CC="/nowhere/cc")
    assert "prer/kernels/cpu/library.py" in names and not any(name.endswith(".so") for name in names)
    site = tmp_path / "site"
    assert python("-c", MADE_BY, cwd=tmp_path, package=site) == "None"
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
