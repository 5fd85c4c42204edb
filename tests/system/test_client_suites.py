"""Other people's suites are counted as they went, whatever their tests do to the process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from client_suites.attempts import Attempt, Record, outcomes
from client_suites.run import table
from client_suites.suites import SUITES, Suite, files_of, reason_of

TOOLS = str(Path(__file__).resolve().parents[2] / "tools")

SUITE = """
import ctypes, os, signal
import pytest

def test_passes(): pass
def test_fails(): assert 1 == 2
def test_skips(): pytest.skip("of no use here")
@pytest.mark.xfail
def test_fails_as_expected(): assert False
def test_ends_the_process(): os.abort()
def test_after_the_end(): pass
def test_never_ends(): signal.pause()
def test_at_last(): pass

@pytest.fixture
def untidy():
    yield
    raise RuntimeError("while cleaning up")
def test_cleans_up_badly(untidy): pass
"""

FAULT = """
import ctypes

def test_faults():
    cuda, context, stream = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    text = b".version 7.0\\n.target sm_80\\n.address_size 64\\n.visible .entry k() { trap; }\\n\\0"
    assert cuda.cuModuleLoadData(ctypes.byref(module), text) == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"k") == 0
    cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    assert cuda.cuCtxSynchronize() == 0

def test_comes_after():
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuCtxSynchronize() == 0
"""


TENSORS = """
import torch
import triton
import triton.language as tl

@triton.jit
def scaled(x, y, size, factor, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < size)
    tl.store(y + at, values * factor, mask=at < size)

def test_kernels_read_and_write_tensors():
    x = torch.arange(100, device="cuda", dtype=torch.float32)
    y = torch.empty_like(x)
    before = y.zero_().cpu()
    scaled[(1,)](x, y, 100, 3.0, BLOCK=128)
    assert torch.equal(y, torch.arange(100) * 3.0)
    assert before.sum() == 0, "a copy is a copy"
    assert torch.cuda.get_device_capability() == (8, 0)

def test_what_a_kernel_does_wrong_is_found():
    x = torch.ones(16, device="cuda")
    scaled[(1,)](x, x, 1 << 20, 2.0, BLOCK=1 << 18)
"""


def attempt(folder, name, share=1, words=(), limit_s=10.0):
    words = ("-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:socket", *words, name)
    variables = {"PYTHONPATH": os.pathsep.join([TOOLS, *sys.path]), "TRITON_CACHE_DIR": str(folder)}
    return Attempt(
        arguments=words, folder=folder, variables=variables, gpus=1, share=share, limit_s=limit_s
    )


def ran(folder, text, **options):
    (folder / "test_it.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    found = outcomes(attempt(folder, "test_it.py", **options), "test_it.py")
    return {record.test.partition("::")[2]: record for record in found}


class TestOutcomes:
    def test_every_test_has_one(self, tmp_path):
        found = ran(tmp_path, SUITE)
        assert {name: record.outcome for name, record in found.items()} == {
            "test_passes": "passed",
            "test_fails": "failed",
            "test_skips": "skipped",
            "test_fails_as_expected": "xfailed",
            "test_ends_the_process": "ended",
            "test_after_the_end": "passed",
            "test_never_ends": "ended",
            "test_at_last": "passed",
            "test_cleans_up_badly": "failed",
        }
        assert found["test_skips"].text == "of no use here"
        assert found["test_never_ends"].text.startswith("over the limit")
        assert "SIGABRT" in found["test_ends_the_process"].text

    def test_a_fault_spoils_no_other_test(self, tmp_path):
        found = ran(tmp_path, FAULT)
        assert [record.outcome for record in found.values()] == ["failed", "passed"]

    def test_a_file_that_cannot_be_read_is_told_of(self, tmp_path):
        found = ran(tmp_path, "import no_such_module\n")
        assert [record.outcome for record in found.values()] == ["failed"]

    def test_a_share_is_the_same_tests_each_time(self, tmp_path):
        text = "\n".join(f"def test_{i}(): pass" for i in range(40))
        found = ran(tmp_path, text, share=4)
        assert 0 < len(found) < 40
        assert ran(tmp_path, text, share=4).keys() == found.keys()


def test_tensors_of_a_pytorch_for_cpus_lie_on_the_virtual_gpu(tmp_path):
    pytest.importorskip("torch", reason="needs PyTorch")
    pytest.importorskip("triton", reason="needs Triton")
    words = ("-p", "client_suites.torch_device")
    found = ran(tmp_path, TENSORS, words=words, limit_s=200.0)
    assert {name: record.outcome for name, record in found.items()} == {
        "test_kernels_read_and_write_tensors": "passed",
        "test_what_a_kernel_does_wrong_is_found": "failed",
    }
    assert "ILLEGAL_ADDRESS" in found["test_what_a_kernel_does_wrong_is_found"].text


class TestTable:
    def test_counts_and_reasons(self):
        suite = Suite(folder=".", patterns=(), reasons=(("no such", "it is missing"),))
        found = {
            "a": [Record(test="a::1", outcome="passed")],
            "b": [
                Record(test="b::1", outcome="failed", text="E   no such thing\n"),
                Record(test="b::2", outcome="skipped", text="not here"),
            ],
        }
        lines = table(suite, found)
        assert lines[2] == "| 3 | 1 | 0 | 1 | 1 | 0 |"
        assert "| 1 | it is missing |" in lines
        assert "| 1 | not here |" in lines

    def test_a_reason_nobody_knows_is_what_was_said_last(self):
        text = "def f():\nE   AssertionError: one\nE   assert 2 == 3\nf.py:3\n"
        assert reason_of(SUITES["numba-cuda"], "a::test_b", text) == "assert 2 == 3"

    def test_files_are_named_as_pytest_wants_them(self, tmp_path):
        for folder in ("numba_cuda/numba/cuda/tests/cudapy", "testing"):
            (tmp_path / folder).mkdir(parents=True)
        (tmp_path / "numba_cuda/numba/cuda/tests/cudapy/test_sync.py").touch()
        found = files_of(SUITES["numba-cuda"], tmp_path)
        assert found == [("cudapy.test_sync", ("--pyargs", "numba.cuda.tests.cudapy.test_sync"))]
