"""What a kernel tells of its memory accesses in CTAs that are observed.

The lowering stays as it is; a call that is jumped over elsewhere stands before it.  What the
accesses amount to in sectors, bank conflicts and hits is found by ``native/exec/observe.cpp``,
and read by :mod:`va100.jit.observed`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from va100.jit import abi
from va100.jit.access import address_value, effective_space
from va100.jit.checked import elements, names_parameter
from va100.jit.checked_matrix import row_lanes, tile_place, tile_words
from va100.jit.context import Context
from va100.jit.emit import Value
from va100.jit.tiles import walk_of
from va100.ptx.isa.form import Operation
from va100.ptx.program import Immediate, Operand
from va100.ptx.types import Space

_LOAD, _STORE, _ATOMIC = range(3)
_PAST_L1: Final = frozenset({"cg", "cv"})
_ROW_BYTES = 16


@dataclass(frozen=True, slots=True)
class _Told:
    """What stays constant of an access."""

    space: Space
    kind: int
    lane_bytes: int
    past_l1: bool = False

    @property
    def bits(self) -> int:
        """As the native core takes it apart."""
        code = abi.SPACE_CODES[self.space.value]
        return self.lane_bytes | code << 8 | self.kind << 11 | int(self.past_l1) << 13


def observe(c: Context, op: Operation) -> None:
    """Tell of the instruction at hand, if it accesses memory."""
    teller = _TELLERS.get(op.opcode)
    if teller is not None:
        teller(c, op)


def _load(c: Context, op: Operation) -> None:
    target, where = c.instruction.operands[:2]
    if op.space is not Space.PARAM or not names_parameter(where):
        _access(c, op, where, _LOAD, len(elements(target)))


def _store(c: Context, op: Operation) -> None:
    if op.space is not Space.PARAM:
        _access(c, op, c.instruction.operands[0], _STORE, len(elements(c.instruction.operands[1])))


def _atomic(c: Context, op: Operation) -> None:
    where = c.instruction.operands[1 if op.opcode == "atom" else 0]
    _access(c, op, where, _ATOMIC, op.vector)


def _access(c: Context, op: Operation, where: Operand | None, kind: int, count: int) -> None:
    space = effective_space(op)
    past_l1 = op.semantics not in ("", "weak") or not _PAST_L1.isdisjoint(op.modifiers)
    told = _Told(space, kind, op.type.size_bytes * count, past_l1)
    _tell(c, told, address_value(c, where, space), c.lanes)


def _copy(c: Context, op: Operation) -> None:
    """``cp.async``: a read of global memory, a write of shared memory."""
    if "global" not in op.modifiers:
        return
    target, source, size = c.instruction.operands[:3]
    if not isinstance(size, Immediate):
        return
    read = _Told(Space.GLOBAL, _LOAD, size.value, "cg" in op.modifiers)
    _tell(c, read, address_value(c, source, Space.GLOBAL), c.lanes)
    written = _Told(Space.SHARED, _STORE, size.value)
    _tell(c, written, address_value(c, target, Space.SHARED), c.lanes)


def _rows(c: Context, op: Operation) -> None:
    """``ldmatrix``: eight lanes name the rows of each matrix."""
    lanes = row_lanes(c, op)
    space = effective_space(op)
    address = address_value(c, c.instruction.operands[1], space)
    _tell(c, _Told(space, _LOAD, _ROW_BYTES), address, lanes)


def _tile(c: Context, op: Operation) -> None:
    """``wmma.load`` and ``wmma.store``: a request for each word of a lane."""
    if "mma" in op.modifiers:
        return
    space = effective_space(op)
    base, stride = tile_place(c, op, space)
    kind = _STORE if "store" in op.modifiers else _LOAD
    told = _Told(space, kind, walk_of(op).bits // 8)
    past = _if_observed(c)
    for addresses in tile_words(c, op, replace(base), replace(stride) if stride else None):
        _call(c, told, addresses, c.lanes)
    _go_on(c, past)


def _tell(c: Context, told: _Told, address: Value, lanes: str) -> None:
    past = _if_observed(c)
    _call(c, told, c.vector(replace(address)), lanes)
    _go_on(c, past)


def _if_observed(c: Context) -> str:
    """Begin what only observed CTAs do; what is computed there must not be kept."""
    tell, past = c.name("tell"), c.name("told")
    on = c.op(f"icmp ne i64 {c.field(abi.OBSERVED, 'i64')}, 0")
    c.line(f"br i1 {on}, label %{tell}, label %{past}, !prof !1")
    c.label(tell)
    return past


def _go_on(c: Context, past: str) -> None:
    c.line(f"br label %{past}")
    c.label(past)


def _call(c: Context, told: _Told, addresses: str, lanes: str) -> None:
    where = c.array("i64")
    c.line(f"store <32 x i64> {addresses}, ptr {where}, align 64")
    info = c.site | told.bits << 32
    c.declare("va_h_observe", "declare void {}(ptr, i64, i32, ptr) cold")
    c.line(f"call void @va_h_observe(ptr %w, i64 {info}, i32 {lanes}, ptr {where})")


_TELLERS: Final[Mapping[str, Callable[[Context, Operation], None]]] = {
    "ld": _load,
    "ldu": _load,
    "st": _store,
    "atom": _atomic,
    "red": _atomic,
    "cp": _copy,
    "ldmatrix": _rows,
    "wmma": _tile,
}
