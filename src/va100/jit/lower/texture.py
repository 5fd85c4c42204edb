"""Textures and surfaces: a call of the native sampler for the warp.

Operands go through memory: objects, coordinates (layer, x, y, z) and data, 32 lanes each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from va100.jit.context import Context
from va100.jit.emit import Predicate
from va100.ptx.isa.form import Operation
from va100.ptx.program import Operand, Vector
from va100.ptx.texture import GEOMETRIES, Place, place_of, problem, queried
from va100.ptx.types import PtxType

_TEXTURE, _SURFACE = 1, 2
_CHANNELS: Final = {"r": 0, "g": 1, "b": 2, "a": 3}
_BOUNDARIES: Final = {"trap": 0, "clamp": 1, "zero": 2}
_COMBINES: Final = {"add": 0, "min": 1, "max": 2, "and": 3, "or": 4}
_QUERIES: Final = {
    name: number
    for number, name in enumerate(
        "width height depth channel_data_type channel_order normalized_coords array_size "
        "num_mipmap_levels num_samples force_unnormalized_coords filter_mode addr_mode_0 "
        "addr_mode_1 addr_mode_2 memory_layout".split()
    )
}
"""As the native core numbers them."""
_KINDS: Final = {"texref": _TEXTURE, "surfref": _SURFACE, "samplerref": 0}


def lower_texture(c: Context, op: Operation) -> None:
    """Texture and surface instructions."""
    refusal = problem(op, c.instruction.operands, c.flow.registers)
    if refusal:
        raise c.refuse(refusal)
    _LOWERINGS[op.opcode](c, op)


def _chosen(table: Mapping[str, int], op: Operation, default: int = 0) -> int:
    return next((table[m] for m in op.sequence if m in table), default)


def _objects(c: Context, operand: Operand | None) -> str:
    """Each lane's object, in memory."""
    where = c.array("i64")
    value = c.vector(c.read_sized(operand, PtxType.B64))
    c.line(f"store <32 x i64> {value}, ptr {where}, align 64")
    return where


def _row(c: Context, where: str, row: int, bytes_per_row: int = 128) -> str:
    return c.op(f"getelementptr i8, ptr {where}, i64 {row * bytes_per_row}") if row else where


def _words(c: Context, operands: Mapping[int, Operand | None]) -> str:
    """Rows of 32 words; those that are not given stay as they are, and are not looked at."""
    where = c.array("i32", 128)
    for row, operand in operands.items():
        value = c.vector(c.clean(c.read_sized(operand, PtxType.B32)))
        c.line(f"store <32 x i32> {value}, ptr {_row(c, where, row)}, align 64")
    return where


def _coordinates(c: Context, place: Place) -> str:
    rows: dict[int, Operand | None] = {k + 1: x for k, x in enumerate(place.coordinates)}
    if place.layer is not None:
        rows[0] = place.layer
    return _words(c, rows)


# ------------------------------------------------------------------ textures


def _lower_fetch(c: Context, op: Operation) -> None:
    place = place_of(op, c.instruction.operands)
    gathers = op.opcode == "tld4"
    half = op.type is PtxType.F16X2
    info = (
        c.site
        | GEOMETRIES.index(place.geometry) << 32
        | int(op.types[-1] is PtxType.S32) << 35
        | int(half) << 36
        | (_chosen(_CHANNELS, op) if gathers else 0) << 37
        | int(gathers) << 39
    )
    objects, coordinates = _objects(c, place.object), _coordinates(c, place)
    offsets = "null"
    if place.offsets:
        offsets = _words(c, dict(enumerate(place.offsets)))
    out = c.array("i32", 128)
    c.declare("va_h_texture_fetch", "declare void {}(ptr, i64, i32, ptr, ptr, ptr, ptr)")
    c.line(
        f"call void @va_h_texture_fetch(ptr %w, i64 {info}, i32 {c.lanes}, ptr {objects}, "
        f"ptr {coordinates}, ptr {offsets}, ptr {out})"
    )
    for row, element in enumerate(_elements(c.instruction.operands[0])):
        loaded = c.op(f"load <32 x i32>, ptr {_row(c, out, row)}, align 64")
        c.write(element, c.from_vector(loaded, 32))


def _lower_query(c: Context, op: Operation) -> None:
    kind = _TEXTURE if op.opcode == "txq" else _SURFACE
    info = c.site | _chosen(_QUERIES, op) << 32 | kind << 37
    objects, out = _objects(c, queried(c.instruction.operands)), c.array("i32")
    c.declare("va_h_texture_query", "declare void {}(ptr, i64, i32, ptr, ptr)")
    c.line(
        f"call void @va_h_texture_query(ptr %w, i64 {info}, i32 {c.lanes}, ptr {objects}, "
        f"ptr {out})"
    )
    loaded = c.op(f"load <32 x i32>, ptr {out}, align 64")
    c.write(c.instruction.operands[0], c.from_vector(loaded, 32))


def _lower_type(c: Context, op: Operation) -> None:
    objects = _objects(c, queried(c.instruction.operands))
    c.declare("va_h_texture_is", "declare i32 {}(i32, i32, ptr)")
    found = c.op(
        f"call i32 @va_h_texture_is(i32 {_KINDS[op.type.value]}, i32 {c.lanes}, ptr {objects})"
    )
    c.write_predicate(c.instruction.operands[0], Predicate(mask=found))


# ------------------------------------------------------------------ surfaces


def _elements(operand: Operand | None) -> tuple[Operand | None, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _surface_info(c: Context, op: Operation, place: Place, elements: int) -> int:
    kind = op.type
    number = 1 if kind.is_unsigned else 2 if kind.is_signed else 3 if kind.is_float else 0
    return (
        c.site
        | GEOMETRIES.index(place.geometry) << 32
        | (kind.size_bytes.bit_length() - 1) << 35
        | min(elements, 3) << 37
        | _chosen(_BOUNDARIES, op) << 40
        | _chosen(_COMBINES, op) << 42
        | number << 45
        | int("p" in op.modifiers) << 47
    )


def _call_surface(c: Context, op: Operation, name: str, elements: int, data: str) -> None:
    place = place_of(op, c.instruction.operands)
    objects, coordinates = _objects(c, place.object), _coordinates(c, place)
    c.declare(name, "declare void {}(ptr, i64, i32, ptr, ptr, ptr)")
    c.line(
        f"call void @{name}(ptr %w, i64 {_surface_info(c, op, place, elements)}, i32 {c.lanes}, "
        f"ptr {objects}, ptr {coordinates}, ptr {data})"
    )


def _lower_load(c: Context, op: Operation) -> None:
    elements = _elements(c.instruction.operands[0])
    data = c.array("i64", 32 * len(elements))
    _call_surface(c, op, "va_h_surface_load", len(elements), data)
    for row, element in enumerate(elements):
        loaded = c.op(f"load <32 x i64>, ptr {_row(c, data, row, 256)}, align 64")
        c.write(element, c.resized(c.from_vector(loaded, 64), op.type.bits))


def _lower_store(c: Context, op: Operation) -> None:
    elements = _elements(c.instruction.operands[1])
    name = "va_h_surface_put" if "p" in op.modifiers else "va_h_surface_store"
    _call_surface(c, op, name, len(elements), _data(c, op, elements))


def _lower_reduction(c: Context, op: Operation) -> None:
    _call_surface(c, op, "va_h_surface_reduce", 1, _data(c, op, (c.instruction.operands[1],)))


def _data(c: Context, op: Operation, elements: tuple[Operand | None, ...]) -> str:
    """Rows of 32 values, each in 64 bits."""
    data = c.array("i64", 32 * len(elements))
    for row, element in enumerate(elements):
        value = c.vector(c.resized(c.clean(c.read_sized(element, op.type)), 64))
        c.line(f"store <32 x i64> {value}, ptr {_row(c, data, row, 256)}, align 64")
    return data


_LOWERINGS: Final[Mapping[str, Callable[[Context, Operation], None]]] = {
    "tex": _lower_fetch,
    "tld4": _lower_fetch,
    "txq": _lower_query,
    "suq": _lower_query,
    "istypep": _lower_type,
    "suld": _lower_load,
    "sust": _lower_store,
    "sured": _lower_reduction,
}
"""Opcode to its lowering."""
