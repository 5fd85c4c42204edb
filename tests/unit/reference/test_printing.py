"""C formats against Python's own ideas of them, where the two agree, and where they do not."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from va100.gpu.arena import Arena
from va100.reference.printing import Arguments, formatted
from va100.reference.storage import Storage


@pytest.fixture(scope="module")
def storage() -> Storage:
    return Storage(Arena())


def _print(storage: Storage, text: bytes, packed: bytes) -> tuple[bytes, int]:
    address = storage.arena.upload(np.frombuffer(packed.ljust(8, b"\0"), np.uint8))
    try:
        return formatted(text, Arguments(storage, address))
    finally:
        storage.arena.free(address)


@pytest.mark.parametrize(("text", "packed", "want"), [
    (b"%d", struct.pack("<i", -3), b"-3"),
    (b"%i|%u", struct.pack("<iI", -3, 4000000000), b"-3|4000000000"),
    (b"%d %lld", struct.pack("<i4xq", 1, -(2**40)), b"1 -1099511627776"),
    (b"%+d % d", struct.pack("<ii", 5, 5), b"+5  5"),
    (b"%.3d|%6.3d", struct.pack("<ii", 7, 7), b"007|   007"),
    (b"%#o %#x %X", struct.pack("<iii", 8, 255, 255), b"010 0xff FF"),
    (b"%8.3f|%-8.1f|%+.0f", struct.pack("<ddd", 3.14159, 2.25, 7.0), b"   3.142|2.2     |+7"),
    (b"%e %G", struct.pack("<dd", 12345.678, 1e-10), b"1.234568e+04 1E-10"),
    (b"%f %5f|%05f", struct.pack("<ddd", float("inf"), float("-inf"), float("nan")),
     b"inf  -inf|  nan"),
    (b"%a", struct.pack("<d", 1.5), b"0x1.8p+0"),
    (b"%c%c", struct.pack("<ii", 65, 66), b"AB"),
    (b"%p", struct.pack("<Q", 0x200000000), b"0x200000000"),
    (b"%s", struct.pack("<Q", 0), b"(null)"),
    (b"%hd %hhd %hhu", struct.pack("<iii", 65537, 257, 511), b"1 1 255"),
    (b"100%%", b"", b"100%"),
    (b"%y", b"", b"%y"),
])  # fmt: skip
def test_formats(storage: Storage, text: bytes, packed: bytes, want: bytes) -> None:
    assert _print(storage, text, packed)[0] == want


def test_counts_arguments_taken(storage: Storage) -> None:
    assert _print(storage, b"%d %% %*d", struct.pack("<iii", 1, 4, 2)) == (b"1 %    2", 3)


def test_strings_stop_at_their_end(storage: Storage) -> None:
    place = storage.arena.upload(np.frombuffer(b"hello\0junk", np.uint8))
    packed = struct.pack("<QQ", place, place)
    assert _print(storage, b"[%s][%.2s]", packed)[0] == b"[hello][he]"
    storage.arena.free(place)
