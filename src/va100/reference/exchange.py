"""Exchanges and votes among the lanes of a warp.

All but ``activemask`` and the forms without ``.sync`` wait for the lanes their mask names,
wherever those are in the code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from va100.ptx.isa.form import Operation
from va100.ptx.program import Operand, Pair
from va100.ptx.types import PtxType
from va100.reference.barrier import by_members
from va100.reference.issue import Issue
from va100.reference.lanes import LANE, PRED, U32, Lanes, full, lane_mask, lanes_of, typed
from va100.reference.warp import merged


def evaluate_exchange(issue: Issue) -> None:
    """Evaluate one instruction of the family."""
    if issue.step.operation.opcode == "activemask":
        issue.write(issue.step.operands[0], full(issue.bits, U32))
        return
    if "sync" not in issue.step.operation.modifiers:
        _complete([issue])
        return
    for part, members in by_members(issue, issue.step.operands[-1]):
        issue.warp.meet(part, members, _complete)


def _complete(issues: list[Issue]) -> None:
    """Every member has come: exchange, and write what each receives."""
    operation = issues[0].step.operation
    present = sum(issue.bits for issue in issues)
    inputs = [_inputs(issue) for issue in issues]
    together = [merged(issues, [values[i] for values in inputs]) for i in range(len(inputs[0]))]
    results = EXCHANGE[operation.opcode](operation, present, *together)
    for issue in issues:
        for destination, result in zip(_destinations(issue), results, strict=False):
            issue.write(destination, result)


def _inputs(issue: Issue) -> list[Lanes]:
    """Source operands but for the mask, each in the type the instruction gives it."""
    operation = issue.step.operation
    sources = issue.step.operands[1 : -1 if "sync" in operation.modifiers else None]
    if operation.opcode == "vote":
        return [issue.predicate(sources[0])]
    first = issue.read(sources[0], operation.type)
    return [first, *(issue.read(operand, PtxType.B32) for operand in sources[1:])]


def _destinations(issue: Issue) -> tuple[Operand | None, ...]:
    destination = issue.step.operands[0]
    if isinstance(destination, Pair):
        return destination.first, destination.second
    return (destination,)


def shfl(operation: Operation, present: int, a: Lanes, b: Lanes, c: Lanes) -> tuple[Lanes, Lanes]:
    """Copy from another lane of the segment; from an absent one, unspecified in PTX, own value."""
    lane = LANE.astype(np.int64)
    offset = (b & np.uint32(31)).astype(np.int64)
    clamp = (c & np.uint32(31)).astype(np.int64)
    segment = ((c >> np.uint32(8)) & np.uint32(31)).astype(np.int64)
    lowest = lane & segment
    highest = lowest | (clamp & ~segment & 31)
    source, inside = SHUFFLES[operation.combine](lane, offset, lowest, highest, segment)
    source = np.where(inside, source, lane) & 31
    taken = np.where(lane_mask(present)[source], source, lane)
    return a[taken], inside


def _up(lane: Lanes, offset: Lanes, low: Lanes, high: Lanes, segment: Lanes) -> tuple[Lanes, Lanes]:
    del low, segment
    return lane - offset, lane - offset >= high


def _down(
    lane: Lanes, offset: Lanes, low: Lanes, high: Lanes, segment: Lanes
) -> tuple[Lanes, Lanes]:
    del low, segment
    return lane + offset, lane + offset <= high


def _butterfly(
    lane: Lanes, offset: Lanes, low: Lanes, high: Lanes, segment: Lanes
) -> tuple[Lanes, Lanes]:
    del low, segment
    return lane ^ offset, lane ^ offset <= high


def _index(
    lane: Lanes, offset: Lanes, low: Lanes, high: Lanes, segment: Lanes
) -> tuple[Lanes, Lanes]:
    del lane
    source = low | (offset & ~segment)
    return source, source <= high


SHUFFLES: Final[Mapping[str, Callable[..., tuple[Lanes, Lanes]]]] = {
    "up": _up,
    "down": _down,
    "bfly": _butterfly,
    "idx": _index,
}
"""Mode of ``shfl`` to source lane and whether it is in range."""


def vote(operation: Operation, present: int, flag: Lanes) -> tuple[Lanes]:
    """Vote: all, any, all alike, or the ballot itself."""
    yes = sum(1 << lane for lane in lanes_of(present) if flag[lane])
    results = {
        "all": full(int(yes == present), PRED),
        "any": full(int(yes != 0), PRED),
        "uni": full(int(yes in (0, present)), PRED),
        "ballot": full(yes, U32),
    }
    return (results[operation.combine],)


def match(operation: Operation, present: int, a: Lanes) -> tuple[Lanes, ...]:
    """Masks of the lanes with the same value; ``all`` also says whether all have it."""
    lanes = lanes_of(present)
    if operation.combine == "all":
        alike = len({int(a[lane]) for lane in lanes}) == 1
        return full(present if alike else 0, U32), full(int(alike), PRED)
    result = np.zeros(32, np.uint32)
    for lane in lanes:
        result[lane] = sum(1 << other for other in lanes if a[other] == a[lane])
    return (result,)


def redux(operation: Operation, present: int, a: Lanes) -> tuple[Lanes]:
    """Reduce over the lanes; sums wrap."""
    values = typed(a, operation.type)[lane_mask(present)]
    result = REDUCTIONS[operation.combine](values)
    return (full(int(result), U32),)


def _sum(values: Lanes) -> int:
    return int(values.astype(np.int64).sum())


def _min(values: Lanes) -> int:
    return int(values.min())


def _max(values: Lanes) -> int:
    return int(values.max())


def _and(values: Lanes) -> int:
    return int(np.bitwise_and.reduce(values))


def _or(values: Lanes) -> int:
    return int(np.bitwise_or.reduce(values))


def _xor(values: Lanes) -> int:
    return int(np.bitwise_xor.reduce(values))


REDUCTIONS: Final[Mapping[str, Callable[[Lanes], int]]] = {
    "add": _sum,
    "min": _min,
    "max": _max,
    "and": _and,
    "or": _or,
    "xor": _xor,
}
"""Operation of ``redux`` to its function."""

EXCHANGE: Final[Mapping[str, Callable[..., tuple[Lanes, ...]]]] = {
    "shfl": shfl,
    "vote": vote,
    "match": match,
    "redux": redux,
}
"""Opcode to its function of the lanes present and their operands."""
