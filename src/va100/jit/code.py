"""Machine code in memory: an object file, linked by the native core and kept while it is used."""

from __future__ import annotations

import ctypes
import weakref

from va100.gpu.native import library

_REASON_BYTES = 256


class MachineCode:
    """An object file made runnable; its memory goes when nobody holds it.

    Raises
    ------
    RuntimeError
        The object cannot be linked: a defect of the compiler, never of the PTX.
    """

    def __init__(self, data: bytes, beside: MachineCode | None = None) -> None:
        """Link an object; ``beside`` is code whose functions it may call."""
        self._handle: int
        lib = _functions()
        reason = ctypes.create_string_buffer(_REASON_BYTES)
        other = beside._handle if beside else None
        handle = lib.va_code_load(data, len(data), other, reason, _REASON_BYTES)
        if not handle:
            raise RuntimeError(f"machine code cannot be loaded: {reason.value.decode()}")
        self._lib = lib
        self._handle = handle
        weakref.finalize(self, lib.va_code_free, handle)

    def address(self, symbol: str) -> int:
        """Address of a function; 0 when there is none."""
        return int(self._lib.va_code_symbol(self._handle, symbol.encode()))

    @property
    def frame_bytes(self) -> int:
        """Stack that its hungriest function takes."""
        return int(self._lib.va_code_frame(self._handle))

    def text(self) -> tuple[int, bytes]:
        """Where the code lies, and what it is."""
        size = ctypes.c_uint64()
        base = int(self._lib.va_code_extent(self._handle, ctypes.byref(size)))
        return base, ctypes.string_at(base, size.value)


def provide(symbol: str, address: int) -> None:
    """Let code that is loaded from now on call a function, which must stay where it is."""
    if not _functions().va_code_provide(symbol.encode(), address):
        raise MemoryError(f"no memory for the name {symbol}")


def _functions() -> ctypes.CDLL:
    lib = library()
    pointer = ctypes.c_void_p
    lib.va_code_load.restype = pointer
    size = ctypes.c_size_t
    lib.va_code_load.argtypes = (ctypes.c_char_p, size, pointer, ctypes.c_char_p, size)
    lib.va_code_symbol.restype = ctypes.c_uint64
    lib.va_code_symbol.argtypes = (pointer, ctypes.c_char_p)
    lib.va_code_extent.restype = ctypes.c_uint64
    lib.va_code_extent.argtypes = (pointer, ctypes.POINTER(ctypes.c_uint64))
    lib.va_code_frame.restype = ctypes.c_uint64
    lib.va_code_frame.argtypes = (pointer,)
    lib.va_code_free.argtypes = (pointer,)
    lib.va_code_provide.argtypes = (ctypes.c_char_p, ctypes.c_uint64)
    return lib
