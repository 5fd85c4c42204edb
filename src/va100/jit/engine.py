"""The JIT engine: compiles kernels for block shapes, keeps them, launches them natively."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Final

from va100.gpu import child
from va100.gpu.launch import LaunchOutcome, LoadedModule
from va100.gpu.native import library
from va100.jit import llvm
from va100.jit.cache import ObjectCache, generation, key_of
from va100.jit.code import MachineCode
from va100.jit.compile import (
    CompiledBlock,
    Layout,
    Site,
    counter_count,
    lay_out,
    local_stride,
    sites,
    write_kernel,
)
from va100.jit.count import BlockCost, block_costs, counters_from
from va100.jit.faults import describe_fault
from va100.jit.native import Launch, Variant, release_child, take_children, take_output
from va100.jit.registers import estimate_registers
from va100.jit.symbols import global_ordinals
from va100.ptx.program import Function, PtxModule
from va100.work import Dim3, KernelResources, LaunchConfig

_LARGE: Final = 4000
"""Instructions from which compile time matters more than the last tenth of speed."""
_MANY_JOINS: Final = 150_000
"""Registers times blocks from which LLVM takes minutes to join each register at each block: a scan
of cub's with 512,000 took 95 s, and 6 s with its registers left in memory."""
_LONG: Final = 1_500_000
"""Characters of LLVM text from which writing machine code takes longer than most kernels run."""


@dataclass(frozen=True, kw_only=True)
class CompiledKernel:
    """A kernel's machine code for one block shape, with what explains it."""

    variant: Variant
    resources: KernelResources
    block: Dim3
    blocks: Sequence[CompiledBlock]
    lay_out: Callable[[], Layout]
    """The layout is only needed to explain, so it is only made when somebody asks."""
    ptx: PtxModule
    keep: tuple[object, ...]

    @cached_property
    def costs(self) -> Sequence[BlockCost]:
        """What one execution of each block amounts to."""
        return block_costs(self.lay_out(), self.blocks, self.block)

    @cached_property
    def sites(self) -> Sequence[Site]:
        """Every instruction of the variant."""
        return list(sites(self.ptx, self.lay_out()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the cache keeps of a kernel: the object and what must be known to run it."""

    object: bytes
    symbol: str
    flags: int
    regions: int
    blocks: tuple[tuple[str, int, int], ...]
    shared_bytes: int
    local_bytes: int
    param_bytes: int
    registers: int

    def pack(self) -> bytes:
        """As one piece: the length of the header, the header, the object."""
        facts = {f: getattr(self, f) for f in _HEADER}
        header = json.dumps(facts).encode()
        return len(header).to_bytes(4, "little") + header + self.object

    @classmethod
    def unpack(cls, data: bytes) -> Entry:
        """Reverse of :meth:`pack`."""
        size = int.from_bytes(data[:4], "little")
        facts = json.loads(data[4 : 4 + size])
        facts["blocks"] = tuple((n, a, b) for n, a, b in facts["blocks"])
        return cls(object=data[4 + size :], **facts)


_HEADER: Final = (
    "symbol", "flags", "regions", "blocks", "shared_bytes", "local_bytes", "param_bytes",
    "registers",
)  # fmt: skip


class JitEngine:
    """Implements :class:`va100.gpu.launch.Engine` through LLVM."""

    def __init__(
        self,
        cache_folder: Path | None = None,
        workers: int = 0,
        *,
        count_blocks: bool = True,
        checked: Callable[[str], bool] | None = None,
    ) -> None:
        self._lib = library()
        self._lib.va_exec_helper.argtypes = (ctypes.c_char_p,)
        self._lib.va_exec_helper.restype = ctypes.c_uint64
        self._cache = ObjectCache(cache_folder)
        self._workers = workers
        self._count_blocks = count_blocks
        self._checked = checked or (lambda _: False)
        self.checked_kernels: list[tuple[str, CompiledKernel]] = []
        """Kernels compiled for the checker, which numbers them from 1."""
        self._layouts: dict[tuple[int, str], tuple[PtxModule, Layout]] = {}
        self._codes: dict[tuple[int, str, Dim3], tuple[PtxModule, Entry, MachineCode]] = {}
        self._kernels: dict[tuple[int, str, Dim3], CompiledKernel] = {}
        self._tables: dict[int, tuple[LoadedModule, ctypes.Array[ctypes.c_uint64]]] = {}
        self._fingerprints: dict[int, tuple[PtxModule, str]] = {}
        self._helpers = _KnownHelpers(self._lib)

    # ---------------------------------------------------------- the Engine protocol

    def prepare(self, module: LoadedModule, kernel: str, block: Dim3) -> KernelResources:
        """Compile a kernel for a block shape, or find it compiled."""
        return self.compiled(module, kernel, block).resources

    def launch(
        self, module: LoadedModule, kernel: str, config: LaunchConfig, params: bytes
    ) -> LaunchOutcome:
        """Run a grid to its end, and then the grids that it launched."""
        outcome = self._grid(module, kernel, config, params)
        children = take_children(self._lib)
        if not children:
            return outcome
        output = bytearray(outcome.output)

        def run(record: int) -> Sequence[int]:
            grid = child.read(module.arena, record)
            name = child.kernel_of(module.ptx, grid)
            size = self.compiled(module, name, grid.block).variant.param_bytes
            block = child.parameters(module.arena, record, size)
            output.extend(self._grid(module, name, child.config_of(grid), block).output)
            return take_children(self._lib)

        child.run_descendants(children, run, partial(release_child, self._lib))
        return replace(outcome, output=bytes(output))

    def _grid(
        self, module: LoadedModule, kernel: str, config: LaunchConfig, params: bytes
    ) -> LaunchOutcome:
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
            raise describe_fault(compiled.sites, module.arena, kernel, launch.fault)
        counters = counters_from(compiled.costs, counts, config)
        return LaunchOutcome(counters=counters, output=output)

    # ---------------------------------------------------------- for the driver

    def compiled(self, module: LoadedModule, kernel: str, block: Dim3) -> CompiledKernel:
        """A kernel's code for a block shape, compiled at most once."""
        key = (id(module), kernel, block)
        if key not in self._kernels:
            self._kernels[key] = self._compile(module, kernel, block)
        return self._kernels[key]

    def layout(self, module: PtxModule, kernel: str) -> Layout:
        """What a kernel needs besides code."""
        key = (id(module), kernel)
        if key not in self._layouts:
            self._layouts[key] = (module, lay_out(module, kernel))
        return self._layouts[key][1]

    # ---------------------------------------------------------- compiling

    def _compile(self, module: LoadedModule, kernel: str, block: Dim3) -> CompiledKernel:
        entry, code = self._machine_code(module.ptx, kernel, block)
        table = self._table(module)
        variant = Variant(
            enter=code.address(entry.symbol),
            globals=ctypes.cast(table, ctypes.c_void_p),
            flags=entry.flags,
            static_shared_bytes=entry.shared_bytes,
            local_bytes=local_stride(entry.local_bytes),
            counter_count=counter_count(len(entry.blocks)),
            param_bytes=entry.param_bytes,
            region_count=entry.regions,
            check_id=len(self.checked_kernels) + 1 if self._checked(kernel) else 0,
        )
        function = next(f for f in module.ptx.kernels if f.name == kernel)
        compiled = CompiledKernel(
            variant=variant,
            resources=KernelResources(
                registers_per_thread=entry.registers,
                static_shared_bytes=entry.shared_bytes,
                local_bytes=entry.local_bytes,
                max_threads_per_block=max_threads(function),
            ),
            block=block,
            blocks=tuple(
                CompiledBlock(function=n, first_site=a, end_site=b) for n, a, b in entry.blocks
            ),
            lay_out=partial(self.layout, module.ptx, kernel),
            ptx=module.ptx,
            keep=(code, table, module),
        )
        if variant.check_id:
            self.checked_kernels.append((kernel, compiled))
        return compiled

    def _machine_code(
        self, module: PtxModule, kernel: str, block: Dim3
    ) -> tuple[Entry, MachineCode]:
        """Code that every context a module is loaded into shares."""
        key = (id(module), kernel, block)
        if key not in self._codes:
            entry = self._entry(module, kernel, block)
            self._codes[key] = (module, entry, MachineCode(entry.object))
        return self._codes[key][1:]

    def _entry(self, module: PtxModule, kernel: str, block: Dim3) -> Entry:
        key = key_of(
            "kernel", generation(), llvm.identity(), str(self._count_blocks),
            str(self._checked(kernel)), self.fingerprint(module), kernel, str(block),
        )  # fmt: skip
        kept = self._cache.get(key)
        if kept is not None:
            return Entry.unpack(kept)
        layout = self.layout(module, kernel)
        text = write_kernel(
            module, kernel, layout, block, self._helpers,
            counted=self._count_blocks, checked=self._checked(kernel),
        )  # fmt: skip
        count = sum(len(layout.flows[n].instructions) for n in layout.functions)
        entry = Entry(
            object=llvm.compile_object(text.text, optimisation_level(text.text, count)),
            symbol=text.symbol,
            flags=text.flags,
            regions=text.regions,
            blocks=tuple((b.function, b.first_site, b.end_site) for b in text.blocks),
            shared_bytes=layout.symbols.shared_bytes,
            local_bytes=layout.local_bytes,
            param_bytes=layout.param_bytes,
            registers=estimate_registers(layout, kernel),
        )
        self._cache.put(key, entry.pack())
        return entry

    def fingerprint(self, module: PtxModule) -> str:
        """Hash of a module's text, computed once."""
        known = self._fingerprints.get(id(module))
        if known is None:
            known = (module, key_of(module.source))
            self._fingerprints[id(module)] = known
        return known[1]

    def remembered(self, module: PtxModule, make: Callable[[], bytes]) -> bytes:
        """What was found out about a module in an earlier process, or is found out now."""
        key = key_of("module", generation(), self.fingerprint(module))
        kept = self._cache.get(key)
        if kept is None:
            kept = make()
            self._cache.put(key, kept)
        return kept

    def _table(self, module: LoadedModule) -> ctypes.Array[ctypes.c_uint64]:
        key = id(module)
        if key not in self._tables:
            ordinals = global_ordinals(module.ptx)
            table = (ctypes.c_uint64 * max(len(ordinals), 1))()
            for name, ordinal in ordinals.items():
                table[ordinal] = module.addresses.get(name, 0)
            self._tables[key] = (module, table)
        return self._tables[key][1]


def optimisation_level(text: str, instruction_count: int) -> int:
    """How hard LLVM shall try on a kernel's text: 1, or 0 where that would take minutes."""
    joins = text.count(" alloca ") * text.count(":\n")
    usual = instruction_count < _LARGE and joins < _MANY_JOINS and len(text) < _LONG
    return 1 if usual else 0


def max_threads(function: Function) -> int:
    """Threads of a CTA a kernel is compiled for."""
    limit = function.directive("maxntid") or function.directive("reqntid")
    return Dim3(*limit).size if limit else 1024


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
