"""How many tensor-core instructions a second: the Python API, kernels, and mmasim as a peer.

Run as ``python -m benchmarks.tensor_core [--quick] [--json] [--peer PYTHON]``.  The peer is an
interpreter that has mmasim 2.1.1; its results are compared bit for bit before it is timed.
One core, CPU time, best of several rounds.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from va100 import tensor_core
from va100.gpu.arena import Arena
from va100.gpu.launch import LoadedModule
from va100.gpu.native import library
from va100.jit.engine import JitEngine
from va100.jit.native import Launch
from va100.ptx.parser import parse
from va100.work import Dim3

BATCH = 2000
LOOP, WARPS = 500, 4
PEER_BAR, KERNEL_BAR, KIND_BAR, API_BAR = 100.0, 0.5, 0.5, 500_000.0


@dataclass(frozen=True)
class Shape:
    """An instruction: its kind, shape, how PTX spells it and what its registers are."""

    kind: str
    m: int
    n: int
    k: int
    ptx: str
    registers: tuple[int, int, int]
    types: tuple[str, str] = ("b32", "f32")
    peer: str = ""

    @property
    def name(self) -> str:
        return f"m{self.m}n{self.n}k{self.k}"


SHAPES = (
    Shape("f16.f32", 16, 8, 16, "row.col.f32.f16.f16.f32", (4, 2, 4), peer="f32.f16.f16.f32"),
    Shape("f16.f16", 16, 8, 16, "row.col.f16.f16.f16.f16", (4, 2, 2), ("b32", "b32"),
          "f16.f16.f16.f16"),
    Shape("bf16.f32", 16, 8, 16, "row.col.f32.bf16.bf16.f32", (4, 2, 4), peer="f32.bf16.bf16.f32"),
    Shape("tf32.f32", 16, 8, 8, "row.col.f32.tf32.tf32.f32", (4, 2, 4), peer="f32.tf32.tf32.f32"),
    Shape("f64", 8, 8, 4, "row.col.f64.f64.f64.f64", (1, 1, 2), ("f64", "f64"),
          "f64.f64.f64.f64"),
    Shape("s8.s32", 16, 8, 32, "row.col.s32.s8.s8.s32", (4, 2, 4), ("b32", "s32")),
    Shape("u8.s32", 16, 8, 32, "row.col.s32.u8.u8.s32", (4, 2, 4), ("b32", "s32")),
    Shape("s4.s32", 16, 8, 64, "row.col.s32.s4.s4.s32", (4, 2, 4), ("b32", "s32")),
    Shape("b1.xor", 16, 8, 256, "row.col.s32.b1.b1.s32.xor.popc", (4, 2, 4), ("b32", "s32")),
)  # fmt: skip


def operands(shape: Shape, batch: int):
    """Ordinary numbers of a kind."""
    rng = np.random.default_rng(0)
    a_shape, b_shape = (batch, shape.m, shape.k), (batch, shape.k, shape.n)
    name = shape.kind.split(".")[0]
    if name[0] in "su":
        low, high = (-8, 8) if name[0] == "s" else (0, 16)
        kind = np.int8 if name[0] == "s" else np.uint8
        return (rng.integers(low, high, s).astype(kind) for s in (a_shape, b_shape))
    if name == "b1":
        return (rng.integers(0, 2, s).astype(np.bool_) for s in (a_shape, b_shape))
    numbers = (rng.standard_normal(s) for s in (a_shape, b_shape))
    if name == "bf16":
        return ((x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) for x in numbers)
    return (x.astype({"f16": "f2", "tf32": "f4", "f64": "f8"}[name]) for x in numbers)


def rate(work: Callable[[], object], count: float, seconds: float) -> float:
    """Units a second of CPU time, in the best of several rounds."""
    work()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return count / best


def api_rate(shape: Shape, seconds: float) -> float:
    a, b = operands(shape, BATCH)
    return rate(lambda: tensor_core.mma(a, b, kind=shape.kind), BATCH, seconds)


# ------------------------------------------------------------------ in a kernel


def kernel_text(shape: Shape) -> str:
    """A loop of one instruction on registers, its sums carried from turn to turn."""
    operand, result = shape.types
    size = 8 if operand == "f64" else 4
    na, nb, nc = shape.registers
    names = {
        side: [f"%{side}{i}" for i in range(n)] for side, n in zip("abc", (na, nb, nc), strict=True)
    }
    listed = {side: "{" + ", ".join(regs) + "}" for side, regs in names.items()}
    loads = [
        f"ld.global.{operand} {register}, [%address+{32 * size * i}];"
        for i, register in enumerate(names["a"] + names["b"])
    ]
    if result in ("f32", "f64"):
        zero = "0f00000000" if result == "f32" else "0d0000000000000000"
    else:
        zero = "0"
    zeros = [f"mov.{result} {register}, {zero};" for register in names["c"]]
    csize = 8 if result == "f64" else 4
    stores = [
        f"st.global.{result} [%out+{32 * csize * i}], {register};"
        for i, register in enumerate(names["c"])
    ]
    body = "\n    ".join(
        [
            "ld.param.u64 %address, [k_param_0];", "ld.param.u64 %out, [k_param_1];",
            "mov.u32 %lane, %laneid;", f"mul.wide.u32 %step, %lane, {size};",
            "add.u64 %address, %address, %step;", f"mul.wide.u32 %step, %lane, {csize};",
            "add.u64 %out, %out, %step;", *loads, *zeros, "mov.u32 %turn, 0;",
            "LOOP:",
            f"mma.sync.aligned.{shape.name}.{shape.ptx} {listed['c']}, {listed['a']}, "
            f"{listed['b']}, {listed['c']};",
            "add.u32 %turn, %turn, 1;", f"setp.lt.u32 %more, %turn, {LOOP};", "@%more bra LOOP;",
            *stores, "ret;",
        ]
    )  # fmt: skip
    return f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1)
{{
    .reg .pred %more;
    .reg .u32 %lane, %turn;
    .reg .u64 %address, %out, %step;
    .reg .{operand} {", ".join(names["a"] + names["b"])};
    .reg .{result} {", ".join(names["c"])};
    {body}
}}
"""


def kernel_rate(shape: Shape, seconds: float) -> float:
    """Instructions a second of one CTA on one worker."""
    arena = Arena()
    engine = JitEngine()
    module = LoadedModule(ptx=parse(kernel_text(shape), "k.ptx"), addresses={}, arena=arena)
    compiled = engine.compiled(module, "k", Dim3(32 * WARPS, 1, 1))
    given = np.full(4096, 0x3C, np.uint8)
    addresses = [arena.upload(given), arena.upload(np.zeros(4096, np.uint8))]
    params = np.array(addresses, np.uint64).tobytes()
    buffer = ctypes.create_string_buffer(params, len(params))
    counts = (ctypes.c_uint64 * max(compiled.variant.counter_count, 1))()
    launch = Launch(
        variant=ctypes.pointer(compiled.variant),
        params=ctypes.cast(buffer, ctypes.c_void_p),
        grid=(ctypes.c_uint32 * 3)(1, 1, 1),
        block=(ctypes.c_uint32 * 3)(32 * WARPS, 1, 1),
        workers=1,
        sm_count=108,
        counters=counts,
    )

    def run() -> None:
        if library().va_exec_launch(ctypes.byref(launch)):
            raise RuntimeError(f"{shape.kind}: fault {launch.fault.kind}")

    result = rate(run, LOOP * WARPS, seconds)
    for address in addresses:
        arena.free(address)
    return result


# ------------------------------------------------------------------ the peer

PEER = """
import json, sys, time
import numpy as np, torch
from mmasim.nv_ptx import MMA
torch.set_num_threads(1)
folder, seconds, jobs = sys.argv[1], float(sys.argv[2]), json.loads(sys.argv[3])
views = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32,
         "float64": torch.float64}
out = {}
for kind, name, operand, result in jobs:
    op = MMA("Ampere", name)
    raw = np.load(f"{folder}/{kind}.npz")
    def tensor(x, view):
        signed = x.view(f"i{x.dtype.itemsize}")
        return torch.from_numpy(signed.copy()).view(views[view])
    a, b = tensor(raw["a"], operand), tensor(raw["b"], operand)
    c = torch.zeros((a.shape[0], a.shape[1], b.shape[2]), dtype=views[result])
    one = op(a[0], b[0], c[0])
    m, n, k = a.shape[1], b.shape[2], a.shape[2]
    rows = a[0][:, None, :].expand(m, n, k).reshape(m * n, k).contiguous()
    columns = b[0].T[None, :, :].expand(m, n, k).reshape(m * n, k).contiguous()
    sums = c[0].reshape(m * n)
    got = [op(a[i], b[i], c[i]).reshape(m, n) for i in range(4)]
    signed = {2: torch.int16, 4: torch.int32, 8: torch.int64}[got[0].element_size()]
    np.save(f"{folder}/{kind}.npy", torch.stack(got).view(signed).numpy())
    def best(work, count):
        work(); least, end = 1e9, time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.process_time(); work()
            least = min(least, time.process_time() - start)
        return count / least
    batched = 0.0
    try:
        many = 64
        ra, ca = rows.repeat(many, 1), columns.repeat(many, 1)
        op.dpa(ra, ca, sums.repeat(many))
        batched = best(lambda: op.dpa(ra, ca, sums.repeat(many)), many)
    except Exception as error:
        print(f"{kind}: no batch: {error}", file=sys.stderr)
    out[kind] = [best(lambda: op(a[0], b[0], c[0]), 1), batched]
print(json.dumps(out))
"""
_TORCH = {"f16": "float16", "bf16": "bfloat16", "tf32": "float32", "f32": "float32"}


def peer_rates(python: str, seconds: float) -> dict[str, list[float]]:
    """Single and batched instructions a second of mmasim, its bits checked first."""
    jobs, expected = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for shape in (s for s in SHAPES if s.peer):
            a, b = operands(shape, 4)
            expected[shape.kind] = tensor_core.mma(a, b, kind=shape.kind)
            bits = {name: x.view(f"u{x.itemsize}") for name, x in (("a", a), ("b", b))}
            np.savez(Path(folder) / f"{shape.kind}.npz", **bits)
            operand, _, result = shape.kind.partition(".")
            types = [_TORCH.get(x, "float64") for x in (operand, result)]
            jobs.append([shape.kind, f"{shape.name}.{shape.peer}", *types])
        command = [python, "-c", PEER, folder, str(seconds), json.dumps(jobs)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the peer failed: {done.stderr.strip().splitlines()[-1:]}")
        sys.stderr.write(done.stderr)
        for kind, d in expected.items():
            theirs = np.load(Path(folder) / f"{kind}.npy")
            if not (theirs.view(f"u{d.itemsize}") == d.view(f"u{d.itemsize}")).all():
                raise RuntimeError(f"{kind}: the peer's bits differ")
    rates: dict[str, list[float]] = json.loads(done.stdout)
    return rates


# ------------------------------------------------------------------ report


def gemm_s() -> float:
    """CPU seconds of a 1024 x 1024 x 1024 product of f16 through the API."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((1024, 1024)).astype(np.float16) for _ in range(2))
    start = time.process_time()
    tensor_core.gemm(a, b, kind="f16.f32")
    return time.process_time() - start


def bars(rows: list[dict], peer: dict[str, list[float]]) -> list[tuple[str, str, float, bool]]:
    """What was promised, and what came of it."""
    api = {row["kind"]: row["api"] for row in rows}
    kernel = {row["kind"]: row["kernel"] for row in rows}
    base = api["f16.f32"]
    result = [("API, f16.f32, a second", f"at least {API_BAR:,.0f}", base, base >= API_BAR)]
    if peer:
        ratio = base / max(peer["f16.f32"])
        label = "API / mmasim's best, f16.f32"
        result.append((label, f"at least {PEER_BAR:.0f}", ratio, ratio >= PEER_BAR))
    inside = kernel["f16.f32"] / base
    result.append(("kernel / API, f16.f32", f"at least {KERNEL_BAR}", inside, inside >= KERNEL_BAR))
    for kind in ("bf16.f32", "tf32.f32", "s8.s32"):
        ratio = api[kind] / base
        result.append((f"API, {kind} / f16.f32", f"at least {KIND_BAR}", ratio, ratio >= KIND_BAR))
    return result


def print_tables(rows: list[dict], peer: dict[str, list[float]], product_s: float) -> bool:
    print("| kind     | instruction | API, a second | in a kernel | mmasim, one | mmasim, batch |")
    print("|----------|-------------|--------------:|------------:|------------:|--------------:|")
    for row in rows:
        theirs = [f"{x:,.0f}" if x else "-" for x in peer.get(row["kind"], [0, 0])]
        print(
            f"| {row['kind']:8} | {row['shape']:11} | {row['api']:13,.0f} | {row['kernel']:11,.0f} "
            f"| {theirs[0]:>11} | {theirs[1]:>13} |"
        )
    print(f"\n1024 x 1024 x 1024, f16.f32, through the API: {product_s:.2f} s\n")
    print("| bar                          |           promised |  measured |        |")
    print("|------------------------------|-------------------:|----------:|-------:|")
    found = bars(rows, peer)
    for label, promised, measured, met in found:
        number = f"{measured:,.0f}" if measured >= 100 else f"{measured:.2f}"
        verdict = "met" if met else "missed"
        print(f"| {label:28} | {promised:>18} | {number:>9} | {verdict:>6} |")
    return all(met for *_, met in found)


def main() -> int:
    """Measure and print; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="half a second a figure")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter with mmasim 2.1.1")
    args = parser.parse_args()
    seconds = 0.5 if args.quick else 2.0
    rows = [
        {
            "kind": shape.kind,
            "shape": shape.name,
            "api": api_rate(shape, seconds),
            "kernel": kernel_rate(shape, seconds),
        }
        for shape in SHAPES
    ]
    peer = peer_rates(args.peer, seconds) if args.peer else {}
    product_s = gemm_s()
    if args.json:
        print(json.dumps({"rates": rows, "peer": peer, "gemm_s": product_s}, indent=2))
        return 0 if all(met for *_, met in bars(rows, peer)) else 1
    return 0 if print_tables(rows, peer, product_s) else 1


if __name__ == "__main__":
    sys.exit(main())
