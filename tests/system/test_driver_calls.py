"""The driver's calls from a client in this process: devices, contexts, and what is not there."""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_int, c_size_t, c_uint32, c_uint64, c_void_p

from tests.helpers.cuda_client import (
    Cuda,
    context,
)
from va100.driver.api import driver, result_name

INVALID_VALUE, INVALID_CONTEXT = 1, 201
DESTROYED, NOT_SUPPORTED = 709, 801


class TestDevice:
    def test_it_is_an_a100(self):
        cuda, name, value = Cuda(), ctypes.create_string_buffer(64), c_int()
        cuda.Init(0)
        cuda.DeviceGetName(name, 64, 0)
        assert name.value.startswith(b"NVIDIA A100")
        cuda.DeviceGetAttribute(byref(value), 16, 0)
        assert value.value == 108

    def test_its_bus_id_leads_back_to_it(self):
        cuda, text, device = Cuda(), ctypes.create_string_buffer(16), c_int(-1)
        cuda.Init(0)
        cuda.DeviceGetPCIBusId(text, 16, 0)
        cuda.DeviceGetByPCIBusId(byref(device), text)
        assert device.value == 0
        assert cuda.code("DeviceGetByPCIBusId", byref(device), b"0000:ff:00.0") == 101

    def test_a_device_that_is_not_there(self):
        cuda = Cuda()
        cuda.Init(0)
        assert cuda.code("DeviceGet", byref(c_int()), 99) == 101

    def test_null_is_refused_before_anything_happens(self):
        assert Cuda().code("DeviceGetCount", None) == INVALID_VALUE

    def test_the_driver_is_version_13_5(self):
        version = c_int()
        Cuda().DriverGetVersion(byref(version))
        assert version.value == 13050

    def test_errors_have_names(self):
        assert result_name(700) == "CUDA_ERROR_ILLEGAL_ADDRESS"
        assert result_name(123456) == "123456"


class TestContext:
    def test_contexts_stack(self):
        with context() as cuda:
            first, second, now = c_void_p(), c_void_p(), c_void_p()
            cuda.CtxGetCurrent(byref(first))
            cuda.CtxCreate_v2(byref(second), 0, 0)
            cuda.CtxGetCurrent(byref(now))
            assert now.value == second.value != first.value
            cuda.CtxDestroy_v2(second)
            cuda.CtxGetCurrent(byref(now))
            assert now.value == first.value

    def test_a_destroyed_context_is_no_crash(self):
        with context() as cuda:
            other = c_void_p()
            cuda.CtxCreate_v2(byref(other), 0, 0)
            cuda.CtxDestroy_v2(other)
            assert cuda.code("CtxSetCurrent", other) == DESTROYED
            assert cuda.code("CtxDestroy_v2", other) == DESTROYED

    def test_a_thread_has_its_own_stack(self):
        seen = []

        def other_thread():
            seen.append(Cuda().code("MemAlloc_v2", byref(c_uint64()), 16))

        with context():
            thread = threading.Thread(target=other_thread)
            thread.start()
            thread.join()
        assert seen == [INVALID_CONTEXT]

    def test_destroying_frees_what_it_owns(self):
        lib = driver()
        lib.va_arena_used.restype = c_uint64
        before = lib.va_arena_used(0)
        with context() as cuda:
            cuda.allocate(1 << 20)
            assert lib.va_arena_used(0) == before + (1 << 20)
        assert lib.va_arena_used(0) == before

    def test_the_primary_context_counts_its_users(self):
        cuda, handle, flags, active = Cuda(), c_void_p(), c_uint32(), c_int()
        cuda.Init(0)
        cuda.DevicePrimaryCtxGetState(0, byref(flags), byref(active))
        kept = active.value  # by a runtime that other tests of this process used
        cuda.DevicePrimaryCtxRetain(byref(handle), 0)
        cuda.DevicePrimaryCtxGetState(0, byref(flags), byref(active))
        assert active.value == 1
        cuda.DevicePrimaryCtxRelease_v2(0)
        cuda.DevicePrimaryCtxGetState(0, byref(flags), byref(active))
        assert active.value == kept
        if not kept:
            assert cuda.code("DevicePrimaryCtxRelease_v2", 0) == INVALID_CONTEXT

    def test_limits_are_kept(self):
        with context() as cuda:
            value = c_size_t()
            cuda.CtxSetLimit(2, 1 << 24)
            cuda.CtxGetLimit(byref(value), 2)
            assert value.value == 1 << 24
            assert cuda.code("CtxGetLimit", byref(value), 99) == 215


class TestRefused:
    def test_a_call_that_is_not_there_says_so(self):
        assert Cuda().code("TexRefCreate", byref(c_void_p())) == NOT_SUPPORTED
