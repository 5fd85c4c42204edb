"""Barriers of a CTA, warp-wide convergence, memory fences.

Evaluates the BARRIER family.  Memory is sequentially consistent here, so fences do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from va100.errors import Deadlock
from va100.ptx.program import Operand
from va100.ptx.types import PtxType
from va100.reference.issue import Issue
from va100.reference.lanes import PRED, U32, Lanes, full, lanes_of
from va100.work import WARP_SIZE

if TYPE_CHECKING:
    from va100.reference.cta import Cta

BARRIER_COUNT: Final = 16


def evaluate_barrier(issue: Issue) -> None:
    """Evaluate one instruction of the family."""
    BARRIER[issue.step.operation.opcode](issue)


@dataclass(slots=True)
class Barrier:
    """One barrier in one phase."""

    count: int = 0
    """Threads it waits for; 0 for all of the CTA."""
    arrived: dict[int, int] = field(default_factory=dict)
    """Warp to the lanes that have come."""
    waiting: list[tuple[Issue, Lanes | None]] = field(default_factory=list)
    """Issues that wait, with the predicate of a reduction."""


class Barriers:
    """The sixteen barriers of a CTA."""

    def __init__(self, cta: Cta) -> None:
        self._cta = cta
        self._barriers: dict[int, Barrier] = {}

    def arrive(self, issue: Issue, index: int, count: int) -> None:
        """Arrive without waiting."""
        self._arrive(issue, index, count)
        self._try_complete(index)

    def wait(self, issue: Issue, index: int, count: int, vote: Lanes | None = None) -> None:
        """Arrive and wait for the others."""
        barrier = self._arrive(issue, index, count)
        group = issue.warp.detach(issue.group, issue.bits)
        group.waits = f"barrier {index}"
        barrier.waiting.append((Issue(issue.warp, group, issue.step, issue.bits), vote))
        self._try_complete(index)

    def recheck(self) -> None:
        """Complete what no longer waits for anybody, after lanes have exited."""
        for index in list(self._barriers):
            self._try_complete(index)

    def waiting(self) -> list[Issue]:
        """Issues that wait at any barrier."""
        return [issue for barrier in self._barriers.values() for issue, _ in barrier.waiting]

    def deadlock(self) -> Deadlock:
        """Say which barrier waits for whom."""
        for index, barrier in self._barriers.items():
            if barrier.waiting:
                issue = barrier.waiting[0][0]
                came = sum(bits.bit_count() for bits in barrier.arrived.values())
                wanted = barrier.count or sum(w.live.bit_count() for w in self._cta.warps)
                return Deadlock(
                    f"barrier {index} waits for {wanted} threads, {came} arrived and no other can",
                    **issue.place(),
                )
        return Deadlock("no lane can go on")

    def _arrive(self, issue: Issue, index: int, count: int) -> Barrier:
        if not 0 <= index < BARRIER_COUNT:
            raise issue.broken(f"barrier {index} does not exist, there are {BARRIER_COUNT}")
        if count % WARP_SIZE:
            raise issue.broken(f"barrier thread count {count} is no multiple of {WARP_SIZE}")
        barrier = self._barriers.setdefault(index, Barrier())
        barrier.count = barrier.count or count
        warp = issue.warp.index
        barrier.arrived[warp] = barrier.arrived.get(warp, 0) | issue.bits
        return barrier

    def _try_complete(self, index: int) -> None:
        barrier = self._barriers.get(index)
        if barrier is None or not self._complete(barrier):
            return
        del self._barriers[index]
        _reduce(barrier)
        for issue, _ in barrier.waiting:
            issue.warp.resume(issue.group)

    def _complete(self, barrier: Barrier) -> bool:
        warps = self._cta.warps
        if not barrier.count:
            return all(w.live & ~barrier.arrived.get(w.index, 0) == 0 for w in warps)
        came = 0
        for index, bits in barrier.arrived.items():
            # A warp that has come as far as it exists counts whole, as the hardware counts.
            whole = warps[index].live & ~bits == 0
            came += WARP_SIZE if whole else bits.bit_count()
        return came >= barrier.count


def _reduce(barrier: Barrier) -> None:
    """Write the reduction of all votes into every waiting lane."""
    votes = [(issue, vote) for issue, vote in barrier.waiting if vote is not None]
    if not votes:
        return
    cast = np.concatenate([vote[issue.mask] for issue, vote in votes])
    operation = votes[0][0].step.operation
    for issue, _ in votes:
        issue.write(issue.step.operands[0], REDUCTIONS[operation.combine](cast))


def _popc(votes: Lanes) -> Lanes:
    return full(int(votes.sum()), U32)


def _and(votes: Lanes) -> Lanes:
    return full(int(votes.all()), PRED)


def _or(votes: Lanes) -> Lanes:
    return full(int(votes.any()), PRED)


REDUCTIONS: Final[Mapping[str, Callable[[Lanes], Lanes]]] = {
    "popc": _popc,
    "and": _and,
    "or": _or,
}
"""Operation of ``bar.red`` to its function of all participating predicates."""


def bar(issue: Issue) -> None:
    """``bar`` and ``barrier``, synchronising, arriving and reducing, of a CTA or a warp."""
    modifiers = issue.step.operation.modifiers
    if "warp" in modifiers:
        bar_warp_sync(issue)
    elif "red" in modifiers:
        bar_red(issue)
    elif "arrive" in modifiers:
        bar_arrive(issue)
    else:
        bar_sync(issue)


def bar_sync(issue: Issue) -> None:
    """Wait for the CTA, or for a number of threads."""
    operands = issue.step.operands
    for part, index, count in _by_barrier(issue, operands[0], _operand(operands, 1)):
        issue.warp.cta.barriers.wait(part, index, count)


def bar_arrive(issue: Issue) -> None:
    """Arrive and go on."""
    operands = issue.step.operands
    for part, index, count in _by_barrier(issue, operands[0], _operand(operands, 1)):
        issue.warp.cta.barriers.arrive(part, index, count)


def bar_red(issue: Issue) -> None:
    """Wait, and reduce a predicate over the threads of the barrier."""
    operands = issue.step.operands
    vote = issue.predicate(operands[-1])
    count = operands[2] if len(operands) > 3 else None
    for part, index, threads in _by_barrier(issue, operands[1], count):
        issue.warp.cta.barriers.wait(part, index, threads, vote)


def bar_warp_sync(issue: Issue) -> None:
    """Wait for the lanes of a mask."""
    for part, members in by_members(issue, issue.step.operands[0]):
        issue.warp.meet(part, members, _nothing)


def fence(issue: Issue) -> None:
    """Order memory; nothing to do."""


BARRIER: Final[Mapping[str, Callable[[Issue], None]]] = {
    "bar": bar,
    "barrier": bar,
    "membar": fence,
    "fence": fence,
}
"""Opcode to its function."""


def by_members(issue: Issue, operand: Operand | None) -> list[tuple[Issue, int]]:
    """Split the executing lanes by the member mask each gives.

    Raises
    ------
    IllegalInstruction
        A lane names a mask that it is not in.
    """
    masks = issue.read(operand, PtxType.B32)
    parts = []
    for members in np.unique(masks[issue.mask]).tolist():
        bits = _where(issue, masks == members)
        outside = bits & ~members
        if outside:
            lane = lanes_of(outside)[0]
            raise issue.broken(
                f"lane {lane} executes it with member mask 0x{members:08x}, which leaves it out"
            )
        parts.append((_part(issue, bits), members))
    return parts


def _by_barrier(
    issue: Issue, index: Operand | None, count: Operand | None
) -> list[tuple[Issue, int, int]]:
    """Split the executing lanes by barrier and thread count."""
    indices = issue.read(index, PtxType.B32)
    counts = full(0, U32) if count is None else issue.read(count, PtxType.B32)
    pairs = np.stack((indices, counts), axis=1)
    parts = []
    for which, threads in np.unique(pairs[issue.mask], axis=0).tolist():
        bits = _where(issue, (indices == which) & (counts == threads))
        parts.append((_part(issue, bits), which, threads))
    return parts


def _where(issue: Issue, condition: Lanes) -> int:
    return sum(1 << lane for lane in lanes_of(issue.bits) if condition[lane])


def _part(issue: Issue, bits: int) -> Issue:
    return issue if bits == issue.bits else Issue(issue.warp, issue.group, issue.step, bits)


def _operand(operands: tuple[Operand | None, ...], index: int) -> Operand | None:
    return operands[index] if index < len(operands) else None


def _nothing(issues: list[Issue]) -> None:
    """Meeting was all."""
