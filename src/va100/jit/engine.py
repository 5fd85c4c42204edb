"""The JIT engine: compiles kernels for block shapes, keeps them, launches them natively."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from va100 import errors
from va100.gpu.arena import Arena
from va100.gpu.launch import LaunchOutcome, LoadedModule
from va100.gpu.native import library
from va100.jit import llvm
from va100.jit.cache import ObjectCache, key_of
from va100.jit.compile import (
    GENERATOR,
    Layout,
    Site,
    counter_count,
    lay_out,
    local_stride,
    sites,
    write_kernel,
)
from va100.jit.count import BlockCost, block_costs, counters_from
from va100.jit.native import Fault, Launch, Variant, take_output
from va100.jit.registers import estimate_registers
from va100.ptx.program import PtxModule
from va100.work import Dim3, KernelResources, LaunchConfig

_LARGE: Final = 4000
"""Instructions from which compile time matters more than the last tenth of speed."""

HELPERS: Final = "va_exec_helper"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernel:
    """A kernel's machine code for one block shape, with what explains it."""

    variant: Variant
    layout: Layout
    costs: Sequence[BlockCost]
    sites: Sequence[Site]
    resources: KernelResources
    keep: tuple[object, ...]


class JitEngine:
    """Implements :class:`va100.gpu.launch.Engine` through LLVM."""

    def __init__(
        self, cache_folder: Path | None = None, workers: int = 0, *, count_blocks: bool = True
    ) -> None:
        self._lib = library()
        self._lib.va_exec_helper.argtypes = (ctypes.c_char_p,)
        self._lib.va_exec_helper.restype = ctypes.c_uint64
        self._cache = ObjectCache(cache_folder)
        self._workers = workers
        self._count_blocks = count_blocks
        self._layouts: dict[tuple[int, str], tuple[PtxModule, Layout]] = {}
        self._kernels: dict[tuple[int, str, Dim3], CompiledKernel] = {}
        self._tables: dict[int, tuple[LoadedModule, ctypes.Array[ctypes.c_uint64]]] = {}
        self._helpers = _KnownHelpers(self._lib)

    # ---------------------------------------------------------- the Engine protocol

    def prepare(self, module: LoadedModule, kernel: str, block: Dim3) -> KernelResources:
        """Compile a kernel for a block shape, or find it compiled."""
        return self.compiled(module, kernel, block).resources

    def launch(
        self, module: LoadedModule, kernel: str, config: LaunchConfig, params: bytes
    ) -> LaunchOutcome:
        """Run a grid to its end."""
        compiled = self.compiled(module, kernel, config.block)
        if len(params) < compiled.variant.param_bytes:
            raise ValueError(
                f"kernel {kernel} takes {compiled.variant.param_bytes} bytes of parameters, "
                f"got {len(params)}"
            )
        counts = (ctypes.c_uint64 * compiled.variant.counter_count)()
        buffer = ctypes.create_string_buffer(params, max(len(params), 1))
        launch = Launch(
            variant=ctypes.pointer(compiled.variant),
            params=ctypes.cast(buffer, ctypes.c_void_p),
            grid=(ctypes.c_uint32 * 3)(*config.grid),
            block=(ctypes.c_uint32 * 3)(*config.block),
            dynamic_shared_bytes=config.dynamic_shared_bytes,
            cooperative=int(config.cooperative),
            workers=self._workers,
            resident_ctas=0,
            sm_count=108,
            counters=counts,
        )
        self._lib.va_exec_launch(ctypes.byref(launch))
        output = take_output(self._lib)
        if launch.fault.kind:
            raise self.fault_error(compiled, module.arena, kernel, launch.fault)
        counters = counters_from(compiled.costs, counts, config)
        return LaunchOutcome(counters=counters, output=output)

    # ---------------------------------------------------------- for the driver

    def compiled(self, module: LoadedModule, kernel: str, block: Dim3) -> CompiledKernel:
        """A kernel's code for a block shape, compiled at most once."""
        key = (id(module.ptx), kernel, block)
        if key not in self._kernels:
            self._kernels[key] = self._compile(module, kernel, block)
        return self._kernels[key]

    def layout(self, module: PtxModule, kernel: str) -> Layout:
        """What a kernel needs besides code."""
        key = (id(module), kernel)
        if key not in self._layouts:
            self._layouts[key] = (module, lay_out(module, kernel))
        return self._layouts[key][1]

    def fault_error(
        self, compiled: CompiledKernel, arena: Arena, kernel: str, fault: Fault
    ) -> errors.DeviceFault:
        """The exception that describes a fault."""
        return describe_fault(compiled.sites, arena, kernel, fault)

    # ---------------------------------------------------------- compiling

    def _compile(self, module: LoadedModule, kernel: str, block: Dim3) -> CompiledKernel:
        layout = self.layout(module.ptx, kernel)
        text = write_kernel(
            module.ptx, kernel, layout, block, self._helpers, counted=self._count_blocks
        )
        count = sum(len(layout.flows[n].instructions) for n in layout.functions)
        level = 1 if count < _LARGE else 0
        key = key_of(GENERATOR, llvm.VERSION, llvm.host(), str(level), text.text)
        data = self._cache.get(key)
        if data is None:
            data = llvm.compile_object(text.text, level)
            self._cache.put(key, data)
        code = llvm.load_object(data, {n: self._helpers.address(n) for n in text.helpers})
        table = self._table(module, layout)
        variant = Variant(
            enter=code.address(text.symbol),
            globals=ctypes.cast(table, ctypes.c_void_p),
            flags=text.flags,
            static_shared_bytes=layout.symbols.shared_bytes,
            local_bytes=local_stride(layout.local_bytes),
            counter_count=counter_count(len(text.blocks)),
            param_bytes=layout.param_bytes,
        )
        return CompiledKernel(
            variant=variant,
            layout=layout,
            costs=block_costs(layout, text.blocks),
            sites=_LazySites(module.ptx, layout),
            resources=self._resources(module.ptx, kernel, layout),
            keep=(code, table, module),
        )

    def _table(self, module: LoadedModule, layout: Layout) -> ctypes.Array[ctypes.c_uint64]:
        key = id(module)
        if key not in self._tables:
            ordinals = layout.symbols.ordinals
            table = (ctypes.c_uint64 * max(len(ordinals), 1))()
            for name, ordinal in ordinals.items():
                table[ordinal] = module.addresses.get(name, 0)
            self._tables[key] = (module, table)
        return self._tables[key][1]

    def _resources(self, module: PtxModule, kernel: str, layout: Layout) -> KernelResources:
        function = layout.flows[kernel].function
        limit = function.directive("maxntid") or function.directive("reqntid")
        threads = Dim3(*limit).size if limit else 1024
        return KernelResources(
            registers_per_thread=estimate_registers(layout, kernel),
            static_shared_bytes=layout.symbols.shared_bytes,
            local_bytes=layout.local_bytes,
            max_threads_per_block=threads,
        )


class _KnownHelpers(frozenset[str]):
    """Names of native functions; membership asks the native core."""

    def __new__(cls, lib: ctypes.CDLL) -> _KnownHelpers:
        self = super().__new__(cls)
        self.lib = lib
        self.known = {}
        return self

    lib: ctypes.CDLL
    known: dict[str, int]

    def address(self, name: str) -> int:
        """Address of a native function; 0 when there is none."""
        if name not in self.known:
            self.known[name] = int(self.lib.va_exec_helper(name.encode()))
        return self.known[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.address(name) != 0


class _LazySites(Sequence[Site]):
    """Sites, listed when first asked for: only faults and reports need them."""

    def __init__(self, module: PtxModule, layout: Layout) -> None:
        self._module, self._layout = module, layout
        self._listed: list[Site] | None = None

    def _all(self) -> list[Site]:
        if self._listed is None:
            self._listed = list(sites(self._module, self._layout))
        return self._listed

    def __len__(self) -> int:
        return len(self._all())

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204
        return self._all()[index]


_SPACES: Final[Mapping[int, str]] = {0: "generic", 1: "global", 2: "shared", 3: "local"}


def describe_fault(
    known: Sequence[Site], arena: Arena, kernel: str, fault: Fault
) -> errors.DeviceFault:
    """Turn a native fault record into the exception it stands for."""
    site = known[fault.site] if fault.site < len(known) else None
    place: dict[str, object] = {
        "kernel": kernel,
        "cta": tuple(fault.ctaid),
        "thread": tuple(fault.tid),
        "file": site.file if site else "",
        "line": (site.source_line or site.line) if site else 0,
        "instruction": site.text if site else "",
    }
    text = fault.text.decode(errors="replace")
    if fault.kind in (1, 2):
        space = _SPACES.get(fault.space, "generic")
        where = {"space": space, "address": int(fault.address), "size": int(fault.size)}
        if fault.kind == 2:
            return errors.MisalignedAddress(**where, **place)
        nearest = arena.describe(int(fault.address)) if space not in ("shared", "local") else ""
        return errors.IllegalAddress(**where, nearest=nearest, **place)
    if fault.kind == 3:
        return errors.TrapExecuted(**place)
    if fault.kind == 4:
        condition, file, line, _ = (*text.split("|"), "", "", "")[:4]
        if file:
            place |= {"file": file, "line": int(line or 0)}
        return errors.AssertFailed(condition=condition, **place)
    kind = errors.Deadlock if fault.kind == 6 else errors.IllegalInstruction
    return kind(text or "illegal instruction", **place)


__all__ = ["CompiledKernel", "Counter", "JitEngine", "describe_fault"]
