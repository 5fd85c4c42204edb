"""Asynchronous copies to shared memory, and ``mbarrier`` objects.

A copy is complete when it has been issued.  That is legal: PTX orders the copies of a thread
neither among themselves nor with its later instructions, so that they may take place at any time
up to the wait.  A program that could tell would read the destination, or write the source, between
the issue and the wait, which is a race; and the zeros of what is not read are part of the copy.
Waiting is therefore nothing, and a copy's arrival on an ``mbarrier`` is due at once.

What a checker of races needs goes through three functions: :func:`copy` opens an access in
nobody's order, :func:`commit` and :func:`wait` say which copies are ordered before what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from va100.errors import DeviceFault, IllegalInstruction
from va100.ptx.program import Immediate, Operand
from va100.ptx.types import PtxType, Space
from va100.reference.issue import Issue
from va100.reference.lanes import U32, U64, Lanes, full, lanes_of
from va100.reference.memory import access, count
from va100.work import WARP_SIZE

MAX_COUNT: Final = (1 << 20) - 1
"""Most arrivals a phase of an ``mbarrier`` may wait for."""
_OBJECT_BYTES: Final = 8


def evaluate_async(issue: Issue) -> None:
    """Evaluate one instruction of the family."""
    modifiers = issue.step.operation.modifiers
    table = MBARRIER if issue.step.operation.opcode == "mbarrier" else COPY
    next(act for name, act in table.items() if name in modifiers)(issue)


# ---------------------------------------------------------------- copies


def copy(issue: Issue) -> None:
    """Copy 4, 8 or 16 bytes a lane from global to shared memory; zeros for what is not read."""
    destination, source, size = issue.step.operands[:3]
    assert isinstance(size, Immediate)
    to = access(issue, destination, Space.SHARED, size.value)
    start = issue.address(source, Space.GLOBAL)
    wanted = np.minimum(_bytes_read(issue, size.value), np.uint32(size.value))
    data = np.zeros((WARP_SIZE, size.value), np.uint8)
    storage = issue.warp.cta.launch.storage
    for bytes_read in np.unique(wanted[issue.mask]).tolist():
        if not bytes_read:
            continue  # nothing is read, so any address will do
        part = _where(issue, wanted == bytes_read)
        part.check(start, Space.GLOBAL, bytes_read, size.value)
        count(part, start, Space.GLOBAL, bytes_read, store=False)
        for offset in range(bytes_read):
            at = start[part.mask] + np.uint64(offset)
            data[part.mask, offset] = storage.gather(at, 1)
    count(issue, to, Space.SHARED, size.value, store=True)
    for offset in range(0, size.value, 4):
        word = np.ascontiguousarray(data[:, offset : offset + 4]).view(np.uint32)[:, 0]
        storage.scatter(to[issue.mask] + np.uint64(offset), word[issue.mask])


def _bytes_read(issue: Issue, size: int) -> Lanes:
    """Bytes each lane reads: all, as many as an operand says, or none where a predicate holds."""
    operand = optional_operand(issue)
    if operand is None:
        return full(size, U32)
    if "ca" in issue.step.operation.modifiers and _is_predicate(issue, operand):
        return np.where(issue.predicate(operand), np.uint32(0), np.uint32(size))
    return issue.read(operand, PtxType.U32)


def optional_operand(issue: Issue) -> Operand | None:
    """The operand that says how much is read; a cache policy is not it."""
    operands = issue.step.operands
    hinted = "L2::cache_hint" in issue.step.operation.modifiers
    return operands[3] if len(operands) > 3 + hinted else None


def _is_predicate(issue: Issue, operand: Operand) -> bool:
    name = getattr(getattr(operand, "operand", operand), "name", "")
    return issue.frame.code.flow.registers.get(name) is PtxType.PRED


def commit(issue: Issue) -> None:
    """Close the group of the copies issued since the last one; they are complete already."""


def wait(issue: Issue) -> None:
    """Wait for groups of copies; they are complete already."""


def arrive_after_copies(issue: Issue) -> None:
    """Arrive when the thread's earlier copies are complete, which they are.

    Without ``.noinc`` the arrival is added to the count beforehand, so that nothing changes.
    """
    noinc = "noinc" in issue.step.operation.modifiers

    def act(state: Phase) -> Phase:
        if noinc:
            return state.arrived(1)
        if state.pending >= MAX_COUNT:
            raise ValueError(f"more than {MAX_COUNT} arrivals are pending")
        return state

    _each_lane(issue, issue.step.operands[0], act)


COPY: Final[Mapping[str, Callable[[Issue], None]]] = {
    "mbarrier": arrive_after_copies,
    "commit_group": commit,
    "wait_group": wait,
    "wait_all": wait,
    "async": copy,
}
"""Modifier of ``cp`` to its function; the first that is there."""


# ---------------------------------------------------------------- mbarrier objects


@dataclass(frozen=True, slots=True)
class Phase:
    """An ``mbarrier`` object, which PTX leaves opaque.

    Its 64 bits are, from the lowest: 20 of arrivals still pending, 20 of arrivals the next phase
    will wait for, 23 of a count of phases, and one that says that there is an object.
    """

    pending: int
    expected: int
    number: int

    @classmethod
    def of(cls, word: int) -> Phase:
        """Read the object's bits."""
        if not word >> 63:
            raise ValueError("there is no mbarrier: it was not initialised, or was invalidated")
        return cls(word & MAX_COUNT, word >> 20 & MAX_COUNT, word >> 40 & 0x7FFFFF)

    @property
    def word(self) -> int:
        """The object's bits."""
        return self.pending | self.expected << 20 | self.number << 40 | 1 << 63

    def arrived(self, arrivals: int, *, drop: bool = False, completes: bool = True) -> Phase:
        """The object after some arrivals; dropped ones are not waited for again."""
        if not 0 < arrivals <= self.pending:
            raise ValueError(f"{arrivals} arrivals, where {self.pending} are pending")
        expected = self.expected - arrivals * drop
        pending = self.pending - arrivals
        if pending:
            return Phase(pending, expected, self.number)
        if not completes:
            raise ValueError("an arrival with .noComplete completes the phase")
        return Phase(expected, expected, (self.number + 1) & 0x7FFFFF)


def init(issue: Issue) -> None:
    """Make an object that waits for a number of arrivals."""
    counts = issue.read(issue.step.operands[1], PtxType.U32)
    wrong = issue.mask & ((counts == 0) | (counts > MAX_COUNT))
    if wrong.any():
        lane = int(np.flatnonzero(wrong)[0])
        raise _broken(issue, lane, f"an mbarrier waits for 1 to {MAX_COUNT}, not {counts[lane]}")
    words = [Phase(n, n, 0).word if 0 < n <= MAX_COUNT else 0 for n in counts.tolist()]
    _store(issue, _addresses(issue, issue.step.operands[0]), np.array(words, np.uint64))


def inval(issue: Issue) -> None:
    """Give the object's memory back to other uses."""
    at = _addresses(issue, issue.step.operands[0])
    _each_lane(issue, issue.step.operands[0], _same)
    _store(issue, at, full(0, U64))


def arrive(issue: Issue) -> None:
    """Arrive, once or as often as an operand says; gives the object as it was before."""
    destination, address = issue.step.operands[:2]
    modifiers = issue.step.operation.modifiers
    counts = [1] * WARP_SIZE
    if "noComplete" in modifiers:
        counts = issue.read(issue.step.operands[2], PtxType.U32).tolist()
    drop = "arrive_drop" in modifiers
    completes = "noComplete" not in modifiers
    turn = iter(lanes_of(issue.bits))

    def act(state: Phase) -> Phase:
        return state.arrived(counts[next(turn)], drop=drop, completes=completes)

    issue.write(destination, _each_lane(issue, address, act))


def test_wait(issue: Issue) -> None:
    """Whether the phase of a state, or the one with a parity, is complete."""
    destination, address, operand = issue.step.operands
    found = _each_lane(issue, address, _same)
    if "parity" in issue.step.operation.modifiers:
        parity = issue.read(operand, PtxType.U32) & np.uint32(1)
        done = (found >> np.uint64(40)) & np.uint64(1) != parity
    else:
        state = issue.read(operand, PtxType.B64)
        done = ((found ^ state) >> np.uint64(40)) & np.uint64(0x7FFFFF) != 0
    issue.write(destination, done)


def pending_count(issue: Issue) -> None:
    """Arrivals that were pending in a state."""
    destination, state = issue.step.operands
    issue.write(destination, issue.read(state, PtxType.B64) & np.uint64(MAX_COUNT))


MBARRIER: Final[Mapping[str, Callable[[Issue], None]]] = {
    "init": init,
    "inval": inval,
    "arrive": arrive,
    "arrive_drop": arrive,
    "test_wait": test_wait,
    "pending_count": pending_count,
}
"""Modifier of ``mbarrier`` to its function."""


def _same(state: Phase) -> Phase:
    return state


def _each_lane(issue: Issue, address: Operand | None, act: Callable[[Phase], Phase]) -> Lanes:
    """Let the lanes change their objects one after another; returns what each found."""
    at = _addresses(issue, address)
    storage = issue.warp.cta.launch.storage
    found = np.zeros(WARP_SIZE, np.uint64)
    for lane in lanes_of(issue.bits):
        place = at[lane : lane + 1]
        found[lane] = storage.gather(place, _OBJECT_BYTES)[0]
        try:
            state = act(Phase.of(int(found[lane])))
        except ValueError as error:
            raise _broken(issue, lane, str(error)) from None
        storage.scatter(place, np.array([state.word], np.uint64))
    return found


def _addresses(issue: Issue, operand: Operand | None) -> Lanes:
    """Where the objects are; a generic address must lie in shared memory."""
    space = issue.step.operation.space or Space.GENERIC
    generic = issue.address(operand, space)
    issue.check(generic, Space.SHARED, _OBJECT_BYTES)
    return generic


def _store(issue: Issue, at: Lanes, words: Lanes) -> None:
    issue.warp.cta.launch.storage.scatter(at[issue.mask], words[issue.mask])


def _broken(issue: Issue, lane: int, reason: str) -> DeviceFault:
    return IllegalInstruction(reason, **issue.place(lane))


def _where(issue: Issue, condition: Lanes) -> Issue:
    bits = sum(1 << lane for lane in lanes_of(issue.bits) if condition[lane])
    return Issue(issue.warp, issue.group, issue.step, bits)
