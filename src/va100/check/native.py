"""The native checker's calls and structures; mirrors ``va100/check.h``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

from va100.gpu.native import library

_U32, _U64 = ctypes.c_uint32, ctypes.c_uint64
NO_SITE: Final = 0xFFFFFFFF
_BATCH: Final = 256


class RawAccess(ctypes.Structure):
    """``va_check_access``."""

    _fields_ = (("site", _U32), ("kind", _U32), ("ctaid", _U32 * 3), ("tid", _U32 * 3))


class _Allocation(ctypes.Structure):
    _fields_ = (("base", _U64), ("bytes", _U64), ("device", ctypes.c_int32), ("serial", _U32))


class RawFinding(ctypes.Structure):
    """``va_check_finding``."""

    _fields_ = (
        ("kind", _U32),
        ("kernel", _U32),
        ("launch", _U64),
        ("count", _U64),
        ("address", _U64),
        ("size", _U32),
        ("space", _U32),
        ("first", RawAccess),
        ("second", RawAccess),
        ("harmless", _U32),
        ("relaxed", _U32),
        ("has_near", _U32),
        ("near", _Allocation),
        ("second_kernel", _U32),
        ("streams", _U32 * 2),
        ("text", ctypes.c_char * 256),
    )


_SINK = ctypes.CFUNCTYPE(None)


class NativeChecker:
    """The process's checker."""

    def __init__(self) -> None:
        self._lib = library()
        self._lib.va_check_take.restype = ctypes.c_size_t
        self._lib.va_check_tools.restype = _U32
        self._sink: Any = None

    def enable(self, bits: int) -> None:
        """Choose the tools; 0 turns all off."""
        self._lib.va_check_enable(_U32(bits))

    def enabled(self) -> int:
        """The tools that are on."""
        return int(self._lib.va_check_tools())

    def call_after_launches(self, sink: Callable[[], None] | None) -> None:
        """Have a function called after each launch that found something."""
        self._sink = None if sink is None else _SINK(sink)
        self._lib.va_check_set_sink(self._sink)

    def look_for_leaks(self) -> None:
        """Make a finding of every allocation the program still holds."""
        self._lib.va_check_leaks()

    def take(self) -> list[RawFinding]:
        """Findings since the last call."""
        found: list[RawFinding] = []
        while True:
            batch = (RawFinding * _BATCH)()
            count = self._lib.va_check_take(batch, ctypes.c_size_t(_BATCH))
            found += batch[:count]
            if count < _BATCH:
                return found
