"""``python -m benchmarks.tensor_kernels``: tensor-core instructions a second inside a kernel.

A warp repeats one instruction on its registers, so what is measured is the instruction as machine
code issues it: operands to memory, the native arithmetic, results back.  One core, CPU time.
"""

from __future__ import annotations

import sys
import time
from typing import Final

import numpy as np
import numpy.typing as npt

from va100.gpu.arena import Arena
from va100.gpu.launch import LoadedModule
from va100.jit.engine import JitEngine
from va100.ptx.isa import decode
from va100.ptx.isa.tiles import Product, Tile, product_of
from va100.ptx.parser import parse
from va100.work import Dim3, LaunchConfig

INSTRUCTIONS: Final = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
    "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32",
    "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
    "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32",
)
REPEATS: Final = 4000
CTAS: Final = 8
RUNS: Final = 5
HALF_RATE: Final = 250_000
"""Half of the 500,000 m16n8k16 a second that the arithmetic by itself is to pass."""


def names(tile: Tile, first: int) -> list[str]:
    """Registers of an operand."""
    return [
        f"{'%d' if tile.register_bits == 64 else '%r'}{first + i}" for i in range(tile.registers)
    ]


def kernel(text: str) -> str:
    """A loop around one instruction, its operands loaded before and its sums stored after."""
    product = product_of(decode(text))
    groups = [(t, names(t, 20 + 10 * i)) for i, t in enumerate((product.a, product.b, product.c))]
    loads = [
        f"ld.global.b{tile.register_bits} {name}, [%d1+{(8 * i + r) * 256}];"
        for i, (tile, registers) in enumerate(groups)
        for r, name in enumerate(registers)
    ]
    a, b, c = ("{" + ", ".join(registers) + "}" for _, registers in groups)
    stores = [
        f"st.global.b{product.c.register_bits} [%d1+{(16 + r) * 256}], {name};"
        for r, name in enumerate(groups[2][1])
    ]
    more = ", %r60, 0" if product.sparse else ""
    lines = "\n    ".join(loads)
    ends = "\n    ".join(stores)
    return f"""
.version 8.6
.target sm_80
.address_size 64
.visible .entry repeated(.param .u64 data, .param .u32 repeats)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<64>;
    .reg .b64 %d<64>;
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %d2, %r0, 8;
    ld.param.u64 %d1, [data];
    add.s64 %d1, %d1, %d2;
    ld.param.u32 %r1, [repeats];
    mov.u32 %r2, 0;
    mov.u32 %r60, 0xdddddddd;
    {lines}
AGAIN:
    {text} {c}, {a}, {b}, {c}{more};
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, %r1;
    @%p1 bra AGAIN;
    {ends}
    ret;
}}
"""


def operands(product: Product) -> npt.NDArray[np.uint64]:
    """Ordinary numbers in every register: eight of a, of b and of c."""
    rng = np.random.default_rng(1)
    data = np.zeros((24, 32), np.uint64)
    for i, tile in enumerate((product.a, product.b, product.c)):
        rows = data[8 * i : 8 * i + 8]
        floats = rng.standard_normal((8, 32, 2))
        kind = tile.type.value
        if kind == "f64":
            rows[:] = floats[:, :, 0].view(np.uint64)
        elif kind == "f16":
            rows[:] = np.ascontiguousarray(floats.astype(np.float16)).view(np.uint32)[:, :, 0]
        elif kind == "bf16":
            halves = floats.astype(np.float32).view(np.uint32) >> np.uint32(16)
            rows[:] = halves[:, :, 0] | halves[:, :, 1] << np.uint32(16)
        elif kind in ("f32", "tf32"):
            rows[:] = floats[:, :, 0].astype(np.float32).view(np.uint32)
        else:
            rows[:] = rng.integers(0, 1 << 32, (8, 32), np.uint64)
    return data


def rate(text: str, engine: JitEngine, arena: Arena) -> float:
    """Instructions a CPU second."""
    module = LoadedModule(ptx=parse(kernel(text), "repeated.ptx"), addresses={}, arena=arena)
    address = arena.upload(operands(product_of(decode(text))))
    params = np.array([address, REPEATS], np.uint64).tobytes()[:12]
    config = LaunchConfig(grid=Dim3(CTAS), block=Dim3(32))
    best = float("inf")
    try:
        engine.prepare(module, "repeated", config.block)
        for _ in range(RUNS):
            start = time.process_time()
            engine.launch(module, "repeated", config, params)
            best = min(best, time.process_time() - start)
    finally:
        arena.free(address)
    return REPEATS * CTAS / best


def main() -> int:
    """Print the table; 1 when the first instruction is slower than promised."""
    engine, arena = JitEngine(), Arena()
    print("| instruction | a second | multiply-adds a second |")
    print("|---|---:|---:|")
    rates = []
    for text in INSTRUCTIONS:
        m, n, k = product_of(decode(text)).shape
        rates.append(rate(text, engine, arena))
        work = rates[-1] * m * n * k * (4 if product_of(decode(text)).is_volta else 1)
        print(f"| `{text}` | {rates[-1]:,.0f} | {work / 1e9:.2f} G |")
    met = rates[0] >= HALF_RATE
    print(f"\nbar: {HALF_RATE:,} of the first a second: {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
