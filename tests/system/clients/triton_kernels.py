"""Kernels in Triton, over memory that cuda.core allocates: no torch."""

import numpy as np
import triton
import triton.language as tl
from cases import case, run_cases
from cuda.bindings import driver
from cuda.core import Device

dev = Device()
dev.set_current()


class Buf:
    """What Triton needs of a tensor: where it lies and what its elements are."""

    def __init__(self, values):
        self.a = np.ascontiguousarray(values)
        self.dtype = {"float32": "fp32", "float16": "fp16", "int32": "i32"}[str(self.a.dtype)]
        self.memory = dev.memory_resource.allocate(self.a.nbytes, stream=dev.default_stream)
        dev.default_stream.sync()
        driver.cuMemcpyHtoD(self.data_ptr(), self.a.ctypes.data, self.a.nbytes)

    def data_ptr(self):
        return int(self.memory.handle)

    def numpy(self):
        values = np.empty_like(self.a)
        driver.cuCtxSynchronize()
        driver.cuMemcpyDtoH(values.ctypes.data, self.data_ptr(), values.nbytes)
        return values


@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def softmax(o, x, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + r * n + c, mask=c < n, other=-float("inf"))
    v = tl.exp(v - tl.max(v, axis=0))
    tl.store(o + r * n + c, v / tl.sum(v, axis=0), mask=c < n)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, K, BK):
        acc = tl.dot(
            tl.load(a + m[:, None] * K + (i + k)[None, :]),
            tl.load(b + (i + k)[:, None] * N + n[None, :]),
            acc,
        )
    tl.store(c + m[:, None] * N + n[None, :], acc)


@triton.jit
def layernorm(x, w, b, y, n, eps, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    k = c < n
    v = tl.load(x + r * n + c, mask=k, other=0.0)
    mu = tl.sum(v, axis=0) / n
    d = tl.where(k, v - mu, 0.0)
    rs = 1 / tl.sqrt(tl.sum(d * d, axis=0) / n + eps)
    tl.store(y + r * n + c, d * rs * tl.load(w + c, mask=k) + tl.load(b + c, mask=k), mask=k)


@triton.jit
def hist(x, h, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(h + v, 1, mask=i < n)


R = np.random.default_rng(0)


@case
def addition():
    x, y = (Buf(R.random(1000, dtype=np.float32)) for _ in "ab")
    o = Buf(np.zeros(1000, np.float32))
    add[(4,)](x, y, o, 1000, B=256)
    np.testing.assert_array_equal(o.numpy(), x.a + y.a)


@case
def row_softmax():
    x = Buf(R.random((16, 100), dtype=np.float32))
    o = Buf(np.zeros((16, 100), np.float32))
    softmax[(16,)](o, x, 100, B=128)
    e = np.exp(x.a)
    np.testing.assert_allclose(o.numpy(), e / e.sum(1, keepdims=True), rtol=1e-5)


@case
def product_of_halves():
    a = Buf(R.random((128, 64)).astype(np.float16))
    b = Buf(R.random((64, 128)).astype(np.float16))
    c = Buf(np.zeros((128, 128), np.float32))
    matmul[(2, 2)](a, b, c, 128, 128, 64, BM=64, BN=64, BK=32)
    np.testing.assert_allclose(
        c.numpy(), a.a.astype(np.float32) @ b.a.astype(np.float32), rtol=1e-4
    )


@case
def layer_norm():
    x = Buf(R.random((8, 100), dtype=np.float32))
    w, b = (Buf(R.random(100, dtype=np.float32)) for _ in "ab")
    y = Buf(np.zeros((8, 100), np.float32))
    layernorm[(8,)](x, w, b, y, 100, 1e-5, B=128)
    e = (x.a - x.a.mean(1, keepdims=True)) / np.sqrt(x.a.var(1, keepdims=True) + 1e-5) * w.a + b.a
    np.testing.assert_allclose(y.numpy(), e, rtol=1e-4, atol=1e-5)


@case
def histogram():
    x = Buf(R.integers(0, 8, 1000).astype(np.int32))
    h = Buf(np.zeros(8, np.int32))
    hist[(4,)](x, h, 1000, B=256)
    assert (h.numpy() == np.bincount(x.a, minlength=8)).all()


run_cases()
