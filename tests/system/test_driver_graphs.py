"""CUDA graphs through the driver: what nodes do, in which order, and what misuse is told."""

from __future__ import annotations

import ctypes
import sys
import threading
from ctypes import byref, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

import pytest

from tests.helpers import graphs as g
from tests.helpers.cuda_client import CallError
from tests.helpers.graphs import graphs, handles
from tests.helpers.virtual_memory import MANAGED, pointer_attribute
from va100.driver.api import driver

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from driver_tables.generate import driver_rows

INVALID_VALUE, INVALID_HANDLE, DESTROYED = 1, 400, 709
NOT_SUPPORTED, UPDATE_FAILURE = 801, 910
TOPOLOGY_CHANGED, TYPE_CHANGED, PARAMETERS_CHANGED = 2, 3, 5
INVALID_STRUCTURE, OPERATION_NOT_SUPPORTED, HANDLE_UNUSED = 2, 3, 5
AUTO_FREE, DEVICE_LAUNCH = 1, 4
UNIFIED, FROM_HOST = 4, 1
IS_MANAGED = 8


HANDLES = {
    "CUgraph",
    "CUgraphNode",
    "CUgraphExec",
    "CUuserObject",
    "CUstream",
    "CUevent",
    "CUcontext",
}
MAKERS = {"cuGraphCreate", "cuThreadExchangeStreamCaptureMode", "cuUserObjectCreate"}
"""Calls that need no handle."""


def argument_for(c_type: str, handle: int, room: ctypes.Array) -> object:
    """Garbage where a handle belongs, room where something is read or written, and ones."""
    if c_type.endswith("*"):
        return room
    return c_void_p(handle) if c_type in HANDLES else 1


def copy(to: int, source: int, size: int) -> g.Copy:
    """Bytes that lie together."""
    return g.Copy(
        dst_type=UNIFIED, dst_device=to, src_type=UNIFIED, src_device=source, width=size,
        height=1, depth=1,
    )  # fmt: skip


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
            cuda.add("Memcpy", graph, [empty], byref(copy(cuda.word, other, 4)), None)
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


class TestChanges:
    def test_edges_can_be_taken_away(self):
        with graphs() as cuda:
            graph = cuda.graph()
            first = cuda.add_kernel(graph, 1)
            second = cuda.add_kernel(graph, 2)
            cuda.GraphAddDependencies(graph, handles([second]), handles([first]), 1)
            assert cuda.run(graph) == 21
            cuda.GraphRemoveDependencies(graph, handles([second]), handles([first]), 1)
            assert cuda.run(graph) == 12
            edge = (graph, handles([second]), handles([first]), 1)
            assert cuda.code("GraphRemoveDependencies", *edge) == INVALID_VALUE

    def test_nodes_can_be_destroyed(self):
        with graphs() as cuda:
            graph = cuda.graph()
            first = cuda.add_kernel(graph, 1)
            second = cuda.add_kernel(graph, 2, [first])
            third = cuda.add_kernel(graph, 3, [second])
            cuda.GraphDestroyNode(second)
            assert cuda.listed("GraphNodeGetDependencies", third) == []
            assert cuda.run(graph) == 13
            assert cuda.code("GraphDestroyNode", second) == INVALID_VALUE

    def test_parameters_of_an_executable_graph(self):
        with graphs() as cuda:
            graph, exe = cuda.graph(), c_void_p()
            fill = cuda.add("Memset", graph, [], byref(g.Fill(cuda.word, 0, 1, 4, 1, 1)), None)
            kernel = cuda.add_kernel(graph, 2, [fill])
            exe = cuda.instantiate(graph)
            cuda.GraphExecKernelNodeSetParams_v2(exe, kernel, byref(cuda.kernel_params(7)))
            changed = g.Fill(cuda.word, 0, 5, 4, 1, 1)
            cuda.GraphExecMemsetNodeSetParams(exe, fill, byref(changed), None)
            cuda.GraphLaunch(exe, None)
            assert cuda.digits == 57
            assert cuda.run(graph) == 12
            params = byref(cuda.kernel_params(1))
            assert cuda.code("GraphExecKernelNodeSetParams_v2", exe, fill, params) == INVALID_VALUE

    def test_nodes_can_be_disabled(self):
        with graphs() as cuda:
            graph, enabled = cuda.graph(), c_uint32(9)
            node = cuda.add_kernel(graph, 1)
            cuda.add_kernel(graph, 2, [node])
            exe = cuda.instantiate(graph)
            cuda.GraphNodeSetEnabled(exe, node, 0)
            cuda.GraphNodeGetEnabled(exe, node, byref(enabled))
            cuda.GraphLaunch(exe, None)
            assert (cuda.digits, enabled.value) == (2, 0)
            empty = cuda.add("Empty", graph)
            assert cuda.code("GraphNodeSetEnabled", exe, empty, 0) == INVALID_VALUE

    def test_child_graphs_of_an_executable_graph(self):
        with graphs() as cuda:
            graph, child, other = cuda.graph(), cuda.graph(), cuda.graph()
            cuda.add_kernel(child, 1)
            cuda.add_kernel(other, 2)
            node = cuda.add("ChildGraph", graph, [], child)
            exe = cuda.instantiate(graph)
            cuda.GraphExecChildGraphNodeSetParams(exe, node, other)
            cuda.GraphLaunch(exe, None)
            assert cuda.digits == 2
            cuda.add_kernel(other, 3)
            code = cuda.code("GraphExecChildGraphNodeSetParams", exe, node, other)
            assert code == INVALID_VALUE


class TestUpdate:
    @staticmethod
    def update(cuda, exe, graph):
        told = g.UpdateResult()
        code = cuda.code("GraphExecUpdate_v2", exe, graph, byref(told))
        assert code == (UPDATE_FAILURE if told.result else 0)
        return told

    def test_parameters_are_taken_over(self):
        with graphs() as cuda:
            first, second = cuda.graph(), cuda.graph()
            for graph, digits in ((first, (1, 2)), (second, (3, 4))):
                node = cuda.add_kernel(graph, digits[0])
                cuda.add_kernel(graph, digits[1], [node])
            exe = cuda.instantiate(first)
            assert self.update(cuda, exe, second).result == 0
            cuda.GraphLaunch(exe, None)
            assert cuda.digits == 34

    def test_another_kind_of_node(self):
        with graphs() as cuda:
            first, second = cuda.graph(), cuda.graph()
            cuda.add_kernel(first, 1)
            node = cuda.add("Empty", second)
            exe = cuda.instantiate(first)
            told = self.update(cuda, exe, second)
            assert (told.result, told.error_node) == (TYPE_CHANGED, node.value)

    def test_more_nodes_or_other_edges(self):
        with graphs() as cuda:
            first, more, other = cuda.graph(), cuda.graph(), cuda.graph()
            for graph in (first, more, other):
                a, b = cuda.add_kernel(graph, 1), cuda.add_kernel(graph, 2)
            cuda.GraphAddDependencies(other, handles([a]), handles([b]), 1)
            cuda.add_kernel(more, 3)
            exe = cuda.instantiate(first)
            told = self.update(cuda, exe, more)
            assert (told.result, told.error_node) == (TOPOLOGY_CHANGED, None)
            told = self.update(cuda, exe, other)
            assert (told.result, told.error_node) == (TOPOLOGY_CHANGED, b.value)
            cuda.GraphLaunch(exe, None)
            assert cuda.digits == 12

    def test_an_edge_from_somewhere_else(self):
        with graphs() as cuda:
            first, second = cuda.graph(), cuda.graph()
            for graph in (first, second):
                nodes = [cuda.add_kernel(graph, digit) for digit in (1, 2, 3)]
                source = nodes[0] if graph is first else nodes[1]
                cuda.GraphAddDependencies(graph, handles([source]), handles(nodes[2:]), 1)
            told = self.update(cuda, cuda.instantiate(first), second)
            assert (told.result, told.error_node, told.error_from) == (
                TOPOLOGY_CHANGED, nodes[2].value, nodes[1].value,
            )  # fmt: skip

    def test_a_fill_that_becomes_a_box(self):
        with graphs() as cuda:
            first, second, place = cuda.graph(), cuda.graph(), cuda.allocate(64)
            cuda.add("Memset", first, [], byref(g.Fill(place, 0, 1, 1, 8, 1)), None)
            node = cuda.add("Memset", second, [], byref(g.Fill(place, 16, 1, 1, 8, 2)), None)
            told = self.update(cuda, cuda.instantiate(first), second)
            assert (told.result, told.error_node) == (PARAMETERS_CHANGED, node.value)


class TestMemoryNodes:
    @staticmethod
    def alloc(cuda, graph, after=(), size=4096):
        params = g.Alloc.of(size)
        node = cuda.add("MemAlloc", graph, after, byref(params))
        return node, params.address

    def test_memory_of_a_launch(self):
        with graphs() as cuda:
            graph = cuda.graph()
            node, address = self.alloc(cuda, graph)
            fill = g.Fill(address, 0, 8, 4, 4, 1)
            node = cuda.add("Memset", graph, [node], byref(fill), None)
            node = cuda.add("Memcpy", graph, [node], byref(copy(cuda.word, address, 4)), None)
            cuda.add("MemFree", graph, [node], c_uint64(address))
            exe = cuda.instantiate(graph)
            for _ in range(3):
                cuda.clear()
                cuda.GraphLaunch(exe, None)
                assert cuda.digits == 8

    def test_managed_memory(self):
        """The host reads it, and an address is not used again for memory of another kind."""
        with graphs() as cuda:
            graph, params = cuda.graph(), g.Alloc.of(4096)
            params.pool.alloc_type = MANAGED
            node = cuda.add("MemAlloc", graph, [], byref(params))
            fill = g.Fill(params.address, 0, 7, 1, 16, 1)
            node = cuda.add("Memset", graph, [node], byref(fill), None)
            cuda.GraphLaunch(cuda.instantiate(graph), None)
            cuda.StreamSynchronize(None)
            assert ctypes.string_at(params.address, 16) == bytes([7]) * 16
            assert pointer_attribute(cuda, IS_MANAGED, params.address) == 1
            cuda.MemFree_v2(c_uint64(params.address))

    def test_an_address_serves_memory_of_one_kind(self):
        with graphs() as cuda:
            graph = cuda.graph()
            node, first = self.alloc(cuda, graph)
            node = cuda.add("MemFree", graph, [node], c_uint64(first))
            params = g.Alloc.of(4096)
            params.pool.alloc_type = MANAGED
            cuda.add("MemAlloc", graph, [node], byref(params))
            assert params.address != first
            cuda.GraphLaunch(cuda.instantiate(graph, AUTO_FREE), None)

    def test_memory_of_the_host_is_refused(self):
        with graphs() as cuda:
            graph, node, params = cuda.graph(), c_void_p(), g.Alloc.of(64)
            params.pool.location_type = 2
            call = ("GraphAddMemAllocNode", byref(node), graph, None, 0, byref(params))
            assert cuda.code(*call) == NOT_SUPPORTED

    def test_what_a_launch_leaves_is_the_clients(self):
        with graphs() as cuda:
            graph = cuda.graph()
            node, address = self.alloc(cuda, graph)
            cuda.add("Memset", graph, [node], byref(g.Fill(address, 0, 5, 4, 1, 1)), None)
            exe = cuda.instantiate(graph)
            assert cuda.code("MemFree_v2", c_uint64(address)) == INVALID_VALUE
            cuda.GraphLaunch(exe, None)
            assert cuda.read(address, 4) == b"\5\0\0\0"
            assert cuda.code("GraphLaunch", exe, None) == INVALID_VALUE
            cuda.MemFreeAsync(c_uint64(address), None)
            cuda.GraphLaunch(exe, None)
            cuda.GraphExecDestroy(exe)
            cuda.GraphDestroy(graph)
            assert cuda.read(address, 4) == b"\5\0\0\0"
            cuda.MemFree_v2(c_uint64(address))
            assert cuda.code("MemFree_v2", c_uint64(address)) == INVALID_VALUE

    def test_launches_may_free_what_was_left(self):
        with graphs() as cuda:
            graph = cuda.graph()
            self.alloc(cuda, graph)
            exe = cuda.instantiate(graph, AUTO_FREE)
            for _ in range(3):
                cuda.GraphLaunch(exe, None)

    def test_addresses_are_used_again_within_a_graph(self):
        with graphs() as cuda:
            graph = cuda.graph()
            node, first = self.alloc(cuda, graph)
            node = cuda.add("MemFree", graph, [node], c_uint64(first))
            again, second = self.alloc(cuda, graph, [node])
            _, third = self.alloc(cuda, graph)
            assert first == second != third
            cuda.add("MemFree", graph, [again], c_uint64(second))
            cuda.GraphLaunch(cuda.instantiate(graph, AUTO_FREE), None)

    def test_another_graph_frees_it(self):
        with graphs() as cuda:
            giver, taker = cuda.graph(), cuda.graph()
            _, address = self.alloc(cuda, giver)
            cuda.add("MemFree", taker, [], c_uint64(address))
            give, take = cuda.instantiate(giver), cuda.instantiate(taker)
            for _ in range(2):
                cuda.GraphLaunch(give, None)
                cuda.GraphLaunch(take, None)
            assert cuda.code("GraphLaunch", take, None) == INVALID_VALUE

    def test_only_one_graph_frees(self):
        with graphs() as cuda:
            first, second, out = cuda.graph(), cuda.graph(), c_void_p()
            node, address = self.alloc(cuda, first)
            other, outside = self.alloc(cuda, first)
            cuda.add("MemFree", first, [node], c_uint64(address))
            free = ("GraphAddMemFreeNode", byref(out), second, None, 0, c_uint64(address))
            assert cuda.code(*free) == INVALID_VALUE
            cuda.add("MemFree", second, [], c_uint64(outside))
            free = (
                "GraphAddMemFreeNode",
                byref(out),
                first,
                handles([other]),
                1,
                c_uint64(outside),
            )
            assert cuda.code(*free) == INVALID_VALUE

    def test_what_such_graphs_cannot(self):
        with graphs() as cuda:
            graph, out, other = cuda.graph(), c_void_p(), cuda.graph()
            node, address = self.alloc(cuda, graph)
            exe = cuda.instantiate(graph)
            assert cuda.code("GraphClone", byref(out), graph) == NOT_SUPPORTED
            assert cuda.code("GraphDestroyNode", node) == NOT_SUPPORTED
            child = ("GraphAddChildGraphNode", byref(out), other, None, 0, graph)
            assert cuda.code(*child) == NOT_SUPPORTED
            twice = ("GraphInstantiateWithFlags", byref(out), graph, c_uint64(0))
            assert cuda.code(*twice) == NOT_SUPPORTED
            cuda.GraphExecDestroy(exe)
            cuda.instantiate(graph)
            cuda.add("MemFree", graph, [node], c_uint64(address))
            for where in (address, cuda.word):
                free = ("GraphAddMemFreeNode", byref(out), graph, None, 0, c_uint64(where))
                assert cuda.code(*free) == INVALID_VALUE

    def test_memory_that_went_with_its_context_is_no_graphs(self):
        with graphs() as cuda:
            graph, places = cuda.graph(), set()
            for _ in range(8):
                places.add(self.alloc(cuda, graph)[1])
        with graphs() as cuda:
            used = driver().va_arena_used
            used.restype = c_uint64
            before = used(0)
            found = [cuda.allocate(4096) for _ in range(16)]
            assert places & set(found)
            for address in found:
                cuda.MemFree_v2(c_uint64(address))
            assert used(0) == before
            cuda.GraphDestroy(graph)

    def test_how_much_graphs_use(self):
        def use(attribute):
            value = c_uint64()
            cuda.DeviceGetGraphMemAttribute(0, attribute, byref(value))
            return value.value

        with graphs() as cuda:
            cuda.DeviceGraphMemTrim(0)
            graph, before = cuda.graph(), [use(attribute) for attribute in (0, 2)]
            _, address = self.alloc(cuda, graph, size=1 << 20)
            assert [use(0), use(2)] == [before[0], before[1] + (1 << 20)]
            cuda.GraphLaunch(cuda.instantiate(graph), None)
            assert use(0) == before[0] + (1 << 20) <= use(1)
            cuda.MemFree_v2(c_uint64(address))
            assert use(0) == before[0] + (1 << 20)  # until it is trimmed
            cuda.DeviceGraphMemTrim(0)
            assert [use(0), use(2)] == [before[0], before[1] + (1 << 20)]
            zero = c_uint64()
            cuda.DeviceSetGraphMemAttribute(0, 1, byref(zero))
            assert use(1) == before[0]
            assert cuda.code("DeviceSetGraphMemAttribute", 0, 0, byref(zero)) == INVALID_VALUE


class TestConditionals:
    """A kernel stores into the handle, which is an address, what device code would."""

    @staticmethod
    def handle(cuda, graph, initial=0, *, assigned=True):
        handle = c_uint64()
        cuda.GraphConditionalHandleCreate(byref(handle), graph, None, initial, int(assigned))
        return handle.value

    @staticmethod
    def conditional(cuda, graph, handle, kind, size=1, after=()):
        params, node = g.Params(type=g.CONDITIONAL), c_void_p()
        params.conditional = g.Conditional(handle, kind, size)
        cuda.GraphAddNode_v2(byref(node), graph, handles(after), None, len(after), byref(params))
        return node, [c_void_p(body) for body in params.conditional.bodies[:size]]

    @pytest.mark.parametrize(("value", "digits"), [(0, 2), (1, 1), (5, 1)])
    def test_if_and_else(self, value, digits):
        with graphs() as cuda:
            graph = cuda.graph()
            handle = self.handle(cuda, graph, value)
            _, bodies = self.conditional(cuda, graph, handle, 0, 2)
            cuda.add_kernel(bodies[0], 1)
            cuda.add_kernel(bodies[1], 2)
            assert cuda.run(graph) == digits

    def test_while(self):
        def count_down(warp):
            word = c_uint32.from_address(warp.parameter(0, c_uint64))
            word.value -= 1

        down = g.FakeKernel("down", count_down, ((0, 8),), duration_s=1e-3)
        with graphs(down) as cuda:
            graph, stream = cuda.graph(), cuda.stream()
            handle = self.handle(cuda, graph, 4)
            _, (body,) = self.conditional(cuda, graph, handle, 1)
            node = cuda.add_kernel(body, 7)
            address = c_uint64(handle)
            pointers = (c_void_p * 1)(ctypes.addressof(address))
            params = cuda.kernel_params(0)
            params.function = cuda.function(cuda.module(), "down").value
            params.parameters = ctypes.addressof(pointers)
            cuda.add("Kernel", body, [node], byref(params))
            first, last = cuda.event(), cuda.event()
            cuda.EventRecord(first, stream)
            assert cuda.run(graph, stream) == 7777
            cuda.EventRecord(last, stream)
            assert cuda.elapsed_s(first, last) == pytest.approx(4e-3, rel=5e-3)
            assert cuda.run(graph) == 7777

    @pytest.mark.parametrize(("value", "digits"), [(0, 3), (2, 5), (3, 0)])
    def test_switch(self, value, digits):
        with graphs() as cuda:
            graph = cuda.graph()
            handle = self.handle(cuda, graph, value)
            _, bodies = self.conditional(cuda, graph, handle, 2, 3)
            for digit, body in enumerate(bodies, start=3):
                cuda.add_kernel(body, digit)
            assert cuda.run(graph) == digits

    def test_without_a_default_the_word_stays(self):
        with graphs() as cuda:
            graph = cuda.graph()
            handle = self.handle(cuda, graph, assigned=False)
            _, (body,) = self.conditional(cuda, graph, handle, 0)
            cuda.add_kernel(body, 1)
            exe = cuda.instantiate(graph)
            cuda.GraphLaunch(exe, None)
            assert cuda.digits == 0
            c_uint32.from_address(handle).value = 1
            cuda.GraphLaunch(exe, None)
            cuda.GraphLaunch(exe, None)
            assert cuda.digits == 11

    def test_an_update_brings_its_own_handle(self):
        with graphs() as cuda:
            made = []
            for value, digit in ((0, 1), (1, 2)):
                graph = cuda.graph()
                handle = self.handle(cuda, graph, value)
                _, (body,) = self.conditional(cuda, graph, handle, 0)
                cuda.add_kernel(body, digit)
                made.append(graph)
            exe, told = cuda.instantiate(made[0]), g.UpdateResult()
            cuda.GraphExecUpdate_v2(exe, made[1], byref(told))
            cuda.GraphDestroy(made[1])
            cuda.GraphLaunch(exe, None)
            assert cuda.digits == 2

    def test_a_body_may_use_a_handle_of_the_graph_around_it(self):
        with graphs() as cuda:
            graph, other, out = cuda.graph(), cuda.graph(), c_void_p()
            outer, inner = self.handle(cuda, graph, 1), self.handle(cuda, graph, 1)
            _, (body,) = self.conditional(cuda, graph, outer, 0)
            _, (within,) = self.conditional(cuda, body, inner, 0)
            cuda.add_kernel(within, 8)
            assert cuda.run(graph) == 8
            clone = c_void_p()
            cuda.GraphClone(byref(clone), graph)
            assert cuda.run(clone) == 8
            child = ("GraphAddChildGraphNode", byref(out), other, None, 0, graph)
            assert cuda.code(*child) == NOT_SUPPORTED

    def test_what_is_told_of_misuse(self):
        with graphs() as cuda:
            graph, other, node = cuda.graph(), cuda.graph(), c_void_p()
            handle = self.handle(cuda, graph)
            params = g.InstantiateParams()
            out = c_void_p()
            code = cuda.code("GraphInstantiateWithParams", byref(out), graph, byref(params))
            assert (code, params.result) == (INVALID_VALUE, HANDLE_UNUSED)
            for where, value, kind, size in (
                (other, handle, 0, 1), (graph, handle + 4096, 0, 1), (graph, handle, 3, 1),
                (graph, handle, 1, 2), (graph, handle, 0, 3), (graph, handle, 0, 0),
            ):  # fmt: skip
                wrong = g.Params(type=g.CONDITIONAL)
                wrong.conditional = g.Conditional(value, kind, size)
                call = ("GraphAddNode_v2", byref(node), where, None, None, 0, byref(wrong))
                assert cuda.code(*call) == INVALID_VALUE
            _, (body,) = self.conditional(cuda, graph, handle, 0)
            host = cuda.add("Host", body, [], byref(g.HostCall(g.HOST_CALL(print), None)))
            code = cuda.code("GraphInstantiateWithParams", byref(out), graph, byref(params))
            assert (code, params.result) == (NOT_SUPPORTED, OPERATION_NOT_SUPPORTED)
            assert params.error_node == host.value


class TestUserObjects:
    @staticmethod
    def made(cuda, log, count=1):
        destroy = g.HOST_CALL(log.append)
        handle = c_void_p()
        cuda.UserObjectCreate(byref(handle), c_void_p(7), destroy, count, 1)
        handle.keep = destroy
        return handle

    def test_the_last_reference_destroys(self):
        with graphs() as cuda:
            log = []
            made = self.made(cuda, log, 2)
            cuda.UserObjectRetain(made, 1)
            cuda.UserObjectRelease(made, 2)
            assert log == []
            cuda.UserObjectRelease(made, 1)
            assert log == [7]
            assert cuda.code("UserObjectRelease", made, 1) == INVALID_VALUE

    def test_graphs_and_what_is_made_of_them_hold_it(self):
        with graphs() as cuda:
            log, graph, clone = [], cuda.graph(), c_void_p()
            made = self.made(cuda, log)
            cuda.GraphRetainUserObject(graph, made, 1, 1)  # moved
            cuda.GraphClone(byref(clone), graph)
            exe = cuda.instantiate(graph)
            for destroy, handle in (
                ("GraphDestroy", graph), ("GraphDestroy", clone), ("GraphExecDestroy", exe),
            ):  # fmt: skip
                assert log == []
                getattr(cuda, destroy)(handle)
            assert log == [7]

    def test_an_update_keeps_what_the_new_graph_holds(self):
        with graphs() as cuda:
            old, new, first, second = [], [], cuda.graph(), cuda.graph()
            holders = []
            for graph, log in ((first, old), (second, new)):
                holders.append(self.made(cuda, log))
                cuda.GraphRetainUserObject(graph, holders[-1], 1, 1)
                cuda.add("Empty", graph)
            exe, told = cuda.instantiate(first), g.UpdateResult()
            cuda.GraphExecUpdate_v2(exe, second, byref(told))
            cuda.GraphDestroy(first)
            cuda.GraphDestroy(second)
            assert (old, new) == ([7], [])
            cuda.GraphExecDestroy(exe)
            assert new == [7]

    def test_misuse(self):
        with graphs() as cuda:
            out, call, graph = c_void_p(), g.HOST_CALL(print), cuda.graph()
            log = []
            made = self.made(cuda, log)
            assert cuda.code("UserObjectCreate", byref(out), None, call, 1, 0) == INVALID_VALUE
            assert cuda.code("UserObjectCreate", byref(out), None, call, 0, 1) == INVALID_VALUE
            assert cuda.code("UserObjectCreate", byref(out), None, None, 1, 1) == INVALID_VALUE
            assert cuda.code("UserObjectRelease", made, 2) == INVALID_VALUE
            assert cuda.code("GraphReleaseUserObject", graph, made, 1) == INVALID_VALUE
            assert cuda.code("GraphRetainUserObject", graph, made, 1, 2) == INVALID_VALUE


class TestMisuse:
    def test_handles_of_what_is_gone(self):
        with graphs() as cuda:
            graph, count, out = cuda.graph(), c_size_t(), c_void_p()
            node = cuda.add_kernel(graph, 1)
            exe = cuda.instantiate(graph)
            cuda.GraphDestroy(graph)
            cuda.GraphExecDestroy(exe)
            for call in (
                ("GraphDestroy", graph), ("GraphGetNodes", graph, None, byref(count)),
                ("GraphNodeGetType", node, byref(c_int())), ("GraphLaunch", exe, None),
                ("GraphExecDestroy", exe), ("GraphClone", byref(out), graph),
                ("GraphInstantiateWithFlags", byref(out), graph, c_uint64(0)),
                ("GraphDestroyNode", node), ("GraphUpload", exe, None),
            ):  # fmt: skip
                assert cuda.code(*call) == INVALID_VALUE, call

    @pytest.mark.parametrize("bad", [0, 1, 0x1C0000001000, 0xDEADBEEF00000000, (1 << 64) - 16])
    def test_handles_that_never_were(self, bad):
        with graphs() as cuda:
            handle, out = c_void_p(bad), c_void_p()
            for name in ("GraphDestroy", "GraphDestroyNode", "GraphExecDestroy"):
                assert cuda.code(name, handle) == INVALID_VALUE
            graph = cuda.graph()
            wrong = (c_void_p * 1)(bad)
            assert cuda.code("GraphAddEmptyNode", byref(out), graph, wrong, 1) == INVALID_VALUE
            assert cuda.code("GraphLaunch", handle, None) == INVALID_VALUE

    @pytest.mark.parametrize("handle", [0, 0x77, 0x1D0000001000010])
    def test_no_call_takes_handles_that_are_none(self, handle):
        room = ctypes.create_string_buffer(4096)
        with graphs() as cuda:
            rows = [row for row in driver_rows() if row.group in {"graph", "capture"}]
            rows = [row for row in rows if row.has_body and row.name not in MAKERS]
            assert len(rows) > 90
            if not handle:  # as a stream, the default one
                rows = [row for row in rows if row.group == "graph"]
            for row in rows:
                arguments = [argument_for(p.c_type, handle, room) for p in row.parameters]
                assert cuda.code(row.name.removeprefix("cu"), *arguments) != 0, row.name

    def test_no_call_takes_null_for_what_it_needs(self):
        with graphs() as cuda:
            rows = [row for row in driver_rows() if row.group in {"graph", "capture"}]
            for row in rows:
                if row.has_body and any(p.is_checked for p in row.parameters):
                    call = (row.name.removeprefix("cu"), *(0 for _ in row.parameters))
                    assert cuda.code(*call) == INVALID_VALUE, row.name

    def test_a_destroyed_context_launches_nothing(self):
        with graphs() as cuda:
            graph, other, place = cuda.graph(), c_void_p(), cuda.word
            cuda.CtxCreate_v2(byref(other), 0, 0)
            fill = g.Fill(place, 0, 1, 4, 1, 1)
            cuda.add("Memset", graph, [], byref(fill), None)
            exe, out = cuda.instantiate(graph), c_void_p()
            cuda.CtxDestroy_v2(other)
            assert cuda.code("GraphLaunch", exe, None) == DESTROYED
            assert (
                cuda.code("GraphInstantiateWithFlags", byref(out), graph, c_uint64(0)) == DESTROYED
            )
            assert cuda.digits == 0
            cuda.GraphExecDestroy(exe)

    def test_kernels_that_were_unloaded(self, tmp_path):
        with graphs() as cuda:
            module, graph, path = cuda.module(), cuda.graph(), tmp_path / "graph.dot"
            params = cuda.kernel_params(1)
            params.function = cuda.function(module, "add").value
            node = cuda.add("Kernel", graph, [], byref(params))
            exe = cuda.instantiate(graph)
            cuda.ModuleUnload(module)
            assert cuda.code("GraphLaunch", exe, None) == INVALID_HANDLE
            assert cuda.code("GraphKernelNodeGetParams_v2", node, byref(params)) == INVALID_HANDLE
            cuda.GraphDebugDotPrint(graph, str(path).encode(), 1)
            assert "unloaded" in path.read_text()

    def test_dependencies_are_checked(self):
        with graphs() as cuda:
            graph, other, out = cuda.graph(), cuda.graph(), c_void_p()
            a, b, foreign = (
                cuda.add("Empty", graph),
                cuda.add("Empty", graph),
                cuda.add("Empty", other),
            )
            cuda.GraphAddDependencies(graph, handles([a]), handles([b]), 1)
            for source, target in ((a, b), (a, a), (a, foreign), (foreign, a)):
                call = ("GraphAddDependencies", graph, handles([source]), handles([target]), 1)
                assert cuda.code(*call) == INVALID_VALUE
            assert cuda.code("GraphAddDependencies", graph, None, None, 1) == INVALID_VALUE
            twice = ("GraphAddEmptyNode", byref(out), graph, handles([a, a]), 2)
            assert cuda.code(*twice) == INVALID_VALUE
            assert cuda.code("GraphAddEmptyNode", byref(out), graph, None, 1) == INVALID_VALUE
            edge = g.Edge(type=b"\1")
            call = ("GraphAddDependencies_v2", graph, handles([b]), handles([a]), byref(edge), 1)
            assert cuda.code(*call) == NOT_SUPPORTED

    def test_cycles_are_found_when_a_graph_is_made_executable(self):
        with graphs() as cuda:
            graph, out, params = cuda.graph(), c_void_p(), g.InstantiateParams()
            a = cuda.add("Empty", graph)
            b = cuda.add("Empty", graph, [a])
            cuda.GraphAddDependencies(graph, handles([b]), handles([a]), 1)
            code = cuda.code("GraphInstantiateWithParams", byref(out), graph, byref(params))
            assert (code, params.result) == (INVALID_VALUE, INVALID_STRUCTURE)
            assert params.error_node in (a.value, b.value)

    def test_parameters_are_checked_when_a_node_is_made(self):
        with graphs() as cuda:
            graph, out = cuda.graph(), c_void_p()
            params = cuda.kernel_params(1)
            params.block[0] = 2048
            call = ("GraphAddKernelNode_v2", byref(out), graph, None, 0)
            assert cuda.code(*call, byref(params)) == INVALID_VALUE
            params = cuda.kernel_params(1)
            params.function = None
            assert cuda.code(*call, byref(params)) == INVALID_VALUE
            fill = g.Fill(cuda.word, 0, 1, 3, 1, 1)
            call = ("GraphAddMemsetNode", byref(out), graph, None, 0)
            assert cuda.code(*call, byref(fill), None) == INVALID_VALUE
            call = ("GraphAddHostNode", byref(out), graph, None, 0)
            assert cuda.code(*call, byref(g.HostCall())) == INVALID_VALUE
            call = ("GraphAddEventRecordNode", byref(out), graph, None, 0)
            assert cuda.code(*call, c_void_p(5)) == INVALID_HANDLE
            assert cuda.listed("GraphGetNodes", graph) == []

    def test_flags_are_checked(self):
        with graphs() as cuda:
            graph, out = cuda.graph(), c_void_p()
            assert cuda.code("GraphCreate", byref(out), 1) == INVALID_VALUE
            call = ("GraphInstantiateWithFlags", byref(out), graph)
            assert cuda.code(*call, c_uint64(64)) == INVALID_VALUE
            assert cuda.code(*call, c_uint64(DEVICE_LAUNCH | AUTO_FREE)) == INVALID_VALUE

    def test_for_launches_from_the_device(self):
        """They hold what the device does without the host; the host may launch them as well."""
        with graphs() as cuda:
            graph, flags, params = cuda.graph(), c_uint64(), g.InstantiateParams()
            node = cuda.add_kernel(graph, 4)
            cuda.add("Memset", graph, [node], byref(g.Fill(cuda.word + 4, 0, 1, 1, 1, 1)), None)
            exe = cuda.instantiate(graph, DEVICE_LAUNCH)
            cuda.GraphExecGetFlags(exe, byref(flags))
            cuda.GraphLaunch(exe, None)
            assert (flags.value, cuda.digits) == (DEVICE_LAUNCH, 4)
            host = cuda.add("EventRecord", graph, [node], cuda.event())
            params.flags = DEVICE_LAUNCH
            code = cuda.code("GraphInstantiateWithParams", byref(exe), graph, byref(params))
            assert (code, params.result) == (NOT_SUPPORTED, OPERATION_NOT_SUPPORTED)
            assert params.error_node == host.value


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
