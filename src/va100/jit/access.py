"""Addresses of memory instructions, the checks before an access, and the shapes it may take.

Shared by loads, stores and atomics; what they do with the place is theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from va100.jit import abi
from va100.jit.context import Context
from va100.jit.emit import Poly, Value
from va100.jit.indexed import moved
from va100.jit.lattice import add, affine, constant, uniform
from va100.ptx.isa.form import Operation
from va100.ptx.program import Address, Operand, Symbol
from va100.ptx.types import Space

LANES: Final = 32
_COLD: Final = "!prof !1"
_HOT: Final = "!prof !2"


@dataclass(frozen=True, slots=True)
class Access:
    """One memory instruction: where, how much, how many elements a lane."""

    address: Value
    space: Space
    bits: int
    count: int
    write: bool
    volatile: bool

    @property
    def lane_bytes(self) -> int:
        """Bytes of one lane's access."""
        return self.bits // 8 * self.count


# ------------------------------------------------------------------ addresses


def effective_space(op: Operation) -> Space:
    """The space an access really goes to; kernel parameters and constants are global memory."""
    space = op.space or Space.GENERIC
    if space in (Space.CONST, Space.PARAM):
        return Space.GLOBAL
    return space


def address_value(c: Context, operand: Operand | None, space: Space = Space.GENERIC) -> Value:
    """Base plus offset, as 64 bits.

    A 32-bit address of shared memory may be extended apart from its offsets: were its sum to
    wrap, its smallest part would be beyond every window, and the check would refuse it.
    """
    if not isinstance(operand, Address):
        raise c.refuse(f"{operand!r} is no address")
    if operand.base is None:
        return c.constant(constant(64, operand.offset))
    if isinstance(operand.base, Symbol):
        value = c.address_of(Symbol(operand.base.name, operand.base.offset))
    else:
        narrow = c.read(operand.base, 64)
        if space is Space.SHARED and narrow.shape.bits == 32:
            return _window_address(c, narrow, operand.offset)
        value = c.resized(narrow, 64)
    return offset_by(c, value, operand.offset)


def _window_address(c: Context, value: Value, offset: int) -> Value:
    """The offset is added in 32 bits: compilers write ``[a+4]`` where ``a`` is below zero."""
    if not value.shape.affine:
        if offset:
            p = Poly(c, not value.shape.uniform)
            moved = p.op(f"add {p.integer(32)} {p.get(value)}, {p.const(32, offset)}")
            value = p.result(moved, uniform(32))
        return c.resized(value, 64)
    offsets = value.shape.offsets or ()
    least = min(offsets)
    step = least + offset
    low = c.op(f"add i32 {c.base(value)}, {step}") if step else c.base(value)
    # Lanes that do not act may lie below zero, the others then count up from there.
    shape = affine(64, tuple(v - least for v in offsets), -(2**31), 2**31 - 1, 0)
    return Value(shape, base=c.op(f"sext i32 {low} to i64"))


def offset_by(c: Context, value: Value, offset: int) -> Value:
    """Add a constant number of bytes."""
    if offset == 0:
        return value
    shape = add(value.shape, constant(64, offset))
    if shape.constant is not None:
        return c.constant(shape)
    if value.shape.varying:
        name = c.op(f"add <32 x i64> {c.vector(value)}, splat (i64 {offset})")
        further = value.indexed and moved(c, value.indexed, str(offset))
        return Value(shape, vector=name, indexed=further)
    return Value(shape, base=c.op(f"add i64 {c.base(value)}, {offset}"))


# ------------------------------------------------------------------ checks


def check(c: Context, access: Access, low: str, span: int) -> None:
    """Refuse an access of ``span`` bytes from scalar address ``low`` that leaves its space."""
    if c.mask is None and c.index in c.analysis.prechecked:
        return
    if access.space is Space.SHARED:
        bad = outside_window(c, low, span, access.lane_bytes)
        _refuse_if(c, access, bad, low, span)
        return
    slot = c.new_region()
    legal = _in_region(c, slot, low, access.lane_bytes)
    slow, done = c.name("slow"), c.name("ok")
    c.line(f"br i1 {legal}, label %{done}, label %{slow}, {_HOT}")
    c.label(slow)
    _call_check(c, access, low, span, slot)
    c.line(f"br label %{done}")
    c.label(done)


def _in_region(c: Context, slot: int, low: str, align: int) -> str:
    """Whether an aligned access lies in what the last one from the same place went to.

    Misaligned low bits rotate to the top, so that one comparison catches both.
    """
    regions = c.field(abi.REGIONS, "ptr")
    where = c.op(f"getelementptr i8, ptr {regions}, i64 {slot * abi.REGION_BYTES}")
    start = c.op(f"load i64, ptr {where}")
    relative = c.op(f"sub i64 {low}, {start}")
    turn = align.bit_length() - 1
    if turn:
        c.declare("llvm.fshr.i64", "declare i64 {}(i64, i64, i64)")
        relative = c.op(f"call i64 @llvm.fshr.i64(i64 {relative}, i64 {relative}, i64 {turn})")
    end = c.op(f"getelementptr i8, ptr {where}, i64 {abi.REGION_ROOM}")
    room = c.op(f"load i64, ptr {end}")
    return c.op(f"icmp ult i64 {relative}, {room}")


def outside_window(c: Context, low: str, span: int, align: int) -> str:
    """Whether ``span`` bytes from an offset leave the shared window, or are not aligned."""
    limit = c.op(f"zext i32 {c.field(abi.SHARED_BYTES, 'i32')} to i64")
    room = c.op(f"sub i64 {limit}, {span}")
    bad = c.op(f"icmp ugt i64 {low}, {room}")
    if span > c.symbols.shared_bytes:
        short = c.op(f"icmp ult i64 {limit}, {span}")
        bad = c.op(f"or i1 {bad}, {short}")
    if align > 1:
        rest = c.op(f"and i64 {low}, {align - 1}")
        bad = c.op(f"or i1 {bad}, {c.op(f'icmp ne i64 {rest}, 0')}")
    return bad


def span_allowed(c: Context, low: str, span: int, align: int, *, write: bool) -> str:
    """Whether a span of global memory may be accessed: an ``i1``, after the slow way if need be."""
    slot = c.new_region()
    legal = _in_region(c, slot, low, align)
    here, slow, done = c.name("quick"), c.name("slow"), c.name("known")
    c.line(f"br label %{here}")
    c.label(here)
    c.line(f"br i1 {legal}, label %{done}, label %{slow}, {_HOT}")
    c.label(slow)
    c.declare("va_h_span", "declare i32 {}(ptr, i64, i64, i64, i64) cold")
    info = c.site | int(write) << 39 | slot << 40
    found = c.op(f"call i32 @va_h_span(ptr %w, i64 {info}, i64 {low}, i64 {span}, i64 {align})")
    allowed = c.op(f"icmp ne i32 {found}, 0")
    c.line(f"br label %{done}")
    c.label(done)
    return c.op(f"phi i1 [ true, %{here} ], [ {allowed}, %{slow} ]")


def _refuse_if(c: Context, access: Access, bad: str, low: str, span: int) -> None:
    slow, done = c.name("slow"), c.name("ok")
    c.line(f"br i1 {bad}, label %{slow}, label %{done}, {_COLD}")
    c.label(slow)
    _call_check(c, access, low, span)
    c.line(f"br label %{done}")
    c.label(done)


def access_info(c: Context, access: Access, slot: int = 0) -> int:
    """What stays constant at a site, packed as the native helpers unpack it."""
    code = abi.SPACE_CODES[access.space.value]
    return c.site | access.count << 32 | code << 36 | int(access.write) << 39 | slot << 40


def _call_check(c: Context, access: Access, low: str, span: int, slot: int = 0) -> None:
    c.declare("va_h_check", "declare void {}(ptr, i64, i64, i64, i64) cold")
    c.line(
        f"call void @va_h_check(ptr %w, i64 {access_info(c, access, slot)}, i64 {low}, "
        f"i64 {span}, i64 {access.lane_bytes})"
    )


def host_pointer(c: Context, access: Access, address: str) -> str:
    """Scalar address to pointer."""
    if access.space is Space.SHARED:
        window = c.field(abi.SHARED, "ptr")
        return c.op(f"getelementptr i8, ptr {window}, i64 {address}")
    return c.op(f"inttoptr i64 {address} to ptr")


# ------------------------------------------------------------------ shapes of an access


def pieces(offsets: Sequence[int], lane_bytes: int) -> list[tuple[int, str, int]] | None:
    """Split 32 lanes into groups of eight that are consecutive or all equal.

    Returns (first offset, ``"run"`` or ``"same"``, group) or ``None`` when a group is neither.
    """
    found = []
    for group in range(4):
        part = offsets[group * 8 : group * 8 + 8]
        steps = {b - a for a, b in pairwise(part)}
        if steps == {lane_bytes}:
            found.append((part[0], "run", group))
        elif steps == {0}:
            found.append((part[0], "same", group))
        else:
            return None
    return found


def is_run(offsets: Sequence[int], lane_bytes: int) -> bool:
    """Whether 32 lanes touch consecutive places."""
    return all(v == offsets[0] + i * lane_bytes for i, v in enumerate(offsets))


def lane_helper(c: Context, access: Access, verb: str) -> str:
    """Declare the native function that loads or stores lane by lane."""
    name = f"va_h_{verb}_{access.space.value}_{access.bits}"
    c.declare(name, "declare void {}(ptr, i64, i32, ptr, ptr)")
    return name


def indexed_call(c: Context, access: Access, verb: str, data: str, *, kind: str = "") -> bool:
    """Let a native function access base and indices, if the address is made of them.

    ``data`` is the last argument: its type and what it is.
    """
    how = access.address.indexed
    if how is None or access.count != 1 or access.space is Space.LOCAL:
        return False
    name = f"va_h_{verb}_{access.space.value}_{kind or access.bits}"
    if name not in c.helpers:
        return False
    where = c.array("i32")
    c.line(f"store <32 x i32> {how.index}, ptr {where}, align 64")
    info = access_info(c, access, c.new_region()) | how.shift << 60 | int(how.signed) << 63
    info -= (info >> 63) << 64
    c.declare(name, "declare void {}" + f"(ptr, i64, i32, i64, ptr, {data.split(maxsplit=1)[0]})")
    c.line(
        f"call void @{name}(ptr %w, i64 {info}, i32 {c.lanes}, i64 {how.base}, ptr {where}, {data})"
    )
    return True


def spill_addresses(c: Context, access: Access) -> str:
    """Put 32 addresses where a native function reads them."""
    where = c.array("i64")
    c.line(f"store <32 x i64> {c.vector(access.address)}, ptr {where}, align 64")
    return where
