"""``va100.enable()``: a Python process puts itself, and what it starts, on virtual GPUs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from va100.cli import environment

pytestmark = pytest.mark.skipif(not environment.is_built(), reason="the native core is not built")

PROGRAM = """
import ctypes, subprocess, sys
import va100
va100.enable()
driver, runtime = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libcudart.so.13")
driver.cuInit(0)
count = ctypes.c_int()
assert driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value == 3, count
assert runtime.cudaGetDeviceCount(ctypes.byref(count)) == 0 and count.value == 3, count
selftest = [sys.executable, "-m", "va100.cli.selftest"]
print(subprocess.run(selftest, capture_output=True, text=True, check=True).stdout, end="")
"""


@pytest.mark.parametrize("before", [None, "", "/mine:/yours"])
def test_this_process_and_its_children(before):
    variables = {"VA100_GPUS": "3", "VA100_MODEL": "sxm40"}
    if before is not None:
        variables["LD_LIBRARY_PATH"] = before
    inherited = environment.config.inherited()
    inherited.pop("LD_LIBRARY_PATH", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=inherited | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "NVIDIA A100-SXM4-40GB: a kernel of 64 threads wrote what it should\n"
