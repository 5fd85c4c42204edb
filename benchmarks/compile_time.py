"""How long a kernel takes to its first launch: CPU time from PTX text to machine code.

Run as ``python -m benchmarks.compile_time [FILE…]``: every kernel of the files with 300
instructions or more, and two texts made here: a tile product without a branch, and a kernel of
little else.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from va100.driver.names import short_name
from va100.gpu.arena import Arena
from va100.gpu.launch import LoadedModule
from va100.jit.engine import JitEngine
from va100.ptx.cfg import build_flow
from va100.ptx.parser import parse
from va100.ptx.program import Function, PtxModule
from va100.work import Dim3

INSTRUCTIONS, BAR_S, LEAST = 5000, 2.0, 300
BLOCK = (128, 1, 1)
HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry {name}(.param .u64 data, .param .u32 count)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<64>;
    .reg .b64 %d<8>;
    .reg .f32 %f<200>;
    .shared .align 16 .b8 tile[16384];
    ld.param.u64 %d1, [data];
    cvta.to.global.u64 %d1, %d1;
    ld.param.u32 %r1, [count];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %d2, %r2, 4;
    add.s64 %d3, %d1, %d2;
    shl.b32 %r3, %r2, 2;
    mov.u32 %r4, tile;
    add.u32 %r5, %r4, %r3;
"""


def tile(count: int) -> str:
    """Straight-line code as a register-tiled product has it: 8 x 8 sums, operands from shared."""
    lines = [f"    mov.f32 %f{i}, 0f00000000;" for i in range(64)]
    step = 0
    while len(lines) < count - 66:
        lines += [f"    ld.shared.f32 %f{64 + i}, [%r5+{512 * (i % 16)}];" for i in range(16)]
        lines += [
            f"    fma.rn.f32 %f{8 * i + j}, %f{64 + i}, %f{72 + j}, %f{8 * i + j};"
            for i in range(8)
            for j in range(8)
        ]
        step += 1
        if step % 8 == 0:
            lines.append("    bar.sync 0;")
    lines += [f"    st.global.f32 [%d3+{512 * i}], %f{i};" for i in range(64)]
    return HEAD.format(name="tile") + "\n".join(lines) + "\n    ret;\n}\n"


def branches(count: int) -> str:
    """A condition of data every ten instructions, and loops that depend on it."""
    lines = [f"    add.u32 %r{10 + i}, %r2, {i};" for i in range(40)]
    number = 0
    while len(lines) < count - 42:
        a, b, c = (10 + (number * k + k) % 40 for k in (3, 7, 11))
        lines += [
            f"    ld.global.u32 %r6, [%d3+{512 * (number % 16)}];",
            f"    xor.b32 %r{a}, %r{a}, %r6;",
            f"    setp.lt.u32 %p1, %r{b}, %r6;",
            f"    @%p1 bra SKIP{number};",
            f"    mad.lo.u32 %r{c}, %r{a}, %r{b}, %r6;",
            f"    shr.u32 %r7, %r{c}, 3;",
            f"    add.u32 %r{b}, %r{b}, %r7;",
            f"    st.shared.u32 [%r5+{512 * (number % 16)}], %r{b};",
            f"SKIP{number}:",
            f"    setp.gt.u32 %p2, %r{a}, {1 << 31};",
            f"    @%p2 add.u32 %r{a}, %r{a}, %r1;",
        ]
        number += 1
    lines += [f"    st.global.u32 [%d3+{512 * i}], %r{10 + i};" for i in range(40)]
    return HEAD.format(name="branches") + "\n".join(lines) + "\n    ret;\n}\n"


def kernels(arguments: list[str]) -> Iterator[tuple[str, PtxModule, Function]]:
    """What is to be compiled."""
    made = [("tile", tile(INSTRUCTIONS)), ("branches", branches(INSTRUCTIONS))]
    files = [(Path(a).name, Path(a).read_text(encoding="utf-8")) for a in arguments]
    for name, text in (*made, *files):
        module = parse(text, name)
        yield from ((text, module, kernel) for kernel in module.kernels)


def seconds(text: str, kernel: str, block: Dim3, *, chunks: bool) -> float:
    """CPU time of parsing the text and compiling one kernel of it, nothing kept."""
    start = time.process_time()
    module = LoadedModule(ptx=parse(text), addresses={}, arena=Arena())
    JitEngine(workers=1, chunks=chunks).prepare(module, kernel, block)
    return time.process_time() - start


def main() -> int:
    """Measure and print; fail when the bar is missed."""
    print("| kernel | instructions | blocks | whole s | chunks s | whole / chunks |")
    print("|---|---:|---:|---:|---:|---:|")
    worst = 0.0
    for text, module, kernel in kernels(sys.argv[1:]):
        flow = build_flow(module, kernel)
        count = len(flow.instructions)
        if count < LEAST:
            continue
        limit = kernel.directive("reqntid") or kernel.directive("maxntid") or BLOCK
        block = Dim3(*limit)
        whole = seconds(text, kernel.name, block, chunks=False)
        apart = seconds(text, kernel.name, block, chunks=True)
        name = short_name(kernel.name).partition("<")[0].rpartition("::")[2]
        print(
            f"| {name} | {count:,} | {len(flow.blocks)} | {whole:.2f} | {apart:.2f} "
            f"| {whole / apart:.1f} |",
            flush=True,
        )
        if kernel.name in ("tile", "branches"):
            worst = max(worst, apart / count * INSTRUCTIONS)
    met = worst <= BAR_S
    verdict = "met" if met else "MISSED"
    print(f"bar: {INSTRUCTIONS} instructions in {BAR_S:.0f} s: {worst:.2f}, {verdict}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
