"""Atomic operations and reductions in memory.

Lanes that name the same address take their turns in lane order; PTX leaves the order open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from va100.numerics import formats, rounding
from va100.numerics.formats import DOUBLE, F16, F32
from va100.ptx.isa.form import Operation
from va100.ptx.types import PtxType, Space
from va100.reference.issue import Issue
from va100.reference.lanes import RAW, U16, Lanes, typed, unsigned
from va100.reference.memory import access


def evaluate_atomic(issue: Issue) -> None:
    """Evaluate one instruction of the family."""
    operation = issue.step.operation
    operands = issue.step.operands
    destination, rest = (operands[0], operands[1:]) if operation.opcode == "atom" else (None, operands)
    space = operation.space or Space.GENERIC
    kind = operation.type
    addresses = access(issue, rest[0], space, kind.size_bytes)
    wanted = 2 if operation.combine == "cas" else 1
    values = [issue.read(operand, kind) for operand in rest[1 : 1 + wanted]]
    issue.warp.cta.launch.tally.add("atomic_requests")
    flushes = kind is PtxType.F32 and not _is_shared(issue, addresses, space)
    old = np.zeros(32, RAW[kind])
    pending = np.flatnonzero(issue.mask)
    storage = issue.warp.cta.launch.storage
    while pending.size:
        # The first lane of every address goes; the others wait for the next round.
        first = np.sort(np.unique(addresses[pending], return_index=True)[1])
        lanes = pending[first]
        before = storage.gather(addresses[lanes], kind.size_bytes)
        after = changed(operation, before, [value[lanes] for value in values], flushes=flushes)
        storage.scatter(addresses[lanes], after)
        old[lanes] = before
        pending = np.delete(pending, first)
    issue.write(destination, old, extend_sign=kind.is_signed)


def changed(operation: Operation, old: Lanes, values: list[Lanes], *, flushes: bool) -> Lanes:
    """What memory holds afterwards."""
    kind = operation.type
    if operation.combine == "add" and kind.is_float:
        return _float_add(kind, old, values[0], flushes=flushes)
    sources = [typed(value, kind) for value in (old, *values)]
    return unsigned(np.asarray(ATOMIC[operation.combine](*sources)))


def _is_shared(issue: Issue, addresses: Lanes, space: Space) -> bool:
    """Shared f32 adds keep subnormals, global ones flush them (sm_80)."""
    cta = issue.warp.cta
    inside = addresses[issue.mask] - np.uint64(cta.shared_address) < np.uint64(
        max(cta.shared_bytes, 1)
    )
    return space is Space.SHARED or bool(inside.all())


def _float_add(kind: PtxType, old: Lanes, value: Lanes, *, flushes: bool) -> Lanes:
    if kind is PtxType.F16X2:
        halves = rounding.add(F16, "rn", old.view(U16), value.view(U16))
        return np.ascontiguousarray(halves).view(old.dtype)
    fmt = {PtxType.F16: F16, PtxType.F32: F32, PtxType.F64: DOUBLE}[kind]
    if not flushes:
        return rounding.add(fmt, "rn", old, value)
    total = rounding.add(fmt, "rn", formats.flush(fmt, old), formats.flush(fmt, value))
    return formats.flush(fmt, total)


def add(old: Lanes, b: Lanes) -> Lanes:
    """Add."""
    return old + b


def and_(old: Lanes, b: Lanes) -> Lanes:
    """Conjunction."""
    return old & b


def or_(old: Lanes, b: Lanes) -> Lanes:
    """Disjunction."""
    return old | b


def xor(old: Lanes, b: Lanes) -> Lanes:
    """Exclusive disjunction."""
    return old ^ b


def exch(old: Lanes, b: Lanes) -> Lanes:
    """Exchange."""
    del old
    return b


def cas(old: Lanes, compare: Lanes, value: Lanes) -> Lanes:
    """Exchange if equal."""
    return np.where(old == compare, value, old)


def inc(old: Lanes, limit: Lanes) -> Lanes:
    """Count up, to zero past the limit."""
    return np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def dec(old: Lanes, limit: Lanes) -> Lanes:
    """Count down, to the limit from zero or from above it."""
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


def minimum(old: Lanes, b: Lanes) -> Lanes:
    """Smaller."""
    return np.minimum(old, b)


def maximum(old: Lanes, b: Lanes) -> Lanes:
    """Larger."""
    return np.maximum(old, b)


ATOMIC: Final[Mapping[str, Callable[..., Lanes]]] = {
    "add": add,
    "and": and_,
    "or": or_,
    "xor": xor,
    "exch": exch,
    "cas": cas,
    "inc": inc,
    "dec": dec,
    "min": minimum,
    "max": maximum,
}
"""Operation to its function of memory and operands."""
