"""Accesses that can be checked together, before the first of them.

Unrolled loops touch many constant offsets from one register.  In the converged world one check
of the whole span serves them all; if it fails, the block runs in the masked world, which checks
each access by itself and blames the right one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from va100.gpu.arena import GRANULE_SHIFT
from va100.jit.lattice import Shape
from va100.ptx import effects
from va100.ptx.cfg import FlowGraph
from va100.ptx.isa.form import Operation
from va100.ptx.program import Address, Instruction, Register, Vector
from va100.ptx.types import Space
from va100.work import WARP_SIZE

_WIDEST_GLOBAL: Final = 4 << GRANULE_SHIFT
"""Span up to which every granule of a group in global memory is looked at."""


@dataclass(slots=True)
class CheckGroup:
    """Accesses at constant offsets from one register."""

    register: str
    space: Space
    low: int
    """Smallest offset from the register's base, lanes included."""
    high: int
    """End of the furthest access, likewise."""
    align: int
    """Largest access of one lane, in bytes; all offsets are multiples of their own."""
    write: bool
    members: list[int]


def check_groups(flow: FlowGraph, shapes: Mapping[str, Shape]) -> dict[int, CheckGroup]:
    """Groups of two accesses or more, by the index of their first."""
    found: dict[int, CheckGroup] = {}
    for block in flow.blocks:
        open_groups: dict[tuple[str, Space], CheckGroup] = {}
        for index in range(block.start, block.end):
            instruction, operation = flow.instructions[index], flow.operations[index]
            member = _member(instruction, operation, shapes, index)
            if member is not None:
                _join(open_groups, member, found)
            if effects.is_barrier(operation) or operation.opcode == "call":
                # F may be entered at a barrier, past the check; a call may free memory.
                for group in open_groups.values():
                    _close(group, found)
                open_groups = {}
            for name in effects.writes(instruction, operation):
                for key in [k for k in open_groups if k[0] == name]:
                    _close(open_groups.pop(key), found)
        for group in open_groups.values():
            _close(group, found)
    return found


def _member(
    instruction: Instruction, operation: Operation, shapes: Mapping[str, Shape], index: int
) -> CheckGroup | None:
    if operation.opcode not in ("ld", "st") or instruction.guard is not None:
        return None
    space = operation.space or Space.GENERIC
    if space not in (Space.SHARED, Space.GLOBAL, Space.GENERIC):
        return None
    write = operation.opcode == "st"
    address = instruction.operands[0 if write else 1]
    if not isinstance(address, Address) or not isinstance(address.base, Register):
        return None
    shape = shapes.get(address.base.name)
    if shape is None or shape.varying:
        return None
    data = instruction.operands[1 if write else 0]
    size = operation.type.size_bytes * (len(data.elements) if isinstance(data, Vector) else 1)
    offsets = shape.offsets or (0,) * WARP_SIZE
    if any((v + address.offset) % size for v in offsets):
        return None
    low, high = min(offsets) + address.offset, max(offsets) + address.offset + size
    return CheckGroup(address.base.name, space, low, high, size, write, [index])


def _join(
    groups: dict[tuple[str, Space], CheckGroup], member: CheckGroup, found: dict[int, CheckGroup]
) -> None:
    key = (member.register, member.space)
    group = groups.get(key)
    if group is None:
        groups[key] = member
        return
    low, high = min(group.low, member.low), max(group.high, member.high)
    if member.space is not Space.SHARED and high - low > _WIDEST_GLOBAL:
        _close(group, found)
        groups[key] = member
        return
    group.low, group.high = low, high
    group.align = max(group.align, member.align)
    group.write = group.write or member.write
    group.members += member.members


def _close(group: CheckGroup, found: dict[int, CheckGroup]) -> None:
    if len(group.members) > 1:
        found[group.members[0]] = group
