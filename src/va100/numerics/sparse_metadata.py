"""Where ``mma.sp`` of sm_80 looks for its metadata: nibbles to warps' registers and back.

A nibble speaks of a group of a row (:mod:`va100.numerics.sparsity`).  The layouts of the deepest
shape of each type are those of published libraries; those of the shape half as deep are inferred
from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from va100.numerics.sparsity import Compressed, Index, Nibbles

LANES: Final = 32
ROWS: Final = 16
"""Rows of an instruction."""
DEPTHS: Final = {32: (8, 16), 16: (16, 32), 8: (32, 64), 4: (64, 128)}
"""Dense K of the two shapes, by the bits of an element."""
_WIDTHS: Final = {32: 2, 16: 4, 8: 4, 4: 8}
_IDLE: Final = 0x4  # the first units: of no element that counts


@dataclass(frozen=True, slots=True)
class MetadataLayout:
    """Where the metadata of an ``mma.sp`` of M = 16 is in a warp.

    ``lanes`` (selectors, 16, groups) names the lane, ``shifts`` the bit of each nibble.  A
    ``confirmed`` layout is that of published libraries; others follow its pattern.
    """

    lanes: npt.NDArray[np.intp]
    shifts: npt.NDArray[np.intp]
    confirmed: bool

    @property
    def selectors(self) -> int:
        """How many instructions' metadata share a register."""
        return len(self.lanes)


def metadata_layout(k: int, element_bits: int) -> MetadataLayout:
    """Layout for an instruction of dense depth ``k``.

    Raises
    ------
    ValueError
        No ``mma.sp`` of sm_80 has this depth and element.
    """
    depths = DEPTHS.get(element_bits, ())
    if k not in depths:
        raise ValueError(f"no mma.sp has k = {k} with elements of {element_bits} bits")
    groups = k // _WIDTHS[element_bits]
    row, group = np.arange(ROWS)[:, None], np.arange(groups)[None, :]
    g, upper = row % 8, row // 8
    if element_bits >= 16:  # a word: row g in the lower half, row g + 8 in the upper
        lanes_a_row = groups // 4
        selectors = 4 // lanes_a_row
        base, shifts = 4 * g + group // 4, 4 * (group % 4) + 16 * upper
    else:  # a word: eight groups of one row
        lanes_a_row = 2
        selectors = 16 // groups
        base, shifts = 4 * g + upper + 2 * (group // 8), 4 * (group % 8) + 0 * row
    lanes = np.stack([base + f * lanes_a_row for f in range(selectors)])
    all_shifts = np.broadcast_to(shifts, lanes.shape)
    return MetadataLayout(lanes, np.array(all_shifts), confirmed=k == max(depths))


def pack_metadata(nibbles: Nibbles, k: int, element_bits: int, selector: int = 0) -> Index:
    """Registers of a warp, (32,), for one instruction's (16, groups) nibbles."""
    layout = metadata_layout(k, element_bits)
    words = np.zeros(LANES, np.uint32)
    shifted = nibbles.astype(np.uint32) << layout.shifts[selector].astype(np.uint32)
    np.bitwise_or.at(words, layout.lanes[selector], shifted)
    return words


def unpack_metadata(words: Index, k: int, element_bits: int, selector: int = 0) -> Nibbles:
    """(16, groups) nibbles that an instruction reads from a warp's register."""
    layout = metadata_layout(k, element_bits)
    shifted = words[layout.lanes[selector]] >> layout.shifts[selector].astype(np.uint32)
    nibbles: Nibbles = (shifted & np.uint32(15)).astype(np.uint8)
    return nibbles


def metadata_registers(compressed: Compressed, element_bits: int) -> Index:
    """Registers for a whole matrix, by its deepest instruction: (tiles, registers, 32).

    A tile is 16 rows.  Instruction s along k reads register ``s // selectors`` with selector
    ``s % selectors``.

    Raises
    ------
    ValueError
        No ``mma.sp`` has such elements with this pattern.
    """
    if _WIDTHS.get(element_bits) != compressed.pattern.width:
        raise ValueError(
            f"no mma.sp has {compressed.pattern.name} with {element_bits}-bit elements"
        )
    k = max(DEPTHS[element_bits])
    selectors = metadata_layout(k, element_bits).selectors
    groups = k // compressed.pattern.width
    rows, columns = compressed.nibbles.shape
    padded = np.pad(
        compressed.nibbles,
        [(0, -rows % ROWS), (0, -columns % (groups * selectors))],
        constant_values=_IDLE,
    )
    registers = np.zeros(
        (len(padded) // ROWS, padded.shape[1] // (groups * selectors), LANES), np.uint32
    )
    for tile, register, selector in np.ndindex(*registers.shape[:2], selectors):
        start = (register * selectors + selector) * groups
        part = padded[tile * ROWS : (tile + 1) * ROWS, start : start + groups]
        registers[tile, register] |= pack_metadata(part, k, element_bits, selector)
    return registers
