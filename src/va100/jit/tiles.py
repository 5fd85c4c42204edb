"""Registers of matrix operands in memory, where native functions read and write them.

A register is 32 lanes side by side, registers of an operand follow one another.  Tables say which
word of a tile in memory a lane holds; they come from :mod:`va100.numerics.tiles`.
"""

from __future__ import annotations

from functools import lru_cache

from va100.jit.access import LANES
from va100.jit.context import Context
from va100.jit.emit import Value
from va100.numerics import tiles
from va100.numerics.tiles import Walk
from va100.ptx.isa.form import Operation
from va100.ptx.isa.tiles import Tile, moved_of, shape_of
from va100.ptx.program import Operand, Vector
from va100.ptx.types import PtxType


def store_registers(c: Context, operand: Operand | None, tile: Tile) -> str:
    """Put the registers of an operand into scratch memory."""
    elements = operand.elements if isinstance(operand, Vector) else (operand,)
    if len(elements) != tile.registers:
        raise c.refuse(
            f"operand {tile.role} has {tile.registers} registers, {len(elements)} are given"
        )
    kind = PtxType.B64 if tile.register_bits == 64 else PtxType.B32
    values = [c.read_sized(e, kind) for e in elements]
    return store_values(c, [c.clean(v) if tile.role == "d" else v for v in values])


def store_values(c: Context, values: list[Value]) -> str:
    """Put registers into scratch memory, one after another."""
    bits = values[0].shape.bits
    where = c.array(f"i{bits}", LANES * len(values))
    for index, value in enumerate(values):
        at = register_at(c, where, index, bits)
        c.line(f"store <32 x i{bits}> {c.vector(value)}, ptr {at}, align 64")
    return where


def load_registers(c: Context, where: str, count: int, bits: int) -> list[Value]:
    """Read registers from scratch memory."""
    values = []
    for index in range(count):
        at = register_at(c, where, index, bits)
        values.append(c.from_vector(c.op(f"load <32 x i{bits}>, ptr {at}, align 64"), bits))
    return values


def register_at(c: Context, where: str, index: int, bits: int = 32) -> str:
    """Where a register lies."""
    if not index:
        return where
    return c.op(f"getelementptr i8, ptr {where}, i64 {index * LANES * bits // 8}")


def geometry(c: Context, op: Operation, tile: Tile) -> tuple[int, str, int]:
    """Width of a tile's words, the table native functions read, elements of a line."""
    walk = walk_of(op)
    extent = "x".join(map(str, shape_of(op)))
    name = f"tile.{tile.role}.{extent}.{tile.type.bits}.{tile.registers}.{tile.layout}"
    numbers = _numbers(walk, tile.type.bits)
    listed = ", ".join(f"i16 {n}" for n in numbers)
    c.declare(name, f"{{}} = private unnamed_addr constant [{len(numbers)} x i16] [{listed}]")
    return walk.bits, f"@{name}", walk.line_elements


@lru_cache(maxsize=256)
def walk_of(op: Operation) -> Walk:
    """Words in which ``wmma.load`` or ``wmma.store`` moves its tile."""
    tile = moved_of(op)
    role = "c" if tile.role == "d" else tile.role
    once = tiles.wmma_fragment(role, shape_of(op), tile.type.bits)
    return tiles.walk(tiles.with_copies(once, tile.registers), tile.layout)


def _numbers(walk: Walk, bits: int) -> list[int]:
    """Words, lines, bytes of a line, words of a register; then the word of every lane."""
    places = (walk.line * walk.line_elements + walk.along) // (walk.bits // bits)
    head = (len(walk.line), walk.line_count, walk.line_elements * bits // 8, walk.per_register)
    return [*head, *places.reshape(-1).tolist()]
