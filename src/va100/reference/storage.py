"""Device memory as the interpreter touches it: gathers and scatters of raw bits.

The whole arena is seen as flat arrays of 1-, 2-, 4- and 8-byte words, so a warp's access is one
indexing operation.  Which addresses may be touched is asked of the arena's shadow; host memory
that a client registered lies outside the arena and takes the slow path.
"""

from __future__ import annotations

import ctypes
from typing import Final

import numpy as np
import numpy.typing as npt

from va100.gpu.arena import ARENA_BASE, ARENA_SHIFT, GRANULE_SHIFT, SHADOW_BASE, Arena
from va100.reference.lanes import OPAQUE, Lanes

Addresses = npt.NDArray[np.uint64]

_ARENA_BYTES: Final = 1 << ARENA_SHIFT
_WORDS: Final = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}


class Storage:
    """Flat views of device memory."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self._views = {
            size: _flat(word, ARENA_BASE, _ARENA_BYTES // size) for size, word in _WORDS.items()
        }
        self._views[16] = self._views[8].view(OPAQUE)
        granules = _ARENA_BYTES >> GRANULE_SHIFT
        self._shadow = _flat(ctypes.c_uint8, SHADOW_BASE, granules)

    def first_illegal(self, addresses: Addresses, size_bytes: int) -> int:
        """Index of the first address that may not be touched, or -1.

        The addresses are multiples of the access size, or of 16 for larger accesses, so an
        access never straddles a granule.
        """
        offsets = addresses - np.uint64(ARENA_BASE)
        inside = offsets < np.uint64(_ARENA_BYTES)
        granules = np.where(inside, offsets, np.uint64(0)) >> np.uint64(GRANULE_SHIFT)
        bad = self._shadow[granules] == 0
        if not inside.all():
            bad = bad | ~inside
            for index in np.flatnonzero(~inside):
                bad[index] = not self.arena.accessible(int(addresses[index]), size_bytes)
        found = np.flatnonzero(bad)
        return int(found[0]) if found.size else -1

    def gather(self, addresses: Addresses, size_bytes: int) -> Lanes:
        """Read one word at each address; all are legal and aligned."""
        offsets = addresses - np.uint64(ARENA_BASE)
        if (offsets < np.uint64(_ARENA_BYTES)).all():
            words: Lanes = self._views[size_bytes][offsets // np.uint64(size_bytes)]
            return words
        if size_bytes == OPAQUE.itemsize:
            halves = [self.gather(addresses + np.uint64(at), 8) for at in (0, 8)]
            return np.stack(halves, axis=1).view(OPAQUE).reshape(-1)
        return np.array([self._word(int(a), size_bytes).value for a in addresses], f"u{size_bytes}")

    def scatter(self, addresses: Addresses, values: Lanes) -> None:
        """Write one word at each address; of equal addresses the last lane wins."""
        size_bytes = values.dtype.itemsize
        offsets = addresses - np.uint64(ARENA_BASE)
        if (offsets < np.uint64(_ARENA_BYTES)).all():
            self._views[size_bytes][offsets // np.uint64(size_bytes)] = values
            return
        if size_bytes == OPAQUE.itemsize:
            halves = np.ascontiguousarray(values).view(np.uint64).reshape(-1, 2)
            for half in (0, 1):
                self.scatter(addresses + np.uint64(8 * half), halves[:, half])
            return
        for address, value in zip(addresses, values, strict=True):
            self._word(int(address), size_bytes).value = int(value)

    def text(self, address: int, limit: int = 1 << 20) -> bytes:
        """A zero-terminated string; stops before memory that may not be touched."""
        found = bytearray()
        while len(found) < limit and self.arena.accessible(address + len(found), 1):
            byte = int(self._word(address + len(found), 1).value)
            if not byte:
                break
            found.append(byte)
        return bytes(found)

    def _word(self, address: int, size_bytes: int) -> ctypes.c_uint64:
        return _WORDS[size_bytes].from_address(address)  # type: ignore[return-value]


def _flat(word: type[ctypes._SimpleCData[int]], address: int, count: int) -> Lanes:
    """See memory at an address as an array; it stays the arena's."""
    return np.ctypeslib.as_array((word * count).from_address(address))
