"""Manners of ``va100 check`` that reach the program: what a fault ends, who is checked."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from va100.gpu.native import NATIVE_DIR

PROGRAM = '''
import ctypes, subprocess, sys
TEXT = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry stray(.param .u64 to)
{ .reg .b64 %d; ld.param.u64 %d, [to]; st.global.u32 [%d], 1; ret; }
.visible .entry race(.param .u64 to)
{
    .reg .b32 %r<3>; .shared .b32 s[32];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, s;
    st.shared.u32 [%r1], %r0;
    ret;
}
"""
cuda = ctypes.CDLL("libcuda.so.1")
ref, u64 = ctypes.byref, ctypes.c_uint64
context, module = ctypes.c_void_p(), ctypes.c_void_p()
def launch(name, address):
    function, value = ctypes.c_void_p(), u64(address)
    cuda.cuModuleGetFunction(ref(function), module, name)
    arguments = (ctypes.c_void_p * 1)(ctypes.cast(ref(value), ctypes.c_void_p))
    cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, arguments, None)
    return cuda.cuCtxSynchronize()
if sys.argv[1] == "parent":
    sys.exit(subprocess.run([sys.executable, __file__, "fault"]).returncode)
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuModuleLoadData(ref(module), TEXT)
if sys.argv[1] == "fault":
    data = u64()
    cuda.cuMemAlloc_v2(ref(data), ctypes.c_size_t(4))
    print(launch(b"stray", 64), launch(b"stray", data.value), file=sys.stderr)
else:
    launch(b"race", 0)
'''


@pytest.fixture
def check(tmp_path, monkeypatch):
    monkeypatch.setenv("VA100_CACHE_DIR", str(tmp_path / "cache"))
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)

    def run(mode, *words):
        command = [sys.executable, "-m", "va100.cli", "check", *words, str(script), mode]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)

    return run


def kinds(outcome):
    return [f["kind"] for f in json.loads(outcome.stdout)["findings"]]


@pytest.mark.parametrize(("ends", "codes"), [("context", "700 700"), ("kernel", "0 0")])
def test_what_a_fault_ends(ends, codes, check):
    outcome = check("fault", "--destroy-on-device-error", ends, "--json")
    assert codes in outcome.stderr
    assert kinds(outcome) == ["out-of-bounds"]


@pytest.mark.parametrize(("whom", "found"), [("all", ["out-of-bounds"]), ("application-only", [])])
def test_who_is_checked(whom, found, check):
    outcome = check("parent", "--target-processes", whom, "--json")
    assert "700 700" in outcome.stderr
    assert kinds(outcome) == found


def test_a_kernel_that_is_left_out(check):
    words = ("--tool", "racecheck", "--json")
    assert kinds(check("race", *words)) == ["race"]
    assert kinds(check("race", *words, "--kernel-name-exclude", "kne=race")) == []
    assert kinds(check("race", *words, "--kernel-name-exclude", "kne=rac")) == ["race"]


def test_a_race_as_a_hazard(check):
    outcome = check("race", "--tool", "racecheck", "--racecheck-report", "hazard")
    assert "Potential WAW hazard detected at __shared__ 0x0 in block (0,0,0)" in outcome.stderr
    assert outcome.stderr.count("Write thread") == 2


@pytest.fixture(scope="module")
def unlaunched(tmp_path_factory):
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    binary = tmp_path_factory.mktemp("c") / "unlaunched"
    source = Path(__file__).parent / "clients" / "unlaunched.c"
    link = ("-l:libcuda.so.1", f"-L{NATIVE_DIR}", f"-Wl,-rpath={NATIVE_DIR}")
    subprocess.run(["cc", str(source), "-o", str(binary), *link], check=True)
    return binary


@pytest.mark.parametrize(
    "fault", ["none", "undefined-copy", "bad-range", "invalid-free", "double-free", "leak"]
)
def test_a_program_that_loads_no_module(fault, unlaunched):
    words = ("--tool", "all", "--leak-check", "full", "--json", str(unlaunched), fault)
    command = [sys.executable, "-m", "va100.cli", "check", *words]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert outcome.returncode == 0, outcome.stderr
    assert kinds(outcome) == ([] if fault == "none" else [fault])
