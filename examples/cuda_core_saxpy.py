"""``y = alpha x + y`` from Python with cuda.core: compile CUDA C++, launch it, read the result.

    va100 run examples/cuda_core_saxpy.py [--n ELEMENTS] [--out FILE]

FILE receives y, as floats.  Needs the packages of ``pip install 'va100[cuda-python]'``.
"""

import argparse
import sys

import numpy as np
from cuda.core import (
    Device,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Program,
    ProgramOptions,
    launch,
)

CODE = """
extern "C" __global__
void saxpy(int n, float alpha, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = fmaf(alpha, x[i], y[i]);
}
"""
BLOCK = 256


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1 << 16)
    parser.add_argument("--out")
    args = parser.parse_args()

    device = Device()
    device.set_current()
    stream = device.create_stream()
    print(f"running on {device.name}")

    # PTX, not a cubin: a virtual A100 compiles PTX for the CPU.
    program = Program(CODE, code_type="c++", options=ProgramOptions(arch="sm_80"))
    kernel = program.compile("ptx").get_kernel("saxpy")

    # Pinned host memory is NumPy's to fill and the GPU's to copy.
    size_bytes = args.n * np.dtype(np.float32).itemsize
    pinned = LegacyPinnedMemoryResource()
    host = [pinned.allocate(size_bytes, stream=stream) for _ in range(2)]
    on_gpu = [device.allocate(size_bytes, stream=stream) for _ in range(2)]
    x, y = (np.from_dlpack(buffer).view(np.float32) for buffer in host)
    x[:] = np.arange(args.n) % 1000
    y[:] = 1.0
    alpha = np.float32(2.5)
    expected = alpha * x + y

    for source, target in zip(host, on_gpu, strict=True):
        source.copy_to(target, stream=stream)
    config = LaunchConfig(grid=(args.n + BLOCK - 1) // BLOCK, block=BLOCK)
    launch(stream, config, kernel, np.int32(args.n), alpha, on_gpu[0], on_gpu[1])
    on_gpu[1].copy_to(host[1], stream=stream)
    stream.sync()

    error = float(np.max(np.abs(y - expected)))
    print(f"cuda_core_saxpy: max error {error:g}: {'PASSED' if error == 0 else 'FAILED'}")
    if args.out:
        y.tofile(args.out)
    for buffer in (*host, *on_gpu):
        buffer.close(stream)
    return 0 if error == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
