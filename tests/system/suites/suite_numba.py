"""A suite of numba-cuda's kernels."""

import numpy as np
import pytest
from numba import cuda


@cuda.jit(lineinfo=True)
def add(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


@cuda.jit(lineinfo=True)
def spread(out):
    box = cuda.shared.array(64, np.int32)
    i = cuda.threadIdx.x
    box[i] = i
    out[i] = box[i % 32]  # no barrier before: a race, with the right result


@pytest.mark.parametrize("size", [1, 1000])
def test_add(size):
    a, b, out = np.arange(size), np.ones(size), np.zeros(size)
    add[(size + 255) // 256, 256](a, b, out)
    np.testing.assert_array_equal(out, a + b)


def test_race():
    out = np.zeros(64, np.int32)
    spread[1, 64](out)
    np.testing.assert_array_equal(out, np.arange(64) % 32)
