"""What the operands of a matrix instruction are: extents, element types, layouts, registers.

Read off the modifiers; which lane holds what, and what is computed, is the engines' business.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from va100.ptx.isa.form import Operation
from va100.ptx.types import PtxType

_SHAPE: Final = re.compile(r"m(\d+)n(\d+)k(\d+)")
_HALF_FRAGMENT: Final = 8
"""Registers of every ``wmma`` operand of f16, whatever its extent; the spare ones are copies."""
_MATRICES: Final = {"x1": 1, "x2": 2, "x4": 4}
_LANES: Final = 32


class Tile(NamedTuple):
    """One operand of a matrix instruction."""

    role: str
    """``a``, ``b``, ``c`` or ``d``; ``m`` for matrices of ``ldmatrix`` and ``movmatrix``."""
    type: PtxType
    rows: int
    columns: int
    registers: int
    register_bits: int
    layout: str = ""
    """``row`` or ``col`` where the instruction names one for the operand."""

    @property
    def name(self) -> str:
        """As documents call the operand."""
        return "the matrices" if self.role == "m" else self.role.upper()


class Product(NamedTuple):
    """A multiply-accumulate: D = A B + C."""

    shape: tuple[int, int, int]
    """m, n, k."""
    d: Tile
    a: Tile
    b: Tile
    c: Tile
    sparse: bool
    ordered: bool
    """Whether metadata must name the two elements in ascending order."""
    logic: str
    """``xor`` or ``and`` of b1, else empty."""

    @property
    def is_volta(self) -> bool:
        """Whether it is the f16 shape of sm_70, which sm_80 has no tensor instruction for."""
        return self.shape == (8, 8, 4) and self.a.type is PtxType.F16

    @property
    def selectors(self) -> int:
        """Legal sparsity selectors, from 0 up."""
        whole = self.shape[2] * self.a.type.bits == 512
        if self.a.type.bits >= 16:
            return 2 if whole else 4
        return 1 if whole else 2


def shape_of(operation: Operation) -> tuple[int, int, int]:
    """m, n, k of an instruction that has them."""
    for modifier in operation.sequence:
        found = _SHAPE.fullmatch(modifier)
        if found is not None:
            return int(found[1]), int(found[2]), int(found[3])
    raise ValueError(operation.text)


@lru_cache(maxsize=1024)
def product_of(operation: Operation) -> Product:
    """Operands of ``mma`` and ``wmma.mma``."""
    m, n, k = shape_of(operation)
    tiled = operation.opcode == "wmma"
    types = operation.types
    if len(types) == 2:  # wmma of f16 names only D and C
        types = (types[0], PtxType.F16, PtxType.F16, types[1])
    sparse = bool(operation.modifiers & {"sp", "sp::ordered_metadata"})
    layouts = [word for word in operation.sequence if word in ("row", "col")]
    quads = 4 if (m, n, k) == (8, 8, 4) and types[1] is PtxType.F16 else 1
    return Product(
        shape=(m, n, k),
        d=_tile("d", types[0], (m, n), quads=quads),
        a=_tile("a", types[1], (m, k // 2 if sparse else k), layouts[0], quads, tiled=tiled),
        b=_tile("b", types[2], (k, n), layouts[1], quads, tiled=tiled),
        c=_tile("c", types[3], (m, n), quads=quads),
        sparse=sparse,
        ordered="sp::ordered_metadata" in operation.modifiers,
        logic=next((word for word in ("xor", "and") if word in operation.modifiers), ""),
    )


def _tile(
    role: str,
    kind: PtxType,
    extent: tuple[int, int],
    layout: str = "",
    quads: int = 1,
    *,
    tiled: bool = False,
) -> Tile:
    width = max(kind.bits, 32)
    count = quads * extent[0] * extent[1] * kind.bits // (_LANES * width)
    if tiled and kind is PtxType.F16 and role in ("a", "b"):
        count = _HALF_FRAGMENT
    return Tile(role, kind, extent[0], extent[1], max(count, 1), width, layout)


@lru_cache(maxsize=1024)
def moved_of(operation: Operation) -> Tile:
    """The tile that ``wmma.load`` or ``wmma.store`` moves."""
    m, n, k = shape_of(operation)
    role = next(word for word in operation.sequence if word in ("a", "b", "c", "d"))
    extent = {"a": (m, k), "b": (k, n)}.get(role, (m, n))
    layout = next(word for word in operation.sequence if word in ("row", "col"))
    return _tile(role, operation.type, extent, layout, tiled=True)


@lru_cache(maxsize=1024)
def tiles_of(operation: Operation) -> tuple[Tile, ...]:
    """Vector operands of a matrix instruction, in the order they are written."""
    if operation.opcode == "mma" or (operation.opcode == "wmma" and "mma" in operation.modifiers):
        found = product_of(operation)
        return (found.d, found.a, found.b, found.c)
    if operation.opcode == "wmma":
        return (moved_of(operation),)
    if operation.opcode == "ldmatrix":
        count = next(n for word, n in _MATRICES.items() if word in operation.modifiers)
        return (Tile("m", operation.type, 8, 8, count, 32),)
    return ()
