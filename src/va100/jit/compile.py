"""A kernel and all it may call, from PTX tree to one LLVM module.

Lays out what the variant needs (parameters, shared and local memory, counters, sites) and has
each function written by :mod:`va100.jit.function`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from va100.jit import abi
from va100.jit.analysis import Analysis, analyse
from va100.jit.block_counts import COUNTERS_PER_BLOCK
from va100.jit.calls import indirect_dispatcher, words_of
from va100.jit.chunks import CHUNK_INSTRUCTIONS, ChunkContext, ChunkWriter
from va100.jit.clock import reads_time
from va100.jit.context import Context, Placement
from va100.jit.emit import MODULE_TAIL
from va100.jit.function import FunctionWriter
from va100.jit.parameters import flow_with_stack
from va100.jit.shapes import register_parameters
from va100.jit.specials import special_value
from va100.jit.symbols import RESERVED_BYTES, Symbols, aligned, collect
from va100.ptx import effects
from va100.ptx.cfg import FlowGraph, build_flow
from va100.ptx.program import Function, Immediate, PtxModule, Symbol
from va100.ptx.types import Space
from va100.work import Dim3

_RECURSION_BYTES: Final = 65536
"""Local memory a thread gets when the call graph has a cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledBlock:
    """A block of the variant: what its counters count."""

    function: str
    first_site: int
    end_site: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """An instruction of the variant: where it came from."""

    function: str
    line: int
    file: str
    source_line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a kernel needs besides code; independent of how it is compiled."""

    functions: tuple[str, ...]
    """The kernel first, then every device function it may reach."""
    flows: Mapping[str, FlowGraph]
    symbols: Symbols
    param_offsets: Mapping[str, int]
    param_bytes: int
    frames: Mapping[str, Mapping[str, int]]
    frame_bytes: Mapping[str, int]
    local_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is added to a kernel's code."""

    counted: bool = True
    """Block counters."""
    checked: bool = False
    """Calls of the checker, which want all CTAs on one worker."""
    observed: bool = False
    """Accesses of some CTAs are told of."""
    chunks: bool | None = None
    """Whether functions are compiled in chunks; ``None``: those that are large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkedFunction:
    """A function compiled in chunks, and what is needed to write the masked ones later."""

    name: str
    symbol: str
    first_site: int
    first_region: int
    first_block: int
    chunks: tuple[int, ...]
    """The first block of each converged chunk."""
    masked: tuple[int, ...]
    """The first block of each masked one."""
    facts: bytes
    """See :meth:`va100.jit.frame.Frame.facts`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelText:
    """LLVM text of a kernel and what is known about it."""

    text: str
    symbol: str
    flags: int
    regions: int
    blocks: tuple[CompiledBlock, ...]
    chunked: tuple[ChunkedFunction, ...] = ()
    writers: tuple[ChunkWriter, ...] = ()
    """Of the chunked functions: to write their masked chunks when they are needed."""


def lay_out(module: PtxModule, kernel: str) -> Layout:
    """Find what a kernel may reach and lay out its memory.

    Raises
    ------
    KeyError
        The module has no such kernel.
    """
    by_name = {f.name: f for f in module.functions if f.body is not None}
    flows: dict[str, FlowGraph] = {}
    order: list[str] = []
    pending = [kernel]
    while pending:
        name = pending.pop(0)
        if name in flows or name not in by_name:
            continue
        flows[name] = flow_with_stack(module, by_name[name])
        order.append(name)
        pending += _reachable(module, flows[name])
    shared = tuple(
        v for f in flows.values() for v in f.variables.values() if v.space is Space.SHARED
    )
    offsets, size = param_layout(by_name[kernel])
    frames, frame_bytes = {}, {}
    for name, flow in flows.items():
        frames[name], frame_bytes[name] = _frame(flow)
    return Layout(
        functions=tuple(order),
        flows=flows,
        symbols=collect(module, shared, _reserved_bytes(flows)),
        param_offsets=offsets,
        param_bytes=size,
        frames=frames,
        frame_bytes=frame_bytes,
        local_bytes=_local_bytes(module, kernel, flows, frame_bytes),
    )


def param_layout(function: Function) -> tuple[dict[str, int], int]:
    """Offset of each kernel parameter, naturally aligned, and the size of all."""
    offsets: dict[str, int] = {}
    total = 0
    for param in function.params:
        total = aligned(total, param.alignment_bytes)
        offsets[param.name] = total
        total += param.size_bytes
    return offsets, total


def _reserved_bytes(flows: Mapping[str, FlowGraph]) -> int:
    """What the toolkit keeps of shared memory, in kernels that read ``%reserved_smem_…``.

    Others go without it: nobody could tell.
    """
    named = (
        name
        for flow in flows.values()
        for instruction in flow.instructions
        for operand in instruction.operands
        for name in effects.registers_in(operand)
    )
    return RESERVED_BYTES if any(name.startswith("%reserved_smem") for name in named) else 0


def _reachable(module: PtxModule, flow: FlowGraph) -> list[str]:
    """Functions called by name, and all whose address is taken when a call is indirect."""
    names: list[str] = []
    for instruction, operation in zip(flow.instructions, flow.operations, strict=True):
        if operation.opcode != "call":
            continue
        target = instruction.operands[1]
        if isinstance(target, Symbol) and target.name not in flow.registers:
            names.append(target.name)
        else:
            names += addressed_functions(module)
    return names


def addressed_functions(module: PtxModule) -> list[str]:
    """Device functions whose address an initialiser or an instruction takes."""
    functions = {f.name for f in module.functions if f.body is not None and not f.is_kernel}
    found: dict[str, None] = {}
    for variable in module.variables:
        if variable.initializer is None:
            continue
        for element in variable.initializer.elements:
            named = element if isinstance(element, (Immediate, Symbol)) else element[1]
            if isinstance(named, Symbol) and named.name in functions:
                found[named.name] = None
    for function in module.functions:
        if function.body is None:
            continue
        for instruction in build_flow(module, function).instructions:
            if instruction.opcode != "mov":
                continue
            source = instruction.operands[1]
            if isinstance(source, Symbol) and source.name in functions:
                found[source.name] = None
    return list(found)


def _frame(flow: FlowGraph) -> tuple[dict[str, int], int]:
    offsets: dict[str, int] = {}
    total = 0
    for key, variable in flow.variables.items():
        if variable.space is Space.LOCAL:
            total = aligned(total, variable.alignment_bytes)
            offsets[key] = total
            total += variable.size_bytes
    return offsets, aligned(total, 16)


def _local_bytes(
    module: PtxModule, kernel: str, flows: Mapping[str, FlowGraph], frames: Mapping[str, int]
) -> int:
    """Deepest sum of frames along the call graph; a fixed amount when it has a cycle."""
    calls = {n: [c for c in _reachable(module, f) if c in flows] for n, f in flows.items()}
    depth: dict[str, int] = {}

    def measure(name: str, path: frozenset[str]) -> int:
        if name in path:
            raise RecursionError
        if name not in depth:
            below = [measure(c, path | {name}) for c in calls[name]]
            depth[name] = frames[name] + max(below, default=0)
        return depth[name]

    grows = any(_allocates(flow) for flow in flows.values())
    try:
        return measure(kernel, frozenset()) + _RECURSION_BYTES * grows
    except RecursionError:
        return _RECURSION_BYTES


def _allocates(flow: FlowGraph) -> bool:
    """Whether a function takes memory from its stack."""
    return any(i.opcode in ("alloca", "stacksave", "stackrestore") for i in flow.instructions)


def write_kernel(
    module: PtxModule,
    kernel: str,
    layout: Layout,
    block: Dim3,
    helpers: frozenset[str],
    options: Options = Options(),
) -> KernelText:
    """LLVM text of a kernel for one block shape, but for masked chunks.

    Raises
    ------
    UnsupportedInstruction
    """
    parts: list[str] = []
    declared: dict[str, str] = {}
    blocks: list[CompiledBlock] = []
    chunked: list[ChunkedFunction] = []
    writers: list[ChunkWriter] = []
    flags = abi.ORDERED if options.checked else 0
    site = 0
    regions = 0
    indirect: set[int] = set()
    for name in layout.functions:
        writer = _writer(
            module, layout, block, helpers, options, (name, site, regions, len(blocks))
        )
        context = writer.c
        if isinstance(writer, ChunkWriter):
            parts.append(writer.entry(len(chunked)))
            writers.append(writer)
            chunked.append(_chunked(writer, name, site, regions, len(blocks)))
            regions += writer.c.masked_regions
            declared.update(_RUNNERS)
        parts.append(writer.text())
        blocks += [
            CompiledBlock(function=name, first_site=site + b.start, end_site=site + b.end)
            for b in context.analysis.blocks
        ]
        declared.update(context.declared)
        indirect |= context.indirect
        flags |= abi.USES_BARRIERS if context.needs_fibers or context.analysis.spin_edges else 0
        flags |= abi.ORDERED if context.ordered else 0
        regions += context.region_count
        site += len(context.flow.instructions)
    for count in sorted(indirect):
        parts.append(_dispatcher(module, layout, count))
        declared["va_h_bad_call"] = "declare void @va_h_bad_call(ptr, i32, i64) cold"
    flags |= abi.FREES if "va_h_free" in declared else 0
    flags |= 0 if options.checked or options.observed or chunked else abi.GOES_ON
    text = "\n\n".join([*declared.values(), *parts]) + MODULE_TAIL
    if chunked:  # masked chunks are modules of their own, and call the same functions
        text = text.replace("define internal ", "define ")
    return KernelText(
        text=text,
        symbol="kernel",
        flags=flags,
        regions=regions,
        blocks=tuple(blocks),
        chunked=tuple(chunked),
        writers=tuple(writers),
    )


_RUNNERS: Final = {
    "va_h_run_kernel": "declare void @va_h_run_kernel(ptr, i32, i32)",
    "va_h_run_function": "declare i32 @va_h_run_function(ptr, i32, ptr, i64, i32, i32)",
}


def chunk_writer(
    module: PtxModule,
    layout: Layout,
    block: Dim3,
    helpers: frozenset[str],
    options: Options,
    function: ChunkedFunction,
) -> ChunkWriter:
    """A writer of a function's masked chunks."""
    first = (function.name, function.first_site, function.first_region, function.first_block)
    writer = _writer(module, layout, block, helpers, replace(options, chunks=True), first)
    if not isinstance(writer, ChunkWriter):
        raise TypeError(f"{function.name} is not compiled in chunks")
    return writer


def write_masked(writer: ChunkWriter, chunk: int) -> str:
    """LLVM text of a masked chunk; the one after the last is what is done when all lanes wait."""
    writer.c.declared = {}
    text = writer.stuck() if chunk == len(writer.masked_chunks) else writer.masked(chunk)
    called = sorted(set(_CALLED.findall(text)))
    declared = [_declaration(writer, name) for name in called]
    return "\n".join([*declared, text]) + MODULE_TAIL


_CALLED: Final = re.compile(r"(?<!define i32 )@([A-Za-z_][\w.]*)")


def _declaration(writer: ChunkWriter, name: str) -> str:
    if name in writer.c.declared:
        return writer.c.declared[name]
    if name in writer.outlines.bodies:
        return writer.outlines.bodies[name].declaration
    return _CALLEES[name.partition(".")[0]].format(name)


_CALLEES: Final = {
    "func": "declare i32 @{}(ptr, i32, ptr, i64)",
    "indirect": "declare i32 @{}(ptr, i32, ptr, i64, i64)",
}


def _chunked(
    writer: ChunkWriter, name: str, site: int, regions: int, blocks: int
) -> ChunkedFunction:
    return ChunkedFunction(
        name=name,
        symbol=writer.symbol,
        first_site=site,
        first_region=regions,
        first_block=blocks,
        chunks=tuple(chunk[0].index for chunk in writer.chunks),
        masked=tuple(chunk[0].index for chunk in writer.masked_chunks),
        facts=writer.c.layout.facts(),
    )


def _writer(
    module: PtxModule,
    layout: Layout,
    block: Dim3,
    helpers: frozenset[str],
    options: Options,
    first: tuple[str, int, int, int],
) -> FunctionWriter:
    """A writer for a function, whose sites, regions and blocks begin at the given numbers."""
    name, site, region, counter = first
    flow = layout.flows[name]
    is_kernel = flow.function.is_kernel
    wanted = _is_large(flow) if options.chunks is None else options.chunks
    apart = wanted and _can_be_chunked(flow)
    longest = CHUNK_INSTRUCTIONS if apart else 0
    analysis = analyse(flow, block, is_kernel=is_kernel, longest=longest)
    kind = ChunkContext if apart else Context
    context = _context(kind, module, analysis, layout, (site, region), helpers)
    context.checked = options.checked
    context.observed = options.observed
    context.timed = reads_time(layout.flows.values())
    context.allocates = _allocates(flow)
    symbol = "kernel" if is_kernel else context.function_symbol(name)
    if isinstance(context, ChunkContext):
        return ChunkWriter(context, symbol, counter, counted=options.counted)
    _declare_call_words(context, flow)
    return FunctionWriter(context, symbol, counter, counted=options.counted)


_LARGE: Final = 4_000
"""Instructions times blocks from which a function is compiled in chunks: a reduction of cub's with
415 times 42 took 1.9 s whole and takes 0.33 s."""
_LONG: Final = 400
"""Instructions from which any function is: a 64x64 tile product with 703 in 29 blocks took 1.3 s
whole, takes 0.34 s, and runs as fast."""


def _is_large(flow: FlowGraph) -> bool:
    count = len(flow.instructions)
    return count * len(flow.blocks) >= _LARGE or count >= _LONG


def _can_be_chunked(flow: FlowGraph) -> bool:
    """Not with a stack of its own or with parameters in registers: old or rare, and small."""
    listed = (*flow.function.params, *flow.function.returns)
    in_registers = not flow.function.is_kernel and register_parameters(listed)
    return not _allocates(flow) and not in_registers


def counter_count(blocks: int) -> int:
    """Counters of a variant with that many blocks."""
    return blocks * COUNTERS_PER_BLOCK


def _context(
    kind: type[Context],
    module: PtxModule,
    analysis: Analysis,
    layout: Layout,
    first: tuple[int, int],
    helpers: frozenset[str],
) -> Context:
    name = analysis.flow.function.name
    context = kind(
        analysis,
        layout.symbols,
        Placement(
            file=module.name,
            site_base=first[0],
            region_base=first[1],
            frame=layout.frames[name],
            local_stride=local_stride(layout.local_bytes),
            helpers=helpers,
            specials=special_value,
        ),
    )
    context.param_offsets = layout.param_offsets if context.is_kernel else {}
    context.param_bytes = layout.param_bytes
    context.frame_bytes = layout.frame_bytes[name]
    return context


def local_stride(local_bytes: int) -> int:
    """Distance between the local memories of two lanes."""
    return aligned(local_bytes, 16)


def _declare_call_words(context: Context, flow: FlowGraph) -> None:
    """Space for the arguments of calls, and where a function's own parameters come from."""
    number = 0
    for key, variable in flow.variables.items():
        if variable.space is Space.PARAM:
            name = f"%words.{number}"
            number += 1
            context.call_words[key] = name
            context.scratch.append(f"  {name} = alloca [{words_of(variable) * 32} x i32], align 64")
    if flow.function.is_kernel:
        return
    for k, variable in enumerate((*flow.function.params, *flow.function.returns)):
        slot = f"%argslot.{k}"
        context.call_entry_lines.append(f"{slot} = getelementptr ptr, ptr %argv, i64 {k}")
        context.call_entry_lines.append(f"%arg.{k} = load ptr, ptr {slot}")
        context.call_words[variable.name] = f"%arg.{k}"


def _dispatcher(module: PtxModule, layout: Layout, count: int) -> str:
    functions = {}
    for name in addressed_functions(module):
        function = layout.symbols.functions[name]
        if len(function.params) + len(function.returns) == count and name in layout.flows:
            address = layout.symbols.addresses[name]
            functions[name] = (address, f"func.{address}")
    return indirect_dispatcher(f"indirect.{count}", count, functions)


def sites(module: PtxModule, layout: Layout) -> Iterator[Site]:
    """Every instruction of a variant, in site order."""
    files = module.files
    for name in layout.functions:
        flow = layout.flows[name]
        for instruction, line, location in zip(
            flow.instructions, flow.lines, flow.locations, strict=True
        ):
            start, end = instruction.span
            yield Site(
                function=name,
                line=line,
                file=files.get(location.file, "") if location else "",
                source_line=location.line if location else 0,
                text=" ".join(module.source[start:end].split()),
            )
