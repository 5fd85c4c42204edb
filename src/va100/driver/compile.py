"""The one crossing from the native driver into Python: load an image, compile, price, explain.

Answers the calls of ``native/include/va100/backend.h``.  Which engine compiles is decided by the
composition root, which hands it in.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, cast

from va100 import errors
from va100.driver import linking
from va100.driver.activity import activity_of, tell_activity, unlimited
from va100.driver.checked import Keep, checked_module
from va100.driver.names import short_name
from va100.driver.seen import seen_chip
from va100.gpu.arena import Arena
from va100.gpu.launch import KernelDescription, LoadedModule
from va100.gpu.native import library
from va100.gpu.place import function_addresses, place_module, remove_module
from va100.perf.kernel import KernelEstimate, estimate
from va100.perf.memory import traffic
from va100.ptx.program import PtxModule
from va100.spec.model import ChipSpec
from va100.work import Counters, Dim3, KernelResources, LaunchConfig, SourceLine

SUCCESS: Final = 0
_STATUS: Final = (
    (errors.PtxSyntaxError, 218),
    (errors.PtxVerifyError, 218),
    (errors.UnsupportedInstruction, 801),
    (errors.OutOfMemory, 2),
    (errors.OutOfResources, 701),
    (errors.LinkError, 218),
    (errors.ImageError, 209),
    (errors.Va100Error, 999),
)
"""Error class to ``CUresult``, the first that fits."""


class Variant(Protocol):
    """Machine code of a kernel for a block shape, as the driver keeps it."""

    @property
    def native(self) -> ctypes.Structure:
        """``va_variant``."""
        ...

    @property
    def resources(self) -> KernelResources:
        """What the kernel needs of an SM."""
        ...

    def counters(self, counts: Sequence[int], config: LaunchConfig) -> Counters:
        """What the launch's block counters amount to."""
        ...

    def lines(self, counts: Sequence[int], config: LaunchConfig) -> Mapping[SourceLine, Counters]:
        """What of them each source line is answerable for; empty where nothing tells."""
        ...

    def explain(self, kernel: str, fault: ctypes.Structure, arena: Arena) -> errors.Va100Error:
        """The exception a fault stands for."""
        ...


class Interpreted(Variant, Protocol):
    """A kernel without machine code: its ``native`` has the flag ``VA_INTERPRETED``."""

    def launch(self, request: int) -> None:
        """Run the ``va_launch`` at an address to its end; fill its counters and its fault."""
        ...


class Compiler(Protocol):
    """What the driver needs of an engine."""

    def variant(self, module: LoadedModule, kernel: str, block: Dim3) -> Variant:
        """Compile a kernel for a block shape."""
        ...

    def describe(self, module: PtxModule, kernel: str) -> KernelDescription:
        """Say what a kernel needs before it is compiled."""
        ...


# ------------------------------------------------------------------ native structures


class _Param(ctypes.Structure):
    _fields_ = (("offset_bytes", ctypes.c_uint32), ("size_bytes", ctypes.c_uint32))


class _KernelInfo(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("title", ctypes.c_char_p),
        ("compiler_id", ctypes.c_uint64),
        ("param_count", ctypes.c_uint32),
        ("params", ctypes.POINTER(_Param)),
        ("param_bytes", ctypes.c_uint32),
        ("static_shared_bytes", ctypes.c_uint32),
        ("local_bytes", ctypes.c_uint32),
        ("const_bytes", ctypes.c_uint32),
        ("registers", ctypes.c_uint32),
        ("max_threads", ctypes.c_uint32),
        ("required_block", ctypes.c_uint32 * 3),
        ("ptx_arch", ctypes.c_uint32),
        ("refusal", ctypes.c_char_p),
        ("registers_estimated", ctypes.c_uint32),
    )


class LaunchRecord(ctypes.Structure):
    """``va_launch_record``."""

    _fields_ = (
        ("compiler_id", ctypes.c_uint64),
        ("variant_id", ctypes.c_uint64),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("dynamic_shared_bytes", ctypes.c_uint32),
        ("stream", ctypes.c_uint32),
        ("device", ctypes.c_uint32),
        ("counter_count", ctypes.c_uint32),
        ("counters", ctypes.POINTER(ctypes.c_uint64)),
        ("footprint_bytes", ctypes.c_uint64),
        ("duration_s", ctypes.c_double),
    )


_LOAD = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_int,
    ctypes.POINTER(ctypes.c_char), ctypes.c_size_t,
)  # fmt: skip
_UNLOAD = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_COMPILE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint32), ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_char), ctypes.c_size_t,
)  # fmt: skip
_PRICE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(LaunchRecord), ctypes.c_size_t)
_EXPLAIN = ctypes.CFUNCTYPE(
    None, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char),
    ctypes.c_size_t,
)  # fmt: skip


_LAUNCH = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p)


class _Backend(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("load", _LOAD),
        ("unload", _UNLOAD),
        ("compile", _COMPILE),
        ("price", _PRICE),
        ("explain", _EXPLAIN),
        ("launch", _LAUNCH),
        ("link", linking.LINK),
    )


# ------------------------------------------------------------------ the backend


@dataclass
class _Kernel:
    module: LoadedModule
    name: str

    @property
    def title(self) -> str:
        """The name as people write it."""
        return short_name(self.name)


@dataclass(frozen=True, slots=True)
class Fault:
    """A kernel's wrongdoing, as it was told."""

    kernel: str
    """Name as in the module."""
    text: str


@dataclass
class Backend:
    """Answers the driver's calls with a compiler and a chip to price on.

    ``fault_type`` is the native structure of a fault, which the engine knows; ``keep`` remembers
    what was found out about texts, over processes.
    """

    compiler: Compiler
    chip: ChipSpec
    fault_type: type[ctypes.Structure]
    keep: Keep | None = None
    arena: Arena = field(default_factory=Arena)
    kernels: dict[int, _Kernel] = field(default_factory=dict)
    modules: dict[int, LoadedModule] = field(default_factory=dict)
    variants: dict[int, Variant] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    """In the order they happened."""
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _native: Any = None

    def register(self) -> None:
        """Hand the native driver this compiler."""
        self._native = _Backend(
            size=ctypes.sizeof(_Backend),
            load=_LOAD(self._load),
            unload=_UNLOAD(self._unload),
            compile=_COMPILE(self._compile),
            price=_PRICE(self._price),
            explain=_EXPLAIN(self._explain),
            launch=_LAUNCH(self._launch),
            link=linking.LINK(_link),
        )
        library().va_set_backend(ctypes.byref(self._native))

    def unregister(self) -> None:
        """Take the compiler away; modules loaded before keep running."""
        library().va_set_backend(None)

    # ---------------------------------------------------------- load

    def load(self, handle: int, text: str, device: int) -> None:
        """Check and place a module and report what it holds."""
        checked = checked_module(text, f"module{len(self.modules) + 1}.ptx", self.keep)
        ptx = checked.ptx
        module = place_module(ptx, self.arena, device)
        self.modules[handle] = module
        lib = library()
        code = function_addresses(ptx)
        for kernel in ptx.kernels:
            description = self.compiler.describe(ptx, kernel.name)
            compiler_id = next(self._ids)
            self.kernels[compiler_id] = _Kernel(module, kernel.name)
            refusal = checked.refusals.get(kernel.name)
            info = _kernel_info(kernel.name, compiler_id, description, ptx, refusal)
            lib.va_module_add_kernel(ctypes.c_void_p(handle), ctypes.byref(info))
            lib.va_module_add_address(
                ctypes.c_void_p(handle), kernel.name.encode(), ctypes.c_uint64(code[kernel.name])
            )
        for variable in ptx.variables:
            address = module.addresses.get(variable.name)
            if address is not None and variable.linkage != "extern":
                lib.va_module_add_global(
                    ctypes.c_void_p(handle),
                    variable.name.encode(),
                    ctypes.c_uint64(address),
                    ctypes.c_uint64(variable.size_bytes),
                    int(variable.managed),
                )

    def _load(self, handle: int, image: Any, size: int, device: int, text: Any, room: int) -> int:
        def act() -> None:
            raw = ctypes.string_at(image, size).split(b"\0", 1)[0]
            self.load(handle, raw.decode("utf-8", errors="replace"), device)

        return _guarded(act, text, room)

    def _unload(self, handle: int) -> None:
        module = self.modules.pop(handle, None)
        if module is not None:
            remove_module(module)

    # ---------------------------------------------------------- compile

    def _compile(
        self, compiler_id: int, block: Any, out: int, variant_id: Any, text: Any, room: int
    ) -> int:
        def act() -> None:
            kernel = self.kernels[compiler_id]
            variant = self.compiler.variant(kernel.module, kernel.name, Dim3(*block[:3]))
            number = next(self._ids)
            self.variants[number] = variant
            native = variant.native
            ctypes.memmove(out, ctypes.byref(native), ctypes.sizeof(native))
            variant_id[0] = number

        return _guarded(act, text, room)

    # ---------------------------------------------------------- price and explain

    @functools.cached_property
    def seen(self) -> ChipSpec:
        """The chip, or the slice of it that the process has; asked once something was launched."""
        return seen_chip(self.chip)

    def estimate(self, record: LaunchRecord, chip: ChipSpec | None = None) -> KernelEstimate:
        """What an A100, or another chip, would take for a finished launch."""
        return estimate(
            self.counters(record), config_of(record), self.variants[record.variant_id].resources,
            chip or self.seen, kernel=self.kernels[record.compiler_id].title,
        )  # fmt: skip

    def counters(self, record: LaunchRecord) -> Counters:
        """What a finished launch did."""
        variant = self.variants[record.variant_id]
        counters = variant.counters(record.counters[: record.counter_count], config_of(record))
        return replace(counters, footprint_bytes=float(record.footprint_bytes))

    def _price(self, records: Any, count: int) -> int:
        def act() -> None:
            for i in range(count):
                found = self.estimate(records[i])
                records[i].duration_s = found.duration_s
                self._tell(records[i], found)

        return _guarded(act, None, 0)

    def _tell(self, record: LaunchRecord, found: KernelEstimate) -> None:
        """Tell what launches like this one do to the card."""
        if found.energy.clock_hz < self.seen.boost_clock_hz:
            found = self.estimate(record, unlimited(self.seen))
        flow = traffic(self.counters(record), self.seen)
        activity = activity_of(found, flow, self.seen)
        tell_activity(record.variant_id, config_of(record).grid.size, activity)

    def _explain(self, compiler_id: int, variant_id: int, fault: int, text: Any, room: int) -> None:
        def act() -> None:
            kernel = self.kernels[compiler_id]
            record = self.fault_type.from_address(fault)
            error = self.variants[variant_id].explain(kernel.title, record, self.arena)
            self.faults.append(Fault(kernel.name, str(error)))
            _write(text, room, str(error))

        _guarded(act, text, room)

    # ---------------------------------------------------------- launch

    def _launch(self, compiler_id: int, variant_id: int, request: int) -> None:
        del compiler_id
        # Only variants that say so are launched here.
        cast("Interpreted", self.variants[variant_id]).launch(request)


def _link(sink: int, inputs: Any, count: int, text: Any, room: int) -> int:
    return _guarded(lambda: linking.answer(sink, inputs, count), text, room)


def config_of(record: LaunchRecord) -> LaunchConfig:
    """The shape of a recorded launch."""
    return LaunchConfig(
        grid=Dim3(*record.grid),
        block=Dim3(*record.block),
        dynamic_shared_bytes=record.dynamic_shared_bytes,
    )


def _kernel_info(
    name: str,
    compiler_id: int,
    description: KernelDescription,
    ptx: PtxModule,
    refusal: str | None,
) -> _KernelInfo:
    listed = [_Param(offset, size) for offset, size in description.params]
    params = (_Param * max(len(listed), 1))(*listed)
    return _KernelInfo(
        name=name.encode(),
        title=short_name(name).encode(),
        compiler_id=compiler_id,
        param_count=len(description.params),
        params=params,
        param_bytes=description.param_bytes,
        static_shared_bytes=description.static_shared_bytes,
        local_bytes=description.local_bytes,
        const_bytes=description.const_bytes,
        registers=description.registers,
        max_threads=description.max_threads,
        required_block=(ctypes.c_uint32 * 3)(*description.required_block),
        ptx_arch=_arch(ptx),
        refusal=refusal.encode() if refusal else None,
        registers_estimated=1,
    )


def _arch(ptx: PtxModule) -> int:
    """Number of the virtual architecture: 80 of ``sm_80`` and of ``sm_80a``.

    Programs choose their code by it, as the attribute that CUDA calls PTX version.
    """
    digits = next((t.removeprefix("sm_").rstrip("af") for t in ptx.target if t[:3] == "sm_"), "")
    return int(digits) if digits.isdecimal() else 0


def status_of(error: errors.Va100Error) -> int:
    """``CUresult`` of an exception."""
    return next(code for kind, code in _STATUS if isinstance(error, kind))


def _guarded(act: Callable[[], None], text: Any, room: int) -> int:
    """Run; no exception crosses into C, its message does."""
    try:
        act()
    except errors.Va100Error as error:
        _write(text, room, str(error))
        return status_of(error)
    except Exception as error:  # noqa: BLE001  a defect of ours: said as one, not a crash
        _write(text, room, f"internal error in va100: {type(error).__name__}: {error}")
        return 999
    return SUCCESS


def _write(text: Any, room: int, message: str) -> None:
    if text and room:
        raw = message.encode()[: room - 1] + b"\0"
        ctypes.memmove(text, raw, len(raw))
