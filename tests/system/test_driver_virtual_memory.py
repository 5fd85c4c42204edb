"""Physical memory and address ranges: mapped, opened, shared, and every way to get them wrong."""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_int, c_size_t, c_uint64

import pytest

from tests.helpers.cuda_client import Cuda, context
from tests.helpers.ptx_trees import HEADER
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
    Properties,
    compiling,
    create,
    grant,
    mapped,
    on_device,
    pointer_attribute,
    reserve,
    used,
)

INVALID_VALUE, OUT_OF_MEMORY, INVALID_DEVICE, ILLEGAL_ADDRESS = 1, 2, 101, 700
NOT_SUPPORTED = 801

STORE = (
    HEADER
    + """
.visible .entry store(.param .u64 where, .param .u32 what)
{
    .reg .b64 %d<2>;
    .reg .b32 %r<2>;
    ld.param.u64 %d1, [where];
    ld.param.u32 %r1, [what];
    st.global.b32 [%d1], %r1;
    ret;
}
"""
).encode()


def started() -> Cuda:
    cuda = Cuda()
    cuda.Init(0)
    return cuda


class TestPhysical:
    def test_it_takes_memory_of_its_device_until_released(self):
        cuda, before = started(), used()
        handle = create(cuda, 3 * UNIT)
        assert used() == before + 3 * UNIT
        cuda.MemRelease(handle)
        assert used() == before

    def test_a_released_handle_is_unknown(self):
        cuda = started()
        handle = create(cuda)
        cuda.MemRelease(handle)
        assert cuda.code("MemRelease", handle) == INVALID_VALUE
        properties = Properties()
        code = cuda.code("MemGetAllocationPropertiesFromHandle", byref(properties), handle)
        assert code == INVALID_VALUE

    @pytest.mark.parametrize("handle", [0, 1, 2**64 - 1])
    def test_no_handle_at_all(self, handle):
        assert started().code("MemRelease", handle) == INVALID_VALUE

    def test_its_properties_are_told(self):
        cuda, told = started(), Properties()
        handle = create(cuda, properties=on_device(handle_types=POSIX_FD))
        cuda.MemGetAllocationPropertiesFromHandle(byref(told), handle)
        assert (told.type, told.handle_types) == (PINNED, POSIX_FD)
        assert (told.location.type, told.location.id) == (DEVICE, 0)
        cuda.MemRelease(handle)

    @pytest.mark.parametrize("option", [0, 1])
    def test_granules_are_of_two_mebibytes(self, option):
        size = c_size_t()
        started().MemGetAllocationGranularity(byref(size), byref(on_device()), option)
        assert size.value == UNIT

    @pytest.mark.parametrize(
        ("properties", "code"),
        [
            (Properties(MANAGED, 0, Location(DEVICE, 0)), INVALID_VALUE),
            (Properties(0, 0, Location(DEVICE, 0)), INVALID_VALUE),
            (Properties(PINNED, 0, Location(0, 0)), INVALID_VALUE),
            (Properties(PINNED, 0, Location(DEVICE, 77)), INVALID_DEVICE),
            (Properties(PINNED, 0, Location(HOST_NUMA, 9)), INVALID_VALUE),
            (Properties(PINNED, FABRIC, Location(DEVICE, 0)), NOT_SUPPORTED),
            (Properties(PINNED, 2, Location(DEVICE, 0)), INVALID_VALUE),
        ],
    )
    def test_properties_that_no_memory_has(self, properties, code):
        assert started().code("MemCreate", byref(c_uint64()), UNIT, byref(properties), 0) == code

    @pytest.mark.parametrize(("size", "flags"), [(0, 0), (UNIT + 4096, 0), (UNIT, 1)])
    def test_sizes_and_flags_that_are_none(self, size, flags):
        cuda = started()
        code = cuda.code("MemCreate", byref(c_uint64()), size, byref(on_device()), flags)
        assert code == INVALID_VALUE

    def test_more_than_the_device_has(self):
        cuda, before = started(), used()
        code = cuda.code("MemCreate", byref(c_uint64()), 1 << 40, byref(on_device()), 0)
        assert code == OUT_OF_MEMORY
        assert used() == before

    def test_null_for_the_handle(self):
        assert started().code("MemCreate", None, UNIT, byref(on_device()), 0) == INVALID_VALUE


class TestAddresses:
    def test_alignment_is_kept(self):
        cuda = started()
        address = reserve(cuda, UNIT, align=1 << 30)
        assert address % (1 << 30) == 0
        cuda.MemAddressFree(address, UNIT)

    def test_a_wish_is_met_when_the_addresses_are_free(self):
        cuda = started()
        first = reserve(cuda, 8 * UNIT)
        cuda.MemAddressFree(first, 8 * UNIT)
        second = reserve(cuda, UNIT, wanted=first + 4 * UNIT)
        assert second == first + 4 * UNIT
        other = reserve(cuda, UNIT, wanted=second)
        assert other != second
        cuda.MemAddressFree(second, UNIT)
        cuda.MemAddressFree(other, UNIT)

    def test_room_for_more_than_one_devices_worth(self):
        cuda = started()
        ranges = [reserve(cuda, 90 << 30) for _ in range(8)]
        assert len(set(ranges)) == 8
        for address in ranges:
            cuda.MemAddressFree(address, 90 << 30)

    def test_addresses_run_out(self):
        assert started().code("MemAddressReserve", byref(c_uint64()), 1 << 42, 0, 0, 0) == (
            OUT_OF_MEMORY
        )

    @pytest.mark.parametrize(
        ("size", "align", "wanted", "flags"),
        [
            (0, 0, 0, 0),
            (UNIT + 1, 0, 0, 0),
            (UNIT, 3 << 20, 0, 0),
            (UNIT, 0, 0, 1),
            (UNIT, 0, 5, 0),
        ],
    )
    def test_what_cannot_be_reserved(self, size, align, wanted, flags):
        cuda = started()
        code = cuda.code("MemAddressReserve", byref(c_uint64()), size, align, wanted, flags)
        assert code == INVALID_VALUE

    def test_only_whole_reservations_are_freed(self):
        cuda = started()
        address = reserve(cuda, 2 * UNIT)
        assert cuda.code("MemAddressFree", address, UNIT) == INVALID_VALUE
        assert cuda.code("MemAddressFree", address + UNIT, UNIT) == INVALID_VALUE
        cuda.MemAddressFree(address, 2 * UNIT)
        assert cuda.code("MemAddressFree", address, 2 * UNIT) == INVALID_VALUE

    def test_what_is_mapped_is_not_freed(self):
        with context() as cuda, mapped(cuda) as address:
            assert cuda.code("MemAddressFree", address, UNIT) == INVALID_VALUE


class TestMapping:
    def test_bytes_come_back(self):
        with context() as cuda, mapped(cuda) as address:
            cuda.write(address + 100, b"where they were put")
            assert cuda.read(address + 100, 19) == b"where they were put"

    def test_mapped_twice_it_is_the_same_memory(self):
        with context() as cuda:
            first, second, handle = reserve(cuda), reserve(cuda), create(cuda)
            for address in (first, second):
                cuda.MemMap(address, UNIT, 0, handle, 0)
                grant(cuda, address)
            cuda.write(first, b"one")
            assert cuda.read(second, 3) == b"one"
            for address in (first, second):
                cuda.MemUnmap(address, UNIT)
                cuda.MemAddressFree(address, UNIT)
            cuda.MemRelease(handle)

    def test_bytes_stay_while_unmapped(self):
        with context() as cuda:
            address, handle = reserve(cuda), create(cuda)
            cuda.MemMap(address, UNIT, 0, handle, 0)
            grant(cuda, address)
            cuda.write(address, b"kept")
            cuda.MemUnmap(address, UNIT)
            cuda.MemMap(address, UNIT, 0, handle, 0)
            grant(cuda, address)
            assert cuda.read(address, 4) == b"kept"
            cuda.MemUnmap(address, UNIT)
            cuda.MemRelease(handle)
            cuda.MemAddressFree(address, UNIT)

    def test_memory_lives_while_it_is_mapped(self):
        with context() as cuda:
            before, address, handle = used(), reserve(cuda), create(cuda)
            cuda.MemMap(address, UNIT, 0, handle, 0)
            cuda.MemRelease(handle)
            grant(cuda, address)
            cuda.write(address, b"alive")
            assert cuda.read(address, 5) == b"alive"
            assert used() == before + UNIT
            cuda.MemUnmap(address, UNIT)
            assert used() == before
            cuda.MemAddressFree(address, UNIT)

    def test_a_copy_may_cross_from_one_piece_to_the_next(self):
        with context() as cuda:
            address = reserve(cuda, 3 * UNIT)
            handles = [create(cuda) for _ in range(3)]
            for i, handle in enumerate(handles):
                cuda.MemMap(address + i * UNIT, UNIT, 0, handle, 0)
            grant(cuda, address, 3 * UNIT)
            text = bytes(range(256)) * 16
            cuda.write(address + UNIT - 2048, text)
            assert cuda.read(address + UNIT - 2048, 4096) == text
            cuda.MemsetD8_v2(address, 7, 3 * UNIT)
            assert cuda.read(address + 3 * UNIT - 1, 1) == b"\7"
            cuda.MemUnmap(address, 3 * UNIT)
            for handle in handles:
                cuda.MemRelease(handle)
            cuda.MemAddressFree(address, 3 * UNIT)

    def test_nothing_is_touched_before_access_is_given(self):
        with context() as cuda:
            address, handle = reserve(cuda), create(cuda)
            buffer = ctypes.create_string_buffer(8)
            assert cuda.code("MemcpyDtoH_v2", buffer, address, 8) == INVALID_VALUE
            cuda.MemMap(address, UNIT, 0, handle, 0)
            assert cuda.code("MemcpyDtoH_v2", buffer, address, 8) == INVALID_VALUE
            grant(cuda, address)
            cuda.MemcpyDtoH_v2(buffer, address, 8)
            grant(cuda, address, flags=NO_ACCESS)
            assert cuda.code("MemcpyDtoH_v2", buffer, address, 8) == INVALID_VALUE
            cuda.MemUnmap(address, UNIT)
            cuda.MemRelease(handle)
            cuda.MemAddressFree(address, UNIT)

    def test_what_cannot_be_mapped(self):
        with context() as cuda:
            address, handle = reserve(cuda, 2 * UNIT), create(cuda)
            outside = address + (1 << 40)
            for where, size, offset, what, flags in (
                (outside, UNIT, 0, handle, 0),  # not reserved
                (address + UNIT, 2 * UNIT, 0, handle, 0),  # past the reservation
                (address, 2 * UNIT, 0, handle, 0),  # more than there is
                (address, UNIT, UNIT, handle, 0),
                (address, 0, 0, handle, 0),
                (address + 4096, UNIT, 0, handle, 0),
                (address, UNIT, 0, handle, 1),
                (address, UNIT, 0, 12345, 0),
            ):
                assert cuda.code("MemMap", where, size, offset, what, flags) == INVALID_VALUE
            cuda.MemMap(address, UNIT, 0, handle, 0)
            assert cuda.code("MemMap", address, UNIT, 0, handle, 0) == INVALID_VALUE
            cuda.MemUnmap(address, UNIT)
            cuda.MemRelease(handle)
            cuda.MemAddressFree(address, 2 * UNIT)

    def test_only_whole_mappings_are_unmapped(self):
        with context() as cuda, mapped(cuda, 2 * UNIT) as address:
            assert cuda.code("MemUnmap", address, UNIT) == INVALID_VALUE
            assert cuda.code("MemUnmap", address + UNIT, UNIT) == INVALID_VALUE
            assert cuda.code("MemUnmap", address, 3 * UNIT) == INVALID_VALUE
            assert cuda.code("MemUnmap", address, 0) == INVALID_VALUE

    def test_memory_of_the_host(self):
        with context() as cuda:
            properties = Properties(PINNED, 0, Location(HOST_NUMA, 0))
            address, handle = reserve(cuda), create(cuda, properties=properties)
            cuda.MemMap(address, UNIT, 0, handle, 0)
            both = (Access * 2)(
                Access(Location(HOST_NUMA, 0), READ_WRITE), Access(Location(DEVICE, 0), READ_WRITE)
            )
            cuda.MemSetAccess(address, UNIT, both, 2)
            ctypes.memset(address, 9, 16)
            assert cuda.read(address, 2) == b"\t\t"
            assert pointer_attribute(cuda, 2, address) == 1
            cuda.MemUnmap(address, UNIT)
            cuda.MemRelease(handle)
            cuda.MemAddressFree(address, UNIT)


class TestAccess:
    def test_it_is_told(self):
        with context() as cuda, mapped(cuda) as address:
            flags = c_uint64()
            cuda.MemGetAccess(byref(flags), byref(Location(DEVICE, 0)), address + 5)
            assert flags.value == READ_WRITE
            cuda.MemGetAccess(byref(flags), byref(Location(HOST, 0)), address)
            assert flags.value == NO_ACCESS
            grant(cuda, address, flags=READ)
            cuda.MemGetAccess(byref(flags), byref(Location(DEVICE, 0)), address)
            assert flags.value == READ

    @pytest.mark.parametrize(
        ("access", "code"),
        [
            (Access(Location(DEVICE, 0), 2), INVALID_VALUE),
            (Access(Location(DEVICE, 55), READ_WRITE), INVALID_DEVICE),
            (Access(Location(HOST, 0), READ_WRITE), INVALID_VALUE),
            (Access(Location(0, 0), READ_WRITE), INVALID_VALUE),
        ],
    )
    def test_access_that_cannot_be_given(self, access, code):
        with context() as cuda, mapped(cuda) as address:
            assert cuda.code("MemSetAccess", address, UNIT, byref(access), 1) == code

    def test_ranges_that_are_not_mapped_whole(self):
        with context() as cuda, mapped(cuda, 2 * UNIT) as address:
            right = Access(Location(DEVICE, 0), READ_WRITE)
            for where, size in ((address, UNIT), (address, 3 * UNIT), (address + UNIT, UNIT)):
                assert cuda.code("MemSetAccess", where, size, byref(right), 1) == INVALID_VALUE
            assert cuda.code("MemSetAccess", address, 2 * UNIT, byref(right), 0) == INVALID_VALUE
            flags, here = c_uint64(), Location(DEVICE, 0)
            nowhere = address + (1 << 40)
            assert cuda.code("MemGetAccess", byref(flags), byref(here), nowhere) == INVALID_VALUE


class TestPointer:
    def test_of_a_mapping(self):
        with context() as cuda:
            base = reserve(cuda, 4 * UNIT)
            handle = create(cuda, properties=on_device(handle_types=POSIX_FD))
            assert pointer_attribute(cuda, 13, base) == 0
            cuda.MemMap(base + UNIT, UNIT, 0, handle, 0)
            inside = base + UNIT + 12
            assert pointer_attribute(cuda, 13, inside) == 1
            assert pointer_attribute(cuda, 13, base) == 0
            assert pointer_attribute(cuda, 11, inside, c_uint64) == base
            assert pointer_attribute(cuda, 12, inside, c_uint64) == 4 * UNIT
            assert pointer_attribute(cuda, 19, inside, c_uint64) == base + UNIT
            assert pointer_attribute(cuda, 18, inside, c_uint64) == UNIT
            assert pointer_attribute(cuda, 14, inside, c_uint64) == POSIX_FD
            assert pointer_attribute(cuda, 16, inside) == NO_ACCESS
            grant(cuda, base + UNIT)
            assert pointer_attribute(cuda, 16, inside) == READ_WRITE
            assert pointer_attribute(cuda, 10, inside) == 0
            start, size = c_uint64(), c_size_t()
            cuda.MemGetAddressRange_v2(byref(start), byref(size), inside)
            assert (start.value, size.value) == (base + UNIT, UNIT)
            assert cuda.code("MemFree_v2", base + UNIT) == INVALID_VALUE
            cuda.MemUnmap(base + UNIT, UNIT)
            cuda.MemRelease(handle)
            cuda.MemAddressFree(base, 4 * UNIT)

    def test_the_handle_behind_it(self):
        with context() as cuda:
            address, handle, again = reserve(cuda), create(cuda), c_uint64()
            cuda.MemMap(address, UNIT, 0, handle, 0)
            cuda.MemRelease(handle)
            cuda.MemRetainAllocationHandle(byref(again), address + 77)
            assert again.value == handle
            cuda.MemRelease(handle)
            cuda.MemUnmap(address, UNIT)
            assert cuda.code("MemRetainAllocationHandle", byref(again), address) == INVALID_VALUE
            cuda.MemAddressFree(address, UNIT)


class TestSharing:
    def test_a_descriptor_leads_to_the_same_memory(self):
        with context() as cuda:
            handle = create(cuda, properties=on_device(handle_types=POSIX_FD))
            fd, imported = c_int(-1), c_uint64()
            cuda.MemExportToShareableHandle(byref(fd), handle, POSIX_FD, 0)
            cuda.MemImportFromShareableHandle(byref(imported), fd.value, POSIX_FD)
            os.close(fd.value)
            first, second = reserve(cuda), reserve(cuda)
            for address, which in ((first, handle), (second, imported.value)):
                cuda.MemMap(address, UNIT, 0, which, 0)
                grant(cuda, address)
            cuda.write(first, b"both ways")
            assert cuda.read(second, 9) == b"both ways"
            for address in (first, second):
                cuda.MemUnmap(address, UNIT)
                cuda.MemAddressFree(address, UNIT)
            cuda.MemRelease(handle)
            cuda.MemRelease(imported.value)

    def test_what_was_not_to_be_shared(self):
        cuda, fd = started(), c_int()
        handle = create(cuda)
        code = cuda.code("MemExportToShareableHandle", byref(fd), handle, POSIX_FD, 0)
        assert code == INVALID_VALUE
        cuda.MemRelease(handle)

    def test_descriptors_of_something_else(self):
        cuda, handle = started(), c_uint64()
        with open(os.devnull, "rb") as other:
            for fd in (other.fileno(), -1, 1 << 20):
                code = cuda.code("MemImportFromShareableHandle", byref(handle), fd, POSIX_FD)
                assert code == INVALID_VALUE
        assert cuda.code("MemImportFromShareableHandle", byref(handle), None, FABRIC) == (
            NOT_SUPPORTED
        )

    def test_descriptors_are_given_back(self):
        cuda = started()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            cuda.MemRelease(create(cuda, properties=on_device(handle_types=POSIX_FD)))
            cuda.MemRelease(create(cuda))
        assert len(os.listdir("/proc/self/fd")) <= before + 1


class TestKernels:
    def test_they_reach_what_is_open_and_nothing_else(self):
        with compiling() as cuda:
            store = cuda.function(cuda.module(STORE), "store")
            with mapped(cuda) as address:
                what = ctypes.c_uint32(0xDEADBEEF)
                cuda.launch(store, [c_uint64(address + UNIT - 4), what], block=(1, 1, 1))
                assert cuda.read(address + UNIT - 4, 4) == bytes.fromhex("efbeadde")
                grant(cuda, address, flags=NO_ACCESS)
                cuda.launch(store, [c_uint64(address), what], block=(1, 1, 1))
                assert cuda.code("CtxSynchronize") == ILLEGAL_ADDRESS

    def test_addresses_without_memory_are_illegal(self):
        with compiling() as cuda:
            store = cuda.function(cuda.module(STORE), "store")
            address = reserve(cuda)
            cuda.launch(store, [c_uint64(address), ctypes.c_uint32(1)], block=(1, 1, 1))
            assert cuda.code("CtxSynchronize") == ILLEGAL_ADDRESS
            cuda.MemAddressFree(address, UNIT)
