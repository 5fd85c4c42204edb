"""Structured sparsity of A100's tensor cores: prune, check, compress, expand, and lay out metadata.

Half of a matrix's elements along k are zero, in a fixed pattern.  Sixteen- and eight-bit numbers
keep two of four, tf32 one of two, four-bit integers two pairs of four pairs.  A compressed matrix
holds the kept elements and, for each group, a nibble: the place of the lower one in bits 0-1, of
the upper one in bits 2-3 (tf32: 0x4 for the first element, 0xE for the second).

Magnitudes are those of whatever array is given: a number that compares equal to zero is zero.
Multiplication is the dense rule on the kept elements, each with the row of B it belongs to; in
which order an A100 adds them is inferred from the dense instructions, not measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from va100.numerics.formats import Bits, Mask
from va100.numerics.mma import mma
from va100.numerics.mma_rules import MmaRule, Procedure, rule

Array = npt.NDArray[Any]
Nibbles = npt.NDArray[np.uint8]
Index = npt.NDArray[np.uint32]

INFERRED: Final = (
    "how mma.sp adds: the dense rule on the kept elements in ascending k, two blocks an "
    "instruction; no measurement of it has been published"
)
LANES: Final = 32


@dataclass(frozen=True, slots=True)
class Pattern:
    """``kept`` of every ``group`` units along k, a unit being ``unit`` neighbouring elements."""

    name: str
    group: int
    kept: int
    unit: int

    @property
    def width(self) -> int:
        """Elements a nibble of metadata speaks of."""
        return self.group * self.unit


TWO_OF_FOUR: Final = Pattern("2:4", 4, 2, 1)
ONE_OF_TWO: Final = Pattern("1:2", 2, 1, 1)
PAIRS: Final = Pattern("4:8", 4, 2, 2)
PATTERNS: Final = {p.name: p for p in (TWO_OF_FOUR, ONE_OF_TWO, PAIRS)}


def pattern_of(kind: str) -> Pattern:
    """Pattern of a multiply-accumulate kind.

    Raises
    ------
    ValueError
        There is no such kind, or it has no sparse form.
    """
    row = rule(kind)
    if row.procedure not in (Procedure.ALIGNED, Procedure.INTEGER):
        raise ValueError(f"{kind} has no sparse form: f16, bf16, tf32 and integers have")
    if row.dropped_bits:
        return ONE_OF_TWO
    return PAIRS if row.element_bits == 4 else TWO_OF_FOUR


# ------------------------------------------------------------------ pruning


def prune(matrix: Array, pattern: Pattern = TWO_OF_FOUR, *, method: str = "strip") -> Array:
    """Zero the elements of least magnitude that the pattern does not allow.

    Columns past the last whole group count as one with zeros after it.

    Parameters
    ----------
    matrix : (..., M, K)
    method : str
        ``strip`` (or ``magnitude``) takes the largest of each group of a row; of equals the
        first.  ``tile`` takes, in each square of a group's width, the choice of largest total
        that leaves rows and columns in the pattern, so that the transpose is sparse as well.

    Raises
    ------
    ValueError
        There is no such method, or the pattern has no tiles.
    """
    if method not in ("strip", "magnitude", "tile"):
        raise ValueError(f"no method {method!r}: strip (or magnitude) and tile")
    if method == "tile" and pattern.unit > 1:
        raise ValueError(f"{pattern.name} keeps pairs along k, so a transpose cannot keep them")
    keep = _kept_in_tiles if method == "tile" else _kept_in_strips
    pruned: Array = np.where(keep(_magnitudes(matrix), pattern), matrix, matrix.dtype.type(0))
    return pruned


def _magnitudes(matrix: Array) -> npt.NDArray[np.float64]:
    """Sizes to compare, a NaN above all."""
    sizes = np.abs(matrix.astype(np.float64))
    return np.where(np.isnan(sizes), np.inf, sizes)


def _padded(matrix: Array, rows: int, columns: int) -> Array:
    more = [(0, 0)] * (matrix.ndim - 2) + [
        (0, -matrix.shape[-2] % rows),
        (0, -matrix.shape[-1] % columns),
    ]
    return np.pad(matrix, more) if any(b for _, b in more) else matrix


def _kept_in_strips(sizes: npt.NDArray[np.float64], pattern: Pattern) -> Mask:
    m, k = sizes.shape[-2:]
    padded = _padded(sizes, 1, pattern.width)
    groups = padded.reshape(*padded.shape[:-1], -1, pattern.group, pattern.unit)
    with np.errstate(over="ignore"):
        totals = groups.sum(axis=-1)
    order = np.argsort(-totals, axis=-1, kind="stable")
    keep = np.zeros(totals.shape, np.bool_)
    np.put_along_axis(keep, order[..., : pattern.kept], True, axis=-1)  # noqa: FBT003
    wide = np.repeat(keep.reshape(*padded.shape[:-1], -1), pattern.unit, axis=-1)
    return wide[..., :m, :k]


def _kept_in_tiles(sizes: npt.NDArray[np.float64], pattern: Pattern) -> Mask:
    m, k = sizes.shape[-2:]
    side = pattern.group
    padded = _padded(sizes, side, side)
    # An infinity would hide all else in a sum.
    finite = np.where(np.isinf(padded), np.float64(1e300), np.minimum(padded, 1e299))
    shape = (*padded.shape[:-2], padded.shape[-2] // side, side, padded.shape[-1] // side, side)
    tiles = finite.reshape(shape).swapaxes(-3, -2)
    masks = _tile_masks(pattern)
    totals = tiles.reshape(*tiles.shape[:-2], side * side) @ masks.reshape(len(masks), -1).T
    chosen = masks[np.argmax(totals, axis=-1)].astype(np.bool_)
    mask: Mask = chosen.swapaxes(-3, -2).reshape(padded.shape)[..., :m, :k]
    return mask


def _tile_masks(pattern: Pattern) -> npt.NDArray[np.float64]:
    """Every choice that keeps as many of each row as of each column: 90 of two of four."""
    side = pattern.group
    rows = [
        [float(i in chosen) for i in range(side)]
        for chosen in combinations(range(side), pattern.kept)
    ]
    squares = [np.array(square) for square in product(rows, repeat=side)]
    return np.array([s for s in squares if (s.sum(axis=0) == pattern.kept).all()])


# ------------------------------------------------------------------ checking


@dataclass(frozen=True, slots=True)
class Violation:
    """A group of a row with more non-zeros than the pattern allows."""

    row: int
    first_column: int
    last_column: int
    count: int
    pattern: Pattern

    def __str__(self) -> str:
        what = "pairs that are not zero" if self.pattern.unit > 1 else "non-zeros"
        return (
            f"row {self.row}, columns {self.first_column}-{self.last_column} "
            f"hold {self.count} {what}"
        )


def violations(matrix: Array, pattern: Pattern = TWO_OF_FOUR) -> Iterator[Violation]:
    """Groups of a matrix (M, K) that break the pattern, row by row."""
    counts = _occupied(matrix, pattern).sum(axis=-1)
    for row, group in np.argwhere(counts > pattern.kept):
        first = int(group) * pattern.width
        last = min(first + pattern.width, matrix.shape[1]) - 1
        yield Violation(int(row), first, last, int(counts[row, group]), pattern)


def _occupied(matrix: Array, pattern: Pattern) -> Mask:
    """Which units are not zero: (M, groups, group)."""
    if matrix.ndim != 2:
        raise ValueError(f"a matrix has two dimensions, not {matrix.ndim}")
    occupied = _padded(np.asarray(matrix != 0), 1, pattern.width)
    shape = (matrix.shape[0], occupied.shape[1] // pattern.width, pattern.group, pattern.unit)
    result: Mask = np.any(occupied.reshape(shape), axis=-1)
    return result


# ------------------------------------------------------------------ compressing


@dataclass(frozen=True, slots=True)
class Compressed:
    """A sparse matrix (M, K) without its zeros.

    ``values`` is (M, K' / 2), K' being K up to a whole number of groups; ``nibbles`` is (M,
    groups), one a group.  ``columns`` is K.
    """

    values: Array
    nibbles: Nibbles
    columns: int
    pattern: Pattern

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix that was compressed."""
        return self.values.shape[0], self.columns


def compress(matrix: Array, pattern: Pattern = TWO_OF_FOUR) -> Compressed:
    """Take the zeros out of a matrix that keeps the pattern.

    Raises
    ------
    ValueError
        It does not; the message says where.
    """
    broken = next(violations(matrix, pattern), None)
    if broken is not None:
        raise ValueError(f"{broken}; {pattern.name} allows {pattern.kept}: prune it first")
    occupied = _occupied(matrix, pattern)
    # Non-zeros first, then the first zeros; among the kept the order of k.
    order = np.argsort(~occupied, axis=-1, kind="stable")[..., : pattern.kept]
    places = np.sort(order, axis=-1)
    padded = _padded(matrix, 1, pattern.width)
    units = padded.reshape(*occupied.shape, pattern.unit)
    values = np.take_along_axis(units, places[..., None], axis=2)
    return Compressed(
        values.reshape(matrix.shape[0], -1), _nibbles(places, pattern), matrix.shape[1], pattern
    )


def _nibbles(places: Array, pattern: Pattern) -> Nibbles:
    if pattern is ONE_OF_TWO:
        return np.where(places[..., 0] == 0, 0x4, 0xE).astype(np.uint8)
    pairs: Nibbles = (places[..., 0] | places[..., 1] << 2).astype(np.uint8)
    return pairs


def places(nibbles: Nibbles, pattern: Pattern, *, ordered: bool = False) -> Index:
    """Dense column of each kept element, (M, K' / 2).

    Raises
    ------
    ValueError
        A nibble names no two units (with ``ordered``: none in ascending order).
    """
    bad = np.argwhere(~_valid(nibbles, pattern, ordered=ordered))
    if len(bad):
        row, group = (int(i) for i in bad[0])
        first = group * pattern.width
        raise ValueError(
            f"row {row}, columns {first}-{first + pattern.width - 1}: metadata "
            f"0x{nibbles[row, group]:X} {_expectation(pattern, ordered=ordered)}"
        )
    low, high = nibbles & 3, nibbles >> 2
    if pattern is ONE_OF_TWO:
        low = high = low >> 1
    units = np.stack([low, high][: pattern.kept], axis=-1)
    within = units[..., None] * np.uint32(pattern.unit) + np.arange(pattern.unit, dtype=np.uint32)
    starts = np.arange(nibbles.shape[1], dtype=np.uint32) * np.uint32(pattern.width)
    columns = (starts[:, None, None] + within).reshape(nibbles.shape[0], -1)
    return columns.astype(np.uint32)


def _valid(nibbles: Nibbles, pattern: Pattern, *, ordered: bool) -> Mask:
    low, high = nibbles & 3, nibbles >> 2
    if pattern is ONE_OF_TWO:
        valid: Mask = (nibbles == 0x4) | (nibbles == 0xE)
    else:
        valid = (low < high) if ordered else (low != high)
        valid &= nibbles < 16
    return valid


def _expectation(pattern: Pattern, *, ordered: bool) -> str:
    if pattern is ONE_OF_TWO:
        return "is neither 0x4 (the first element) nor 0xE (the second)"
    what = "pairs" if pattern.unit > 1 else "elements"
    return (
        f"names no two {what} in ascending order" if ordered else f"names one of the {what} twice"
    )


def expand(compressed: Compressed) -> Array:
    """Put the zeros back.

    Raises
    ------
    ValueError
        The metadata is wrong; the message says where.
    """
    pattern, values = compressed.pattern, compressed.values
    rows, groups = compressed.nibbles.shape
    if values.shape != (rows, groups * pattern.kept * pattern.unit):
        raise ValueError(
            f"values of {values.shape} do not fit metadata for {rows} rows of {groups} groups"
        )
    dense = np.zeros((rows, groups * pattern.width), values.dtype)
    columns = places(compressed.nibbles, pattern)
    np.put_along_axis(dense, columns.astype(np.intp), values, axis=1)
    return dense[:, : compressed.columns]


# ------------------------------------------------------------------ metadata registers


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
    width = {32: 2, 16: 4, 8: 4, 4: 8}.get(element_bits, 0)
    depths = {32: (8, 16), 16: (16, 32), 8: (32, 64), 4: (64, 128)}.get(element_bits, ())
    if k not in depths:
        raise ValueError(f"no mma.sp has k = {k} with elements of {element_bits} bits")
    groups = k // width
    row, group = np.arange(16)[:, None], np.arange(groups)[None, :]
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


# ------------------------------------------------------------------ multiplying


def multiply(
    row: MmaRule, values: Bits, b: Bits, c: Bits, index: Index, *, satfinite: bool = False
) -> Bits:
    """D = A B + C with a compressed A, in plain NumPy, on raw bits.

    Parameters
    ----------
    values : (M, K / 2)
    b : (..., K, N)
    c : (..., M, N)
    index : (M, K / 2), the row of B of each element
    """
    gathered = b[..., index, :]  # (..., M, K / 2, N)
    wide = np.broadcast_to(c, (*b.shape[:-2], values.shape[0], b.shape[-1]))[..., :, None, :]
    result = mma(values[:, None, :], gathered, wide, kind=row.kind, satfinite=satfinite)
    return result[..., 0, :]
