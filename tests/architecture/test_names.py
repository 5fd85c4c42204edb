"""Modules say what lives in them, export what exists, and avoid names that say nothing."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys

import pytest

from tests.helpers.source_tree import PACKAGE, name_of, python_modules

EMPTY_WORDS = {"common", "helper", "helpers", "manager", "misc", "util", "utils"}


def dotted(path):
    """Module name of a file of the library."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def kind_then_name(name):
    """Order of an export list: constants, classes, functions."""
    return (not name.isupper(), not name[0].isupper(), name)


def exporting_modules():
    """Modules that list what they export."""
    return [path for path in python_modules() if "\n__all__" in path.read_text("utf-8")]


@pytest.mark.parametrize("path", python_modules(), ids=name_of)
def test_a_module_opens_with_what_lives_there(path):
    text = ast.get_docstring(ast.parse(path.read_text("utf-8")))
    assert text, "no docstring"
    assert text.splitlines()[0].endswith((".", ":"))


@pytest.mark.parametrize("path", exporting_modules(), ids=name_of)
def test_exported_names_exist_once_and_sorted(path):
    module = importlib.import_module(dotted(path))
    assert all(hasattr(module, name) for name in module.__all__)
    assert list(module.__all__) == sorted(set(module.__all__), key=kind_then_name)


def test_no_module_has_an_empty_name():
    assert [name_of(p) for p in python_modules() if p.stem in EMPTY_WORDS] == []


def test_importing_the_package_runs_nothing_else():
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import va100, sys; print([m for m in sys.modules if m[:6] == 'va100.'])",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(PACKAGE.parent)},
    )
    assert found.stdout.strip() == "[]"
