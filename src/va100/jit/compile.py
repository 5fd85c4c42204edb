"""A kernel and all it may call, from PTX tree to one LLVM module.

Lays out what the variant needs (parameters, shared and local memory, counters, sites) and has
each function written by :mod:`va100.jit.function`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from va100.jit import abi
from va100.jit.analysis import Analysis, analyse
from va100.jit.block_counts import COUNTERS_PER_BLOCK
from va100.jit.calls import indirect_dispatcher, words_of
from va100.jit.clock import reads_time
from va100.jit.context import Context, Placement
from va100.jit.function import FunctionWriter
from va100.jit.specials import special_value
from va100.jit.symbols import Symbols, aligned, collect
from va100.ptx.cfg import FlowGraph, build_flow
from va100.ptx.program import Function, Immediate, PtxModule, Symbol
from va100.ptx.types import Space
from va100.work import Dim3

_RECURSION_BYTES: Final = 65536
"""Local memory a thread gets when the call graph has a cycle."""

_TAIL: Final = """
attributes #0 = { nounwind "frame-pointer"="none" "no-trapping-math"="true" }
!0 = !{}
!1 = !{!"branch_weights", i32 1, i32 4000}
!2 = !{!"branch_weights", i32 4000, i32 1}
"""


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
class KernelText:
    """LLVM text of a kernel and what is known about it."""

    text: str
    symbol: str
    flags: int
    regions: int
    blocks: tuple[CompiledBlock, ...]


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
        flows[name] = build_flow(module, by_name[name])
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
        symbols=collect(module, shared),
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


def write_kernel(  # noqa: PLR0913  what, for whom, with what added
    module: PtxModule,
    kernel: str,
    layout: Layout,
    block: Dim3,
    helpers: frozenset[str],
    *,
    counted: bool = True,
    checked: bool = False,
) -> KernelText:
    """LLVM text of a kernel for one block shape; ``counted`` adds the block counters.

    ``checked`` adds calls of the checker, which want all CTAs on one worker.

    Raises
    ------
    UnsupportedInstruction
    """
    parts: list[str] = []
    declared: dict[str, str] = {}
    blocks: list[CompiledBlock] = []
    flags = abi.ORDERED if checked else 0
    site = 0
    regions = 0
    timed = reads_time(layout.flows.values())
    indirect: set[int] = set()
    for name in layout.functions:
        flow = layout.flows[name]
        analysis = analyse(flow, block, is_kernel=flow.function.is_kernel)
        context = _context(module, analysis, layout, (site, regions), helpers)
        context.checked = checked
        context.timed = timed
        context.allocates = _allocates(flow)
        symbol = "kernel" if name == kernel else context.function_symbol(name)
        writer = FunctionWriter(context, symbol, len(blocks), counted=counted)
        parts.append(writer.text())
        blocks += [
            CompiledBlock(function=name, first_site=site + b.start, end_site=site + b.end)
            for b in analysis.blocks
        ]
        declared.update(context.declared)
        indirect |= context.indirect
        flags |= abi.USES_BARRIERS if context.needs_fibers else 0
        flags |= abi.ORDERED if context.ordered else 0
        regions += context.region_count
        site += len(flow.instructions)
    for count in sorted(indirect):
        parts.append(_dispatcher(module, layout, count))
        declared["va_h_bad_call"] = "declare void @va_h_bad_call(ptr, i32, i64) cold"
    flags |= abi.FREES if "va_h_free" in declared else 0
    text = "\n\n".join([*declared.values(), *parts]) + _TAIL
    return KernelText(
        text=text,
        symbol="kernel",
        flags=flags,
        regions=regions,
        blocks=tuple(blocks),
    )


def counter_count(blocks: int) -> int:
    """Counters of a variant with that many blocks."""
    return blocks * COUNTERS_PER_BLOCK


def _context(
    module: PtxModule,
    analysis: Analysis,
    layout: Layout,
    first: tuple[int, int],
    helpers: frozenset[str],
) -> Context:
    flow = analysis.flow
    name = flow.function.name
    context = Context(
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
    context.param_offsets = layout.param_offsets if flow.function.is_kernel else {}
    context.param_bytes = layout.param_bytes
    context.frame_bytes = layout.frame_bytes[name]
    _declare_call_words(context, flow)
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
