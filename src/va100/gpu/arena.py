"""Device memory: allocation, views, and whether an address may be touched.

A device address is a host address inside one reserved range; the native core owns it and every
process has one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from va100.errors import OutOfMemory
from va100.gpu.native import library

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

ARENA_BASE: Final = 0x2000_0000_0000
ARENA_SHIFT: Final = 42
SHADOW_BASE: Final = 0x2A00_0000_0000
GRANULE_SHIFT: Final = 8
DEVICES: Final = 16
WINDOW_DEVICE: Final = DEVICES + 1
"""Where shared windows, local memory and parameter blocks are allocated."""


class Allocation(NamedTuple):
    """A live allocation."""

    base: int
    size_bytes: int
    device: int


class _Allocation(ctypes.Structure):
    _fields_ = (
        ("base", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("device", ctypes.c_int32),
        ("serial", ctypes.c_uint32),
    )


class Arena:
    """The process's device memory."""

    def __init__(self) -> None:
        self._lib = library()
        u64 = ctypes.c_uint64
        lib = self._lib
        lib.va_arena_alloc.argtypes = (ctypes.c_int, u64, u64)
        lib.va_arena_alloc.restype = u64
        lib.va_arena_free.argtypes = (u64,)
        lib.va_arena_find.argtypes = (u64, ctypes.POINTER(_Allocation))
        lib.va_arena_nearest.argtypes = (u64, ctypes.POINTER(_Allocation))
        lib.va_arena_accessible.argtypes = (u64, u64)
        lib.va_arena_capacity.argtypes = (ctypes.c_int,)
        lib.va_arena_capacity.restype = u64
        lib.va_arena_used.argtypes = (ctypes.c_int,)
        lib.va_arena_used.restype = u64

    def allocate(self, size_bytes: int, *, device: int = 0, align: int = 256) -> int:
        """Allocate device memory and return its address, a multiple of 256.

        Raises
        ------
        OutOfMemory
        """
        address = int(self._lib.va_arena_alloc(device, size_bytes, align))
        if not address:
            raise OutOfMemory(requested_bytes=size_bytes, free_bytes=self.free_bytes(device))
        return address

    def free(self, address: int) -> None:
        """Free an allocation by its base address; ``ValueError`` when it is none."""
        if self._lib.va_arena_free(address):
            raise ValueError(f"0x{address:x} is not the base of a live allocation")

    def free_bytes(self, device: int = 0) -> int:
        """Bytes a device can still give."""
        return int(self._lib.va_arena_capacity(device) - self._lib.va_arena_used(device))

    def accessible(self, address: int, size_bytes: int) -> bool:
        """Whether a kernel may touch a range."""
        return bool(self._lib.va_arena_accessible(address, size_bytes))

    def find(self, address: int) -> Allocation | None:
        """The live allocation that holds an address."""
        return self._allocation(self._lib.va_arena_find, address)

    def nearest(self, address: int) -> Allocation | None:
        """The live allocation nearest to an address."""
        return self._allocation(self._lib.va_arena_nearest, address)

    def describe(self, address: int) -> str:
        """Say where an address lies with respect to the nearest allocation."""
        near = self.nearest(address)
        if near is None:
            return "no memory is allocated"
        what = f"the nearest allocation, 0x{near.base:x} of {near.size_bytes} bytes"
        if address < near.base:
            return f"{near.base - address} bytes before {what}"
        past = address - (near.base + near.size_bytes)
        return f"inside {what}" if past < 0 else f"{past} bytes past the end of {what}"

    def view(self, address: int, size_bytes: int) -> npt.NDArray[np.uint8]:
        """Bytes of device memory as a writable array that shares them.

        The caller keeps the range inside a live allocation.
        """
        # Only when asked for: a program's start should not pay for NumPy.
        import numpy as np  # noqa: PLC0415

        buffer = (ctypes.c_uint8 * size_bytes).from_address(address)
        return np.ctypeslib.as_array(buffer)

    def write(self, address: int, data: bytes) -> None:
        """Copy into device memory; the caller keeps the range inside a live allocation."""
        ctypes.memmove(address, data, len(data))

    def upload(self, data: npt.NDArray[np.generic] | bytes, *, device: int = 0) -> int:
        """Allocate and fill; returns the address."""
        raw = data if isinstance(data, bytes) else data.tobytes()
        address = self.allocate(max(len(raw), 1), device=device)
        self.write(address, raw)
        return address

    def download(self, address: int, size_bytes: int) -> bytes:
        """Copy device memory out."""
        return ctypes.string_at(address, size_bytes)

    def _allocation(self, call: Callable[..., int], address: int) -> Allocation | None:
        found = _Allocation()
        if not call(address, ctypes.byref(found)):
            return None
        return Allocation(int(found.base), int(found.bytes), int(found.device))
