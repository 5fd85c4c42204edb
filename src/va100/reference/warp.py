"""One warp: groups of lanes, which of them runs next, where they meet again.

Lanes are independent threads, as PTX has them since sm_70.  A *group* is lanes at the same
instruction of the same frame.  The group that is deepest in calls and first in the text runs,
so that the others catch up with it and merge; one that has waited too long is let run for a
while, so that no lane spins for ever on what another lane of its warp would do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from va100.errors import DeviceFault
from va100.gpu.watch import Watcher
from va100.reference.code import Step
from va100.reference.frame import Frame, Group
from va100.reference.issue import Issue
from va100.reference.lanes import LANE, Lanes, lane_mask, mask_bits
from va100.reference.moment import Moment
from va100.work import WARP_SIZE

if TYPE_CHECKING:
    from va100.reference.cta import Cta

PATIENCE: Final = 300
"""Steps a ready group waits for others before its turn comes."""
TURN: Final = 200
"""Steps such a turn lasts."""


@dataclass(slots=True)
class Rendezvous:
    """Lanes that wait for the other members of a mask at the same kind of instruction."""

    members: int
    complete: Callable[[list[Issue]], None]
    issues: list[Issue] = field(default_factory=list)

    @property
    def arrived(self) -> int:
        """Mask of the lanes that wait."""
        bits = 0
        for issue in self.issues:
            bits |= issue.bits
        return bits


class Warp:
    """Lanes of a CTA, 32 of them or, at the end of a CTA, fewer."""

    def __init__(self, cta: Cta, index: int, all_bits: int) -> None:
        self.cta = cta
        self.index = index
        self.all_bits = all_bits
        self.live = all_bits
        launch = cta.launch
        threads = np.uint64(index * WARP_SIZE) + LANE.astype(np.uint64)
        self.local_bases: Lanes = np.uint64(cta.local_address) + threads * np.uint64(
            launch.local_stride
        )
        zero = np.zeros(WARP_SIZE, np.uint64)
        entry = launch.code.entry
        frame = Frame(entry, zero, zero + np.uint64(entry.frame_bytes))
        self.ready = [Group(frame, 0, all_bits)]
        self.rendezvous: dict[tuple[str, int], Rendezvous] = {}
        self.steps = 0
        self.slept = 0
        """Steps that virtual time has gone further, by ``nanosleep``."""
        self._ran: dict[Group, int] = {}
        self._turn: Group | None = None
        self._turn_ends = 0

    def run(self, budget: int) -> int:
        """Take up to ``budget`` steps; returns how many were taken."""
        start = self.steps
        end = start + budget
        while self.ready and self.steps < end:
            group = self.ready[0] if len(self.ready) == 1 else self._choose()
            self.steps += 1
            self._step(group)
        return self.steps - start

    # ------------------------------------------------------------ groups

    def detach(self, group: Group, bits: int) -> Group:
        """Take lanes out of a ready group; the result is not ready."""
        if bits == group.bits:
            self.ready.remove(group)
            return group
        group.bits &= ~bits
        return Group(group.frame, group.pc, bits)

    def resume(self, group: Group) -> None:
        """Make a group ready."""
        group.waits = ""
        self._ran[group] = self.steps
        self.ready.append(group)

    def split(self, group: Group, bits: int, pc: int) -> None:
        """Send some lanes of a ready group elsewhere in its frame."""
        if bits == group.bits:
            group.pc = pc
            return
        moved = self.detach(group, bits)
        moved.pc = pc
        self.resume(moved)

    def leave(self, group: Group, bits: int) -> None:
        """End lanes of a ready group."""
        self.detach(group, bits)
        self.live &= ~bits
        for key in list(self.rendezvous):
            self._try_complete(key)
        self.cta.barriers.recheck()

    # ------------------------------------------------------------ meeting

    def meet(self, issue: Issue, members: int, complete: Callable[[list[Issue]], None]) -> None:
        """Complete a collective when every live member has come; wait until then.

        Lanes meet by the text of the instruction and the mask, wherever in the code they are.
        """
        needed = members & self.live
        if issue.bits & needed == needed:
            complete([issue])
            return
        key = (issue.step.operation.text, members)
        group = self.detach(issue.group, issue.bits)
        group.waits = f"{issue.step.instruction.op} with mask 0x{members:08x}"
        waiting = Issue(self, group, issue.step, issue.bits)
        self.rendezvous.setdefault(key, Rendezvous(members, complete)).issues.append(waiting)
        self._try_complete(key)

    def _try_complete(self, key: tuple[str, int]) -> None:
        meeting = self.rendezvous.get(key)
        if meeting is None:
            return
        needed = meeting.members & self.live
        if meeting.arrived & needed != needed:
            return
        del self.rendezvous[key]
        for issue in meeting.issues:
            self.resume(issue.group)
        meeting.complete(meeting.issues)

    # ------------------------------------------------------------ stepping

    def _step(self, group: Group) -> None:
        steps = group.frame.code.steps
        if group.pc >= len(steps):
            self.cta.launch.fall_off(self, group)
            return
        step = steps[group.pc]
        bits = group.bits
        if step.guard is not None:
            bits &= self._guard(group.frame, step)
        watcher = self.cta.launch.watcher
        if watcher is not None:
            self._step_watched(watcher, group, step, bits)
            return
        group.pc += 1
        self.cta.launch.tally.count(step, bits)
        if bits:
            step.evaluate(Issue(self, group, step, bits))

    def _step_watched(self, watcher: Watcher, group: Group, step: Step, bits: int) -> None:
        moment = Moment(self, group, step, bits)
        watcher.before(moment)
        group.pc += 1
        self.cta.launch.tally.count(step, bits)
        try:
            if bits:
                step.evaluate(Issue(self, group, step, bits))
        except DeviceFault as error:
            group.pc = step.index  # they have not got past it
            watcher.faulted(moment, error)
            raise
        watcher.after(moment)

    def _guard(self, frame: Frame, step: Step) -> int:
        guard = step.guard
        assert guard is not None
        value = frame.registers.get(guard.register)
        bits = 0 if value is None else mask_bits(value)
        return ~bits if guard.negated else bits

    def _choose(self) -> Group:
        """The next group to run, after merging those that have met."""
        self._merge()
        if self._turn is not None and self._turn in self.ready and self.steps < self._turn_ends:
            return self._turn
        self._turn = None
        oldest = min(self.ready, key=self._last_ran)
        if self.steps - self._last_ran(oldest) > PATIENCE:
            self._turn, self._turn_ends = oldest, self.steps + TURN
            chosen = oldest
        else:
            chosen = min(self.ready, key=_order)
        self._ran[chosen] = self.steps
        return chosen

    def _last_ran(self, group: Group) -> int:
        return self._ran.setdefault(group, self.steps)

    def _merge(self) -> None:
        at: dict[tuple[int, int], Group] = {}
        for group in self.ready:
            key = (id(group.frame), group.pc)
            first = at.setdefault(key, group)
            if first is not group:
                first.bits |= group.bits
        if len(at) < len(self.ready):
            self.ready = list(at.values())
            self._ran = {g: self._ran[g] for g in self.ready if g in self._ran}

    # ------------------------------------------------------------ reporting

    def thread(self, lane: int) -> tuple[int, int, int]:
        """``tid`` of a lane."""
        block = self.cta.launch.config.block
        flat = self.index * WARP_SIZE + lane
        return (flat % block.x, flat // block.x % block.y, flat // (block.x * block.y))

    def place(self, frame: Frame, step: Step, lane: int) -> dict[str, Any]:
        """The facts of a fault."""
        flow = frame.code.flow
        location = flow.locations[step.index]
        launch = self.cta.launch
        file = launch.module.ptx.files.get(location.file, "") if location else ""
        source = launch.module.ptx.source
        return {
            "kernel": launch.code.entry.function.name,
            "cta": tuple(self.cta.index),
            "thread": self.thread(lane),
            "file": file,
            "line": location.line if location and file else step.line,
            "instruction": source[slice(*step.instruction.span)].strip(),
        }


def _order(group: Group) -> tuple[int, int]:
    return (-group.frame.depth, group.pc)


def lowest(bits: int) -> int:
    """Index of the lowest lane of a mask."""
    return (bits & -bits).bit_length() - 1


def merged(issues: list[Issue], values: list[Lanes]) -> Lanes:
    """Put together what several groups read, each in its own lanes."""
    result = values[0]
    for issue, value in zip(issues[1:], values[1:], strict=True):
        result = np.where(lane_mask(issue.bits), value, result)
    return result
