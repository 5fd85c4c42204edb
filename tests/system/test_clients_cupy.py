"""CuPy, whose modules that NVIDIA's runtime is linked into were built anew."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.helpers.client_programs import cases_of, failures_of

PROGRAM = "cupy_kernels.py"


def runtime_module():
    """The file of CuPy's that calls the runtime; finding it runs nothing of CuPy."""
    found = importlib.util.find_spec("cupy_backends")
    if found is None or not found.submodule_search_locations:
        pytest.skip("needs CuPy: docs/clients.md")
    (folder,) = found.submodule_search_locations
    (file,) = Path(folder, "cuda", "api").glob("runtime.*.so")
    return file


def test_cupy():
    if b"libcudart.so." not in runtime_module().read_bytes():
        pytest.skip("needs CuPy with a shared runtime: python tools/install_cupy.py")
    assert len(cases_of(PROGRAM)) == 12
    assert failures_of(PROGRAM) == []
