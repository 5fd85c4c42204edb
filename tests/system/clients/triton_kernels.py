"""Kernels in Triton, over memory that cuda.core allocates: no torch."""

import math

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


@triton.jit
def scan(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.cumsum(tl.load(x + i), axis=0))


@triton.jit
def srt(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.sort(tl.load(x + i)))


@triton.jit
def rnd(y, seed, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.rand(seed, i))


@triton.jit
def dot32(a, b, c, P: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    p = i[:, None] * N + i[None, :]
    tl.store(c + p, tl.dot(tl.load(a + p), tl.load(b + p), input_precision=P))


@triton.jit
def tr(a, b, N: tl.constexpr):
    i = tl.arange(0, N)
    p = i[:, None] * N + i[None, :]
    tl.store(b + p, tl.trans(tl.load(a + p)))


@triton.jit
def mth(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(y + i, tl.sin(v) + tl.log(v + 1) + tl.sqrt(v) + tl.erf(v))
    tl.device_assert(v >= 0)
    tl.debug_barrier()


@triton.jit
def cas(word, c):
    while tl.atomic_cas(word, 0, 1) == 1:
        pass
    tl.store(c, tl.load(c) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(word, 0)


@case
def cumulative_sum():
    x = Buf(R.integers(0, 9, 256).astype(np.int32))
    y = Buf(np.zeros(256, np.int32))
    scan[(1,)](x, y, B=256)
    assert (y.numpy() == np.cumsum(x.a)).all()


@case
def sorting():
    x = Buf(R.random(128, dtype=np.float32))
    y = Buf(np.zeros(128, np.float32))
    srt[(1,)](x, y, B=128)
    assert (y.numpy() == np.sort(x.a)).all()


@case
def random_numbers():
    y = Buf(np.zeros(1024, np.float32))
    rnd[(1,)](y, 7, B=1024)
    v = y.numpy()
    assert 0.45 < v.mean() < 0.55
    assert v.min() >= 0
    assert v.max() < 1


@case
def products_of_floats():
    a, b = (Buf(R.random((32, 32), dtype=np.float32)) for _ in "ab")
    c = Buf(np.zeros((32, 32), np.float32))
    dot32[(1,)](a, b, c, P="tf32", N=32)
    np.testing.assert_allclose(c.numpy(), a.a @ b.a, rtol=2e-3)
    dot32[(1,)](a, b, c, P="ieee", N=32)
    np.testing.assert_allclose(c.numpy(), a.a @ b.a, rtol=1e-5)
    dot32[(1,)](a, b, c, P="tf32x3", N=32)
    np.testing.assert_allclose(c.numpy(), a.a @ b.a, rtol=1e-5)


@case
def transposing():
    a = Buf(R.random((64, 64), dtype=np.float32))
    b = Buf(np.zeros((64, 64), np.float32))
    tr[(1,)](a, b, N=64)
    assert (b.numpy() == a.a.T).all()


@case
def functions():
    x = Buf(R.random(128, dtype=np.float32))
    y = Buf(np.zeros(128, np.float32))
    mth[(1,)](x, y, B=128)
    v = x.a.astype(float)
    np.testing.assert_allclose(
        y.numpy(), np.sin(v) + np.log(v + 1) + np.sqrt(v) + [math.erf(q) for q in v], rtol=1e-5
    )


@case
def lock():
    word = Buf(np.zeros(1, np.int32))
    c = Buf(np.zeros(1, np.int32))
    cas[(8,)](word, c)
    assert c.numpy()[0] == 8


run_cases()
