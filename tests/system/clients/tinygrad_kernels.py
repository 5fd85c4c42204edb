"""tinygrad's tensors on its CUDA device, kernels by NVRTC or by its own PTX."""

import numpy as np
from cases import case, run_cases
from tinygrad import Device, Tensor, TinyJit, dtypes

rng = np.random.default_rng(1)


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


def same(found, right, tolerance=1e-4):
    np.testing.assert_allclose(found.numpy(), right, rtol=tolerance, atol=tolerance)


@case
def it_is_the_cuda_device():
    assert Device.DEFAULT == "CUDA"


@case
def matmul():
    a, b = normal(64, 48), normal(48, 80)
    same(Tensor(a) @ Tensor(b), a @ b)


@case
def half_matmul():
    a, b = normal(32, 32), normal(32, 32)
    found = (Tensor(a).cast(dtypes.half) @ Tensor(b).cast(dtypes.half)).cast(dtypes.float)
    same(found, a @ b, 3e-2)


@case
def reductions():
    x = normal(37, 100)
    same(Tensor(x).sum(), x.sum(), 1e-3)
    same(Tensor(x).max(axis=0), x.max(axis=0))
    same(Tensor(x).mean(axis=1), x.mean(axis=1))


@case
def softmax_and_layer_norm():
    x = normal(37, 100)
    e = np.exp(x - x.max(1, keepdims=True))
    same(Tensor(x).softmax(), e / e.sum(1, keepdims=True))
    centred = x - x.mean(1, keepdims=True)
    same(Tensor(x).layernorm(), centred / np.sqrt(x.var(1, keepdims=True) + 1e-5))


@case
def scan_and_sort():
    x = normal(20, 64)
    same(Tensor(x).cumsum(1), x.cumsum(1), 1e-3)
    values, places = Tensor(x).sort(1)
    same(values, np.sort(x, 1))
    np.testing.assert_array_equal(np.take_along_axis(x, places.numpy(), 1), np.sort(x, 1))


@case
def convolution():
    x, w = normal(2, 3, 12, 12), normal(4, 3, 3, 3)
    right = sum(
        np.einsum("ncyx,oc->noyx", x[:, :, i : i + 10, j : j + 10], w[:, :, i, j])
        for i in range(3)
        for j in range(3)
    )
    same(Tensor(x).conv2d(Tensor(w)), right)


@case
def gradient():
    a, w = normal(64, 48), normal(48, 80)
    weights = Tensor(w)
    weights.requires_grad = True
    (Tensor(a) @ weights).square().mean().backward()
    same(weights.grad, a.T @ (a @ w) * 2 / (64 * 80))


@case
def captured_steps():
    """From the third call on, one graph that is launched with other buffers."""

    @TinyJit
    def step(x):
        return ((x * 2 + 1).relu() + x.sum()).realize()

    for _ in range(5):
        x = normal(300)
        same(step(Tensor(x).realize()), np.maximum(2 * x + 1, 0) + x.sum(), 1e-3)


@case
def random_numbers():
    x = Tensor.rand(5000).numpy()
    assert x.min() >= 0
    assert x.max() < 1
    assert abs(x.mean() - 0.5) < 0.02


run_cases()
