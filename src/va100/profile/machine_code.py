"""What is counted in a kernel's machine code: the loads that the assembler left of those in PTX.

A cubin is an ELF file with a section of 16-byte instructions for each kernel; the low nine bits of
one say what it does, whatever its operands are.  Nothing else of them is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

_MAGIC: Final = b"\x7fELF\x02\x01"
_INSTRUCTION_BYTES: Final = 16
_OPERATION: Final = 0x1FF
_LOADS: Final = frozenset({0x180, 0x181})
"""``LD`` and ``LDG``, as a disassembler names them."""


def load_count(cubin: bytes, kernel: str) -> int | None:
    """Loads of global and generic memory in a kernel's code; None where it has none that is known.

    Functions that are called have sections of their own and are not counted.
    """
    code = next((body for name, body in _sections(cubin) if name == f".text.{kernel}"), None)
    if code is None:
        return None
    words = struct.iter_unpack("<QQ", code[: len(code) // _INSTRUCTION_BYTES * _INSTRUCTION_BYTES])
    return sum(low & _OPERATION in _LOADS for low, _ in words)


def _sections(elf: bytes) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the sections of a 64-bit ELF file; nothing of any other file."""
    if not elf.startswith(_MAGIC):
        return
    try:
        (table,) = struct.unpack_from("<Q", elf, 0x28)
        size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
        headers = [struct.unpack_from("<IIQQQQ", elf, table + n * size) for n in range(count)]
        text = _body(elf, headers[names])
        for header in headers:
            end = text.index(b"\0", header[0])
            yield text[header[0] : end].decode(), _body(elf, header)
    except (struct.error, IndexError, ValueError):
        return


def _body(elf: bytes, header: tuple[int, ...]) -> bytes:
    offset, size = header[4:6]
    return elf[offset : offset + size]
