"""JAX: what XLA compiles to PTX by itself."""

import jax
import jax.numpy as jnp
import numpy as np
from cases import case, run_cases

rng = np.random.default_rng(1)
x = rng.normal(size=(64, 64)).astype(np.float32)
on_device = jnp.asarray(x)


def same(found, right, tolerance=1e-4):
    np.testing.assert_allclose(np.asarray(found), right, rtol=tolerance, atol=tolerance)


@case
def it_is_the_default():
    assert jax.default_backend() == "gpu"
    assert "A100" in jax.devices()[0].device_kind


@case
def elementwise_and_reductions():
    same(jnp.sum(on_device * 2), x.sum() * 2, 1e-3)
    same(jnp.max(on_device, axis=0), x.max(axis=0))
    same(jnp.exp(on_device) + 1, np.exp(x) + 1)


@case
def softmax_and_layer_norm():
    e = np.exp(x - x.max(1, keepdims=True))
    same(jax.nn.softmax(on_device, axis=1), e / e.sum(1, keepdims=True))

    @jax.jit
    def norm(a):
        return (a - a.mean(1, keepdims=True)) / jnp.sqrt(a.var(1, keepdims=True) + 1e-5)

    same(norm(on_device), (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5))


@case
def matmul():
    same(on_device @ on_device.T, x @ x.T, 3e-2)  # TF32
    with jax.default_matmul_precision("highest"):
        same(on_device @ on_device.T, x @ x.T, 1e-3)


@case
def half_matmul():
    half = on_device.astype(jnp.bfloat16)
    same((half @ half).astype(jnp.float32), x @ x, 0.2)


@case
def scans_and_sort():
    same(jnp.cumsum(on_device, axis=1), x.cumsum(1), 1e-3)
    total, _ = jax.lax.scan(lambda carry, row: (carry + row, row), jnp.zeros(64), on_device)
    same(total, x.sum(0), 1e-3)
    same(jnp.sort(on_device, axis=1), np.sort(x, 1))
    assert (np.asarray(jnp.argsort(on_device, axis=1)) == np.argsort(x, 1)).all()


@case
def random_numbers():
    uniform = np.asarray(jax.random.uniform(jax.random.key(0), (1000,)))
    on_cpu = jax.devices("cpu")[0]
    with jax.default_device(on_cpu):
        same(uniform, np.asarray(jax.random.uniform(jax.random.key(0), (1000,))), 0)
    assert abs(float(jax.random.normal(jax.random.key(1), (4000,)).std()) - 1) < 0.05


@case
def gradient_and_loop():
    same(jax.grad(lambda a: (a**3).sum())(on_device), 3 * x**2, 1e-3)

    def body(carry):
        return carry[0] + 1, carry[1] * 1.5

    same(jax.lax.while_loop(lambda c: c[0] < 10, body, (0, jnp.ones(5)))[1], np.full(5, 1.5**10))


@case
def gather_and_scatter():
    places = np.array([3, 1, 60, 1])
    same(on_device[places], x[places])
    right = np.zeros((64, 64), np.float32)
    np.add.at(right, places, x[:4])
    same(jnp.zeros((64, 64)).at[places].add(on_device[:4]), right)


@case
def what_needs_cudnn_is_refused_by_name():
    image, weights = jnp.ones((1, 8, 8, 3)), jnp.ones((3, 3, 3, 4))
    try:
        jax.lax.conv_general_dilated(
            image, weights, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ).block_until_ready()
    except Exception as error:  # noqa: BLE001  whatever XLA makes of it
        assert "cuDNN is machine code only, which va100 cannot run" in str(error)
    else:
        raise AssertionError("a convolution ran")


run_cases()
