"""Module images in files: what they are, and the PTX inside.

The native driver looks into images by itself (``native/driver/images.cpp``); this is for people's
tools, which meet the same containers on disk.  Decompression is the native core's.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from va100.errors import ImageError
from va100.gpu.native import library

HIGHEST_ARCH: Final = 80
_FATBIN: Final = 0xBA55ED50
_WRAPPER: Final = 0x466243B1
_ELF: Final = b"\x7fELF"
_HEADER: Final = struct.Struct("<IHHQ")
_ENTRY: Final = struct.Struct("<HHIQII4xI8xQ8xQ")
_PTX_KIND: Final = 1
_LZ4: Final = 0x2000
_ZSTD: Final = 0x8000
_NO_PTX: Final = "compile with PTX in it: nvcc -gencode arch=compute_80,code=compute_80"


class ImageKind(Enum):
    """What a file or buffer is, by its first bytes; the value is spelled for people."""

    PTX = "PTX text"
    FATBIN = "fatbin"
    WRAPPER = "fatbin wrapper"
    ELF = "ELF (machine code)"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class FatbinEntry:
    """One payload of a fatbin, as stored."""

    is_ptx: bool
    arch: int
    """80 for compute_80 and sm_80."""
    compression: str
    """``""``, ``"lz4"`` or ``"zstd"``."""
    raw_bytes: int
    payload: bytes


def sniff(image: bytes) -> ImageKind:
    """Tell what an image is."""
    if image.startswith(_ELF):
        return ImageKind.ELF
    magic = int.from_bytes(image[:4], "little")
    if magic == _FATBIN and len(image) >= _HEADER.size:
        return ImageKind.FATBIN
    if magic == _WRAPPER:
        return ImageKind.WRAPPER
    return ImageKind.PTX if b".version" in image else ImageKind.UNKNOWN


def entries(fatbin: bytes) -> tuple[FatbinEntry, ...]:
    """List the payloads of a fatbin.

    Raises
    ------
    ImageError
        It is none, or is cut short.
    """
    if sniff(fatbin) is not ImageKind.FATBIN:
        raise ImageError("not a fatbin")
    _, _, header_bytes, size = _HEADER.unpack_from(fatbin)
    end = header_bytes + size
    if end > len(fatbin):
        raise ImageError(f"the fatbin is cut short: {len(fatbin)} of {end} bytes")
    return tuple(_entries(fatbin[:end], header_bytes))


def _entries(fatbin: bytes, at: int) -> Iterator[FatbinEntry]:
    while at + _ENTRY.size <= len(fatbin):
        kind, _, header, size, packed, _, arch, flags, raw = _ENTRY.unpack_from(fatbin, at)
        payload = fatbin[at + header : at + header + size]
        if header < _ENTRY.size or len(payload) < size:
            raise ImageError("a fatbin entry is longer than its room")
        compression = "zstd" if flags & _ZSTD else "lz4" if flags & _LZ4 else ""
        yield FatbinEntry(
            is_ptx=kind == _PTX_KIND,
            arch=arch,
            compression=compression,
            raw_bytes=raw if compression else size,
            payload=payload[:packed] if compression and packed else payload,
        )
        at += header + size


def expand(entry: FatbinEntry) -> bytes:
    """Decompress a payload.

    Raises
    ------
    ImageError
        It is damaged.
    """
    if not entry.compression:
        return entry.payload
    lib = library()
    call = lib.va_expand_zstd if entry.compression == "zstd" else lib.va_expand_lz4
    call.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t)
    call.restype = ctypes.c_int64
    buffer = ctypes.create_string_buffer(max(entry.raw_bytes, 1))
    size = call(entry.payload, len(entry.payload), buffer, entry.raw_bytes)
    if size < 0:
        raise ImageError("a fatbin entry could not be decompressed")
    return buffer.raw[:size]


def ptx_text(image: bytes) -> str:
    """Return the PTX that an A100 would run: the newest not beyond compute_80.

    Raises
    ------
    ImageError
        There is none; the hint says what to compile with.
    """
    kind = sniff(image)
    if kind is ImageKind.PTX:
        return _text(image)
    if kind is ImageKind.ELF:
        raise ImageError("the image holds machine code only (SASS)", hint=_NO_PTX)
    if kind is not ImageKind.FATBIN:
        raise ImageError(f"no PTX in an image of kind: {kind.value}")
    found = [entry for entry in entries(image) if entry.is_ptx]
    if not found:
        raise ImageError("the fatbin holds machine code only (SASS)", hint=_NO_PTX)
    usable = [entry for entry in found if entry.arch <= HIGHEST_ARCH]
    if not usable:
        lowest = min(entry.arch for entry in found)
        raise ImageError(
            f"the PTX is for compute_{lowest} and newer; an A100 is compute_{HIGHEST_ARCH}",
            hint=f"compile with -arch=compute_{HIGHEST_ARCH}",
        )
    return _text(expand(max(usable, key=lambda entry: entry.arch)))


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("utf-8", errors="replace")
