"""Linking machine code: what it calls, where its constants are, and objects that are damaged."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest

from va100.jit import llvm
from va100.jit.code import MachineCode

TEXT = """
declare void @va_h_xld_global_32(ptr)
declare double @fmod(double, double)

define i64 @where() {
  ret i64 ptrtoint (ptr @va_h_xld_global_32 to i64)
}
define double @rest(double %x) {
  %y = call double @fmod(double %x, double 10.0)
  ret double %y
}
define i32 @table(i32 %i) {
  switch i32 %i, label %other [ i32 0, label %a i32 1, label %b i32 2, label %c i32 3, label %d
                                i32 4, label %e i32 5, label %f ]
a: ret i32 50
b: ret i32 61
c: ret i32 12
d: ret i32 903
e: ret i32 5
f: ret i32 77
other: ret i32 -1
}
define <8 x i32> @constant() {
  ret <8 x i32> <i32 3, i32 1, i32 4, i32 1, i32 5, i32 9, i32 2, i32 6>
}
define void @stored(ptr %to) {
  %v = call <8 x i32> @constant()
  store <8 x i32> %v, ptr %to, align 4
  ret void
}
"""


@pytest.fixture(scope="module", params=[0, 2])
def data(request: pytest.FixtureRequest) -> bytes:
    """An object that calls, jumps through a table and reads constants."""
    return llvm.compile_object(TEXT, request.param)


def test_it_runs(data: bytes) -> None:
    code = MachineCode(data)
    rest = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("rest"))
    assert rest(27.0) == 7.0
    table = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(code.address("table"))
    assert [table(i) for i in range(-1, 7)] == [-1, 50, 61, 12, 903, 5, 77, -1]
    out = np.zeros(8, np.int32)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("stored"))(out.ctypes.data)
    assert out.tolist() == [3, 1, 4, 1, 5, 9, 2, 6]
    assert ctypes.CFUNCTYPE(ctypes.c_uint64)(code.address("where"))() != 0


def test_what_is_not_there(data: bytes) -> None:
    assert MachineCode(data).address("nowhere") == 0


def test_its_text_holds_its_functions(data: bytes) -> None:
    code = MachineCode(data)
    base, text = code.text()
    assert base <= code.address("rest") < base + len(text)


def test_a_function_nobody_provides() -> None:
    text = "declare void @va_h_no_such_thing()\n"
    text += "define void @f() {\n  call void @va_h_no_such_thing()\n  ret void\n}\n"
    with pytest.raises(RuntimeError, match="nobody provides `va_h_no_such_thing`"):
        MachineCode(llvm.compile_object(text, 1))


def test_no_object() -> None:
    for nothing in (b"", b"\x7fELF", b"not an object at all" * 10):
        with pytest.raises(RuntimeError, match="no ELF object"):
            MachineCode(nothing)


def test_cut_off_objects_are_refused(data: bytes) -> None:
    """The section headers stand at the end: nothing shorter can be linked."""
    for size in range(64, len(data), 41):
        with pytest.raises(RuntimeError, match="cannot be loaded"):
            MachineCode(data[:size])


def test_damaged_objects_do_not_crash(data: bytes) -> None:
    """Headers, symbols and relocations at random: linked or refused."""
    rng = np.random.default_rng(5)
    (headers,) = struct.unpack_from("<Q", data, 40)
    for _ in range(400):
        damaged = bytearray(data)
        for place in rng.integers(headers, len(data), 3):
            damaged[place] = rng.integers(0, 256)
        try:
            MachineCode(bytes(damaged))
        except RuntimeError as error:
            assert "cannot be loaded" in str(error)
