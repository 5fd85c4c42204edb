"""Sparse products of people's arrays, and the advice on whether they pay."""

from __future__ import annotations

import numpy as np
import pytest

from va100 import tensor_core
from va100.numerics.sparsity import ONE_OF_TWO, PAIRS, Compressed


@pytest.mark.parametrize(("m", "n", "k"), [(16, 8, 32), (17, 9, 35), (1, 1, 1), (40, 3, 130)])
def test_random_weights_of_any_size(m, n, k):
    rng = np.random.default_rng(m)
    weight = rng.integers(-8, 9, (m, k)).astype(np.float16)
    other = rng.integers(-8, 9, (k, n)).astype(np.float16)
    pruned = tensor_core.prune(weight)
    result = tensor_core.sparse_mma(pruned, other, kind="f16.f32")
    assert (result.d == pruned.astype(np.float32) @ other.astype(np.float32)).all()
    assert "mma.sp" in result.inferred
    packed = tensor_core.compress(pruned)
    assert (tensor_core.sparse_mma(packed, other, kind="f16.f32").d == result.d).all()


def test_an_infinity_beside_the_padding_stays_out_of_it():
    a = tensor_core.prune(np.ones((1, 6), np.float16))
    b = np.full((6, 1), np.inf, np.float16)
    b[0] = 1
    assert tensor_core.sparse_mma(a, b, kind="f16.f32").d[0, 0] == np.inf


def test_integer_products_are_certain():
    a = tensor_core.prune(np.arange(-8, 8, dtype=np.int8).reshape(1, 16), PAIRS)
    result = tensor_core.sparse_mma(a, np.ones((16, 1), np.int8), kind="s4.s32")
    assert result.d[0, 0] == a.sum()
    assert not result.inferred


def test_tf32_keeps_one_of_two():
    a = tensor_core.prune(np.full((1, 2), 1024.5, np.float32), ONE_OF_TWO)
    b = np.ones((2, 1), np.float32)
    assert tensor_core.sparse_mma(a, b, kind="tf32.f32").d == 1024
    assert tensor_core.sparse_mma(a, b, kind="tf32.f32", tf32_round="rna").d == 1025


def test_the_sum_order_is_that_of_the_kept_elements():
    # Sixteen kept elements make two blocks of eight, though they come from 32 columns.
    a = np.zeros((1, 32), np.float16)
    a[0, ::2] = 1
    a[0, 0] = 4096
    b = np.zeros((32, 1), np.float16)
    b[0], b[2], b[4] = 4096, 1, 1
    assert tensor_core.sparse_mma(a, b, kind="f16.f32").d == 2.0**24 + 2
    b[4], b[20] = 0, 1
    assert tensor_core.sparse_mma(a, b, kind="f16.f32").d == 2.0**24


def wrong_nibble():
    packed = tensor_core.compress(tensor_core.prune(np.ones((20, 16), np.float16)))
    nibbles = packed.nibbles.copy()
    nibbles[17, 2] = 0xF
    return Compressed(packed.values, nibbles, packed.columns, packed.pattern)


@pytest.mark.parametrize(
    ("a", "kind", "options", "message"),
    [
        (np.ones((1, 16), np.float16), "f16.f32", {}, "row 0, columns 0-3 hold 4 non-zeros"),
        (wrong_nibble(), "f16.f32", {}, r"row 17, columns 8-11: metadata 0xF"),
        (wrong_nibble(), "tf32.f32", {}, "tf32.f32 takes 1:2, but a is 2:4"),
        (np.zeros((1, 16)), "f16.f32", {}, "a of f16.f32 is float16, not float64"),
        (np.zeros((1, 8), np.float16), "f16.f32", {}, "no product of"),
        (np.zeros((1, 16), np.float16), "f16.f32", {"satfinite": True}, "for integers"),
        (np.zeros((1, 16)), "f64", {}, "f64 has no sparse form"),
    ],
)
def test_refusals(a, kind, options, message):
    with pytest.raises(ValueError, match=message):
        tensor_core.sparse_mma(a, np.ones((16, 1), np.float16), kind=kind, **options)


# ------------------------------------------------------------------ advice


def test_a_large_product_is_worth_trying_but_never_promised_twice():
    advice = tensor_core.advise(3072, 10240, 3072)
    assert advice.pays
    assert 1.4 < advice.speedup_bound < 2
    assert advice.padding == 1
    assert advice.reasons == ("kernels reach less than the bound; measure before relying on it",)


@pytest.mark.parametrize(
    ("m", "n", "k", "uses", "reason"),
    [
        (4096, 1, 4096, 1000, "n = 1 is a small batch"),
        (4096, 100, 4096, 1000, "n = 100 is no multiple of 8"),
        (100, 128, 70, 1000, "no longer than a launch"),
        (20, 4096, 4097, 1000, "padding to whole products of 16 x 8 x 32"),
        (4096, 128, 4096, 1, "compression costs"),
    ],
)
def test_says_why_it_will_not_pay(m, n, k, uses, reason):
    advice = tensor_core.advise(m, n, k, uses=uses)
    assert not advice.pays
    assert any(reason in said for said in advice.reasons)


def test_memory_bound_products_gain_less():
    few, many = (tensor_core.advise(16384, n, 16384) for n in (64, 8192))
    assert few.speedup_bound < many.speedup_bound
    assert any("memory bounds it" in said for said in few.reasons)


def test_advice_refusals():
    with pytest.raises(ValueError, match="positive"):
        tensor_core.advise(0, 1, 1)
    with pytest.raises(ValueError, match="no sparse form"):
        tensor_core.advise(1, 1, 1, kind="f64")
