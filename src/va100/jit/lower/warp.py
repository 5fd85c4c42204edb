"""Exchange among the lanes of a warp: shuffles, votes, matches, reductions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from va100.jit.context import Context
from va100.jit.emit import Poly, Predicate, Value
from va100.jit.lattice import uniform
from va100.ptx.isa.form import Operation
from va100.ptx.program import Operand, Pair
from va100.ptx.types import PtxType

LANES: Final = 32
_SHUFFLE_MODES: Final = {"up": 0, "down": 1, "bfly": 2, "idx": 3}


# ------------------------------------------------------------------ shuffles


def _lower_shfl(c: Context, op: Operation) -> None:
    """``shfl``: each lane reads another's register."""
    operands = c.instruction.operands
    value = c.clean(c.read_sized(operands[1], PtxType.B32))
    source = c.read_sized(operands[2], PtxType.U32)
    clamp = c.read_sized(operands[3], PtxType.U32)
    mode = op.combine
    if c.mask is None and source.shape.constant is not None and clamp.shape.constant is not None:
        picks, inside = lane_picks(mode, source.shape.constant, clamp.shape.constant)
        _constant_shuffle(c, value, picks, inside)
        return
    arrays = []
    for v in (value, source, clamp):
        where = c.array("i32")
        c.line(f"store <32 x i32> {c.vector(v)}, ptr {where}, align 64")
        arrays.append(where)
    out, inside_at = c.array("i32"), c.array("i32", 1)
    c.declare("va_h_shfl", "declare void {}(ptr, i32, i32, ptr, ptr, ptr, ptr, ptr)")
    listed = ", ".join(f"ptr {a}" for a in [*arrays, out, inside_at])
    c.line(f"call void @va_h_shfl(ptr %w, i32 {_SHUFFLE_MODES[mode]}, i32 {c.lanes}, {listed})")
    result = c.from_vector(c.op(f"load <32 x i32>, ptr {out}, align 64"), 32)
    found = Predicate(mask=c.op(f"load i32, ptr {inside_at}"))
    _write_pair(c, operands[0], result, found)


def lane_picks(mode: str, source: int, clamp: int) -> tuple[list[int], int]:
    """Source lane of each lane, and the mask of lanes whose source is in range."""
    bval, cval, segment = source & 31, clamp & 31, clamp >> 8 & 31
    picks, inside = [], 0
    for lane in range(LANES):
        most = (lane & segment) | (cval & ~segment & 31)
        least = lane & segment
        target, ok = {
            "up": (lane - bval, lane - bval >= most),
            "down": (lane + bval, lane + bval <= most),
            "bfly": (lane ^ bval, (lane ^ bval) <= most),
            "idx": (least | (bval & ~segment & 31), (least | (bval & ~segment & 31)) <= most),
        }[mode]
        picks.append(target if ok else lane)
        inside |= int(ok) << lane
    return picks, inside


def _constant_shuffle(c: Context, value: Value, picks: list[int], inside: int) -> None:
    order = ", ".join(f"i32 {p}" for p in picks)
    vector = c.vector(value)
    name = c.op(f"shufflevector <32 x i32> {vector}, <32 x i32> poison, <32 x i32> <{order}>")
    mask = inside - (1 << 32) if inside >> 31 else inside
    _write_pair(c, c.instruction.operands[0], c.from_vector(name, 32), Predicate(mask=str(mask)))


def _write_pair(
    c: Context, destination: Operand | None, value: Value, predicate: Predicate
) -> None:
    if isinstance(destination, Pair):
        c.write(destination.first, value)
        c.write_predicate(destination.second, predicate)
    else:
        c.write(destination, value)


# ------------------------------------------------------------------ votes


def _members(c: Context, op: Operation) -> Value:
    """The membermask. Masked groups were formed by it, so there it names the group itself.

    Forms without ``.sync`` are for whoever executes them together.
    """
    if c.mask is not None or "sync" not in op.modifiers:
        return Value(uniform(32), base=c.lanes)
    return c.read_sized(c.instruction.operands[-1], PtxType.B32)


def _lower_vote(c: Context, op: Operation) -> None:
    """``vote``: one answer for all lanes that take part."""
    votes = c.mask_of(c.predicate(c.instruction.operands[1]))
    members = _members(c, op)
    p = Poly(c, not members.shape.uniform)
    everyone = p.get(members)
    cast = p.op(f"and {p.integer(32)} {c.splat(votes, 'i32') if p.wide else votes}, {everyone}")
    if op.combine == "ballot":
        c.write(c.instruction.operands[0], p.result(cast, uniform(32)))
        return
    if op.combine == "any":
        found = p.op(f"icmp ne {p.integer(32)} {cast}, {p.const(32, 0)}")
    else:
        found = p.op(f"icmp eq {p.integer(32)} {cast}, {everyone}")
        if op.combine == "uni":
            none = p.op(f"icmp eq {p.integer(32)} {cast}, {p.const(32, 0)}")
            found = p.op(f"or {p.boolean} {found}, {none}")
    c.write_predicate(c.instruction.operands[0], p.predicate(found))


def _lower_activemask(c: Context, op: Operation) -> None:
    """The lanes that execute this together."""
    c.write(c.instruction.operands[0], Value(uniform(32), base=c.op(f"add i32 {c.lanes}, 0")))


def _lower_match(c: Context, op: Operation) -> None:
    """``match``: which lanes hold the same value."""
    value = c.clean(c.read_sized(c.instruction.operands[1], op.type))
    members = _members(c, op)
    wide = c.resized(value, 64)
    where, named, out = c.array("i64"), c.array("i32"), c.array("i32")
    c.line(f"store <32 x i64> {c.vector(wide)}, ptr {where}, align 64")
    c.line(f"store <32 x i32> {c.vector(members)}, ptr {named}, align 64")
    name = f"va_h_match_{op.combine}"
    c.declare(name, "declare i32 {}(i32, ptr, ptr, ptr)")
    same = c.op(f"call i32 @{name}(i32 {c.lanes}, ptr {named}, ptr {where}, ptr {out})")
    result = c.from_vector(c.op(f"load <32 x i32>, ptr {out}, align 64"), 32)
    if op.combine == "all" and members.shape.uniform:
        found = Predicate(scalar=c.op(f"icmp ne i32 {same}, 0"))
    else:
        found = Predicate(mask=same)
    _write_pair(c, c.instruction.operands[0], result, found)


_REDUCTIONS: Final[Mapping[str, tuple[str, int, int]]] = {
    "add": ("add", 0, 0),
    "and": ("and", -1, -1),
    "or": ("or", 0, 0),
    "xor": ("xor", 0, 0),
    "min": ("min", 0x7FFFFFFF, -1),
    "max": ("max", -0x80000000, 0),
}
"""LLVM reduction and what idle lanes contribute, signed and unsigned."""


def _lower_redux(c: Context, op: Operation) -> None:
    """``redux.sync``: an integer reduction over the lanes that take part."""
    value = c.read_sized(c.instruction.operands[1], op.type)
    name, signed_idle, unsigned_idle = _REDUCTIONS[op.combine]
    signed = op.type.is_signed
    if name in ("min", "max"):
        name = ("s" if signed else "u") + name
    members = _members(c, op)
    if not members.shape.uniform:
        _redux_by_groups(c, name, members, value)
        return
    vector = c.vector(value)
    if members.shape.constant != -1:
        idle = signed_idle if signed else unsigned_idle
        bools = c.mask_vector(c.base(members))
        vector = c.op(
            f"select <32 x i1> {bools}, <32 x i32> {vector}, <32 x i32> splat (i32 {idle})"
        )
    intrinsic = f"llvm.vector.reduce.{name}.v32i32"
    c.declare(intrinsic, "declare i32 {}(<32 x i32>)")
    reduced = c.op(f"call i32 @{intrinsic}(<32 x i32> {vector})")
    c.write(c.instruction.operands[0], Value(uniform(32), base=reduced))


def _redux_by_groups(c: Context, name: str, members: Value, value: Value) -> None:
    """Converged lanes that name different groups."""
    arrays = []
    for v in (members, value):
        where = c.array("i32")
        c.line(f"store <32 x i32> {c.vector(v)}, ptr {where}, align 64")
        arrays.append(where)
    out = c.array("i32")
    helper = f"va_h_redux_{name}"
    c.declare(helper, "declare void {}(ptr, ptr, ptr)")
    c.line(f"call void @{helper}({', '.join(f'ptr {a}' for a in [*arrays, out])})")
    loaded = c.op(f"load <32 x i32>, ptr {out}, align 64")
    c.write(c.instruction.operands[0], c.from_vector(loaded, 32))


_LOWERINGS: Final[Mapping[str, Callable[[Context, Operation], None]]] = {
    "shfl": _lower_shfl,
    "vote": _lower_vote,
    "activemask": _lower_activemask,
    "match": _lower_match,
    "redux": _lower_redux,
}


def lower_warp(c: Context, op: Operation) -> None:
    """Warp-level instructions; waiting for the lanes they name is done before they start."""
    _LOWERINGS[op.opcode](c, op)
