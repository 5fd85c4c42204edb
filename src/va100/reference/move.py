"""Moves, packing and unpacking, address space conversion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from va100.gpu.arena import ARENA_BASE, ARENA_SHIFT
from va100.ptx.program import Vector
from va100.ptx.types import PtxType, Space
from va100.reference.issue import Issue
from va100.reference.lanes import RAW, U64, Lanes, join, words

_PARTS: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def evaluate_move(issue: Issue) -> None:
    """Evaluate one instruction of the family."""
    MOVE[issue.step.operation.opcode](issue)


def mov(issue: Issue) -> None:
    """Copy a value or vector, pack a vector into a value, unpack it, or take an address."""
    destination, source = issue.step.operands
    kind = issue.step.operation.type
    if isinstance(destination, Vector) and isinstance(source, Vector):
        values = [issue.read(element, kind) for element in source.elements]
        for element, part in zip(destination.elements, values, strict=True):
            issue.write(element, part, extend_sign=kind.is_signed)
        return
    if isinstance(source, Vector):
        value = _packed(issue, source, RAW[kind])
    else:
        value = issue.read(source, kind)
    if isinstance(destination, Vector):
        _unpack(issue, destination, value)
    else:
        issue.write(destination, value, extend_sign=kind.is_signed)


def _packed(issue: Issue, source: Vector, dtype: np.dtype[Any]) -> Lanes:
    part = _part_type(source, dtype)
    parts = [issue.read_raw(element, part) for element in source.elements]
    return join(np.stack(parts, axis=1), dtype)


def _unpack(issue: Issue, destination: Vector, value: Lanes) -> None:
    parts = words(value, _part_type(destination, value.dtype))
    for index, element in enumerate(destination.elements):
        issue.write(element, parts[:, index])


def _part_type(vector: Vector, dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(_PARTS[dtype.itemsize // len(vector.elements)])


def cvta(issue: Issue) -> None:
    """Convert an address in a space to a generic one, or back."""
    operation = issue.step.operation
    destination, source = issue.step.operands
    space = operation.space or Space.GENERIC
    value = (
        issue.read(source, PtxType.U64)
        if _is_wide(operation.type)
        else issue.read(source, PtxType.U32)
    )
    value = value.astype(np.uint64)
    convert = issue.from_generic if operation.to_space else issue.to_generic
    issue.write(destination, convert(value, space).astype(RAW[operation.type]))


def _is_wide(kind: PtxType) -> bool:
    return kind is PtxType.U64


def isspacep(issue: Issue) -> None:
    """Whether a generic address falls into a space's window."""
    destination, source = issue.step.operands
    address = issue.read_raw(source, U64)
    space = issue.step.operation.space or Space.GENERIC
    issue.write(destination, WINDOWS[space](issue, address))


def _in_shared(issue: Issue, address: Lanes) -> Lanes:
    cta = issue.warp.cta
    return _within(address, cta.shared_address, max(cta.shared_bytes, 1))


def _in_local(issue: Issue, address: Lanes) -> Lanes:
    stride = issue.warp.cta.launch.local_stride
    return (address >= issue.warp.local_bases) & (
        address - issue.warp.local_bases < np.uint64(stride)
    )


def _in_param(issue: Issue, address: Lanes) -> Lanes:
    launch = issue.warp.cta.launch
    return _within(address, launch.params_address, max(launch.code.param_bytes, 1))


def _in_const(issue: Issue, address: Lanes) -> Lanes:
    module = issue.warp.cta.launch.module
    inside = np.zeros(address.shape, np.bool_)
    for variable in module.ptx.variables:
        if variable.space is Space.CONST and variable.name in module.addresses:
            inside |= _within(address, module.addresses[variable.name], variable.size_bytes)
    return inside


def _in_global(issue: Issue, address: Lanes) -> Lanes:
    elsewhere = _in_shared(issue, address) | _in_local(issue, address) | _in_const(issue, address)
    return _within(address, ARENA_BASE, 1 << ARENA_SHIFT) & ~elsewhere & ~_in_param(issue, address)


def _within(address: Lanes, base: int, size_bytes: int) -> Lanes:
    return address - np.uint64(base) < np.uint64(size_bytes)


WINDOWS: Final[Mapping[Space, Callable[[Issue, Lanes], Lanes]]] = {
    Space.SHARED: _in_shared,
    Space.LOCAL: _in_local,
    Space.PARAM: _in_param,
    Space.CONST: _in_const,
    Space.GLOBAL: _in_global,
}
"""Space to its test."""

MOVE: Final[Mapping[str, Callable[[Issue], None]]] = {
    "mov": mov,
    "cvta": cvta,
    "isspacep": isspacep,
}
"""Opcode to its function."""
