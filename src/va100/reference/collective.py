"""All 32 lanes of a warp at one ``.sync.aligned`` instruction.

Lanes wait here for each other; an instruction that not all of them execute is a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from va100.errors import IllegalInstruction
from va100.ptx.isa.form import Operation
from va100.ptx.isa.tiles import Tile
from va100.ptx.program import Operand, Vector
from va100.ptx.types import Space
from va100.reference.code import Step
from va100.reference.issue import Issue
from va100.reference.lanes import FULL, Lanes, unsigned_type
from va100.reference.warp import Warp, lowest, merged


class Collective:
    """A warp's lanes, one issue for each group in which they came."""

    def __init__(self, issues: list[Issue]) -> None:
        self._issues = issues
        first = issues[0]
        self.warp: Warp = first.warp
        self.step: Step = first.step
        self.whole = self.part(FULL)

    @property
    def operation(self) -> Operation:
        """What they execute."""
        return self.step.operation

    def part(self, bits: int) -> Issue:
        """Some of the lanes, for checks and faults."""
        first = self._issues[0]
        return Issue(first.warp, first.group, first.step, bits)

    def read(self, operand: Operand | None, dtype: np.dtype[Any]) -> Lanes:
        """Raw bits of a source operand in all lanes."""
        return merged(self._issues, [issue.read_raw(operand, dtype) for issue in self._issues])

    def registers(self, operand: Operand | None, tile: Tile) -> Lanes:
        """(registers, 32) raw bits of a vector operand."""
        elements = operand.elements if isinstance(operand, Vector) else (operand,)
        if len(elements) != tile.registers:
            raise self.whole.broken(
                f"operand {tile.role} has {tile.registers} registers, {len(elements)} are given"
            )
        return np.stack([self.read(e, unsigned_type(tile.register_bits)) for e in elements])

    def address(self, operand: Operand | None, space: Space) -> Lanes:
        """Generic addresses of a memory operand in all lanes."""
        return merged(self._issues, [issue.address(operand, space) for issue in self._issues])

    def write(self, operand: Operand | None, value: Lanes) -> None:
        """Write a result into all lanes of a register."""
        for issue in self._issues:
            issue.write(operand, value)

    def same(self, values: Lanes, what: str) -> int:
        """The value that every lane must give."""
        odd = np.flatnonzero(values != values[0])
        if odd.size:
            lane = int(odd[0])
            raise IllegalInstruction(
                f"lane {lane} gives {what} 0x{int(values[lane]):x}, lane 0 0x{int(values[0]):x}; "
                "all lanes must give the same",
                **self.whole.place(lane),
            )
        return int(values[0])


def collect(issue: Issue, complete: Callable[[Collective], None]) -> None:
    """Complete an instruction when all lanes have come; wait until then.

    Raises
    ------
    IllegalInstruction
        Some lanes do not execute it: their guard is false, or they have exited.
    """
    if issue.bits == FULL:
        complete(Collective([issue]))
        return
    if issue.group.bits & ~issue.bits:
        raise missing_lanes(issue, issue.bits)

    def arrived(issues: list[Issue]) -> None:
        bits = 0
        for one in issues:
            bits |= one.bits
        if bits != FULL or any(one.step is not issues[0].step for one in issues):
            raise missing_lanes(issues[0], issues[0].bits if bits == FULL else bits)
        complete(Collective(issues))

    issue.warp.meet(issue, FULL, arrived)


def missing_lanes(issue: Issue, bits: int) -> IllegalInstruction:
    """The fault of a warp of which only some lanes execute a ``.aligned`` instruction."""
    return IllegalInstruction(
        f"{issue.step.operation.text} needs all 32 lanes of the warp; lanes 0x{bits:08x} execute "
        f"it, lane {lowest(~bits & FULL)} does not",
        **issue.place(lowest(bits)),
    )
