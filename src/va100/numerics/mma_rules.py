"""What a tensor core does with numbers, one row a kind: the table engines, API and documents read.

Which operands, how many products meet in one block, how far they are aligned, how the block is
rounded, what a NaN, an infinity, a zero become.  The arithmetic that follows the table is
:mod:`va100.numerics.mma`; shapes and registers are PTX's.

Names are ``A.D`` (``f16.f32``), or ``A.B.D`` where the two operands differ (``s8.u8.s32``).
Sources: docs/tensor-cores.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from va100.numerics.formats import BF16, DOUBLE, F16, F32, FloatFormat


class Procedure(Enum):
    """How a block of products becomes a sum."""

    ALIGNED = "exact products, cut off at a common exponent, added exactly, rounded once a block"
    CHAIN = "fused multiply-adds in ascending k, each rounded"
    SEQUENCE = "the f32 instructions that compilers put in place of the Volta shape"
    INTEGER = "exact sum, wrapped or clamped to 32 bits"
    BITS = "population count of a logical operation, wrapped to 32 bits"


@dataclass(frozen=True, slots=True, kw_only=True)
class MmaRule:
    """How one kind multiplies and accumulates.

    ``block`` products are added at a time, ``step`` is the K of the largest instruction (two
    blocks of most floating kinds; where integers clamp).  ``alignment_bits`` fraction bits are
    kept below the largest exponent, which is at least ``least_exponent`` when a term is zero.
    The lowest ``dropped_bits`` of an operand's register are ignored.
    """

    kind: str
    procedure: Procedure
    block: int
    step: int
    operand: FloatFormat | None = None
    accumulator: FloatFormat | None = None
    alignment_bits: int = 0
    least_exponent: int = 0
    rounding: str = ""
    dropped_bits: int = 0
    a_signed: bool = False
    b_signed: bool = False
    element_bits: int = 0
    conjunction: bool = False
    evidence: str = ""

    @property
    def is_floating(self) -> bool:
        """Whether operands are raw bits of floating-point numbers."""
        return self.operand is not None

    def integer_range(self, operand: str) -> tuple[int, int]:
        """Smallest and largest element of operand ``"a"`` or ``"b"`` of an integer kind."""
        signed = self.a_signed if operand == "a" else self.b_signed
        top = 1 << (self.element_bits - signed)
        return (-top if signed else 0), top - 1


_HARDWARE: Final = "measured on A100, two models agree"
_DOCUMENTED: Final = "PTX ISA"


def _aligned(kind: str, operand: FloatFormat, accumulator: FloatFormat, block: int) -> MmaRule:
    wide = accumulator is F32
    return MmaRule(
        kind=kind,
        procedure=Procedure.ALIGNED,
        block=block,
        step=2 * block,
        operand=operand,
        accumulator=accumulator,
        alignment_bits=24,
        least_exponent=-132 if wide else -20,
        rounding="rz" if wide else "rn",
        dropped_bits=13 if operand is F32 else 0,
        evidence=_HARDWARE,
    )


def _sequence(kind: str, accumulator: FloatFormat) -> MmaRule:
    return MmaRule(
        kind=kind,
        procedure=Procedure.SEQUENCE,
        block=4,
        step=4,
        operand=F16,
        accumulator=accumulator,
        rounding="rn",
        evidence="read from the code that ptxas 13.0 makes for sm_80",
    )


def _integer(a: str, b: str) -> MmaRule:
    bits = int(a[1:])
    return MmaRule(
        kind=f"{a}.s32" if a == b else f"{a}.{b}.s32",
        procedure=Procedure.INTEGER,
        block=32 if bits == 8 else 64,
        step=32 if bits == 8 else 64,
        a_signed=a[0] == "s",
        b_signed=b[0] == "s",
        element_bits=bits,
        evidence=_DOCUMENTED,
    )


def _bits(operation: str) -> MmaRule:
    return MmaRule(
        kind=f"b1.{operation}",
        procedure=Procedure.BITS,
        block=256,
        step=256,
        element_bits=1,
        conjunction=operation == "and",
        evidence=_DOCUMENTED,
    )


_ROWS: Final = (
    _aligned("f16.f32", F16, F32, 8),
    _aligned("f16.f16", F16, F16, 8),
    _aligned("bf16.f32", BF16, F32, 8),
    _aligned("tf32.f32", F32, F32, 4),
    MmaRule(
        kind="f64",
        procedure=Procedure.CHAIN,
        block=4,
        step=4,
        operand=DOUBLE,
        accumulator=DOUBLE,
        rounding="rn",
        evidence=_DOCUMENTED + "; order of k from one model",
    ),
    _sequence("m8n8k4.f16.f32", F32),
    _sequence("m8n8k4.f16.f16", F16),
    *(_integer(a, b) for a in ("s8", "u8") for b in ("s8", "u8")),
    *(_integer(a, b) for a in ("s4", "u4") for b in ("s4", "u4")),
    _bits("xor"),
    _bits("and"),
)

RULES: Final[Mapping[str, MmaRule]] = MappingProxyType({row.kind: row for row in _ROWS})
"""Every kind of multiply-accumulate of an A100, by name."""


def rule(kind: str) -> MmaRule:
    """Row of a kind.

    Raises
    ------
    ValueError
        There is no such kind.
    """
    if kind not in RULES:
        raise ValueError(f"no tensor-core kind {kind!r}; there are {', '.join(RULES)}")
    return RULES[kind]
