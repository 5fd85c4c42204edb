"""Lane arrays: raw-bit representation of PTX types, lane masks, width changes.

No machine state lives here.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from va100.ptx.types import PtxType
from va100.work import WARP_SIZE

Lanes = npt.NDArray[Any]
"""(32,) raw bits, unsigned, or bool for predicates."""
LaneMask = npt.NDArray[np.bool_]

FULL: Final = 0xFFFFFFFF
LANE: Final[Lanes] = np.arange(WARP_SIZE, dtype=np.uint32)
LANE.flags.writeable = False

_UNSIGNED: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_SIGNED: Final = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


OPAQUE: Final = np.dtype("V16")
"""Holds b128, which is only ever moved."""


def _raw(ptx_type: PtxType) -> np.dtype[Any]:
    if ptx_type is PtxType.PRED:
        return np.dtype(np.bool_)
    if ptx_type is PtxType.B128:
        return OPAQUE
    return np.dtype(_UNSIGNED[ptx_type.size_bytes])


RAW: Final = {t: _raw(t) for t in PtxType}
"""Array type that holds a PTX type's raw bits."""

U8: Final = np.dtype(np.uint8)
U16: Final = np.dtype(np.uint16)
U32: Final = np.dtype(np.uint32)
U64: Final = np.dtype(np.uint64)
PRED: Final = np.dtype(np.bool_)


@functools.lru_cache(maxsize=4096)
def lane_mask(bits: int) -> LaneMask:
    """Spread a 32-bit mask over lanes."""
    mask = ((bits >> np.arange(WARP_SIZE, dtype=np.uint64)) & 1).astype(np.bool_)
    mask.flags.writeable = False
    return mask


def mask_bits(mask: LaneMask) -> int:
    """Gather a lane mask into 32 bits."""
    return int(np.packbits(mask, bitorder="little").view(np.uint32)[0])


def lanes_of(bits: int) -> list[int]:
    """Lane indices of a 32-bit mask, ascending."""
    return [lane for lane in range(WARP_SIZE) if bits >> lane & 1]


def signed(value: Lanes) -> Lanes:
    """View raw bits as two's complement."""
    return value.view(_SIGNED[value.dtype.itemsize])


def unsigned(value: Lanes) -> Lanes:
    """View two's complement as raw bits."""
    return value.view(_UNSIGNED[value.dtype.itemsize])


def unsigned_type(bits: int) -> np.dtype[Any]:
    """Array type of raw bits of a width of whole bytes."""
    return np.dtype(_UNSIGNED[bits // 8])


def typed(value: Lanes, ptx_type: PtxType) -> Lanes:
    """View raw bits as the integer type they hold."""
    return signed(value) if ptx_type.is_signed else value


def resize(value: Lanes, dtype: np.dtype[Any], *, extend_sign: bool = False) -> Lanes:
    """Cut off high bits, or extend with zeros or the sign."""
    if value.dtype == dtype:
        return value
    if extend_sign and value.dtype.itemsize < dtype.itemsize and value.dtype != PRED:
        return unsigned(signed(value).astype(_SIGNED[dtype.itemsize]))
    return value.astype(dtype)


def full(value: int, dtype: np.dtype[Any]) -> Lanes:
    """Repeat one value, taken modulo its width, over the lanes."""
    if dtype == PRED:
        return np.full(WARP_SIZE, bool(value))
    array = np.full(WARP_SIZE, value & ((1 << 8 * dtype.itemsize) - 1), dtype)
    array.flags.writeable = False
    return array


def words(value: Lanes, dtype: np.dtype[Any]) -> Lanes:
    """Split each lane into narrower parts, lowest first: shape (32, parts)."""
    return np.ascontiguousarray(value).view(dtype).reshape(WARP_SIZE, -1)


def join(parts: Lanes, dtype: np.dtype[Any]) -> Lanes:
    """Put parts of shape (32, parts), lowest first, together again."""
    return np.ascontiguousarray(parts).view(dtype).reshape(WARP_SIZE)
