"""Scalar and SIMD video instructions, lane by lane in integers of any size.

A scalar one extends its operands to 33 bits, computes, clamps if asked to, and either combines
the 33-bit result with a third operand or merges its low bits into it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from va100.ptx.isa.form import Operation
from va100.ptx.types import PtxType
from va100.ptx.video import Part, destination_part, lanes_of, part_of, source_part
from va100.reference import lanes
from va100.reference.issue import Issue

_WORD: Final = 0xFFFFFFFF


def evaluate_video(issue: Issue) -> None:
    """Evaluate one instruction of the family."""
    operation = issue.step.operation
    destination, *sources = issue.step.operands
    into = destination_part(operation, destination)
    parts = [source_part(operation, operand, i) for i, operand in enumerate(sources[:2])]
    values = [issue.read(part.operand, PtxType.U32).tolist() for part in parts]
    c = part_of(sources[2], (32, (0,))) if len(sources) > 2 else None
    third = issue.read(c.operand, PtxType.U32).tolist() if c else [0] * 32
    result = np.zeros(32, np.uint32)
    for lane in lanes.lanes_of(issue.bits):
        a, b = values[0][lane], values[1][lane]
        if operation.opcode == "vmad":
            number = vmad(operation, (parts[0], parts[1]), (a, b), (c, third[lane]))
        elif lanes_of(operation) == 1:
            number = scalar(operation, (into, parts[0], parts[1]), (a, b), third[lane])
        else:
            number = simd(operation, (into, parts[0], parts[1]), (a, b), third[lane])
        result[lane] = number & _WORD
    issue.write(into.operand, result)


def extended(value: int, bits: int, place: int, *, signed: bool) -> int:
    """A part of a value, extended."""
    part = value >> bits * place & ((1 << bits) - 1)
    return part - (1 << bits) if signed and part >> (bits - 1) else part


def _types(operation: Operation) -> tuple[bool, bool, bool]:
    """Whether destination, a and b are signed; a comparison's result is not."""
    kinds = [kind.is_signed for kind in operation.types]
    if operation.opcode.startswith("vset"):
        kinds = [False, *kinds]
    return kinds[0], kinds[1], kinds[2]


def clamped(value: int, bits: int, *, signed: bool) -> int:
    """The nearest value that a type of some width holds."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return min(max(value, low), high)


# ---------------------------------------------------------------- scalar


def scalar(
    operation: Operation, parts: tuple[Part, Part, Part], values: tuple[int, int], c: int
) -> int:
    """One operation, then a second one with ``c`` or a merge into it."""
    into, a, b = parts
    signed, *signs = _types(operation)
    x, y = (
        extended(value, part.bits, part.places[0], signed=sign)
        for value, part, sign in zip(values, (a, b), signs, strict=True)
    )
    result = PRIMARY[operation.opcode](operation, x, y)
    if operation.saturate:
        result = clamped(result, into.bits, signed=signed)
    else:
        result = extended(result, 33, 0, signed=True)
    for name, combine in SECONDARY.items():
        if name in operation.modifiers:
            return combine(result, extended(c, 32, 0, signed=signed))
    if into.bits == 32:
        return result
    shift, keep = into.bits * into.places[0], (1 << into.bits) - 1
    return c & ~(keep << shift) | (result & keep) << shift


def _absolute_difference(operation: Operation, a: int, b: int) -> int:
    del operation
    return abs(a - b)


def _add(operation: Operation, a: int, b: int) -> int:
    del operation
    return a + b


def _subtract(operation: Operation, a: int, b: int) -> int:
    del operation
    return a - b


def _minimum(operation: Operation, a: int, b: int) -> int:
    del operation
    return min(a, b)


def _maximum(operation: Operation, a: int, b: int) -> int:
    del operation
    return max(a, b)


def _average(operation: Operation, a: int, b: int) -> int:
    del operation
    return (a + b + (a + b >= 0)) >> 1


def _compare(operation: Operation, a: int, b: int) -> int:
    name = next(name for name in COMPARISONS if name in operation.modifiers)
    return int(COMPARISONS[name](a, b))


def _amount(operation: Operation, b: int) -> int:
    return min(b, 32) if "clamp" in operation.modifiers else b & 31


def _shift_left(operation: Operation, a: int, b: int) -> int:
    return a << _amount(operation, b)


def _shift_right(operation: Operation, a: int, b: int) -> int:
    return a >> _amount(operation, b)


PRIMARY: Final[Mapping[str, Callable[[Operation, int, int], int]]] = {
    "vadd": _add,
    "vsub": _subtract,
    "vabsdiff": _absolute_difference,
    "vmin": _minimum,
    "vmax": _maximum,
    "vavrg": _average,
    "vset": _compare,
    "vshl": _shift_left,
    "vshr": _shift_right,
}
"""Opcode, without a number of elements, to its function of extended operands."""
SECONDARY: Final[Mapping[str, Callable[[int, int], int]]] = {
    "add": operator.add,
    "min": min,
    "max": max,
}
COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def vmad(
    operation: Operation,
    parts: tuple[Part, Part],
    values: tuple[int, int],
    third: tuple[Part | None, int],
) -> int:
    """Multiply parts and add, with one thing negated or one more added, then shift."""
    _, *signs = _types(operation)
    x, y = (
        extended(value, part.bits, part.places[0], signed=sign)
        for value, part, sign in zip(values, parts, signs, strict=True)
    )
    negates_product = parts[0].negated != parts[1].negated
    negates_c = bool(third[0] and third[0].negated) and not negates_product
    signed = any(signs) or negates_product or negates_c
    product, c = x * y, third[1]
    one = 0
    if "po" in operation.modifiers:
        one = 1
    elif negates_product:
        product, one = ~product, 1
    elif negates_c:
        c, one = ~c, 1
    total = product + extended(c, 32, 0, signed=signed) + one
    total >>= 7 if "shr7" in operation.modifiers else 15 if "shr15" in operation.modifiers else 0
    return clamped(total, 32, signed=signed) if operation.saturate else total


# ---------------------------------------------------------------- SIMD


def simd(
    operation: Operation, parts: tuple[Part, Part, Part], values: tuple[int, int], c: int
) -> int:
    """Elements in parallel; results are added to ``c``, or replace some of its elements."""
    into, a, b = parts
    signed, *signs = _types(operation)
    both = values[0] | values[1] << 32
    results = []
    for one, other in zip(a.places, b.places, strict=True):
        x = extended(both, a.bits, one, signed=signs[0])
        y = extended(both, b.bits, other, signed=signs[1])
        result = PRIMARY[operation.opcode[:-1]](operation, x, y)
        if operation.saturate:
            result = clamped(result, into.bits, signed=signed)
        results.append(result)
    if "add" in operation.modifiers:
        return c + sum(results[place] for place in into.places)
    keep = (1 << into.bits) - 1
    for place in into.places:
        shift = into.bits * place
        c = c & ~(keep << shift) | (results[place] & keep) << shift
    return c
