"""cuda.core and cuda.bindings, unchanged; and a runtime that no driver but NVIDIA's can serve."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.helpers.client_programs import FOLDER, cases_of, failures_of

PROGRAM = "cuda_core_calls.py"
GRAPHS = "cuda_core_graphs.py"
MEMORY = "cuda_core_memory.py"
ASK = """
import ctypes
from va100.gpu.native import library
table = ctypes.c_void_p(1)
name = bytes.fromhex("6bd5fb6c5bf4e74a8987d93912fd9df9")
for _ in range(2):
    print(library().cuGetExportTable(ctypes.byref(table), name), table.value)
"""


def test_cuda_core():
    pytest.importorskip("cuda.core", reason="needs cuda-core")
    pytest.importorskip("nvidia.cu13", reason="needs nvidia-cuda-nvrtc")
    assert len(cases_of(PROGRAM)) == 11
    assert failures_of(PROGRAM) == []


def test_graphs_of_cuda_core():
    pytest.importorskip("cuda.core.graph", reason="needs cuda-core with graphs")
    pytest.importorskip("nvidia.cu13", reason="needs nvidia-cuda-nvrtc")
    assert len(cases_of(GRAPHS)) == 11
    assert failures_of(GRAPHS) == []


def test_memory_of_cuda_core():
    core = pytest.importorskip("cuda.core", reason="needs cuda-core")
    if not hasattr(core, "SMResourceOptions"):
        pytest.skip("needs a cuda-core that knows pools, ranges and parts of devices")
    assert len(cases_of(MEMORY)) == 6
    assert failures_of(MEMORY) == []


def test_a_program_that_a_script_starts():
    pytest.importorskip("cuda.core", reason="needs cuda-core")
    pytest.importorskip("nvidia.cu13", reason="needs nvidia-cuda-nvrtc")
    command = [sys.executable, "-m", "va100.cli", "run", "--quiet"]
    done = subprocess.run(
        [*command, str(FOLDER / "cuda_core_child.py")],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr


def test_a_runtime_inside_a_program_is_told_once_why_it_fails():
    done = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == ["500 None", "500 None"]
    assert done.stderr.count("Link with -cudart shared") == 1
