"""What an instance finds: one node of its own, with the cards or the slice that it rents."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from va100.cli.cloud_devices import devices, gpu_work_ns, node_kind
from va100.cloud.drivers.base import Assignment
from va100.cloud.models import Place, Shape
from va100.config import Settings
from va100.errors import SetupError
from va100.gpu.native import NATIVE_DIR

SXM = "A100-SXM4-80GB"
pytestmark = pytest.mark.skipif(
    not (NATIVE_DIR / "smi" / "nvidia-smi").exists()
    or not (NATIVE_DIR / "libnvidia-ml.so.1").exists(),
    reason="the native core is not built",
)


def found(tmp_path, shape, place):
    one = Assignment(instance="i", generation=1, tenant="t", name="n", shape=shape, place=place,
                     command=("true",))  # fmt: skip
    settings = Settings.from_environment({"HOME": str(tmp_path)})
    return dict(devices(settings, one, str(tmp_path), tmp_path))


def listed(variables):
    tool = NATIVE_DIR / "smi" / "nvidia-smi"
    done = subprocess.run([tool, "-L"], env=variables, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_slice_is_cut_at_its_place(tmp_path):
    place = Place("hgx-1", (5,), "2g.20gb", 4)
    variables = found(tmp_path, Shape(SXM, "2g.20gb"), place)
    assert "CUDA_VISIBLE_DEVICES" not in variables, "the only slice is what CUDA takes"
    lines = listed(variables)
    assert len(lines) == 2
    assert "MIG 2g.20gb" in lines[1]
    again = listed(found(tmp_path, Shape(SXM, "1g.10gb"), Place("hgx-1", (1,), "1g.10gb", 6)))
    assert "MIG 1g.10gb" in again[1], "another start, another slice"


def test_whole_cards_are_as_many_as_rented(tmp_path):
    variables = found(tmp_path, Shape(SXM, cards=2), Place("hgx-1", (3, 4)))
    assert variables["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert variables["VA100_GPUS"] == "2"
    one = found(tmp_path, Shape(SXM), Place("hgx-1", (7,)))
    assert len(listed(one)) == 1


def test_the_smallest_node_is_taken():
    assert node_kind(SXM, 1) == "sxm-a100-80gb"
    assert node_kind("A100-PCIE-40GB", 2) == "pcie-a100-40gb-x2"
    with pytest.raises(SetupError, match="no node of 99"):
        node_kind(SXM, 99)


SPIN = """
import ctypes, sys
c = ctypes.CDLL("libcuda.so.1"); c.cuInit(0)
p = lambda: ctypes.c_void_p()
d, x, m, f = ctypes.c_int(), p(), p(), p()
assert c.cuDeviceGet(ctypes.byref(d), 0) == 0
assert c.cuDevicePrimaryCtxRetain(ctypes.byref(x), d) == 0
assert c.cuCtxSetCurrent(x) == 0
print("ready", flush=True); sys.stdin.readline()
text = b'''.version 7.0
.target sm_80
.address_size 64
.visible .entry spin() { .reg .u32 %r<2>; .reg .pred %p<2>; mov.u32 %r1, 0;
again: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 2000000; @%p1 bra again; ret; }'''
assert c.cuModuleLoadData(ctypes.byref(m), text) == 0
assert c.cuModuleGetFunction(ctypes.byref(f), m, b"spin") == 0
assert c.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, None, None, None) == 0
assert c.cuCtxSynchronize() == 0
print("done", flush=True); sys.stdin.readline()
"""


def test_what_its_gpu_did_is_known_from_outside(tmp_path):
    """Nothing while a program merely holds it, something once it computes, no less after it."""
    shape = Shape(SXM, "1g.10gb")
    variables = found(tmp_path, shape, Place("hgx-1", (0,), "1g.10gb", 0))
    assert gpu_work_ns(tmp_path) == 0
    with subprocess.Popen([sys.executable, "-c", SPIN], env=os.environ | variables, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:  # fmt: skip
        assert child.stdout.readline() == "ready\n"
        assert gpu_work_ns(tmp_path) == 0, "a context is no work"
        child.stdin.write("go\n")
        child.stdin.flush()
        assert child.stdout.readline() == "done\n"
        after = gpu_work_ns(tmp_path)
        assert after > 0
        child.stdin.write("end\n")
        child.stdin.flush()
    assert gpu_work_ns(tmp_path) >= after, "what a program did stays when it is gone"


def test_what_is_no_node_did_nothing(tmp_path):
    """A home is its tenant's, who may put anything where nodes are."""
    assert gpu_work_ns(tmp_path) == 0
    found(tmp_path, Shape(SXM, "1g.10gb"), Place("hgx-1", (0,), "1g.10gb", 0))
    folder = tmp_path / ".va100" / "nodes"
    (node,) = folder.glob("*.node")
    whole = node.read_bytes()
    for odd in (b"", b"x" * 100, whole[:4096], b"y" * len(whole), whole[:64] + b"\xff" * 500_000):
        node.write_bytes(odd)
        assert gpu_work_ns(tmp_path) == 0
    node.write_bytes(whole[:32] + b"\xff" * (len(whole) - 32))
    assert gpu_work_ns(tmp_path) >= 0, "whatever it says, it is read within its bounds"
    node.unlink()
    os.mkfifo(node)
    (folder / "other.node").symlink_to("/etc/passwd")
    assert gpu_work_ns(tmp_path) == 0
