"""Stream capture through the driver: what is captured, forks and joins, and what breaks it."""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_int, c_size_t, c_uint32, c_uint64, c_void_p

import pytest

from tests.helpers import graphs as g
from tests.helpers.graphs import graphs, handles

INVALID_VALUE, ILLEGAL_STATE, DESTROYED = 1, 401, 709
UNSUPPORTED, INVALIDATED, MERGE, UNMATCHED, UNJOINED = 900, 901, 902, 903, 904
ISOLATION, IMPLICIT, CAPTURED_EVENT, WRONG_THREAD = 905, 906, 907, 908
EXTERNAL = 1
BLOCKING = 0


def begin(cuda, mode=g.GLOBAL, flags=g.NON_BLOCKING):
    stream = cuda.stream(flags)
    cuda.StreamBeginCapture_v2(stream, mode)
    return stream


def end_code(cuda, stream):
    """How a capture ends, and whether there is a graph."""
    graph = c_void_p(5)
    return cuda.code("StreamEndCapture", stream, byref(graph)), graph.value is not None


def kinds(cuda, graph):
    """Types of a graph's nodes, in order."""
    found = []
    for node in cuda.listed("GraphGetNodes", graph):
        kind = c_int()
        cuda.GraphNodeGetType(c_void_p(node), byref(kind))
        found.append(kind.value)
    return found


class TestCaptured:
    def test_launches_run_when_the_graph_does(self):
        with graphs() as cuda:
            stream = begin(cuda)
            for digit in (1, 2, 3):
                cuda.append(digit, stream)
            graph = cuda.end_capture(stream)
            assert cuda.digits == 0
            assert cuda.run(graph, stream) == 123
            cuda.append(4, stream)
            assert cuda.digits == 1234

    def test_everything_a_stream_does_becomes_a_node(self):
        call = g.HOST_CALL(lambda _: seen.append("called"))
        with graphs() as cuda:
            seen, place, address, event = [], cuda.allocate(64), c_uint64(), cuda.event()
            host = ctypes.create_string_buffer(b"abcd", 64)
            stream = begin(cuda)
            cuda.append(1, stream)
            cuda.MemcpyHtoDAsync_v2(c_uint64(place), host, 4, stream)
            cuda.MemcpyDtoDAsync_v2(c_uint64(place + 4), c_uint64(place), 4, stream)
            cuda.MemcpyDtoHAsync_v2(ctypes.addressof(host) + 8, c_uint64(place), 8, stream)
            cuda.MemsetD8Async(c_uint64(place), 9, 4, stream)
            cuda.MemsetD2D32Async(c_uint64(place), 16, 9, 1, 2, stream)
            cuda.LaunchHostFunc(stream, call, None)
            cuda.StreamWriteValue32_v2(stream, c_uint64(place), 7, 0)
            cuda.EventRecordWithFlags(event, stream, EXTERNAL)
            cuda.StreamWaitEvent(stream, event, EXTERNAL)
            cuda.MemAllocAsync(byref(address), 4096, stream)
            cuda.MemcpyAsync(address, c_uint64(place), 4, stream)
            cuda.MemFreeAsync(address, stream)
            graph = cuda.end_capture(stream)
            assert (cuda.digits, seen, host.raw[8:16]) == (0, [], bytes(8))
            assert kinds(cuda, graph) == [
                g.KERNEL, g.MEMCPY, g.MEMCPY, g.MEMCPY, g.MEMSET, g.MEMSET, g.HOST, g.MEMORY_OPS,
                g.RECORD, g.WAIT, g.ALLOC, g.MEMCPY, g.FREE,
            ]  # fmt: skip
            assert cuda.run(graph, stream) == 1
            assert (seen, host.raw[8:16]) == (["called"], b"abcdabcd")
            assert cuda.read(place, 20)[:4] == b"\7\0\0\0"
            assert cuda.read(place + 16, 4) == b"\t\0\0\0"

    def test_an_allocation_of_nothing_is_no_node(self):
        with graphs() as cuda:
            stream, address = begin(cuda), c_uint64(7)
            cuda.MemAllocAsync(byref(address), 0, stream)
            cuda.MemFreeAsync(address, stream)
            assert (kinds(cuda, cuda.end_capture(stream)), address.value) == ([], 0)

    def test_the_threads_own_stream_captures(self):
        per_thread = c_void_p(2)
        with graphs() as cuda:
            cuda.StreamBeginCapture_v2(per_thread, g.RELAXED)
            cuda.append(6, per_thread)
            graph = cuda.end_capture(per_thread)
            assert cuda.run(graph, per_thread) == 6

    def test_a_capture_may_go_on_in_a_graph(self):
        with graphs() as cuda:
            graph, stream = cuda.graph(), cuda.stream()
            first = cuda.add_kernel(graph, 1)
            cuda.StreamBeginCaptureToGraph(stream, graph, handles([first]), None, 1, g.GLOBAL)
            cuda.append(2, stream)
            assert cuda.end_capture(stream).value == graph.value
            assert cuda.run(graph) == 12

    def test_attributes_of_a_launch_are_the_nodes(self):
        with graphs() as cuda:
            stream, value = begin(cuda), (c_int * 16)()
            attribute = (c_uint32 * 18)(2, 0, 1)  # cooperative
            config = LaunchConfig(
                (c_uint32 * 3)(1, 1, 1), (c_uint32 * 3)(32, 1, 1), 0, stream.value,
                ctypes.addressof(attribute), 1,
            )  # fmt: skip
            cuda.LaunchKernelEx(byref(config), cuda.add_function, cuda.arguments(1), None)
            graph = cuda.end_capture(stream)
            node = c_void_p(cuda.listed("GraphGetNodes", graph)[0])
            cuda.GraphKernelNodeGetAttribute(node, 2, value)
            assert value[0] == 1


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", c_uint32 * 3), ("block", c_uint32 * 3), ("shared", c_uint32),
        ("stream", c_void_p), ("attributes", c_void_p), ("count", c_uint32),
    )  # fmt: skip


class TestForks:
    def test_fork_and_join(self):
        with graphs() as cuda:
            stream, other, fork, join = begin(cuda), cuda.stream(), cuda.event(), cuda.event()
            cuda.append(1, stream)
            cuda.EventRecord(fork, stream)
            cuda.StreamWaitEvent(other, fork, 0)
            assert cuda.status(other) == g.ACTIVE
            cuda.append(2, other)
            cuda.append(3, stream)
            cuda.EventRecord(join, other)
            cuda.StreamWaitEvent(stream, join, 0)
            cuda.append(4, stream)
            graph = cuda.end_capture(stream)
            assert cuda.status(other) == g.NONE
            first, second, third, last = cuda.listed("GraphGetNodes", graph)
            assert cuda.listed("GraphNodeGetDependencies", c_void_p(second)) == [first]
            assert cuda.listed("GraphNodeGetDependencies", c_void_p(third)) == [first]
            assert cuda.listed("GraphNodeGetDependencies", c_void_p(last)) == [third, second]
            assert cuda.run(graph) == 1234

    def test_work_that_nobody_waits_for(self):
        with graphs() as cuda:
            stream, other, fork = begin(cuda), cuda.stream(), cuda.event()
            cuda.EventRecord(fork, stream)
            cuda.StreamWaitEvent(other, fork, 0)
            cuda.append(1, other)
            assert end_code(cuda, stream) == (UNJOINED, False)
            assert cuda.status(stream) == cuda.status(other) == g.NONE
            cuda.append(7, other)
            assert cuda.digits == 7

    def test_a_fork_without_work_needs_no_join(self):
        with graphs() as cuda:
            stream, other, fork = begin(cuda), cuda.stream(), cuda.event()
            cuda.append(1, stream)
            cuda.EventRecord(fork, stream)
            cuda.StreamWaitEvent(other, fork, 0)
            assert end_code(cuda, stream) == (0, True)

    def test_a_fork_into_another_context(self):
        with graphs() as cuda:
            second = c_void_p()
            stream, fork = begin(cuda), cuda.event()
            cuda.append(1, stream)
            cuda.EventRecord(fork, stream)
            cuda.CtxCreate_v2(byref(second), 0, 0)
            other, join = cuda.stream(), cuda.event()
            function = cuda.function(cuda.module(), "add")
            cuda.StreamWaitEvent(other, fork, 0)
            cuda.LaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, other, cuda.arguments(2), None)
            cuda.EventRecord(join, other)
            cuda.CtxPopCurrent_v2(byref(second))
            cuda.StreamWaitEvent(stream, join, 0)
            cuda.append(3, stream)
            graph = cuda.end_capture(stream)
            assert cuda.run(graph, stream) == 123
            exe = cuda.instantiate(graph)
            cuda.CtxDestroy_v2(second)
            assert cuda.code("GraphLaunch", exe, stream) == DESTROYED

    @pytest.mark.parametrize("joined", [True, False])
    def test_a_forked_stream_may_be_destroyed(self, joined):
        with graphs() as cuda:
            stream, other, fork, join = begin(cuda), cuda.stream(), cuda.event(), cuda.event()
            cuda.EventRecord(fork, stream)
            cuda.StreamWaitEvent(other, fork, 0)
            cuda.append(1, other)
            if joined:
                cuda.EventRecord(join, other)
                cuda.StreamWaitEvent(stream, join, 0)
            cuda.StreamDestroy_v2(other)
            assert end_code(cuda, stream) == ((0, True) if joined else (UNJOINED, False))

    def test_captures_do_not_merge(self):
        with graphs() as cuda:
            first, second, event = begin(cuda), begin(cuda), cuda.event()
            cuda.EventRecord(event, first)
            assert cuda.code("StreamWaitEvent", second, event, 0) == MERGE
            assert end_code(cuda, first) == end_code(cuda, second) == (INVALIDATED, False)

    def test_work_outside_is_not_waited_for(self):
        with graphs() as cuda:
            event = cuda.event()
            cuda.EventRecord(event, None)
            stream = begin(cuda)
            assert cuda.code("StreamWaitEvent", stream, event, 0) == ISOLATION
            assert cuda.status(stream) == g.INVALIDATED
            assert cuda.code("MemsetD8Async", c_uint64(cuda.word), 0, 4, stream) == INVALIDATED
            assert end_code(cuda, stream) == (INVALIDATED, False)

    def test_only_the_first_stream_ends_it(self):
        with graphs() as cuda:
            stream, other, fork = begin(cuda), cuda.stream(), cuda.event()
            cuda.EventRecord(fork, stream)
            cuda.StreamWaitEvent(other, fork, 0)
            assert end_code(cuda, other) == (UNMATCHED, False)
            assert end_code(cuda, stream) == (INVALIDATED, False)


class TestStates:
    def test_begin_and_end_where_they_do_not_belong(self):
        with graphs() as cuda:
            stream, graph = cuda.stream(), c_void_p()
            assert cuda.code("StreamEndCapture", stream, byref(graph)) == ILLEGAL_STATE
            assert cuda.code("StreamBeginCapture_v2", None, g.GLOBAL) == UNSUPPORTED
            assert cuda.code("StreamBeginCapture_v2", stream, 3) == INVALID_VALUE
            cuda.StreamBeginCapture_v2(stream, g.GLOBAL)
            assert cuda.code("StreamBeginCapture_v2", stream, g.GLOBAL) == ILLEGAL_STATE
            assert end_code(cuda, stream) == (0, True)

    def test_external_events_belong_in_captures(self):
        with graphs() as cuda:
            stream, event = cuda.stream(), cuda.event()
            assert cuda.code("EventRecordWithFlags", event, stream, EXTERNAL) == INVALID_VALUE
            assert cuda.code("StreamWaitEvent", stream, event, EXTERNAL) == INVALID_VALUE

    def test_what_is_known_of_a_capture(self):
        with graphs() as cuda:
            stream = begin(cuda)
            status, identity, graph = c_int(), c_uint64(), c_void_p()
            nodes, edges, count = ctypes.POINTER(c_void_p)(), c_void_p(), c_size_t(9)
            ask = (byref(status), byref(identity), byref(graph), byref(nodes))
            cuda.StreamGetCaptureInfo_v3(stream, *ask, byref(edges), byref(count))
            assert (status.value, count.value) == (g.ACTIVE, 0)
            cuda.append(1, stream)
            cuda.StreamGetCaptureInfo_v2(stream, *ask, byref(count))
            assert count.value == 1
            assert nodes[0] == cuda.listed("GraphGetNodes", graph)[0]
            before = identity.value
            cuda.StreamGetCaptureInfo(stream, byref(status), byref(identity))
            assert identity.value == before != 0
            assert cuda.end_capture(stream).value == graph.value
            cuda.StreamGetCaptureInfo(stream, byref(status), byref(identity))
            assert status.value == g.NONE

    @pytest.mark.parametrize(("flags", "edges"), [(0, 2), (1, 1)])
    def test_what_the_next_node_comes_after_can_be_changed(self, flags, edges):
        with graphs() as cuda:
            stream = begin(cuda)
            cuda.append(1, stream)
            status, graph = c_int(), c_void_p()
            cuda.StreamGetCaptureInfo_v2(stream, byref(status), None, byref(graph), None, None)
            node = cuda.add_kernel(graph, 2)
            cuda.StreamUpdateCaptureDependencies_v2(stream, handles([node]), None, 1, flags)
            cuda.append(3, stream)
            cuda.end_capture(stream)
            last = c_void_p(cuda.listed("GraphGetNodes", graph)[-1])
            assert len(cuda.listed("GraphNodeGetDependencies", last)) == edges
            wrong = ("StreamUpdateCaptureDependencies", stream, None, 0, 0)
            assert cuda.code(*wrong) == ILLEGAL_STATE

    def test_a_destroyed_stream_takes_its_capture_along(self):
        with graphs() as cuda:
            stream, other, fork = begin(cuda), cuda.stream(), cuda.event()
            cuda.EventRecord(fork, stream)
            cuda.StreamWaitEvent(other, fork, 0)
            cuda.StreamDestroy_v2(stream)
            assert cuda.status(other) == g.NONE
            cuda.append(1, other)
            assert cuda.digits == 1

    def test_a_destroyed_context_takes_its_captures_along(self):
        with graphs() as cuda:
            other = c_void_p()
            cuda.CtxCreate_v2(byref(other), 0, 0)
            begin(cuda)
            cuda.CtxDestroy_v2(other)
            cuda.MemAlloc_v2(byref(c_uint64()), 16)


class TestForbidden:
    """Each case: what the host may not ask meanwhile, what it is told, and that it breaks."""

    @pytest.mark.parametrize("name", ["StreamSynchronize", "StreamQuery"])
    def test_waiting_for_a_capturing_stream(self, name):
        with graphs() as cuda:
            stream = begin(cuda, g.RELAXED)
            assert cuda.code(name, stream) == UNSUPPORTED
            assert cuda.code(name, stream) == INVALIDATED
            assert end_code(cuda, stream) == (INVALIDATED, False)

    def test_waiting_for_the_context(self):
        with graphs() as cuda:
            stream = begin(cuda, g.RELAXED)
            assert cuda.code("CtxSynchronize") == UNSUPPORTED
            assert end_code(cuda, stream) == (INVALIDATED, False)
            cuda.CtxSynchronize()

    @pytest.mark.parametrize("name", ["EventSynchronize", "EventQuery"])
    def test_waiting_for_a_captured_event(self, name):
        with graphs() as cuda:
            stream, event = begin(cuda, g.RELAXED), cuda.event()
            cuda.EventRecord(event, stream)
            assert cuda.code(name, event) == CAPTURED_EVENT
            assert end_code(cuda, stream) == (INVALIDATED, False)
            assert cuda.code(name, event) == CAPTURED_EVENT
            cuda.EventRecord(event, stream)
            assert cuda.code(name, event) == 0

    def test_the_legacy_stream_would_wait_for_blocking_ones(self):
        with graphs() as cuda:
            blocking = begin(cuda, g.RELAXED, BLOCKING)
            status = c_int()
            assert cuda.code("StreamIsCapturing", None, byref(status)) == IMPLICIT
            assert cuda.status(blocking) == g.ACTIVE
            code = cuda.code("MemcpyHtoD_v2", c_uint64(cuda.word), b"1234", 4)
            assert code == IMPLICIT
            assert end_code(cuda, blocking) == (INVALIDATED, False)

    def test_it_does_not_wait_for_others(self):
        with graphs() as cuda:
            stream = begin(cuda, g.RELAXED)
            cuda.append(3, None)
            cuda.append(1, stream)
            assert end_code(cuda, stream) == (0, True)
            assert cuda.digits == 3

    def test_calls_that_captures_do_not_take(self):
        call = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_void_p)(lambda *_: None)
        with graphs() as cuda:
            exe = cuda.instantiate(cuda.graph())
            for name, arguments in (
                ("StreamAddCallback", (call, None, 0)),
                ("StreamAttachMemAsync", (c_uint64(cuda.word), c_size_t(0), 4)),
            ):
                stream = begin(cuda, g.RELAXED)
                assert cuda.code(name, stream, *arguments) == UNSUPPORTED
                assert end_code(cuda, stream) == (INVALIDATED, False)
            for name in ("GraphLaunch", "GraphUpload"):
                stream = begin(cuda, g.RELAXED)
                assert cuda.code(name, exe, stream) == UNSUPPORTED
                assert end_code(cuda, stream) == (INVALIDATED, False)

    def test_a_bad_call_captures_nothing_and_breaks_nothing(self):
        with graphs() as cuda:
            stream = begin(cuda)
            pointers = cuda.arguments(1)
            launch = (cuda.add_function, 1, 1, 1, 2048, 1, 1, 0, stream, pointers, None)
            assert cuda.code("LaunchKernel", *launch) == INVALID_VALUE
            assert cuda.code("MemFreeAsync", c_uint64(cuda.word), stream) == INVALID_VALUE
            cuda.append(5, stream)
            assert cuda.run(cuda.end_capture(stream)) == 5


class TestModes:
    @staticmethod
    def exchange(cuda, mode):
        value = c_int(mode)
        cuda.ThreadExchangeStreamCaptureMode(byref(value))
        return value.value

    @staticmethod
    def in_a_thread(action):
        """What a call says in another thread."""
        said = []
        thread = threading.Thread(target=lambda: said.append(action()))
        thread.start()
        thread.join()
        return said[0]

    @pytest.mark.parametrize(
        ("mode", "told"), [(g.GLOBAL, UNSUPPORTED), (g.THREAD_LOCAL, UNSUPPORTED), (g.RELAXED, 0)]
    )
    def test_unsafe_calls_of_the_capturing_thread(self, mode, told):
        with graphs() as cuda:
            stream = begin(cuda, mode)
            assert cuda.code("MemAlloc_v2", byref(c_uint64()), 16) == told
            assert end_code(cuda, stream) == ((INVALIDATED, False) if told else (0, True))

    @pytest.mark.parametrize(("mode", "told"), [(g.GLOBAL, UNSUPPORTED), (g.THREAD_LOCAL, 0)])
    def test_unsafe_calls_of_another_thread(self, mode, told):
        with graphs() as cuda:
            current = c_void_p()
            cuda.CtxGetCurrent(byref(current))
            stream = begin(cuda, mode)

            def allocate():
                cuda.CtxSetCurrent(current)
                return cuda.code("MemAlloc_v2", byref(c_uint64()), 16)

            assert self.in_a_thread(allocate) == told
            assert end_code(cuda, stream) == ((INVALIDATED, False) if told else (0, True))

    def test_a_thread_that_says_it_knows_better(self):
        with graphs() as cuda:
            stream = begin(cuda)
            assert self.exchange(cuda, g.RELAXED) == g.GLOBAL
            try:
                cuda.MemAlloc_v2(byref(c_uint64()), 16)
                assert (
                    cuda.code("ThreadExchangeStreamCaptureMode", byref(c_int(3))) == INVALID_VALUE
                )
            finally:
                assert self.exchange(cuda, g.GLOBAL) == g.RELAXED
            assert end_code(cuda, stream) == (0, True)

    @pytest.mark.parametrize(("mode", "told"), [(g.THREAD_LOCAL, WRONG_THREAD), (g.RELAXED, 0)])
    def test_who_may_end_a_capture(self, mode, told):
        with graphs() as cuda:
            current, graph = c_void_p(), c_void_p()
            cuda.CtxGetCurrent(byref(current))
            stream = begin(cuda, mode)

            def end():
                cuda.CtxSetCurrent(current)
                return cuda.code("StreamEndCapture", stream, byref(graph))

            assert self.in_a_thread(end) == told
            assert end_code(cuda, stream)[0] == (0 if told else ILLEGAL_STATE)


class TestTime:
    """A graph is launched one gap after what came before; its kernels follow without."""

    TINY_S, GAP_S = 1.31e-6, 1.30e-6

    @pytest.fixture
    def tiny(self):
        return g.FakeKernel("tiny", duration_s=self.TINY_S)

    def timed(self, cuda, stream, work):
        first, last = cuda.event(), cuda.event()
        cuda.EventRecord(first, stream)
        work()
        cuda.EventRecord(last, stream)
        return cuda.elapsed_s(first, last)

    def captured(self, cuda, work):
        stream = begin(cuda)
        work(stream)
        return cuda.instantiate(cuda.end_capture(stream))

    def test_a_chain_of_kernels_against_a_stream(self, tiny):
        with graphs(tiny) as cuda:
            stream, function = cuda.stream(), cuda.function(cuda.module(), "tiny")

            def chain(where):
                for _ in range(20):
                    cuda.launch(function, stream=where)

            exe = self.captured(cuda, chain)
            streamed = self.timed(cuda, stream, lambda: chain(stream))
            graphed = self.timed(cuda, stream, lambda: cuda.GraphLaunch(exe, stream))
            assert streamed == pytest.approx(20 * (self.TINY_S + self.GAP_S), rel=1e-3)
            assert graphed == pytest.approx(self.GAP_S + 20 * self.TINY_S, rel=1e-3)
            assert streamed / graphed == pytest.approx(1.9, abs=0.02)
            again = self.timed(
                cuda, stream, lambda: [cuda.GraphLaunch(exe, stream) for _ in range(10)]
            )
            assert again == pytest.approx(10 * graphed, rel=1e-3)

    def test_branches_overlap(self):
        slow = g.FakeKernel("slow", duration_s=1e-3)
        with graphs(slow) as cuda:
            stream, function = cuda.stream(), cuda.function(cuda.module(), "slow")

            def branches(where):
                fork, others = cuda.event(), [cuda.stream() for _ in range(3)]
                cuda.launch(function, stream=where)
                cuda.EventRecord(fork, where)
                for other in others:
                    cuda.StreamWaitEvent(other, fork, 0)
                    cuda.launch(function, stream=other)
                for other in others:
                    join = cuda.event()
                    cuda.EventRecord(join, other)
                    cuda.StreamWaitEvent(where, join, 0)
                cuda.launch(function, stream=where)

            exe = self.captured(cuda, branches)
            took = self.timed(cuda, stream, lambda: cuda.GraphLaunch(exe, stream))
            assert took == pytest.approx(3e-3, rel=5e-3)

    def test_what_comes_after_waits_for_the_whole_graph(self):
        slow = g.FakeKernel("slow", duration_s=1e-3)
        with graphs(slow) as cuda:
            graph, stream, pointers = cuda.graph(), cuda.stream(), (c_void_p * 1)()
            params = cuda.kernel_params(0)
            params.function = cuda.function(cuda.module(), "slow").value
            params.parameters = ctypes.addressof(pointers)
            first = cuda.add("Kernel", graph, [], byref(params))
            cuda.add("Kernel", graph, [first], byref(params))
            cuda.add("Kernel", graph, [], byref(params))
            exe = cuda.instantiate(graph)
            took = self.timed(cuda, stream, lambda: cuda.GraphLaunch(exe, stream))
            assert took == pytest.approx(2e-3, rel=5e-3)


class TestThreads:
    """Threads that capture with the same streams get errors, and nobody crashes."""

    THREADS, ROUNDS = 8, 60

    def test_many_threads_share_streams(self):
        with graphs() as cuda:
            current, codes = c_void_p(), set()
            cuda.CtxGetCurrent(byref(current))
            streams = [cuda.stream() for _ in range(3)]
            events, place = [cuda.event() for _ in range(3)], cuda.allocate(64)

            def work(seed):
                cuda.CtxSetCurrent(current)
                graph, address = c_void_p(), c_uint64()
                for turn in range(self.ROUNDS):
                    stream, other = streams[(seed + turn) % 3], streams[(seed * turn) % 3]
                    event = events[turn % 3]
                    room = () if turn % 7 == 0 else (byref(c_int()),)
                    calls = (
                        ("StreamBeginCapture_v2", stream, g.RELAXED),
                        ("MemsetD8Async", c_uint64(place), turn, 64, stream),
                        ("EventRecord", event, stream),
                        ("StreamWaitEvent", other, event, 0),
                        ("MemAllocAsync", byref(address), 256, stream),
                        ("MemFreeAsync", address, stream),
                        ("StreamQuery" if turn % 7 == 0 else "StreamIsCapturing", stream, *room),
                        ("StreamEndCapture", stream, byref(graph)),
                    )
                    codes.update(cuda.code(name, *arguments) for name, *arguments in calls)

            threads = [threading.Thread(target=work, args=(seed,)) for seed in range(self.THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for stream in streams:
                end_code(cuda, stream)
            capture_errors = {*range(900, 909), INVALID_VALUE, ILLEGAL_STATE}
            assert codes <= {0} | capture_errors
            stream = begin(cuda)
            cuda.append(1, stream)
            assert cuda.run(cuda.end_capture(stream)) == 1
