"""Launches through the driver, with kernels that are Python functions."""

from __future__ import annotations

import ctypes
import struct
from ctypes import byref, c_float, c_int, c_size_t, c_uint64, c_void_p

import pytest

from tests.helpers.cuda_client import (
    CallError,
    FakeCompiler,
    FakeKernel,
    context,
)

INVALID_VALUE = 1
OUT_OF_RESOURCES = 701
NOT_SUPPORTED = 801


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


class TestLaunchShape:
    def test_more_threads_in_x_than_a_signed_index_holds_are_refused(self, capfd):
        with FakeCompiler((FakeKernel("k"),)).registered(), context() as cuda:
            function = cuda.function(cuda.module(), "k")
            with pytest.raises(CallError) as refused:
                cuda.launch(function, grid=(1 << 24, 1, 1), block=(128, 1, 1))
            assert refused.value.code == NOT_SUPPORTED
        assert "2147483648 threads in x" in capfd.readouterr().err
