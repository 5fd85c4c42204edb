"""Texture and surface objects: what the number that a kernel holds stands for.

The native core keeps the table; the driver fills it.  Sampling is each engine's business.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum

from va100.errors import CapacityError
from va100.gpu.native import library


class Kind(IntEnum):
    """What an object may be used for."""

    TEXTURE = 1
    SURFACE = 2


class Layout(IntEnum):
    """How texels lie."""

    LINEAR = 0
    """One row of device memory; what lies outside reads as zero."""
    PITCH = 1
    ARRAY = 2


class TexelFormat(IntEnum):
    """Type of a channel, as ``CUarray_format`` numbers it."""

    U8 = 0x01
    U16 = 0x02
    U32 = 0x03
    S8 = 0x08
    S16 = 0x09
    S32 = 0x0A
    F16 = 0x10
    F32 = 0x20

    @property
    def size_bytes(self) -> int:
        """Bytes of a channel."""
        return int(self.name[1:]) // 8

    @property
    def is_float(self) -> bool:
        """Whether a channel holds a floating-point number."""
        return self.name[0] == "F"

    @property
    def is_signed(self) -> bool:
        """Whether a channel holds a signed integer."""
        return self.name[0] == "S"


class AddressMode(IntEnum):
    """What lies outside, as ``CUaddress_mode`` numbers it."""

    WRAP = 0
    CLAMP = 1
    MIRROR = 2
    BORDER = 3


class Texture(ctypes.Structure):
    """A texture or surface, field for field ``va_texture``."""

    _fields_ = (
        ("base", ctypes.c_uint64),
        ("pitch", ctypes.c_uint64),
        ("slice", ctypes.c_uint64),
        ("kind", ctypes.c_uint32),
        ("layout", ctypes.c_uint32),
        ("width", ctypes.c_uint32),
        ("height", ctypes.c_uint32),
        ("depth", ctypes.c_uint32),
        ("layers", ctypes.c_uint32),
        ("is_cube", ctypes.c_uint32),
        ("format", ctypes.c_uint32),
        ("channels", ctypes.c_uint32),
        ("address", ctypes.c_uint32 * 3),
        ("linear", ctypes.c_uint32),
        ("normalized", ctypes.c_uint32),
        ("as_integer", ctypes.c_uint32),
        ("border", ctypes.c_uint32 * 4),
    )


def add_texture(texture: Texture) -> int:
    """Give a description a number.

    Raises
    ------
    CapacityError
        The table is full.
    """
    number = int(_call("va_texture_add", ctypes.c_uint64)(ctypes.byref(texture)))
    if not number:
        raise CapacityError("no more texture or surface objects can be made")
    return number


def remove_texture(number: int, kind: Kind) -> None:
    """Forget a number; ``ValueError`` when it stands for nothing of the kind."""
    remove = _call("va_texture_remove", ctypes.c_int)
    if remove(ctypes.c_uint64(number), ctypes.c_uint32(kind)):
        raise ValueError(f"0x{number:x} is no {kind.name.lower()} object")


def find_texture(number: int) -> Texture | None:
    """What a number stands for."""
    found = Texture()
    known = _call("va_texture_find", ctypes.c_int)(ctypes.c_uint64(number), ctypes.byref(found))
    return found if known else None


def native_bytes() -> int:
    """Size the native core has for :class:`Texture`."""
    return int(_call("va_texture_bytes", ctypes.c_uint64)())


def _call(name: str, result: type[ctypes._SimpleCData[int]]) -> ctypes._NamedFuncPointer:
    function = library()[name]
    function.restype = result
    return function
