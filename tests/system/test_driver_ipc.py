"""Memory and events of one process in another."""

from __future__ import annotations

import array
import ctypes
import os
import subprocess
import sys
import threading
from ctypes import byref, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

import pytest

from tests.helpers.cuda_client import Cuda, context
from tests.helpers.ptx_trees import HEADER
from tests.helpers.virtual_memory import (
    DEVICE,
    HOST,
    HOST_NUMA,
    PINNED,
    POSIX_FD,
    UNIT,
    Location,
    PoolProperties,
    compiling,
    create,
    grant,
    on_device,
    pointer_attribute,
    reserve,
)
from va100.driver.signatures import Bytes64
from va100.gpu.native import NATIVE_DIR

INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE = 1, 201, 400
DISABLE_TIMING, INTERPROCESS = 2, 4
LAZY_PEERS = 1
MEMORY_TYPE, HOST_TYPE, DEVICE_TYPE = 2, 1, 2
FILL_DOWNWARDS = (
    HEADER
    + """
.visible .entry fill(.param .u64 where, .param .u32 count)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [where];
    ld.param.u32 %r1, [count];
again:
    sub.u32 %r1, %r1, 1;
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d3, %d1, %d2;
    st.volatile.global.u32 [%d3], %r1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
}
"""
).encode()

CLIENT = Path(__file__).parent / "clients" / "ipc_client.py"


def elsewhere(*words: object, fds: tuple[int, ...] = (), **variables: str) -> list[str]:
    """What another process says, line by line."""
    command = [sys.executable, str(CLIENT), str(NATIVE_DIR / "libcuda.so.1"), *map(str, words)]
    done = subprocess.run(
        command, env=os.environ | variables, check=False, capture_output=True, text=True,
        timeout=120, pass_fds=fds,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def handle_of(cuda: Cuda, address: int) -> Bytes64:
    handle = Bytes64()
    cuda.IpcGetMemHandle(byref(handle), address)
    return handle


def words(handle: ctypes.Structure | ctypes.Array) -> str:
    return bytes(handle).hex()


class TestMemory:
    def test_two_processes_see_the_same_bytes(self):
        with context() as cuda:
            address = cuda.allocate(100_000)
            cuda.write(address, b"hello there\0")
            said = elsewhere("memory", words(handle_of(cuda, address)))
            assert said == ["hello there"]
            assert cuda.read(address, 8) == b"answer 0"

    @pytest.mark.parametrize("visible", ["3", "2,0", "0"])
    def test_a_process_need_not_see_the_others_device(self, visible):
        """A launcher gives each of its processes a device of its own, all called 0 there."""
        with context() as cuda:
            address = cuda.allocate(4096)
            cuda.write(address, b"hello there\0")
            word = words(handle_of(cuda, address))
            said = elsewhere("memory", word, VA100_GPUS="4", CUDA_VISIBLE_DEVICES=visible)
            assert said == ["hello there"]
            assert cuda.read(address, 8) == b"answer 0"

    def test_neighbours_on_one_page_stay_apart(self):
        with context() as cuda:
            addresses = [cuda.allocate(512) for _ in range(5)]
            for index, address in enumerate(addresses):
                cuda.write(address, b"number %d\0" % index)
            handles = [words(handle_of(cuda, address)) for address in addresses[1:4]]
            assert elsewhere("memory", *handles) == ["number 1", "number 2", "number 3"]
            found = [cuda.read(address, 8) for address in addresses]
            assert found == [b"number 0", b"answer 0", b"answer 1", b"answer 2", b"number 4"]

    def test_a_pointer_inside_leads_to_the_whole(self):
        with context() as cuda:
            address = cuda.allocate(4096)
            cuda.write(address, b"the beginning\0")
            assert elsewhere("memory", words(handle_of(cuda, address + 100))) == ["the beginning"]

    def test_memory_stays_usable_when_it_was_shared_and_freed(self):
        with context() as cuda:
            address = cuda.allocate(UNIT)
            cuda.MemsetD8_v2(address, 1, UNIT)
            handle_of(cuda, address)
            cuda.MemFree_v2(address)
            again = cuda.allocate(UNIT)
            cuda.write(again, b"\2" * UNIT)
            assert cuda.read(again + UNIT - 4, 4) == b"\2" * 4

    def test_a_kernel_goes_on_writing_while_memory_is_exported(self):
        """It fills the memory from its end, word by word, and loses none of them."""
        count = 1 << 22
        with compiling() as cuda:
            fill, current = cuda.function(cuda.module(FILL_DOWNWARDS), "fill"), c_void_p()
            cuda.CtxGetCurrent(byref(current))
            address = cuda.allocate(4 * count)
            cuda.MemsetD8_v2(address, 0xFF, 4 * count)
            arguments = [c_uint64(address), c_uint32(count)]
            cuda.launch(fill, [arguments[0], c_uint32(1)], block=(1, 1, 1))  # compiled from now on

            def run() -> None:
                mine = Cuda()
                mine.CtxSetCurrent(current)
                mine.launch(fill, arguments, block=(1, 1, 1))

            thread = threading.Thread(target=run)
            thread.start()
            middle = c_uint32.from_address(address + 2 * count)
            while thread.is_alive() and middle.value != count // 2:
                pass
            handle_of(cuda, address)
            was_running = thread.is_alive()
            thread.join()
            words = memoryview(cuda.read(address, 4 * count)).cast("I")
            assert was_running
            assert words == memoryview(array.array("I", range(count)))

    def test_it_is_told_which_memory_can_be_shared(self):
        with context() as cuda:
            plain, pooled = cuda.allocate(64), c_uint64()
            cuda.MemAllocAsync(byref(pooled), 64, None)
            assert pointer_attribute(cuda, 10, plain) == 1
            assert pointer_attribute(cuda, 10, pooled.value) == 0
            handle = Bytes64()
            assert cuda.code("IpcGetMemHandle", byref(handle), pooled.value) == INVALID_VALUE
            assert cuda.code("IpcGetMemHandle", byref(handle), 0) == INVALID_VALUE
            assert cuda.code("IpcGetMemHandle", None, plain) == INVALID_VALUE
            cuda.MemFreeAsync(pooled.value, None)

    def test_the_process_that_exported_does_not_open(self):
        with context() as cuda:
            handle = handle_of(cuda, cuda.allocate(64))
            address = c_uint64()
            code = cuda.code("IpcOpenMemHandle_v2", byref(address), handle, LAZY_PEERS)
            assert code == INVALID_CONTEXT
            assert cuda.code("IpcOpenMemHandle_v2", byref(address), handle, 0) == INVALID_VALUE

    @pytest.mark.parametrize("change", [0, 8, 12, 16])
    def test_a_handle_that_is_none(self, change):
        """Magic, process, descriptor and file, one spoilt at a time."""
        with context() as cuda:
            handle = handle_of(cuda, cuda.allocate(64))
            handle.bytes[change] ^= 0x55
            address = c_uint64()
            code = cuda.code("IpcOpenMemHandle_v2", byref(address), handle, LAZY_PEERS)
            assert code in {INVALID_HANDLE, INVALID_CONTEXT}

    def test_closing_what_was_not_opened(self):
        with context() as cuda:
            assert cuda.code("IpcCloseMemHandle", cuda.allocate(64)) == INVALID_VALUE
            assert cuda.code("IpcCloseMemHandle", 0) == INVALID_VALUE


class TestEvent:
    def test_another_process_waits_for_it(self):
        with context() as cuda:
            event, handle = c_void_p(), Bytes64()
            cuda.EventCreate(byref(event), DISABLE_TIMING | INTERPROCESS)
            cuda.EventRecord(event, None)
            cuda.IpcGetEventHandle(byref(handle), event)
            assert elsewhere("event", words(handle)) == ["passed"]
            cuda.EventDestroy_v2(event)

    def test_events_that_are_not_shared(self):
        with context() as cuda:
            event, handle = c_void_p(), Bytes64()
            assert cuda.code("EventCreate", byref(event), INTERPROCESS) == INVALID_VALUE
            cuda.EventCreate(byref(event), 0)
            assert cuda.code("IpcGetEventHandle", byref(handle), event) == INVALID_HANDLE
            assert cuda.code("IpcGetEventHandle", byref(handle), None) == INVALID_HANDLE
            assert cuda.code("IpcOpenEventHandle", byref(event), handle) == INVALID_HANDLE


class TestDescriptors:
    def test_physical_memory(self):
        with context() as cuda:
            handle = create(cuda, properties=on_device(handle_types=POSIX_FD))
            address, fd = reserve(cuda), c_int()
            cuda.MemMap(address, UNIT, 0, handle, 0)
            grant(cuda, address)
            cuda.write(address, b"by descriptor\0")
            cuda.MemExportToShareableHandle(byref(fd), handle, POSIX_FD, 0)
            os.set_inheritable(fd.value, True)
            assert elsewhere("range", fd.value, fds=(fd.value,)) == ["by descriptor"]
            os.close(fd.value)
            assert cuda.read(address, 12) == b"answer range"
            cuda.MemUnmap(address, UNIT)
            cuda.MemRelease(handle)
            cuda.MemAddressFree(address, UNIT)

    @pytest.mark.parametrize("place", [DEVICE, HOST, HOST_NUMA])
    def test_a_pools_memory(self, place):
        with context() as cuda:
            properties = PoolProperties(PINNED, POSIX_FD, Location(place, 0))
            pool, address, fd = c_void_p(), c_uint64(), c_int()
            cuda.MemPoolCreate(byref(pool), byref(properties))
            cuda.MemAllocFromPoolAsync(byref(address), 1000, pool, None)
            cuda.write(address.value, b"from a pool\0")
            kind = pointer_attribute(cuda, MEMORY_TYPE, address.value)
            assert kind == (DEVICE_TYPE if place == DEVICE else HOST_TYPE)
            cuda.MemPoolExportToShareableHandle(byref(fd), pool, POSIX_FD, 0)
            data = (ctypes.c_ubyte * 64)()
            cuda.MemPoolExportPointer(byref(data), address.value)
            said = elsewhere("pool", fd.value, words(data), fds=(fd.value,))
            os.close(fd.value)
            assert said == ["from a pool"]
            assert cuda.read(address.value, 11) == b"answer pool"
            size = c_size_t()
            cuda.MemGetAddressRange_v2(None, byref(size), address.value)
            assert size.value == 1000
            cuda.MemFreeAsync(address.value, None)
            cuda.MemPoolDestroy(pool)
