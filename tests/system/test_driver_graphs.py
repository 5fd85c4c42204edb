"""CUDA graphs through the driver: what nodes do, in which order, and what is told of them."""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_int, c_size_t, c_uint32, c_uint64, c_void_p

import pytest

from tests.helpers import graphs as g
from tests.helpers.cuda_client import CallError
from tests.helpers.graphs import graphs, handles

INVALID_VALUE = 1
NOT_SUPPORTED, UPDATE_FAILURE = 801, 910
FROM_HOST = 1


class TestOrder:
    def test_nodes_run_after_what_they_depend_on(self):
        with graphs() as cuda:
            graph = cuda.graph()
            first = cuda.add_kernel(graph, 1)
            third = cuda.add_kernel(graph, 3)
            second = cuda.add_kernel(graph, 2, [first])
            cuda.GraphAddDependencies(graph, handles([second]), handles([third]), 1)
            assert cuda.run(graph) == 123

    def test_without_dependencies_they_run_as_they_were_made(self):
        with graphs() as cuda:
            graph = cuda.graph()
            for digit in (4, 2, 7):
                cuda.add_kernel(graph, digit)
            assert cuda.run(graph) == 427

    def test_each_launch_runs_them_again(self):
        with graphs() as cuda:
            graph = cuda.graph()
            cuda.add_kernel(graph, 3)
            exe = cuda.instantiate(graph)
            for _ in range(4):
                cuda.GraphLaunch(exe, None)
            assert cuda.digits == 3333

    def test_an_executable_graph_is_a_copy(self):
        with graphs() as cuda:
            graph = cuda.graph()
            node = cuda.add_kernel(graph, 1)
            exe = cuda.instantiate(graph)
            cuda.GraphKernelNodeSetParams_v2(node, byref(cuda.kernel_params(2)))
            cuda.add_kernel(graph, 3)
            cuda.GraphDestroy(graph)
            cuda.GraphLaunch(exe, None)
            assert cuda.digits == 1


class TestNodes:
    def test_copies_fills_and_empty_nodes(self):
        with graphs() as cuda:
            graph, other = cuda.graph(), cuda.allocate(16)
            fill = cuda.add("Memset", graph, [], byref(g.Fill(other, 0, 0x0201, 2, 8, 1)), None)
            empty = cuda.add("Empty", graph, [fill])
            cuda.add("Memcpy", graph, [empty], byref(g.copy(cuda.word, other, 4)), None)
            assert cuda.run(graph) == 0x02010201

    def test_a_copy_of_a_box(self):
        with graphs() as cuda:
            graph, wide = cuda.graph(), cuda.allocate(64)
            source = ctypes.create_string_buffer(bytes(range(16)))
            params = g.Copy(
                src_type=FROM_HOST, src_host=ctypes.addressof(source), src_pitch=4, src_height=4,
                dst_type=2, dst_device=wide, dst_pitch=16, dst_height=4, width=4, height=4, depth=1,
            )  # fmt: skip
            cuda.add("Memcpy", graph, [], byref(params), None)
            cuda.run(graph)
            rows = cuda.read(wide, 64)
            assert b"".join(rows[16 * y : 16 * y + 4] for y in range(4)) == bytes(range(16))

    def test_host_functions_run_in_order(self):
        with graphs() as cuda:
            seen = []
            call = g.HOST_CALL(lambda data: seen.append((data, cuda.digits)))
            graph = cuda.graph()
            node = cuda.add_kernel(graph, 5)
            node = cuda.add("Host", graph, [node], byref(g.HostCall(call, 77)))
            cuda.add_kernel(graph, 6, [node])
            assert cuda.run(graph) == 56
            assert seen == [(77, 5)]

    def test_child_graphs_are_copies(self):
        with graphs() as cuda:
            child, graph, inner = cuda.graph(), cuda.graph(), c_void_p()
            cuda.add_kernel(child, 2)
            first = cuda.add_kernel(graph, 1)
            node = cuda.add("ChildGraph", graph, [first], child)
            cuda.add_kernel(graph, 3, [node])
            cuda.add_kernel(child, 9)
            cuda.GraphDestroy(child)
            assert cuda.run(graph) == 123
            cuda.GraphChildGraphNodeGetGraph(node, byref(inner))
            cuda.add_kernel(inner, 4)
            assert cuda.run(graph) == 1243
            assert cuda.code("GraphDestroy", inner) == INVALID_VALUE

    def test_events(self):
        with graphs() as cuda:
            graph, first, last = cuda.graph(), cuda.event(), cuda.event()
            node = cuda.add("EventRecord", graph, [], first)
            node = cuda.add_kernel(graph, 1, [node])
            node = cuda.add("EventRecord", graph, [node], last)
            cuda.add("EventWait", graph, [node], first)
            assert cuda.run(graph) == 1
            assert cuda.elapsed_s(first, last) == pytest.approx(1.3e-6, rel=1e-3)
            found = c_void_p()
            cuda.GraphEventRecordNodeGetEvent(node, byref(found))
            assert found.value == last.value

    def test_batches_of_memory_operations(self):
        write, wait, absent = (
            g.MemoryOp(2, 0, 41),
            g.MemoryOp(1, 0, 41, 1),
            g.MemoryOp(1, 0, 9, 1),
        )
        with graphs() as cuda:
            for operation in (write, wait, absent):
                operation.address = cuda.word
            graph = cuda.graph()
            good = g.MemoryOps(None, 2, (g.MemoryOp * 2)(write, wait))
            cuda.add("BatchMemOp", graph, [], byref(good))
            assert cuda.run(graph) == 41
            cuda.add("BatchMemOp", graph, [], byref(g.MemoryOps(None, 1, (g.MemoryOp * 1)(absent))))
            with pytest.raises(CallError) as told:
                cuda.run(graph)
            assert told.value.code == NOT_SUPPORTED

    def test_every_kind_through_the_one_call(self):
        with graphs() as cuda:
            graph, node, event = cuda.graph(), c_void_p(), cuda.event()
            call = g.HOST_CALL(lambda _: None)
            made = [g.Params(type=kind) for kind in (g.KERNEL, g.MEMSET, g.HOST, g.EMPTY)]
            kernel = cuda.kernel_params(7)
            made[0].kernel = kernel
            made[1].fill = g.Fill(cuda.word, 0, 1, 4, 1, 1)
            made[2].host = g.HostCall(call, None)
            for kind in (g.RECORD, g.WAIT):
                made.append(g.Params(type=kind))
                made[-1].event = event.value
            for params in made:
                cuda.GraphAddNode_v2(byref(node), graph, None, None, 0, byref(params))
                kind, told = c_int(-1), g.Params()
                cuda.GraphNodeGetType(node, byref(kind))
                cuda.GraphNodeGetParams(node, byref(told))
                assert kind.value == told.type == params.type
            strange = g.Params(type=8)
            code = cuda.code("GraphAddNode_v2", byref(node), graph, None, None, 0, byref(strange))
            assert code == NOT_SUPPORTED
            strange.type = 99
            code = cuda.code("GraphAddNode_v2", byref(node), graph, None, None, 0, byref(strange))
            assert code == INVALID_VALUE


class TestQueries:
    def test_nodes_edges_and_roots(self):
        with graphs() as cuda:
            graph = cuda.graph()
            top = cuda.add("Empty", graph)
            left, right = cuda.add("Empty", graph, [top]), cuda.add("Empty", graph, [top])
            end = cuda.add("Empty", graph, [left, right])
            values = [node.value for node in (top, left, right, end)]
            assert cuda.listed("GraphGetNodes", graph) == values
            assert cuda.listed("GraphGetRootNodes", graph) == values[:1]
            assert cuda.listed("GraphNodeGetDependencies", end) == values[1:3]
            assert cuda.listed("GraphNodeGetDependentNodes", top) == values[1:3]
            count = c_size_t()
            cuda.GraphGetEdges(graph, None, None, byref(count))
            assert count.value == 4
            source, target = (c_void_p * 6)(), (c_void_p * 6)()
            count.value = 6
            cuda.GraphGetEdges(graph, source, target, byref(count))
            assert count.value == 4
            assert set(zip(source[:4], target[:4], strict=True)) == {
                (values[0], values[1]), (values[0], values[2]), (values[1], values[3]),
                (values[2], values[3]),
            }  # fmt: skip
            assert source[4:] == target[4:] == [None, None]

    def test_a_kernels_parameters_come_back(self):
        with graphs() as cuda:
            graph, told = cuda.graph(), g.Kernel()
            node = cuda.add_kernel(graph, 6)
            cuda.GraphKernelNodeGetParams_v2(node, byref(told))
            assert tuple(told.block) == (32, 1, 1)
            assert told.function == cuda.add_function.value
            pointers = (c_void_p * 2).from_address(told.parameters)
            assert c_uint64.from_address(pointers[0]).value == cuda.word
            assert c_uint32.from_address(pointers[1]).value == 6
            cuda.GraphKernelNodeSetParams_v2(node, byref(told))
            assert cuda.run(graph) == 6

    def test_attributes_of_kernels(self):
        with graphs() as cuda:
            graph, value = cuda.graph(), (c_int * 16)(-3)
            first, second = cuda.add_kernel(graph, 1), cuda.add_kernel(graph, 2)
            cuda.GraphKernelNodeSetAttribute(first, 8, value)
            cuda.GraphKernelNodeCopyAttributes(second, first)
            told = (c_int * 16)()
            cuda.GraphKernelNodeGetAttribute(second, 8, told)
            assert told[0] == -3
            clusters = (c_uint32 * 16)(2, 1, 1)
            assert cuda.code("GraphKernelNodeSetAttribute", first, 4, clusters) == NOT_SUPPORTED
            assert cuda.code("GraphKernelNodeGetAttribute", first, 99, told) == INVALID_VALUE

    def test_clones(self):
        with graphs() as cuda:
            graph, clone, twin = cuda.graph(), c_void_p(), c_void_p()
            first = cuda.add_kernel(graph, 1)
            second = cuda.add_kernel(graph, 2, [first])
            cuda.GraphClone(byref(clone), graph)
            cuda.GraphNodeFindInClone(byref(twin), second, clone)
            assert len(cuda.listed("GraphNodeGetDependencies", twin)) == 1
            assert twin.value != second.value
            cuda.GraphKernelNodeSetParams_v2(twin, byref(cuda.kernel_params(5)))
            assert (cuda.run(graph), cuda.run(clone)) == (12, 15)
            assert cuda.code("GraphNodeFindInClone", byref(twin), second, graph) == INVALID_VALUE

    def test_dot(self, tmp_path):
        with graphs() as cuda:
            graph, path = cuda.graph(), tmp_path / "graph.dot"
            first = cuda.add_kernel(graph, 1)
            cuda.add("Empty", graph, [first])
            cuda.GraphDebugDotPrint(graph, str(path).encode(), 1)
            text = path.read_text()
            assert text.startswith("digraph")
            assert text.count("KERNEL") == text.count("EMPTY") == text.count("->") == 1
            assert "<<<(1, 1, 1), (32, 1, 1), 0>>>" in text
            nowhere = str(tmp_path / "no" / "graph.dot").encode()
            assert cuda.code("GraphDebugDotPrint", graph, nowhere, 0) == 304


class TestThreads:
    """Graphs are the client's to guard, but no race may crash or lose memory."""

    THREADS, ROUNDS = 8, 60

    def test_many_threads_make_launch_and_destroy_the_same_graphs(self):
        legal = {0, INVALID_VALUE, NOT_SUPPORTED, UPDATE_FAILURE}
        with graphs() as cuda:
            current, codes = c_void_p(), set()
            cuda.CtxGetCurrent(byref(current))
            shared, place = [cuda.graph() for _ in range(4)], cuda.allocate(64)

            def work(seed):
                cuda.CtxSetCurrent(current)
                node, exe, told, stream = c_void_p(), c_void_p(), g.UpdateResult(), cuda.stream()
                for turn in range(self.ROUNDS):
                    graph = shared[(seed + turn) % 4]
                    fill = g.Fill(place, 0, turn, 1, 64, 1)
                    make = ("GraphAddMemsetNode", byref(node), graph, None, 0, byref(fill), None)
                    codes.add(cuda.code(*make))
                    codes.add(cuda.code("GraphInstantiate", byref(exe), graph, None, None, 0))
                    codes.add(cuda.code("GraphLaunch", exe, stream))
                    codes.add(cuda.code("GraphExecUpdate_v2", exe, graph, byref(told)))
                    codes.add(cuda.code("GraphDestroyNode", node))
                    codes.add(cuda.code("GraphExecDestroy", exe))
                    if turn == self.ROUNDS // 2:
                        codes.add(cuda.code("GraphDestroy", graph))

            threads = [threading.Thread(target=work, args=(seed,)) for seed in range(self.THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert codes <= legal
