"""Cycles that a mix of instructions keeps the pipes of one SM busy.

Instructions are counted as PTX; hardware runs what ``ptxas`` makes of them.  The tables below say
where the two differ: moves that vanish, and single instructions that become many.  They are
assumptions about a compiler, not facts about the chip, and are written here for that reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from va100.spec.model import MmaKind, SmSpec
from va100.work import WARP_SIZE, Counters, Pipe

FREE_OPCODES: Final = {
    "mov": Pipe.ALU,
    "cvta": Pipe.ALU,
    "cvt.u64.u32": Pipe.ALU,
    "cvt.u32.u64": Pipe.ALU,
    "cvt.s64.u32": Pipe.ALU,
    "cvt.s32.u64": Pipe.ALU,
    "ld.param": Pipe.LSU,
    "ld.const": Pipe.LSU,
    "st.param": Pipe.LSU,
}
"""What disappears in machine code: register names, halves of register pairs, equal address spaces,
constant-bank operands.
The value is the pipe the instruction was counted on."""

EXPANSIONS: Final[Mapping[str, Mapping[Pipe, float]]] = {
    "div.rn.f32": {Pipe.FMA: 8, Pipe.XU: 1},
    "div.full.f32": {Pipe.FMA: 2, Pipe.XU: 1},
    "div.approx.f32": {Pipe.FMA: 1, Pipe.XU: 1},
    "rcp.rn.f32": {Pipe.FMA: 4, Pipe.XU: 1},
    "sqrt.rn.f32": {Pipe.FMA: 7, Pipe.XU: 1},
    "div.rn.f64": {Pipe.FP64: 10, Pipe.XU: 1},
    "rcp.rn.f64": {Pipe.FP64: 7, Pipe.XU: 1},
    "sqrt.rn.f64": {Pipe.FP64: 9, Pipe.XU: 1},
    "sin.approx.f32": {Pipe.FMA: 1},
    "cos.approx.f32": {Pipe.FMA: 1},
    "ex2.approx.f32": {Pipe.FMA: 2},
    "lg2.approx.f32": {Pipe.FMA: 2},
    "div.32": {Pipe.ALU: 12, Pipe.FMA: 6, Pipe.XU: 3},
    "rem.32": {Pipe.ALU: 13, Pipe.FMA: 7, Pipe.XU: 3},
    "div.64": {Pipe.ALU: 50, Pipe.FMA: 30, Pipe.XU: 3},
    "rem.64": {Pipe.ALU: 50, Pipe.FMA: 30, Pipe.XU: 3},
    "add.64": {Pipe.ALU: 1},
    "sub.64": {Pipe.ALU: 1},
    "mul.64": {Pipe.FMA: 3},
    "mad.64": {Pipe.FMA: 3},
    "shl.64": {Pipe.ALU: 1},
    "shr.64": {Pipe.ALU: 2},
    "and.64": {Pipe.ALU: 1},
    "or.64": {Pipe.ALU: 1},
    "xor.64": {Pipe.ALU: 1},
    "setp.64": {Pipe.ALU: 1},
    "selp.64": {Pipe.ALU: 1},
    "mma.m8n8k4.f16": {Pipe.FMA: 39, Pipe.ALU: 24},
}
"""Instructions issued beyond the one that was counted, by floating-point opcode or by integer
opcode and width.  ``mul.wide`` and ``mad.wide`` are one instruction and so are absent."""

_INTEGER_TYPE: Final = re.compile(r"^[subp](?:red)?(\d+)$")
_MMA_SHAPE: Final = re.compile(r"\.m(\d+)n(\d+)k(\d+)")
_MMA_KINDS: Final = {
    "f64": MmaKind.FP64,
    "tf32": MmaKind.TF32,
    "bf16": MmaKind.BF16,
    "f16": MmaKind.FP16,
    "s8": MmaKind.INT8,
    "u8": MmaKind.INT8,
    "s4": MmaKind.INT4,
    "u4": MmaKind.INT4,
    "b1": MmaKind.B1,
}
_UNNAMED_MMA_FMA: Final = 16 * 8 * 16
"""Multiply-adds of a matrix instruction whose shape was not counted: m16n8k16, the usual one."""


def issued(counters: Counters) -> dict[Pipe, float]:
    """Warp instructions on each pipe as machine code would issue them, over the whole grid."""
    counts = {pipe: float(count) for pipe, count in counters.warp_instructions.items()}
    for opcode, count in counters.opcode_instructions.items():
        vanished, extras = _machine_code(opcode)
        if vanished is not None:
            counts[vanished] = max(counts.get(vanished, 0.0) - count, 0.0)
        for pipe, extra in extras:
            counts[pipe] = counts.get(pipe, 0.0) + extra * count
    return counts


def busy_cycles(counters: Counters, sm: SmSpec) -> dict[Pipe, float]:
    """Cycles each pipe of one SM would be busy if that SM ran the whole grid alone."""
    cycles: dict[Pipe, float] = {}
    for pipe, count in issued(counters).items():
        if pipe is Pipe.TENSOR:
            cycles[pipe] = tensor_cycles(count, counters.opcode_instructions, sm)
        elif pipe is not Pipe.CONTROL:
            cycles[pipe] = count * WARP_SIZE / sm.lane_count(pipe)
    return cycles


def issue_cycles(counters: Counters, sm: SmSpec) -> float:
    """Cycles the schedulers of one SM would need to issue the whole grid."""
    per_cycle = sm.scheduler_count * sm.issue_per_cycle
    return sum(issued(counters).values()) / per_cycle


def tensor_cycles(count: float, opcodes: Mapping[str, float], sm: SmSpec) -> float:
    """Cycles of the tensor cores of one SM; shapes come from the opcodes where they are known."""
    cycles = 0.0
    for opcode, times in opcodes.items():
        work = mma_work(opcode)
        if work is not None:
            kind, fma_count, sparse = work
            rate = sm.mma.fma_per_cycle(kind, sparse=sparse)
            cycles += times * fma_count / rate if rate else 0.0
            count -= times
    return cycles + max(count, 0.0) * _UNNAMED_MMA_FMA / sm.mma.fma_per_cycle(MmaKind.FP16)


def mma_work(opcode: str) -> tuple[MmaKind, int, bool] | None:
    """Operand kind, multiply-adds and sparsity of a matrix instruction; None for any other."""
    shape = _MMA_SHAPE.search(opcode)
    if shape is None or not opcode.startswith(("mma.", "wmma.mma.")) or _is_volta(opcode):
        return None
    m, n, k = (int(extent) for extent in shape.groups())
    return _operand_kind(opcode), m * n * k, ".sp" in opcode


def _is_volta(opcode: str) -> bool:
    """Whether it is the f16 shape of sm_70, which later chips run on the multiply-add pipe."""
    return opcode.startswith("mma.") and ".m8n8k4." in opcode and ".f16." in opcode


def _operand_kind(opcode: str) -> MmaKind:
    """Operands decide the rate: the rarest type named, since accumulators are f16, f32 or s32."""
    names = opcode.split(".")
    kinds = [_MMA_KINDS[name] for name in names if name in _MMA_KINDS]
    narrow = [kind for kind in kinds if kind is not MmaKind.FP16]
    return narrow[0] if narrow else MmaKind.FP16


@lru_cache(maxsize=4096)
def _machine_code(opcode: str) -> tuple[Pipe | None, tuple[tuple[Pipe, float], ...]]:
    """Look up the pipe an instruction vanishes from, and what is issued beyond it."""
    extras = EXPANSIONS.get(_expansion_key(opcode), {})
    return _free_pipe(opcode), tuple(extras.items())


def _free_pipe(opcode: str) -> Pipe | None:
    head, _, rest = opcode.partition(".")
    if head in FREE_OPCODES or opcode in FREE_OPCODES:
        return FREE_OPCODES.get(head) or FREE_OPCODES[opcode]
    return FREE_OPCODES.get(f"{head}.{rest.partition('.')[0].partition('::')[0]}")


def _expansion_key(opcode: str) -> str:
    """``div.rn.ftz.f32`` to ``div.rn.f32``; ``rem.u32`` to ``rem.32``; others are no key."""
    if _is_volta(opcode):
        return "mma.m8n8k4.f16"
    names = [name for name in opcode.split(".") if name not in {"ftz", "sat", "lo", "hi"}]
    if len(names) == 1 or "wide" in names:
        return opcode
    width = _INTEGER_TYPE.match(names[-1])
    if width is not None:
        return f"{names[0]}.{width.group(1)}"
    return ".".join(_without_duplicates(names))


def _without_duplicates(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
