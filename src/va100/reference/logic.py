"""Bitwise logic, shifts, funnel shifts and byte permutation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from va100.ptx.isa.form import Operation
from va100.ptx.program import Operand, Pair
from va100.ptx.types import PtxType
from va100.reference.issue import Issue
from va100.reference.lanes import U32, Lanes, join, signed, unsigned, words


def evaluate_logic(issue: Issue) -> None:
    """Evaluate one instruction of the family."""
    operation = issue.step.operation
    if operation.opcode == "lop3":
        lop3(issue)
        return
    destination, *sources = issue.step.operands
    kinds = [operation.type] * len(sources)
    if operation.opcode in ("shl", "shr"):
        kinds[1] = PtxType.U32
    values = [issue.read(operand, kind) for operand, kind in zip(sources, kinds, strict=True)]
    result = LOGIC[operation.opcode](operation, *values)
    issue.write(destination, result, extend_sign=operation.type.is_signed)


def and_(operation: Operation, a: Lanes, b: Lanes) -> Lanes:
    """Conjunction."""
    del operation
    result: Lanes = a & b
    return result


def or_(operation: Operation, a: Lanes, b: Lanes) -> Lanes:
    """Disjunction."""
    del operation
    result: Lanes = a | b
    return result


def xor(operation: Operation, a: Lanes, b: Lanes) -> Lanes:
    """Exclusive disjunction."""
    del operation
    result: Lanes = a ^ b
    return result


def not_(operation: Operation, a: Lanes) -> Lanes:
    """Complement."""
    del operation
    result: Lanes = ~a
    return result


def cnot(operation: Operation, a: Lanes) -> Lanes:
    """One if zero, else zero."""
    del operation
    one: Lanes = (a == 0).astype(a.dtype)
    return one


def shl(operation: Operation, a: Lanes, b: Lanes) -> Lanes:
    """Shift left; amounts above the width clamp to it, so the result is zero."""
    width = operation.type.bits
    near = np.minimum(b, np.uint32(width - 1)).astype(a.dtype)
    shifted: Lanes = np.where(b < width, a << near, a.dtype.type(0))
    return shifted


def shr(operation: Operation, a: Lanes, b: Lanes) -> Lanes:
    """Shift right, with sign copies for signed types; amounts above the width clamp to it."""
    width = operation.type.bits
    near = np.minimum(b, np.uint32(width - 1))
    if operation.type.is_signed:
        value = signed(a)
        return unsigned(value >> near.astype(value.dtype))
    shifted: Lanes = np.where(b < width, a >> near.astype(a.dtype), a.dtype.type(0))
    return shifted


def shf(operation: Operation, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Funnel shift of ``b:a``: the upper word of a left, the lower of a right shift."""
    amount = c & np.uint32(31) if "wrap" in operation.modifiers else np.minimum(c, np.uint32(32))
    both = (b.astype(np.uint64) << np.uint64(32)) | a
    by = amount.astype(np.uint64)
    if "l" in operation.modifiers:
        return ((both << by) >> np.uint64(32)).astype(np.uint32)
    return (both >> by).astype(np.uint32)


def prmt(operation: Operation, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Pick four of the eight bytes of ``b:a``."""
    source = words((b.astype(np.uint64) << np.uint64(32)) | a, np.dtype(np.uint8))
    if operation.combine:
        table = np.array(PERMUTATIONS[operation.combine], np.int64)
        return join(np.take_along_axis(source, table[c & np.uint32(3)], axis=1), U32)
    selectors = (c[:, None] >> np.array([0, 4, 8, 12], np.uint32)) & np.uint32(0xF)
    picked = np.take_along_axis(source, (selectors & np.uint32(7)).astype(np.int64), axis=1)
    sign = np.where(picked & np.uint8(0x80), np.uint8(0xFF), np.uint8(0))
    return join(np.where(selectors & np.uint32(8), sign, picked), U32)


PERMUTATIONS: Final[Mapping[str, tuple[tuple[int, int, int, int], ...]]] = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}
"""Mode of ``prmt`` to source bytes, lowest destination byte first, by selector."""


def lop3(issue: Issue) -> None:
    """Any function of three bits by look-up table; a form also tests the result."""
    operation = issue.step.operation
    destination, *sources = issue.step.operands
    a, b, c = (issue.read(operand, PtxType.B32) for operand in sources[:3])
    table = int(issue.read(sources[3], PtxType.B32)[0])
    result = np.zeros(32, np.uint32)
    for index in range(8):
        if table >> index & 1:
            result |= _minterm(a, index & 4) & _minterm(b, index & 2) & _minterm(c, index & 1)
    first, second = _destinations(destination)
    issue.write(first, result)
    if operation.combine:
        flag = issue.predicate(sources[4])
        true = result != 0
        issue.write(second, (true | flag) if operation.combine == "or" else (true & flag))


def _minterm(value: Lanes, positive: int) -> Lanes:
    return value if positive else ~value


def _destinations(operand: Operand | None) -> tuple[Operand | None, Operand | None]:
    if isinstance(operand, Pair):
        return operand.first, operand.second
    return operand, None


LOGIC: Final[Mapping[str, Callable[..., Lanes]]] = {
    "and": and_,
    "or": or_,
    "xor": xor,
    "not": not_,
    "cnot": cnot,
    "shl": shl,
    "shr": shr,
    "shf": shf,
    "prmt": prmt,
}
"""Opcode to its function; ``lop3`` has a second destination and stands apart."""
