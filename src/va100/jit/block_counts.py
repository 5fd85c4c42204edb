"""Block counters, as machine code keeps them: the text that counts how often each block runs.

What the sums are turned into is in :mod:`va100.jit.count`.
"""

from __future__ import annotations

from typing import Final

from va100.jit import abi, clock
from va100.jit.analysis import Block
from va100.jit.context import Context
from va100.ptx import effects

COUNTERS_PER_BLOCK: Final = 3
"""Converged executions, masked executions, active lanes of masked executions."""
_MOST_IN_REGISTERS: Final = 12
"""Blocks up to which a kernel's converged executions are summed in registers."""


class BlockCounts:
    """Counts the blocks of one function; ``base`` is the number of its first in the variant."""

    def __init__(self, context: Context, base: int, *, counted: bool) -> None:
        self.c = context
        self.base = base
        self.counted = counted
        self.blocks = context.analysis.blocks
        few = len(self.blocks) <= _MOST_IN_REGISTERS
        self.in_registers = counted and context.is_kernel and few
        self.by_call = False
        """Whether masked executions are counted by a native function: slower, but little text."""

    def begin(self) -> None:
        """Sums of all warps of this call; a fault leaves without them."""
        if self.in_registers:
            for block in self.blocks:
                self.c.storage_lines.append(f"  %count.{block.index} = alloca i64")
                self.c.line(f"store i64 0, ptr %count.{block.index}")
            self.c.storage_lines.append("  %count.warps = alloca i64")
            self.c.line("store i64 0, ptr %count.warps")

    def enter(self, block: Block, slot: int, mask: str | None) -> None:
        """A block begins: ``slot`` 0 with all lanes, 1 with those of a mask."""
        c = self.c
        if c.timed:
            clock.advance(c, str(block.end - block.start))
        if not self.counted:
            return
        if mask is None and self.in_registers:
            if not self._counted_elsewhere(block):
                self._step(block, 1)
            return
        first = self._first(block)
        if mask is not None and self.by_call:
            c.declare("va_h_count", "declare void {}(ptr, i32, i32)")
            c.line(f"call void @va_h_count(ptr %w, i32 {first + slot}, i32 {mask})")
            return
        self._increment(first + slot, "1")
        if mask is not None:
            c.declare("llvm.ctpop.i32", "declare i32 {}(i32)")
            lanes = c.op(f"call i32 @llvm.ctpop.i32(i32 {mask})")
            self._increment(first + 2, c.op(f"zext i32 {lanes} to i64"))

    def exception(self, block: Block) -> None:
        """A warp that its count takes for granted does not run a block converged."""
        if self.in_registers and self._counted_elsewhere(block):
            self._step(block, -1)

    def turn(self) -> None:
        """All warps of a CTA have run."""
        if self.in_registers:
            c = self.c
            old = c.op("load i64, ptr %count.warps")
            warps = c.op("zext i32 %count to i64")
            c.line(f"store i64 {c.op(f'add i64 {old}, {warps}')}, ptr %count.warps")

    def flush(self) -> None:
        """Add what was summed in registers to the worker's counters."""
        if not self.in_registers:
            return
        c = self.c
        before = c.op("load i64, ptr %count.warps")
        for block in self.blocks:
            total = c.op(f"load i64, ptr %count.{block.index}")
            if self._counted_elsewhere(block):
                total = c.op(f"add i64 {total}, {before}")
            self._increment(self._first(block), total)
            before = total

    def _counted_elsewhere(self, block: Block) -> bool:
        """Whether a block runs as often as warps begin, or as the piece before it.

        Its own count then only holds the exceptions.
        """
        if block.index in self.c.analysis.reentry:
            return False
        before = [b for b in self.blocks if block.index in b.successors]
        if block.index == 0:
            return not before
        last = self.c.flow.operations[block.start - 1]
        return (
            [b.index for b in before] == [block.index - 1]
            and before[0].successors == (block.index,)
            and before[0].end == block.start
            and last.opcode != "call"
            and last.opcode not in effects.TERMINATORS
        )

    def _first(self, block: Block) -> int:
        return (self.base + block.index) * COUNTERS_PER_BLOCK

    def _step(self, block: Block, amount: int) -> None:
        c = self.c
        old = c.op(f"load i64, ptr %count.{block.index}")
        c.line(f"store i64 {c.op(f'add i64 {old}, {amount}')}, ptr %count.{block.index}")

    def _increment(self, index: int, amount: str) -> None:
        c = self.c
        table = c.field(abi.COUNTERS, "ptr")
        where = c.op(f"getelementptr i64, ptr {table}, i64 {index}")
        old = c.op(f"load i64, ptr {where}")
        c.line(f"store i64 {c.op(f'add i64 {old}, {amount}')}, ptr {where}")
