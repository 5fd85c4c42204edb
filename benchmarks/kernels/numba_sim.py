"""The kernels in numba-CUDA Python, on numba's CUDA simulator; prints one JSON line a kernel.

Run by the benchmark in an interpreter that has numba, with ``NUMBA_ENABLE_CUDASIM=1``.  Sizes are
small: the simulator gives every thread of a block an operating-system thread.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from numba import cuda, float32, uint32

from benchmarks.kernels import cases

U32 = np.uint32


@cuda.jit
def saxpy(n, a, x, y):
    i = cuda.grid(1)
    if i < n:
        y[i] = a * x[i] + y[i]


@cuda.jit
def gather(n, index, x, y):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[index[i]]


@cuda.jit
def alu(n, rounds, out):
    i = cuda.grid(1)
    if i >= n:
        return
    shifted = (i * 2654435761 + 1) & 0xFFFFFFFF
    linear = i
    total = 0
    for _ in range(rounds):
        shifted ^= (shifted << 13) & 0xFFFFFFFF
        shifted ^= shifted >> 17
        shifted ^= (shifted << 5) & 0xFFFFFFFF
        linear = (linear * 1664525 + 1013904223) & 0xFFFFFFFF
        total = (total + (shifted ^ linear)) & 0xFFFFFFFF
    out[i] = total


@cuda.jit
def sgemm32(n, a, b, c):
    left = cuda.shared.array((32, 32), float32)
    right = cuda.shared.array((32, 32), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.blockIdx.x * 32 + x, cuda.blockIdx.y * 32 + y
    total = np.float32(0)
    for k in range(0, n, 32):
        left[y, x] = a[row, k + x]
        right[y, x] = b[k + y, column]
        cuda.syncthreads()
        for i in range(32):
            total += left[y, i] * right[i, x]
        cuda.syncthreads()
    c[row, column] = total


@cuda.jit
def sgemm16(n, a, b, c):
    left = cuda.shared.array((16, 16), float32)
    right = cuda.shared.array((16, 16), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.blockIdx.x * 16 + x, cuda.blockIdx.y * 16 + y
    total = np.float32(0)
    for k in range(0, n, 16):
        left[y, x] = a[row, k + x]
        right[y, x] = b[k + y, column]
        cuda.syncthreads()
        for i in range(16):
            total += left[y, i] * right[i, x]
        cuda.syncthreads()
    c[row, column] = total


@cuda.jit
def sgemmrt(n, a, b, c):
    left = cuda.shared.array((16, 64), float32)
    right = cuda.shared.array((16, 64), float32)
    total = cuda.local.array((4, 4), float32)
    thread = cuda.threadIdx.x
    tx, ty = thread % 16, thread // 16
    top, side = cuda.blockIdx.y * 64, cuda.blockIdx.x * 64
    for i in range(4):
        for j in range(4):
            total[i, j] = 0
    for k in range(0, n, 16):
        for i in range(thread, 1024, 256):
            left[i % 16, i // 16] = a[top + i // 16, k + i % 16]
            right[i // 64, i % 64] = b[k + i // 64, side + i % 64]
        cuda.syncthreads()
        for d in range(16):
            for i in range(4):
                for j in range(4):
                    total[i, j] += left[d, ty * 4 + i] * right[d, tx + 16 * j]
        cuda.syncthreads()
    for i in range(4):
        for j in range(4):
            c[top + ty * 4 + i, side + tx + 16 * j] = total[i, j]


@cuda.jit
def reduce(n, x, partial):
    warps = cuda.shared.array(32, float32)
    thread = cuda.threadIdx.x
    total = np.float32(0)
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        total += x[i]
    # The simulator has no warp shuffles: a tree in shared memory stands for them.
    tree = cuda.shared.array(256, float32)
    tree[thread] = total
    cuda.syncthreads()
    step = 128
    while step:
        if thread < step:
            tree[thread] += tree[thread + step]
        cuda.syncthreads()
        step //= 2
    if thread == 0:
        warps[0] = tree[0]
        partial[cuda.blockIdx.x] = warps[0]


@cuda.jit
def mandelbrot(width, height, limit, out):
    px, py = cuda.grid(2)
    if px >= width or py >= height:
        return
    cx = np.float32(-2) + np.float32(3) * np.float32(px) / np.float32(width)
    cy = np.float32(-1.5) + np.float32(3) * np.float32(py) / np.float32(height)
    x, y = np.float32(0), np.float32(0)
    turn = 0
    while turn < limit and x * x + y * y <= np.float32(4):
        x, y = x * x - y * y + cx, np.float32(2) * x * y + cy
        turn += 1
    out[py, px] = turn


@cuda.jit
def hist(n, data, bins):
    own = cuda.shared.array(256, uint32)
    for i in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
        own[i] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        cuda.atomic.add(own, data[i], 1)
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
        cuda.atomic.add(bins, i, own[i])


KERNELS = {
    "saxpy": saxpy,
    "gather": gather,
    "alu": alu,
    "sgemm32": sgemm32,
    "sgemm16": sgemm16,
    "sgemmrt": sgemmrt,
    "reduce": reduce,
    "mandelbrot": mandelbrot,
    "hist": hist,
}


def measure(name: str) -> dict[str, object]:
    """Run a kernel once at its small size; CPU seconds of all threads."""
    case = cases.TINY[name]()
    arrays = {k: v.copy() for k, v in case.arrays.items()}
    start = time.process_time()
    for call in case.launches:
        arguments = [arrays[a] if isinstance(a, str) else a for a in call.arguments]
        KERNELS[name][call.grid, call.block](*arguments)
    spent = time.process_time() - start
    return {
        "kernel": name,
        "seconds": spent,
        "work": case.work,
        "shape": case.shape,
        "wrong": case.wrong(arrays[case.output]),
    }


def main() -> int:
    """Measure the kernels named on the command line."""
    for name in sys.argv[1:] or KERNELS:
        print(json.dumps(measure(name)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
