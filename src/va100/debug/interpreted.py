"""Launches that are watched: run by an engine that can be watched, in place of machine code.

Every kernel gets both; which one a launch takes is asked of the watcher each time.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from va100 import errors
from va100.driver.compile import Compiler, Variant
from va100.driver.names import short_name
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine, KernelDescription, LoadedModule
from va100.gpu.native import library
from va100.gpu.watch import Moment, Watcher
from va100.ptx.program import PtxModule
from va100.work import Counters, Dim3, KernelResources, LaunchConfig, SourceLine

INTERPRETED: Final = 8
"""``VA_INTERPRETED``"""
_FAULTS: Final = (
    (errors.IllegalAddress, 1),
    (errors.MisalignedAddress, 2),
    (errors.TrapExecuted, 3),
    (errors.AssertFailed, 4),
    (errors.StackOverflow, 7),
    (errors.Deadlock, 6),
    (errors.DeviceFault, 5),
)
"""Error class to ``va_fault_kind``, the first that fits."""
_OTHER_FAULT: Final = 9


class Choosing(Watcher, Protocol):
    """A watcher that says which kernels it watches."""

    def wants(self, kernel: str, module: PtxModule) -> bool:
        """Whether the next launch of a kernel is to be watched."""
        ...


class Relay:
    """Tells several watchers; what a kernel printed before it faulted is not lost.

    ``always``: every launch is interpreted, whether somebody watches or not.
    """

    def __init__(self, watchers: Sequence[Choosing], *, always: bool = False) -> None:
        self._watchers = tuple(watchers)
        self._always = always

    def wants(self, kernel: str, module: PtxModule) -> bool:
        """Whether any of them watches."""
        # Each is asked: a debugger sets its breakpoints up when it is.
        wanted = [w.wants(kernel, module) for w in self._watchers]
        return self._always or any(wanted)

    def before(self, moment: Moment) -> None:
        """Pass on."""
        for watcher in self._watchers:
            watcher.before(moment)

    def after(self, moment: Moment) -> None:
        """Pass on."""
        for watcher in self._watchers:
            watcher.after(moment)

    def faulted(self, moment: Moment, error: Exception) -> None:
        """Pass on, after the output."""
        write_output(moment.take_output())
        for watcher in self._watchers:
            watcher.faulted(moment, error)

    def ended(self) -> None:
        """Pass on."""
        for watcher in self._watchers:
            watcher.ended()


@dataclass(frozen=True, slots=True, kw_only=True)
class Structures:
    """The native structures of a launch, which the engine with machine code knows."""

    variant: type[ctypes.Structure]
    launch: type[ctypes.Structure]


@dataclass
class WatchedVariant:
    """A kernel that is run by either engine, as the driver keeps it."""

    inner: Variant
    module: LoadedModule
    kernel: str
    engine: Engine
    watcher: Choosing
    structures: Structures
    param_bytes: int
    turn: threading.Lock
    """One launch is watched at a time, whatever threads of the program launch."""
    _counters: list[Counters] = field(default_factory=lambda: [Counters()])
    _error: errors.Va100Error | None = None

    @property
    def native(self) -> ctypes.Structure:
        """``va_variant``, with one counter: the number of the launch here."""
        made = self.structures.variant.from_buffer_copy(bytes(self.inner.native))
        made.flags |= INTERPRETED
        made.counter_count = 1
        made.enter = 0  # whoever overlooks the flag shall not count into one counter
        return made

    @property
    def resources(self) -> KernelResources:
        """What the kernel needs of an SM."""
        return self.inner.resources

    def counters(self, counts: Sequence[int], config: LaunchConfig) -> Counters:
        """What a launch did."""
        del config
        return self._counters[counts[0]]

    def lines(self, counts: Sequence[int], config: LaunchConfig) -> Mapping[SourceLine, Counters]:
        """Nothing: who watches a launch has no need of sums."""
        del counts, config
        return {}

    def explain(self, kernel: str, fault: ctypes.Structure, arena: Arena) -> errors.Va100Error:
        """The exception a fault stands for."""
        error, self._error = self._error, None
        return error if error is not None else self.inner.explain(kernel, fault, arena)

    def launch(self, request: int) -> None:
        """Run a ``va_launch``; no exception leaves."""
        record: Any = self.structures.launch.from_address(request)
        if self.watcher.wants(self.kernel, self.module.ptx):
            self._interpret(record)
        else:
            self._run_machine_code(record)

    def _interpret(self, record: Any) -> None:
        config = LaunchConfig(
            grid=Dim3(*record.grid),
            block=Dim3(*record.block),
            dynamic_shared_bytes=record.dynamic_shared_bytes,
            cooperative=bool(record.cooperative),
        )
        params = ctypes.string_at(record.params, self.param_bytes) if self.param_bytes else b""
        try:
            with self.turn:
                outcome = self.engine.launch(self.module, self.kernel, config, params)
        except errors.Va100Error as error:
            self._error = _renamed(error, self.kernel)
            _fill(record.fault, error)
        except Exception as error:  # noqa: BLE001  a defect of ours: said as one, not a crash
            self._error = errors.LaunchError(
                f"internal error in va100: {type(error).__name__}: {error}", kernel=self.kernel
            )
            record.fault.kind = _OTHER_FAULT
        else:
            write_output(outcome.output)
            self._remember(record.counters, outcome.counters)

    def _run_machine_code(self, record: Any) -> None:
        native: Any = self.inner.native
        counts = (ctypes.c_uint64 * max(native.counter_count, 1))()
        own = record.counters
        counter = ctypes.cast(own, ctypes.POINTER(ctypes.c_uint64))
        record.variant = ctypes.pointer(native)
        record.counters = counts
        library().va_exec_launch(ctypes.byref(record))
        config = LaunchConfig(grid=Dim3(*record.grid), block=Dim3(*record.block))
        self._remember(counter, self.inner.counters(list(counts), config))

    def _remember(self, number: Any, counters: Counters) -> None:
        number[0] = len(self._counters)
        self._counters.append(counters)


class WatchedCompiler:
    """Compiles for the driver, so that every launch can be watched."""

    def __init__(
        self,
        inner: Compiler,
        engine: Engine,
        watcher: Choosing,
        structures: Structures,
        tell: Callable[[str], object],
    ) -> None:
        self._inner = inner
        self._engine = engine
        self._watcher = watcher
        self._structures = structures
        self._tell = tell
        self._turn = threading.Lock()

    def variant(self, module: LoadedModule, kernel: str, block: Dim3) -> Variant:
        """Compile a kernel for a block shape; what cannot be watched has machine code alone."""
        inner = self._inner.variant(module, kernel, block)
        try:
            self._engine.prepare(module, kernel, block)
        except errors.Va100Error as error:
            if self._watcher.wants(kernel, module.ptx):
                self._tell(f"kernel {short_name(kernel)} cannot be watched: {error}")
            return inner
        return WatchedVariant(
            inner, module, kernel, self._engine, self._watcher, self._structures,
            self.describe(module.ptx, kernel).param_bytes, self._turn,
        )  # fmt: skip

    def describe(self, module: PtxModule, kernel: str) -> KernelDescription:
        """Say what a kernel needs before it is compiled."""
        return self._inner.describe(module, kernel)


def write_output(output: bytes) -> None:
    """Write what device-side ``printf`` wrote where the program's own output goes."""
    if not output:
        return
    libc = ctypes.CDLL(None)
    stdout = ctypes.c_void_p.in_dll(libc, "stdout")
    libc.fwrite(output, ctypes.c_size_t(1), ctypes.c_size_t(len(output)), stdout)
    libc.fflush(stdout)


def _fill(fault: Any, error: errors.Va100Error) -> None:
    fault.kind = next((k for kind, k in _FAULTS if isinstance(error, kind)), _OTHER_FAULT)
    if isinstance(error, errors.DeviceFault):
        fault.ctaid[:] = error.cta
        fault.tid[:] = error.thread
    if isinstance(error, errors.IllegalAddress | errors.MisalignedAddress):
        fault.address, fault.size = error.address, error.size


def _renamed(error: errors.Va100Error, kernel: str) -> errors.Va100Error:
    """Say the kernel's name as people write it, as the other engine does."""
    error.args = tuple(str(a).replace(f"kernel {kernel}", f"kernel {short_name(kernel)}")
                       for a in error.args)  # fmt: skip
    return error
