"""What the host copies out of memory that nobody wrote, and words that streams write."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys

import numpy as np
import pytest

from tests.helpers.checking import Bench, bench
from tests.helpers.kernels import HEADER
from va100.gpu.native import library

BYTES = 256
TEXT = f"""{HEADER}
.visible .entry put(.param .u64 to)
{{
    .reg .b32 %r<2>; .reg .b64 %d<3>;
    ld.param.u64 %d0, [to];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %d1, %r0, 4;
    add.u64 %d0, %d0, %d1;
    st.global.u32 [%d0], %r0;
    ret;
}}
"""


def to_host(address: int, count: int = BYTES) -> None:
    """A copy to pageable memory, as the driver tells of it."""
    target = np.zeros(count, np.uint8)
    place = ctypes.c_uint64(target.ctypes.data)
    library().va_check_copied(place, ctypes.c_uint64(address), ctypes.c_uint64(count))


@pytest.fixture
def checked():
    with bench(TEXT) as made:
        yield made


def told(made: Bench) -> list[tuple[str, str, int]]:
    return [(f.kind, f.severity, f.count) for f in made.found()]


class TestCopiesToTheHost:
    def test_of_what_nobody_wrote(self, checked):
        buffer = checked.buffer(BYTES, defined=False)
        to_host(buffer)
        assert told(checked) == [("undefined-copy", "error", 1)]

    def test_in_pieces_are_one_finding(self, checked):
        buffer = checked.buffer(BYTES, defined=False)
        for row in range(4):
            to_host(buffer + 64 * row, 32)
        assert told(checked) == [("undefined-copy", "error", 4)]

    def test_of_a_buffer_that_is_filled_in_part_is_told_mildly(self, checked):
        buffer = checked.buffer(BYTES, defined=False)
        checked.run("put", (1,), (32,), buffer)
        to_host(buffer)
        assert told(checked) == [("undefined-copy", "info", 1)]
        (found,) = checked.found()
        assert "is 128 bytes inside" in found.details[0]

    def test_of_what_a_kernel_wrote(self, checked):
        buffer = checked.buffer(BYTES, defined=False)
        checked.run("put", (1,), (64,), buffer)
        to_host(buffer)
        assert told(checked) == []

    def test_of_what_was_copied_there_undefined(self, checked):
        source, buffer = (checked.buffer(BYTES, defined=False) for _ in range(2))
        places = (ctypes.c_uint64(buffer), ctypes.c_uint64(source), ctypes.c_uint64(BYTES))
        library().va_check_copied(*places)
        assert told(checked) == []  # nobody has looked yet
        to_host(buffer)
        assert told(checked) == [("undefined-copy", "error", 1)]


PROGRAM = """
import ctypes, struct
cuda = ctypes.CDLL("libcuda.so.1")
u64, ref = ctypes.c_uint64, ctypes.byref
def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    assert status == 0, (name, status)
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ref(context), 0)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", ref(module), TEXT)
call("cuModuleGetFunction", ref(function), module, b"bump")
flag, data = u64(), u64()
call("cuMemAlloc_v2", ref(flag), ctypes.c_size_t(4))
call("cuMemAlloc_v2", ref(data), ctypes.c_size_t(4))
call("cuMemsetD32_v2", data, 0, ctypes.c_size_t(1))
streams = [ctypes.c_void_p(), ctypes.c_void_p()]
for stream in streams:
    call("cuStreamCreate", ref(stream), 1)
call("cuCtxSynchronize")
def bump(stream):
    arguments = (ctypes.c_void_p * 2)(*(ctypes.cast(ref(a), ctypes.c_void_p) for a in (data, flag)))
    call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, None)
call("cuStreamWriteValue32_v2", streams[0], flag, 1, 0)
bump(streams[0])
if ORDERED:
    call("cuStreamWriteValue32_v2", streams[0], flag, 2, 0)
    call("cuStreamWaitValue32_v2", streams[1], flag, 2, 0)
bump(streams[1])
call("cuCtxSynchronize")
"""
BUMP = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry bump(.param .u64 data, .param .u64 flag)
{
    .reg .b32 %r<3>; .reg .b64 %d<2>;
    ld.param.u64 %d0, [data];
    ld.param.u64 %d1, [flag];
    ld.volatile.global.u32 %r1, [%d1];
    ld.global.u32 %r0, [%d0];
    add.u32 %r0, %r0, %r1;
    st.global.u32 [%d0], %r0;
    ret;
}
"""


@pytest.mark.parametrize("ordered", [True, False])
def test_words_that_streams_write_are_defined_and_order_them(ordered, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(f"TEXT = {BUMP.encode()!r}\nORDERED = {ordered}\n{PROGRAM}")
    command = [sys.executable, "-m", "va100.cli", "check", "--tool", "all", "--json", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    kinds = {f["kind"] for f in report["findings"]}
    assert kinds == (set() if ordered else {"stream-race"})
