"""Warp-level matrix instructions: lanes that come together, 8 x 8 matrices, tiles in memory.

All 32 lanes of a warp must execute one of these together.  Products are in :mod:`.product`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from va100.numerics import tiles
from va100.numerics.fragments import Fragment
from va100.numerics.tiles import Walk
from va100.ptx.isa.tiles import Tile, moved_of, shape_of, tiles_of
from va100.ptx.program import Operand, Vector
from va100.ptx.types import Space
from va100.reference.collective import Collective, collect
from va100.reference.issue import Issue
from va100.reference.lanes import U32, Lanes, unsigned_type
from va100.reference.memory import count
from va100.reference.product import multiply

ROW_BYTES: Final = 16
"""A row of an 8 x 8 matrix of 16-bit elements."""
ROWS: Final = 8


def evaluate_matrix(issue: Issue) -> None:
    """Evaluate one instruction of the family, once all lanes have come."""
    collect(issue, _complete)


def _complete(all_lanes: Collective) -> None:
    operation = all_lanes.operation
    name = operation.opcode
    if name == "wmma":
        name = next(f"wmma.{w}" for w in ("load", "store", "mma") if w in operation.modifiers)
    MATRIX[name](all_lanes)


# ---------------------------------------------------------------- 8 x 8 matrices


def ldmatrix(all_lanes: Collective) -> None:
    """Load matrices of 8 rows, whose addresses the lanes give, eight a matrix."""
    operation = all_lanes.operation
    matrices = tiles_of(operation)[0].registers
    destination, source = all_lanes.step.operands[:2]
    addresses = all_lanes.address(source, operation.space or Space.GENERIC)
    rows = all_lanes.part((1 << ROWS * matrices) - 1)
    rows.check(addresses, Space.SHARED, ROW_BYTES)
    given = addresses[rows.mask]
    cta = all_lanes.warp.cta
    cta.launch.tally.shared_rows(
        (given - np.uint64(cta.shared_address)).reshape(matrices, ROWS), ROW_BYTES
    )
    words = given[:, None] + np.arange(0, ROW_BYTES, 4, dtype=np.uint64)
    data = cta.launch.storage.gather(words.reshape(-1), 4).view(np.uint16)
    fragment = tiles.eight_by_eight(transposed="trans" in operation.modifiers)
    for element, matrix in zip(_elements(destination), data.reshape(-1, 8, 8), strict=True):
        all_lanes.write(element, fragment.scatter(matrix.astype(np.uint32))[0])


def movmatrix(all_lanes: Collective) -> None:
    """Transpose a matrix of 16-bit elements held by the warp."""
    destination, source = all_lanes.step.operands[:2]
    matrix = tiles.eight_by_eight().gather(all_lanes.read(source, U32)[np.newaxis])
    all_lanes.write(destination, tiles.eight_by_eight(transposed=True).scatter(matrix)[0])


# ---------------------------------------------------------------- tiles


def wmma_load(all_lanes: Collective) -> None:
    """Load a tile of a matrix in memory into its fragment."""
    destination, source = all_lanes.step.operands[:2]
    tile = moved_of(all_lanes.operation)
    fragment = _fragment(all_lanes, tile)
    walk = tiles.walk(fragment, tile.layout)
    words = [
        _gather(all_lanes, addresses, walk.bits)
        for addresses in _places(all_lanes, source, tile, walk, store=False)
    ]
    registers = _joined(words, fragment, walk)
    for element, register in zip(_elements(destination), registers, strict=True):
        all_lanes.write(element, register)


def wmma_store(all_lanes: Collective) -> None:
    """Store a fragment as a tile of a matrix in memory."""
    target, source = all_lanes.step.operands[:2]
    tile = moved_of(all_lanes.operation)
    fragment = _fragment(all_lanes, tile)
    walk = tiles.walk(fragment, tile.layout)
    registers = all_lanes.registers(source, tile)
    split = registers.view(unsigned_type(walk.bits)).reshape(
        fragment.registers, 32, walk.per_register
    )
    words = split.transpose(0, 2, 1).reshape(-1, 32)
    places = _places(all_lanes, target, tile, walk, store=True)
    for addresses, word in zip(places, words, strict=True):
        all_lanes.warp.cta.launch.storage.scatter(addresses, word)


def _fragment(all_lanes: Collective, tile: Tile) -> Fragment:
    role = "c" if tile.role == "d" else tile.role
    once = tiles.wmma_fragment(role, shape_of(all_lanes.operation), tile.type.bits)
    return tiles.with_copies(once, tile.registers)


def _places(
    all_lanes: Collective, operand: Operand | None, tile: Tile, walk: Walk, *, store: bool
) -> list[Lanes]:
    """Checked generic addresses of each word."""
    space = all_lanes.operation.space or Space.GENERIC
    base = all_lanes.same(all_lanes.address(operand, space), "address")
    operands = all_lanes.step.operands
    stride = walk.line_elements
    if len(operands) > 2:
        stride = all_lanes.same(all_lanes.read(operands[2], U32), "stride")
    if stride * tile.type.bits % 8:
        raise all_lanes.whole.broken(
            f"a stride of {stride} elements of {tile.type.bits} bits is no whole number of bytes"
        )
    found = []
    for line, along in zip(walk.line, walk.along, strict=True):
        offset = (line * stride + along) * tile.type.bits // 8
        addresses = np.uint64(base) + offset.astype(np.uint64)
        all_lanes.whole.check(addresses, space, walk.bits // 8)
        count(all_lanes.whole, addresses, space, walk.bits // 8, store=store)
        found.append(addresses)
    return found


def _gather(all_lanes: Collective, addresses: Lanes, bits: int) -> Lanes:
    return all_lanes.warp.cta.launch.storage.gather(addresses, bits // 8)


def _joined(words: list[Lanes], fragment: Fragment, walk: Walk) -> Lanes:
    """Words put together to registers."""
    parts = np.stack(words).reshape(fragment.registers, walk.per_register, 32)
    packed = np.ascontiguousarray(parts.transpose(0, 2, 1)).view(
        unsigned_type(max(fragment.element_bits, 32))
    )
    return packed.reshape(fragment.registers, 32)


def _elements(operand: Operand | None) -> tuple[Operand | None, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


MATRIX: Final[Mapping[str, Callable[[Collective], None]]] = {
    "ldmatrix": ldmatrix,
    "movmatrix": movmatrix,
    "wmma.load": wmma_load,
    "wmma.store": wmma_store,
    "wmma.mma": multiply,
    "mma": multiply,
}
"""Instruction to its function."""
