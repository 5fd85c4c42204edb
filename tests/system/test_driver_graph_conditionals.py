"""Nodes of CUDA graphs that run their bodies on a condition."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_uint32, c_uint64, c_void_p

import pytest

from tests.helpers import graphs as g
from tests.helpers.graphs import graphs, handles

INVALID_VALUE = 1
NOT_SUPPORTED = 801
OPERATION_NOT_SUPPORTED, HANDLE_UNUSED = 3, 5


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
