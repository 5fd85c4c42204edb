"""What a warp's access costs where its shape is known: sectors of memory, turns of the banks.

Counted from the lattice, without running anything; an access whose lanes go to unrelated places
has no answer here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from va100.jit.lattice import Shape
from va100.numerics.tiles import Walk
from va100.ptx.isa.form import Operation
from va100.ptx.program import Address, Instruction, Operand, Register
from va100.work import WARP_SIZE

SECTOR_BYTES: Final = 32
BANK_BYTES: Final = 4
BANKS: Final = 32


@dataclass(frozen=True, slots=True)
class Pattern:
    """One execution by a whole warp."""

    sectors: int
    """32-byte sectors touched, the base taken as aligned to one."""
    wavefronts: int
    """Turns the shared-memory banks take."""


def pattern_of(
    instruction: Instruction, operation: Operation, shapes: Mapping[str, Shape], lane_bytes: int
) -> Pattern | None:
    """Pattern of a load or store; ``None`` when the lanes' addresses are unrelated."""
    address = instruction.operands[0 if operation.opcode == "st" else 1]
    return pattern_at(address, shapes, lane_bytes)


def pattern_at(
    address: Operand | None, shapes: Mapping[str, Shape], lane_bytes: int
) -> Pattern | None:
    """Pattern of an access by its address."""
    if not isinstance(address, Address):
        return None
    if not isinstance(address.base, Register):
        return Pattern(-(-lane_bytes // SECTOR_BYTES), 1)
    shape = shapes.get(address.base.name)
    if shape is None or shape.varying:
        return None
    offsets = shape.offsets or (0,) * WARP_SIZE
    places = [v + address.offset % SECTOR_BYTES for v in offsets]
    return Pattern(_sectors(places, lane_bytes), _wavefronts(places, lane_bytes))


def rows_pattern(
    address: Operand | None, shapes: Mapping[str, Shape], matrices: int, row_bytes: int
) -> Pattern | None:
    """Pattern of ``ldmatrix``: eight lanes give the rows of a matrix, one matrix after another."""
    if not isinstance(address, Address) or not isinstance(address.base, Register):
        return None
    shape = shapes.get(address.base.name)
    if shape is None or shape.varying:
        return None
    offsets = shape.offsets or (0,) * WARP_SIZE
    turns = sum(_wavefronts(offsets[8 * m : 8 * m + 8], row_bytes) for m in range(matrices))
    return Pattern(0, turns)


def tile_pattern(walk: Walk, element_bits: int, pitch_bytes: int | None) -> Pattern:
    """Pattern of all words of a tile; lines whose distance is not known lie apart."""
    word_bytes = walk.bits // 8
    pitch = pitch_bytes if pitch_bytes is not None else max(walk.line_elements * element_bits, 1024)
    sectors = wavefronts = 0
    for line, along in zip(walk.line.tolist(), walk.along.tolist(), strict=True):
        places = [i * pitch + k * element_bits // 8 for i, k in zip(line, along, strict=True)]
        sectors += _sectors(places, word_bytes)
        wavefronts += _wavefronts(places, word_bytes) if pitch_bytes is not None else 1
    return Pattern(sectors, wavefronts)


def _sectors(places: Sequence[int], lane_bytes: int) -> int:
    touched: set[int] = set()
    for place in places:
        first, last = place // SECTOR_BYTES, (place + lane_bytes - 1) // SECTOR_BYTES
        touched.update(range(first, last + 1))
    return len(touched)


def _wavefronts(places: Sequence[int], lane_bytes: int) -> int:
    """Lanes go in groups whose bytes fit all banks once; a bank serves one word a turn."""
    group = WARP_SIZE // max(lane_bytes // BANK_BYTES, 1)
    total = 0
    for first in range(0, len(places), group):
        words = {
            (place + step) // BANK_BYTES
            for place in places[first : first + group]
            for step in range(0, lane_bytes, BANK_BYTES)
        }
        busy = Counter(word % BANKS for word in words)
        total += max(busy.values())
    return total
