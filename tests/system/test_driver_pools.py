"""Memory pools: what they count and hold, who may use them, and what is refused."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_int, c_uint64, c_void_p

import pytest

from tests.helpers.client_programs import ROOT, failures_of
from tests.helpers.cuda_client import Cuda, context
from tests.helpers.virtual_memory import (
    DEVICE,
    FABRIC,
    HOST,
    HOST_NUMA,
    MANAGED,
    NO_ACCESS,
    PINNED,
    POSIX_FD,
    READ,
    READ_WRITE,
    UNIT,
    Access,
    Location,
    PoolProperties,
    pointer_attribute,
    used,
)

INVALID_VALUE, OUT_OF_MEMORY, INVALID_DEVICE, NOT_SUPPORTED = 1, 2, 101, 801
THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH = 4, 5, 6, 7, 8
CHUNK = 32 << 20


def on_device(**changes) -> PoolProperties:
    properties = PoolProperties(PINNED, 0, Location(DEVICE, 0))
    for name, value in changes.items():
        setattr(properties, name, value)
    return properties


@contextmanager
def new_pool(cuda: Cuda, properties: PoolProperties | None = None) -> Iterator[c_void_p]:
    pool = c_void_p()
    cuda.MemPoolCreate(byref(pool), byref(properties or on_device()))
    try:
        yield pool
    finally:
        cuda.MemPoolDestroy(pool)


def number(cuda: Cuda, pool: c_void_p, attribute: int, kind: type = c_uint64) -> int:
    value = kind()
    cuda.MemPoolGetAttribute(pool, attribute, byref(value))
    return value.value


def take(cuda: Cuda, pool: c_void_p, size: int) -> int:
    address = c_uint64()
    cuda.MemAllocFromPoolAsync(byref(address), size, pool, None)
    return address.value


class TestCounts:
    def test_used_rises_and_falls_and_the_mark_stays(self):
        with context() as cuda, new_pool(cuda) as pool:
            addresses = [take(cuda, pool, 1 << 20) for _ in range(3)]
            assert number(cuda, pool, USED) == 3 << 20
            for address in addresses:
                cuda.MemFreeAsync(address, None)
            assert number(cuda, pool, USED) == 0
            assert number(cuda, pool, USED_HIGH) == 3 << 20

    def test_marks_are_reset_to_what_is_now(self):
        with context() as cuda, new_pool(cuda) as pool:
            first, second = take(cuda, pool, 4096), take(cuda, pool, 8192)
            cuda.MemFreeAsync(second, None)
            for mark in (USED_HIGH, RESERVED_HIGH):
                cuda.MemPoolSetAttribute(pool, mark, byref(c_uint64(0)))
                assert cuda.code("MemPoolSetAttribute", pool, mark, byref(c_uint64(1))) == 1
            assert number(cuda, pool, USED_HIGH) == 4096
            cuda.MemFreeAsync(first, None)

    def test_it_holds_on_to_memory_until_the_host_waits(self):
        with context() as cuda, new_pool(cuda) as pool:
            before = used()
            address = take(cuda, pool, 1000)
            assert number(cuda, pool, RESERVED) == CHUNK
            assert used() >= before + CHUNK - 512
            cuda.MemFreeAsync(address, None)
            assert number(cuda, pool, RESERVED) == CHUNK
            cuda.CtxSynchronize()
            assert number(cuda, pool, RESERVED) == 0
            assert used() == before
            assert number(cuda, pool, RESERVED_HIGH) == CHUNK

    def test_below_its_threshold_it_lets_nothing_go(self):
        with context() as cuda, new_pool(cuda) as pool:
            cuda.MemPoolSetAttribute(pool, THRESHOLD, byref(c_uint64(2**64 - 1)))
            assert number(cuda, pool, THRESHOLD) == 2**64 - 1
            cuda.MemFreeAsync(take(cuda, pool, 100 << 20), None)
            cuda.StreamSynchronize(None)
            assert number(cuda, pool, RESERVED) == 128 << 20
            cuda.MemPoolTrimTo(pool, 64 << 20)
            assert number(cuda, pool, RESERVED) == 64 << 20
            cuda.MemPoolTrimTo(pool, 0)
            assert number(cuda, pool, RESERVED) == 0

    def test_what_pools_hold_is_there_for_those_who_need_it(self):
        with context() as cuda, new_pool(cuda) as pool:
            cuda.MemPoolSetAttribute(pool, THRESHOLD, byref(c_uint64(2**64 - 1)))
            free, total = c_uint64(), c_uint64()
            cuda.MemGetInfo_v2(byref(free), byref(total))
            size = free.value // 2 // UNIT * UNIT + 64 * UNIT
            cuda.MemFreeAsync(take(cuda, pool, size), None)
            assert number(cuda, pool, RESERVED) >= size
            cuda.MemFree_v2(cuda.allocate(size))
            assert number(cuda, pool, RESERVED) == 0

    def test_a_pool_has_no_more_than_its_size(self):
        with context() as cuda, new_pool(cuda, on_device(max_size=2 * UNIT)) as pool:
            assert number(cuda, pool, 13) == 2 * UNIT
            address = take(cuda, pool, UNIT)
            code = cuda.code("MemAllocFromPoolAsync", byref(c_uint64()), 2 * UNIT, pool, None)
            assert code == OUT_OF_MEMORY
            cuda.MemFreeAsync(address, None)

    def test_a_pointer_knows_its_pool(self):
        with context() as cuda, new_pool(cuda) as pool:
            address = take(cuda, pool, 64)
            assert pointer_attribute(cuda, 17, address, c_uint64) == pool.value
            assert pointer_attribute(cuda, 10, address) == 0
            cuda.MemFree_v2(address)
            assert number(cuda, pool, USED) == 0


class TestProperties:
    def test_they_are_told(self):
        with context() as cuda, new_pool(cuda, on_device(handle_types=POSIX_FD)) as pool:
            told = {a: number(cuda, pool, a, c_int) for a in (1, 2, 3, 9, 10, 11, 12, 14, 15)}
        assert told == {1: 1, 2: 1, 3: 1, 9: PINNED, 10: POSIX_FD, 11: 0, 12: DEVICE, 14: 0, 15: -1}

    def test_reuse_may_be_turned_off(self):
        with context() as cuda, new_pool(cuda) as pool:
            cuda.MemPoolSetAttribute(pool, 2, byref(c_int(0)))
            assert number(cuda, pool, 2, c_int) == 0

    @pytest.mark.parametrize("attribute", [0, 5, 7, 9, 13, 16, -1, 1000])
    def test_what_cannot_be_set(self, attribute):
        with context() as cuda, new_pool(cuda) as pool:
            code = cuda.code("MemPoolSetAttribute", pool, attribute, byref(c_uint64(0)))
            assert code == INVALID_VALUE

    @pytest.mark.parametrize(
        ("properties", "code"),
        [
            (on_device(type=0), INVALID_VALUE),
            (on_device(handle_types=FABRIC), NOT_SUPPORTED),
            (on_device(handle_types=2), INVALID_VALUE),
            (on_device(location=Location(DEVICE, 99)), INVALID_DEVICE),
            (on_device(location=Location(0, 0)), INVALID_VALUE),
            (on_device(location=Location(4, 0)), INVALID_VALUE),
            (on_device(usage=2), NOT_SUPPORTED),
            (PoolProperties(MANAGED, POSIX_FD, Location(DEVICE, 0)), INVALID_VALUE),
            (PoolProperties(MANAGED, 0, Location(DEVICE, 0), None, 1 << 30), INVALID_VALUE),
        ],
    )
    def test_pools_that_there_are_not(self, properties, code):
        with context() as cuda:
            assert cuda.code("MemPoolCreate", byref(c_void_p()), byref(properties)) == code

    @pytest.mark.parametrize(
        ("location", "memory_type", "managed"),
        [
            (Location(HOST, 0), 1, 0),
            (Location(HOST_NUMA, 0), 1, 0),
        ],
    )
    def test_pools_of_the_host(self, location, memory_type, managed):
        with context() as cuda, new_pool(cuda, on_device(location=location)) as pool:
            address = take(cuda, pool, 256)
            ctypes.memset(address, 3, 256)
            assert pointer_attribute(cuda, 2, address) == memory_type
            assert pointer_attribute(cuda, 8, address) == managed
            cuda.MemFreeAsync(address, None)
            assert number(cuda, pool, USED) == 0

    def test_pools_of_managed_memory(self):
        properties = PoolProperties(MANAGED, 0, Location(0, 0))
        with context() as cuda, new_pool(cuda, properties) as pool:
            address = take(cuda, pool, 256)
            ctypes.memset(address, 3, 256)
            assert pointer_attribute(cuda, 8, address) == 1
            cuda.MemFreeAsync(address, None)


class TestChoice:
    def test_a_device_begins_with_its_default_pool(self):
        with context() as cuda, new_pool(cuda) as pool:
            default, current = c_void_p(), c_void_p()
            cuda.DeviceGetDefaultMemPool(byref(default), 0)
            cuda.DeviceGetMemPool(byref(current), 0)
            assert current.value == default.value
            cuda.DeviceSetMemPool(0, pool)
            cuda.DeviceGetMemPool(byref(current), 0)
            assert current.value == pool.value
            address = c_uint64()
            cuda.MemAllocAsync(byref(address), 4096, None)
            assert number(cuda, pool, USED) == 4096
            cuda.MemFreeAsync(address.value, None)
        cuda.DeviceGetMemPool(byref(current), 0)
        assert current.value == default.value

    @pytest.mark.parametrize("kind", [PINNED, MANAGED])
    @pytest.mark.parametrize("place", [HOST, HOST_NUMA, DEVICE])
    def test_every_location_has_one(self, place, kind):
        with context() as cuda:
            first, again, location = c_void_p(), c_void_p(), Location(place, 0)
            cuda.MemGetDefaultMemPool(byref(first), byref(location), kind)
            cuda.MemGetMemPool(byref(again), byref(location), kind)
            assert first.value == again.value
            assert number(cuda, first, 9, c_int) == kind
            assert cuda.code("MemPoolDestroy", first) == INVALID_VALUE

    def test_another_pool_for_the_host(self):
        with context() as cuda, new_pool(cuda, on_device(location=Location(HOST, 0))) as pool:
            current, location = c_void_p(), Location(HOST, 0)
            cuda.MemSetMemPool(byref(location), PINNED, pool)
            cuda.MemGetMemPool(byref(current), byref(location), PINNED)
            assert current.value == pool.value
        cuda.MemGetMemPool(byref(current), byref(location), PINNED)
        assert current.value not in {None, pool.value}

    def test_a_pool_does_not_serve_another_place(self):
        with context() as cuda, new_pool(cuda, on_device(location=Location(HOST, 0))) as pool:
            assert cuda.code("DeviceSetMemPool", 0, pool) == INVALID_VALUE
            location = Location(DEVICE, 0)
            assert cuda.code("MemSetMemPool", byref(location), PINNED, pool) == INVALID_VALUE


class TestNothing:
    def test_no_bytes_have_no_address(self):
        with context() as cuda, new_pool(cuda) as pool:
            address, before = c_uint64(1), used()
            cuda.MemAllocFromPoolAsync(byref(address), 0, pool, None)
            assert address.value == 0
            cuda.MemFreeAsync(address.value, None)
            cuda.MemAllocAsync(byref(address), 0, None)
            assert (address.value, used()) == (0, before)


class TestDestroyed:
    def test_its_allocations_outlive_it(self):
        with context() as cuda:
            before, pool = used(), c_void_p()
            cuda.MemPoolCreate(byref(pool), byref(on_device()))
            address = take(cuda, pool, 1 << 20)
            cuda.MemPoolDestroy(pool)
            assert cuda.code("MemPoolDestroy", pool) == INVALID_VALUE
            assert cuda.code("MemAllocFromPoolAsync", byref(c_uint64()), 64, pool, None) == 1
            cuda.write(address, b"still here")
            assert cuda.read(address, 10) == b"still here"
            cuda.MemFreeAsync(address, None)
            assert used() == before

    @pytest.mark.parametrize("handle", [None, 8, 0xFFFF_FFFF_FFFF_FFF0])
    def test_no_pool_at_all(self, handle):
        with context() as cuda:
            value = c_uint64()
            assert cuda.code("MemPoolTrimTo", handle, 0) == INVALID_VALUE
            assert cuda.code("MemPoolGetAttribute", handle, 4, byref(value)) == INVALID_VALUE
            assert cuda.code("DeviceSetMemPool", 0, handle) == INVALID_VALUE


class TestAccess:
    def test_its_own_device_always_may(self):
        with context() as cuda, new_pool(cuda) as pool:
            flags, here = c_int(), Location(DEVICE, 0)
            cuda.MemPoolGetAccess(byref(flags), pool, byref(here))
            assert flags.value == READ_WRITE
            for wanted, code in ((NO_ACCESS, INVALID_DEVICE), (READ, INVALID_VALUE)):
                access = Access(here, wanted)
                assert cuda.code("MemPoolSetAccess", pool, byref(access), 1) == code

    def test_that_of_others_is_kept(self):
        host = on_device(location=Location(HOST, 0))
        with context() as cuda, new_pool(cuda, host) as pool:
            flags, device = c_int(), Location(DEVICE, 0)
            cuda.MemPoolGetAccess(byref(flags), pool, byref(device))
            assert flags.value == NO_ACCESS
            cuda.MemPoolSetAccess(pool, byref(Access(device, READ_WRITE)), 1)
            cuda.MemPoolGetAccess(byref(flags), pool, byref(device))
            assert flags.value == READ_WRITE


class TestShared:
    @staticmethod
    def exported(cuda, address):
        data = (ctypes.c_ubyte * 64)()
        cuda.MemPoolExportPointer(byref(data), address)
        return data

    @staticmethod
    def imported(cuda, pool):
        fd, imported = c_int(), c_void_p()
        cuda.MemPoolExportToShareableHandle(byref(fd), pool, POSIX_FD, 0)
        cuda.MemPoolImportFromShareableHandle(byref(imported), fd.value, POSIX_FD, 0)
        os.close(fd.value)
        return imported

    def test_no_two_allocations_are_told_of_in_the_same_words(self):
        """Clients know by them what they have imported already."""
        shared = on_device(handle_types=POSIX_FD)
        with context() as cuda, new_pool(cuda, shared) as one, new_pool(cuda, shared) as other:
            places = [take(cuda, one, 64), take(cuda, other, 64)]
            told = [bytes(self.exported(cuda, place)) for place in places]
            cuda.MemFreeAsync(places[0], None)
            again = take(cuda, one, 64)
            told.append(bytes(self.exported(cuda, again)))
            assert len(set(told)) == 3
            for address in (places[1], again):
                cuda.MemFreeAsync(address, None)

    def test_a_piece_is_of_one_pool(self):
        shared = on_device(handle_types=POSIX_FD)
        with context() as cuda, new_pool(cuda, shared) as one, new_pool(cuda, shared) as other:
            first, second = take(cuda, one, 64), take(cuda, other, 64)
            wrong = self.imported(cuda, other)
            call = ("MemPoolImportPointer", byref(c_uint64()), wrong)
            assert cuda.code(*call, byref(self.exported(cuda, first))) == INVALID_VALUE
            cuda.MemPoolDestroy(wrong)
            for address in (first, second):
                cuda.MemFreeAsync(address, None)

    def test_what_was_imported_is_passed_on(self):
        with context() as cuda, new_pool(cuda, on_device(handle_types=POSIX_FD)) as pool:
            address, there, onwards = take(cuda, pool, 64), c_uint64(), c_uint64()
            second, third = self.imported(cuda, pool), self.imported(cuda, pool)
            data = self.exported(cuda, address)
            cuda.MemPoolImportPointer(byref(there), second, byref(data))
            data = self.exported(cuda, there.value)
            cuda.MemPoolImportPointer(byref(onwards), third, byref(data))
            cuda.write(onwards.value, b"passed on")
            assert cuda.read(address, 9) == b"passed on"
            for place in (onwards.value, there.value, address):
                cuda.MemFreeAsync(place, None)
            for handle in (second, third):
                cuda.MemPoolDestroy(handle)

    def test_a_piece_is_found_through_the_imported_pool(self):
        with context() as cuda, new_pool(cuda, on_device(handle_types=POSIX_FD)) as pool:
            before, fd, imported = used(), c_int(), c_void_p()
            address, there = take(cuda, pool, 5000), c_uint64()
            cuda.MemPoolExportToShareableHandle(byref(fd), pool, POSIX_FD, 0)
            cuda.MemPoolImportFromShareableHandle(byref(imported), fd.value, POSIX_FD, 0)
            os.close(fd.value)
            data = (ctypes.c_ubyte * 64)()
            cuda.MemPoolExportPointer(byref(data), address)
            cuda.MemPoolImportPointer(byref(there), imported, byref(data))
            assert there.value != address
            cuda.write(address + 4990, b"across")
            assert cuda.read(there.value + 4990, 6) == b"across"
            assert cuda.code("MemAllocFromPoolAsync", byref(there), 64, imported, None) == 1
            assert cuda.code("DeviceSetMemPool", 0, imported) == INVALID_VALUE
            assert number(cuda, imported, 10, c_int) == 0
            cuda.MemFreeAsync(there.value, None)
            cuda.MemFreeAsync(address, None)
            cuda.MemPoolDestroy(imported)
            cuda.CtxSynchronize()
            assert used() == before

    def test_a_piece_of_a_pool_that_is_not_shared(self):
        with context() as cuda, new_pool(cuda) as pool:
            address, data = take(cuda, pool, 64), (ctypes.c_ubyte * 64)()
            assert cuda.code("MemPoolExportPointer", byref(data), address) == INVALID_VALUE
            fd = c_int()
            code = cuda.code("MemPoolExportToShareableHandle", byref(fd), pool, POSIX_FD, 0)
            assert code == INVALID_VALUE
            cuda.MemFreeAsync(address, None)

    def test_data_that_names_no_piece(self):
        with context() as cuda, new_pool(cuda, on_device(handle_types=POSIX_FD)) as pool:
            fd, imported, there = c_int(), c_void_p(), c_uint64()
            cuda.MemPoolExportToShareableHandle(byref(fd), pool, POSIX_FD, 0)
            cuda.MemPoolImportFromShareableHandle(byref(imported), fd.value, POSIX_FD, 0)
            os.close(fd.value)
            data = (ctypes.c_ubyte * 64)()
            assert cuda.code("MemPoolImportPointer", byref(there), imported, byref(data)) == 1
            address = take(cuda, pool, 64)
            cuda.MemPoolExportPointer(byref(data), address)
            assert cuda.code("MemPoolImportPointer", byref(there), pool, byref(data)) == 1
            ctypes.memset(ctypes.addressof(data) + 32, 0xFF, 7)  # a size past the file
            assert cuda.code("MemPoolImportPointer", byref(there), imported, byref(data)) == 1
            cuda.MemFreeAsync(address, None)
            cuda.MemPoolDestroy(imported)


def test_other_devices_need_the_pool_to_grant_access():
    assert failures_of("pool_access.py", VA100_GPUS="2", PYTHONPATH=str(ROOT)) == []
