"""JAX, unchanged: XLA writes the PTX; NVIDIA's ptxas beside it would stand before ours."""

from __future__ import annotations

import sys

import pytest

from tests.helpers.client_programs import JAX_PYTHON, answer_of, cases_of, failures_of
from va100.cli import xla
from va100.gpu.native import XLA_DIR

PROGRAM = "jax_kernels.py"


@pytest.fixture
def python():
    """A Python that has JAX's plugin: this one, or the one that `make clients` makes for it."""
    found = sys.executable if xla.plugin() is not None else str(JAX_PYTHON)
    if found != sys.executable and not JAX_PYTHON.exists():
        pytest.skip("needs JAX's CUDA plugin: make clients")
    assembler = answer_of(found, "va100.cli.xla.foreign_assembler()")
    if assembler != "None":
        pytest.skip(f"{assembler} stands before ours")
    return found


def test_kernels(python):
    if not XLA_DIR.is_dir():
        pytest.skip("the native core has no companions of XLA yet")
    assert answer_of(python, "va100.cli.xla.plugin()") != "None"
    assert len(cases_of(PROGRAM)) == 10
    assert failures_of(PROGRAM, python) == []
