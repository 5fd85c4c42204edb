"""Which element of a matrix a lane holds: the maps of sm_80's warp-wide matrix instructions.

One formula serves every ``mma.sync`` of m16n8 and m8n8 shape; the Volta shape m8n8k4 of f16 has
its own.  ``w`` is the bits of an element, ``e = 32 / w`` of them share a register (one where an
element fills it), and element j of a register sits in bits ``[w*j, w*j + w)``.  With g = lane // 4
and t = lane % 4::

    A, 16 rows   row = g + 8 * (r % 2)     k = e * (t + 4 * (r // 2)) + j
    A, 8 rows    row = g                   k = e * t + j
    B            column = g                k = e * (t + 4 * r) + j
    C, D 32 bit  row = g + 8 * (i // 2)    column = 2 * t + i % 2
    C, D f16     row = g + 8 * r           column = 2 * t + j

A map is a :class:`Fragment`: coordinates for every register, lane and element.  Sparse metadata
is in :mod:`va100.numerics.sparsity`; the arithmetic in :mod:`va100.numerics.mma`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Index = npt.NDArray[np.intp]
LANES: Final = 32
_LANE: Final = np.arange(LANES)[None, :, None]
_G: Final = _LANE // 4
_T: Final = _LANE % 4


@dataclass(frozen=True, slots=True)
class Fragment:
    """Coordinates of the elements in a warp's registers.

    ``rows`` and ``columns`` are (registers, 32 lanes, elements of a register) of the matrix as it
    is written: A is M by K, B is K by N, C and D are M by N.
    """

    rows: Index
    columns: Index
    element_bits: int

    @property
    def registers(self) -> int:
        """Registers of a lane."""
        return len(self.rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return int(self.rows.max()) + 1, int(self.columns.max()) + 1

    def gather(self, registers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Matrix of raw elements from (registers, 32) raw bits."""
        kind = registers.dtype.type
        width = kind(self.element_bits)
        shifts = np.arange(self.rows.shape[2], dtype=registers.dtype) * width
        mask = kind((1 << self.element_bits) - 1)
        matrix = np.zeros(self.shape, registers.dtype)
        matrix[self.rows, self.columns] = (registers[:, :, None] >> shifts) & mask
        return matrix

    def scatter(self, matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """(registers, 32) raw bits from a matrix of raw elements, of the register's type."""
        kind = matrix.dtype.type
        shifts = np.arange(self.rows.shape[2], dtype=matrix.dtype) * kind(self.element_bits)
        parts = matrix[self.rows, self.columns] << shifts
        registers: npt.NDArray[Any] = np.bitwise_or.reduce(parts, axis=2)
        return registers


def fragment_a(m: int, k: int, element_bits: int) -> Fragment:
    """A of an m16n8 or m8n8 instruction; f64 has a register of 64 bits an element."""
    per = _elements(element_bits)
    count = k // (4 * per) * (m // 8)
    r, j = _axes(count, per)
    tall = m // 8
    rows = _G + 8 * (r % tall) + 0 * j
    return _fragment(rows, per * (_T + 4 * (r // tall)) + j, element_bits)


def fragment_b(k: int, element_bits: int) -> Fragment:
    """B of an m16n8 or m8n8 instruction."""
    per = _elements(element_bits)
    r, j = _axes(k // (4 * per), per)
    return _fragment(per * (_T + 4 * r) + j, _G + 0 * (r + j), element_bits)


def fragment_c(m: int, element_bits: int) -> Fragment:
    """C and D of an m16n8 or m8n8 instruction: 16, 32 or 64 bits an element."""
    per = _elements(element_bits)
    r, j = _axes(m // 8 * 2 // per, per)
    if per == 2:
        return _fragment(_G + 8 * r + 0 * j, 2 * _T + j + 0 * r, element_bits)
    return _fragment(_G + 8 * (r // 2) + j, 2 * _T + r % 2 + j, element_bits)


def volta_a(*, row_major: bool) -> tuple[Fragment, ...]:
    """A of the four products of one ``mma.m8n8k4`` on f16; lanes of the others are not used."""
    rows, columns = (_quad(), _halves()) if row_major else (_halves(), _quad())
    offset = 4 * _high()
    return _quads(rows + offset, columns + 0 * offset)


def volta_b(*, row_major: bool) -> tuple[Fragment, ...]:
    """B of the four products."""
    rows, columns = (_quad(), _halves()) if row_major else (_halves(), _quad())
    offset = 4 * _high()
    return _quads(rows + 0 * offset, columns + offset)


def volta_c(element_bits: int) -> tuple[Fragment, ...]:
    """C and D of the four products, f16 or f32."""
    if element_bits == 16:
        r, j = _axes(4, 2)
        return _quads(_quad() + 4 * _high() + 0 * (r + j), 2 * r + j + 0 * _LANE)
    i, j = _axes(8, 1)
    rows = (_LANE & 1) + (i & 2) + 4 * _high() + j
    return _quads(rows, (i & 4) + (_LANE & 2) + (i & 1) + j, element_bits=32)


def _elements(element_bits: int) -> int:
    return max(32 // element_bits, 1)


def _axes(registers: int, elements: int) -> tuple[Index, Index]:
    return np.arange(registers)[:, None, None], np.arange(elements)[None, None, :]


def _fragment(rows: Any, columns: Any, element_bits: int) -> Fragment:
    rows, columns = np.broadcast_arrays(rows, columns)
    return Fragment(np.array(rows), np.array(columns), element_bits)


def _quad() -> Any:
    return _LANE % 4


def _high() -> Any:
    return _LANE // 16


def _halves() -> Any:
    """Position of each half in the two registers of a lane."""
    r, j = _axes(2, 2)
    return 2 * r + j + 0 * _LANE


def _quads(rows: Any, columns: Any, *, element_bits: int = 16) -> tuple[Fragment, ...]:
    """Split a warp's map into those of its four products: lanes 4m.. and 16 + 4m.."""
    rows, columns = np.broadcast_arrays(rows, columns)
    own = [[*range(4 * m, 4 * m + 4), *range(16 + 4 * m, 20 + 4 * m)] for m in range(4)]
    return tuple(Fragment(rows[:, at], columns[:, at], element_bits) for at in own)
