"""A driver client in the test's own process, and a compiler whose kernels are Python functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_double, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass, field

from va100.driver.api import driver, result_name

PTX = b".version 8.0\n.target sm_80\n.address_size 64\n"

_PARAM_POINTER, _COUNTERS, _CTAID, _WARP = 0, 24, 40, 52


class CallError(Exception):
    """A driver call that did not succeed."""

    def __init__(self, call: str, code: int) -> None:
        self.code = code
        super().__init__(f"{call}: {result_name(code)}")


class Cuda:
    """``cuda.MemAlloc_v2(...)`` calls ``cuMemAlloc_v2`` and raises unless it succeeds."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        function = getattr(driver(), f"cu{name}")

        def call(*arguments: object) -> None:
            code = function(*arguments)
            if code:
                raise CallError(f"cu{name}", code)

        return call

    def code(self, name: str, *arguments: object) -> int:
        """The result of a call that may fail."""
        return getattr(driver(), f"cu{name}")(*arguments)

    def allocate(self, size: int) -> int:
        """Device memory."""
        address = c_uint64()
        self.MemAlloc_v2(byref(address), size)
        return address.value

    def read(self, address: int, size: int) -> bytes:
        """Device to host."""
        buffer = ctypes.create_string_buffer(max(size, 1))
        self.MemcpyDtoH_v2(buffer, address, size)
        return buffer.raw[:size]

    def write(self, address: int, data: bytes) -> None:
        """Host to device."""
        self.MemcpyHtoD_v2(address, data, len(data))

    def module(self, image: bytes = PTX) -> c_void_p:
        """Load."""
        module = c_void_p()
        self.ModuleLoadData(byref(module), image)
        return module

    def function(self, module: c_void_p, name: str) -> c_void_p:
        """Find."""
        function = c_void_p()
        self.ModuleGetFunction(byref(function), module, c_char_p(name.encode()))
        return function

    def launch(
        self,
        function: c_void_p,
        parameters: Sequence[object] = (),
        *,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (32, 1, 1),
        shared: int = 0,
        stream: c_void_p | None = None,
    ) -> None:
        """Launch with one pointer a parameter."""
        pointers = (c_void_p * max(len(parameters), 1))(*(ctypes.addressof(p) for p in parameters))
        self.LaunchKernel(function, *grid, *block, shared, stream, pointers, None)


@contextmanager
def context(device: int = 0) -> Iterator[Cuda]:
    """A context of the test's own, destroyed with all it owns."""
    cuda = Cuda()
    cuda.Init(0)
    handle = c_void_p()
    cuda.CtxCreate_v2(byref(handle), 0, device)
    try:
        yield cuda
    finally:
        cuda.CtxDestroy_v2(handle)


@contextmanager
def no_context() -> Iterator[None]:
    """A stretch with nothing current, however many contexts other tests of the process left."""
    cuda, held, top = Cuda(), [], c_void_p()
    cuda.Init(0)
    cuda.CtxGetCurrent(byref(top))
    while top.value:
        held.append(c_void_p(top.value))
        cuda.CtxSetCurrent(None)
        cuda.CtxGetCurrent(byref(top))
    try:
        yield
    finally:
        for handle in reversed(held):
            cuda.CtxPushCurrent_v2(handle)


# ------------------------------------------------------------------ a compiler without PTX


class _Param(ctypes.Structure):
    _fields_ = (("offset", c_uint32), ("size", c_uint32))


class _Info(ctypes.Structure):
    _fields_ = (
        ("name", c_char_p), ("title", c_char_p), ("compiler_id", c_uint64),
        ("param_count", c_uint32),
        ("params", ctypes.POINTER(_Param)), ("param_bytes", c_uint32),
        ("static_shared_bytes", c_uint32), ("local_bytes", c_uint32), ("const_bytes", c_uint32),
        ("registers", c_uint32), ("max_threads", c_uint32), ("required_block", c_uint32 * 3),
        ("ptx_arch", c_uint32), ("refusal", c_char_p), ("registers_estimated", c_uint32),
    )  # fmt: skip


class _Variant(ctypes.Structure):
    _fields_ = (
        ("enter", c_void_p), ("globals", c_void_p), ("flags", c_uint32),
        ("static_shared_bytes", c_uint32), ("local_bytes", c_uint32), ("counter_count", c_uint32),
        ("param_bytes", c_uint32), ("reserved", c_uint32),
    )  # fmt: skip


class _Record(ctypes.Structure):
    _fields_ = (
        ("compiler_id", c_uint64), ("variant_id", c_uint64), ("grid", c_uint32 * 3),
        ("block", c_uint32 * 3), ("dynamic_shared_bytes", c_uint32), ("stream", c_uint32),
        ("device", c_uint32), ("counter_count", c_uint32),
        ("counters", ctypes.POINTER(c_uint64)), ("footprint_bytes", c_uint64),
        ("duration_s", c_double),
    )  # fmt: skip


_LOAD = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t, c_int, c_void_p, c_size_t)
_UNLOAD = ctypes.CFUNCTYPE(None, c_void_p)
_COMPILE = ctypes.CFUNCTYPE(
    c_int, c_uint64, ctypes.POINTER(c_uint32), ctypes.POINTER(_Variant),
    ctypes.POINTER(c_uint64), c_void_p, c_size_t,
)  # fmt: skip
_PRICE = ctypes.CFUNCTYPE(c_int, ctypes.POINTER(_Record), c_size_t)
_EXPLAIN = ctypes.CFUNCTYPE(None, c_uint64, c_uint64, c_void_p, c_void_p, c_size_t)
_ENTER = ctypes.CFUNCTYPE(None, c_void_p, c_uint32)
_WARP_STRIDE = 256


class _Backend(ctypes.Structure):
    _fields_ = (
        ("size", c_uint32), ("reserved", c_uint32), ("load", _LOAD), ("unload", _UNLOAD),
        ("compile", _COMPILE), ("price", _PRICE), ("explain", _EXPLAIN),
    )  # fmt: skip


@dataclass(frozen=True)
class Warp:
    """What a kernel that is a Python function gets to see."""

    address: int
    first: int
    """Address of the CTA's first warp, which alone need know what all of them share."""

    @property
    def ctaid(self) -> tuple[int, ...]:
        """Index of the CTA."""
        return tuple((c_uint32 * 3).from_address(self.first + _CTAID))

    @property
    def index(self) -> int:
        """Index of the warp in its CTA."""
        return c_uint32.from_address(self.address + _WARP).value

    def parameter(self, offset: int, kind: type) -> int | float:
        """Value at an offset of the parameter block."""
        block = c_uint64.from_address(self.address + _PARAM_POINTER).value
        return kind.from_address(block + offset).value

    def count(self, counter: int) -> None:
        """Add one to a counter."""
        base = c_uint64.from_address(self.address + _COUNTERS).value
        c_uint64.from_address(base + 8 * counter).value += 1


@dataclass
class FakeKernel:
    """A kernel: its body runs once a warp."""

    name: str
    body: Callable[[Warp], None] = lambda _: None
    parameters: tuple[tuple[int, int], ...] = ()
    static_shared: int = 0
    registers: int = 32
    registers_estimated: bool = False
    max_threads: int = 1024
    required_block: tuple[int, int, int] = (0, 0, 0)
    duration_s: float = 1e-3
    counters: int = 1
    refusal: str = ""

    @property
    def parameter_bytes(self) -> int:
        """Size of the parameter block."""
        return max((offset + size for offset, size in self.parameters), default=0)


@dataclass
class FakeCompiler:
    """Answers the native driver with :class:`FakeKernel` s; every image holds all of them."""

    kernels: tuple[FakeKernel, ...]
    variables: dict[str, tuple[int, int]] = field(default_factory=dict)
    load_result: tuple[int, str] = (0, "")
    images: list[bytes] = field(default_factory=list)
    compiled: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    unloaded: int = 0
    priced: list[tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)
    footprints: list[int] = field(default_factory=list)
    keep: list[object] = field(default_factory=list)

    def load(self, module, image, size, _device, text, room) -> int:
        """Report every kernel."""
        self.images.append(ctypes.string_at(image, size))
        code, message = self.load_result
        if code:
            raw = message.encode()[: room - 1] + b"\0"
            ctypes.memmove(text, raw, len(raw))
            return code
        for number, kernel in enumerate(self.kernels):
            parameters = (_Param * max(len(kernel.parameters), 1))(*kernel.parameters)
            info = _Info(
                kernel.name.encode(), None, number, len(kernel.parameters), parameters,
                kernel.parameter_bytes, kernel.static_shared, 0, 0, kernel.registers,
                kernel.max_threads, (c_uint32 * 3)(*kernel.required_block), 80,
                kernel.refusal.encode() or None, kernel.registers_estimated,
            )  # fmt: skip
            driver().va_module_add_kernel(c_void_p(module), byref(info))
        for name, (address, size) in self.variables.items():
            driver().va_module_add_global(
                c_void_p(module), name.encode(), c_uint64(address), c_uint64(size), 0
            )
        return 0

    def unload(self, _module) -> None:
        """Count."""
        self.unloaded += 1

    def compile(self, number, block, out, variant, _text, _room) -> int:
        """Hand out the Python function behind a C pointer."""
        kernel = self.kernels[number]
        self.compiled.append((kernel.name, tuple(block[:3])))

        def run(first, count):
            for k in range(count):
                kernel.body(Warp(first + _WARP_STRIDE * k, first))

        enter = _ENTER(run)
        self.keep.append(enter)
        out[0].enter = ctypes.cast(enter, c_void_p)
        out[0].counter_count = kernel.counters
        out[0].param_bytes = kernel.parameter_bytes
        out[0].static_shared_bytes = kernel.static_shared
        variant[0] = number
        return 0

    def price(self, records, count) -> int:
        """Give every launch its kernel's duration."""
        for record in records[:count]:
            self.priced.append((tuple(record.grid), tuple(record.counters[: record.counter_count])))
            self.footprints.append(record.footprint_bytes)
        for i in range(count):
            if records[i].compiler_id < len(self.kernels):
                records[i].duration_s = self.kernels[records[i].compiler_id].duration_s
        return 0

    @contextmanager
    def registered(self) -> Iterator[FakeCompiler]:
        """Be the process's compiler for a while."""
        lib = driver()
        lib.va_get_backend.restype = c_void_p
        lib.va_set_backend.argtypes = (c_void_p,)
        before = lib.va_get_backend()
        native = _Backend(
            ctypes.sizeof(_Backend), 0, _LOAD(self.load), _UNLOAD(self.unload),
            _COMPILE(self.compile), _PRICE(self.price), _EXPLAIN(lambda *_: None),
        )  # fmt: skip
        self.keep.append(native)
        lib.va_set_backend(ctypes.addressof(native))
        try:
            yield self
        finally:
            lib.va_set_backend(before)
