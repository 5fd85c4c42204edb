"""Copies in batches and with attributes."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_int, c_size_t, c_uint32, c_uint64, c_void_p

import pytest

from tests.helpers.cuda_client import Cuda, context
from tests.helpers.virtual_memory import Location

INVALID_VALUE = 1
IN_STREAM, DURING_CALL, ANY = 1, 2, 3
POINTER, ARRAY = 1, 2
NOT_ONE_COPY = 2**64 - 1


class Attributes(ctypes.Structure):
    _fields_ = (("order", c_int), ("source", Location), ("target", Location), ("flags", c_uint32))


class _Pointer(ctypes.Structure):
    _fields_ = (("address", c_uint64), ("row", c_size_t), ("layer", c_size_t), ("hint", Location))


class _Array(ctypes.Structure):
    _fields_ = (("array", c_void_p), ("x", c_size_t), ("y", c_size_t), ("z", c_size_t))


class _Either(ctypes.Union):
    _fields_ = (("pointer", _Pointer), ("array", _Array))


class Operand(ctypes.Structure):
    _fields_ = (("type", c_int), ("of", _Either))


class Box(ctypes.Structure):
    _fields_ = (
        ("source", Operand), ("target", Operand), ("width", c_size_t), ("height", c_size_t),
        ("depth", c_size_t), ("order", c_int), ("flags", c_uint32),
    )  # fmt: skip


class Descriptor(ctypes.Structure):
    _fields_ = (
        ("width", c_size_t), ("height", c_size_t), ("format", c_uint32), ("channels", c_uint32),
    )  # fmt: skip


def memory(address: int, row: int = 0, layer: int = 0) -> Operand:
    return Operand(POINTER, _Either(pointer=_Pointer(address, row, layer)))


@contextmanager
def stream() -> Iterator[tuple[Cuda, c_void_p]]:
    with context() as cuda:
        handle = c_void_p()
        cuda.StreamCreate(byref(handle), 1)
        yield cuda, handle


class TestBatch:
    def test_every_copy_is_made(self):
        with stream() as (cuda, handle):
            source, target = cuda.allocate(4096), cuda.allocate(4096)
            host = ctypes.create_string_buffer(16)
            cuda.write(source, bytes(range(256)) * 16)
            targets = (c_uint64 * 3)(target, target + 100, ctypes.addressof(host))
            sources = (c_uint64 * 3)(source + 5, source + 50, source + 200)
            sizes = (c_size_t * 3)(20, 30, 16)
            kinds = (Attributes * 2)(Attributes(IN_STREAM), Attributes(ANY, flags=1))
            firsts, failed = (c_size_t * 2)(0, 1), c_size_t(7)
            cuda.MemcpyBatchAsync(
                targets, sources, sizes, 3, kinds, firsts, 2, byref(failed), handle
            )
            assert failed.value == NOT_ONE_COPY
            assert cuda.read(target, 20) == bytes(range(5, 25))
            assert cuda.read(target + 100, 30) == bytes(range(50, 80))
            assert host.raw == bytes(range(200, 216))

    def test_the_wrong_one_is_named_and_nothing_is_copied(self):
        with stream() as (cuda, handle):
            source, target = cuda.allocate(64), cuda.allocate(64)
            cuda.MemsetD8_v2(source, 1, 64)
            cuda.MemsetD8_v2(target, 0, 64)
            targets, sources = (c_uint64 * 2)(target, target), (c_uint64 * 2)(source, source)
            sizes, kinds = (c_size_t * 2)(64, 65), (Attributes * 1)(Attributes(IN_STREAM))
            firsts, failed = (c_size_t * 1)(0), c_size_t()
            code = cuda.code(
                "MemcpyBatchAsync", targets, sources, sizes, 2, kinds, firsts, 1, byref(failed),
                handle,
            )  # fmt: skip
            assert (code, failed.value) == (INVALID_VALUE, 1)
            assert cuda.read(target, 4) == bytes(4)

    @pytest.mark.parametrize(
        ("count", "order", "flags", "first", "kinds_count"),
        [(0, 1, 0, 0, 1), (1, 0, 0, 0, 1), (1, 4, 0, 0, 1), (1, 1, 2, 0, 1), (1, 1, 0, 1, 1),
         (1, 1, 0, 0, 0), (1, 1, 0, 0, 2)],
    )  # fmt: skip
    def test_what_is_no_batch(self, count, order, flags, first, kinds_count):
        with stream() as (cuda, handle):
            where = (c_uint64 * 1)(cuda.allocate(64))
            kinds = (Attributes * 2)(Attributes(order, flags=flags), Attributes(order))
            firsts, sizes = (c_size_t * 2)(first, 1), (c_size_t * 1)(8)
            code = cuda.code(
                "MemcpyBatchAsync_v2",
                where,
                where,
                sizes,
                count,
                kinds,
                firsts,
                kinds_count,
                handle,
            )
            assert code == INVALID_VALUE

    def test_not_in_the_legacy_default_stream(self):
        with context() as cuda:
            where, sizes = (c_uint64 * 1)(cuda.allocate(64)), (c_size_t * 1)(8)
            kinds, firsts = (Attributes * 1)(Attributes(IN_STREAM)), (c_size_t * 1)(0)
            arguments = (where, where, sizes, 1, kinds, firsts, 1)
            assert cuda.code("MemcpyBatchAsync_v2", *arguments, None) == INVALID_VALUE
            assert cuda.code("MemcpyBatchAsync_v2", *arguments, 1) == INVALID_VALUE
            cuda.MemcpyBatchAsync_v2_ptsz(*arguments, None)

    def test_a_single_copy_with_attributes(self):
        with stream() as (cuda, handle):
            source, target = cuda.allocate(64), cuda.allocate(64)
            cuda.MemsetD8_v2(source, 9, 64)
            kind = Attributes(DURING_CALL)
            cuda.MemcpyWithAttributesAsync(target, source, 64, byref(kind), handle)
            assert cuda.read(target, 64) == b"\t" * 64
            kind.order = 0
            code = cuda.code("MemcpyWithAttributesAsync", target, source, 64, byref(kind), handle)
            assert code == INVALID_VALUE


class TestBoxes:
    def test_between_memory(self):
        with stream() as (cuda, handle):
            source, target = cuda.allocate(1024), cuda.allocate(1024)
            cuda.write(source, bytes(i % 251 for i in range(1024)))
            cuda.MemsetD8_v2(target, 0xFF, 1024)
            box = Box(memory(source, 16, 5), memory(target), 8, 3, 2, IN_STREAM, 0)
            cuda.Memcpy3DBatchAsync_v2(1, byref(box), 0, handle)
            wanted = b"".join(
                bytes((z * 80 + y * 16 + x) % 251 for x in range(8))
                for z in range(2)
                for y in range(3)
            )
            assert cuda.read(target, 49) == wanted + b"\xff"

    def test_into_an_array_and_out_again(self):
        with stream() as (cuda, handle):
            array, uint32 = c_void_p(), 3
            cuda.ArrayCreate_v2(byref(array), byref(Descriptor(16, 8, uint32, 2)))
            source, target = cuda.allocate(512), cuda.allocate(512)
            cuda.write(source, bytes(i % 256 for i in range(512)))
            inside = Operand(ARRAY, _Either(array=_Array(array.value, 3, 2, 0)))
            boxes = (Box * 2)(
                Box(memory(source), inside, 5, 4, 1, IN_STREAM, 0),
                Box(inside, memory(target), 5, 4, 1, IN_STREAM, 0),
            )
            cuda.Memcpy3DWithAttributesAsync(byref(boxes[0]), 0, handle)
            cuda.Memcpy3DWithAttributesAsync(byref(boxes[1]), 0, handle)
            assert cuda.read(target, 160) == cuda.read(source, 160)
            cuda.ArrayDestroy(array)

    @pytest.mark.parametrize(
        "change",
        [{"width": 0}, {"depth": 0}, {"order": 0}, {"flags": 2}, {"source": memory(0)},
         {"source": Operand(3)}, {"source": Operand(ARRAY)}],
    )  # fmt: skip
    def test_what_is_no_box(self, change):
        with stream() as (cuda, handle):
            where, failed = cuda.allocate(256), c_size_t(9)
            good = Box(memory(where), memory(where + 128), 8, 2, 2, IN_STREAM, 0)
            bad = Box(memory(where), memory(where + 128), 8, 2, 2, IN_STREAM, 0)
            for name, value in change.items():
                setattr(bad, name, value)
            boxes = (Box * 2)(good, bad)
            code = cuda.code("Memcpy3DBatchAsync", 2, boxes, byref(failed), 0, handle)
            assert (code, failed.value) == (INVALID_VALUE, 1)

    def test_rows_shorter_than_the_box(self):
        with stream() as (cuda, handle):
            where = cuda.allocate(256)
            box = Box(memory(where, 7), memory(where + 128), 8, 2, 2, IN_STREAM, 0)
            assert cuda.code("Memcpy3DBatchAsync_v2", 1, byref(box), 0, handle) == INVALID_VALUE
            box.source = memory(where)
            assert cuda.code("Memcpy3DBatchAsync_v2", 1, byref(box), 1, handle) == INVALID_VALUE
            assert cuda.code("Memcpy3DBatchAsync_v2", 0, byref(box), 0, handle) == INVALID_VALUE
