"""Where device memory lies that is allocated after other memory was freed."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

from va100.gpu.native import library

_U64 = ctypes.c_uint64
DEVICE = 9
"""A card that no other test allocates on."""


class Arena:
    """The calls this is about."""

    def __init__(self) -> None:
        self._lib = library()
        self._lib.va_arena_alloc.restype = _U64
        self._lib.va_arena_used.restype = _U64
        self.live: set[int] = set()

    def allocate(self, size: int) -> int:
        base = int(self._lib.va_arena_alloc(DEVICE, _U64(size), _U64(256)))
        if base:
            self.live.add(base)
        return base

    def free(self, base: int) -> int:
        self.live.discard(base)
        return int(self._lib.va_arena_free(_U64(base)))

    def retire(self, base: int) -> int:
        self.live.discard(base)
        return int(self._lib.va_arena_retire(_U64(base)))

    def used(self) -> int:
        return int(self._lib.va_arena_used(DEVICE))


@pytest.fixture
def memory() -> Iterator[Arena]:
    arena = Arena()
    yield arena
    for base in tuple(arena.live):
        arena.free(base)


def test_what_is_freed_is_given_out_again(memory):
    first = memory.allocate(1000)
    assert memory.free(first) == 0
    assert memory.allocate(1000) == first


def test_what_is_retired_is_not(memory):
    before = memory.used()
    first = memory.allocate(1000)
    assert memory.retire(first) == 0
    assert memory.used() == before  # it counts as free all the same
    assert memory.allocate(1000) != first


def test_nothing_is_retired_twice(memory):
    first = memory.allocate(1000)
    assert (memory.retire(first), memory.retire(first), memory.free(first)) == (0, -1, -1)


def test_only_so_many_small_ones_are_held_back(memory):
    small = 64 << 10
    first = memory.allocate(small)
    memory.retire(first)
    seen = []
    for _ in range(1200):
        seen.append(memory.allocate(small))
        memory.retire(seen[-1])
    assert first not in seen[:900]
    assert seen[-1] < max(seen)  # it went on upwards until the oldest came back
