"""Lanes of a warp that wait for each other at instructions of one kind in different places.

Tried when no group of lanes can go on: if all that the first waiting lane names wait at such an
instruction, wherever, it is executed once for them together.  Each place reads its own operands
and writes its own destination; every such instruction is a block of its own, so that the lanes go
on with the block after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from va100.jit.analysis import Block
from va100.jit.checked import PARTED
from va100.jit.context import Context
from va100.jit.emit import Predicate, Value
from va100.jit.lattice import uniform
from va100.jit.lower.control import reduction_found
from va100.jit.worlds import Worlds
from va100.ptx import effects
from va100.ptx.isa.form import Family, Operation
from va100.ptx.program import Operand, Pair
from va100.ptx.types import PtxType

_SHUFFLE_MODES: Final = {"up": 0, "down": 1, "bfly": 2, "idx": 3}
_WIDE: Final = "<32 x i32>"


@dataclass(frozen=True, slots=True)
class _Place:
    """One of the instructions, and the lanes that wait at it."""

    block: Block
    lanes: str


Count = Callable[[Block, int, str], None]


def write_meetings(w: Worlds, count: Count) -> None:
    """Go on with the first kind of instruction whose lanes are all there; fall through if none.

    ``count`` counts an execution of a block by some lanes.
    """
    starts = {block.start: block for block in w.blocks if block.start < block.end}
    for group in w.c.analysis.twins:
        _write_meeting(w, [starts[index] for index in group], count)


def _write_meeting(w: Worlds, blocks: Sequence[Block], count: Count) -> None:
    c = w.c
    operation = c.flow.operations[blocks[0].start]
    places = [_Place(b, c.op(f"load i32, ptr %pend{b.index}")) for b in blocks]
    everyone = _union(c, [place.lanes for place in places])
    look, go, next_kind = c.name("look"), c.name("meet"), c.name("apart")
    c.line(f"br i1 {c.op(f'icmp ne i32 {everyone}, 0')}, label %{look}, label %{next_kind}")
    c.label(look)
    c.declare("llvm.cttz.i32", "declare i32 {}(i32, i1)")
    leader = c.op(f"call i32 @llvm.cttz.i32(i32 {everyone}, i1 true)")
    alive = c.op("load i32, ptr %alive")
    named = _merged(w, places, _names(operation), PtxType.B32)
    chosen = c.op(f"extractelement {_WIDE} {named}, i32 {leader}")
    same = c.op(f"icmp eq {_WIDE} {named}, {c.splat(chosen, 'i32')}")
    present = c.op(f"and i32 {c.op(f'bitcast <32 x i1> {same} to i32')}, {everyone}")
    wanted = alive
    if effects.is_warp_sync(operation):
        wanted = c.op(f"and i32 {chosen}, {alive}")
    come = c.op(f"and i32 {present}, {wanted}")
    c.line(f"br i1 {c.op(f'icmp eq i32 {come}, {wanted}')}, label %{go}, label %{next_kind}")
    c.label(go)
    results = _execute(w, operation, places, wanted, chosen)
    for place in places:
        here = c.op(f"and i32 {place.lanes}, {wanted}")
        _enter(w, place.block, here)
        count(place.block, 1, here)
        _write(c, results)
        rest = c.op(f"and i32 {place.lanes}, {c.op(f'xor i32 {wanted}, -1')}")
        w._clear_pending(place.block.index)
        w._set_pending(place.block.index, rest)
        w._arrive(place.block.successors[0] if place.block.successors else None, here)
    c.line("br label %dispatch")
    c.label(next_kind)
    c.mask = c.block_mask = None


def _union(c: Context, masks: Sequence[str]) -> str:
    total = masks[0]
    for mask in masks[1:]:
        total = c.op(f"or i32 {total}, {mask}")
    return total


def _enter(w: Worlds, block: Block, lanes: str) -> None:
    """Make a place's instruction the one at hand, for some lanes."""
    c = w.c
    c.begin_instruction(block.start)
    c.env = {}
    c.mask = c.block_mask = lanes


def _names(operation: Operation) -> int:
    """Operand by which lanes find each other: the member mask, or the barrier's number."""
    if effects.is_warp_sync(operation):
        return -1
    return 1 if "red" in operation.modifiers else 0


def _merged(w: Worlds, places: Sequence[_Place], operand: int, kind: PtxType) -> str:
    """An operand of all places, each in its own lanes, as a vector."""
    c = w.c
    total = ""
    bits = kind.bits
    for place in places:
        _enter(w, place.block, place.lanes)
        vector = c.vector(c.clean(c.read_sized(c.instruction.operands[operand], kind)))
        total = _chosen(c, place, f"<32 x i{bits}>", vector, total)
    return total


def _chosen(c: Context, place: _Place, kind: str, vector: str, total: str) -> str:
    if not total:
        return vector
    bools = c.mask_vector(place.lanes)
    return c.op(f"select <32 x i1> {bools}, {kind} {vector}, {kind} {total}")


def _votes(w: Worlds, places: Sequence[_Place], operand: int = 1) -> str:
    """Predicates of all places as one mask."""
    c = w.c
    total = "0"
    for place in places:
        _enter(w, place.block, place.lanes)
        cast = c.mask_of(c.predicate(c.instruction.operands[operand]))
        total = c.op(f"or i32 {total}, {c.op(f'and i32 {cast}, {place.lanes}')}")
    return total


def _store(c: Context, vector: str, bits: int) -> str:
    where = c.array(f"i{bits}")
    c.line(f"store <32 x i{bits}> {vector}, ptr {where}, align 64")
    return where


# ------------------------------------------------------------------ the instructions

Results = tuple[Value | None, Predicate | None]


def _execute(
    w: Worlds, operation: Operation, places: Sequence[_Place], lanes: str, named: str
) -> Results:
    """What the lanes receive, in a vector or a mask."""
    if w.c.checked and effects.is_warp_sync(operation):
        _tell_sync(w, operation, places[0], lanes, named)
    if operation.opcode == "shfl":
        return _shuffle(w, operation, places, lanes)
    if operation.opcode == "vote":
        return _vote(w, operation, places, lanes)
    if operation.opcode == "match":
        return _match(w, operation, places, lanes)
    if operation.opcode == "redux":
        return _reduce(w, operation, places, lanes)
    if effects.is_barrier(operation):
        return _synchronise(w, operation, places, lanes, named)
    return None, None


def _tell_sync(w: Worlds, operation: Operation, place: _Place, lanes: str, named: str) -> None:
    """Tell the checker, as :mod:`va100.jit.checked` does of one place; the first one speaks."""
    c = w.c
    _enter(w, place.block, lanes)
    members = _store(c, c.splat(named, "i32"), 32)
    orders = int(operation.form.family is not Family.WARP)
    c.declare("va_h_check_sync", "declare void {}(ptr, i32, i32, ptr, i32)")
    c.line(
        f"call void @va_h_check_sync(ptr %w, i32 {c.site}, i32 {lanes}, ptr {members}, "
        f"i32 {orders})"
    )


def _shuffle(w: Worlds, operation: Operation, places: Sequence[_Place], lanes: str) -> Results:
    c = w.c
    vectors = [_merged(w, places, index, PtxType.B32) for index in (1, 2, 3)]
    arrays = [_store(c, vector, 32) for vector in vectors]
    out, inside = c.array("i32"), c.array("i32", 1)
    c.declare("va_h_shfl", "declare void {}(ptr, i32, i32, ptr, ptr, ptr, ptr, ptr)")
    listed = ", ".join(f"ptr {a}" for a in [*arrays, out, inside])
    mode = _SHUFFLE_MODES[operation.combine]
    c.line(f"call void @va_h_shfl(ptr %w, i32 {mode}, i32 {lanes}, {listed})")
    value = c.from_vector(c.op(f"load {_WIDE}, ptr {out}, align 64"), 32)
    return value, Predicate(mask=c.op(f"load i32, ptr {inside}"))


def _vote(w: Worlds, operation: Operation, places: Sequence[_Place], lanes: str) -> Results:
    c = w.c
    cast = c.op(f"and i32 {_votes(w, places)}, {lanes}")
    if operation.combine == "ballot":
        return Value(uniform(32), base=cast), None
    some = c.op(f"icmp ne i32 {cast}, 0")
    every = c.op(f"icmp eq i32 {cast}, {lanes}")
    alike = c.op(f"or i1 {every}, {c.op(f'xor i1 {some}, true')}")
    found = {"any": some, "all": every, "uni": alike}[operation.combine]
    return None, Predicate(mask=c.op(f"sext i1 {found} to i32"))


def _match(w: Worlds, operation: Operation, places: Sequence[_Place], lanes: str) -> Results:
    c = w.c
    kind = operation.type
    vector = _merged(w, places, 1, kind)
    if kind.bits < 64:
        vector = c.op(f"zext <32 x i{kind.bits}> {vector} to <32 x i64>")
    value, members = _store(c, vector, 64), _store(c, c.splat(lanes, "i32"), 32)
    out = c.array("i32")
    name = f"va_h_match_{operation.combine}"
    c.declare(name, "declare i32 {}(i32, ptr, ptr, ptr)")
    same = c.op(f"call i32 @{name}(i32 {lanes}, ptr {members}, ptr {value}, ptr {out})")
    found = c.from_vector(c.op(f"load {_WIDE}, ptr {out}, align 64"), 32)
    return found, Predicate(mask=same)


def _reduce(w: Worlds, operation: Operation, places: Sequence[_Place], lanes: str) -> Results:
    c = w.c
    value = _store(c, _merged(w, places, 1, operation.type), 32)
    members, out = _store(c, c.splat(lanes, "i32"), 32), c.array("i32")
    sign = "s" if operation.type.is_signed else "u"
    name = f"va_h_redux_{sign if operation.combine in ('min', 'max') else ''}{operation.combine}"
    c.declare(name, "declare void {}(ptr, ptr, ptr)")
    c.line(f"call void @{name}(ptr {members}, ptr {value}, ptr {out})")
    return c.from_vector(c.op(f"load {_WIDE}, ptr {out}, align 64"), 32), None


def _synchronise(
    w: Worlds, operation: Operation, places: Sequence[_Place], lanes: str, number: str
) -> Results:
    """A barrier of the CTA: the warp comes to it once, with the votes of all its lanes."""
    c = w.c
    c.needs_fibers = True
    reduces = "red" in operation.modifiers
    threads = _threads(w, places, lanes, _names(operation) + 1, int(reduces))
    if c.checked:
        first_op = c.flow.operations[places[0].block.start]
        aligned = first_op.opcode == "bar" or "aligned" in first_op.modifiers
        waits = PARTED if aligned else 1
        c.declare("va_h_check_bar", "declare void {}(ptr, i32, i32, i32, i32, i32, i32)")
        c.line(
            f"call void @va_h_check_bar(ptr %w, i32 {c.site}, i32 {lanes}, i32 {lanes}, "
            f"i32 {number}, i32 {threads}, i32 {waits})"
        )
    if reduces:
        return _reduced(w, operation, places, f"i32 {number}, i32 {threads}", lanes)
    c.declare("va_h_bar_wait", "declare void {}(ptr, i32, i32, i32, i32, i32)")
    c.line(
        f"call void @va_h_bar_wait(ptr %w, i32 {c.site}, i32 {number}, i32 {threads}, i32 0, "
        f"i32 {lanes})"
    )
    return None, None


def _threads(w: Worlds, places: Sequence[_Place], lanes: str, before: int, after: int) -> str:
    """Threads that the first lane's place expects; 0, all of the CTA, where it does not say.

    The count is operand number ``before`` and has ``after`` others behind it.
    """
    c = w.c
    counted = [
        place
        for place in places
        if len(c.flow.instructions[place.block.start].operands) > before + after
    ]
    if not counted:
        return "0"
    counts = _merged(w, counted, before, PtxType.U32)
    said = c.op(f"and i32 {_union(c, [place.lanes for place in counted])}, {lanes}")
    counts = c.op(
        f"select <32 x i1> {c.mask_vector(said)}, {_WIDE} {counts}, {_WIDE} zeroinitializer"
    )
    first = c.op(f"call i32 @llvm.cttz.i32(i32 {lanes}, i1 true)")
    return c.op(f"extractelement {_WIDE} {counts}, i32 {first}")


def _reduced(
    w: Worlds, operation: Operation, places: Sequence[_Place], barrier: str, lanes: str
) -> Results:
    """``bar.red``."""
    c = w.c
    votes = _votes(w, places, -1)
    c.declare("va_h_bar_sync", "declare i32 {}(ptr, i32, i32, i32, i32, i32)")
    found = c.op(
        f"call i32 @va_h_bar_sync(ptr %w, i32 {c.site}, {barrier}, i32 {votes}, i32 {lanes})"
    )
    return reduction_found(c, operation, found)


def _write(c: Context, results: Results) -> None:
    """Give the lanes of the place at hand what they receive."""
    value, predicate = results
    if value is None and predicate is None:
        return
    destination: Operand | None = c.instruction.operands[0]
    first, second = destination, destination
    if isinstance(destination, Pair):
        first, second = destination.first, destination.second
    elif value is not None:
        second = None
    if value is not None:
        c.write(first, value)
    if predicate is not None:
        c.write_predicate(second, predicate)
