"""PyCUDA: sources that nvcc compiles, arrays, and kernels that PyCUDA writes itself."""

import numpy as np
import pycuda.autoinit
import pycuda.driver as drv
from cases import case, run_cases
from pycuda import gpuarray
from pycuda.compiler import SourceModule
from pycuda.elementwise import ElementwiseKernel
from pycuda.reduction import ReductionKernel
from pycuda.scan import ExclusiveScanKernel, InclusiveScanKernel

SOURCE = """
__constant__ float factor;

__global__ void scale(float *out, const float *in, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = factor * in[i];
}

__global__ void reverse(int *values) {
  extern __shared__ int box[];
  box[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = box[blockDim.x - 1 - threadIdx.x];
}
"""
COUNT = 1000
GRID = {"block": (128, 1, 1), "grid": (8, 1)}
module = SourceModule(SOURCE)
values = np.random.default_rng(1).normal(size=COUNT).astype(np.float32)


def factor(value):
    address, size = module.get_global("factor")
    assert size == 4
    drv.memcpy_htod(address, np.float32(value))


@case
def device():
    assert "A100" in pycuda.autoinit.device.name()
    assert pycuda.autoinit.device.compute_capability() == (8, 0)


@case
def arguments_that_are_copied():
    factor(3)
    out = np.empty_like(values)
    scale = module.get_function("scale")
    scale(drv.Out(out), drv.In(values), np.int32(COUNT), **GRID)
    np.testing.assert_array_equal(out, 3 * values)


@case
def prepared_calls():
    factor(5)
    scale = module.get_function("scale").prepare("PPi")
    into, source = drv.mem_alloc(values.nbytes), drv.to_device(values)
    scale.prepared_call((8, 1), (128, 1, 1), into, source, COUNT)
    np.testing.assert_array_equal(drv.from_device_like(into, values), 5 * values)


@case
def dynamic_shared_memory():
    numbers = np.arange(256, dtype=np.int32)
    found = drv.to_device(numbers)
    module.get_function("reverse")(found, block=(256, 1, 1), shared=1024)
    np.testing.assert_array_equal(drv.from_device_like(found, numbers), numbers[::-1])


@case
def what_a_function_needs():
    reverse = module.get_function("reverse")
    assert reverse.max_threads_per_block == 1024
    assert 0 < reverse.num_regs <= 255


@case
def streams_events_and_pinned_memory():
    stream, begin, end = drv.Stream(), drv.Event(), drv.Event()
    pinned = drv.pagelocked_empty(COUNT, np.float32)
    pinned[:] = values
    factor(2)
    source, into = drv.mem_alloc(values.nbytes), drv.mem_alloc(values.nbytes)
    begin.record(stream)
    drv.memcpy_htod_async(source, pinned, stream)
    module.get_function("scale")(into, source, np.int32(COUNT), stream=stream, **GRID)
    drv.memcpy_dtoh_async(pinned, into, stream)
    end.record(stream)
    end.synchronize()
    assert end.time_since(begin) > 0
    np.testing.assert_array_equal(pinned, 2 * values)


@case
def arrays():
    x = gpuarray.to_gpu(values)
    np.testing.assert_allclose((2 * x + 1).get(), 2 * values + 1, rtol=1e-6)
    np.testing.assert_allclose(gpuarray.sum(x).get(), values.sum(), atol=1e-3)
    assert gpuarray.max(x).get() == values.max()


@case
def own_kernels():
    x = gpuarray.to_gpu(values)
    z = gpuarray.empty_like(x)
    ElementwiseKernel("float a, float *x, float *z", "z[i] = a * x[i] + i", "line")(2, x, z)
    np.testing.assert_allclose(z.get(), 2 * values + np.arange(COUNT), rtol=1e-6)
    dot = ReductionKernel(
        np.float32,
        neutral="0",
        reduce_expr="a + b",
        map_expr="x[i] * y[i]",
        arguments="float *x, float *y",
    )
    np.testing.assert_allclose(dot(x, x).get(), values @ values, rtol=1e-5)


@case
def scans():
    numbers = np.arange(5000, dtype=np.int32) % 7
    for kernel, right in (
        (InclusiveScanKernel(np.int32, "a+b"), numbers.cumsum()),
        (ExclusiveScanKernel(np.int32, "a+b", "0"), numbers.cumsum() - numbers),
    ):
        found = gpuarray.to_gpu(numbers)
        kernel(found)
        np.testing.assert_array_equal(found.get(), right)


run_cases()
