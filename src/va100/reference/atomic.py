"""Atomic operations and reductions in memory.

Lanes that name the same address take their turns in lane order; PTX leaves the order open.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import numpy as np

from va100.numerics import formats, rounding
from va100.numerics.formats import DOUBLE, F16, F32
from va100.ptx.types import PtxType, Space
from va100.reference.issue import Issue
from va100.reference.lanes import RAW, U16, Lanes, lanes_of, typed
from va100.reference.memory import access


def evaluate_atomic(issue: Issue) -> None:
    """Evaluate one instruction of the family."""
    operation = issue.step.operation
    operands = issue.step.operands
    if operation.opcode == "atom":
        destination, operands = operands[0], operands[1:]
    else:
        destination = None
    kind = operation.type
    addresses = access(issue, operands[0], operation.space or Space.GENERIC, kind.size_bytes)
    wanted = 2 if operation.combine == "cas" else 1
    values = [issue.read(operand, kind) for operand in operands[1 : 1 + wanted]]
    issue.warp.cta.launch.tally.add("atomic_requests")
    if kind.is_float and operation.combine == "add":
        old = _float_rounds(issue, addresses, values[0])
    else:
        old = _in_turn(issue, addresses, values)
    issue.write(destination, old, extend_sign=kind.is_signed)


def _in_turn(issue: Issue, addresses: Lanes, values: list[Lanes]) -> Lanes:
    """Let the lanes change memory one after another; returns what each found."""
    kind = issue.step.operation.type
    change = ATOMIC[issue.step.operation.combine]
    storage = issue.warp.cta.launch.storage
    distinct = np.unique(addresses[issue.mask])
    found = storage.gather(distinct, kind.size_bytes)
    memory = dict(zip(distinct.tolist(), typed(found, kind).tolist(), strict=True))
    places = addresses.tolist()
    columns = [typed(value, kind).tolist() for value in values]
    old = [0] * 32
    for lane in lanes_of(issue.bits):
        old[lane] = memory[places[lane]]
        memory[places[lane]] = change(old[lane], *(column[lane] for column in columns))
    storage.scatter(distinct, _raw(memory.values(), kind))
    return _raw(old, kind)


def _raw(values: Iterable[int], kind: PtxType) -> Lanes:
    keep = (1 << kind.bits) - 1
    return np.array([value & keep for value in values], RAW[kind])


def _float_rounds(issue: Issue, addresses: Lanes, values: Lanes) -> Lanes:
    """Add floats: the first lane of every address, then the second of each, and so on."""
    kind = issue.step.operation.type
    storage = issue.warp.cta.launch.storage
    flushes = kind is PtxType.F32 and not _is_shared(issue, addresses)
    old = np.zeros(32, RAW[kind])
    pending = np.flatnonzero(issue.mask)
    while pending.size:
        first = np.sort(np.unique(addresses[pending], return_index=True)[1])
        lanes = pending[first]
        before = storage.gather(addresses[lanes], kind.size_bytes)
        storage.scatter(addresses[lanes], _float_add(kind, before, values[lanes], flushes=flushes))
        old[lanes] = before
        pending = np.delete(pending, first)
    return old


def _is_shared(issue: Issue, addresses: Lanes) -> bool:
    """Shared f32 adds keep subnormals, global ones flush them (sm_80)."""
    cta = issue.warp.cta
    offsets = addresses[issue.mask] - np.uint64(cta.shared_address)
    return bool((offsets < np.uint64(max(cta.shared_bytes, 1))).all())


def _float_add(kind: PtxType, old: Lanes, value: Lanes, *, flushes: bool) -> Lanes:
    if kind is PtxType.F16X2:
        halves = rounding.add(F16, "rn", old.view(U16), value.view(U16))
        return np.ascontiguousarray(halves).view(old.dtype)
    fmt = {PtxType.F16: F16, PtxType.F32: F32, PtxType.F64: DOUBLE}[kind]
    if not flushes:
        return rounding.add(fmt, "rn", old, value)
    total = rounding.add(fmt, "rn", formats.flush(fmt, old), formats.flush(fmt, value))
    return formats.flush(fmt, total)


def exch(old: int, b: int) -> int:
    """Exchange."""
    del old
    return b


def cas(old: int, compare: int, value: int) -> int:
    """Exchange if equal."""
    return value if old == compare else old


def inc(old: int, limit: int) -> int:
    """Count up, to zero past the limit."""
    return 0 if old >= limit else old + 1


def dec(old: int, limit: int) -> int:
    """Count down, to the limit from zero or from above it."""
    return limit if old == 0 or old > limit else old - 1


ATOMIC: Final[Mapping[str, Callable[..., int]]] = {
    "add": operator.add,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "exch": exch,
    "cas": cas,
    "inc": inc,
    "dec": dec,
    "min": min,
    "max": max,
}
"""Operation to its function of memory and operands, in integers; the width cuts the result."""
