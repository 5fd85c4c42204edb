"""Calls on physical memory and address ranges, with the structures they take."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

from tests.helpers.cuda_client import Cuda, context
from va100.assembly import compiler
from va100.config import Settings
from va100.driver.api import driver
from va100.driver.compile import Backend
from va100.jit.native import Fault

UNIT = 2 << 20
DEVICE, HOST, HOST_NUMA = 1, 2, 3
PINNED, MANAGED = 1, 2
NO_ACCESS, READ, READ_WRITE = 0, 1, 3
POSIX_FD, FABRIC = 1, 8


class Location(ctypes.Structure):
    """``CUmemLocation``."""

    _fields_ = (("type", c_int), ("id", c_int))

    @property
    def packed(self) -> int:
        """As a parameter that is passed by value."""
        return self.type & 0xFFFFFFFF | (self.id & 0xFFFFFFFF) << 32


class Properties(ctypes.Structure):
    """``CUmemAllocationProp``."""

    _fields_ = (
        ("type", c_int), ("handle_types", c_int), ("location", Location), ("security", c_void_p),
        ("compression", ctypes.c_ubyte), ("rdma", ctypes.c_ubyte), ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 4),
    )  # fmt: skip


class PoolProperties(ctypes.Structure):
    """``CUmemPoolProps``."""

    _fields_ = (
        ("type", c_int), ("handle_types", c_int), ("location", Location), ("security", c_void_p),
        ("max_size", c_size_t), ("usage", ctypes.c_ushort), ("reserved", ctypes.c_ubyte * 54),
    )  # fmt: skip


class Access(ctypes.Structure):
    """``CUmemAccessDesc``."""

    _fields_ = (("location", Location), ("flags", c_int))


def on_device(device: int = 0, handle_types: int = 0) -> Properties:
    """Properties of memory on a device."""
    return Properties(PINNED, handle_types, Location(DEVICE, device))


def create(cuda: Cuda, size: int = UNIT, properties: Properties | None = None) -> int:
    """Physical memory."""
    handle = c_uint64()
    cuda.MemCreate(byref(handle), size, byref(properties or on_device()), 0)
    return handle.value


def reserve(cuda: Cuda, size: int = UNIT, align: int = 0, wanted: int = 0) -> int:
    """Addresses."""
    address = c_uint64()
    cuda.MemAddressReserve(byref(address), size, align, wanted, 0)
    return address.value


def grant(cuda: Cuda, address: int, size: int = UNIT, flags: int = READ_WRITE) -> None:
    """Let device 0 touch a mapped range."""
    cuda.MemSetAccess(address, size, byref(Access(Location(DEVICE, 0), flags)), 1)


def pointer_attribute(cuda: Cuda, number: int, address: int, kind: type = c_int) -> int:
    """What is known about a pointer."""
    value = kind()
    cuda.PointerGetAttribute(byref(value), number, address)
    return value.value


@contextmanager
def mapped(cuda: Cuda, size: int = UNIT) -> Iterator[int]:
    """A range of its own, mapped and open."""
    address = reserve(cuda, size)
    handle = create(cuda, size)
    cuda.MemMap(address, size, 0, handle, 0)
    grant(cuda, address, size)
    try:
        yield address
    finally:
        cuda.MemUnmap(address, size)
        cuda.MemRelease(handle)
        cuda.MemAddressFree(address, size)


def used(device: int = 0) -> int:
    """Bytes of a device that are taken."""
    function: Callable[[int], int] = driver().va_arena_used
    function.restype = c_uint64  # type: ignore[attr-defined]
    return function(device)


@contextmanager
def compiling() -> Iterator[Cuda]:
    """A context whose kernels are compiled from PTX."""
    lib = driver()
    lib.va_get_backend.restype = c_void_p
    lib.va_set_backend.argtypes = (c_void_p,)
    before = lib.va_get_backend()
    settings = Settings.from_environment()
    Backend(compiler(settings), settings.chip, Fault).register()
    try:
        with context() as cuda:
            yield cuda
    finally:
        lib.va_set_backend(before)
