"""The native structures of a launch, as ctypes sees them; mirrors ``va100/exec.h``."""

from __future__ import annotations

import ctypes
from typing import Final

from va100.errors import SetupError
from va100.jit import abi

_U32, _U64 = ctypes.c_uint32, ctypes.c_uint64


class Variant(ctypes.Structure):
    """``va_variant``."""

    _fields_ = (
        ("enter", _U64),
        ("globals", ctypes.c_void_p),
        ("flags", _U32),
        ("static_shared_bytes", _U32),
        ("local_bytes", _U32),
        ("counter_count", _U32),
        ("param_bytes", _U32),
        ("check_id", _U32),
        ("region_count", _U32),
        ("observed_at", _U32),
        ("chunked", ctypes.c_void_p),
        ("supply", ctypes.c_void_p),
    )


class Chunked(ctypes.Structure):
    """``va_chunked``."""

    _fields_ = (("table", ctypes.c_void_p), ("facts", ctypes.c_void_p))


SUPPLY = ctypes.CFUNCTYPE(ctypes.c_int, _U32, _U32, ctypes.c_void_p, ctypes.c_size_t)
"""``va_supply``."""


class Fault(ctypes.Structure):
    """``va_fault``."""

    _fields_ = (
        ("kind", _U32),
        ("site", _U32),
        ("ctaid", _U32 * 3),
        ("tid", _U32 * 3),
        ("address", _U64),
        ("size", _U32),
        ("space", _U32),
        ("write", _U32),
        ("reserved", _U32),
        ("text", ctypes.c_char * 512),
    )


OBSERVE_ROW: Final = 2
"""``VA_OBSERVE_ROW``."""


class Launch(ctypes.Structure):
    """``va_launch``."""

    _fields_ = (
        ("variant", ctypes.POINTER(Variant)),
        ("params", ctypes.c_void_p),
        ("grid", _U32 * 3),
        ("block", _U32 * 3),
        ("dynamic_shared_bytes", _U32),
        ("cooperative", _U32),
        ("workers", _U32),
        ("resident_ctas", _U32),
        ("sm_count", _U32),
        ("observe_ctas", _U32),
        ("shuffle", _U32),
        ("l1_cta_bytes", _U32),
        ("l2_bytes", _U64),
        ("observed_only", _U32),
        ("observe_first", _U32),
        ("counters", ctypes.POINTER(_U64)),
        ("fault", Fault),
    )


def require_layout(lib: ctypes.CDLL) -> None:
    """Refuse a native core that was built from other sources.

    Raises
    ------
    SetupError
    """
    sizes = ctypes.sizeof(Launch) << 32 | ctypes.sizeof(Variant) << 16 | abi.VIEW_BYTES
    tell = getattr(lib, "va_exec_layout", None)
    if tell is not None:
        tell.restype = _U64
    if tell is None or tell() != sizes:
        raise SetupError(
            "the native core was built from other sources than this Python part",
            remedy="make setup",
        )


def take_output(lib: ctypes.CDLL) -> bytes:
    """What device-side printf has written since the last call."""
    lib.va_exec_take_output.restype = ctypes.c_size_t
    lib.va_exec_take_output.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
    parts = []
    buffer = ctypes.create_string_buffer(65536)
    while size := lib.va_exec_take_output(buffer, len(buffer)):
        parts.append(buffer.raw[:size])
    return b"".join(parts)


def take_children(lib: ctypes.CDLL) -> list[int]:
    """Records of the grids that the launch before launched, in turn."""
    lib.va_exec_take_children.restype = ctypes.c_size_t
    lib.va_exec_take_children.argtypes = (ctypes.POINTER(_U64), ctypes.c_size_t)
    records: list[int] = []
    buffer = (_U64 * 256)()
    while count := lib.va_exec_take_children(buffer, len(buffer)):
        records += buffer[:count]
    return records


def release_child(lib: ctypes.CDLL, record: int) -> None:
    """Free a record that has run."""
    lib.va_exec_release_child.argtypes = (_U64,)
    lib.va_exec_release_child(record)
