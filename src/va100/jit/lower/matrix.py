"""Warp-level matrix instructions: 8 x 8 matrices and tiles that move, and who does the products.

All lanes execute these together; while a warp is parted that is looked at before anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from va100.jit import abi
from va100.jit.access import LANES, address_value
from va100.jit.context import Context
from va100.jit.emit import Value
from va100.jit.products import lower_product
from va100.jit.tiles import geometry, load_registers, store_registers
from va100.ptx.isa.form import Operation
from va100.ptx.isa.tiles import Tile, moved_of, tiles_of
from va100.ptx.program import Operand, Vector
from va100.ptx.types import PtxType, Space

_ARRAY: Final = "align 64"


def _lower_ldmatrix(c: Context, op: Operation) -> None:
    """``ldmatrix``: rows of 16 bytes, whose addresses lanes give."""
    space = op.space or Space.GENERIC
    matrices = tiles_of(op)[0].registers
    where, result = c.array("i64"), c.array("i32", LANES * matrices)
    address = address_value(c, c.instruction.operands[1], space)
    c.line(f"store <32 x i64> {c.vector(address)}, ptr {where}, {_ARRAY}")
    info = c.site | matrices << 32 | abi.SPACE_CODES[space.value] << 36
    transposed = int("trans" in op.modifiers)
    c.declare("va_h_ldmatrix", "declare void {}(ptr, i64, i32, ptr, ptr, i32)")
    c.line(
        f"call void @va_h_ldmatrix(ptr %w, i64 {info}, i32 {c.lanes}, ptr {where}, ptr {result}, "
        f"i32 {transposed})"
    )
    _write_all(c, c.instruction.operands[0], load_registers(c, result, matrices, 32))


def _lower_movmatrix(c: Context, op: Operation) -> None:
    """``movmatrix``: halves change places among lanes."""
    del op
    source = c.vector(c.read_sized(c.instruction.operands[1], PtxType.B32))
    halves = c.op(f"bitcast <32 x i32> {source} to <64 x i16>")
    picks = []
    for lane in range(LANES):
        row, column = lane // 4, lane % 4 * 2
        # Half h of this lane is element (column + h, row): lane (column + h) * 4 + row / 2 has it.
        picks += [2 * ((column + h) * 4 + row // 2) + row % 2 for h in (0, 1)]
    order = ", ".join(f"i32 {p}" for p in picks)
    turned = c.op(f"shufflevector <64 x i16> {halves}, <64 x i16> poison, <64 x i32> <{order}>")
    words = c.op(f"bitcast <64 x i16> {turned} to <32 x i32>")
    c.write(c.instruction.operands[0], c.from_vector(words, 32))


# ------------------------------------------------------------------ tiles in memory


def _lower_wmma_load(c: Context, op: Operation) -> None:
    """``wmma.load``: a tile into its fragment."""
    tile = moved_of(op)
    bits, table, lines = geometry(c, op, tile)
    result = c.array(f"i{tile.register_bits}", LANES * tile.registers)
    place = _place(c, op, c.instruction.operands[1], tile, lines)
    _move(c, op, "ld", bits, f"{place}, ptr {table}, ptr {result}")
    values = load_registers(c, result, tile.registers, tile.register_bits)
    _write_all(c, c.instruction.operands[0], values)


def _lower_wmma_store(c: Context, op: Operation) -> None:
    """``wmma.store``: a fragment into its tile."""
    tile = moved_of(op)
    bits, table, lines = geometry(c, op, tile)
    source = store_registers(c, c.instruction.operands[1], tile)
    place = _place(c, op, c.instruction.operands[0], tile, lines)
    _move(c, op, "st", bits, f"{place}, ptr {table}, ptr {source}")


def _move(c: Context, op: Operation, verb: str, bits: int, arguments: str) -> None:
    space = op.space or Space.GENERIC
    name = f"va_h_{verb}tile_{space.value}_{bits}"
    info = c.site | abi.SPACE_CODES[space.value] << 36
    c.declare(name, "declare void {}(ptr, i64, i32, i64, i64, ptr, ptr)")
    c.line(f"call void @{name}(ptr %w, i64 {info}, i32 {c.lanes}, {arguments})")


def _place(
    c: Context, op: Operation, operand: Operand | None, tile: Tile, line_elements: int
) -> str:
    """Address of the tile and bytes from line to line, as arguments."""
    base = _same(c, address_value(c, operand, op.space or Space.GENERIC), "address")
    operands = c.instruction.operands
    if len(operands) < 3:
        return f"i64 {base}, i64 {line_elements * tile.type.bits // 8}"
    stride = _same(c, c.resized(c.read_sized(operands[2], PtxType.U32), 64), "stride")
    scaled = c.op(f"mul i64 {stride}, {tile.type.bits}")
    if tile.type.bits < 8:
        _refuse_fraction(c, stride, scaled, tile.type.bits)
    return f"i64 {base}, i64 {c.op(f'lshr i64 {scaled}, 3')}"


def _same(c: Context, value: Value, what: str) -> str:
    """The scalar of an operand that all lanes must give alike."""
    if value.shape.uniform:
        return c.base(value)
    where = c.array("i64")
    c.line(f"store <32 x i64> {c.vector(value)}, ptr {where}, {_ARRAY}")
    c.declare("va_h_same", "declare i64 {}(ptr, i32, i32, ptr, ptr)")
    return c.op(
        f"call i64 @va_h_same(ptr %w, i32 {c.site}, i32 {c.lanes}, ptr {where}, ptr {c.text(what)})"
    )


def _refuse_fraction(c: Context, stride: str, scaled: str, bits: int) -> None:
    rest = c.op(f"icmp ne i64 {c.op(f'and i64 {scaled}, 7')}, 0")
    if c.mask_may_be_empty:
        rest = c.op(f"and i1 {rest}, {c.op(f'icmp ne i32 {c.lanes}, 0')}")
    odd, even = c.name("odd"), c.name("even")
    c.line(f"br i1 {rest}, label %{odd}, label %{even}, !prof !1")
    c.label(odd)
    c.declare("va_h_fraction", "declare void {}(ptr, i32, i64, i32) cold")
    c.line(f"call void @va_h_fraction(ptr %w, i32 {c.site}, i64 {stride}, i32 {bits})")
    c.line(f"br label %{even}")
    c.label(even)


# ------------------------------------------------------------------ small things


def _write_all(c: Context, operand: Operand | None, values: Sequence[Value]) -> None:
    elements = operand.elements if isinstance(operand, Vector) else (operand,)
    if len(elements) != len(values):
        raise c.refuse(f"{len(values)} registers are needed, {len(elements)} are given")
    for element, value in zip(elements, values, strict=True):
        c.write(element, value)


def _lower_product(c: Context, op: Operation) -> None:
    """``mma``, ``mma.sp``, ``wmma.mma``."""
    _write_all(c, c.instruction.operands[0], lower_product(c, op))


_LOWERINGS: Final[Mapping[str, Callable[[Context, Operation], None]]] = {
    "ldmatrix": _lower_ldmatrix,
    "movmatrix": _lower_movmatrix,
    "wmma.load": _lower_wmma_load,
    "wmma.store": _lower_wmma_store,
    "wmma.mma": _lower_product,
    "mma": _lower_product,
}


def lower_matrix(c: Context, op: Operation) -> None:
    """Warp-level matrix instructions; lanes have waited for each other before they start."""
    name = op.opcode
    if name == "wmma":
        name = next(f"wmma.{w}" for w in ("load", "store", "mma") if w in op.modifiers)
    _require_whole_warp(c, op)
    _LOWERINGS[name](c, op)


def _require_whole_warp(c: Context, op: Operation) -> None:
    """Refuse to go on with some of the lanes; none at all is a guard that does not hold."""
    if c.mask is None:
        return
    parted = c.op(f"icmp ne i32 {c.lanes}, -1")
    if c.mask_may_be_empty:
        parted = c.op(f"and i1 {parted}, {c.op(f'icmp ne i32 {c.lanes}, 0')}")
    missing, whole = c.name("missing"), c.name("whole")
    c.line(f"br i1 {parted}, label %{missing}, label %{whole}, !prof !1")
    c.label(missing)
    c.report_missing(c.lanes, op.text)
    c.line("unreachable")
    c.label(whole)
