"""One PTX function as LLVM text in chunks, each compiled apart, for functions too large otherwise.

LLVM joins every register at every block of a function: its time grows with the square of a
kernel's size.  Here a chunk of blocks is a function of its own that keeps registers in the frame
(:mod:`va100.jit.frame`) from block to block; it runs blocks until it needs one of another chunk
and returns that one's number.  Converged chunks are compiled at once, masked ones when lanes part
in their blocks for the first time.  The native core (``native/exec/chunks.cpp``) goes from chunk
to chunk, turns what the converged world keeps as scalars into vectors where a warp parts, and
takes a warp that is whole again back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeGuard

from va100.jit import frame
from va100.jit.analysis import Analysis, Block
from va100.jit.context import Context, Placement
from va100.jit.emit import Predicate, Value
from va100.jit.frame import Frame
from va100.jit.function import FunctionWriter
from va100.jit.outline import Outlines, Surroundings
from va100.jit.symbols import Symbols
from va100.ptx.isa.form import Family, Operation
from va100.ptx.program import Operand, Register

DISPATCH: Final = -1
ABOVE: Final = -2
LEAVE_WHOLE: Final = -3
EXIT_WHOLE: Final = -4
PAST_RETURN: Final = 1 << 30
"""Numbers that a chunk returns besides those of blocks: converged, then masked ones."""

CHUNK_INSTRUCTIONS: Final = 160
CHUNK_BLOCKS: Final = 32
"""Where a converged chunk ends."""
MASKED_INSTRUCTIONS: Final = 12
MASKED_BLOCKS: Final = 3
"""Where a masked one does: lanes part in few places, and there is not much to gain by size."""
OUTLINED_FROM: Final = 2_000
"""Instructions of a function from which masked ones are functions shared by all that look alike
(:mod:`va100.jit.outline`): one of 4,337, all of it masked, took 3.1 s to compile and takes 1.0.
Loops of such code take half as long again, so smaller functions do without."""
OUTLINED_INSTRUCTIONS: Final = 48
OUTLINED_BLOCKS: Final = 12
"""Where a masked chunk of calls ends."""
_REGIONS: Final = 4
"""Slots of remembered allocations for the accesses of one masked instruction."""
_WITHOUT_ACCESS: Final = frozenset(
    {
        Family.INTEGER, Family.LOGIC, Family.FLOATING, Family.HALF, Family.COMPARE, Family.MOVE,
        Family.CONVERT, Family.VIDEO, Family.WARP, Family.CONTROL, Family.BARRIER,
    }
)  # fmt: skip
_NAME: Final = re.compile(r"%[A-Za-z][\w.]*")
_BLOCK: Final = re.compile(r"([FMS])(\d+)$")
_STATE: Final = {
    "%alive": frame.ALIVE, "%returned": frame.RETURNED, "%budget": frame.BUDGET,
    "%after": frame.AFTER, "%words": frame.WORDS,
}  # fmt: skip
_LOADED: Final = {
    "%w0": ("ptr", frame.FIRST_WARP), "%argv": ("ptr", frame.ARGUMENTS),
    "%frame": ("i64", frame.STACK),
}  # fmt: skip
_STOPS: Final = {
    "dispatch": DISPATCH, "dispatch_above": ABOVE, "leave_whole": LEAVE_WHOLE,
    "exit_whole": EXIT_WHOLE,
}  # fmt: skip


class ChunkContext(Context):
    """As :class:`Context`, but registers live in the frame and names last for one chunk."""

    def __init__(self, analysis: Analysis, symbols: Symbols, place: Placement) -> None:
        super().__init__(analysis, symbols, place)
        self.hoists = True
        self.file_in_memory = True
        self.outlined = len(analysis.flow.instructions) >= OUTLINED_FROM
        self.layout: Frame = frame.lay_out_frame(
            analysis, analysis.flow.variables, passing=self.outlined
        )
        self.call_words = {key: f"%at.{at}" for key, at in self.layout.calls.items()}
        function = analysis.flow.function
        if not function.is_kernel:
            for k, variable in enumerate((*function.params, *function.returns)):
                self.call_words[variable.name] = f"%arg.{k}"
        self._ordinals = _accessing(analysis)
        self._regions_of: dict[int, int] = {}

    @property
    def masked_regions(self) -> int:
        """Slots that masked chunks take, after those of the converged ones."""
        return len(self._ordinals) * _REGIONS

    def place_as(self, name: str, *, scalar: bool, masked: bool | None = None) -> str:
        """Where a register is in the frame; both worlds share its vector form."""
        del masked
        if not scalar and name in self.layout.passing:
            return f"%at.{self.layout.passing[name]}"
        return f"%at.{(self.layout.scalars if scalar else self.layout.vectors)[name]}"

    # What one masked instruction leaves to the next is in memory, not in LLVM's values: then the
    # next can be a function of its own (:mod:`va100.jit.outline`).

    def write(self, operand: Operand | None, value: Value) -> None:
        """As in whole functions; registers of one block too have a place in the masked world."""
        super().write(operand, value)
        if self._passes(operand):
            held = self.env[operand.name]
            if isinstance(held, Value) and not _is_literal(held):
                kind = f"<32 x i{held.shape.bits}>"
                self.line(f"store {kind} {self.vector(held)}, ptr {self.place(operand.name)}")

    def write_predicate(self, operand: Operand | None, predicate: Predicate) -> None:
        """As :meth:`write`."""
        super().write_predicate(operand, predicate)
        if self._passes(operand):
            mask = self.mask_of(predicate)
            self.line(f"store i32 {mask}, ptr {self.place(operand.name)}")

    def forget(self) -> None:
        """Let what follows find registers in memory, but for those that are known numbers."""
        self.env = {
            name: Value(held.shape, base=held.base)
            for name, held in self.env.items()
            if isinstance(held, Value) and _is_literal(held)
        }

    def _is_kept(self, name: str) -> bool:
        passing = self.outlined and self.masked and name in self.layout.passing
        return passing or super()._is_kept(name)

    def _passes(self, operand: Operand | None) -> TypeGuard[Register]:
        """Whether a register of one block is written to its place."""
        if not self.outlined or not self.masked or not isinstance(operand, Register):
            return False
        return operand.name in self.layout.passing

    def new_region(self) -> int:
        """Masked chunks are written when they are needed, so theirs follow from the instruction.

        They come first, so that their numbers do not depend on how many the others take.
        """
        if not self.masked:
            return self.masked_regions + super().new_region()
        used = self._regions_of.get(self.index, 0)
        self._regions_of[self.index] = used + 1
        if used == _REGIONS:
            raise RuntimeError(f"{self.instruction.op} makes more than {_REGIONS} accesses")
        return self.region_base + self._ordinals[self.index] * _REGIONS + used

    def begin_chunk(self) -> None:
        """Forget what was declared and read for the chunk before."""
        self.scratch, self.scratch_names = [], set()
        self.fields, self.field_lines, self.cta_lines = set(), [], []
        self.parameters = 0
        self._regions_of = {}


def _accessing(analysis: Analysis) -> Mapping[int, int]:
    """Instructions that may touch memory, numbered."""
    found = [
        index
        for index, operation in enumerate(analysis.flow.operations)
        if operation.form.family not in _WITHOUT_ACCESS
    ]
    return {index: k for k, index in enumerate(found)}


def _is_literal(value: Value) -> bool:
    return value.shape.constant is not None and bool(value.base) and not value.base.startswith("%")


class ChunkWriter(FunctionWriter):
    """Writes one function in chunks."""

    c: ChunkContext

    def __init__(
        self, context: ChunkContext, symbol: str, counter_base: int, *, counted: bool = True
    ) -> None:
        super().__init__(context, symbol, counter_base, counted=counted)
        self.small = False
        self.counts.in_registers = False
        self.counts.by_call = True
        self.outlines = Outlines()
        self.called: set[str] = set()
        """Bodies that the chunk at hand calls."""
        self.chunks = partition(self.blocks, CHUNK_INSTRUCTIONS, CHUNK_BLOCKS)
        self.masked_chunks = (
            partition(self.blocks, OUTLINED_INSTRUCTIONS, OUTLINED_BLOCKS)
            if context.outlined
            else partition(self.blocks, MASKED_INSTRUCTIONS, MASKED_BLOCKS)
        )

    def text(self) -> str:
        """The entry and the converged chunks."""
        return "\n\n".join(["", *(self.converged(k) for k in range(len(self.chunks)))])

    def entry(self, function: int) -> str:
        """What callers call: the native core runs the chunks of function number ``function``."""
        if self.c.is_kernel:
            return (
                f"define void @{self.symbol}(ptr noundef %w0, i32 %count) {{\n"
                f"  call void @va_h_run_kernel(ptr %w0, i32 %count, i32 {function})\n"
                "  ret void\n}"
            )
        return (
            f"define i32 @{self.symbol}(ptr noundef %w, i32 %group, ptr %argv, i64 %frame) {{\n"
            f"  %back = call i32 @va_h_run_function(ptr %w, i32 %group, ptr %argv, i64 %frame, "
            f"i32 {function}, i32 {self.c.site_base})\n  ret i32 %back\n}}"
        )

    def converged(self, chunk: int) -> str:
        """A chunk of the converged world."""
        blocks = self.chunks[chunk]
        entries = {b.index: f"F{b.index}" for b in blocks}
        return self._chunk(self.name_of("F", chunk), entries, blocks, self._write_converged)

    def masked(self, chunk: int) -> str:
        """A chunk of the masked world."""
        count = len(self.blocks)
        blocks = self.masked_chunks[chunk]
        entries = {count + b.index: self._masked_label(b) for b in blocks}
        return self._chunk(self.name_of("M", chunk), entries, blocks, self._write_masked)

    def stuck(self) -> str:
        """What is done when every group of lanes waits."""

        def write(_: Block) -> None:
            self.c.masked = True
            self.c.label("stuck")
            self._write_stuck()

        entries = {2 * len(self.blocks): "stuck"}
        return self._chunk(
            self.name_of("M", len(self.masked_chunks)), entries, self.blocks[:1], write
        )

    def name_of(self, world: str, chunk: int) -> str:
        """Symbol of a chunk's function."""
        return f"{self.symbol}.{world}{chunk}"

    # ---------------------------------------------------------- what differs from one function

    def _masked_label(self, block: Block) -> str:
        """Blocks at which warps may return are reached through the native core, which looks."""
        return f"{'S' if block.index in self.c.analysis.reentry else 'M'}{block.index}"

    def _convert(self, names: set[str]) -> None:
        """The native core does, from its table."""

    def _leave(
        self, first: int | None, mask: str, second: int | None, rest: str, start: str = ""
    ) -> None:
        """As in whole functions, mostly by one call: most such places are never come to."""
        c = self.c
        if first is None or (second is None and rest):
            super()._leave(first, mask, second, rest, start)
            return
        c.declare("va_h_wait", "declare void {}(ptr, i32, i32, i32, i32, i32)")
        lanes = (
            f"i32 {first}, i32 {mask}, i32 {first if second is None else second}, i32 {rest or 0}"
        )
        c.line(f"call void @va_h_wait(ptr %s, i32 {c.layout.pending}, {lanes})")
        lowest = first if second is None else min(first, second)
        c.line(f"br label %{start or f'M{lowest}'}")

    def _set_pending(self, target: int, mask: str) -> None:
        c = self.c
        c.declare("va_h_arrive", "declare void {}(ptr, i32, i32, i32)")
        c.line(f"call void @va_h_arrive(ptr %s, i32 {c.layout.pending}, i32 {target}, i32 {mask})")

    def _clear_pending(self, target: int) -> None:
        c = self.c
        c.declare("va_h_clear", "declare void {}(ptr, i32, i32)")
        c.line(f"call void @va_h_clear(ptr %s, i32 {c.layout.pending}, i32 {target})")

    def _write_masked_start(self, block: Block) -> None:
        c = self.c
        c.label(self._masked_label(block))
        c.mask = c.block_mask = c.op(f"load i32, ptr %pend{block.index}")

    def _write_instruction(self, operation: Operation) -> None:
        c = self.c
        if not c.masked or not c.outlined:
            super()._write_instruction(operation)
            return
        c.forget()
        start = len(c.lines)
        super()._write_instruction(operation)
        found = None
        if operation.opcode != "call":  # what calls give back is looked at after them
            found = self.outlines.call(c.lines[start:], self._surroundings())
            c.forget()
        if found is not None:
            symbol, line = found
            c.lines[start:] = [line]
            self.called.add(symbol)

    def _surroundings(self) -> Surroundings:
        c = self.c
        masks = (c.mask, c.block_mask)
        return Surroundings(
            masks=frozenset(mask for mask in masks if mask is not None and mask.startswith("%")),
            place_of=self._place_of,
            known=self._definition,
            declared=c.declared,
        )

    # ---------------------------------------------------------- one chunk

    def _chunk(
        self,
        symbol: str,
        entries: Mapping[int, str],
        blocks: Sequence[Block],
        write: Callable[[Block], None],
    ) -> str:
        c = self.c
        c.begin_chunk()
        self.edges = {}
        self.called = set()
        for block in blocks:
            write(block)
        self._write_edges()
        cases = " ".join(f"i32 {code}, label %{label}" for code, label in entries.items())
        body, c.lines = c.lines, []
        body += self._stops(body, entries.values())
        start = [f"  switch i32 %code, label %nowhere [{cases}]", "nowhere:", "  unreachable"]
        given, used = _needed((*c.scratch, *c.field_lines, *c.cta_lines), _used(body))
        known = [*self._known_names(used), *given]
        head = f"define i32 @{symbol}(ptr noundef %w, ptr noalias noundef %s, i32 %code) #0 {{"
        return "\n".join([head, "entry:", *known, *start, *body, "}"])

    def _stops(self, body: list[str], entries: Iterable[str]) -> list[str]:
        """Where a chunk ends: labels of other chunks' blocks return these blocks' numbers."""
        defined = {line[:-1] for line in body if line.endswith(":")}
        wanted = {name[1:] for name in _used(body)} | set(entries)
        lines = []
        for label in sorted(wanted - defined):
            number = self._number(label)
            if number is not None:
                lines += [f"{label}:", f"  ret i32 {number}"]
        return lines

    def _number(self, label: str) -> int | None:
        if label in _STOPS:
            return _STOPS[label]
        found = _BLOCK.match(label)
        if found is None:
            return None
        world, block = found[1], int(found[2])
        if world == "F":
            return block
        return len(self.blocks) + block + (PAST_RETURN if world == "S" else 0)

    def _known_names(self, used: set[str]) -> list[str]:
        """Definitions of the names that stand for places in the frame."""
        loaded = [name for name in _LOADED if name in used]
        others = sorted(used - _LOADED.keys())
        return [
            line for name in (*loaded, *others) for line in self._definition_at_start(name) or ()
        ]

    def _definition_at_start(self, name: str) -> list[str] | None:
        """Lines that define a place, or what is loaded from one whose name stands for it."""
        if name in _LOADED:
            kind, at = _LOADED[name]
            return [
                f"  {name}.at = getelementptr i8, ptr %s, i64 {at}",
                f"  {name} = load {kind}, ptr {name}.at",
            ]
        place = self._place_of(name)
        if place is not None:
            return [f"  {name} = getelementptr i8, ptr %s, i64 {place}"]
        if name.startswith("%arg."):
            slot = f"{name}.at"
            return [
                f"  {slot} = getelementptr ptr, ptr %argv, i64 {name[5:]}",
                f"  {name} = load ptr, ptr {slot}",
            ]
        return None

    def _definition(self, name: str) -> list[str] | None:
        """As :meth:`_definition_at_start`, of what the function at hand begins with besides."""
        found = self._definition_at_start(name)
        if found is not None:
            return found
        c = self.c
        lines = (*c.scratch, *c.field_lines, *c.cta_lines)
        own = [line for line in lines if line.startswith((f"  {name} = ", f"  {name}.at = "))]
        return own or None

    def _place_of(self, name: str) -> int | None:
        if name in _STATE:
            return _STATE[name]
        if name.startswith("%at."):
            return int(name[4:])
        if name.startswith("%pend"):
            return self.c.layout.pending + 4 * int(name[5:])
        return None


def _used(lines: Iterable[str]) -> set[str]:
    found = set(_NAME.findall("\n".join(lines)))
    if any(name.startswith("%arg.") for name in found):
        found.add("%argv")
    return found


def _needed(lines: Sequence[str], used: set[str]) -> tuple[list[str], set[str]]:
    """Of lines that define names by earlier ones: those that are used, and all that is then."""
    kept: list[str] = []
    for line in reversed(lines):
        if line.split(" = ", 1)[0].strip() in used:
            kept.append(line)
            used |= _used([line])
    return kept[::-1], used


def partition(blocks: Sequence[Block], instructions: int, most: int) -> list[tuple[Block, ...]]:
    """Blocks in layout order, so many instructions and at most so many blocks at a time."""
    chunks: list[tuple[Block, ...]] = []
    current: list[Block] = []
    size = 0
    for block in blocks:
        here = block.end - block.start
        if current and (size + here > instructions or len(current) == most):
            chunks.append(tuple(current))
            current, size = [], 0
        current.append(block)
        size += here
    if current:
        chunks.append(tuple(current))
    return chunks
