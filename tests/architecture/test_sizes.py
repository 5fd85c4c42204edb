"""Modules and functions stay small enough to be read at one sitting."""

from __future__ import annotations

import pytest

from tests.helpers.source_tree import (
    ROOT,
    functions,
    name_of,
    native_code_lines,
    python_code_lines,
    python_modules,
)

MODULE_LINES = 600
TABLE_LINES = 1000
FUNCTION_LINES = 60

TABLES = {
    "src/va100/driver/signatures.py": "generated from the tables of driver calls",
}
"""Modules that are tables, and why they may be longer."""

NATIVE_SUFFIXES = (".cpp", ".h", ".S")


def native_sources():
    """What a person wrote of the native core."""
    files = sorted((ROOT / "native").rglob("*"))
    return [f for f in files if f.suffix in NATIVE_SUFFIXES and "generated" not in f.parts]


@pytest.mark.parametrize("path", python_modules(), ids=name_of)
def test_a_module_is_short(path):
    limit = TABLE_LINES if name_of(path) in TABLES else MODULE_LINES
    assert python_code_lines(path) <= limit


@pytest.mark.parametrize("path", native_sources(), ids=name_of)
def test_a_native_source_is_short(path):
    assert native_code_lines(path) <= MODULE_LINES


@pytest.mark.parametrize("path", python_modules(), ids=name_of)
def test_a_function_is_short(path):
    long = [f"{where}: {length}" for where, length in functions(path) if length > FUNCTION_LINES]
    assert long == []


def test_the_tables_exist():
    assert all((ROOT / name).is_file() for name in TABLES)
