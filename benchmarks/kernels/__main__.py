"""``python -m benchmarks.kernels``: the ten kernels against everyone, in one run."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.kernels import peers, report
from benchmarks.kernels.cases import LARGE, SMALL
from benchmarks.kernels.measure import Bench
from benchmarks.kernels.native_c import build
from va100.gpu.arena import Arena
from va100.jit.engine import JitEngine

SECONDS, QUICK_SECONDS = 3.0, 0.5


def say(text: str) -> None:
    """Show progress apart from the results."""
    print(text, file=sys.stderr, flush=True)


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--only", help="kernels to run, separated by commas")
    parser.add_argument("--quick", action="store_true", help="half a second a kernel, no peers")
    parser.add_argument("--no-large", action="store_true", help="leave the large sizes out")
    parser.add_argument(
        "--peers",
        default=sys.executable,
        metavar="PYTHON",
        help="an interpreter that has numba and pyopencl with PoCL (default: this one)",
    )
    return parser.parse_args(arguments)


def measure(chosen: argparse.Namespace) -> report.Results:
    """Run what was asked for."""
    names = chosen.only.split(",") if chosen.only else list(SMALL)
    unknown = sorted(set(names) - set(SMALL))
    if unknown:
        raise SystemExit(f"unknown kernel {unknown[0]!r}: choose from {', '.join(SMALL)}")
    results = report.Results()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = Bench(
            arena=Arena(),
            plain=build("plain", folder),
            tuned=build("tuned", folder),
            counted=JitEngine(),
            uncounted=JitEngine(count_blocks=False),
            folder=folder,
            seconds=QUICK_SECONDS if chosen.quick else SECONDS,
        )
        for kernel in names:
            case = SMALL[kernel]()
            say(f"{kernel}, {case.shape}")
            row = bench.small(case)
            bench.loading(case, row)
            results.small.append(row)
        if not (chosen.quick or chosen.no_large):
            for kernel in names:
                case = LARGE[kernel]()
                say(f"{kernel}, {case.shape}")
                results.large.append(bench.large(case))
    if not chosen.quick:
        say("PoCL")
        results.pocl = peers.pocl(chosen.peers, names)
        results.rolled = peers.pocl(chosen.peers, names, rolled=True)
        say("numba's CUDA simulator")
        results.numba = peers.numba_simulator(chosen.peers, names)
    else:
        results.pocl.reason = results.numba.reason = "left out by --quick"
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 when a bar that was measured is missed."""
    chosen = options(arguments)
    results = measure(chosen)
    if chosen.json:
        print(json.dumps(report.as_json(results), indent=1))
    else:
        print(report.text(results))
    return int(any(bar.met is False for bar in report.bars(results)))


if __name__ == "__main__":
    sys.exit(main())
