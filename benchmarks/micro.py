"""Our own microbenchmarks on the virtual chip, beside what public ones measured on real A100s.

Run as ``python -m benchmarks.micro [--json]``; needs ``nvcc``.  Each row's kernel is compiled, some
of its CTAs run, and the predicted time is turned into the quantity that was published.  What is
read here of the real chip is a handful of published figures, each with where it is from.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import va100
from va100.perf.links import host_copy, peer_copy
from va100.perf.timeline import Activity, copy_s, launch_gap_ns
from va100.profile.launch import Launch
from va100.spec.a100 import A100_SXM4_40GB, A100_SXM4_80GB
from va100.spec.model import ChipSpec
from va100.units import GB, MIB, TERA

SOURCE = Path(__file__).with_name("micro.cu")
MIB_80, MIB_40 = "A100-SXM4-80GB", "A100-SXM4-40GB"
CHIPS = {MIB_80: A100_SXM4_80GB, MIB_40: A100_SXM4_40GB}
BLOCK, RESIDENT = 256, 108 * 8
ROUNDS = 2048
STREAM = 32 * 1024 * 1024


@dataclass(frozen=True)
class Row:
    """One published figure and how ours is had."""

    quantity: str
    unit: str
    measured: float
    source: str
    ours: Callable[[], float]


def timed(kernel: str, grid: int, args: Sequence[Any], **how: Any) -> Launch:
    """Predict a kernel of ``micro.cu``."""
    how = {"chip": MIB_80, "block": BLOCK, "ctas": 4} | how
    block = how.pop("block")
    return va100.time_kernel(SOURCE, kernel, grid, block, args, **how)


def flops(kernel: str, operations: float, args: Sequence[Any]) -> float:
    """Tera-operations a second; ``operations`` of one warp."""
    launch = timed(kernel, RESIDENT, [*args, ROUNDS])
    return operations * ROUNDS * RESIDENT * BLOCK / 32 / launch.time_s / TERA


def vector_flops(kernel: str, kind: type) -> float:
    """Multiply-adds of 8 chains, 16 times a round."""
    size = RESIDENT * BLOCK * np.dtype(kind).itemsize
    return flops(kernel, 2.0 * 32 * 8 * 16, [va100.Buffer(size), kind(0.5), kind(1)])


def matrix_flops(kernel: str, multiply_adds: int, element_bytes: int) -> float:
    """Products of tiles, 4 accumulators, 8 times a round."""
    out = va100.Buffer(RESIDENT * BLOCK // 32 * 256 * element_bytes)
    return flops(kernel, 2.0 * multiply_adds * 4 * 8, [out])


def stream(kernel: str, arrays: int, moved: int, scalars: Sequence[Any], chip: str) -> float:
    """Rate of a stream of doubles that no cache holds, in TB/s."""
    args = [*(va100.Buffer(8 * STREAM) for _ in range(arrays)), *scalars]
    launch = timed(kernel, STREAM // BLOCK, args, chip=chip)
    return moved * 8.0 * STREAM / launch.time_s / TERA


def saxpy() -> float:
    """As :func:`stream`, of floats."""
    args = [va100.Buffer(4 * STREAM), va100.Buffer(4 * STREAM), 2.0]
    return 12.0 * STREAM / timed("saxpy", STREAM // BLOCK, args, chip=MIB_40).time_s / TERA


def l2(footprint_mib: float) -> float:
    """Rate of all SMs reading the same data over and over, in TB/s."""
    count, rounds = int(footprint_mib * MIB / 16), 4
    args = [va100.Buffer(count * 16), count, rounds, va100.Buffer(4)]
    launch = timed("read_l2", 2 * 108, args, block=1024, warm=True, ctas=1)
    return 16.0 * count * rounds * 2 * 108 / launch.time_s / TERA


def l1() -> float:
    """Bytes a cycle of one SM that reads what its L1 holds."""
    rounds, ctas = 4096, 2
    args = [va100.Buffer(32 * 1024), rounds, va100.Buffer(4)]
    launch = timed("read_l1", ctas * 108, args, block=512, warm=True, ctas=1)
    cycles = launch.time_s * A100_SXM4_80GB.boost_clock_hz
    return 32.0 * 1024 * rounds * ctas / cycles


def chase(footprint_bytes: int, *, warm: bool, stride_bytes: int = 256) -> float:
    """Cycles from one load to the next that needs it."""
    places = footprint_bytes // stride_bytes
    steps = 16_384 if warm else min(places, 16_384)
    took = [
        timed(
            "chase", 1,
            [va100.Buffer(footprint_bytes), places, stride_bytes, count, va100.Buffer(8)],
            block=1, warm=warm, ctas=None,
        ).time_s
        for count in (steps, 0)
    ]  # fmt: skip
    return (took[0] - took[1]) * A100_SXM4_80GB.boost_clock_hz / steps


def chase_constant(places: int) -> float:
    """Cycles from one load of a table of shorts in constant memory to the next that needs it."""
    steps = 16_384
    took = [
        timed(
            "chase_constant", 1, [count, va100.Buffer(8)], block=1, ctas=None,
            flags=[f"-DPLACES={places}"],
        ).time_s
        for count in (steps, 0)
    ]  # fmt: skip
    return (took[0] - took[1]) * A100_SXM4_80GB.boost_clock_hz / steps


def period_us(*, streamed: bool) -> float:
    """Time that one more of the smallest kernels takes."""
    launch = timed("small", 64, [va100.Buffer(65536), 8192], block=128, warm=True, ctas=None)
    gap = launch_gap_ns(A100_SXM4_80GB) * 1e-3 if streamed else 0.0
    return launch.time_s * 1e6 + gap


def device_copy(chip: ChipSpec) -> float:
    """Rate of a copy within the card, read and written bytes, in TB/s."""
    size = 1 << 30
    return 2 * size / copy_s(Activity.DEVICE_TO_DEVICE, size, chip) / TERA


def table() -> list[Row]:
    """All of them, in the order of the measurements' table."""
    benches, inspector, mt4g = "gpu-benches", "gpuinspector", "mt4g"
    big = 1 << 30
    return [
        Row("FP32 multiply-adds", "TFLOP/s", 19.1, inspector,
            partial(vector_flops, "fma_f32", np.float32)),
        Row("FP64 multiply-adds", "TFLOP/s", 9.6, inspector,
            partial(vector_flops, "fma_f64", np.float64)),
        Row("WMMA FP16", "TFLOP/s", 311.2, inspector, partial(matrix_flops, "wmma_f16", 4096, 4)),
        Row("WMMA TF32", "TFLOP/s", 155.55, inspector, partial(matrix_flops, "wmma_tf32", 2048, 4)),
        Row("WMMA INT8", "TOP/s", 620.1, inspector, partial(matrix_flops, "wmma_s8", 4096, 4)),
        Row("DRAM triad, 40 GB", "TB/s", 1.38, benches,
            partial(stream, "stream_triad", 3, 3, [2.0], MIB_40)),
        Row("DRAM triad, 80 GB", "TB/s", 1.75, benches,
            partial(stream, "stream_triad", 3, 3, [2.0], MIB_80)),
        Row("DRAM init, 40 GB", "TB/s", 1.51, benches,
            partial(stream, "stream_init", 1, 1, [2.0], MIB_40)),
        Row("DRAM init, 80 GB", "TB/s", 1.90, benches,
            partial(stream, "stream_init", 1, 1, [2.0], MIB_80)),
        Row("copy within the card, 40 GB", "TB/s", 1.31, inspector,
            partial(device_copy, A100_SXM4_40GB)),
        Row("saxpy, 40 GB", "TB/s", 1.33, inspector, saxpy),
        Row("L2, 10 MiB", "TB/s", 5.45, benches, partial(l2, 10)),
        Row("L2, 30 MiB", "TB/s", 4.0, benches, partial(l2, 30.7)),
        Row("L2, 37 MiB", "TB/s", 3.0, benches, partial(l2, 36.9)),
        Row("L1", "B/cycle/SM", 126.0, benches, l1),
        Row("L1 latency", "cycles", 36.0, benches, partial(chase, 16 * 1024, warm=True)),
        Row("L2 latency, near", "cycles", 211.0, benches, partial(chase, 4 * MIB, warm=True)),
        Row("L2 latency, both partitions", "cycles", 290.0, benches,
            partial(chase, 32 * MIB, warm=True)),
        Row("DRAM latency", "cycles", 570.0, benches,
            partial(chase, 256 * MIB, warm=False, stride_bytes=8192)),
        Row("constant latency, 2 KiB", "cycles", 75.0, mt4g, partial(chase_constant, 1024)),
        Row("constant latency, 32 KiB", "cycles", 121.0, mt4g, partial(chase_constant, 16_384)),
        Row("smallest kernel, streamed", "us", 2.62, benches, partial(period_us, streamed=True)),
        Row("smallest kernel, in a graph", "us", 1.34, benches,
            partial(period_us, streamed=False)),
        Row("host to device, pinned", "GB/s", 26.15, "superbench",
            lambda: host_copy(big).rate_bytes_per_s / GB),
        Row("host to device, pageable", "GB/s", 12.7, inspector,
            lambda: host_copy(big, pinned=False).rate_bytes_per_s / GB),
        Row("NVLink, one way, 40 MB", "GB/s", 262.0, inspector,
            lambda: peer_copy(40_000_000, 0, 1).rate_bytes_per_s / GB),
        Row("NVLink, one way, large", "GB/s", 276.0, inspector,
            lambda: peer_copy(big, 0, 1).rate_bytes_per_s / GB),
        Row("L1 latency, by another program", "cycles", 36.0, mt4g,
            partial(chase, 8 * 1024, warm=True)),
    ]  # fmt: skip


def main() -> int:
    """Print the table; 1 when a figure is more than a tenth off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="a list of objects instead of a table")
    parser.add_argument("--only", default="", help="rows whose quantity holds this text")
    args = parser.parse_args()
    found = []
    for row in table():
        if args.only in row.quantity:
            ours = row.ours()
            found.append((row, ours, ours / row.measured - 1))
            print(f"{row.quantity} ...", file=sys.stderr)
    if args.json:
        print(json.dumps([
            {"quantity": row.quantity, "unit": row.unit, "measured": row.measured,
             "source": row.source, "ours": ours, "error": error}
            for row, ours, error in found
        ]))  # fmt: skip
    else:
        print("| quantity | unit | measured | ours | error | measured by |")
        print("|---|---|---:|---:|---:|---|")
        for row, ours, error in found:
            print(
                f"| {row.quantity} | {row.unit} | {row.measured:g} | {ours:.4g} | {error:+.1%} "
                f"| {row.source} |"
            )
    return int(any(abs(error) > 0.1 for _, _, error in found))


if __name__ == "__main__":
    sys.exit(main())
