"""The JIT engine: compiles kernels for block shapes, keeps them, launches them natively."""

from __future__ import annotations

import base64
import ctypes
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from va100.gpu import child
from va100.gpu.launch import LaunchOutcome, LoadedModule
from va100.gpu.native import library
from va100.jit import llvm
from va100.jit.cache import ObjectCache, generation, key_of
from va100.jit.chunks import ChunkWriter
from va100.jit.code import MachineCode
from va100.jit.compile import (
    ChunkedFunction,
    CompiledBlock,
    Layout,
    Options,
    chunk_writer,
    counter_count,
    lay_out,
    local_stride,
    write_kernel,
    write_masked,
)
from va100.jit.compiled import CompiledKernel
from va100.jit.faults import describe_fault
from va100.jit.native import (
    OBSERVE_ROW,
    Launch,
    Variant,
    release_child,
    require_layout,
    take_children,
    take_output,
)
from va100.jit.observed import (
    observed_counter_count,
)
from va100.jit.outlined import MaskedObject, load_missing
from va100.jit.registers import estimate_registers
from va100.jit.strata import strata
from va100.jit.supply import Supply
from va100.jit.symbols import global_ordinals
from va100.ptx.program import Function, PtxModule
from va100.ptx.types import Space
from va100.ptx.waits import looped_instructions
from va100.work import Counters, Dim3, KernelResources, LaunchConfig, Sampling

_LARGE: Final = 4000
"""Instructions from which compile time matters more than the last tenth of speed."""
_QUICK: Final = 2000
"""Instructions from which chunks are compiled as quickly as LLVM can."""
_MOST_STACK: Final = 400 * 1024
"""Stack that a function may take: warps that wait have a stack of a megabyte each."""
_MANY_JOINS: Final = 150_000
"""Registers times blocks from which LLVM takes minutes to join each register at each block: a scan
of cub's with 512,000 took 95 s, and 6 s with its registers left in memory."""
_LONG: Final = 1_500_000
"""Characters of LLVM text from which writing machine code takes longer than most kernels run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the cache keeps of a kernel: the object and what must be known to run it."""

    object: bytes
    symbol: str
    flags: int
    regions: int
    blocks: tuple[tuple[str, int, int], ...]
    shared_bytes: int
    reserved_bytes: int
    local_bytes: int
    param_bytes: int
    registers: int
    chunked: tuple[ChunkedFunction, ...]

    def pack(self) -> bytes:
        """As one piece: the length of the header, the header, the object."""
        facts = {f: getattr(self, f) for f in _HEADER}
        facts["chunked"] = [
            {f: getattr(c, f) for f in _CHUNKED} | {"facts": base64.b85encode(c.facts).decode()}
            for c in self.chunked
        ]
        header = json.dumps(facts).encode()
        return len(header).to_bytes(4, "little") + header + self.object

    @classmethod
    def unpack(cls, data: bytes) -> Entry:
        """Reverse of :meth:`pack`."""
        size = int.from_bytes(data[:4], "little")
        facts = json.loads(data[4 : 4 + size])
        facts["blocks"] = tuple((n, a, b) for n, a, b in facts["blocks"])
        facts["chunked"] = tuple(
            ChunkedFunction(
                **c
                | {k: tuple(c[k]) for k in ("chunks", "masked")}
                | {"facts": base64.b85decode(c["facts"])}
            )
            for c in facts["chunked"]
        )
        return cls(object=data[4 + size :], **facts)


_HEADER: Final = (
    "symbol", "flags", "regions", "blocks", "shared_bytes", "reserved_bytes", "local_bytes",
    "param_bytes", "registers",
)  # fmt: skip
_CHUNKED: Final = (
    "name",
    "symbol",
    "first_site",
    "first_region",
    "first_block",
    "chunks",
    "masked",
)


@dataclass(frozen=True, slots=True)
class _Order:
    """What is to be compiled, and its key in the cache."""

    module: PtxModule
    kernel: str
    block: Dim3
    options: Options
    name: str


@dataclass(frozen=True, slots=True)
class _Code:
    """What contexts share of a kernel."""

    order: _Order
    entry: Entry
    machine: MachineCode
    supply: Supply


class Assembler(Protocol):
    """Says what a kernel needs of the chip, as machine code."""

    @property
    def identity(self) -> str:
        """What tells it from another one."""
        ...

    def resources(self, text: str, kernel: str) -> KernelResources | None:
        """Of one kernel of a PTX text; None where it cannot tell."""
        ...


class JitEngine:
    """Implements :class:`va100.gpu.launch.Engine` through LLVM."""

    def __init__(  # noqa: PLR0913  settings, each by its name
        self,
        cache_folder: Path | None = None,
        workers: int = 0,
        *,
        count_blocks: bool = True,
        checked: Callable[[str], bool] | None = None,
        chunks: bool | None = None,
        shuffle: int = 0,
        observe_ctas: int = 0,
        assembler: Assembler | None = None,
    ) -> None:
        self._lib = library()
        require_layout(self._lib)
        self._lib.va_exec_helper.argtypes = (ctypes.c_char_p,)
        self._lib.va_exec_helper.restype = ctypes.c_uint64
        self._cache = ObjectCache(cache_folder)
        self._workers = workers
        self._count_blocks = count_blocks
        self._checked = checked or (lambda _: False)
        self._chunks = chunks
        self._shuffle = shuffle
        self._observe_ctas = observe_ctas
        self._assembler = assembler
        self.checked_kernels: list[tuple[str, CompiledKernel]] = []
        """Kernels compiled for the checker, which numbers them from 1."""
        self._layouts: dict[tuple[int, str], tuple[PtxModule, Layout]] = {}
        self._codes: dict[tuple[int, str, Dim3], _Code] = {}
        self._kernels: dict[tuple[int, str, Dim3], CompiledKernel] = {}
        self._writers: dict[tuple[str, str], ChunkWriter] = {}
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
        sampling = config.sampling or Sampling(cta_count=self._observe_ctas)
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
            shuffle=self._shuffle,
            observe_ctas=sampling.cta_count,
            l1_cta_bytes=sampling.l1_cta_bytes,
            l2_bytes=sampling.l2_bytes,
        )

        def run() -> Sequence[int]:
            counts = (ctypes.c_uint64 * compiled.variant.counter_count)()
            launch.counters = ctypes.cast(counts, ctypes.POINTER(ctypes.c_uint64))
            self._lib.va_exec_launch(ctypes.byref(launch))
            if launch.fault.kind:
                take_output(self._lib)
                raise describe_fault(compiled.sites, module.arena, kernel, launch.fault)
            return list(counts)

        counters = (
            self._of_strata(compiled, launch, run, config)
            if sampling.alone and compiled.variant.observed_at
            else compiled.counters(run(), config)
        )
        return LaunchOutcome(counters=counters, output=take_output(self._lib))

    def _of_strata(
        self,
        compiled: CompiledKernel,
        launch: Launch,
        run: Callable[[], Sequence[int]],
        config: LaunchConfig,
    ) -> Counters:
        """Run CTAs of each kind there is in a grid, and count them for all of their kind."""
        sums = [0.0] * compiled.variant.counter_count
        observed = 0
        launch.observed_only = OBSERVE_ROW
        for stratum in strata(config.grid, launch.observe_ctas):
            launch.observe_first, launch.observe_ctas = stratum.first, stratum.cta_count
            scale = stratum.stands_for / stratum.cta_count
            sums = [total + n * scale for total, n in zip(sums, run(), strict=True)]
            observed += stratum.cta_count
        return compiled.counters(sums, config, observed)

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
        code = self._machine_code(module.ptx, kernel, block)
        entry, supply = code.entry, code.supply
        table = self._table(module)
        counted = counter_count(len(entry.blocks))
        sites = max((end for _, _, end in entry.blocks), default=0)
        seen = observed_counter_count(sites) if self._observe_ctas else 0
        variant = Variant(
            enter=code.machine.address(entry.symbol),
            globals=ctypes.cast(table, ctypes.c_void_p),
            flags=entry.flags,
            static_shared_bytes=entry.shared_bytes,
            local_bytes=local_stride(entry.local_bytes),
            counter_count=counted + seen,
            observed_at=counted if seen else 0,
            param_bytes=entry.param_bytes,
            region_count=entry.regions,
            check_id=len(self.checked_kernels) + 1 if self._checked(kernel) else 0,
            chunked=ctypes.addressof(supply.chunked),
            supply=ctypes.cast(supply.callback, ctypes.c_void_p),
        )
        function = next(f for f in module.ptx.kernels if f.name == kernel)
        compiled = CompiledKernel(
            variant=variant,
            resources=self._resources(module.ptx, function, entry),
            block=block,
            blocks=tuple(
                CompiledBlock(function=n, first_site=a, end_site=b) for n, a, b in entry.blocks
            ),
            lay_out=partial(self.layout, module.ptx, kernel),
            ptx=module.ptx,
            remembered=partial(self._kept, key_of(code.order.name, "costs")),
            keep=(code, table, module),
        )
        if variant.check_id:
            self.checked_kernels.append((kernel, compiled))
        return compiled

    def _resources(self, module: PtxModule, function: Function, entry: Entry) -> KernelResources:
        """What a kernel needs of an SM; registers as an assembler gives them, if there is one."""
        needs = KernelResources(
            registers_per_thread=entry.registers,
            static_shared_bytes=entry.shared_bytes - entry.reserved_bytes,
            local_bytes=entry.local_bytes,
            max_threads_per_block=max_threads(function),
            registers_estimated=True,
        )
        if self._assembler is None:
            return needs
        ask, name = self._assembler.resources, function.name

        def make() -> bytes:
            found = ask(module.source, name)
            facts = found and [
                found.registers_per_thread, found.local_bytes, found.machine_load_count
            ]  # fmt: skip
            return json.dumps(facts).encode()

        key = key_of("machine code", self._assembler.identity, self.fingerprint(module), name)
        known = json.loads(self._kept(key, make))
        if known is None:
            return needs
        registers, local_bytes, loads = known
        return replace(
            needs,
            registers_per_thread=registers,
            local_bytes=local_bytes,
            registers_estimated=False,
            machine_load_count=loads,
            merged_load_ratio=self._merged(module, name, loads),
        )

    def _merged(self, module: PtxModule, kernel: str, loads: int | None) -> float:
        """Part of a kernel's loads that its machine code has.

        1 where functions are called or loads are in loops, of which machine code may have another
        number of copies.
        """
        layout = self.layout(module, kernel)
        if not loads or len(layout.functions) > 1:
            return 1.0
        flow = layout.flows[kernel]
        written = [
            index
            for index, operation in enumerate(flow.operations)
            if operation.opcode == "ld" and operation.space in (Space.GLOBAL, Space.GENERIC)
        ]
        looped = looped_instructions(flow)
        if not written or any(index in looped for index in written):
            return 1.0
        return min(loads / len(written), 1.0)

    def _machine_code(self, module: PtxModule, kernel: str, block: Dim3) -> _Code:
        """Code that every context a module is loaded into shares."""
        key = (id(module), kernel, block)
        if key not in self._codes:
            options = Options(
                counted=self._count_blocks,
                checked=self._checked(kernel),
                observed=bool(self._observe_ctas),
                chunks=self._chunks,
            )
            name = key_of(
                "kernel", generation(), llvm.identity(), str(options), self.fingerprint(module),
                kernel, str(block),
            )  # fmt: skip
            order = _Order(module, kernel, block, options, name)
            entry = self._entry(order)
            machine = MachineCode(entry.object)
            supply = Supply(entry.chunked, machine, partial(self._masked, order))
            self._codes[key] = _Code(order, entry, machine, supply)
        return self._codes[key]

    def _entry(self, order: _Order) -> Entry:
        kept = self._cache.get(order.name)
        if kept is not None:
            return Entry.unpack(kept)
        entry = self._compile_entry(order, order.options)
        if not entry.chunked and MachineCode(entry.object).frame_bytes > _MOST_STACK:
            entry = self._compile_entry(order, replace(order.options, chunks=True))
        self._cache.put(order.name, entry.pack())
        return entry

    def _compile_entry(self, order: _Order, options: Options) -> Entry:
        layout = self.layout(order.module, order.kernel)
        text = write_kernel(order.module, order.kernel, layout, order.block, self._helpers, options)
        for function, writer in zip(text.chunked, text.writers, strict=True):
            self._writers[order.name, function.name] = writer
        count = sum(len(layout.flows[n].instructions) for n in layout.functions)
        level = 0 if text.chunked else optimisation_level(text.text, count)
        quickly = bool(text.chunked) and count >= _QUICK
        return Entry(
            object=llvm.compile_object(text.text, level, quickly=quickly),
            symbol=text.symbol,
            flags=text.flags,
            regions=text.regions,
            blocks=tuple((b.function, b.first_site, b.end_site) for b in text.blocks),
            shared_bytes=layout.symbols.shared_bytes,
            reserved_bytes=layout.symbols.reserved_bytes,
            local_bytes=layout.local_bytes,
            param_bytes=layout.param_bytes,
            registers=estimate_registers(layout, order.kernel),
            chunked=text.chunked,
        )

    def _masked(self, order: _Order, function: ChunkedFunction, chunk: int) -> bytes:
        """The object of a masked chunk, after what it calls."""

        def writer() -> ChunkWriter:
            key = order.name, function.name
            if key not in self._writers:
                layout = self.layout(order.module, order.kernel)
                self._writers[key] = chunk_writer(
                    order.module, layout, order.block, self._helpers, order.options, function
                )
            return self._writers[key]

        def make() -> bytes:
            text = write_masked(writer(), chunk)
            called = tuple(sorted(writer().called))
            return MaskedObject(called, llvm.compile_object(text, 0, quickly=True)).pack()

        def body(symbol: str) -> bytes:
            bodies = writer().outlines.bodies
            if symbol not in bodies:
                write_masked(writer(), chunk)
            return llvm.compile_object(bodies[symbol].text, 0, quickly=True)

        found = MaskedObject.unpack(self._kept(key_of(order.name, function.name, str(chunk)), make))
        load_missing(
            found.symbols,
            lambda s: self._kept(
                key_of("body", generation(), llvm.identity(), s), partial(body, s)
            ),
        )
        return found.object

    def fingerprint(self, module: PtxModule) -> str:
        """Hash of a module's text, computed once."""
        known = self._fingerprints.get(id(module))
        if known is None:
            known = (module, key_of(module.source))
            self._fingerprints[id(module)] = known
        return known[1]

    def remembered(self, module: PtxModule, make: Callable[[], bytes]) -> bytes:
        """What was found out about a module in an earlier process, or is found out now."""
        return self._kept(key_of("module", generation(), self.fingerprint(module)), make)

    def keep_facts(self, text: str, make: Callable[[], bytes]) -> bytes:
        """What was found out about a text before it is a module, as :meth:`remembered`."""
        return self._kept(key_of("text", generation(), text), make)

    def _kept(self, key: str, make: Callable[[], bytes]) -> bytes:
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
