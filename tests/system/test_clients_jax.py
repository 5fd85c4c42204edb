"""JAX, unchanged: XLA writes the PTX; NVIDIA's ptxas beside it would stand before ours."""

from __future__ import annotations

import pytest

from tests.helpers.client_programs import cases_of, failures_of
from va100.cli import xla
from va100.gpu.native import XLA_DIR

PROGRAM = "jax_kernels.py"


def test_kernels():
    plugin = xla.plugin()
    if plugin is None:
        pytest.skip("needs JAX's CUDA plugin")
    if not XLA_DIR.is_dir():
        pytest.skip("the native core has no companions of XLA yet")
    if xla.foreign_assembler() is not None:
        pytest.skip(f"{xla.foreign_assembler()} stands before ours")
    assert len(cases_of(PROGRAM)) == 10
    assert failures_of(PROGRAM) == []
