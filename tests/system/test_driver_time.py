"""The virtual time of streams, events and launches."""

from __future__ import annotations

from ctypes import byref, c_float, c_uint32, c_uint64, c_void_p

import pytest

from tests.helpers.cuda_client import (
    FakeCompiler,
    FakeKernel,
    context,
)
from va100.spec import a100

INVALID_HANDLE = 400
GAP_MS = 1.3e-3
"""Between two kernels of one stream: a stream's period less a graph's."""


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
