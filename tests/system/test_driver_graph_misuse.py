"""What misuse of CUDA graphs and of user objects is told."""

from __future__ import annotations

import ctypes
import sys
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
from pathlib import Path

import pytest

from tests.helpers import graphs as g
from tests.helpers.graphs import graphs, handles

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from driver_tables.generate import driver_rows

INVALID_VALUE, INVALID_HANDLE, DESTROYED = 1, 400, 709
NOT_SUPPORTED = 801
INVALID_STRUCTURE, OPERATION_NOT_SUPPORTED = 2, 3
AUTO_FREE, DEVICE_LAUNCH = 1, 4
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
