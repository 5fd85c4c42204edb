"""Graphs through both runtime libraries, whose calls differ in their parameters."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char, c_int, c_size_t, c_uint32, c_uint64, c_void_p

import pytest

from tests.helpers import graphs as g
from tests.helpers.cuda_client import no_context
from tests.helpers.graphs import handles
from va100.gpu.native import NATIVE_DIR

INVALID_VALUE, NOT_SUPPORTED, ILLEGAL_STATE, UNSUPPORTED = 1, 801, 401, 900
TO_DEVICE, TO_HOST, WITHIN, DEFAULT = 1, 2, 3, 4


class Pitched(ctypes.Structure):
    """cudaPitchedPtr."""

    _fields_ = (("pointer", c_void_p), ("pitch", c_size_t), ("width", c_size_t), ("rows", c_size_t))


class Copy(ctypes.Structure):
    """cudaMemcpy3DParms."""

    _fields_ = (
        ("src_array", c_void_p), ("src_pos", c_size_t * 3), ("src", Pitched),
        ("dst_array", c_void_p), ("dst_pos", c_size_t * 3), ("dst", Pitched),
        ("extent", c_size_t * 3), ("kind", c_int),
    )  # fmt: skip


class CopyNode(ctypes.Structure):
    """cudaGraphNodeParams of a copy."""

    _fields_ = (
        ("type", c_int), ("reserved0", c_int * 3), ("flags", c_int * 4), ("copy", Copy),
        ("rest", c_char * 64),
    )  # fmt: skip


class Runtime:
    """``cuda.Malloc(...)`` calls ``cudaMalloc`` and gives its code."""

    def __init__(self, major: int) -> None:
        self.major = major
        self.library = ctypes.CDLL(str(NATIVE_DIR / f"libcudart.so.{major}"))

    def __getattr__(self, name):
        return getattr(self.library, f"cuda{name}")

    def allocate(self, size):
        pointer = c_void_p()
        assert self.Malloc(byref(pointer), c_size_t(size)) == 0
        return pointer

    def read(self, pointer, size):
        buffer = ctypes.create_string_buffer(size)
        assert self.Memcpy(buffer, pointer, c_size_t(size), TO_HOST) == 0
        return buffer.raw

    def graph(self):
        graph = c_void_p()
        assert self.GraphCreate(byref(graph), 0) == 0
        return graph

    def run(self, graph):
        exe = c_void_p()
        assert self.GraphInstantiate(byref(exe), graph, c_uint64(0)) == 0
        assert self.GraphLaunch(exe, None) == 0
        assert self.StreamSynchronize(None) == 0
        assert self.GraphExecDestroy(exe) == 0

    def edges_data(self):
        """What the 13th runtime's calls on edges take besides."""
        return (None,) if self.major >= 13 else ()

    def add_any(self, graph, after, params):
        node, count = c_void_p(), c_size_t(len(after))
        data = self.edges_data()
        code = self.GraphAddNode(byref(node), graph, handles(after), *data, count, byref(params))
        return node, code


@pytest.fixture(params=[12, 13])
def cuda(request):
    """A runtime in its own primary context, whatever other tests left current."""
    with no_context():
        yield Runtime(request.param)


def test_nodes_made_one_by_one(cuda):
    place, node = cuda.allocate(64), [c_void_p() for _ in range(4)]
    source, target = ctypes.create_string_buffer(b"graph", 64), ctypes.create_string_buffer(64)
    graph, seen = cuda.graph(), []
    call = g.HostCall(g.HOST_CALL(lambda _: seen.append(target.raw[:8])), None)
    up = (place, source, c_size_t(5), TO_DEVICE)
    assert cuda.GraphAddMemcpyNode1D(byref(node[0]), graph, None, c_size_t(0), *up) == 0
    fill = g.Fill(place.value + 5, 0, ord("s"), 1, 3, 1)
    one = (handles(node[:1]), c_size_t(1))
    assert cuda.GraphAddMemsetNode(byref(node[1]), graph, *one, byref(fill)) == 0
    down = (target, place, c_size_t(8), DEFAULT)
    one = (handles(node[1:2]), c_size_t(1))
    assert cuda.GraphAddMemcpyNode1D(byref(node[2]), graph, *one, *down) == 0
    one = (handles(node[2:3]), c_size_t(1))
    assert cuda.GraphAddHostNode(byref(node[3]), graph, *one, byref(call)) == 0
    cuda.run(graph)
    assert seen == [b"graphsss"]
    count = c_size_t()
    assert cuda.GraphGetEdges(graph, None, None, *cuda.edges_data(), byref(count)) == 0
    assert count.value == 3
    ask = (node[3], None, *cuda.edges_data(), byref(count))
    assert cuda.GraphNodeGetDependencies(*ask) == 0
    assert count.value == 1


def test_copies_come_back_as_the_runtime_spells_them(cuda):
    wide, node = cuda.allocate(64), c_void_p()
    source = ctypes.create_string_buffer(bytes(range(16)), 16)
    copy = Copy(
        src=Pitched(ctypes.addressof(source), 4, 4, 4), dst=Pitched(wide.value, 16, 4, 4),
        extent=(c_size_t * 3)(4, 4, 1), kind=TO_DEVICE,
    )  # fmt: skip
    graph, told = cuda.graph(), Copy()
    assert cuda.GraphAddMemcpyNode(byref(node), graph, None, c_size_t(0), byref(copy)) == 0
    assert cuda.GraphMemcpyNodeGetParams(node, byref(told)) == 0
    assert (told.src.pointer, told.src.pitch, told.kind) == (ctypes.addressof(source), 4, TO_DEVICE)
    assert tuple(told.extent) == (4, 4, 1)
    assert cuda.GraphMemcpyNodeSetParams(node, byref(told)) == 0
    cuda.run(graph)
    rows = cuda.read(wide, 64)
    assert b"".join(rows[16 * y : 16 * y + 4] for y in range(4)) == bytes(range(16))


def test_nodes_of_any_kind(cuda):
    place, other = cuda.allocate(64), cuda.allocate(64)
    graph = cuda.graph()
    fill = g.Params(type=g.MEMSET)
    fill.fill = g.Fill(place.value, 0, 0x07070707, 4, 4, 1)
    first, code = cuda.add_any(graph, [], fill)
    assert code == 0
    copy = CopyNode(type=g.MEMCPY)
    copy.copy = Copy(
        src=Pitched(place.value, 16, 16, 1), dst=Pitched(other.value, 16, 16, 1),
        extent=(c_size_t * 3)(16, 1, 1), kind=WITHIN,
    )  # fmt: skip
    second, code = cuda.add_any(graph, [first], copy)
    assert code == 0
    cuda.run(graph)
    assert cuda.read(other, 16) == b"\7" * 16
    if cuda.major >= 13:
        told = CopyNode()
        assert cuda.GraphNodeGetParams(second, byref(told)) == 0
        assert (told.type, told.copy.dst.pointer) == (g.MEMCPY, other.value)
        assert told.copy.kind == WITHIN
    assert cuda.add_any(graph, [], g.Params(type=8))[1] == NOT_SUPPORTED


def test_memory_and_conditionals(cuda):
    graph, place = cuda.graph(), cuda.allocate(64)
    alloc, handle = g.Params(type=g.ALLOC), c_uint64()
    alloc.alloc = g.Alloc.of(256)
    node, code = cuda.add_any(graph, [], alloc)
    assert (code, alloc.alloc.address != 0) == (0, True)
    told = c_void_p()
    free, address = c_void_p(), c_void_p(alloc.alloc.address)
    one = (handles([node]), c_size_t(1))
    assert cuda.GraphAddMemFreeNode(byref(free), graph, *one, address) == 0
    assert cuda.GraphMemFreeNodeGetParams(free, byref(told)) == 0
    assert told.value == address.value
    assert cuda.GraphConditionalHandleCreate(byref(handle), graph, 2, 1) == 0
    switch = g.Params(type=g.CONDITIONAL)
    switch.conditional = g.Conditional(handle.value, 2, 3)
    _, code = cuda.add_any(graph, [], switch)
    assert code == 0
    for value, body in enumerate(switch.conditional.bodies[:3], start=5):
        fill = g.Params(type=g.MEMSET)
        fill.fill = g.Fill(place.value, 0, value, 1, 8, 1)
        assert cuda.add_any(c_void_p(body), [], fill)[1] == 0
    cuda.run(graph)
    assert cuda.read(place, 8) == b"\7" * 8


def test_capture(cuda):
    stream, graph, place = c_void_p(), c_void_p(), cuda.allocate(64)
    status, identity, count = c_int(), c_uint64(), c_size_t()
    assert cuda.StreamCreateWithFlags(byref(stream), 1) == 0
    assert cuda.StreamEndCapture(stream, byref(graph)) == ILLEGAL_STATE
    assert cuda.StreamBeginCapture(stream, g.THREAD_LOCAL) == 0
    assert cuda.MemsetAsync(place, 6, c_size_t(8), stream) == 0
    rest = () if cuda.major < 13 else (byref(graph), None, None, byref(count))
    assert cuda.StreamGetCaptureInfo(stream, byref(status), byref(identity), *rest) == 0
    assert status.value == g.ACTIVE
    assert count.value == (1 if cuda.major >= 13 else 0)
    assert cuda.StreamEndCapture(stream, byref(graph)) == 0
    cuda.run(graph)
    assert cuda.read(place, 8) == b"\6" * 8
    assert cuda.StreamBeginCapture(stream, g.GLOBAL) == 0
    assert cuda.StreamQuery(stream) == UNSUPPORTED
    assert cuda.StreamEndCapture(stream, byref(graph)) == 901
    assert cuda.GetLastError() == 901


def test_user_objects_and_memory_figures(cuda):
    made, graph, log, value = c_void_p(), cuda.graph(), [], c_uint64()
    destroy = g.HOST_CALL(log.append)
    assert cuda.UserObjectCreate(byref(made), c_void_p(3), destroy, 1, 1) == 0
    assert cuda.GraphRetainUserObject(graph, made, 1, 1) == 0
    assert cuda.GraphDestroy(graph) == 0
    assert log == [3]
    assert cuda.DeviceGetGraphMemAttribute(0, 0, byref(value)) == 0
    assert cuda.DeviceGraphMemTrim(0) == 0


def test_misuse(cuda):
    graph, node, exe = cuda.graph(), c_void_p(), c_void_p()
    kernel = g.Kernel(0x1234, (c_uint32 * 3)(1, 1, 1), (c_uint32 * 3)(1, 1, 1))
    add = (byref(node), graph, None, c_size_t(0))
    assert cuda.GraphAddKernelNode(*add, byref(kernel)) == 98
    assert cuda.GraphAddKernelNode(*add, None) == INVALID_VALUE
    assert cuda.GraphAddMemcpyNode1D(*add, None, None, c_size_t(4), 9) == 21
    assert cuda.GraphDestroy(graph) == 0
    assert cuda.GraphDestroy(graph) == INVALID_VALUE
    assert cuda.GraphInstantiate(byref(exe), graph, c_uint64(0)) == INVALID_VALUE
    assert cuda.GraphLaunch(exe, None) == INVALID_VALUE
