"""Barriers, fences, traps and other instructions that steer threads but do not branch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from va100.jit import abi
from va100.jit.clock import sleep
from va100.jit.context import Context
from va100.jit.emit import Predicate, Value
from va100.jit.lattice import uniform
from va100.ptx.isa.form import Operation
from va100.ptx.types import PtxType


def _barrier_operands(c: Context, op: Operation) -> tuple[str, str, list[object]]:
    """Barrier number, thread count, and what remains."""
    operands = list(c.instruction.operands)
    if "red" in op.modifiers:
        operands = operands[1:]
        operands, rest = operands[:-1], operands[-1:]
    else:
        rest = []
    number = _uniform_operand(c, operands[0]) if operands else "0"
    threads = _uniform_operand(c, operands[1]) if len(operands) > 1 else "0"
    return number, threads, rest  # type: ignore[return-value]


def _uniform_operand(c: Context, operand: object) -> str:
    value = c.read_sized(operand, PtxType.U32)  # type: ignore[arg-type]
    if value.shape.uniform:
        return c.base(value)
    c.declare("llvm.cttz.i32", "declare i32 {}(i32, i1)")
    leader = c.op(f"call i32 @llvm.cttz.i32(i32 {c.lanes}, i1 false)")
    return c.op(f"extractelement <32 x i32> {c.vector(value)}, i32 {leader}")


def lower_barrier(c: Context, op: Operation) -> None:
    """``bar``/``barrier``: sync, arrive, red, and the warp's own ``bar.warp.sync``."""
    if op.opcode in _LOWERINGS:
        _LOWERINGS[op.opcode](c, op)
        return
    if "warp" in op.modifiers:
        return  # the lanes it names have met before it starts
    c.needs_fibers = True
    if c.mask_may_be_empty:
        _guarded_barrier(c, op)
        return
    _arrive_at_barrier(c, op)


def _guarded_barrier(c: Context, op: Operation) -> None:
    """The warp arrives when the guard holds in any of its lanes."""
    arrive, done, found = c.name("arrive"), c.name("passed"), c.array("i32", 1)
    number, threads, rest = _barrier_operands(c, op)
    votes = c.mask_of(c.predicate(rest[0])) if rest else "0"  # type: ignore[arg-type]
    c.line(f"store i32 0, ptr {found}")
    c.line(f"br i1 {c.op(f'icmp ne i32 {c.lanes}, 0')}, label %{arrive}, label %{done}")
    c.label(arrive)
    result = _arrive(c, op, number, threads, votes)
    c.line(f"store i32 {result}, ptr {found}")
    c.line(f"br label %{done}")
    c.label(done)
    if rest:
        _reduction_result(c, op, c.op(f"load i32, ptr {found}"))


def _arrive_at_barrier(c: Context, op: Operation) -> None:
    number, threads, rest = _barrier_operands(c, op)
    votes = c.mask_of(c.predicate(rest[0])) if rest else "0"  # type: ignore[arg-type]
    result = _arrive(c, op, number, threads, votes)
    if rest:
        _reduction_result(c, op, result)


def _arrive(c: Context, op: Operation, number: str, threads: str, votes: str) -> str:
    """Call the scheduler; what a reduction found, 0 where nobody waits."""
    if "arrive" in op.modifiers:
        c.declare("va_h_bar_arrive", "declare void {}(ptr, i32, i32, i32)")
        c.line(f"call void @va_h_bar_arrive(ptr %w, i32 {c.site}, i32 {number}, i32 {threads})")
        return "0"
    if "red" not in op.modifiers:
        c.declare("va_h_bar_wait", "declare void {}(ptr, i32, i32, i32, i32, i32)")
        c.line(
            f"call void @va_h_bar_wait(ptr %w, i32 {c.site}, i32 {number}, i32 {threads}, "
            f"i32 0, i32 {c.lanes})"
        )
        return "0"
    c.declare("va_h_bar_sync", "declare i32 {}(ptr, i32, i32, i32, i32, i32)")
    return c.op(
        f"call i32 @va_h_bar_sync(ptr %w, i32 {c.site}, i32 {number}, i32 {threads}, "
        f"i32 {votes}, i32 {c.lanes})"
    )


def reduction_found(
    c: Context, op: Operation, result: str
) -> tuple[Value | None, Predicate | None]:
    """What a ``bar.red`` gives.  Low bits: how many; bit 30: all; bit 31: any."""
    if op.combine == "popc":
        return Value(uniform(32), base=c.op(f"and i32 {result}, {0x3FFFFFFF}")), None
    bit = 0x40000000 if op.combine == "and" else -0x80000000
    found = c.op(f"icmp ne i32 {c.op(f'and i32 {result}, {bit}')}, 0")
    return None, Predicate(scalar=found)


def _reduction_result(c: Context, op: Operation, result: str) -> None:
    destination = c.instruction.operands[0]
    count, holds = reduction_found(c, op, result)
    if count is not None:
        c.write(destination, count)
    if holds is not None:
        c.write_predicate(destination, holds)


def _fence(c: Context, op: Operation) -> None:
    c.line("fence seq_cst" if "cta" not in op.modifiers and op.scope != "cta" else "fence acq_rel")


def _trap(c: Context, op: Operation) -> None:
    """``trap`` and ``brkpt`` stop the kernel in the lanes that reach them."""
    reached = c.op(f"icmp ne i32 {c.lanes}, 0")
    fault, done = c.name("fault"), c.name("untrapped")
    c.line(f"br i1 {reached}, label %{fault}, label %{done}, !prof !1")
    c.label(fault)
    c.declare("va_h_fault", "declare void {}(ptr, i32, i32, i32, ptr) cold")
    c.line(
        f"call void @va_h_fault(ptr %w, i32 {c.site}, i32 {abi.FAULT_TRAP}, i32 {c.lanes}, "
        "ptr null)"
    )
    c.line(f"br label %{done}")
    c.label(done)


def _nanosleep(c: Context, op: Operation) -> None:
    """A hint to let others run; it takes the time it names."""
    if c.timed:
        sleep(c, c.read_sized(c.instruction.operands[0], PtxType.U32))
    c.declare("va_h_spin", "declare void {}(ptr, i32)")
    c.needs_fibers = True
    c.line(f"call void @va_h_spin(ptr %w, i32 {c.site})")


def _nothing(c: Context, op: Operation) -> None:
    """Performance-monitor events have no effect on results."""


_LOWERINGS: Final[Mapping[str, Callable[[Context, Operation], None]]] = {
    "membar": _fence,
    "fence": _fence,
    "trap": _trap,
    "brkpt": _nothing,
    "nanosleep": _nanosleep,
    "pmevent": _nothing,
}


def lower_control(c: Context, op: Operation) -> None:
    """Control instructions that do not end a block."""
    if op.opcode not in _LOWERINGS:
        raise c.refuse("this control instruction is not executed")
    _LOWERINGS[op.opcode](c, op)
