"""What a driver call and a launch cost a native thread while a Python thread is busy.

Run as ``python -m benchmarks.driver_calls``.  Beside our driver stands the way of shims whose calls
are Python functions: the same loop calls one through ctypes, and waits for the interpreter's lock
each time.  CPU time is that of the calling thread; by the wall it waits for the lock, too.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from va100.gpu.native import library

CALLS, LAUNCHES, ROUNDS = 1_000_000, 20_000, 7
OLD_CALLS, OLD_S = 50, 2.0
MOST_CALL_S, MOST_LAUNCH_S = 0.1e-6, 2e-6
PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry nop(.param .u32 unused)
{
    ret;
}
"""
Best = tuple[float, float]
Run = Callable[[ctypes.c_double, ctypes.c_double], int]


def build(folder: str) -> ctypes.CDLL:
    """The loops, compiled."""
    target = Path(folder, "driver_calls.so")
    source = Path(__file__).with_suffix(".c")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", str(source), "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


def once(run: Run) -> Best:
    """CPU and wall seconds a call."""
    cpu_s, wall_s = ctypes.c_double(), ctypes.c_double()
    if run(cpu_s, wall_s):
        raise RuntimeError("a call failed")
    return cpu_s.value, wall_s.value


def best_of(run: Run) -> Best:
    """The least over some rounds."""
    found = [once(run) for _ in range(ROUNDS)]
    return min(f[0] for f in found), min(f[1] for f in found)


def mean_of(run: Run) -> Best:
    """The mean over some seconds: who gets the lock at once and who waits is luck."""
    end = time.monotonic() + OLD_S
    found = [once(run)]
    while time.monotonic() < end:
        found.append(once(run))
    return sum(f[0] for f in found) / len(found), sum(f[1] for f in found) / len(found)


def opened() -> tuple[ctypes.CDLL, ctypes.c_void_p]:
    """A driver with a context, and a kernel that does nothing, already compiled."""
    driver = library()
    context, module, function = (ctypes.c_void_p() for _ in range(3))
    steps = (
        lambda: driver.cuInit(0),
        lambda: driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
        lambda: driver.cuCtxSetCurrent(context),
        lambda: driver.cuModuleLoadData(ctypes.byref(module), PTX),
        lambda: driver.cuModuleGetFunction(ctypes.byref(function), module, b"nop"),
    )
    for number, step in enumerate(steps):
        if step():
            raise RuntimeError(f"step {number} of opening the driver failed")
    return driver, function


def measure(loops: ctypes.CDLL) -> dict[str, Best]:
    """Every row of the table."""
    driver, function = opened()
    value = ctypes.c_uint32(0)
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(value))

    def queries(call: object, count: int) -> Run:
        return lambda cpu_s, wall_s: int(
            loops.time_queries(call, count, ctypes.byref(cpu_s), ctypes.byref(wall_s))
        )

    def launches(cpu_s: ctypes.c_double, wall_s: ctypes.c_double) -> int:
        pair = ctypes.byref(cpu_s), ctypes.byref(wall_s)
        return int(loops.time_launches(driver.cuLaunchKernel, function, arguments, LAUNCHES, *pair))

    def in_python(out: int) -> int:
        return 0

    old = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(in_python)
    once(launches)  # compiles
    return {
        "cuCtxGetCurrent": best_of(queries(driver.cuCtxGetCurrent, CALLS)),
        "cuLaunchKernel": best_of(launches),
        "a Python function instead": mean_of(queries(old, OLD_CALLS)),
    }


def main() -> int:
    """Print the table; 1 when a promise is missed."""
    stop = threading.Event()

    def busy() -> None:
        n = 0
        while not stop.is_set():
            n += 1

    with tempfile.TemporaryDirectory() as folder:
        loops = build(folder)
        thread = threading.Thread(target=busy, daemon=True)
        thread.start()
        try:
            rows = measure(loops)
        finally:
            stop.set()
            thread.join()
    print("| call | CPU us | wall us |\n|---|---:|---:|")
    for name, (cpu_s, wall_s) in rows.items():
        print(f"| {name} | {cpu_s * 1e6:.3f} | {wall_s * 1e6:.3f} |")
    late = rows["cuCtxGetCurrent"][0] > MOST_CALL_S or rows["cuLaunchKernel"][0] > MOST_LAUNCH_S
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
