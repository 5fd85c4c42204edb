"""Activations of functions, and groups of lanes that are at the same place in one.

Data only; :mod:`.warp` moves groups, :mod:`.control` makes and leaves frames.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from va100.reference.code import Code
from va100.reference.lanes import Lanes

if TYPE_CHECKING:
    from va100.reference.issue import Issue


@dataclass(slots=True, eq=False)
class Frame:
    """One activation of a function by the lanes that called it together.

    ``base`` is each lane's offset of the frame in its local memory, ``top`` the first free byte
    after it.  ``call`` is the issued call it returns to, ``None`` for a kernel.
    """

    code: Code
    base: Lanes
    top: Lanes
    registers: dict[str, Lanes] = field(default_factory=dict)
    parent: Frame | None = None
    return_pc: int = 0
    call: Issue | None = None
    depth: int = 0


@dataclass(slots=True, eq=False)
class Group:
    """Lanes at the same instruction of the same frame, able to issue together."""

    frame: Frame
    pc: int
    bits: int
    waits: str = ""
    """Why the group may not run, for a deadlock's message; empty when it may."""
