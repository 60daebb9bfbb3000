"""What the package imports is what pyproject.toml declares."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Triton comes with torch where there may be a GPU; `prer bench` compares with the others where they are installed.
UNDECLARED = {"triton", "avalanche", "torchvision", "nflows", "normflows"}

EXTRAS = ("parquet", "ray", "slurm", "text", "vision", "track")  # that the package imports where they are installed


def names(requirements):
    """Distributions by their normalised names."""
    return [re.match(r"[\w.-]+", line)[0].lower().replace("_", "-") for line in requirements]


def imported(tree):
    """The top-level names of all modules that a file imports, wherever it does so."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]


def foreign():
    files = (ROOT / "prer").rglob("*.py")
    found = {name for file in files for name in imported(ast.parse(file.read_text("utf-8")))}
    return found - sys.stdlib_module_names - {"prer"} - UNDECLARED


def test_every_import_is_declared():
    known = packages_distributions()
    extras = PROJECT["optional-dependencies"]
    declared = names([*PROJECT["dependencies"], *(line for name in EXTRAS for line in extras[name])])
    of = {name: {d.lower().replace("_", "-") for d in known.get(name, [])} for name in foreign()}
    assert {name for name in of if not of[name] & {*declared}} == set()


def test_every_dependency_is_declared_once_and_imported():
    declared, known = names(PROJECT["dependencies"]), packages_distributions()
    assert len(declared) == len({*declared})
    assert {*declared} <= {d.lower().replace("_", "-") for name in foreign() for d in known.get(name, [])}
