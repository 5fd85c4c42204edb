"""A suite of cuda.core's: a kernel of CUDA C++ and a buffer."""

import ctypes

import pytest
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = """
extern "C" __global__ void twice(int *out, int bound) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < bound) out[i] = 2 * i;
}
"""


@pytest.fixture(scope="module")
def device():
    device = Device()
    device.set_current()
    return device


def twice(device, size, bound):
    program = Program(SOURCE, "c++", ProgramOptions(arch="compute_80", lineinfo=True))
    kernel = program.compile("ptx").get_kernel("twice")
    stream = device.create_stream()
    managed = device.allocate(4 * size, stream=stream)
    config = LaunchConfig(grid=(bound + 63) // 64, block=64)
    launch(stream, config, kernel, managed, bound)
    out = (ctypes.c_int * size)()
    stream.sync()
    from cuda.bindings import driver

    driver.cuMemcpyDtoH(out, int(managed.handle), 4 * size)
    managed.close(stream)
    return list(out)


def test_twice(device):
    assert twice(device, 100, 100) == [2 * i for i in range(100)]


def test_beyond(device):
    """Past the buffer's end, where a card has nothing that would notice."""
    assert twice(device, 100, 101) == [2 * i for i in range(100)]
