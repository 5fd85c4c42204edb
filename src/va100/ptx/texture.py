"""Which parts of its operands a texture or surface instruction takes.

Reading of the text only; what is fetched and how is each engine's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from va100.ptx.isa.form import Operation
from va100.ptx.program import Address, Immediate, Operand, Pair, Register, TextureAddress, Vector
from va100.ptx.types import PtxType

GEOMETRIES: Final = ("1d", "2d", "3d", "a1d", "a2d", "cube", "acube")
"""In the order in which the native core numbers them."""
_COORDINATES: Final[Mapping[str, int]] = {
    "1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 3, "acube": 3,
}  # fmt: skip
_DIMENSIONS: Final[Mapping[str, int]] = {
    "1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 2, "acube": 2,
}  # fmt: skip
_SAMPLED: Final[Mapping[str, str]] = {"2dms": "2d", "a2dms": "a2d"}
"""Geometry with several samples a texel to that of one sample.

CUDA has no way to make an array of several samples, so every texel has one, whatever the number.
"""
_LEVELS: Final = {"level": 1, "grad": 2}
"""Modifier to the operands that choose a level of detail."""


class Place(NamedTuple):
    """An object and where to look in it."""

    geometry: str
    object: Operand
    layer: Operand | None
    """Index of the layer, of layered geometries."""
    coordinates: tuple[Operand, ...]
    """x, y, z: as many as the geometry has."""
    offsets: tuple[Operand, ...] = ()
    """Whole texels added to each coordinate; none for none."""

    @property
    def dimensions(self) -> int:
        """Dimensions in which texels are counted: 1 to 3."""
        return _DIMENSIONS[self.geometry]


def geometry_of(operation: Operation) -> str:
    """``1d`` to ``acube``; samples are looked for as texels."""
    names = (_SAMPLED.get(m, m) for m in operation.sequence)
    return next(name for name in names if name in _COORDINATES)


def _has_samples(operation: Operation) -> bool:
    return not operation.modifiers.isdisjoint(_SAMPLED)


def place_of(operation: Operation, operands: tuple[Operand | None, ...]) -> Place:
    """Take the address of an instruction that :func:`problem` finds nothing wrong with."""
    where = _address(operation, operands)
    assert isinstance(where, TextureAddress)
    geometry = geometry_of(operation)
    given = _elements(where.parts[1])
    layer = given[0] if geometry[0] == "a" else None
    given = given[(layer is not None) + _has_samples(operation) :]
    offsets = _extra(operation, operands)
    return Place(
        geometry,
        where.parts[0],
        layer,
        given[: _COORDINATES[geometry]],
        _elements(offsets[0])[: _DIMENSIONS[geometry]] if offsets else (),
    )


def queried(operands: tuple[Operand | None, ...]) -> Operand | None:
    """The object that a query, or ``istypep``, asks about."""
    where = operands[1]
    return where.base if isinstance(where, Address) else where


def problem(
    operation: Operation,
    operands: tuple[Operand | None, ...],
    registers: Mapping[str, PtxType],
) -> str:
    """Say why an instruction is not taken; nothing when it is.

    Without ``registers`` a depth in a register may pass for an offset.
    """
    if operation.opcode in ("txq", "suq", "istypep"):
        where = operands[1]
        if isinstance(where, Address) and where.offset:
            return "an object is not addressed with an offset"
        return "" if isinstance(queried(operands), Register | Immediate) else _NO_REFERENCES
    if isinstance(operands[0], Pair):
        return "asking whether texels are resident is not taken"
    where = _address(operation, operands)
    if not isinstance(where, TextureAddress) or not isinstance(where.parts[0], Register):
        return _NO_REFERENCES
    if len(where.parts) != 2:
        return "samplers apart from their texture are not taken"
    geometry = geometry_of(operation)
    wanted = _COORDINATES[geometry] + (geometry[0] == "a") + _has_samples(operation)
    given = _elements(where.parts[1])
    if len(given) < wanted or not all(isinstance(e, Register | Immediate) for e in given):
        return f"{geometry} takes {wanted} coordinates"
    for extra in _extra(operation, operands):
        if not _is_offset(extra, geometry, registers):
            return "comparing depths is not taken"
    return ""


_NO_REFERENCES: Final = (
    "texture, sampler and surface references are not taken; pass a texture or surface object"
)


def _is_offset(operand: Operand | None, geometry: str, registers: Mapping[str, PtxType]) -> bool:
    if geometry in ("cube", "acube"):
        return False
    if isinstance(operand, Vector):
        return len(operand.elements) >= _DIMENSIONS[geometry]
    if isinstance(operand, Register):
        kind = registers.get(operand.name)
        return geometry in ("1d", "a1d") and (kind is None or not kind.is_float)
    return isinstance(operand, Immediate) and operand.kind == "int"


def _address(operation: Operation, operands: tuple[Operand | None, ...]) -> Operand | None:
    return operands[1 if operation.opcode in ("tex", "tld4", "suld") else 0]


def _extra(
    operation: Operation, operands: tuple[Operand | None, ...]
) -> tuple[Operand | None, ...]:
    """Operands after the address and what chooses the level: offsets, then a depth."""
    if operation.opcode not in ("tex", "tld4"):
        return ()
    levels = next((n for name, n in _LEVELS.items() if name in operation.modifiers), 0)
    return operands[2 + levels :]


def _elements(operand: Operand | None) -> tuple[Operand, ...]:
    if isinstance(operand, Vector):
        return tuple(e for e in operand.elements if e is not None)
    return (operand,) if operand is not None else ()
