"""CUDA's graph structures as a client lays them out, and a driver client that builds graphs."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char, c_int, c_size_t, c_uint32, c_uint64, c_ushort, c_void_p

from tests.helpers.cuda_client import Cuda, FakeCompiler, FakeKernel, Warp, context

KERNEL, MEMCPY, MEMSET, HOST, CHILD, EMPTY, WAIT, RECORD = range(8)
ALLOC, FREE, MEMORY_OPS, CONDITIONAL = 10, 11, 12, 13
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
NONE, ACTIVE, INVALIDATED = 0, 1, 2
NON_BLOCKING = 1
HOST_CALL = ctypes.CFUNCTYPE(None, c_void_p)


class Kernel(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS."""

    _fields_ = (
        ("function", c_void_p), ("grid", c_uint32 * 3), ("block", c_uint32 * 3),
        ("shared", c_uint32), ("parameters", c_void_p), ("extra", c_void_p),
        ("kernel", c_void_p), ("context", c_void_p),
    )  # fmt: skip


class Copy(ctypes.Structure):
    """CUDA_MEMCPY3D."""

    _fields_ = (
        ("src_x", c_size_t), ("src_y", c_size_t), ("src_z", c_size_t), ("src_lod", c_size_t),
        ("src_type", c_uint32), ("src_host", c_void_p), ("src_device", c_uint64),
        ("src_array", c_void_p), ("src_reserved", c_void_p), ("src_pitch", c_size_t),
        ("src_height", c_size_t),
        ("dst_x", c_size_t), ("dst_y", c_size_t), ("dst_z", c_size_t), ("dst_lod", c_size_t),
        ("dst_type", c_uint32), ("dst_host", c_void_p), ("dst_device", c_uint64),
        ("dst_array", c_void_p), ("dst_reserved", c_void_p), ("dst_pitch", c_size_t),
        ("dst_height", c_size_t),
        ("width", c_size_t), ("height", c_size_t), ("depth", c_size_t),
    )  # fmt: skip


def copy(to: int, source: int, size: int) -> Copy:
    """Bytes that lie together."""
    unified = 4
    return Copy(
        dst_type=unified, dst_device=to, src_type=unified, src_device=source, width=size,
        height=1, depth=1,
    )  # fmt: skip


class Fill(ctypes.Structure):
    """CUDA_MEMSET_NODE_PARAMS."""

    _fields_ = (
        ("address", c_uint64), ("pitch", c_size_t), ("value", c_uint32),
        ("element_bytes", c_uint32), ("width", c_size_t), ("height", c_size_t),
    )  # fmt: skip


class HostCall(ctypes.Structure):
    """CUDA_HOST_NODE_PARAMS."""

    _fields_ = (("call", HOST_CALL), ("data", c_void_p))


class PoolProps(ctypes.Structure):
    """CUmemPoolProps."""

    _fields_ = (
        ("alloc_type", c_int), ("handle_types", c_int), ("location_type", c_int),
        ("location", c_int), ("security", c_void_p), ("max_size", c_size_t), ("usage", c_ushort),
        ("reserved", c_char * 54),
    )  # fmt: skip


class Alloc(ctypes.Structure):
    """CUDA_MEM_ALLOC_NODE_PARAMS."""

    _fields_ = (
        ("pool", PoolProps), ("access", c_void_p), ("access_count", c_size_t), ("bytes", c_size_t),
        ("address", c_uint64),
    )  # fmt: skip

    @classmethod
    def of(cls, size: int) -> Alloc:
        """Ask for memory of device 0."""
        return cls(PoolProps(alloc_type=1, location_type=1), bytes=size)


class MemoryOp(ctypes.Structure):
    """CUstreamBatchMemOpParams."""

    _fields_ = (
        ("operation", c_int), ("address", c_uint64), ("value", c_uint64), ("flags", c_uint32),
        ("alias", c_uint64), ("pad", c_uint64),
    )  # fmt: skip


class MemoryOps(ctypes.Structure):
    """CUDA_BATCH_MEM_OP_NODE_PARAMS."""

    _fields_ = (
        ("context", c_void_p), ("count", c_uint32), ("operations", POINTER(MemoryOp)),
        ("flags", c_uint32),
    )  # fmt: skip


class Conditional(ctypes.Structure):
    """CUDA_CONDITIONAL_NODE_PARAMS."""

    _fields_ = (
        ("handle", c_uint64), ("type", c_int), ("size", c_uint32), ("bodies", POINTER(c_void_p)),
        ("context", c_void_p),
    )  # fmt: skip


class Edge(ctypes.Structure):
    """CUgraphEdgeData."""

    _fields_ = (("ports", c_char * 2), ("type", c_char), ("reserved", c_char * 5))


class _CopyNode(ctypes.Structure):
    _fields_ = (("flags", c_int), ("reserved", c_int), ("context", c_void_p), ("copy", Copy))


class _Any(ctypes.Union):
    _fields_ = (
        ("bytes", c_char * 232), ("kernel", Kernel), ("copy", _CopyNode), ("fill", Fill),
        ("host", HostCall), ("graph", c_void_p), ("event", c_void_p), ("alloc", Alloc),
        ("freed", c_uint64), ("memory_ops", MemoryOps), ("conditional", Conditional),
    )  # fmt: skip


class Params(ctypes.Structure):
    """CUgraphNodeParams."""

    _anonymous_ = ("any",)
    _fields_ = (
        ("type", c_int), ("reserved0", c_int * 3), ("any", _Any), ("reserved2", ctypes.c_longlong)
    )  # fmt: skip


class InstantiateParams(ctypes.Structure):
    """CUDA_GRAPH_INSTANTIATE_PARAMS."""

    _fields_ = (
        ("flags", c_uint64), ("stream", c_void_p), ("error_node", c_void_p), ("result", c_int)
    )  # fmt: skip


class UpdateResult(ctypes.Structure):
    """CUgraphExecUpdateResultInfo."""

    _fields_ = (("result", c_int), ("error_node", c_void_p), ("error_from", c_void_p))


def add_one(warp: Warp) -> None:
    """Body of a kernel that adds its second parameter to the word its first one points to."""
    word = c_uint32.from_address(int(warp.parameter(0, c_uint64)))
    word.value = 10 * word.value + int(warp.parameter(8, c_uint32))


ADD = FakeKernel("add", add_one, ((0, 8), (8, 4)), duration_s=1.3e-6)
"""Appends a decimal digit to a word, so that the order of launches can be read from it."""


class GraphClient(Cuda):
    """A driver client with a word of device memory, a kernel that appends digits, and graphs."""

    def __init__(self) -> None:
        self.word = 0
        self.add_function = c_void_p()

    def start(self) -> None:
        """Once there is a context."""
        self.word = self.allocate(4)
        self.add_function = self.function(self.module(), "add")
        self.clear()

    def clear(self) -> None:
        """Set the word to 0."""
        self.write(self.word, bytes(4))

    @property
    def digits(self) -> int:
        """The word."""
        return int.from_bytes(self.read(self.word, 4), "little")

    def graph(self) -> c_void_p:
        """Make one."""
        graph = c_void_p()
        self.GraphCreate(byref(graph), 0)
        return graph

    def stream(self, flags: int = NON_BLOCKING) -> c_void_p:
        """Make one."""
        stream = c_void_p()
        self.StreamCreate(byref(stream), flags)
        return stream

    def event(self, flags: int = 0) -> c_void_p:
        """Make one."""
        event = c_void_p()
        self.EventCreate(byref(event), flags)
        return event

    def arguments(self, digit: int, word: int | None = None) -> ctypes.Array:
        """Pointers to the kernel's parameters, which live as long as the array."""
        values = (c_uint64(word or self.word), c_uint32(digit))
        pointers = (c_void_p * 2)(*(ctypes.addressof(value) for value in values))
        pointers.values = values
        return pointers

    def kernel_params(self, digit: int, word: int | None = None) -> Kernel:
        """A launch of one warp."""
        pointers = self.arguments(digit, word)
        params = Kernel(
            self.add_function.value, (c_uint32 * 3)(1, 1, 1), (c_uint32 * 3)(32, 1, 1), 0,
            ctypes.addressof(pointers),
        )  # fmt: skip
        params.keep = pointers
        return params

    def append(self, digit: int, stream: c_void_p | None = None, word: int | None = None) -> None:
        """Launch the kernel, or capture it."""
        pointers = self.arguments(digit, word)
        self.LaunchKernel(self.add_function, 1, 1, 1, 32, 1, 1, 0, stream, pointers, None)

    def add(
        self, kind: str, graph: c_void_p, after: Sequence[c_void_p] = (), *parameters: object
    ) -> c_void_p:
        """``add("Kernel", graph, [a], byref(params))`` calls ``cuGraphAddKernelNode``."""
        node = c_void_p()
        name = {"Kernel": "GraphAddKernelNode_v2"}.get(kind, f"GraphAdd{kind}Node")
        getattr(self, name)(byref(node), graph, handles(after), len(after), *parameters)
        return node

    def add_kernel(self, graph: c_void_p, digit: int, after: Sequence[c_void_p] = ()) -> c_void_p:
        """Append a digit after other nodes."""
        return self.add("Kernel", graph, after, byref(self.kernel_params(digit)))

    def instantiate(self, graph: c_void_p, flags: int = 0) -> c_void_p:
        """Make an executable graph."""
        exe = c_void_p()
        self.GraphInstantiateWithFlags(byref(exe), graph, flags)
        return exe

    def run(self, graph: c_void_p, stream: c_void_p | None = None) -> int:
        """Launch a graph once; the digits that it left."""
        self.clear()
        exe = self.instantiate(graph)
        self.GraphLaunch(exe, stream)
        self.GraphExecDestroy(exe)
        return self.digits

    def listed(self, name: str, handle: c_void_p) -> list[int]:
        """What a call that gives a list of nodes gives."""
        count = c_size_t()
        getattr(self, name)(handle, None, byref(count))
        found = (c_void_p * max(count.value, 1))()
        getattr(self, name)(handle, found, byref(count))
        return list(found[: count.value])

    def end_capture(self, stream: c_void_p) -> c_void_p:
        """The graph."""
        graph = c_void_p()
        self.StreamEndCapture(stream, byref(graph))
        return graph

    def status(self, stream: c_void_p) -> int:
        """Whether it captures."""
        status = c_int()
        self.StreamIsCapturing(stream, byref(status))
        return status.value

    def elapsed_s(self, first: c_void_p, last: c_void_p) -> float:
        """Virtual time between two events."""
        milliseconds = ctypes.c_float()
        self.EventElapsedTime(byref(milliseconds), first, last)
        return milliseconds.value / 1e3


def handles(nodes: Sequence[c_void_p]) -> ctypes.Array | None:
    """An array of handles; null when there are none."""
    if not nodes:
        return None
    return (c_void_p * len(nodes))(*(node.value for node in nodes))


@contextmanager
def graphs(*more: FakeKernel) -> Iterator[GraphClient]:
    """A client in a context of its own, whose kernels are Python functions."""
    cuda = GraphClient()
    with FakeCompiler((ADD, *more)).registered(), context():
        cuda.start()
        yield cuda
