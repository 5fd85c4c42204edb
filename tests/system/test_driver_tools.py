"""What tools ask of the driver: dumps of faults, messages, notifications; and small attributes."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from ctypes import byref, c_bool, c_char_p, c_float, c_int, c_size_t, c_uint32, c_void_p
from pathlib import Path

import pytest

from tests.helpers.cuda_client import Cuda, context

INVALID_VALUE, INVALID_CONTEXT, UNSUPPORTED_AFFINITY, NOT_SUPPORTED = 1, 201, 224, 801
ON_EXCEPTION, TRIGGER_HOST, LIGHTWEIGHT, USER_TRIGGER, FILE, PIPE, FLAGS = range(1, 8)


def dump_attribute(cuda: Cuda, which: int, kind: type = c_bool):
    value, size = kind(), c_size_t(ctypes.sizeof(kind))
    cuda.CoredumpGetAttribute(which, byref(value), byref(size))
    return value.value


class TestDumpAttributes:
    def test_as_they_begin(self):
        with context() as cuda:
            assert dump_attribute(cuda, ON_EXCEPTION) is False
            assert dump_attribute(cuda, TRIGGER_HOST) is True
            assert dump_attribute(cuda, LIGHTWEIGHT) is False
            assert dump_attribute(cuda, FLAGS, c_int) == 0

    def test_a_context_keeps_its_own(self):
        size = c_size_t(1)
        with context() as cuda:
            cuda.CoredumpSetAttribute(ON_EXCEPTION, byref(c_bool(True)), byref(size))
            cuda.CoredumpSetAttribute(LIGHTWEIGHT, byref(c_bool(True)), byref(size))
            assert dump_attribute(cuda, ON_EXCEPTION) is True
            assert dump_attribute(cuda, FLAGS, c_int) == 0x12F
            value = c_bool(True)
            cuda.CoredumpGetAttributeGlobal(ON_EXCEPTION, byref(value), byref(size))
            assert value.value is False
        with context() as cuda:
            assert dump_attribute(cuda, ON_EXCEPTION) is False

    def test_a_file_name_and_its_size(self):
        with context() as cuda:
            name = b"faults/%p.txt"
            cuda.CoredumpSetAttribute(FILE, c_char_p(name), byref(c_size_t(len(name) + 1)))
            size = c_size_t()
            cuda.CoredumpGetAttribute(FILE, None, byref(size))
            assert size.value == len(name) + 1
            room = ctypes.create_string_buffer(size.value)
            cuda.CoredumpGetAttribute(FILE, room, byref(size))
            assert room.value == name
            size.value = 3
            assert cuda.code("CoredumpGetAttribute", FILE, room, byref(size)) == INVALID_VALUE

    def test_what_cannot_be_set(self):
        size, value = c_size_t(1), c_bool(True)
        with context() as cuda:
            for which in (0, 8, -1):
                code = cuda.code("CoredumpSetAttribute", which, byref(value), byref(size))
                assert code == INVALID_VALUE
            code = cuda.code("CoredumpSetAttribute", USER_TRIGGER, byref(value), byref(size))
            assert code == NOT_SUPPORTED
            assert cuda.code("CoredumpSetAttribute", ON_EXCEPTION, None, byref(size)) == 1
            size.value = 0
            assert cuda.code("CoredumpSetAttribute", FLAGS, byref(value), byref(size)) == 1


FAULT = """
import ctypes
from ctypes import byref, c_void_p, c_uint64
from tests.helpers.virtual_memory import compiling, reserve
from tests.system.test_driver_virtual_memory import STORE
with compiling() as cuda:
    store = cuda.function(cuda.module(STORE), "store")
    cuda.allocate(12345)
    cuda.launch(store, [c_uint64(reserve(cuda)), ctypes.c_uint32(1)], block=(1, 1, 1))
    print("went on with", cuda.code("CtxSynchronize"), flush=True)
"""


class TestDump:
    @pytest.mark.parametrize(("lightweight", "told"), [("0", True), ("1", False)])
    def test_a_fault_is_written_down(self, tmp_path: Path, root: Path, lightweight, told):
        environment = {
            **os.environ,
            "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1",
            "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP": lightweight,
            "CUDA_COREDUMP_FILE": str(tmp_path / "dump-%p"),
            "PYTHONPATH": str(root),
        }
        done = subprocess.run(
            [sys.executable, "-c", FAULT],
            check=False, capture_output=True, text=True, env=environment, timeout=120,
        )  # fmt: skip
        assert done.returncode == -6, done.stderr
        (dump,) = tmp_path.iterdir()
        text = dump.read_text()
        assert "store" in text
        assert ("12345 bytes  device" in text) is told


class TestLogs:
    def test_what_is_refused_is_told(self):
        heard = []

        @ctypes.CFUNCTYPE(None, c_void_p, c_int, c_void_p, c_size_t)
        def listen(data, level, text, size):
            heard.append((data, level, ctypes.string_at(text, size)))

        with context() as cuda:
            handle, since = c_void_p(), c_uint32()
            cuda.LogsRegisterCallback(ctypes.cast(listen, c_void_p), 77, byref(handle))
            cuda.LogsCurrent(byref(since), 0)
            buffer = ctypes.create_string_buffer(10)
            cuda.code("MemcpyDtoH_v2", buffer, cuda.allocate(4), 5)
            (entry,) = heard
            assert entry[:2] == (77, 1)
            assert b"leaves the allocation" in entry[2]
            room, size = ctypes.create_string_buffer(4096), c_size_t(4096)
            cuda.LogsDumpToMemory(byref(since), room, byref(size), 0)
            assert room.value == entry[2] + b"\n"
            assert size.value == len(room.value)
            size.value = 4096
            cuda.LogsDumpToMemory(byref(since), room, byref(size), 0)
            assert size.value == 0
            cuda.LogsUnregisterCallback(handle)
            cuda.code("MemcpyDtoH_v2", buffer, cuda.allocate(4), 5)
            assert len(heard) == 1
            assert cuda.code("LogsUnregisterCallback", handle) == INVALID_VALUE

    def test_the_newest_fit_first(self):
        with context() as cuda:
            since, address = c_uint32(), cuda.allocate(4)
            cuda.LogsCurrent(byref(since), 0)
            buffer = ctypes.create_string_buffer(300)
            for size in (101, 102, 103):
                cuda.code("MemcpyDtoH_v2", buffer, address, size)
            room, size = ctypes.create_string_buffer(200), c_size_t(200)
            again = c_uint32(since.value)
            cuda.LogsDumpToMemory(byref(again), room, byref(size), 0)
            assert b"103 bytes" in room.value
            assert b"101 bytes" not in room.value
            assert b"left out" in room.value
            size.value = 5
            code = cuda.code("LogsDumpToMemory", byref(since), room, byref(size), 0)
            assert (code, size.value) == (INVALID_VALUE, 0)

    def test_into_a_file(self, tmp_path: Path):
        with context() as cuda:
            cuda.code("MemcpyDtoH_v2", ctypes.create_string_buffer(9), cuda.allocate(4), 9)
            path = tmp_path / "log"
            cuda.LogsDumpToFile(None, bytes(path), 0)
            assert "9 bytes" in path.read_text()
            assert cuda.code("LogsDumpToFile", None, bytes(tmp_path / "no" / "log"), 0) == 1
            ahead = c_uint32(2**31)
            assert cuda.code("LogsDumpToFile", byref(ahead), bytes(path), 0) == INVALID_VALUE


class TestNotifications:
    def test_who_listens_is_remembered(self):
        @ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p)
        def listen(*_):
            """Never called."""

        with context() as cuda:
            handle, call = c_void_p(), ctypes.cast(listen, c_void_p)
            cuda.DeviceRegisterAsyncNotification(0, call, None, byref(handle))
            cuda.DeviceUnregisterAsyncNotification(0, handle)
            code = cuda.code("DeviceUnregisterAsyncNotification", 0, handle)
            assert code == INVALID_VALUE
            code = cuda.code("DeviceRegisterAsyncNotification", 0, None, None, byref(handle))
            assert code == INVALID_VALUE


class TestSmallAttributes:
    def test_a_cache_preference_is_kept(self):
        with context() as cuda:
            config = c_int()
            cuda.CtxSetCacheConfig(2)
            cuda.CtxGetCacheConfig(byref(config))
            assert config.value == 2
            assert cuda.code("CtxSetCacheConfig", 4) == INVALID_VALUE

    def test_affinity_is_a_matter_of_mps(self):
        with context() as cuda:
            affinity = (c_int * 2)(0, 10)
            assert cuda.code("CtxGetExecAffinity", affinity, 0) == UNSUPPORTED_AFFINITY
            code = cuda.code("CtxCreate_v3", byref(c_void_p()), affinity, 1, 0, 0)
            assert code == UNSUPPORTED_AFFINITY

    def test_linear_textures_and_atomics_of_the_host(self):
        with context() as cuda:
            width, float_ = c_size_t(), 0x20
            cuda.DeviceGetTexture1DLinearMaxWidth(byref(width), float_, 4, 0)
            assert width.value == 1 << 28
            code = cuda.code("DeviceGetTexture1DLinearMaxWidth", byref(width), float_, 3, 0)
            assert code == INVALID_VALUE
            found, asked = (c_uint32 * 2)(9, 9), (c_int * 2)(0, 9)
            cuda.DeviceGetHostAtomicCapabilities(found, asked, 2, 0)
            assert list(found) == [0, 0]
            asked[0] = 13
            code = cuda.code("DeviceGetHostAtomicCapabilities", found, asked, 2, 0)
            assert code == INVALID_VALUE

    @pytest.mark.parametrize(("target", "scope", "code"), [(0, 100, 0), (0, 5, 1), (1, 100, 1)])
    def test_nothing_waits_to_be_flushed(self, target, scope, code):
        with context() as cuda:
            assert cuda.code("FlushGPUDirectRDMAWrites", target, scope) == code


class Window(ctypes.Structure):
    _fields_ = (
        ("base", c_void_p), ("size", c_size_t), ("ratio", c_float), ("hit", c_int),
        ("miss", c_int), ("pad", ctypes.c_ubyte * 36),
    )  # fmt: skip


class TestStreamAttributes:
    def test_a_window_is_kept_and_copied(self):
        with context() as cuda:
            first, second = c_void_p(), c_void_p()
            for stream in (first, second):
                cuda.StreamCreate(byref(stream), 0)
            told, window = Window(), Window(cuda.allocate(4096), 4096, 0.5, 2, 1)
            cuda.StreamSetAttribute(first, 1, byref(window))
            cuda.StreamGetAttribute(second, 1, byref(told))
            assert told.size == 0
            cuda.StreamCopyAttributes(second, first)
            cuda.StreamGetAttribute(second, 1, byref(told))
            assert (told.base, told.size, told.ratio) == (window.base, 4096, 0.5)
            window.ratio = 2
            assert cuda.code("StreamSetAttribute", first, 1, byref(window)) == INVALID_VALUE
            window.ratio, window.size = 0.5, 1 << 40
            assert cuda.code("StreamSetAttribute", first, 1, byref(window)) == INVALID_VALUE

    def test_the_rest(self):
        with context() as cuda:
            stream, value = c_void_p(), (c_int * 16)()
            cuda.StreamCreateWithPriority(byref(stream), 0, -3)
            for which, wanted in ((8, -3), (3, 1), (10, 0)):
                cuda.StreamGetAttribute(stream, which, value)
                assert value[0] == wanted
            value[0] = 4
            cuda.StreamSetAttribute(stream, 3, value)
            value[0] = 5
            assert cuda.code("StreamSetAttribute", stream, 3, value) == INVALID_VALUE
            for which in (0, 2, 4, 99):
                assert cuda.code("StreamGetAttribute", stream, which, value) == INVALID_VALUE


class TestWaitingForValues:
    """``cuStreamWaitValue``: the thread waits where a stream would."""

    @pytest.mark.parametrize(("width", "mode", "value"), [(32, 0, 5), (64, 1, 7), (32, 2, 6)])
    def test_another_thread_writes_what_a_stream_waits_for(self, width, mode, value):
        with context() as cuda:
            pointer, current, code = c_void_p(), c_void_p(), []
            cuda.CtxGetCurrent(byref(current))
            cuda.MemHostAlloc(byref(pointer), 64, 2)
            cuda.MemsetD8_v2(pointer.value, 0, 64)

            def wait() -> None:
                mine = Cuda()
                mine.CtxSetCurrent(current)
                code.append(
                    mine.code(f"StreamWaitValue{width}_v2", None, pointer.value, value, mode)
                )

            thread = threading.Thread(target=wait)
            thread.start()
            c_uint32.from_address(pointer.value).value = value
            thread.join()
            assert code == [0]
            cuda.MemFreeHost(pointer)

    def test_what_nobody_writes_is_refused_after_a_while(self):
        with context() as cuda:
            address = cuda.allocate(64)
            cuda.MemsetD8_v2(address, 0, 64)
            assert cuda.code("StreamWaitValue32_v2", None, address, 1, 1) == NOT_SUPPORTED
            assert cuda.code("StreamWaitValue32_v2", None, address + 2, 1, 1) == INVALID_VALUE
