"""The driver's calls from a client in this process, with kernels that are Python functions."""

from __future__ import annotations

import ctypes
import struct
import threading
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint32, c_uint64, c_void_p

import pytest

from tests.helpers.cuda_client import (
    PTX,
    CallError,
    Cuda,
    FakeCompiler,
    FakeKernel,
    context,
    no_context,
)
from va100.driver.api import driver, result_name
from va100.spec import a100

INVALID_VALUE, OUT_OF_MEMORY, INVALID_CONTEXT = 1, 2, 201
NO_BINARY, INVALID_HANDLE, NOT_FOUND, OUT_OF_RESOURCES = 209, 400, 500, 701
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


class TestModule:
    def test_kernels_and_variables_are_found_by_name(self):
        fake = FakeCompiler((FakeKernel("k"),), {"v": (0x1000, 12)})
        with fake.registered(), context() as cuda:
            module, address, size = cuda.module(), c_uint64(), c_size_t()
            cuda.function(module, "k")
            cuda.ModuleGetGlobal_v2(byref(address), byref(size), module, c_char_p(b"v"))
            assert (address.value, size.value) == (0x1000, 12)
            with pytest.raises(CallError) as missing:
                cuda.function(module, "other")
            assert missing.value.code == NOT_FOUND
            assert fake.images == [PTX]

    def test_a_kernel_that_cannot_run_is_told_of_and_not_given_out(self, capfd):
        """The module's other kernels run."""
        broken = FakeKernel("broken", refusal="line 7: 'suq.width.b32' is not executed")
        with FakeCompiler((FakeKernel("k"), broken)).registered(), context() as cuda:
            module = cuda.module()
            assert "1 of 2 kernels" in capfd.readouterr().err
            cuda.launch(cuda.function(module, "k"))
            with pytest.raises(CallError) as refused:
                cuda.function(module, "broken")
            assert refused.value.code == NOT_SUPPORTED
            assert "line 7: 'suq.width.b32'" in capfd.readouterr().err

    def test_an_unloaded_module_leaves_no_kernel(self):
        fake = FakeCompiler((FakeKernel("k"),))
        with fake.registered(), context() as cuda:
            module = cuda.module()
            function = cuda.function(module, "k")
            cuda.ModuleUnload(module)
            assert fake.unloaded == 1
            assert cuda.code("ModuleUnload", module) == INVALID_HANDLE
            with pytest.raises(CallError) as stale:
                cuda.launch(function)
            assert stale.value.code == INVALID_HANDLE

    def test_the_compilers_words_reach_the_client(self, capfd):
        fake = FakeCompiler((), load_result=(218, "line 3: no such instruction"))
        with fake.registered(), context() as cuda:
            log = ctypes.create_string_buffer(256)
            options, module = (c_int * 2)(5, 6), c_void_p()
            values = (c_void_p * 2)(ctypes.addressof(log), 256)
            code = cuda.code("ModuleLoadDataEx", byref(module), PTX, 2, options, values)
            assert code == 218
            assert log.value == b"line 3: no such instruction"
            assert "line 3: no such instruction" in capfd.readouterr().err

    @pytest.mark.parametrize(
        ("image", "code"),
        [
            (b"\x7fELF" + b"\1" * 60, NO_BINARY),
            (b"not an image at all", 200),
            (b"\0", 200),
            (b"ab\0", 200),
        ],
    )
    def test_what_is_no_ptx_is_refused(self, image, code, capfd):
        with FakeCompiler(()).registered(), context() as cuda:
            assert cuda.code("ModuleLoadData", byref(c_void_p()), image) == code
            assert "cannot load a module" in capfd.readouterr().err

    def test_a_library_serves_every_context(self):
        ran = []
        fake = FakeCompiler((FakeKernel("k", lambda warp: ran.append(warp.ctaid)),))
        with fake.registered(), context() as cuda:
            library, kernel, count = c_void_p(), c_void_p(), c_uint32()
            cuda.LibraryLoadData(byref(library), PTX, None, None, 0, None, None, 0)
            cuda.LibraryGetKernelCount(byref(count), library)
            cuda.LibraryGetKernel(byref(kernel), library, c_char_p(b"k"))
            cuda.launch(kernel)
            with context() as other:
                other.launch(kernel)
            assert (count.value, ran) == (1, [(0, 0, 0)] * 2)
            cuda.LibraryUnload(library)
            assert cuda.code("LibraryUnload", library) == INVALID_HANDLE
            assert fake.unloaded == len(fake.images) == 2

    def test_a_kernels_parameters_are_told_in_a_context(self):
        with FakeCompiler((FakeKernel("k"),)).registered(), context(), context() as cuda:
            library, kernel, number = c_void_p(), c_void_p(), c_size_t()
            cuda.LibraryLoadData(byref(library), PTX, None, None, 0, None, None, 0)
            cuda.LibraryGetKernel(byref(kernel), library, c_char_p(b"k"))
            cuda.KernelGetParamCount(kernel, byref(number))
            info = ("KernelGetParamInfo", kernel, c_size_t(0), byref(number), byref(number))
            with no_context():
                assert cuda.code(*info) == INVALID_CONTEXT
            cuda.LibraryUnload(library)

    def test_nothing_has_no_name(self):
        with context() as cuda:
            name = c_char_p()
            for call in ("FuncGetName", "KernelGetName"):
                assert cuda.code(call, byref(name), None) == INVALID_VALUE
                assert cuda.code(call, byref(name), c_void_p(8)) == INVALID_HANDLE

    def test_a_link_of_one_module_is_that_module(self):
        with FakeCompiler((FakeKernel("k"),)).registered() as fake, context() as cuda:
            state, image, size = c_void_p(), c_void_p(), c_size_t()
            cuda.LinkCreate_v2(0, None, None, byref(state))
            cuda.LinkAddData_v2(state, 1, PTX, len(PTX), b"x.ptx", 0, None, None)
            cuda.LinkComplete(state, byref(image), byref(size))
            cuda.ModuleLoadData(byref(c_void_p()), image)
            cuda.LinkDestroy(state)
            assert fake.images == [PTX]

    def test_a_compiler_that_does_not_link_is_told_of(self, capfd):
        with FakeCompiler((FakeKernel("k"),)).registered(), context() as cuda:
            state = c_void_p()
            cuda.LinkCreate_v2(0, None, None, byref(state))
            for _ in range(2):
                cuda.LinkAddData_v2(state, 1, PTX, len(PTX), None, 0, None, None)
            code = cuda.code("LinkComplete", state, byref(c_void_p()), None)
            assert code == NOT_SUPPORTED
            assert "links no modules" in capfd.readouterr().err
            cuda.LinkDestroy(state)


class TestLaunch:
    def test_parameters_land_at_their_offsets(self):
        seen = []

        def body(warp):
            seen.append((warp.parameter(0, c_int), warp.parameter(8, c_uint64)))

        fake = FakeCompiler((FakeKernel("k", body, ((0, 4), (8, 8))),))
        with fake.registered(), context() as cuda:
            function = cuda.function(cuda.module(), "k")
            cuda.launch(function, (c_int(-5), c_uint64(1 << 40)))
            assert seen == [(-5, 1 << 40)]

    def test_a_packed_buffer_serves_as_well(self):
        seen = []
        kernel = FakeKernel("k", lambda w: seen.append(w.parameter(4, c_float)), ((0, 4), (4, 4)))
        with FakeCompiler((kernel,)).registered(), context() as cuda:
            function = cuda.function(cuda.module(), "k")
            data = ctypes.create_string_buffer(struct.pack("<if", 1, 2.5), 8)
            size = c_size_t(8)
            extra = (c_void_p * 5)(1, ctypes.addressof(data), 2, ctypes.addressof(size), 0)
            cuda.LaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, extra)
            assert seen == [2.5]

    def test_every_warp_of_every_cta_runs_once(self):
        seen = set()
        kernel = FakeKernel("k", lambda w: seen.add((w.ctaid, w.index)))
        with FakeCompiler((kernel,)).registered(), context() as cuda:
            cuda.launch(cuda.function(cuda.module(), "k"), grid=(2, 3, 1), block=(40, 1, 1))
            assert seen == {((x, y, 0), w) for x in range(2) for y in range(3) for w in range(2)}

    def test_a_block_shape_is_compiled_once(self):
        with FakeCompiler((FakeKernel("k"),)).registered() as fake, context() as cuda:
            function = cuda.function(cuda.module(), "k")
            for block in [(32, 1, 1), (64, 1, 1), (32, 1, 1), (8, 8, 1), (64, 1, 1)]:
                cuda.launch(function, block=block)
            assert [b for _, b in fake.compiled] == [(32, 1, 1), (64, 1, 1), (8, 8, 1)]

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            ({"block": (1025, 1, 1)}, INVALID_VALUE),
            ({"block": (32, 33, 1)}, INVALID_VALUE),
            ({"block": (1, 1, 65)}, INVALID_VALUE),
            ({"block": (0, 1, 1)}, INVALID_VALUE),
            ({"grid": (1, 65536, 1)}, INVALID_VALUE),
            ({"grid": (0, 1, 1)}, INVALID_VALUE),
            ({"shared": 49153}, INVALID_VALUE),
        ],
    )
    def test_shapes_no_chip_takes(self, arguments, code):
        with FakeCompiler((FakeKernel("k"),)).registered(), context() as cuda:
            function = cuda.function(cuda.module(), "k")
            with pytest.raises(CallError) as refused:
                cuda.launch(function, **arguments)
            assert refused.value.code == code

    def test_what_the_kernel_declares_binds(self):
        kernels = (
            FakeKernel("bounded", max_threads=64),
            FakeKernel("exact", required_block=(16, 2, 1)),
            FakeKernel("greedy", registers=255),
        )
        with FakeCompiler(kernels).registered(), context() as cuda:
            module = cuda.module()
            for name, block, code in [
                ("bounded", (96, 1, 1), INVALID_VALUE),
                ("exact", (32, 1, 1), INVALID_VALUE),
                ("greedy", (1024, 1, 1), OUT_OF_RESOURCES),
            ]:
                with pytest.raises(CallError) as refused:
                    cuda.launch(cuda.function(module, name), block=block)
                assert refused.value.code == code
            cuda.launch(cuda.function(module, "exact"), block=(16, 2, 1))

    def test_an_estimate_of_registers_refuses_no_launch(self):
        ran = []
        kernel = FakeKernel(
            "k", lambda w: ran.append(w.index), registers=255, registers_estimated=True
        )
        with FakeCompiler((kernel,)).registered(), context() as cuda:
            cuda.launch(cuda.function(cuda.module(), "k"), block=(1024, 1, 1))
            assert sorted(ran) == list(range(32))

    def test_more_shared_memory_is_opted_into(self):
        with FakeCompiler((FakeKernel("k", static_shared=1024),)).registered(), context() as cuda:
            function = cuda.function(cuda.module(), "k")
            assert cuda.code("FuncSetAttribute", function, 8, 163 * 1024) == INVALID_VALUE
            cuda.FuncSetAttribute(function, 8, 162 * 1024)
            cuda.launch(function, shared=162 * 1024)

    def test_the_calls_before_cuda_4(self):
        seen = []
        kernel = FakeKernel("k", lambda w: seen.append(w.parameter(4, c_int)), ((0, 4), (4, 4)))
        with FakeCompiler((kernel,)).registered(), context() as cuda:
            function = cuda.function(cuda.module(), "k")
            cuda.FuncSetBlockShape(function, 32, 1, 1)
            cuda.ParamSetSize(function, 8)
            cuda.ParamSeti(function, 4, 77)
            cuda.LaunchGrid(function, 2, 1)
            assert seen == [77, 77]

    def test_host_functions_run_in_order(self):
        order = []
        call = ctypes.CFUNCTYPE(None, c_void_p)(order.append)
        kernel = FakeKernel("k", lambda _: order.append("kernel"))
        with FakeCompiler((kernel,)).registered(), context() as cuda:
            function, stream = cuda.function(cuda.module(), "k"), c_void_p()
            cuda.StreamCreate(byref(stream), 0)
            cuda.launch(function, stream=stream)
            cuda.LaunchHostFunc(stream, ctypes.cast(call, c_void_p), 42)
            cuda.launch(function, stream=stream)
            assert order == ["kernel", 42, "kernel"]

    @pytest.mark.parametrize(
        ("threads", "registers", "shared", "expected"),
        [(256, 32, 0, 8), (1024, 64, 0, 1), (32, 16, 0, 32), (128, 32, 48 * 1024, 3)],
    )
    def test_occupancy(self, threads, registers, shared, expected):
        with FakeCompiler((FakeKernel("k", registers=registers),)).registered():  # noqa: SIM117
            with context() as cuda:
                count = c_int()
                cuda.OccupancyMaxActiveBlocksPerMultiprocessor(
                    byref(count), cuda.function(cuda.module(), "k"), threads, shared
                )
                assert count.value == expected

    def test_the_block_that_fills_an_sm(self):
        with FakeCompiler((FakeKernel("k"),)).registered(), context() as cuda:
            grid, block = c_int(), c_int()
            cuda.OccupancyMaxPotentialBlockSize(
                byref(grid), byref(block), cuda.function(cuda.module(), "k"), None, 0, 0
            )
            assert (grid.value, block.value) == (216, 1024)

    @pytest.mark.parametrize(
        ("ctas", "threads", "allowed", "expected"),
        [(1, 256, 0, 48 << 10), (4, 32, 0, 40 << 10), (1, 256, 163 << 10, 163 << 10)],
    )
    def test_the_shared_memory_a_launch_may_ask_for(self, ctas, threads, allowed, expected):
        """No more than 48 KiB a CTA, unless the function was allowed it."""
        with FakeCompiler((FakeKernel("k"),)).registered(), context() as cuda:
            function, room = cuda.function(cuda.module(), "k"), c_size_t()
            if allowed:
                cuda.FuncSetAttribute(function, 8, allowed)
            cuda.OccupancyAvailableDynamicSMemPerBlock(byref(room), function, ctas, threads)
            assert room.value == expected


GAP_MS = 1.3e-3
"""Between two kernels of one stream: a stream's period less a graph's."""


class TestLaunchShape:
    def test_more_threads_in_x_than_a_signed_index_holds_are_refused(self, capfd):
        with FakeCompiler((FakeKernel("k"),)).registered(), context() as cuda:
            function = cuda.function(cuda.module(), "k")
            with pytest.raises(CallError) as refused:
                cuda.launch(function, grid=(1 << 24, 1, 1), block=(128, 1, 1))
            assert refused.value.code == NOT_SUPPORTED
        assert "2147483648 threads in x" in capfd.readouterr().err


class TestTime:
    @staticmethod
    def event(cuda, stream=None):
        event = c_void_p()
        cuda.EventCreate(byref(event), 0)
        cuda.EventRecord(event, stream)
        return event

    @staticmethod
    def between(cuda, first, last):
        milliseconds = c_float()
        cuda.EventElapsedTime(byref(milliseconds), first, last)
        return milliseconds.value

    def test_an_event_tells_the_chips_time(self):
        fake = FakeCompiler((FakeKernel("k", duration_s=2e-3),))
        with fake.registered(), context() as cuda:
            function = cuda.function(cuda.module(), "k")
            first = self.event(cuda)
            for _ in range(3):
                cuda.launch(function)
            assert self.between(cuda, first, self.event(cuda)) == pytest.approx(6.0 + 3 * GAP_MS)

    def test_a_pair_around_a_tiny_kernel_reads_the_streams_period(self):
        fake = FakeCompiler((FakeKernel("k", duration_s=1.31e-6),))
        with fake.registered(), context() as cuda:
            function = cuda.function(cuda.module(), "k")
            first = self.event(cuda)
            cuda.launch(function)
            period_s = a100.A100_SXM4_80GB.measured.stream_launch_s
            read_s = self.between(cuda, first, self.event(cuda)) / 1e3
            assert read_s == pytest.approx(period_s, rel=0.01)

    def test_the_footprint_is_what_arguments_reach(self):
        kernel = FakeKernel("k", parameters=((0, 8), (8, 4), (16, 8), (24, 8)))
        with FakeCompiler((kernel,)).registered() as fake, context() as cuda:
            one, two = cuda.allocate(1000), cuda.allocate(1 << 20)
            cuda.allocate(1 << 22)  # reached by nobody
            arguments = c_uint64(one), c_uint32(7), c_uint64(two + 512), c_uint64(one + 8)
            cuda.launch(cuda.function(cuda.module(), "k"), arguments)
            self.between(cuda, *[self.event(cuda)] * 2)
            assert fake.footprints[-1] == 1000 + (1 << 20)

    def test_streams_overlap_and_wait_for_events(self):
        fake = FakeCompiler((FakeKernel("k", duration_s=1e-3),))
        with fake.registered(), context() as cuda:
            function, one, two = cuda.function(cuda.module(), "k"), c_void_p(), c_void_p()
            cuda.StreamCreate(byref(one), 1)
            cuda.StreamCreate(byref(two), 1)
            first = self.event(cuda, one)
            cuda.launch(function, stream=one)
            cuda.launch(function, stream=two)
            beside = self.event(cuda, two)
            assert self.between(cuda, first, beside) == pytest.approx(1.0 + GAP_MS)
            cuda.StreamWaitEvent(two, self.event(cuda, one), 0)
            cuda.launch(function, stream=one)
            cuda.StreamWaitEvent(two, self.event(cuda, one), 0)
            cuda.launch(function, stream=two)
            assert self.between(cuda, first, self.event(cuda, two)) == pytest.approx(3 + 3 * GAP_MS)

    def test_the_legacy_stream_waits_for_all(self):
        fake = FakeCompiler((FakeKernel("k", duration_s=1e-3),))
        with fake.registered(), context() as cuda:
            function, stream = cuda.function(cuda.module(), "k"), c_void_p()
            cuda.StreamCreate(byref(stream), 0)
            first = self.event(cuda, stream)
            cuda.launch(function, stream=stream)
            cuda.launch(function)
            cuda.launch(function, stream=stream)
            total = self.between(cuda, first, self.event(cuda, stream))
            assert total == pytest.approx(3 + 3 * GAP_MS)

    def test_counters_are_priced(self):
        kernel = FakeKernel("k", lambda w: w.count(1), counters=2)
        with FakeCompiler((kernel,)).registered() as fake, context() as cuda:
            cuda.launch(cuda.function(cuda.module(), "k"), grid=(1, 1, 1), block=(96, 1, 1))
            event = self.event(cuda)
            self.between(cuda, event, event)
            assert fake.priced[-1] == ((1, 1, 1), (0, 3))

    def test_launches_alike_are_priced_once(self):
        fake = FakeCompiler((FakeKernel("k", duration_s=1e-4),))
        with fake.registered(), context() as cuda:
            function = cuda.function(cuda.module(), "k")
            first = self.event(cuda)
            for _ in range(20):
                cuda.launch(function, grid=(3, 1, 1))
                cuda.launch(function, grid=(4, 1, 1))
            assert self.between(cuda, first, self.event(cuda)) == pytest.approx(4 + 40 * GAP_MS)
            grids = [grid for grid, _ in fake.priced]
            assert grids.count((3, 1, 1)) == grids.count((4, 1, 1)) == 1

    def test_a_copy_takes_as_long_as_its_link(self):
        with context() as cuda:
            address, data = cuda.allocate(1 << 24), bytes(1 << 24)
            first = self.event(cuda)
            cuda.write(address, data)
            milliseconds = self.between(cuda, first, self.event(cuda))
            assert (1 << 24) / 32e9 < milliseconds / 1e3 < (1 << 24) / 20e9

    def test_events_without_time_have_none(self):
        with context() as cuda:
            event, milliseconds = c_void_p(), c_float()
            cuda.EventCreate(byref(event), 2)
            cuda.EventRecord(event, None)
            code = cuda.code("EventElapsedTime", byref(milliseconds), event, event)
            assert code == INVALID_HANDLE


class TestRefused:
    def test_a_call_that_is_not_there_says_so(self):
        assert Cuda().code("TexRefCreate", byref(c_void_p())) == NOT_SUPPORTED
