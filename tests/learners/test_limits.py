"""Learners stay small: the settings that users see, the methods of the base class, and the length of files."""

import ast
import inspect
from dataclasses import fields
from pathlib import Path

import pytest

import prer.learners
from prer.densities.base import DensitySettings
from prer.learners import PRER, Learner

FILES = sorted(Path(prer.learners.__file__).parent.glob("*.py"))


def own(kind, base):
    return {f.name for f in fields(kind)} - {f.name for f in fields(base)}


def test_prer_and_its_density_have_few_settings():
    assert len(own(PRER, Learner)) <= 20
    assert all(len(fields(kind)) <= 10 for kind in DensitySettings.kinds.values())


def test_the_base_class_has_few_public_methods():
    public = [
        name
        for name, value in vars(Learner).items()
        if not name.startswith("_") and isinstance(inspect.unwrap(value), (type(own), classmethod, property))
    ]
    assert {"learn", "like", "embed", "loss"} <= set(public)
    assert len(public) <= 19, public


@pytest.mark.parametrize("name", ["prer.py", "base.py"])
def test_the_files_that_people_read_first_are_short(name):
    (file,) = (file for file in FILES if file.name == name)
    assert len(file.read_text("utf-8").splitlines()) < 270


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_function_is_long(file):
    functions = [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)]
    long = {node.name: node.end_lineno - node.lineno + 1 for node in functions}
    assert {name: lines for name, lines in long.items() if lines > 40} == {}
