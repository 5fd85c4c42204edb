"""Processes that use a GPU, as ``nvidia-smi`` and the exporter tell of them."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from contextlib import contextmanager

import pytest

from tests.helpers.smi import Smi
from va100.cli import environment, exporter
from va100.config import Settings

HOLDER = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, device, memory = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_ulonglong()
assert cuda.cuInit(0) == 0
assert cuda.cuDeviceGet(ctypes.byref(device), int(sys.argv[1])) == 0
assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(300 << 20)) == 0
print("holds", flush=True)
sys.stdin.read()
"""
RUNNER = """
import ctypes, select, sys
cuda = ctypes.CDLL("libcuda.so.1")
TEXT = b'''.version 8.0
.target sm_80
.address_size 64
.visible .entry spin(.param .u64 out, .param .u32 n)
{
 .reg .u64 %rd<2>; .reg .u32 %r<3>; .reg .pred %p;
 ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [n]; mov.u32 %r2, 0;
L: add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, %r1; @%p bra L;
 st.global.u32 [%rd1], %r2; ret;
}''' + bytes(1)
def ok(status):
    assert status == 0, status
context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
device, memory, count = ctypes.c_int(), ctypes.c_ulonglong(), ctypes.c_uint(100_000)
ok(cuda.cuInit(0))
ok(cuda.cuDeviceGet(ctypes.byref(device), int(sys.argv[1])))
ok(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device))
ok(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20)))
ok(cuda.cuModuleLoadData(ctypes.byref(module), TEXT))
ok(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"spin"))
arguments = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(count))
ended = False
while not ended:
    ok(cuda.cuLaunchKernel(kernel, 8, 1, 1, 128, 1, 1, 0, None, arguments, None))
    ok(cuda.cuCtxSynchronize())
    print("holds", flush=True)
    ended = bool(select.select([sys.stdin], [], [], 0)[0])
"""
BUS = "00000000:0F:00.0"


@pytest.fixture
def smi(monkeypatch, tmp_path):
    """The tool on a board of four."""
    return Smi(monkeypatch, tmp_path)


@contextmanager
def holder(gpu=1, program=HOLDER, **more):
    """A process that has a context on a GPU: it holds 300 MiB, or runs kernels."""
    env = environment.child_environment(Settings.from_environment()) | more
    with subprocess.Popen(
        [sys.executable, "-c", program, str(gpu)],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "holds\n"
        yield process.pid
        process.stdin.close()


def test_it_is_told_everywhere_alike(smi):
    with holder() as pid:
        query = "--query-compute-apps=gpu_bus_id,pid,used_memory"
        bus, told, used = smi(query, "--format=csv,noheader,nounits").text.strip().split(", ")
        assert (bus, int(told)) == (BUS, pid)
        assert int(used) >= 300
        row = next(line for line in smi().lines if f" {pid} " in line)
        assert row.split()[:6] == ["|", "1", "N/A", "N/A", str(pid), "C"]
        assert row.endswith(f"{used}MiB |")
        assert len(row) == 91
        gpus = ET.fromstring(smi("-q", "-x").text).findall("gpu")
        assert [gpu.findtext("processes/process_info/pid") for gpu in gpus] == [
            None,
            str(pid),
            None,
            None,
        ]
        assert gpus[1].findtext("processes/process_info/used_memory") == f"{used} MiB"
        assert f"        Process ID                        : {pid}" in smi("-q").lines
        assert smi("pmon", "-c", "1", "-s", "m", "-i", "1").lines[2].split()[:4] == [
            "1",
            str(pid),
            "C",
            used,
        ]
        metrics = exporter.metrics().splitlines()
        memory = [line for line in metrics if line.startswith('DCGM_FI_DEV_FB_USED{gpu="1"')]
        assert [line.rpartition(" ")[2] for line in memory] == [used]
    assert smi("--query-compute-apps=pid", "--format=csv,noheader").text == ""


def test_the_mode_is_pending_while_it_lives(smi):
    with holder():
        assert smi("-mig", "1", "-i", "1").lines == [
            f"Warning: MIG mode is in pending enable state for GPU {BUS}:In use by another client",
            f"{BUS} is currently being used by one or more other processes (e.g. CUDA application "
            "or a monitoring application such as another instance of nvidia-smi). Please first "
            "kill all processes using the device and retry the command or reboot the system to "
            "make MIG mode effective.",
            "All done.",
        ]
        assert "Disabled*" in smi("-i", "1").text
        refused = smi("--gpu-reset", "-i", "1")
        assert refused.status == 19
        assert f"GPU {BUS} is currently in use by another process." in refused.text
    assert smi("--gpu-reset", "-i", "1").status == 0
    modes = smi("--query-gpu=mig.mode.current", "--format=csv,noheader").text.split()
    assert modes == ["Disabled", "Enabled", "Disabled", "Disabled"]


def test_accounting_outlives_it(smi):
    smi("-am", "1", "-i", "1")
    with holder() as pid:
        pass
    query = "--query-accounted-apps=pid,max_memory_usage,gpu_util"
    assert smi(query, "--format=csv,noheader,nounits").text.startswith(f"{pid}, 300, ")
    assert (
        f"        Process ID                        : {pid}" in smi("-q", "-d", "ACCOUNTING").lines
    )


def test_an_instance_is_named_and_cannot_be_destroyed(smi):
    smi("-mig", "1", "-i", "1")
    smi("mig", "-cgi", "9", "-C")
    uuid = smi("-L").text.partition("MIG-")[2].partition(")")[0]
    with holder(gpu=0, CUDA_VISIBLE_DEVICES=f"MIG-{uuid}") as pid:
        row = next(line for line in smi().lines if f" {pid} " in line)
        assert row.split()[1:5] == ["1", "2", "0", str(pid)]
        query = "--query-compute-apps=gpu_uuid,pid"
        assert smi(query, "--format=csv,noheader").text == f"MIG-{uuid}, {pid}\n"
        assert smi("mig", "-dci").status == 19
    assert smi("mig", "-dci").status == 0


def test_work_in_an_instance_shows_in_its_series_and_by_its_weight_in_the_gpus(smi):
    smi("-mig", "1", "-i", "0")
    smi("mig", "-cgi", "9,19", "-C")
    uuid = smi("-L").text.partition("3g.20gb")[2].partition("MIG-")[2].partition(")")[0]
    with holder(gpu=0, program=RUNNER, CUDA_VISIBLE_DEVICES=f"MIG-{uuid}"):
        for _ in range(100):
            busy = shares(exporter.metrics(), "GR_ENGINE_ACTIVE")
            if busy["2"] > 0:
                break
        assert busy["2"] > 0
        assert busy["7"] == 0
        assert busy[""] == pytest.approx(busy["2"] * 3 / 7, abs=1e-6)
        # Its kernel has no matrix instruction.
        assert shares(exporter.metrics(), "PIPE_TENSOR_ACTIVE") == {"": 0, "2": 0, "7": 0}


def shares(metrics, name):
    """Values of the first GPU's series by GPU instance; the GPU's own has none."""
    lines = [
        line for line in metrics.splitlines() if line.startswith(f'DCGM_FI_PROF_{name}{{gpu="0"')
    ]
    return {
        line.partition('GPU_I_ID="')[2].partition('"')[0]: float(line.rpartition(" ")[2])
        for line in lines
    }
