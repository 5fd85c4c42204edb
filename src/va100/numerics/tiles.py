"""Fragments beyond one ``mma``: ``wmma``'s tiles, 8 x 8 matrices, and tiles in memory.

A tile is several fragments of :mod:`va100.numerics.fragments` side by side.  Which registers of
``wmma`` hold which element is opaque to programs, but stored fragments and element-wise code
over several of them see it, so it is kept as the chip has it.  Sparse metadata is in
:mod:`va100.numerics.sparse_metadata`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from va100.numerics.fragments import LANES, Fragment, Index, fragment_a, fragment_b, fragment_c

QUADS: Final = 4
"""Products of one ``mma.m8n8k4`` on f16."""


def wmma_fragment(role: str, shape: tuple[int, int, int], bits: int) -> Fragment:
    """Fragment of a ``wmma`` tile, each element once.

    Parameters
    ----------
    role : str
        ``a`` (m x k), ``b`` (k x n) or ``c`` (m x n, also for d).
    shape : tuple of int
        m, n, k.
    """
    m, n, k = shape
    if m == 8 and n == 32:  # computed as its transpose
        tall = wmma_fragment({"a": "b", "b": "a", "c": "c"}[role], (n, m, k), bits)
        return Fragment(tall.columns, tall.rows, bits)
    height = min(m, 16)
    downs, rights = range(0, m, height), range(0, n, 8)
    if role == "a":
        part, steps = fragment_a(height, k, bits), [(down, 0) for down in downs]
    elif role == "b":
        part, steps = fragment_b(k, bits), [(0, right) for right in rights]
    else:
        part = fragment_c(height, bits)
        steps = [(down, right) for down in downs for right in rights]
    rows = np.concatenate([part.rows + down for down, _ in steps])
    return Fragment(rows, np.concatenate([part.columns + right for _, right in steps]), bits)


def with_copies(fragment: Fragment, registers: int) -> Fragment:
    """The fragment again and again, up to a number of registers: f16 operands have eight."""
    times = registers // fragment.registers
    rows, columns = (np.concatenate([v] * times) for v in (fragment.rows, fragment.columns))
    return Fragment(rows, columns, fragment.element_bits)


@cache
def eight_by_eight(*, transposed: bool = False) -> Fragment:
    """One matrix of ``ldmatrix`` and ``movmatrix``: a register of every lane."""
    straight = fragment_c(8, 16)
    if transposed:
        return Fragment(straight.columns, straight.rows, 16)
    return straight


def quad_lanes(quad: int) -> list[int]:
    """Lanes that form one of the four products of ``mma.m8n8k4`` on f16."""
    return [*range(4 * quad, 4 * quad + 4), *range(16 + 4 * quad, 20 + 4 * quad)]


# ---------------------------------------------------------------- tiles in memory


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Walk:
    """The words in which a warp moves a fragment to or from a matrix in memory.

    ``line`` and ``along`` are (words, 32): the row of a row-major matrix, or the column of the
    other, and the element in it at which a lane's word begins.  ``bits`` is the width of a word;
    ``per_register`` words make a register, lowest first.
    """

    line: Index
    along: Index
    bits: int
    per_register: int
    line_count: int
    line_elements: int


def walk(fragment: Fragment, layout: str) -> Walk:
    """Words of a fragment whose matrix is ``row`` or ``col`` major."""
    rows, columns = fragment.shape
    line, along = fragment.rows, fragment.columns
    if layout == "col":
        line, along, rows, columns = along, line, columns, rows
    each = line.shape[2]
    if _side_by_side(line, along):
        line, along = line[:, :, 0], along[:, :, 0]
        bits, each = max(fragment.element_bits, 32), 1
    else:
        line, along = (v.transpose(0, 2, 1).reshape(-1, LANES) for v in (line, along))
        bits = fragment.element_bits
    return Walk(
        line=line,
        along=along,
        bits=bits,
        per_register=each,
        line_count=rows,
        line_elements=columns,
    )


def _side_by_side(line: npt.NDArray[Any], along: npt.NDArray[Any]) -> bool:
    """Whether the elements of every register follow one another in memory."""
    steps = np.arange(line.shape[2])
    return bool((line == line[:, :, :1]).all() and (along == along[:, :, :1] + steps).all())
