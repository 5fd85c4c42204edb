"""Memory that CUDA graphs allocate and free: whose it is, when, and how much."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_uint64, c_void_p

from tests.helpers import graphs as g
from tests.helpers.graphs import graphs, handles
from tests.helpers.virtual_memory import MANAGED, pointer_attribute
from va100.driver.api import driver

INVALID_VALUE = 1
NOT_SUPPORTED = 801
AUTO_FREE = 1
IS_MANAGED = 8


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
            node = cuda.add("Memcpy", graph, [node], byref(g.copy(cuda.word, address, 4)), None)
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
