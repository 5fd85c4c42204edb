"""The kernels in OpenCL on PoCL's CPU device; prints one JSON line a kernel.

``--rolled`` leaves out the unrolling that the CUDA kernels ask for.  Run by the benchmark in an
interpreter that has pyopencl and PoCL, with ``POCL_MAX_PTHREAD_COUNT=1``: CPU time of the process
is then that of one core.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pyopencl

from benchmarks.kernels import cases

SOURCE = Path(__file__).resolve().parent / "opencl.cl"
SECONDS = 1.0


class Program:
    """The kernels, built for the first PoCL device."""

    def __init__(self, options: list[str]) -> None:
        platforms = [p for p in pyopencl.get_platforms() if "Portable Computing" in p.name]
        if not platforms:
            raise RuntimeError("no PoCL platform")
        self.context = pyopencl.Context(platforms[0].get_devices()[:1])
        self.queue = pyopencl.CommandQueue(self.context)
        self.program = pyopencl.Program(self.context, SOURCE.read_text(encoding="utf-8")).build(
            options
        )

    def measure(self, name: str) -> dict[str, object]:
        """Best CPU time of many runs at the main table's size."""
        case = cases.SMALL[name]()
        flags = pyopencl.mem_flags.READ_WRITE | pyopencl.mem_flags.COPY_HOST_PTR
        buffers = {
            k: pyopencl.Buffer(self.context, flags, hostbuf=v) for k, v in case.arrays.items()
        }
        kernel = pyopencl.Kernel(self.program, name)
        shapes = []
        for call in case.launches:
            block = (*call.block, 1)[: len(call.grid)]
            threads = tuple(g * b for g, b in zip(call.grid, block, strict=True))
            arguments = [buffers[a] if isinstance(a, str) else a for a in call.arguments]
            shapes.append((threads, block, arguments))
        self._run(kernel, shapes)
        result = case.arrays[case.output].copy()
        pyopencl.enqueue_copy(self.queue, result, buffers[case.output]).wait()
        best, end = float("inf"), time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            start = time.process_time()
            self._run(kernel, shapes)
            best = min(best, time.process_time() - start)
        return {"kernel": name, "seconds": best, "work": case.work, "wrong": case.wrong(result)}

    def _run(self, kernel, shapes) -> None:
        for threads, block, arguments in shapes:
            kernel(self.queue, threads, block, *arguments)
        self.queue.finish()


def main() -> int:
    """Measure the kernels named on the command line."""
    names = [n for n in sys.argv[1:] if n != "--rolled"]
    program = Program(["-DROLLED"] if "--rolled" in sys.argv[1:] else [])
    for name in names or [n for n in cases.SMALL if n != "mma"]:
        print(json.dumps(program.measure(name)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
