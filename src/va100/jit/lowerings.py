"""Which lowering writes an instruction, and what it tells of itself first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from va100.jit.calls import lower_call
from va100.jit.checked import tell
from va100.jit.context import Context
from va100.jit.lower.asynchronous import lower_async
from va100.jit.lower.atomic import lower_atomic
from va100.jit.lower.compare import lower_compare
from va100.jit.lower.control import lower_barrier, lower_control
from va100.jit.lower.convert import lower_convert
from va100.jit.lower.floating import lower_floating
from va100.jit.lower.half import lower_half
from va100.jit.lower.integer import lower_integer
from va100.jit.lower.matrix import lower_matrix
from va100.jit.lower.memory import lower_memory
from va100.jit.lower.move import lower_move
from va100.jit.lower.stack import lower_stack
from va100.jit.lower.texture import lower_texture
from va100.jit.lower.video import lower_video
from va100.jit.lower.warp import lower_warp
from va100.jit.observe import observe
from va100.ptx.isa.form import Family, Operation

Lowering = Callable[[Context, Operation], None]


LOWERINGS: Final[Mapping[Family, Lowering]] = {
    Family.INTEGER: lower_integer,
    Family.LOGIC: lower_integer,
    Family.FLOATING: lower_floating,
    Family.HALF: lower_half,
    Family.COMPARE: lower_compare,
    Family.MOVE: lower_move,
    Family.CONVERT: lower_convert,
    Family.MEMORY: lower_memory,
    Family.ATOMIC: lower_atomic,
    Family.CONTROL: lower_control,
    Family.BARRIER: lower_barrier,
    Family.WARP: lower_warp,
    Family.ASYNC: lower_async,
    Family.VIDEO: lower_video,
    Family.MATRIX: lower_matrix,
    Family.TEXTURE: lower_texture,
    Family.STACK: lower_stack,
}


def lowering_of(c: Context, operation: Operation) -> Lowering:
    """The lowering of an operation, with what the checker and the counters want to be told."""
    lower = lower_call if operation.opcode == "call" else LOWERINGS[operation.form.family]
    if c.checked:
        lower = _told(tell, lower)
    if c.observed:
        lower = _told(observe, lower)
    return lower


def _told(told: Lowering, lower: Lowering) -> Lowering:
    """A lowering that tells of itself first."""

    def both(c: Context, op: Operation) -> None:
        told(c, op)
        lower(c, op)

    return both
