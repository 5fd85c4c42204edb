"""Virtual time: what ``%clock`` and ``%globaltimer`` read.

A warp's clock counts the instructions it has issued, four cycles each: what an A100 takes for one
that needs the result of the one before.  It repeats from run to run, never goes back, and grows
with the work between two readings.  Only kernels that read it keep it.  The global timer turns
cycles into nanoseconds at the boost clock, and starts each launch 2**30 ns after the one before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from va100.jit import abi
from va100.jit.context import Context
from va100.jit.emit import Value
from va100.ptx import effects
from va100.ptx.cfg import FlowGraph

CYCLES: Final = 4
"""Of an instruction that needs the one before."""
_NS: Final = (100, 141)
"""Nanoseconds of so many cycles at 1410 MHz."""
_LAUNCH_SHIFT: Final = 30
_TIMED: Final = ("%clock", "%globaltimer")


def is_timer(register: str) -> bool:
    """Whether a special register's value changes while a warp runs."""
    return register.startswith(_TIMED)


def reads_time(flows: Iterable[FlowGraph]) -> bool:
    """Whether any function of a kernel looks at the time."""
    return any(
        is_timer(name)
        for flow in flows
        for instruction, operation in zip(flow.instructions, flow.operations, strict=True)
        for name in effects.reads(instruction, operation)
    )


def start(c: Context) -> None:
    """A warp's time begins."""
    where = c.op(f"getelementptr i8, ptr %w, i64 {abi.CLOCK}")
    c.line(f"store i64 0, ptr {where}, align 8")


def advance(c: Context, instructions: str) -> None:
    """Let time pass for some instructions, an ``i64``."""
    where = c.op(f"getelementptr i8, ptr %w, i64 {abi.CLOCK}")
    past = c.op(f"load i64, ptr {where}, align 8")
    c.line(f"store i64 {c.op(f'add i64 {past}, {instructions}')}, ptr {where}, align 8")


def cycles(c: Context) -> str:
    """Cycles up to and with the instruction at hand, as an ``i64``."""
    blocks = c.analysis.blocks
    block = blocks[bisect_right([b.start for b in blocks], c.index) - 1]
    where = c.op(f"getelementptr i8, ptr %w, i64 {abi.CLOCK}")
    total = c.op(f"load i64, ptr {where}, align 8")
    # The whole block was counted when it was entered.
    issued = c.op(f"sub i64 {total}, {block.end - c.index - 1}")
    return c.op(f"mul i64 {issued}, {CYCLES}")


def nanoseconds(c: Context) -> str:
    """The global timer, as an ``i64``."""
    scaled = c.op(f"mul i64 {cycles(c)}, {_NS[0]}")
    since = c.op(f"udiv i64 {scaled}, {_NS[1]}")
    start = c.op(f"shl i64 {c.field(abi.GRIDID, 'i64')}, {_LAUNCH_SHIFT}")
    return c.op(f"add i64 {start}, {since}")


def sleep(c: Context, duration: Value) -> None:
    """Let the longest duration that an acting lane asks for pass, in nanoseconds."""
    if duration.shape.uniform:
        longest = c.base(duration)
    else:
        kind = "<32 x i32>"
        bools = c.mask_vector(c.lanes)
        asked = c.op(f"select <32 x i1> {bools}, {kind} {c.vector(duration)}, {kind} splat (i32 0)")
        name = "llvm.vector.reduce.umax.v32i32"
        c.declare(name, f"declare i32 {{}}({kind})")
        longest = c.op(f"call i32 @{name}({kind} {asked})")
    if c.mask is not None:
        some = c.op(f"icmp ne i32 {c.lanes}, 0")
        longest = c.op(f"select i1 {some}, i32 {longest}, i32 0")
    wide = c.op(f"zext i32 {longest} to i64")
    scaled = c.op(f"mul i64 {wide}, {_NS[1]}")
    advance(c, c.op(f"udiv i64 {scaled}, {_NS[0] * CYCLES}"))
