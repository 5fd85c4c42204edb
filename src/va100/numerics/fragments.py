"""Which lane holds which element of a matrix: the fragments of warp-level matrix instructions.

A fragment is data: for every register, lane and element inside the register, the place in the
matrix.  One formula makes every ``m16n8`` and ``m8n8`` fragment of sm_80; the Volta shape and
``wmma``'s larger tiles are spelled out beside it.  What is done with the elements is not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Registers = npt.NDArray[Any]
"""(registers, 32) raw bits, uint32 or uint64."""
Matrix = npt.NDArray[Any]
"""Raw bits of elements, the smallest unsigned type that holds one."""
Index = npt.NDArray[np.int64]

LANES: Final = 32
_LANE: Final = np.arange(LANES)
_GROUP: Final = (_LANE >> 2)[None, :, None]
_MEMBER: Final = (_LANE & 3)[None, :, None]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Fragment:
    """Where the elements of one operand lie.

    ``index`` is (registers, 32, elements of a register): the element's place in the flattened
    matrix; element j of a register is in bits ``j * bits`` and up.  Registers from ``needed`` on
    hold copies, which loads fill and products do not read.
    """

    shape: tuple[int, ...]
    bits: int
    index: Index
    needed: int

    @property
    def registers(self) -> int:
        """Registers of the operand, copies included."""
        return int(self.index.shape[0])

    @property
    def register_bits(self) -> int:
        """Width of a register: 32, or 64 for f64."""
        return max(self.bits, 32)


def unpack(fragment: Fragment, registers: Registers) -> Matrix:
    """Matrix in the registers of a warp.

    Parameters
    ----------
    registers : (needed or more, 32), raw bits
    """
    index = fragment.index[: fragment.needed]
    kept = np.asarray(registers[: fragment.needed], _unsigned(fragment.register_bits))
    shifts = np.arange(index.shape[2], dtype=kept.dtype) * kept.dtype.type(fragment.bits)
    mask = kept.dtype.type((1 << fragment.bits) - 1)
    elements = (kept[:, :, None] >> shifts) & mask
    matrix = np.zeros(int(np.prod(fragment.shape)), _unsigned(fragment.bits))
    matrix[index] = elements
    return matrix.reshape(fragment.shape)


def pack(fragment: Fragment, matrix: Matrix) -> Registers:
    """Registers of a warp that hold a matrix, copies included."""
    kind = _unsigned(fragment.register_bits)
    elements = np.ascontiguousarray(matrix).reshape(-1)[fragment.index].astype(kind)
    shifts = np.arange(fragment.index.shape[2], dtype=kind) * kind.type(fragment.bits)
    packed: Registers = np.bitwise_or.reduce(elements << shifts, axis=2)
    return packed


# ---------------------------------------------------------------- the one formula


@cache
def mma_a(m: int, k: int, bits: int) -> Fragment:
    """A, m x k with m 8 or 16, of ``mma``; also the compressed A of ``mma.sp`` with its k."""
    row, column = _places_a(m, k, bits)
    return _fragment((m, k), bits, row * k + column)


@cache
def mma_b(k: int, n: int, bits: int) -> Fragment:
    """B, k x 8, of ``mma``."""
    row, column = _places_b(k, bits)
    return _fragment((k, n), bits, row * n + column)


@cache
def mma_c(m: int, n: int, bits: int) -> Fragment:
    """C and D, m x 8, of ``mma``."""
    row, column = _places_c(m, bits)
    return _fragment((m, n), bits, row * n + column)


def _places_a(m: int, k: int, bits: int) -> tuple[Index, Index]:
    each = max(32 // bits, 1)
    tall = m // 8
    register = np.arange(max(k // (4 * each), 1) * tall)[:, None, None]
    inside = np.arange(each)[None, None, :]
    row = _GROUP + 8 * (register % tall) + 0 * inside
    return row, each * (_MEMBER + 4 * (register // tall)) + inside


def _places_b(k: int, bits: int) -> tuple[Index, Index]:
    column, row = _places_a(8, k, bits)
    return row, column


def _places_c(m: int, bits: int) -> tuple[Index, Index]:
    if bits == 16:
        register, half = np.arange(m // 8)[:, None, None], np.arange(2)[None, None, :]
        return _GROUP + 8 * register + 0 * half, 2 * _MEMBER + half + 0 * register
    register = np.arange(m // 4)[:, None, None]
    return _GROUP + 8 * (register >> 1), 2 * _MEMBER + (register & 1)


# ---------------------------------------------------------------- mma.m8n8k4.f16: four products


QUADS: Final = 4
"""Products of one ``mma.m8n8k4`` with f16 operands: lanes 4q to 4q+3 and 16 more form product q."""


@cache
def quad_a(layout: str) -> Fragment:
    """A, 4 x (8 x 4) f16, ``row`` or ``col``."""
    line, across = _quad_lines(along=layout == "row")
    return _fragment((QUADS, 8, 4), 16, _quad() * 32 + line * 4 + across)


@cache
def quad_b(layout: str) -> Fragment:
    """B, 4 x (4 x 8) f16, ``row`` or ``col``."""
    line, across = _quad_lines(along=layout == "col")
    return _fragment((QUADS, 4, 8), 16, _quad() * 32 + across * 8 + line)


@cache
def quad_c(bits: int) -> Fragment:
    """C and D, 4 x (8 x 8), f16 or f32."""
    upper = 4 * (_LANE >= 16)[None, :, None]
    if bits == 16:
        register, half = np.arange(4)[:, None, None], np.arange(2)[None, None, :]
        return _fragment(
            (QUADS, 8, 8), 16, _quad() * 64 + (_MEMBER + upper) * 8 + 2 * register + half
        )
    i = np.arange(8)[:, None, None]
    row = (_MEMBER & 1) + (i & 2) + upper
    column = (i & 4) + (_MEMBER & 2) + (i & 1)
    return _fragment((QUADS, 8, 8), 32, _quad() * 64 + row * 8 + column)


def _quad() -> Index:
    return (_LANE >> 2 & 3)[None, :, None]


def _quad_lines(*, along: bool) -> tuple[Index, Index]:
    """Index along the side of eight, and along k, of the four halves of a lane."""
    upper = 4 * (_LANE >= 16)[None, :, None]
    half = (2 * np.arange(2)[:, None] + np.arange(2))[:, None, :]
    if along:
        return _MEMBER + upper + 0 * half, half + 0 * _MEMBER
    return half + upper, _MEMBER + 0 * half


# ---------------------------------------------------------------- wmma


@cache
def wmma(role: str, shape: tuple[int, int, int], bits: int, copies: int = 1) -> Fragment:
    """Fragment of a ``wmma`` tile, made of ``mma`` fragments.

    Parameters
    ----------
    role : str
        ``a`` (m x k), ``b`` (k x n) or ``c`` (m x n, also for d).
    shape : tuple of int
        m, n, k.
    copies : int
        Registers in all, for f16 operands, which always have eight.
    """
    m, n, k = shape
    if m == 8 and n == 32:  # computed as its transpose
        other = {"a": "b", "b": "a", "c": "c"}[role]
        row, column = _tiles(other, (n, m, k), bits)[::-1]
    else:
        row, column = _tiles(role, shape, bits)
    extent = {"a": (m, k), "b": (k, n), "c": (m, n)}[role]
    index = row * extent[1] + column
    needed = index.shape[0]
    if copies > needed:
        index = np.concatenate([index] * (copies // needed))
    return Fragment(shape=extent, bits=bits, index=index, needed=needed)


def _tiles(role: str, shape: tuple[int, int, int], bits: int) -> tuple[Index, Index]:
    """Rows and columns of m16n16, m32n8 or m8n8 tiles: slabs of ``mma`` fragments side by side."""
    m, n, k = shape
    height = min(m, 16)
    parts: list[tuple[Index, Index]] = []
    if role == "a":
        row, column = _places_a(height, k, bits)
        parts = [(row + step, column) for step in range(0, m, height)]
    elif role == "b":
        row, column = _places_b(k, bits)
        parts = [(row, column + step) for step in range(0, n, 8)]
    else:
        row, column = _places_c(height, bits)
        parts = [
            (row + down, column + right) for down in range(0, m, height) for right in range(0, n, 8)
        ]
    return np.concatenate([r for r, _ in parts]), np.concatenate([c for _, c in parts])


# ---------------------------------------------------------------- 8 x 8 matrices of 16 bits


@cache
def eight_by_eight(*, transposed: bool = False) -> Fragment:
    """One matrix of ``ldmatrix`` and ``movmatrix``: a register of every lane."""
    row, column = _GROUP + 0 * np.arange(2), 2 * _MEMBER + np.arange(2)
    if transposed:
        row, column = column, row
    return _fragment((8, 8), 16, row * 8 + column)


# ---------------------------------------------------------------- metadata of mma.sp


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Metadata:
    """Where the four bits of each chunk of compressed A lie in the metadata registers.

    ``lane`` and ``bit`` are (rows, chunks).  ``selectors`` counts the selector's legal values;
    which lanes are read depends on it.
    """

    lane: Index
    bit: Index


@cache
def sparse_selectors(k: int, bits: int) -> int:
    """Legal selectors, from 0 up: how many sets of lanes may hold the metadata."""
    whole = k * bits == 512
    if bits >= 16:
        return 2 if whole else 4
    return 1 if whole else 2


@cache
def sparse_metadata(k: int, bits: int, selector: int) -> Metadata:
    """Metadata of ``mma.sp.m16n8`` with dense extent k and operands of some bits.

    A chunk is four elements of 16 or 8 bits, two of 32, eight of 4: the half-wide shape and half
    of the wide shape's chunks a lane are inferred, see the sources of the numerics.
    """
    chunks = {32: k // 2, 16: k // 4, 8: k // 4, 4: k // 8}[bits]
    row, chunk = np.indices((16, chunks))
    group, lower = row % 8, row // 8
    if bits >= 16:
        # A lane holds four chunks of its row and four of the row eight below.
        pair = chunks // 4  # lanes that share a row
        lane = 4 * group + pair * selector + chunk // 4
        bit = 16 * lower + 4 * (chunk % 4)
    elif chunks == 8:
        lane, bit = 4 * group + 2 * selector + lower, 4 * chunk
    else:
        lane, bit = 4 * group + lower + 2 * (chunk // 8), 4 * (chunk % 8)
    return Metadata(lane=lane, bit=bit)


# ---------------------------------------------------------------- small things


def _fragment(shape: Sequence[int], bits: int, index: Index) -> Fragment:
    return Fragment(shape=tuple(shape), bits=bits, index=index, needed=int(index.shape[0]))


def _unsigned(bits: int) -> np.dtype[Any]:
    return np.dtype({1: np.uint8, 4: np.uint8, 8: np.uint8, 16: np.uint16, 32: np.uint32,
                     64: np.uint64}[bits])  # fmt: skip
