"""How many configurations of a kernel ``va100.time_kernel`` tries in a second of CPU time.

Run as ``python -m benchmarks.configurations [COUNT]``: a convolution whose block and work a thread
are macros, each configuration compiled from C++ and timed once, with nothing kept from before.
"""

from __future__ import annotations

import os
import sys
import tempfile
from itertools import islice, product
from pathlib import Path

import numpy as np

import va100
from va100.cli.time_kernel import ptx_of
from va100.config import Settings
from va100.errors import Va100Error

WIDTH, HEIGHT, RADIUS = 1024, 256, 3
COUNT = 24
LEAST_PER_S = 1.5  # of CPU time: three a second on two cores
SOURCE = """
extern "C" __global__ void convolve(float *out, const float *in, const float *weights) {
  __shared__ float tile[(BLOCK_Y * WORK_Y + 2 * RADIUS) * (BLOCK_X * WORK_X + 2 * RADIUS)];
  const int pitch = BLOCK_X * WORK_X + 2 * RADIUS, rows = BLOCK_Y * WORK_Y + 2 * RADIUS;
  const int left = blockIdx.x * BLOCK_X * WORK_X, top = blockIdx.y * BLOCK_Y * WORK_Y;
  for (int y = threadIdx.y; y < rows; y += BLOCK_Y)
    for (int x = threadIdx.x; x < pitch; x += BLOCK_X)
      tile[y * pitch + x] = in[(top + y) * (WIDTH + 2 * RADIUS) + left + x];
  __syncthreads();
  float sum[WORK_Y][WORK_X] = {};
#pragma unroll
  for (int v = 0; v <= 2 * RADIUS; ++v)
#pragma unroll
    for (int u = 0; u <= 2 * RADIUS; ++u)
#pragma unroll
      for (int j = 0; j < WORK_Y; ++j)
#pragma unroll
        for (int i = 0; i < WORK_X; ++i)
          sum[j][i] += weights[v * (2 * RADIUS + 1) + u] *
                       tile[(threadIdx.y + j * BLOCK_Y + v) * pitch +
                            threadIdx.x + i * BLOCK_X + u];
  for (int j = 0; j < WORK_Y; ++j)
    for (int i = 0; i < WORK_X; ++i)
      out[(top + threadIdx.y + j * BLOCK_Y) * WIDTH + left + threadIdx.x + i * BLOCK_X] = sum[j][i];
}
"""


def configurations() -> list[tuple[int, int, int, int]]:
    """Blocks and work a thread that divide the image, in an order that mixes them."""
    shapes = product((16, 32, 64, 128), (1, 2, 4, 8, 16), (1, 2, 4), (1, 2, 4))
    fitting = [s for s in shapes if 32 <= s[0] * s[1] <= 1024 and s[0] * s[2] <= 256]
    return sorted(fitting, key=lambda shape: hash(shape) % 1009)


def text_of(shape: tuple[int, int, int, int]) -> str:
    """The source with a configuration's macros."""
    names = ("BLOCK_X", "BLOCK_Y", "WORK_X", "WORK_Y", "WIDTH", "RADIUS")
    values = (*shape, WIDTH, RADIUS)
    return "".join(f"#define {n} {v}\n" for n, v in zip(names, values, strict=True)) + SOURCE


def cpu_s() -> float:
    """CPU time of this process and of those it waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def main() -> int:
    """Print the rates; 1 when a promise is missed."""
    count = int(sys.argv[1]) if sys.argv[1:] else COUNT
    image = np.zeros((HEIGHT + 2 * RADIUS, WIDTH + 2 * RADIUS), np.float32)
    weights = np.ones((2 * RADIUS + 1) ** 2, np.float32)
    args = [va100.Buffer(4 * WIDTH * HEIGHT), image, weights]
    spent = {"compile (nvcc)": 0.0, "run and time": 0.0}
    tried = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["VA100_CACHE_DIR"] = str(Path(folder, "cache"))
        settings = Settings.from_environment()
        for shape in islice(configurations(), count):
            begin = cpu_s()
            ptx = ptx_of(text_of(shape), (), settings)
            middle = cpu_s()
            block_x, block_y, work_x, work_y = shape
            grid = (WIDTH // (block_x * work_x), HEIGHT // (block_y * work_y))
            try:
                launch = va100.time_kernel(ptx, "convolve", grid, (block_x, block_y), args)
                print(f"  {shape}: {launch.time_s * 1e6:8.2f} us, {launch.bound}")
            except Va100Error as error:
                refused += 1
                print(f"  {shape}: {str(error).splitlines()[0]}")
            tried += 1
            spent["compile (nvcc)"] += middle - begin
            spent["run and time"] += cpu_s() - middle
    rates = {what: tried / seconds for what, seconds in spent.items()}
    print(f"{tried} configurations of a convolution, {WIDTH} x {HEIGHT}, {refused} refused")
    for what, rate in rates.items():
        print(f"  {what}: {rate:.2f} a second of CPU time")
    return int(rates["run and time"] < LEAST_PER_S)


if __name__ == "__main__":
    sys.exit(main())
