"""The runtime's calls that pass on to the driver: batches, pools, green contexts, sharing."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from ctypes import byref, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

import pytest

from tests.helpers.virtual_memory import (
    DEVICE,
    HOST,
    PINNED,
    POSIX_FD,
    Location,
    PoolProperties,
)
from tests.system.test_driver_batches import Attributes, Box, memory
from tests.system.test_driver_green import Resource
from va100.driver.signatures import Bytes64
from va100.gpu.native import NATIVE_DIR, library

INVALID_VALUE, INVALID_DEVICE, INVALID_CONTEXT = 1, 101, 201
TO_DEVICE, TO_HOST = 1, 2
CLIENT = Path(__file__).parent / "clients" / "ipc_client.py"


class Runtime:
    """``runtime.Malloc(...)`` calls ``cudaMalloc`` and wants success; ``code`` tells the result."""

    def __init__(self, major: int) -> None:
        library()  # the driver it finds under its name
        self.major = major
        self._library = ctypes.CDLL(str(NATIVE_DIR / f"libcudart.so.{major}"))
        self._library.cudaIpcOpenMemHandle.argtypes = (c_void_p, Bytes64, c_uint32)

    def code(self, name: str, *arguments: object) -> int:
        return getattr(self._library, f"cuda{name}")(*arguments)

    def __getattr__(self, name: str):
        def call(*arguments: object) -> None:
            code = self.code(name, *arguments)
            assert code == 0, f"cuda{name}: {code}"

        return call

    def allocate(self, size: int) -> int:
        pointer = c_void_p()
        self.Malloc(byref(pointer), c_size_t(size))
        return pointer.value or 0

    def write(self, address: int, data: bytes) -> None:
        self.Memcpy(c_void_p(address), data, c_size_t(len(data)), TO_DEVICE)

    def read(self, address: int, size: int) -> bytes:
        buffer = ctypes.create_string_buffer(size)
        self.Memcpy(buffer, c_void_p(address), c_size_t(size), TO_HOST)
        return buffer.raw

    def free(self, *addresses: int) -> None:
        for address in addresses:
            self.Free(c_void_p(address))


@pytest.fixture(params=[12, 13])
def runtime(request: pytest.FixtureRequest) -> Runtime:
    return Runtime(request.param)


@pytest.fixture
def newest() -> Runtime:
    return Runtime(13)


class TestCopies:
    def test_a_batch(self, runtime: Runtime):
        source, target, stream = runtime.allocate(256), runtime.allocate(256), c_void_p()
        runtime.write(source, bytes(range(256)))
        runtime.StreamCreate(byref(stream))
        targets, sources = (c_void_p * 2)(target, target + 8), (c_void_p * 2)(source + 1, source)
        sizes, firsts = (c_size_t * 2)(4, 8), (c_size_t * 1)(0)
        kinds, failed = (Attributes * 1)(Attributes(1)), c_size_t()
        extra = (byref(failed),) if runtime.major == 12 else ()
        runtime.MemcpyBatchAsync(
            targets, sources, sizes, c_size_t(2), kinds, firsts, c_size_t(1), *extra, stream
        )
        runtime.StreamSynchronize(stream)
        assert runtime.read(target, 4) == bytes(range(1, 5))
        assert runtime.read(target + 8, 8) == bytes(range(8))
        box = Box(memory(source, 16), memory(target), 4, 2, 1, 1, 0)
        runtime.Memcpy3DBatchAsync(c_size_t(1), byref(box), *extra, c_uint64(0), stream)
        assert runtime.read(target, 8) == bytes([0, 1, 2, 3, 16, 17, 18, 19])
        runtime.StreamDestroy(stream)
        runtime.free(source, target)

    def test_attributes_of_one_copy(self, newest: Runtime):
        source, target, kind = newest.allocate(64), newest.allocate(64), Attributes(3)
        newest.write(source, b"\7" * 64)
        arguments = (c_void_p(target), c_void_p(source), c_size_t(64), byref(kind), None)
        newest.MemcpyWithAttributesAsync(*arguments)
        assert newest.read(target, 64) == b"\7" * 64
        kind.order = 9
        assert newest.code("MemcpyWithAttributesAsync", *arguments) == INVALID_VALUE
        newest.free(source, target)

    def test_boxes_between_devices(self, runtime: Runtime):
        class Pitched(ctypes.Structure):
            _fields_ = (("ptr", c_void_p), ("pitch", c_size_t), ("x", c_size_t), ("y", c_size_t))

        class Peer(ctypes.Structure):
            _fields_ = (
                ("src_array", c_void_p), ("src_pos", c_size_t * 3), ("src", Pitched),
                ("src_device", c_int), ("dst_array", c_void_p), ("dst_pos", c_size_t * 3),
                ("dst", Pitched), ("dst_device", c_int), ("extent", c_size_t * 3),
            )  # fmt: skip

        source, target = runtime.allocate(256), runtime.allocate(256)
        runtime.write(source, bytes(range(256)))
        box = Peer()
        box.src, box.dst = Pitched(source, 16, 16, 4), Pitched(target, 8, 8, 4)
        box.extent[:] = (8, 4, 1)
        runtime.Memcpy3DPeer(byref(box))
        assert runtime.read(target, 10) == bytes([*range(8), 16, 17])
        box.dst_device = 88
        assert runtime.code("Memcpy3DPeer", byref(box)) == INVALID_DEVICE
        runtime.free(source, target)


class TestManaged:
    def test_ranges_are_told(self, runtime: Runtime):
        pointer, value = c_void_p(), c_int(7)
        runtime.MallocManaged(byref(pointer), c_size_t(4096), 1)
        arguments = (byref(value), c_size_t(4), 1, pointer, c_size_t(4096))
        runtime.MemRangeGetAttribute(*arguments)
        assert value.value == 0
        place = Location(DEVICE, 0)
        device = c_int(0) if runtime.major == 12 else place
        runtime.MemAdvise(pointer, c_size_t(4096), 1, device)
        runtime.MemRangeGetAttribute(*arguments)
        assert value.value == 1
        values, sizes = (c_void_p * 1)(ctypes.addressof(value)), (c_size_t * 1)(4)
        which = (c_int * 1)(2)
        runtime.MemRangeGetAttributes(values, sizes, which, c_size_t(1), pointer, c_size_t(4096))
        assert value.value == -2
        runtime.Free(pointer)


class TestPools:
    def test_defaults_of_every_place(self, newest: Runtime):
        pool, location = c_void_p(), Location(HOST, 0)
        newest.MemGetDefaultMemPool(byref(pool), byref(location), PINNED)
        assert pool.value
        newest.MemGetMemPool(byref(pool), byref(location), PINNED)
        newest.MemSetMemPool(byref(location), PINNED, pool)

    def test_shared(self, runtime: Runtime):
        properties = PoolProperties(PINNED, POSIX_FD, Location(DEVICE, 0))
        pool, pointer, fd, data = c_void_p(), c_void_p(), c_int(), (ctypes.c_ubyte * 64)()
        runtime.MemPoolCreate(byref(pool), byref(properties))
        runtime.MallocFromPoolAsync(byref(pointer), c_size_t(1000), pool, None)
        runtime.MemPoolExportToShareableHandle(byref(fd), pool, POSIX_FD, 0)
        runtime.MemPoolExportPointer(byref(data), pointer)
        imported, there = c_void_p(), c_void_p()
        runtime.MemPoolImportFromShareableHandle(byref(imported), c_void_p(fd.value), POSIX_FD, 0)
        os.close(fd.value)
        runtime.MemPoolImportPointer(byref(there), imported, byref(data))
        runtime.write(pointer.value, b"same")
        assert runtime.read(there.value, 4) == b"same"
        runtime.FreeAsync(there, None)
        runtime.FreeAsync(pointer, None)
        runtime.MemPoolDestroy(imported)
        runtime.MemPoolDestroy(pool)


class TestIpc:
    def test_another_process_opens_it(self, runtime: Runtime):
        address, handle = runtime.allocate(4096), Bytes64()
        runtime.write(address, b"by the runtime\0")
        runtime.IpcGetMemHandle(byref(handle), c_void_p(address))
        command = [sys.executable, CLIENT, NATIVE_DIR / "libcuda.so.1", "memory"]
        done = subprocess.run(
            [*map(str, command), bytes(handle).hex()],
            check=True, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.stdout.split("\n")[0] == "by the runtime"
        assert runtime.read(address, 8) == b"answer 0"
        pointer = c_void_p()
        assert runtime.code("IpcOpenMemHandle", byref(pointer), handle, 1) == INVALID_CONTEXT
        assert runtime.code("IpcCloseMemHandle", c_void_p(address)) == INVALID_VALUE
        runtime.free(address)


class TestExecution:
    def test_a_green_context_has_its_part(self, newest: Runtime):
        whole, part, count, rest = Resource(), Resource(), c_uint32(1), Resource()
        newest.DeviceGetDevResource(0, byref(whole), 1)
        assert whole.count == 108
        newest.DevSmResourceSplitByCount(
            byref(part), byref(count), byref(whole), byref(rest), 0, 16
        )
        descriptor, context, stream, device = c_void_p(), c_void_p(), c_void_p(), c_int(-1)
        newest.DevResourceGenerateDesc(byref(descriptor), byref(part), 1)
        newest.GreenCtxCreate(byref(context), descriptor, 0, 0)
        newest.ExecutionCtxGetDevResource(context, byref(part), 1)
        assert part.count == 16
        newest.ExecutionCtxGetDevice(byref(device), context)
        assert device.value == 0
        newest.ExecutionCtxStreamCreate(byref(stream), context, 1, 0)
        newest.StreamGetDevResource(stream, byref(part), 1)
        assert part.count == 16
        newest.StreamDestroy(stream)
        newest.ExecutionCtxSynchronize(context)
        newest.ExecutionCtxDestroy(context)
        assert newest.code("ExecutionCtxSynchronize", context) != 0

    def test_a_devices_own(self, newest: Runtime):
        context, resource, stream, id_ = c_void_p(), Resource(), c_void_p(), c_uint64()
        newest.DeviceGetExecutionCtx(byref(context), 0)
        newest.ExecutionCtxGetDevResource(context, byref(resource), 1)
        assert resource.count == 108
        newest.ExecutionCtxStreamCreate(byref(stream), context, 1, 0)
        newest.ExecutionCtxGetId(context, byref(id_))
        assert id_.value > 0
        newest.StreamDestroy(stream)
        assert newest.code("ExecutionCtxDestroy", context) == INVALID_VALUE

    def test_attributes_of_streams(self, runtime: Runtime):
        stream, value = c_void_p(), (c_int * 16)()
        runtime.StreamCreateWithPriority(byref(stream), 0, -1)
        runtime.StreamGetAttribute(stream, 8, value)
        assert value[0] == -1
        value[0] = 3
        runtime.StreamSetAttribute(stream, 3, value)
        assert runtime.code("StreamGetAttribute", stream, 77, value) == INVALID_VALUE
        runtime.StreamDestroy(stream)

    def test_logs_and_textures(self, newest: Runtime):
        now, room, size = c_uint32(), ctypes.create_string_buffer(64), c_size_t(64)
        newest.LogsCurrent(byref(now), 0)
        newest.LogsDumpToMemory(byref(now), room, byref(size), 0)
        assert size.value == 0
        width, channels = c_size_t(), (c_int * 5)(32, 0, 0, 0, 2)
        newest.DeviceGetTexture1DLinearMaxWidth(byref(width), channels, 0)
        assert width.value == 1 << 28
