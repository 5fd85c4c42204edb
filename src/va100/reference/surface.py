"""Loads from and stores to surfaces, formatted stores, and reductions.

Offsets along a row are in bytes, but for formatted stores and reductions, which count texels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from va100.errors import IllegalAddress, MisalignedAddress
from va100.gpu.texture import Kind, TexelFormat, Texture
from va100.ptx.isa.form import Operation
from va100.ptx.program import Operand, Vector
from va100.ptx.texture import Place, place_of
from va100.ptx.types import PtxType, Space
from va100.reference import lanes
from va100.reference.issue import Issue
from va100.reference.lanes import RAW, Lanes
from va100.reference.texture import (
    evaluate_fetch,
    evaluate_query,
    evaluate_type,
    object_of,
    slices_of,
)

_WRITES: Final = True
_TYPE_NAMES: Final = {
    PtxType.U32: "unsigned integers", PtxType.S32: "signed integers", PtxType.F32: "floats",
}  # fmt: skip


class Lane(NamedTuple):
    """One lane's access: the surface and, unless it is left out, where its bytes are."""

    number: int
    surface: Texture
    address: int | None


def evaluate_load(issue: Issue) -> None:
    """``suld.b``."""
    operation = issue.step.operation
    kind = operation.type
    destination = issue.step.operands[0]
    elements = _elements(destination)
    size = kind.size_bytes
    results = [np.zeros(32, RAW[kind]) for _ in elements]
    for lane in _lanes(issue, lambda _: size * len(elements), write=not _WRITES):
        if lane.address is not None:
            for n, result in enumerate(results):
                result[lane.number] = _read(issue, lane.address + n * size, size)
    for element, result in zip(elements, results, strict=True):
        issue.write(element, result)


def evaluate_store(issue: Issue) -> None:
    """``sust.b`` and ``sust.p``."""
    operation = issue.step.operation
    kind = operation.type
    sources = [issue.read(e, kind) for e in _elements(issue.step.operands[1])]
    if "p" in operation.modifiers:
        _put(issue, sources)
        return
    size = kind.size_bytes
    for lane in _lanes(issue, lambda _: size * len(sources), write=_WRITES):
        if lane.address is not None:
            for n, source in enumerate(sources):
                _write(issue, lane.address + n * size, source[lane.number])


def _put(issue: Issue, sources: list[Lanes]) -> None:
    for lane in _lanes(issue, _texel_bytes, write=_WRITES):
        if lane.address is None:
            continue
        kind = TexelFormat(lane.surface.format)
        for c in range(lane.surface.channels):
            bits = int(sources[c][lane.number]) if c < len(sources) else 0
            value = stored(kind, bits)
            _write(issue, lane.address + c * kind.size_bytes, value)


def stored(kind: TexelFormat, bits: int) -> np.generic:
    """A channel as a formatted store writes it: integers clamped, floats rounded to nearest."""
    raw = np.dtype(f"u{kind.size_bytes}").type
    if kind is TexelFormat.F16:
        value = np.uint32(bits).view(np.float32)
        return np.uint16(0x7FFF) if np.isnan(value) else np.float16(value).view(np.uint16)
    if kind.size_bytes == 4:
        return np.uint32(bits)
    width = 8 * kind.size_bytes
    if kind.is_signed:
        number = bits - (1 << 32) if bits >> 31 else bits
        number = min(max(number, -(1 << width - 1)), (1 << width - 1) - 1)
    else:
        number = min(bits, (1 << width) - 1)
    return raw(number & ((1 << width) - 1))  # type: ignore[no-any-return]


def evaluate_reduction(issue: Issue) -> None:
    """``sured``: lane after lane."""
    operation = issue.step.operation
    kind = operation.type
    sources = issue.read(issue.step.operands[1], kind)
    combine = next(COMBINE[m] for m in operation.sequence if m in COMBINE)
    size = kind.size_bytes
    for lane in _lanes(issue, lambda _: size, write=_WRITES):
        texel = TexelFormat(lane.surface.format)
        signed = kind.is_signed
        if "p" in operation.modifiers:
            signed = texel.is_signed
        if lane.address is None:
            continue
        old, new = _read(issue, lane.address, size), sources[lane.number]
        result = combine(_number(old, signed=signed), _number(new, signed=signed))
        _write(issue, lane.address, RAW[kind].type(result & ((1 << 8 * size) - 1)))


def _number(value: Any, *, signed: bool) -> int:
    return int(lanes.signed(np.array([value]))[0]) if signed else int(value)


def _add(a: int, b: int) -> int:
    return a + b


def _and(a: int, b: int) -> int:
    return a & b


def _or(a: int, b: int) -> int:
    return a | b


COMBINE: Final[Mapping[str, Callable[[int, int], int]]] = {
    "add": _add, "min": min, "max": max, "and": _and, "or": _or,
}  # fmt: skip
"""Modifier of ``sured`` to its function."""


# ---------------------------------------------------------------- where


def _lanes(issue: Issue, bytes_of: Callable[[Texture], int], *, write: bool) -> list[Lane]:
    """The executing lanes, their accesses checked in order."""
    operation = issue.step.operation
    place = place_of(operation, issue.step.operands)
    numbers = issue.read(place.object, PtxType.B64)
    coordinates = _coordinates(issue, place)
    found = []
    for lane in lanes.lanes_of(issue.bits):
        surface = object_of(issue, lane, int(numbers[lane]), Kind.SURFACE)
        _check_type(issue, lane, operation, surface)
        at = [int(c[lane]) for c in coordinates]
        if "p" in operation.modifiers:
            at[0] *= _texel_bytes(surface)
        address = _address(issue, lane, surface, at, bytes_of(surface), write=write)
        found.append(Lane(lane, surface, address))
    return found


def _coordinates(issue: Issue, place: Place) -> list[Lanes]:
    """Offset in the row, row, and slice."""
    given = [lanes.signed(issue.read(c, PtxType.B32)) for c in place.coordinates]
    given += [np.zeros(32, np.int32)] * (3 - len(given))
    if place.layer is not None:
        given[2] = issue.read(place.layer, PtxType.U32)
    return given


def _check_type(issue: Issue, lane: int, operation: Operation, surface: Texture) -> None:
    if "p" not in operation.modifiers:
        return
    if operation.opcode == "sured":
        if _texel_bytes(surface) != operation.type.size_bytes:
            what = "a formatted reduction whose operand is not as wide as a texel"
            raise issue.broken(what, lane)
        return
    kind = TexelFormat(surface.format)
    own = PtxType.F32 if kind.is_float else PtxType.S32 if kind.is_signed else PtxType.U32
    if operation.type is not PtxType.B32 and operation.type is not own:
        what = f"a store of {_TYPE_NAMES[operation.type]} to a surface of {_TYPE_NAMES[own]}"
        raise issue.broken(what, lane)


def _texel_bytes(surface: Texture) -> int:
    return int(surface.channels * TexelFormat(surface.format).size_bytes)


def _address(
    issue: Issue, lane: int, surface: Texture, at: list[int], size: int, *, write: bool
) -> int | None:
    """Where a lane's bytes are; ``None`` where an access is left out."""
    modifiers = issue.step.operation.modifiers
    row = surface.width * _texel_bytes(surface)
    slices = max(slices_of(surface), surface.depth)
    most = [row - size, max(surface.height, 1) - 1, slices - 1]
    if most[0] < 0 or any(not 0 <= a <= m for a, m in zip(at, most, strict=True)):
        if modifiers.isdisjoint(("clamp", "zero")):
            raise _outside(issue, lane, surface, at, size)
        if "zero" in modifiers or most[0] < 0:
            return None
        at = [min(max(a, 0), m) for a, m in zip(at, most, strict=True)]
        at[0] -= at[0] % size
    if at[0] % size:
        raise MisalignedAddress(space="surface", address=at[0], size=size, **issue.place(lane))
    address = int(surface.base + at[0] + at[1] * surface.pitch + at[2] * surface.slice)
    if not issue.warp.cta.launch.storage.arena.accessible(address, size):
        issue.illegal(lane, address, Space.GLOBAL, size)
    return address


def _outside(issue: Issue, lane: int, surface: Texture, at: list[int], size: int) -> IllegalAddress:
    slices = max(slices_of(surface), surface.depth)
    extent = f"{surface.width * _texel_bytes(surface)} bytes, {max(surface.height, 1)} rows"
    return IllegalAddress(
        space="surface",
        address=surface.base,
        size=size,
        nearest=f"byte {at[0]}, row {at[1]}, slice {at[2]} of a surface of {extent}, "
        f"{slices} slices",
        **issue.place(lane),
    )


def _read(issue: Issue, address: int, size: int) -> Any:
    storage = issue.warp.cta.launch.storage
    return storage.gather(np.array([address], np.uint64), size)[0]


def _write(issue: Issue, address: int, value: Any) -> None:
    storage = issue.warp.cta.launch.storage
    storage.scatter(np.array([address], np.uint64), np.array([value]))


def _elements(operand: Operand | None) -> tuple[Operand | None, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


TEXTURES: Final[Mapping[str, Callable[[Issue], None]]] = {
    "tex": evaluate_fetch,
    "tld4": evaluate_fetch,
    "txq": evaluate_query,
    "suq": evaluate_query,
    "istypep": evaluate_type,
    "suld": evaluate_load,
    "sust": evaluate_store,
    "sured": evaluate_reduction,
}
"""Opcode to its function."""


def evaluate_texture(issue: Issue) -> None:
    """Evaluate one instruction of the family."""
    TEXTURES[issue.step.operation.opcode](issue)
