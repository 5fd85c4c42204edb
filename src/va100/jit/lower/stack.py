"""Memory on a thread's stack: ``alloca``, ``stacksave``, ``stackrestore``.

Each lane has an end of its own, in a vector that only functions which allocate keep; a callee's
frame, which begins at one place for all lanes, starts above the highest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from va100.jit.context import Context
from va100.jit.emit import Value
from va100.ptx.isa.form import Operation
from va100.ptx.program import Immediate

_ALIGNMENT: Final = 8
_KIND: Final = "<32 x i64>"


def _end(c: Context) -> str:
    """Where each lane's stack ends."""
    return c.op(f"load {_KIND}, ptr %stack.end, align 64")


def _move(c: Context, end: str) -> None:
    if c.mask is not None:
        bools = c.mask_vector(c.lanes)
        end = c.op(f"select <32 x i1> {bools}, {_KIND} {end}, {_KIND} {_end(c)}")
    c.line(f"store {_KIND} {end}, ptr %stack.end, align 64")


def _lower_alloca(c: Context, op: Operation) -> None:
    destination, size, *alignment = c.instruction.operands
    at_least = alignment[0].value if alignment and isinstance(alignment[0], Immediate) else 1
    unit = max(at_least, _ALIGNMENT)
    past = c.op(f"add {_KIND} {_end(c)}, splat (i64 {unit - 1})")
    start = c.op(f"and {_KIND} {past}, splat (i64 {-unit})")
    wanted = c.vector(c.resized(c.read_sized(size, op.type), 64))
    _move(c, c.op(f"add {_KIND} {start}, {wanted}"))
    _give(c, op, destination, c.from_vector(start, 64))


def _lower_save(c: Context, op: Operation) -> None:
    _give(c, op, c.instruction.operands[0], c.from_vector(_end(c), 64))


def _lower_restore(c: Context, op: Operation) -> None:
    _move(c, c.vector(c.resized(c.read_sized(c.instruction.operands[0], op.type), 64)))


def _give(c: Context, op: Operation, destination: object, value: Value) -> None:
    c.write(destination, c.resized(value, op.type.bits))  # type: ignore[arg-type]


_LOWERINGS: Final[Mapping[str, Callable[[Context, Operation], None]]] = {
    "alloca": _lower_alloca,
    "stacksave": _lower_save,
    "stackrestore": _lower_restore,
}


def lower_stack(c: Context, op: Operation) -> None:
    """Stack instructions."""
    _LOWERINGS[op.opcode](c, op)
