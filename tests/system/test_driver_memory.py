"""Memory and copies through the driver."""

from __future__ import annotations

import ctypes
import struct
from ctypes import byref, c_size_t, c_uint32, c_uint64, c_void_p

import pytest

from tests.helpers.cuda_client import (
    context,
)

INVALID_VALUE, OUT_OF_MEMORY = 1, 2
NOT_FOUND = 500


class TestMemory:
    def test_bytes_come_back(self):
        with context() as cuda:
            address = cuda.allocate(256)
            cuda.write(address, bytes(range(256)))
            assert cuda.read(address, 256) == bytes(range(256))

    def test_a_copy_past_the_end_is_refused(self):
        with context() as cuda:
            address = cuda.allocate(100)
            buffer = ctypes.create_string_buffer(200)
            assert cuda.code("MemcpyDtoH_v2", buffer, address, 101) == INVALID_VALUE
            assert cuda.code("MemcpyHtoD_v2", address + 1, buffer, 100) == INVALID_VALUE

    def test_a_host_address_is_no_device_address(self):
        with context() as cuda:
            buffer = ctypes.create_string_buffer(16)
            assert cuda.code("MemsetD8_v2", ctypes.addressof(buffer), 1, 16) == INVALID_VALUE

    def test_freeing_twice_is_refused(self):
        with context() as cuda:
            address = cuda.allocate(64)
            cuda.MemFree_v2(address)
            assert cuda.code("MemFree_v2", address) == INVALID_VALUE
            assert cuda.code("MemFree_v2", 0) == 0

    def test_more_than_there_is(self):
        with context() as cuda:
            assert cuda.code("MemAlloc_v2", byref(c_uint64()), 1 << 40) == OUT_OF_MEMORY
            assert cuda.code("MemAlloc_v2", byref(c_uint64()), (1 << 64) - 1) == OUT_OF_MEMORY

    def test_free_memory_is_told(self):
        with context() as cuda:
            free, total, later = c_size_t(), c_size_t(), c_size_t()
            cuda.MemGetInfo_v2(byref(free), byref(total))
            cuda.allocate(1 << 20)
            cuda.MemGetInfo_v2(byref(later), None)
            assert free.value - later.value == 1 << 20
            assert total.value == 85_100_068_864

    @pytest.mark.parametrize(
        ("call", "value", "expected"),
        [
            ("MemsetD8_v2", 0xAB, b"\xab" * 12),
            ("MemsetD16_v2", 0x1234, b"\x34\x12" * 12),
            ("MemsetD32_v2", 0x3F800000, struct.pack("<f", 1.0) * 12),
        ],
    )
    def test_fills(self, call, value, expected):
        with context() as cuda:
            address = cuda.allocate(64)
            getattr(cuda, call)(address, value, 12)
            assert cuda.read(address, len(expected)) == expected

    def test_a_fill_of_rows_leaves_the_gaps(self):
        with context() as cuda:
            address = cuda.allocate(32)
            cuda.MemsetD8_v2(address, 0, 32)
            cuda.MemsetD2D8_v2(address, 8, 7, 3, 4)
            assert cuda.read(address, 32) == (b"\7\7\7" + b"\0" * 5) * 4

    def test_a_fill_that_is_not_aligned_is_refused(self):
        with context() as cuda:
            assert cuda.code("MemsetD32_v2", cuda.allocate(64) + 2, 0, 4) == INVALID_VALUE

    def test_pitch_is_a_multiple_of_512(self):
        with context() as cuda:
            address, pitch = c_uint64(), c_size_t()
            cuda.MemAllocPitch_v2(byref(address), byref(pitch), 1000, 7, 4)
            assert pitch.value == 1024
            assert cuda.code("MemAllocPitch_v2", byref(address), byref(pitch), 8, 8, 3) == 1

    def test_pinned_memory_serves_both_sides(self):
        with context() as cuda:
            host, device = c_void_p(), c_uint64()
            cuda.MemHostAlloc(byref(host), 4096, 2)
            cuda.MemHostGetDevicePointer_v2(byref(device), host, 0)
            ctypes.memset(host, 9, 4096)
            assert cuda.read(device.value, 4) == b"\x09" * 4
            cuda.MemFreeHost(host)
            assert cuda.code("MemFreeHost", host) == INVALID_VALUE

    def test_registered_memory_may_be_used_until_unregistered(self):
        with context() as cuda:
            buffer = ctypes.create_string_buffer(b"registered", 64)
            address = ctypes.addressof(buffer)
            cuda.MemHostRegister_v2(address, 64, 0)
            assert cuda.code("MemHostRegister_v2", address, 64, 0) == 712
            assert cuda.read(address, 10) == b"registered"
            cuda.MemHostUnregister(address)
            assert cuda.code("MemHostUnregister", address) == 713
            assert cuda.code("MemcpyDtoD_v2", address, address, 1) == INVALID_VALUE

    def test_what_a_pointer_is(self):
        with context() as cuda:
            current, ctx, kind, base, size = (
                c_void_p(), c_void_p(), c_uint32(), c_uint64(), c_size_t(),
            )  # fmt: skip
            address = cuda.allocate(1000)
            cuda.CtxGetCurrent(byref(current))
            cuda.PointerGetAttribute(byref(ctx), 1, address + 5)
            cuda.PointerGetAttribute(byref(kind), 2, address + 5)
            cuda.MemGetAddressRange_v2(byref(base), byref(size), address + 999)
            assert (ctx.value, kind.value) == (current.value, 2)
            assert (base.value, size.value) == (address, 1000)
            assert cuda.code("PointerGetAttribute", byref(kind), 2, 12345) == INVALID_VALUE
            assert cuda.code("MemGetAddressRange_v2", None, None, address + 1000) == NOT_FOUND

    def test_managed_memory_is_the_hosts_too(self):
        with context() as cuda:
            address, managed = c_uint64(), c_uint32()
            cuda.MemAllocManaged(byref(address), 128, 1)
            ctypes.memset(address.value, 5, 128)
            assert cuda.read(address.value, 2) == b"\5\5"
            cuda.PointerGetAttribute(byref(managed), 8, address.value)
            assert managed.value == 1
            cuda.MemFree_v2(address.value)

    def test_a_pool_counts_what_it_gives(self):
        with context() as cuda:
            pool, address, used = c_void_p(), c_uint64(), c_uint64()
            cuda.DeviceGetDefaultMemPool(byref(pool), 0)
            cuda.MemAllocAsync(byref(address), 4096, None)
            cuda.MemPoolGetAttribute(pool, 7, byref(used))
            assert used.value == 4096
            cuda.MemFreeAsync(address.value, None)
            cuda.MemPoolGetAttribute(pool, 7, byref(used))
            assert used.value == 0


class _Copy2D(ctypes.Structure):
    _fields_ = [
        (f"{side}_{name}", kind)
        for side in ("src", "dst")
        for name, kind in (
            ("x", c_size_t), ("y", c_size_t), ("type", c_uint32), ("host", c_void_p),
            ("device", c_uint64), ("array", c_void_p), ("pitch", c_size_t),
        )
    ] + [("width", c_size_t), ("height", c_size_t)]  # fmt: skip


class TestCopy:
    def test_a_rectangle(self):
        with context() as cuda:
            source, target = bytes(range(64)), ctypes.create_string_buffer(64)
            address = cuda.allocate(64)
            cuda.write(address, source)
            copy = _Copy2D(
                src_x=2, src_y=1, src_type=2, src_device=address, src_pitch=16,
                dst_type=1, dst_host=ctypes.addressof(target), dst_pitch=8, width=5, height=3,
            )  # fmt: skip
            cuda.Memcpy2D_v2(byref(copy))
            rows = [target.raw[8 * y : 8 * y + 5] for y in range(3)]
            assert rows == [source[16 * (y + 1) + 2 : 16 * (y + 1) + 7] for y in range(3)]

    def test_a_rectangle_that_leaves_its_memory_is_refused(self):
        with context() as cuda:
            address, target = cuda.allocate(64), ctypes.create_string_buffer(64)
            copy = _Copy2D(
                src_y=2, src_type=2, src_device=address, src_pitch=16,
                dst_type=1, dst_host=ctypes.addressof(target), dst_pitch=16, width=16, height=3,
            )  # fmt: skip
            assert cuda.code("Memcpy2D_v2", byref(copy)) == INVALID_VALUE

    def test_a_pitch_shorter_than_the_row_is_refused(self):
        with context() as cuda:
            address, target = cuda.allocate(64), ctypes.create_string_buffer(64)
            copy = _Copy2D(
                src_type=2, src_device=address, src_pitch=4,
                dst_type=1, dst_host=ctypes.addressof(target), dst_pitch=16, width=16, height=2,
            )  # fmt: skip
            assert cuda.code("Memcpy2D_v2", byref(copy)) == INVALID_VALUE

    def test_between_plain_addresses(self):
        with context() as cuda:
            address, host = cuda.allocate(8), ctypes.create_string_buffer(b"12345678", 8)
            cuda.Memcpy(address, ctypes.addressof(host), 8)
            assert cuda.read(address, 8) == b"12345678"
