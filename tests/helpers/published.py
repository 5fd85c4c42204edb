"""Published A100 measurements of simple kernels beside what the performance model says of them.

Counters are written down by hand, as the kernels' sources and compilers would have them; nothing is
fitted here.  ``python tests/helpers/published.py --shared FOLDER`` prints the table that
``docs/accuracy.md`` shows.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import re
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from va100.perf.kernel import KernelEstimate, estimate
from va100.perf.memory import Residency
from va100.perf.timeline import launch_gap_ns
from va100.spec.a100 import A100_PCIE_40GB, A100_PCIE_80GB, A100_SXM4_40GB, A100_SXM4_80GB
from va100.spec.model import ChipSpec, Operation
from va100.spec.rates import memory_bytes_per_s, peak_flop_per_s
from va100.work import Counters, Dim3, KernelResources, LaunchConfig, Pipe

CHIPS = {
    "A100-PCIE-40GB": A100_PCIE_40GB,
    "A100-80GB-PCIe": A100_PCIE_80GB,
    "A100-SXM4-40GB": A100_SXM4_40GB,
    "A100-SXM4-80GB": A100_SXM4_80GB,
}
RESIDENT_BYTES = 20e6
"""What one L2 partition holds: a kernel run again and again finds so much in L2."""
EAGER_LEAST_S = 200e-6
"""PyTorch's kernels were timed by events around eager calls, which adds some 17 us of the host's:
only times that dwarf it say something of the kernel."""


@dataclass(frozen=True)
class Case:
    """One published time beside ours and the plain roofline's."""

    family: str
    name: str
    measured_s: float
    estimated_s: float
    roofline_s: float

    @property
    def error(self) -> float:
        """Relative to the measurement, without sign."""
        return abs(self.estimated_s / self.measured_s - 1)

    @property
    def roofline_error(self) -> float:
        """What datasheet bandwidth and peak alone would have said."""
        return abs(self.roofline_s / self.measured_s - 1)


def all_cases(measured: Path) -> list[Case]:
    """Every case of every family."""
    return [
        *elementwise_cases(measured),
        *stream_cases(measured),
        *intensity_cases(measured),
        *small_cases(measured),
        *sgemm_cases(measured),
    ]


def rows(path: Path) -> Iterator[dict[str, str]]:
    """Rows of a table that carry no flag."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if not row.get("flag"):
                yield row


def roofline_s(flops: float, moved_bytes: float, chip: ChipSpec) -> float:
    """The datasheet's roofline."""
    peak = peak_flop_per_s(chip, Operation.FP32_FMA)
    return max(flops / peak, moved_bytes / memory_bytes_per_s(chip))


def line(grid: int, block: int) -> LaunchConfig:
    """A one-dimensional launch."""
    return LaunchConfig(grid=Dim3(grid), block=Dim3(block))


# ------------------------------------------------------------- element-wise kernels of PyTorch

_INPUTS = {"add": 2, "mul": 2, "div": 2, "addu": 1, "mulu": 1, "divu": 1, "relu": 1, "tanh": 1}
_ARITHMETIC = {"div": 10.0, "divu": 10.0, "tanh": 20.0}
"""Multiply-adds an element where it is not one."""


def elementwise_cases(measured: Path) -> Iterator[Case]:
    """``vectorized_elementwise_kernel<4>``: 128 threads of four floats, one vector an array."""
    for row in rows(measured / "neusight_vector_fp32.csv.gz"):
        if row["op"] not in _INPUTS or "vectorized_elementwise" not in row["kernel"]:
            continue
        if float(row["measured_us"]) * 1e-6 < EAGER_LEAST_S:
            continue
        count = int(row["rows"]) * int(row["cols"])
        chip, inputs = CHIPS[row["gpu"]], _INPUTS[row["op"]]
        found = _elementwise(count, inputs, _ARITHMETIC.get(row["op"], 1.0), chip)
        moved_bytes = 4.0 * count * (inputs + 1)
        yield Case(
            "element-wise, PyTorch",
            f"{row['op']} {row['rows']}x{row['cols']} {row['gpu']}",
            float(row["measured_us"]) * 1e-6,
            found.duration_s,
            roofline_s(0, moved_bytes, chip),
        )


def _elementwise(count: int, inputs: int, arithmetic: float, chip: ChipSpec) -> KernelEstimate:
    grid = -(-count // 512)
    warps = 4 * grid
    counters = Counters(
        cta_count=grid,
        warp_count=warps,
        warp_instructions={
            Pipe.ALU: 12.0 * warps,
            Pipe.FMA: 4 * arithmetic * warps,
            Pipe.LSU: (inputs + 1.0) * warps,
            Pipe.CONTROL: 3.0 * warps,
        },
        global_load_bytes=4.0 * count * inputs,
        global_store_bytes=4.0 * count,
        global_requests=(inputs + 1.0) * warps,
        global_sectors=count * (inputs + 1) / 8,
        footprint_bytes=4.0 * count * (inputs + 1),
        branches=float(warps),
    )
    return estimate(counters, line(grid, 128), KernelResources(registers_per_thread=32), chip)


# ---------------------------------------------- one double a thread, at two CTAs an SM (STREAM)

_STREAMS = {"stream_init": (0, 1), "stream_read": (1, 0), "stream_scale": (1, 1)}
_STREAM_COUNT = 1 << 26


def stream_cases(measured: Path) -> Iterator[Case]:
    """Loads and stores of one element a thread; shared memory holds occupancy at two CTAs."""
    for row in rows(measured / "gpu_benches_micro.csv.gz"):
        if row["op"] not in _STREAMS:
            continue
        loads, stores = _STREAMS[row["op"]]
        chip, block = CHIPS[row["gpu"]], int(row["block_size"])
        moved_bytes = 8.0 * _STREAM_COUNT * (loads + stores)
        yield Case(
            "one double a thread, by occupancy",
            f"{row['op']} {block} {row['gpu']}",
            moved_bytes / (float(row["value"]) * 1e9),
            _stream(loads, stores, block, chip).duration_s,
            roofline_s(0, moved_bytes, chip),
        )


def _stream(loads: int, stores: int, block: int, chip: ChipSpec) -> KernelEstimate:
    grid = _STREAM_COUNT // block
    warps = grid * -(-block // 32)
    counters = Counters(
        cta_count=grid,
        warp_count=warps,
        warp_instructions={
            Pipe.ALU: 6.0 * warps,
            Pipe.FP64: 1.0 * warps,
            Pipe.LSU: 1.0 * (loads + stores) * warps,
            Pipe.CONTROL: 2.0 * warps,
        },
        global_load_bytes=8.0 * loads * _STREAM_COUNT,
        global_store_bytes=8.0 * stores * _STREAM_COUNT,
        global_requests=1.0 * (loads + stores) * warps,
        global_sectors=_STREAM_COUNT * (loads + stores) / 4,
        footprint_bytes=8.0 * (loads + stores) * _STREAM_COUNT,
        branches=float(warps),
    )
    half_the_sm = KernelResources(registers_per_thread=32, static_shared_bytes=80 * 1024)
    return estimate(counters, line(grid, block), half_the_sm, chip)


# -------------------------------------------------- from memory to multiply-adds (intensity)


def intensity_cases(measured: Path) -> Iterator[Case]:
    """Multiply-adds on streamed floats, at the boost clock only."""
    for row in rows(measured / "gpu_benches_micro.csv.gz"):
        if row["op"] != "roofline_fp32" or float(row["clock_mhz"]) < 1410:
            continue
        intensity = float(row["intensity"])
        count = 1 << 26
        moved_bytes, flops = 8.0 * count, 8.0 * count * intensity
        yield Case(
            "multiply-adds a byte, 0.25 to 40",
            f"{intensity} {row['device']}",
            flops / (float(row["value"]) * 1e9),
            _intense(count, intensity).duration_s,
            roofline_s(flops, moved_bytes, A100_SXM4_40GB),
        )


def _intense(count: int, intensity: float) -> KernelEstimate:
    grid = count // 256
    warps = 8 * grid
    each = 8 * intensity / 2
    counters = Counters(
        cta_count=grid,
        warp_count=warps,
        warp_instructions={Pipe.ALU: 6.0 * warps, Pipe.FMA: each * warps, Pipe.LSU: 2.0 * warps},
        global_load_bytes=4.0 * count,
        global_store_bytes=4.0 * count,
        global_requests=2.0 * warps,
        global_sectors=count / 4,
        footprint_bytes=8.0 * count,
        branches=float(warps),
    )
    resources = KernelResources(registers_per_thread=32)
    return estimate(counters, line(grid, 256), resources, A100_SXM4_40GB)


# ------------------------------------------------------------- small kernels, one after another

_SMALL_GAPS = {
    "small_scale_kernel:CUDA graph": 0.0,
    "small_scale_kernel:stream back-to-back launches": launch_gap_ns(A100_SXM4_80GB) * 1e-9,
}


def small_cases(measured: Path) -> Iterator[Case]:
    """Scaling doubles over and over: the best block size of each length, 64 KB to 20 MB."""
    best: dict[tuple[str, int], float] = {}
    for row in rows(measured / "gpu_benches_micro.csv.gz"):
        if row["op"] in _SMALL_GAPS:
            key = (row["op"], int(float(row["elements"])))
            best[key] = min(best.get(key, 1.0), float(row["measured_us"]) * 1e-6)
    for (op, count), measured_s in best.items():
        if 16 * count > RESIDENT_BYTES:
            continue
        yield Case(
            "small kernels in streams and graphs",
            f"{op} {count}",
            measured_s,
            _small(count).duration_s + _SMALL_GAPS[op],
            roofline_s(0, 16.0 * count, A100_SXM4_80GB),
        )


def _small(count: int) -> KernelEstimate:
    grid = -(-count // 256)
    warps = 8 * grid
    counters = Counters(
        cta_count=grid,
        warp_count=warps,
        warp_instructions={Pipe.ALU: 6.0 * warps, Pipe.FP64: 1.0 * warps, Pipe.LSU: 2.0 * warps},
        global_load_bytes=8.0 * count,
        global_store_bytes=8.0 * count,
        global_requests=2.0 * warps,
        global_sectors=count / 2,
        footprint_bytes=16.0 * count,
        branches=float(warps),
    )
    resources = KernelResources(registers_per_thread=32)
    return estimate(counters, line(grid, 256), resources, A100_SXM4_80GB, residency=Residency.L2)


# ------------------------------------------------------------- tiled matrix products of cuBLAS

_TILE = re.compile(r"ampere_sgemm_(\d+)x(\d+)_[nt][nt]$")


def sgemm_cases(measured: Path) -> Iterator[Case]:
    """Kernels whose name tells the tile; the grid is the one that ran."""
    for row in rows(measured / "neusight_gemm_fp32.csv.gz"):
        tile = _TILE.match(row["kernel"])
        if tile is None or row["n_kernels"] != "1":
            continue
        if float(row["measured_us"]) * 1e-6 < EAGER_LEAST_S:
            continue
        grid = Dim3(int(row["grid_x"]), int(row["grid_y"]), int(row["grid_z"]))
        m, n, k = int(row["m"]), int(row["n"]), int(row["k"])
        batch = int(row["batch"] or 1)
        if grid.size * int(tile[1]) * int(tile[2]) > 4 * batch * m * n:
            continue  # the tile is mostly padding, or the product is split along k
        chip = CHIPS[row["gpu"]]
        found = _sgemm((int(tile[1]), int(tile[2])), grid, int(row["block_x"]), k, chip)
        moved_bytes = 4.0 * batch * (m * k + k * n + m * n)
        yield Case(
            "SGEMM, cuBLAS",
            f"{batch}x{m}x{n}x{k} {row['gpu']}",
            float(row["measured_us"]) * 1e-6,
            found.duration_s,
            roofline_s(2.0 * batch * m * n * k, moved_bytes, chip),
        )


def _sgemm(tile: tuple[int, int], grid: Dim3, block: int, k: int, chip: ChipSpec) -> KernelEstimate:
    """A tile in registers, slices of eight along k through shared memory, copied ahead."""
    rows_count, columns = tile
    ctas, warps = grid.size, grid.size * block // 32
    multiply_adds = ctas * rows_count * columns * k / 32
    slice_bytes = 4.0 * (rows_count + columns) * k * ctas
    each = rows_count * columns / block  # of a thread's tile
    edge = 2 * each**0.5  # floats a thread reads of shared memory a step along k
    shared = multiply_adds / each * edge / 4
    counters = Counters(
        cta_count=ctas,
        warp_count=warps,
        warp_instructions={
            Pipe.FMA: multiply_adds,
            Pipe.LSU: shared + slice_bytes / 512 * 2,
            Pipe.ALU: multiply_adds / 16,
        },
        global_load_bytes=slice_bytes,
        global_store_bytes=4.0 * ctas * rows_count * columns,
        global_requests=slice_bytes / 512,
        global_sectors=slice_bytes / 32 + ctas * rows_count * columns / 8,
        footprint_bytes=min(slice_bytes, 4.0 * ctas * (rows_count * columns) + slice_bytes / 8),
        opcode_instructions={"ld.shared.v4.f32": shared},
        shared_requests=shared,
        shared_wavefronts=2 * shared,
        barrier_instructions=k / 8 * warps,
        branches=k / 8 * warps,
    )
    resources = KernelResources(
        registers_per_thread=min(round(each) + 58, 255),
        static_shared_bytes=2 * 4 * 8 * (rows_count + columns),
    )
    config = LaunchConfig(grid=grid, block=Dim3(block))
    return estimate(counters, config, resources, chip)


# ------------------------------------------------------------- the page


@dataclass(frozen=True)
class Summary:
    """One line of the table."""

    family: str
    count: int
    median: float
    ninth_decile: float
    bias: float
    roofline_median: float


def summaries(cases: list[Case]) -> list[Summary]:
    """Errors by family, in order of first appearance."""
    found = []
    for family in dict.fromkeys(case.family for case in cases):
        own = [case for case in cases if case.family == family]
        errors = sorted(case.error for case in own)
        found.append(
            Summary(
                family,
                len(own),
                statistics.median(errors),
                errors[min(int(0.9 * len(errors)), len(errors) - 1)],
                statistics.median(case.estimated_s / case.measured_s for case in own) - 1,
                statistics.median(case.roofline_error for case in own),
            )
        )
    return found


def table(cases: list[Case]) -> str:
    """The table of the page."""
    lines = [
        "| kernels | measurements | median error | 9 of 10 within | bias | plain roofline |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {found.family} | {found.count} | {found.median:.1%} | {found.ninth_decile:.1%} "
        f"| {found.bias:+.1%} | {found.roofline_median:.1%} |"
        for found in summaries(cases)
    ]
    return "\n".join(lines)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--worst", type=int, default=0, help="also the worst cases of each family")
    args = parser.parse_args()
    cases = all_cases(args.shared / "data" / "measured")
    print(table(cases))
    for family in dict.fromkeys(case.family for case in cases) if args.worst else ():
        own = sorted((c for c in cases if c.family == family), key=lambda case: -case.error)
        for case in own[: args.worst]:
            print(
                f"{case.name}: {case.measured_s * 1e6:.2f} us measured, "
                f"{case.estimated_s * 1e6:.2f} estimated"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
