"""``python -m benchmarks``: every benchmark, with the tables that ``docs/benchmarks.md`` holds."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

from benchmarks import driver_calls, ptx_parser
from benchmarks.kernels import __main__ as kernels


def machine() -> str:
    """What was measured on, and how busy it was."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((x.split(":", 1)[1].strip() for x in info if x.startswith("model name")), "?")
    load = os.getloadavg()[0]
    compiler = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=False)
    gcc = (compiler.stdout.splitlines() or ["no gcc"])[0]
    return (
        f"{model}, {os.cpu_count()} cores, Linux {platform.release()}, "
        f"Python {platform.python_version()}, {gcc}, load {load:.1f}"
    )


def main() -> int:
    """Run all; 1 when a promise is missed."""
    print(machine(), file=sys.stderr if "--json" in sys.argv[1:] else sys.stdout)
    missed = kernels.main(sys.argv[1:])
    if "--json" in sys.argv[1:]:
        return missed
    print("\n### PTX parser\n")
    sys.argv[1:] = []
    missed |= ptx_parser.main()
    print("\n### Driver calls\n")
    return driver_calls.main() | missed


if __name__ == "__main__":
    sys.exit(main())
