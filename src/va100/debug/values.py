"""Raw bits of PTX types as people read them."""

from __future__ import annotations

import math
import struct
from typing import Final

from va100.ptx.types import PtxType

_SHORT: Final = 1 << 16
_ADDRESSES: Final = 1 << 48
_FLOATS: Final = {
    PtxType.F16: ("<e", 2),
    PtxType.F32: ("<f", 4),
    PtxType.TF32: ("<f", 4),
    PtxType.F64: ("<d", 8),
}
_PACKED: Final = {PtxType.F16X2: PtxType.F16, PtxType.BF16X2: PtxType.BF16}


def spelled(raw: int, kind: PtxType) -> str:
    """Spell a value of a type; untyped bits in decimal while they are few, else in hexadecimal."""
    if kind is PtxType.PRED:
        return "true" if raw & 1 else "false"
    if kind in _PACKED:
        half = _PACKED[kind]
        return f"({spelled(raw & 0xFFFF, half)}, {spelled(raw >> 16 & 0xFFFF, half)})"
    if kind.is_float:
        return float_text(float_of(raw, kind), kind)
    raw &= (1 << kind.bits) - 1
    if kind.bits == 64 and _SHORT * _SHORT <= raw < _ADDRESSES:
        return f"0x{raw:x}"  # an address, most likely
    if kind.is_signed:
        return str(raw - (1 << kind.bits) if raw >> (kind.bits - 1) else raw)
    if kind.is_unsigned and kind.bits < 64:
        return str(raw)
    return str(raw) if raw < _SHORT else f"0x{raw:x}"


def float_of(raw: int, kind: PtxType) -> float:
    """The number that bits of a floating-point type stand for."""
    if kind is PtxType.BF16:
        raw, kind = raw << 16, PtxType.F32
    code, size = _FLOATS[kind]
    return float(struct.unpack(code, (raw & ((1 << 8 * size) - 1)).to_bytes(size, "little"))[0])


def float_text(value: float, kind: PtxType) -> str:
    """The shortest decimal that tells a value from its neighbours, nearly."""
    if math.isnan(value) or math.isinf(value):
        return str(value)
    digits = {PtxType.F64: 17, PtxType.F16: 5, PtxType.BF16: 4}.get(kind, 9)
    near = (float(f"{value:.{count}g}") for count in range(1, digits))
    found = next((n for n in near if n == value or _same(value, n, kind)), value)
    return repr(found).removesuffix(".0")


def _same(value: float, near: float, kind: PtxType) -> bool:
    """Whether a decimal rounds to a value of single precision or less."""
    if kind in (PtxType.BF16, PtxType.F64):
        return False
    code, _ = _FLOATS[kind]
    try:
        return bool(struct.unpack(code, struct.pack(code, near))[0] == value)
    except OverflowError:
        return False
