"""Advice about managed memory, and what is told of a range afterwards."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

import pytest

from tests.helpers.cuda_client import Cuda, context
from tests.helpers.virtual_memory import DEVICE, HOST, HOST_NUMA, Location

INVALID_VALUE, INVALID_DEVICE = 1, 101
SIZE = 1 << 16
CPU, NONE = -1, -2
READ_MOSTLY, PREFERRED, ACCESSED_BY, LAST_PREFETCH = 1, 2, 3, 4
PREFERRED_TYPE, PREFERRED_ID, PREFETCH_TYPE, PREFETCH_ID = 5, 6, 7, 8


@contextmanager
def managed(size: int = SIZE) -> Iterator[tuple[Cuda, int]]:
    with context() as cuda:
        address = c_uint64()
        cuda.MemAllocManaged(byref(address), size, 1)
        yield cuda, address.value
        cuda.MemFree_v2(address.value)


def told(cuda: Cuda, attribute: int, address: int, size: int = SIZE) -> int:
    value = c_int(12345)
    cuda.MemRangeGetAttribute(byref(value), 4, attribute, address, size)
    return value.value


class TestAdvice:
    def test_nothing_is_known_at_first(self):
        with managed() as (cuda, address):
            assert told(cuda, READ_MOSTLY, address) == 0
            assert told(cuda, PREFERRED, address) == NONE
            assert told(cuda, LAST_PREFETCH, address) == NONE
            assert told(cuda, PREFERRED_TYPE, address) == 0

    def test_read_mostly_holds_for_a_range_when_it_does_for_all_of_it(self):
        with managed() as (cuda, address):
            cuda.MemAdvise(address, 4096, 1, 0)
            assert told(cuda, READ_MOSTLY, address, 4096) == 1
            assert told(cuda, READ_MOSTLY, address, 4097) == 0
            assert told(cuda, READ_MOSTLY, address + 1000, 100) == 1
            cuda.MemAdvise(address + 1024, 1024, 2, 0)
            assert told(cuda, READ_MOSTLY, address, 4096) == 0
            assert told(cuda, READ_MOSTLY, address, 1024) == 1

    def test_the_preferred_location(self):
        with managed() as (cuda, address):
            cuda.MemAdvise(address, SIZE, 3, CPU)
            assert told(cuda, PREFERRED, address) == CPU
            assert told(cuda, PREFERRED_TYPE, address) == HOST
            cuda.MemAdvise_v2(address, SIZE, 3, Location(DEVICE, 0).packed)
            assert told(cuda, PREFERRED, address) == 0
            assert told(cuda, PREFERRED_TYPE, address) == DEVICE
            cuda.MemAdvise_v2(address, SIZE, 3, Location(HOST_NUMA, 0).packed)
            assert told(cuda, PREFERRED_TYPE, address) == HOST_NUMA
            assert told(cuda, PREFERRED_ID, address) == 0
            cuda.MemAdvise(address, SIZE, 4, 0)
            assert told(cuda, PREFERRED, address) == NONE

    def test_who_accesses_it(self):
        with managed() as (cuda, address):
            cuda.MemAdvise(address, SIZE, 5, 0)
            cuda.MemAdvise(address, SIZE, 5, CPU)
            list_ = (c_int * 4)()
            cuda.MemRangeGetAttribute(byref(list_), 16, ACCESSED_BY, address, SIZE)
            assert list(list_) == [0, CPU, NONE, NONE]
            cuda.MemAdvise(address, SIZE, 6, 0)
            cuda.MemRangeGetAttribute(byref(list_), 4, ACCESSED_BY, address, SIZE)
            assert list_[0] == CPU

    def test_a_freed_range_is_forgotten(self):
        with managed() as (cuda, address):
            cuda.MemAdvise(address, SIZE, 1, 0)
            cuda.MemFree_v2(address)
            again = c_uint64()
            cuda.MemAllocManaged(byref(again), SIZE, 1)
            assert told(cuda, READ_MOSTLY, again.value) == 0
            if again.value != address:
                cuda.MemFree_v2(again.value)
                cuda.MemAllocManaged(byref(c_uint64()), SIZE, 1)

    @pytest.mark.parametrize(
        ("advice", "location", "code"),
        [
            (0, Location(DEVICE, 0), INVALID_VALUE),
            (7, Location(DEVICE, 0), INVALID_VALUE),
            (3, Location(DEVICE, 44), INVALID_DEVICE),
            (3, Location(0, 0), INVALID_VALUE),
            (5, Location(HOST_NUMA, 0), INVALID_VALUE),
        ],
    )
    def test_advice_that_is_none(self, advice, location, code):
        with managed() as (cuda, address):
            assert cuda.code("MemAdvise_v2", address, SIZE, advice, location.packed) == code

    def test_only_managed_memory_is_advised(self):
        with managed() as (cuda, address):
            plain = cuda.allocate(SIZE)
            for where, size in ((plain, SIZE), (0, SIZE), (address, 0), (address, SIZE + 1)):
                assert cuda.code("MemAdvise", where, size, 1, 0) == INVALID_VALUE
                assert cuda.code("MemPrefetchAsync", where, size, 0, None) == INVALID_VALUE
            cuda.MemFree_v2(plain)


class TestPrefetch:
    def test_the_last_place_is_told(self):
        with managed() as (cuda, address):
            cuda.MemPrefetchAsync(address, SIZE, 0, None)
            assert told(cuda, LAST_PREFETCH, address) == 0
            cuda.MemPrefetchAsync_v2(address, 4096, Location(HOST, 7).packed, 0, None)
            assert told(cuda, LAST_PREFETCH, address) == NONE
            assert told(cuda, LAST_PREFETCH, address, 4096) == CPU
            assert told(cuda, PREFETCH_TYPE, address, 4096) == HOST
            assert told(cuda, PREFETCH_ID, address + 4096, 1) == 0

    def test_in_batches(self):
        with managed() as (cuda, address):
            ranges = (c_uint64 * 3)(address, address + 4096, address + 8192)
            sizes = (c_size_t * 3)(4096, 4096, 4096)
            places = (Location * 2)(Location(DEVICE, 0), Location(HOST, 0))
            firsts = (c_size_t * 2)(0, 2)
            cuda.MemPrefetchBatchAsync(ranges, sizes, 3, places, firsts, 2, 0, None)
            assert [told(cuda, LAST_PREFETCH, a, 4096) for a in ranges] == [0, 0, CPU]
            cuda.MemDiscardBatchAsync(ranges, sizes, 3, 0, None)
            cuda.MemDiscardAndPrefetchBatchAsync(ranges, sizes, 3, places, firsts, 1, 0, None)
            assert told(cuda, LAST_PREFETCH, address, 3 * 4096) == 0

    def test_batches_that_are_wrong(self):
        with managed() as (cuda, address):
            ranges, sizes = (c_uint64 * 2)(address, 64), (c_size_t * 2)(64, 64)
            places, firsts = (
                (Location * 2)(Location(DEVICE, 0), Location(HOST, 0)),
                (c_size_t * 2)(),
            )
            code = cuda.code("MemPrefetchBatchAsync", ranges, sizes, 2, places, firsts, 1, 0, None)
            assert code == INVALID_VALUE
            assert told(cuda, LAST_PREFETCH, address, 64) == NONE
            ranges[1] = address + 64
            for count, location_count, flags in ((0, 1, 0), (2, 0, 0), (2, 2, 0), (2, 1, 1)):
                assert cuda.code(
                    "MemPrefetchBatchAsync", ranges, sizes, count, places, firsts, location_count,
                    flags, None,
                ) == INVALID_VALUE  # fmt: skip
            assert cuda.code("MemDiscardBatchAsync", ranges, sizes, 0, 0, None) == INVALID_VALUE


class TestSeveralAttributes:
    def test_each_has_a_place_of_its_own(self):
        with managed() as (cuda, address):
            cuda.MemAdvise(address, SIZE, 1, 0)
            mostly, preferred = c_int(), c_int()
            places = (c_void_p * 2)(ctypes.addressof(mostly), ctypes.addressof(preferred))
            sizes, which = (c_size_t * 2)(4, 4), (c_int * 2)(READ_MOSTLY, PREFERRED)
            cuda.MemRangeGetAttributes(places, sizes, which, 2, address, SIZE)
            assert (mostly.value, preferred.value) == (1, NONE)
            sizes[1] = 8
            code = cuda.code("MemRangeGetAttributes", places, sizes, which, 2, address, SIZE)
            assert code == INVALID_VALUE

    @pytest.mark.parametrize(("attribute", "size"), [(0, 4), (9, 4), (1, 8), (3, 0), (3, 6)])
    def test_what_cannot_be_asked(self, attribute, size):
        with managed() as (cuda, address):
            room = (c_int * 8)()
            code = cuda.code("MemRangeGetAttribute", byref(room), size, attribute, address, SIZE)
            assert code == INVALID_VALUE
