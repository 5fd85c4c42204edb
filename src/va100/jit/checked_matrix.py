"""What the checker is told of matrix instructions: the words each lane reads or writes."""

from __future__ import annotations

from collections.abc import Iterator

from va100.jit import abi
from va100.jit.access import address_value
from va100.jit.context import Context
from va100.jit.emit import Value
from va100.jit.tiles import walk_of
from va100.ptx.isa.form import Operation
from va100.ptx.isa.tiles import moved_of, tiles_of
from va100.ptx.types import PtxType, Space
from va100.work import WARP_SIZE

_WITH_STRIDE = 3
_LOAD, _STORE = range(2)
_ROWS, _ROW_WORDS, _WORD_SIZE = 8, 4, 2


def tell_matrix(c: Context, op: Operation) -> None:
    """Tell that the warp meets, then of memory."""
    everyone = c.array("i32")
    c.line(f"store <32 x i32> splat (i32 -1), ptr {everyone}, align 64")
    c.declare("va_h_check_sync", "declare void {}(ptr, i32, i32, ptr, i32)")
    c.line(
        f"call void @va_h_check_sync(ptr %w, i32 {c.site}, i32 {c.lanes}, ptr {everyone}, i32 0)"
    )
    if op.opcode == "ldmatrix":
        _tell_rows(c, op)
    elif op.opcode == "wmma" and "mma" not in op.modifiers:
        _tell_tile(c, op)


def _tell_rows(c: Context, op: Operation) -> None:
    """Eight lanes a matrix read a row each, for all."""
    space = op.space or Space.GENERIC
    lanes = row_lanes(c, op)
    addresses = c.vector(address_value(c, c.instruction.operands[1], space))
    _tell(c, addresses, lanes, (space, _ROW_WORDS, _WORD_SIZE, _LOAD))


def row_lanes(c: Context, op: Operation) -> str:
    """Acting lanes that name a row of ``ldmatrix``: eight a matrix, from lane 0 on."""
    rows = _ROWS * tiles_of(op)[0].registers
    return c.op(f"and i32 {c.lanes}, {(1 << rows) - 1}") if rows < WARP_SIZE else c.lanes


def _tell_tile(c: Context, op: Operation) -> None:
    """Every word that a lane moves."""
    space = op.space or Space.GENERIC
    size = (walk_of(op).bits // 8).bit_length() - 1
    kind = _STORE if "store" in op.modifiers else _LOAD
    for addresses in tile_words(c, op, *tile_place(c, op, space)):
        _tell(c, addresses, c.lanes, (space, 1, size, kind))


def tile_place(c: Context, op: Operation, space: Space) -> tuple[Value, Value | None]:
    """Where a tile of ``wmma.load`` or ``wmma.store`` lies, and elements from line to line."""
    operands = c.instruction.operands
    base = address_value(c, operands[0 if "store" in op.modifiers else 1], space)
    if len(operands) < _WITH_STRIDE:
        return base, None
    return base, c.resized(c.read_sized(operands[2], PtxType.U32), 64)


def tile_words(c: Context, op: Operation, base: Value, stride: Value | None) -> Iterator[str]:
    """Addresses of each word that a lane moves, 32 lanes at a time."""
    tile, walk = moved_of(op), walk_of(op)
    start = c.vector(base)
    pitch = f"splat (i64 {walk.line_elements * tile.type.bits // 8})"
    if stride is not None:
        scaled = c.op(f"mul <32 x i64> {c.vector(stride)}, splat (i64 {tile.type.bits})")
        pitch = c.op(f"lshr <32 x i64> {scaled}, splat (i64 3)")
    for line, along in zip(walk.line.tolist(), walk.along.tolist(), strict=True):
        lines = ", ".join(f"i64 {v}" for v in line)
        steps = ", ".join(f"i64 {v * tile.type.bits // 8}" for v in along)
        down = c.op(f"mul <32 x i64> {pitch}, <{lines}>")
        across = c.op(f"add <32 x i64> {down}, <{steps}>")
        yield c.op(f"add <32 x i64> {start}, {across}")


def _tell(c: Context, addresses: str, lanes: str, access: tuple[Space, int, int, int]) -> None:
    space, count, size, kind = access
    where = c.array("i64")
    c.line(f"store <32 x i64> {addresses}, ptr {where}, align 64")
    info = c.site | count << 32 | abi.SPACE_CODES[space.value] << 36 | size << 40 | kind << 43
    c.declare("va_h_check_access", "declare void {}(ptr, i64, i32, ptr, ptr, i64)")
    c.line(
        f"call void @va_h_check_access(ptr %w, i64 {info}, i32 {lanes}, ptr {where}, ptr null, "
        "i64 0)"
    )
