"""How values are spelled."""

from __future__ import annotations

import struct

import pytest

from va100.debug.types import C_TYPES as TYPES
from va100.debug.types import Kind, Type, Value, of_number, of_type, text_of
from va100.debug.values import spelled
from va100.ptx.types import PtxType


def bits(value: float, code: str) -> int:
    raw = struct.pack(f"<{code}", value)
    return int.from_bytes(raw, "little")


@pytest.mark.parametrize(
    ("raw", "kind", "text"),
    [
        (1, PtxType.PRED, "true"),
        (0xFFFFFFFF, PtxType.S32, "-1"),
        (0xFFFFFFFF, PtxType.U32, "4294967295"),
        (0xFFFFFFFF, PtxType.B32, "0xffffffff"),
        (40000, PtxType.B32, "40000"),
        (0x220000200000, PtxType.S64, "0x220000200000"),
        ((1 << 64) - 5, PtxType.S64, "-5"),
        (bits(0.1, "f"), PtxType.F32, "0.1"),
        (bits(100.0, "f"), PtxType.F32, "100"),
        (bits(1e30, "f"), PtxType.F32, "1e+30"),
        (bits(0.1, "d"), PtxType.F64, "0.1"),
        (bits(1 / 3, "f"), PtxType.F32, "0.33333334"),
        (bits(float("nan"), "f"), PtxType.F32, "nan"),
        (bits(float("-inf"), "f"), PtxType.F32, "-inf"),
        (bits(1.5, "e"), PtxType.F16, "1.5"),
        (0x3FC0, PtxType.BF16, "1.5"),
        (0x3C00_4000, PtxType.F16X2, "(2, 1)"),
    ],
)
def test_raw_bits(raw: int, kind: PtxType, text: str) -> None:
    assert spelled(raw, kind) == text


@pytest.mark.parametrize(
    ("style", "text"),
    [("", "65 'A'"), ("x", "0x41"), ("d", "65"), ("u", "65"), ("t", "1000001"), ("c", "'A'")],
)
def test_styles(style: str, text: str) -> None:
    assert text_of(of_type(65, TYPES["char"]), style) == text


def test_bits_as_a_float() -> None:
    assert text_of(of_number(0x3F800000), "f") == "1"


def test_brain_floats() -> None:
    kind = Type("__nv_bfloat16", Kind.BFLOAT, 2)
    assert text_of(Value(kind, b"\xc0\x3f")) == "1.5"


def test_what_cannot_be_converted() -> None:
    with pytest.raises(ValueError, match="nothing can be cast to void"):
        of_type(1, TYPES["void"])
    with pytest.raises(ValueError, match="is no integer"):
        of_type(float("inf"), TYPES["int"])
