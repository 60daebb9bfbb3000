"""Tests mirror the package: every module has a test file of its name, and no test file imports another."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "prer"
FILES = {path.stem for path in TESTS.rglob("test_*.py")}
# Modules without a test file of their name, and why.
EXCEPTIONS = {
    "version.py": "one number, which tests of the command and of the package read",
    "kernels/triton/blocks.py": "tested by kernels/test_triton.py, in a process where Triton interprets kernels",
    "kernels/triton/convolution.py": "tested by kernels/test_triton.py, in a process where Triton interprets kernels",
    "kernels/triton/flow.py": "tested by kernels/test_triton.py, in a process where Triton interprets kernels",
    "kernels/triton/maps.py": "tested by kernels/test_triton.py, in a process where Triton interprets kernels",
}


def untested(package, tests):
    """The modules of a package that have no test file of their name in the same folder of the tests."""
    modules = sorted(path.relative_to(package) for path in package.rglob("*.py"))
    return {
        module.as_posix()
        for module in modules
        if module.name not in ("__init__.py", "__main__.py")
        and not (tests / module.with_name(f"test_{module.name}")).is_file()
    }


def imported_tests(file):
    """The names of test files that a file imports, at the top or anywhere else."""
    found = []
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(alias.name for alias in node.names)]
        else:
            continue
        found += [name for name in names if is_test(name)]
    return found


def is_test(name):
    """Whether a dotted name has a part that is the name of a test file or of a conftest."""
    return any(part == "conftest" or part in FILES for part in name.split("."))


def test_every_module_has_a_test_file_of_its_name():
    assert untested(PACKAGE, TESTS) == EXCEPTIONS.keys()


def test_every_exception_has_a_reason():
    assert all(len(reason) > 20 for reason in EXCEPTIONS.values())


@pytest.mark.parametrize("file", sorted(TESTS.rglob("*.py")), ids=lambda file: str(file.relative_to(TESTS)))
def test_no_test_file_imports_another(file):
    assert imported_tests(file) == []


# -- the guards themselves ---------------------------------------------------------------------------------------------


def test_a_module_without_a_test_file_is_found(tmp_path):
    package, tests = tmp_path / "prer", tmp_path / "tests"
    for name in ("__init__.py", "__main__.py", "text.py", "runs/__init__.py", "runs/run.py", "runs/learn.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).touch()
    for name in ("test_text.py", "test_learn.py", "runs/test_run.py"):  # one in the wrong folder
        (tests / name).parent.mkdir(parents=True, exist_ok=True)
        (tests / name).touch()
    assert untested(package, tests) == {"runs/learn.py"}


@pytest.mark.parametrize(
    "line",
    [
        "from test_mirror import TESTS",
        "import tests.test_mirror",
        "from tests import test_mirror",
        "from .test_mirror import TESTS",
        "from . import test_mirror",
        "import conftest",
        "from runs.conftest import run",
        "def f():\n    from test_mirror import TESTS",
    ],
)
def test_an_import_of_a_test_file_is_found(tmp_path, line):
    (tmp_path / "test_new.py").write_text(line)
    assert imported_tests(tmp_path / "test_new.py")


def test_support_and_names_that_only_begin_alike_are_allowed(tmp_path):
    text = (
        "import pytest\nfrom support.learners import blobs\nfrom prer.runs.result import tested\nimport test_of_python"
    )
    (tmp_path / "test_new.py").write_text(text)
    assert imported_tests(tmp_path / "test_new.py") == []
