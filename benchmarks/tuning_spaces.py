"""Predicted times of a kernel's tuning space beside a card's, configuration by configuration.

Run as ``python -m benchmarks.tuning_spaces SPACE KERNEL MEASURED [--count N] [--seed N] [--json]``:
SPACE is ``convolution`` or ``dedispersion``; KERNEL the public source of the kernel, where it lies
(AutoTuningAssociation/benchmark_hub, ``kernels/``, HIP files as well); MEASURED the table of
configurations and times, CSV or CSV.gz.  Needs ``nvcc``.  Nothing is fitted here.

Convolution's source in that repository passes over the parameter ``use_shmem``, which the table
varies; the kernel of the table's authors has it.  Rows it does not apply to are counted apart.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import va100
from va100.errors import Va100Error

CHIP = "A100-PCIE-40GB"
CTAS = 4
FAILED = "failed_config"


@dataclass(frozen=True)
class Space:
    """A kernel with its parameters and what it is launched with."""

    kernel: str
    parameters: tuple[str, ...]
    grid: Callable[[Mapping[str, int]], tuple[int, int]]
    arguments: Callable[[], list[Any]]


@dataclass(frozen=True)
class Result:
    """One configuration: seconds measured and predicted, or why it was refused."""

    parameters: dict[str, int]
    measured_s: float | None
    """None: it failed on the card."""
    predicted_s: float | None
    bound: str
    took_s: float


def _shifts() -> np.ndarray:
    """Delays of dispersion by channel, from 1425 MHz in steps of 0.1953125 MHz, in samples."""
    channels = np.arange(1536, dtype=np.float32) * np.float32(0.1953125) + 1425
    top = 1425 + 1535 * 0.1953125
    delays = 4148.808 * (1 / channels**2 - 1 / top**2) / 0.00004096
    delays[-1] = 0
    return delays.astype(np.float32)


def _tiles(extent: int, axis: str, parameters: Mapping[str, int]) -> int:
    return -(-extent // (parameters[f"block_size_{axis}"] * parameters[f"tile_size_{axis}"]))


PIXELS = 4110 * (4110 + 64)
"""Of convolution's input, and some beyond: without shared memory its kernel reads as far, which a
card does not notice and the virtual one does."""

SPACES = {
    "convolution": Space(
        "convolution_kernel",
        ("block_size_x", "block_size_y", "tile_size_x", "tile_size_y", "read_only", "use_padding",
         "use_shmem", "use_cmem", "filter_height", "filter_width"),
        lambda p: (_tiles(4096, "x", p), _tiles(4096, "y", p)),
        lambda: [va100.Buffer(4 * 4096**2), va100.Buffer(4 * PIXELS), va100.Buffer(4 * 225)],
    ),
    "dedispersion": Space(
        "dedispersion_kernel",
        ("block_size_x", "block_size_y", "block_size_z", "tile_size_x", "tile_size_y",
         "tile_stride_x", "tile_stride_y", "loop_unroll_factor_channel"),
        lambda p: (_tiles(25_000, "x", p), _tiles(2_048, "y", p)),
        lambda: [va100.Buffer(1536 * 25_650), va100.Buffer(4 * 2_048 * 25_000), _shifts()],
    ),
}  # fmt: skip


def rows_of(path: Path) -> list[dict[str, str]]:
    """Rows of a table."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def ptx_of(source: Path, parameters: Mapping[str, int], scratch: Path) -> str:
    """Compile one configuration as a tuner does; unroll factors of 0 leave the pragma out."""
    text = source.read_text(encoding="utf-8").replace('#include "hip/hip_runtime.h"', "")
    for name, value in parameters.items():
        if name.startswith("loop_unroll_factor") and value == 0:
            text = re.sub(rf"^.*#pragma unroll {name}.*$", "", text, flags=re.MULTILINE)
    kernel, out = scratch / "kernel.cu", scratch / "kernel.ptx"
    kernel.write_text(text, encoding="utf-8")
    defined = [f"-D{name}={value}" for name, value in parameters.items()]
    subprocess.run(
        ["nvcc", "-arch=compute_80", "-ptx", "-I", source.parent, kernel, "-o", out, *defined],
        check=True, capture_output=True,
    )  # fmt: skip
    return out.read_text(encoding="utf-8")


def result_of(space: str, source: Path, row: Mapping[str, str]) -> Result:
    """Predict one row."""
    chosen = SPACES[space]
    parameters = {name: int(row.get(name) or 0) for name in chosen.parameters}
    measured = None if row["flag"] == FAILED else float(row["median_us"]) * 1e-6
    block = (parameters["block_size_x"], parameters["block_size_y"])
    with tempfile.TemporaryDirectory(prefix="tuning-") as scratch:
        text = ptx_of(source, parameters, Path(scratch))
    began = time.perf_counter()
    predicted, bound = None, ""
    try:
        found = va100.time_kernel(
            text, chosen.kernel, chosen.grid(parameters), block, chosen.arguments(),
            chip=CHIP, ctas=CTAS,
        )  # fmt: skip
        predicted, bound = found.time_s, found.bound
    except Va100Error as error:
        bound = f"{type(error).__name__}: {error}"
    return Result(parameters, measured, predicted, bound, time.perf_counter() - began)


def ranks(values: Sequence[float]) -> np.ndarray:
    """Ranks of values, without regard for ties."""
    return np.argsort(np.argsort(values))


def summary(results: Sequence[Result]) -> dict[str, float]:
    """Errors over the configurations that ran on the card and here."""
    pairs = [
        (found.measured_s, found.predicted_s)
        for found in results
        if found.measured_s is not None and found.predicted_s is not None
    ]
    errors = [predicted / measured - 1 for measured, predicted in pairs]
    measured = [pair[0] for pair in pairs]
    best = min(pairs, key=lambda pair: pair[1])[0]
    median = statistics.median(measured)
    return {
        "configurations": len(pairs),
        "mape": statistics.mean(abs(error) for error in errors),
        "median_error": statistics.median(abs(error) for error in errors),
        "bias": statistics.median(errors),
        "spearman": float(np.corrcoef(ranks(measured), ranks([pair[1] for pair in pairs]))[0, 1]),
        "regret": best / min(measured) - 1,
        "mape_of_the_median": statistics.mean(abs(median / each - 1) for each in measured),
        "failed_and_refused": sum(
            found.measured_s is None and found.predicted_s is None for found in results
        ),
        "failed_but_predicted": sum(
            found.measured_s is None and found.predicted_s is not None for found in results
        ),
        "ran_but_refused": sum(
            found.measured_s is not None and found.predicted_s is None for found in results
        ),
        "seconds_each": statistics.mean(found.took_s for found in results),
    }


def main() -> int:
    """Predict a sample and print how far off it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("space", choices=SPACES)
    parser.add_argument("kernel", type=Path)
    parser.add_argument("measured", type=Path)
    parser.add_argument("--count", type=int, default=0, help="configurations; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="of which are taken")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="every configuration as JSON")
    args = parser.parse_args()
    rows = rows_of(args.measured)
    random.Random(args.seed).shuffle(rows)
    rows = rows[: args.count or len(rows)]
    if args.space == "convolution" and "use_shmem" not in args.kernel.read_text(encoding="utf-8"):
        apart = [row for row in rows if row["use_shmem"] == "0"]
        rows = [row for row in rows if row["use_shmem"] != "0"]
        print(f"{len(apart)} rows of a kernel this source does not hold", file=sys.stderr)
    results = []
    with ProcessPoolExecutor(args.workers) as pool:
        for found in pool.map(partial(result_of, args.space, args.kernel), rows):
            results.append(found)
            print(f"\r{len(results)} of {len(rows)}", end="", file=sys.stderr)
    print(file=sys.stderr)
    if args.json:
        print(json.dumps([asdict(found) for found in results]))
    else:
        for name, value in summary(results).items():
            print(f"{name:22} {value:.4g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
