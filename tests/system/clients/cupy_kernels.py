"""CuPy, with its modules that hold the runtime built anew: kernels, arrays, sorting, graphs."""

import cupy as cp
import numpy as np
from cases import case, run_cases
from cupyx import jit

COUNT = 1000
values = np.random.default_rng(1).normal(size=COUNT)
table = np.random.default_rng(2).integers(0, 50, (20, 30))

SAXPY = """
extern "C" __global__ void saxpy(float a, const float *x, float *y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] += a * x[i];
}
"""
TWICE = "template <typename T> __global__ void twice(T *x) { x[threadIdx.x] *= 2; }"


@case
def raw_kernels():
    saxpy = cp.RawKernel(SAXPY, "saxpy")
    x, y = cp.asarray(values, dtype=cp.float32), cp.ones(COUNT, cp.float32)
    saxpy((8,), (128,), (cp.float32(2), x, y, COUNT))
    assert np.allclose(y.get(), values * 2 + 1, atol=1e-5)


@case
def templates():
    module = cp.RawModule(code=TWICE, name_expressions=["twice<double>"], options=("-std=c++17",))
    x = cp.arange(32.0)
    module.get_function("twice<double>")((1,), (32,), (x,))
    assert (x.get() == np.arange(32.0) * 2).all()


@case
def element_wise():
    kernel = cp.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared")
    assert (kernel(cp.arange(5.0), cp.ones(5)).get() == (np.arange(5) - 1) ** 2).all()


@case
def reductions_of_ones_own():
    kernel = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    assert np.isclose(kernel(cp.asarray(values)).get(), np.linalg.norm(values))


@case
def reductions():
    x = cp.asarray(table, dtype=cp.float64)
    for name in ("sum", "mean", "max", "min", "std", "argmax", "cumsum"):
        for axis in (None, 0, 1):
            found = getattr(cp, name)(x, axis=axis).get()
            assert np.allclose(found, getattr(np, name)(table * 1.0, axis=axis)), (name, axis)


@case
def sorting():
    x = cp.asarray(values)
    assert (cp.sort(x).get() == np.sort(values)).all()
    assert (cp.argsort(x).get() == np.argsort(values)).all()
    assert (cp.sort(cp.asarray(table), axis=0).get() == np.sort(table, axis=0)).all()
    assert (cp.unique(cp.asarray(table)).get() == np.unique(table)).all()


@case
def random_numbers():
    x = cp.random.default_rng(3).standard_normal(COUNT).get()
    assert abs(x.mean()) < 0.2
    assert 0.8 < x.std() < 1.2
    assert len(np.unique(x)) == COUNT


@case
def indexing():
    x = cp.asarray(table)
    assert (x[x % 2 == 0].get() == table[table % 2 == 0]).all()
    assert (x[[1, 3], ::2].get() == table[[1, 3], ::2]).all()


@case
def fused():
    @cp.fuse()
    def shifted(x, y):
        return x * y + cp.sin(x)

    x = np.arange(5.0)
    assert np.allclose(shifted(cp.asarray(x), cp.ones(5)).get(), x + np.sin(x))


@case
def kernels_in_python():
    @jit.rawkernel()
    def twice(x, y, count):
        i = jit.grid(1)
        if i < count:
            y[i] = x[i] * 2

    x, y = cp.asarray(values), cp.zeros(COUNT)
    twice((8,), (128,), (x, y, COUNT))
    assert (y.get() == values * 2).all()


@case
def streams_and_graphs():
    stream, x = cp.cuda.Stream(non_blocking=True), cp.zeros(COUNT)
    with stream:
        x += 1
        stream.begin_capture()
        x += 1
        graph = stream.end_capture()
        graph.launch()
        graph.launch()
    stream.synchronize()
    assert (x.get() == 3).all()


@case
def memory():
    for allocate in (cp.cuda.MemoryPool(cp.cuda.malloc_managed), cp.cuda.MemoryAsyncPool()):
        with cp.cuda.using_allocator(allocate.malloc):
            assert int(cp.arange(10).sum()) == 45


run_cases()
