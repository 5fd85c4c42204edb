"""PTX's fundamental types, state spaces and their sizes.

Facts of the language only; how values are represented is each engine's business.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class PtxType(Enum):
    """A PTX type specifier, without its dot."""

    PRED = "pred"
    B1 = "b1"
    U2 = "u2"
    S2 = "s2"
    B4 = "b4"
    U4 = "u4"
    S4 = "s4"
    B8 = "b8"
    B16 = "b16"
    B32 = "b32"
    B64 = "b64"
    B128 = "b128"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    S8 = "s8"
    S16 = "s16"
    S32 = "s32"
    S64 = "s64"
    F16 = "f16"
    F16X2 = "f16x2"
    BF16 = "bf16"
    BF16X2 = "bf16x2"
    TF32 = "tf32"
    F32 = "f32"
    F64 = "f64"
    U16X2 = "u16x2"
    S16X2 = "s16x2"
    F32X2 = "f32x2"
    E4M3X2 = "e4m3x2"
    E5M2X2 = "e5m2x2"
    TEXREF = "texref"
    SAMPLERREF = "samplerref"
    SURFREF = "surfref"

    @property
    def bits(self) -> int:
        """Width of a value; a predicate is 1, an opaque reference 64."""
        return _BITS[self]

    @property
    def size_bytes(self) -> int:
        """Bytes of a value in memory; sub-byte types and predicates count 1."""
        return max(_BITS[self] // 8, 1)

    @property
    def is_signed(self) -> bool:
        """True for the s types, packed ones included."""
        return self.value.startswith("s") and self.value[1].isdigit()

    @property
    def is_unsigned(self) -> bool:
        """True for the u types."""
        return self.value.startswith("u")

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers."""
        return self.is_signed or self.is_unsigned

    @property
    def is_bits(self) -> bool:
        """True for the untyped b types."""
        return self.value.startswith("b") and self.value[1].isdigit()

    @property
    def is_float(self) -> bool:
        """True for floating point, packed forms included."""
        return "f" in self.value[:2] and self not in (PtxType.TEXREF, PtxType.SURFREF)


def _width(name: str) -> int:
    if name == "pred":
        return 1
    if name.endswith("ref"):
        return 64
    if name == "tf32":
        return 32
    if name.startswith("e"):
        return 16
    base, _, lanes = name.partition("x")
    digits = "".join(c for c in base if c.isdigit())
    return int(digits) * (int(lanes) if lanes else 1)


_BITS: Final = {t: _width(t.value) for t in PtxType}

TYPES: Final = {t.value: t for t in PtxType}
"""Type specifier text (no dot) to type."""


class Space(Enum):
    """A PTX state space."""

    REG = "reg"
    SREG = "sreg"
    CONST = "const"
    GLOBAL = "global"
    LOCAL = "local"
    PARAM = "param"
    SHARED = "shared"
    TEX = "tex"
    GENERIC = "generic"


SPACES: Final = {s.value: s for s in Space}
