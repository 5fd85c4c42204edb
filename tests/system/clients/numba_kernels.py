"""Kernels of many kinds in Python, by numba-cuda."""

import math
import warnings

import numpy as np
from cases import case, run_cases
from numba import cuda, float32, int32, vectorize
from numba.cuda.random import (
    create_xoroshiro128p_states,
    xoroshiro128p_normal_float64,
    xoroshiro128p_uniform_float32,
)
from numba.cuda.types import float16

warnings.simplefilter("ignore")
rng = np.random.default_rng(1)


@case
def shared_reverse():
    @cuda.jit
    def k(x, y):
        s = cuda.shared.array(128, float32)
        i = cuda.threadIdx.x
        s[i] = x[i]
        cuda.syncthreads()
        y[i] = s[127 - i]

    x = rng.random(128, dtype=np.float32)
    y = np.zeros_like(x)
    k[1, 128](x, y)
    assert (y == x[::-1]).all()


@case
def matmul():
    TPB = 16

    @cuda.jit
    def k(A, B, C):
        sA = cuda.shared.array((TPB, TPB), float32)
        sB = cuda.shared.array((TPB, TPB), float32)
        x, y = cuda.grid(2)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        acc = float32(0)
        for i in range((A.shape[1] + TPB - 1) // TPB):
            sA[ty, tx] = 0
            sB[ty, tx] = 0
            if y < A.shape[0] and tx + i * TPB < A.shape[1]:
                sA[ty, tx] = A[y, tx + i * TPB]
            if x < B.shape[1] and ty + i * TPB < B.shape[0]:
                sB[ty, tx] = B[ty + i * TPB, x]
            cuda.syncthreads()
            for j in range(TPB):
                acc += sA[ty, j] * sB[j, tx]
            cuda.syncthreads()
        if y < C.shape[0] and x < C.shape[1]:
            C[y, x] = acc

    A = rng.random((50, 33), dtype=np.float32)
    B = rng.random((33, 41), dtype=np.float32)
    C = np.zeros((50, 41), np.float32)
    k[(3, 4), (16, 16)](A, B, C)
    np.testing.assert_allclose(C, A @ B, rtol=1e-5)


@case
def reduce():
    @cuda.reduce
    def s(a, b):
        return a + b

    A = rng.random(12345)
    assert abs(s(A) - A.sum()) < 1e-8


@case
def atomics():
    @cuda.jit
    def k(h, v, m, c):
        i = cuda.grid(1)
        if i < v.size:
            cuda.atomic.add(h, v[i], 1)
            cuda.atomic.max(m, 0, float(v[i]))
            cuda.atomic.cas(c, 0, 0, 7)
            cuda.atomic.add(m, 1, 0.5)

    v = rng.integers(0, 16, 5000).astype(np.int32)
    h = np.zeros(16, np.int32)
    m = np.zeros(2)
    c = np.zeros(1, np.int32)
    k[20, 256](h, v, m, c)
    assert (h == np.bincount(v, minlength=16)).all()
    assert m[0] == 15
    assert c[0] == 7
    assert m[1] == 2500


@case
def grid_sync():
    @cuda.jit
    def k(M):
        col = cuda.grid(1)
        g = cuda.cg.this_grid()
        for r in range(1, M.shape[0]):
            M[r, col] = M[r - 1, (col + 1) % M.shape[1]] + 1
            g.sync()

    M = np.zeros((20, 1024), np.int32)
    k[4, 256](M)
    assert (np.arange(20)[:, None] == M).all()


@case
def local_array():
    @cuda.jit
    def k(y):
        a = cuda.local.array(8, int32)
        i = cuda.grid(1)
        for j in range(8):
            a[j] = i * j
        s = 0
        for j in range(8):
            s += a[(j + i) % 8]
        y[i] = s

    y = np.zeros(64, np.int32)
    k[2, 32](y)
    assert (y == 28 * np.arange(64)).all()


@case
def xoroshiro():
    @cuda.jit
    def k(st, n, out, o2):
        i = cuda.grid(1)
        ins = 0
        for _ in range(n):
            x = xoroshiro128p_uniform_float32(st, i)
            y = xoroshiro128p_uniform_float32(st, i)
            if x * x + y * y <= 1:
                ins += 1
        out[i] = 4.0 * ins / n
        o2[i] = xoroshiro128p_normal_float64(st, i)

    st = create_xoroshiro128p_states(256, seed=1)
    o = np.zeros(256, np.float32)
    o2 = np.zeros(256)
    k[4, 64](st, 500, o, o2)
    assert abs(o.mean() - math.pi) < 0.02
    assert abs(o2.mean()) < 0.3


@case
def device_function():
    @cuda.jit(device=True)
    def f(a, b):
        return a * b + 1

    @cuda.jit(device=True, inline="never")
    def g(a):
        return f(a, a) - 1 if a > 3 else f(a, 2)

    @cuda.jit
    def k(x, y):
        i = cuda.grid(1)
        y[i] = g(x[i])

    x = np.arange(32.0)
    y = np.zeros(32)
    k[1, 32](x, y)
    assert (y == np.where(x > 3, x * x, 2 * x + 1)).all()


@case
def half():
    @cuda.jit
    def k(x, y, z):
        i = cuda.grid(1)
        y[i] = x[i] * x[i] + float16(1)
        z[i] = cuda.fp16.hsqrt(cuda.fp16.hfma(x[i], x[i], x[i]))

    x = rng.random(64).astype(np.float16)
    y = np.zeros_like(x)
    z = np.zeros_like(x)
    k[1, 64](x, y, z)
    np.testing.assert_allclose(y, x.astype(float) ** 2 + 1, rtol=2e-3)
    np.testing.assert_allclose(z, np.sqrt(x.astype(float) ** 2 + x), rtol=2e-3)


C = np.arange(32, dtype=np.float32) ** 2


@case
def const():
    @cuda.jit
    def k(y):
        c = cuda.const.array_like(C)
        i = cuda.grid(1)
        y[i] = c[31 - i]

    y = np.zeros(32, np.float32)
    k[1, 32](y)
    assert (y == C[::-1]).all()


@case
def streams_events():
    @cuda.jit
    def k(x):
        i = cuda.grid(1)
        x[i] += 1

    s = cuda.stream()
    e0 = cuda.event()
    e1 = cuda.event()
    with cuda.pinned(h := np.zeros(1024)), s.auto_synchronize():
        d = cuda.to_device(h, stream=s)
        e0.record(s)
        for _ in range(10):
            k[4, 256, s](d)
        e1.record(s)
        d.copy_to_host(h, stream=s)
    assert (h == 10).all()
    assert 0 < e0.elapsed_time(e1) < 10


@case
def host_memory():
    @cuda.jit
    def k(x):
        i = cuda.grid(1)
        x[i] += i

    m = cuda.managed_array(64, dtype=np.int32)
    m[:] = 1
    k[1, 64](m)
    cuda.synchronize()
    assert (m == 1 + np.arange(64)).all()
    m = cuda.mapped_array(64, dtype=np.int32)
    m[:] = 1
    k[1, 64](m)
    cuda.synchronize()
    assert (m == 1 + np.arange(64)).all()
    p = cuda.pinned_array(64, dtype=np.int32)
    p[:] = 1
    d = cuda.to_device(p)
    k[1, 64](d)
    d.copy_to_host(p)
    assert (p == 1 + np.arange(64)).all()


@case
def slices():
    @cuda.jit
    def k(x):
        i, j = cuda.grid(2)
        if i < x.shape[0] and j < x.shape[1]:
            x[i, j] *= 2

    a = np.arange(64.0).reshape(8, 8)
    d = cuda.to_device(a)
    k[(1, 1), (8, 8)](d[2:6, ::2])
    e = a.copy()
    e[2:6, ::2] *= 2
    assert (d.copy_to_host() == e).all()
    d[3] = 7
    e[3] = 7
    assert (d.copy_to_host() == e).all()


@case
def debug():
    @cuda.jit(debug=True, opt=False)
    def k(x, y):
        i = cuda.grid(1)
        y[i] = x[i] // 3

    x = np.arange(32)
    y = np.zeros(32, np.int64)
    k[1, 32](x, y)
    assert (y == x // 3).all()


@case
def debug_exception():
    @cuda.jit(debug=True, opt=False)
    def k(x, y):
        i = cuda.grid(1)
        if i == 3:
            raise IndexError("bad")
        y[i] = x[i]

    try:
        k[1, 32](np.arange(32), np.zeros(32, np.int64))
        cuda.synchronize()
    except IndexError as error:
        assert str(error).endswith("bad")
        return
    raise AssertionError("no exception")


@case
def libdevice():
    @cuda.jit
    def k(x, y):
        i = cuda.grid(1)
        v = x[i]
        y[i, 0] = math.sin(v)
        y[i, 1] = math.exp(v)
        y[i, 2] = math.log1p(v)
        y[i, 3] = math.erf(v)
        y[i, 4] = math.lgamma(v + 1)
        y[i, 5] = math.atan2(v, 2.0)
        y[i, 6] = v**1.7
        y[i, 7] = cuda.libdevice.cbrt(v)

    x = rng.random(128) * 9
    y = np.zeros((128, 8))
    k[1, 128](x, y)
    e = np.stack(
        [
            np.sin(x),
            np.exp(x),
            np.log1p(x),
            [math.erf(v) for v in x],
            [math.lgamma(v + 1) for v in x],
            np.arctan2(x, 2),
            x**1.7,
            np.cbrt(x),
        ],
        1,
    )
    np.testing.assert_allclose(y, e, rtol=1e-12, atol=1e-14)


@case
def warp():
    @cuda.jit
    def k(y):
        i = cuda.laneid
        v = i
        for o in (16, 8, 4, 2, 1):
            v += cuda.shfl_xor_sync(0xFFFFFFFF, v, o)
        y[i] = v + cuda.popc(cuda.ballot_sync(0xFFFFFFFF, i % 2))

    y = np.zeros(32, np.int64)
    k[1, 32](y)
    assert (y == 496 + 16).all()


@case
def block_reduction():
    """A sum by shuffles down each warp, then by the first; the last warp may have data in part."""

    @cuda.jit(device=True)
    def warp_sum(v):
        for o in (16, 8, 4, 2, 1):
            v += cuda.shfl_down_sync(0xFFFFFFFF, v, o)
        return v

    @cuda.jit
    def k(x, y):
        sums = cuda.shared.array(32, np.int32)
        t, n = cuda.threadIdx.x, cuda.blockDim.x
        v = warp_sum(x[t] if t < x.size else 0)
        if t % 32 == 0:
            sums[t // 32] = v
        cuda.syncthreads()
        if t < 32:
            v = warp_sum(sums[t] if t < (n + 31) // 32 else 0)
            if t == 0:
                y[0] = v

    for threads, size in ((256, 256), (256, 200), (192, 185)):
        x = np.arange(size, dtype=np.int32) * 3 + 1
        y = np.zeros(1, np.int32)
        k[1, threads](x, y)
        assert y[0] == x.sum(), (threads, size, y[0])


@case
def ufunc():
    @vectorize(["float32(float32,float32)"], target="cuda")
    def f(a, b):
        return a * b + 1

    a = rng.random(1000, dtype=np.float32)
    np.testing.assert_allclose(f(a, a), a * a + 1, rtol=1e-6)


@case
def printing():
    @cuda.jit
    def k(x):
        print("thread", cuda.grid(1), x)

    k[1, 2](1.5)
    cuda.synchronize()


run_cases()
