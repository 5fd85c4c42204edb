"""What checking costs: CPU time of kernels under the checker over that without it, in one run.

``python -m benchmarks.checker`` runs kernels of :mod:`benchmarks.kernels` at small sizes on one
worker, with each tool alone and with all; contenders take turns, so that noise strikes all alike.
A kernel that the checker finds fault with, or whose result is wrong, ends the run.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from benchmarks.kernels.cases import (
    Case,
    gather,
    hist,
    mandelbrot,
    mma,
    reduce,
    saxpy,
    sgemm16,
    sgemm32,
    sgemmrt,
)
from benchmarks.kernels.ours import Ours
from benchmarks.kernels.timing import Race
from va100.check.findings import TOOL_BITS, Tool
from va100.check.native import NativeChecker
from va100.gpu.arena import Arena
from va100.gpu.native import library
from va100.jit.engine import JitEngine

CASES: Final[Mapping[str, Callable[[], Case]]] = {
    "saxpy": lambda: saxpy(1 << 18),
    "gather": lambda: gather(1 << 18, 1 << 16),
    "reduce": lambda: reduce(1 << 18),
    "hist": lambda: hist(1 << 20),
    "sgemm32": lambda: sgemm32(128),
    "sgemm16": lambda: sgemm16(128),
    "sgemmrt": lambda: sgemmrt(128),
    "mma": lambda: mma(128),
    "mandelbrot": lambda: mandelbrot(128, 64),
}
COLUMNS: Final = {
    **{tool.value: TOOL_BITS[tool] for tool in Tool},
    "all": sum(TOOL_BITS.values()),
}
PLAIN: Final = "unchecked"
SECONDS: Final = 4.0


class CheckedRun:
    """A case under some tools; call it to run it once."""

    def __init__(self, run: Ours, checker: NativeChecker, bits: int) -> None:
        self.run, self.checker, self.bits = run, checker, bits

    def prepare(self) -> None:
        """Turn the tools on and tell them of the case's memory, all of which the host filled."""
        self.checker.enable(self.bits)
        lib = library()
        for name, address in self.run.buffers.addresses.items():
            size = ctypes.c_uint64(self.run.case.arrays[name].nbytes)
            lib.va_check_allocated(ctypes.c_uint64(address), size, 0)
            lib.va_check_filled(ctypes.c_uint64(address), size)

    def __call__(self) -> None:
        """Run the case's launches."""
        self.run()


def measure(name: str, arena: Arena, seconds: float) -> dict[str, float]:
    """Best CPU time of a kernel without the checker, and with each set of tools."""
    case, checker = CASES[name](), NativeChecker()
    plain = Ours(case, JitEngine(), arena, workers=1)
    checked = Ours(case, JitEngine(checked=lambda _: True), arena, workers=1)
    runs = {column: CheckedRun(checked, checker, bits) for column, bits in COLUMNS.items()}
    best: dict[str, float] = {}
    for column, run in runs.items():  # one tool after another, the plain kernel beside each
        run.prepare()
        run()
        if found := checker.take():
            raise SystemExit(f"{name} under {column}: {len(found)} findings on a correct kernel")
        race = Race({PLAIN: plain, column: run}).run(seconds / len(runs))
        best[PLAIN] = min(best.get(PLAIN, float("inf")), race[PLAIN].cpu_s)
        best[column] = race[column].cpu_s
        checker.enable(0)
    plain.free()
    checked.free()
    return best


def table(results: Mapping[str, Mapping[str, float]]) -> str:
    """Ratios as a table for the documents."""
    head = ["kernel", f"{PLAIN} ms", *COLUMNS]
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    for name, times in results.items():
        cells = [f"{times[column] / times[PLAIN]:.1f}x" for column in COLUMNS]
        lines.append("| " + " | ".join([name, f"{times[PLAIN] * 1e3:.3f}", *cells]) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checker", description=__doc__)
    parser.add_argument("--only", help="kernels to run, separated by commas")
    parser.add_argument("--json", action="store_true", help="print seconds as JSON")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="time for each kernel")
    chosen = parser.parse_args(arguments)
    names = chosen.only.split(",") if chosen.only else list(CASES)
    unknown = sorted(set(names) - set(CASES))
    if unknown:
        raise SystemExit(f"unknown kernel {unknown[0]!r}: choose from {', '.join(CASES)}")
    arena = Arena()
    results = {name: measure(name, arena, chosen.seconds) for name in names}
    print(json.dumps(results, indent=1) if chosen.json else table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
