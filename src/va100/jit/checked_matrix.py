"""What the checker is told of matrix instructions: the words each lane reads or writes."""

from __future__ import annotations

from va100.jit import abi
from va100.jit.access import address_value
from va100.jit.context import Context
from va100.jit.tiles import walk_of
from va100.ptx.isa.form import Operation
from va100.ptx.isa.tiles import moved_of, tiles_of
from va100.ptx.types import PtxType, Space

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
    rows = _ROWS * tiles_of(op)[0].registers
    space = op.space or Space.GENERIC
    lanes = c.lanes
    if rows < 32:
        lanes = c.op(f"and i32 {lanes}, {(1 << rows) - 1}")
    addresses = c.vector(address_value(c, c.instruction.operands[1], space))
    _tell(c, addresses, lanes, (space, _ROW_WORDS, _WORD_SIZE, _LOAD))


def _tell_tile(c: Context, op: Operation) -> None:
    """Every word that a lane moves."""
    tile, walk = moved_of(op), walk_of(op)
    space = op.space or Space.GENERIC
    stores = "store" in op.modifiers
    operands = c.instruction.operands
    base = c.vector(address_value(c, operands[0 if stores else 1], space))
    pitch = f"splat (i64 {walk.line_elements * tile.type.bits // 8})"
    if len(operands) > 2:
        stride = c.vector(c.resized(c.read_sized(operands[2], PtxType.U32), 64))
        scaled = c.op(f"mul <32 x i64> {stride}, splat (i64 {tile.type.bits})")
        pitch = c.op(f"lshr <32 x i64> {scaled}, splat (i64 3)")
    size = (walk.bits // 8).bit_length() - 1
    for line, along in zip(walk.line.tolist(), walk.along.tolist(), strict=True):
        lines = ", ".join(f"i64 {v}" for v in line)
        steps = ", ".join(f"i64 {v * tile.type.bits // 8}" for v in along)
        down = c.op(f"mul <32 x i64> {pitch}, <{lines}>")
        across = c.op(f"add <32 x i64> {down}, <{steps}>")
        addresses = c.op(f"add <32 x i64> {base}, {across}")
        _tell(c, addresses, c.lanes, (space, 1, size, _STORE if stores else _LOAD))


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
