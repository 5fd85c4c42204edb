"""Loads and stores of every space, and the parameters of kernels and calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from va100.gpu.arena import GRANULE_SHIFT
from va100.jit import abi
from va100.jit.access import (
    LANES,
    Access,
    access_info,
    address_value,
    check,
    effective_space,
    host_pointer,
    indexed_call,
    is_run,
    lane_helper,
    pieces,
    spill_addresses,
)
from va100.jit.calls import load_words
from va100.jit.context import Context
from va100.jit.emit import Value
from va100.jit.lattice import uniform
from va100.jit.policies import lower_policy
from va100.ptx.isa.form import Operation
from va100.ptx.program import Address, Operand, Register, Symbol, Vector
from va100.ptx.types import PtxType, Space

# ------------------------------------------------------------------ kernel and call parameters


def _lower_param_load(c: Context, op: Operation, operand: Operand | None) -> bool:
    """``ld.param`` by name: the launch's block in a kernel, the call's words in a function."""
    if not isinstance(operand, Address) or not isinstance(operand.base, Symbol):
        return False
    name = operand.base.name
    offset = operand.base.offset + operand.offset
    if c.is_kernel and name in c.param_offsets:
        params = c.field(abi.PARAMS, "ptr")
        destinations = _elements(c.instruction.operands[0])
        size = op.type.size_bytes
        for k, destination in enumerate(destinations):
            at = c.param_offsets[name] + offset + k * size
            value = Value(uniform(op.type.bits), base=c.parameter(params, at, op.type.bits))
            c.write(destination, _extended(c, value, op.type, destination))
        return True
    if name in c.call_words:
        _load_words(c, op, name, offset)
        return True
    return False


def _word_pointer(c: Context, name: str, word: int) -> str:
    """Where word ``word`` of a call parameter lies: 32 lanes of 4 bytes."""
    return c.op(f"getelementptr i8, ptr {c.call_words[name]}, i64 {word * 4 * LANES}")


def _load_words(c: Context, op: Operation, name: str, offset: int) -> None:
    bits, size = op.type.bits, op.type.size_bytes
    for k, destination in enumerate(_elements(c.instruction.operands[0])):
        at = offset + k * size
        word = c.op(f"load <32 x i32>, ptr {_word_pointer(c, name, at // 4)}, align 4")
        if bits > 32:
            value = load_words(c, _word_pointer(c, name, at // 4), bits)
        elif bits == 32:
            value = c.from_vector(word, 32)
        else:
            moved = c.op(f"lshr <32 x i32> {word}, splat (i32 {at % 4 * 8})")
            value = c.from_vector(c.op(f"trunc <32 x i32> {moved} to <32 x i{bits}>"), bits)
        c.write(destination, _extended(c, value, op.type, destination))


def _store_words(c: Context, op: Operation, name: str, offset: int) -> None:
    bits, size = op.type.bits, op.type.size_bytes
    for k, source in enumerate(_elements(c.instruction.operands[1])):
        value = c.clean(c.read_sized(source, op.type))
        at = offset + k * size
        vector = c.vector(value)
        if bits > 32:
            for part in range(bits // 32):
                moved = c.op(f"lshr <32 x i{bits}> {vector}, splat (i{bits} {32 * part})")
                low = c.op(f"trunc <32 x i{bits}> {moved} to <32 x i32>")
                _store_word(c, name, at // 4 + part, low)
        elif bits == 32:
            _store_word(c, name, at // 4, vector)
        else:
            _store_part(c, name, at, vector, bits)


def _store_part(c: Context, name: str, at: int, vector: str, bits: int) -> None:
    """A byte or half word inside a word."""
    pointer = _word_pointer(c, name, at // 4)
    old = c.op(f"load <32 x i32>, ptr {pointer}, align 4")
    shift = at % 4 * 8
    keep = ~(((1 << bits) - 1) << shift) & 0xFFFFFFFF
    keep = keep - (1 << 32) if keep >> 31 else keep
    wide = c.op(f"zext <32 x i{bits}> {vector} to <32 x i32>")
    moved = c.op(f"shl <32 x i32> {wide}, splat (i32 {shift})")
    kept = c.op(f"and <32 x i32> {old}, splat (i32 {keep})")
    _store_word(c, name, at // 4, c.op(f"or <32 x i32> {kept}, {moved}"))


def _store_word(c: Context, name: str, word: int, vector: str) -> None:
    pointer = _word_pointer(c, name, word)
    if c.mask is not None:
        old = c.op(f"load <32 x i32>, ptr {pointer}, align 4")
        bools = c.mask_vector(c.lanes)
        vector = c.op(f"select <32 x i1> {bools}, <32 x i32> {vector}, <32 x i32> {old}")
    c.line(f"store <32 x i32> {vector}, ptr {pointer}, align 4")


def _elements(operand: Operand | None) -> tuple[Operand | None, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _extended(c: Context, value: Value, kind: PtxType, destination: Operand | None) -> Value:
    """Widen a loaded value to its register, by the sign of the load's type."""
    if not isinstance(destination, Register):
        return value
    return c.resized(value, c.flow.registers[destination.name].bits, signed=kind.is_signed)


# ------------------------------------------------------------------ loads


def _lower_ld(c: Context, op: Operation) -> None:
    operand = c.instruction.operands[1]
    if op.space is Space.PARAM and _lower_param_load(c, op, operand):
        return
    destinations = _elements(c.instruction.operands[0])
    access = _access(c, op, operand, len(destinations), write=False)
    for destination, value in zip(destinations, load(c, access), strict=True):
        if destination is not None:
            c.write(destination, _extended(c, value, op.type, destination))


def _access(
    c: Context, op: Operation, operand: Operand | None, count: int, *, write: bool
) -> Access:
    return Access(
        address=address_value(c, operand, effective_space(op)),
        space=effective_space(op),
        bits=op.type.bits,
        count=count,
        write=write,
        volatile=op.semantics not in ("", "weak"),
    )


def load(c: Context, access: Access) -> list[Value]:
    """One value an element."""
    shape = access.address.shape
    if access.space is not Space.LOCAL and not shape.varying and c.mask is None:
        if shape.uniform:
            return _load_uniform(c, access)
        offsets = shape.offsets or ()
        if is_run(offsets, access.lane_bytes):
            return _load_run(c, access, offsets[0])
        groups = pieces(offsets, access.lane_bytes) if access.count == 1 else None
        if groups is not None and max(offsets) - min(offsets) < (1 << GRANULE_SHIFT):
            return _load_pieces(c, access, groups)
    if access.space is not Space.LOCAL and shape.uniform:
        return _load_uniform_masked(c, access)
    return _load_lanes(c, access)


def _volatile(access: Access) -> str:
    return "volatile " if access.volatile else ""


def _load_uniform(c: Context, access: Access) -> list[Value]:
    low = c.base(access.address)
    check(c, access, low, access.lane_bytes)
    pointer = host_pointer(c, access, low)
    size = access.bits // 8
    values = []
    for k in range(access.count):
        where = pointer if k == 0 else c.op(f"getelementptr i8, ptr {pointer}, i64 {k * size}")
        name = c.op(f"load {_volatile(access)}i{access.bits}, ptr {where}, align {size}")
        values.append(Value(uniform(access.bits), base=name))
    return values


def _load_uniform_masked(c: Context, access: Access) -> list[Value]:
    """One address for the lanes of a mask that is not empty: read once; empty: not at all."""
    if not c.mask_may_be_empty:
        return _load_uniform(c, access)
    return _load_lanes(c, access)


def _load_run(c: Context, access: Access, first: int) -> list[Value]:
    low = c.base(access.address)
    if first:
        low = c.op(f"add i64 {low}, {first}")
    check(c, access, low, access.lane_bytes * LANES)
    pointer = host_pointer(c, access, low)
    total = LANES * access.count
    kind = f"<{total} x i{access.bits}>"
    loaded = c.op(f"load {_volatile(access)}{kind}, ptr {pointer}, align {access.lane_bytes}")
    if access.count == 1:
        return [c.from_vector(loaded, access.bits)]
    values = []
    for k in range(access.count):
        picks = ", ".join(f"i32 {lane * access.count + k}" for lane in range(LANES))
        name = c.op(f"shufflevector {kind} {loaded}, {kind} poison, <{LANES} x i32> <{picks}>")
        values.append(c.from_vector(name, access.bits))
    return values


def _load_pieces(c: Context, access: Access, groups: Sequence[tuple[int, str, int]]) -> list[Value]:
    """Four groups of eight lanes, each a run or a broadcast; equal groups are read once."""
    low, bits = c.base(access.address), access.bits
    offsets = access.address.shape.offsets or ()
    least = min(offsets)
    start = c.op(f"add i64 {low}, {least}") if least else low
    check(c, access, start, max(offsets) - least + access.lane_bytes)
    made: dict[tuple[int, str], str] = {}
    parts = []
    for offset, how, _ in groups:
        if (offset, how) not in made:
            address = c.op(f"add i64 {low}, {offset}") if offset else low
            pointer = host_pointer(c, access, address)
            made[offset, how] = _load_group(c, access, pointer, how)
        parts.append(made[offset, how])
    halves = [
        c.op(
            f"shufflevector <8 x i{bits}> {parts[k]}, <8 x i{bits}> {parts[k + 1]}, <16 x i32> "
            f"<{', '.join(f'i32 {i}' for i in range(16))}>"
        )
        for k in (0, 2)
    ]
    whole = c.op(
        f"shufflevector <16 x i{bits}> {halves[0]}, <16 x i{bits}> {halves[1]}, <32 x i32> "
        f"<{', '.join(f'i32 {i}' for i in range(32))}>"
    )
    return [c.from_vector(whole, bits)]


def _load_group(c: Context, access: Access, pointer: str, how: str) -> str:
    bits = access.bits
    if how == "run":
        return c.op(
            f"load {_volatile(access)}<8 x i{bits}>, ptr {pointer}, align {access.lane_bytes}"
        )
    one = c.op(f"load {_volatile(access)}i{bits}, ptr {pointer}, align {access.lane_bytes}")
    lane = c.op(f"insertelement <8 x i{bits}> poison, i{bits} {one}, i32 0")
    return c.op(
        f"shufflevector <8 x i{bits}> {lane}, <8 x i{bits}> poison, <8 x i32> zeroinitializer"
    )


def _load_lanes(c: Context, access: Access) -> list[Value]:
    """Lane by lane in a native function; lanes outside the mask read zero."""
    result = c.array(f"i{access.bits}", LANES * access.count)
    if not indexed_call(c, access, "xld", f"ptr {result}"):
        where = spill_addresses(c, access)
        name = lane_helper(c, access, "ld")
        c.line(
            f"call void @{name}(ptr %w, i64 {access_info(c, access)}, i32 {c.lanes}, "
            f"ptr {where}, ptr {result})"
        )
    values = []
    kind = f"<32 x i{access.bits}>"
    for k in range(access.count):
        at = result
        if k:
            at = c.op(f"getelementptr i8, ptr {result}, i64 {k * LANES * access.bits // 8}")
        values.append(c.from_vector(c.op(f"load {kind}, ptr {at}"), access.bits))
    return values


# ------------------------------------------------------------------ stores


def _lower_st(c: Context, op: Operation) -> None:
    operand = c.instruction.operands[0]
    if op.space is Space.PARAM:
        if not isinstance(operand, Address) or not isinstance(operand.base, Symbol):
            raise c.refuse("a store to parameter space must name the parameter")
        if operand.base.name not in c.call_words:
            raise c.refuse(f"`{operand.base.name}` is no parameter of a call")
        _store_words(c, op, operand.base.name, operand.base.offset + operand.offset)
        return
    sources = _elements(c.instruction.operands[1])
    access = _access(c, op, operand, len(sources), write=True)
    store(c, access, [c.clean(c.read_sized(s, op.type)) for s in sources])


def store(c: Context, access: Access, values: Sequence[Value]) -> None:
    """Write one value an element."""
    shape = access.address.shape
    if access.space is not Space.LOCAL and not shape.varying and c.mask is None:
        if shape.uniform:
            _store_uniform(c, access, values)
            return
        if is_run(shape.offsets or (), access.lane_bytes):
            _store_run(c, access, values, (shape.offsets or (0,))[0])
            return
    _store_lanes(c, access, values)


def _store_uniform(c: Context, access: Access, values: Sequence[Value]) -> None:
    """All lanes write one place: the highest lane's value stays."""
    low = c.base(access.address)
    check(c, access, low, access.lane_bytes)
    pointer = host_pointer(c, access, low)
    size = access.bits // 8
    for k, value in enumerate(values):
        where = pointer if k == 0 else c.op(f"getelementptr i8, ptr {pointer}, i64 {k * size}")
        last = c.lane(value, LANES - 1)
        c.line(f"store {_volatile(access)}i{access.bits} {last}, ptr {where}, align {size}")


def _store_run(c: Context, access: Access, values: Sequence[Value], first: int) -> None:
    low = c.base(access.address)
    if first:
        low = c.op(f"add i64 {low}, {first}")
    check(c, access, low, access.lane_bytes * LANES)
    pointer = host_pointer(c, access, low)
    vector, kind = _interleave(c, access, values)
    c.line(f"store {_volatile(access)}{kind} {vector}, ptr {pointer}, align {access.lane_bytes}")


def _interleave(c: Context, access: Access, values: Sequence[Value]) -> tuple[str, str]:
    """Elements of 32 lanes side by side, as memory wants them."""
    bits, count = access.bits, access.count
    vectors = [c.vector(v) for v in values]
    if count == 1:
        return vectors[0], f"<32 x i{bits}>"
    width = LANES
    while len(vectors) > 1:
        picks = ", ".join(f"i32 {i}" for i in range(2 * width))
        joined = [
            c.op(
                f"shufflevector <{width} x i{bits}> {vectors[k]}, "
                f"<{width} x i{bits}> {vectors[k + 1]}, <{2 * width} x i32> <{picks}>"
            )
            for k in range(0, len(vectors), 2)
        ]
        vectors, width = joined, 2 * width
    order = ", ".join(f"i32 {k * LANES + lane}" for lane in range(LANES) for k in range(count))
    kind = f"<{width} x i{bits}>"
    name = c.op(f"shufflevector {kind} {vectors[0]}, {kind} poison, <{width} x i32> <{order}>")
    return name, kind


def _store_lanes(c: Context, access: Access, values: Sequence[Value]) -> None:
    source = c.array(f"i{access.bits}", LANES * access.count)
    for k, value in enumerate(values):
        at = source
        if k:
            at = c.op(f"getelementptr i8, ptr {source}, i64 {k * LANES * access.bits // 8}")
        c.line(f"store <32 x i{access.bits}> {c.vector(value)}, ptr {at}")
    if indexed_call(c, access, "xst", f"ptr {source}"):
        return
    where = spill_addresses(c, access)
    name = lane_helper(c, access, "st")
    c.line(
        f"call void @{name}(ptr %w, i64 {access_info(c, access)}, i32 {c.lanes}, ptr {where}, "
        f"ptr {source})"
    )


def _nothing(c: Context, op: Operation) -> None:
    """Hints that change no result: prefetches and cache policies."""


_LOWERINGS: Final[Mapping[str, Callable[[Context, Operation], None]]] = {
    "ld": _lower_ld,
    "ldu": _lower_ld,
    "st": _lower_st,
    "prefetch": _nothing,
    "prefetchu": _nothing,
    "applypriority": _nothing,
    "discard": _nothing,
    "createpolicy": lower_policy,
}


def lower_memory(c: Context, op: Operation) -> None:
    """Memory instructions."""
    if op.opcode not in _LOWERINGS:
        raise c.refuse("this memory instruction is not executed")
    _LOWERINGS[op.opcode](c, op)
