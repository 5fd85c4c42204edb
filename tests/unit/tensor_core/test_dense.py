"""Products of people's arrays: types, shapes, tf32, tiles, and refusals that say what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from va100 import tensor_core
from va100.numerics import mma as numpy_mma
from va100.numerics.mma_rules import RULES
from va100.tensor_core import native

KINDS = {
    "f16.f32": (np.float16, np.float32),
    "f16.f16": (np.float16, np.float16),
    "tf32.f32": (np.float32, np.float32),
    "f64": (np.float64, np.float64),
    "s8.s32": (np.int8, np.int32),
    "u8.s32": (np.uint8, np.int32),
    "s4.s32": (np.int8, np.int32),
    "u4.s32": (np.uint8, np.int32),
    "b1.xor": (np.bool_, np.int32),
    "b1.and": (np.bool_, np.int32),
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_small_products_of_whole_numbers(kind):
    operand, result = KINDS[kind]
    a = np.array([[1, 0, 1], [1, 1, 0]]).astype(operand)
    b = np.array([[1, 1], [0, 1], [1, 0]]).astype(operand)
    d = tensor_core.mma(a, b, kind=kind)
    assert d.dtype == result
    assert d.tolist() == ([[0, 2], [2, 0]] if kind == "b1.xor" else [[2, 1], [1, 2]])


def test_tf32_raw_and_rounded():
    assert tensor_core.mma([[1.0]], [[1024.5]], kind="tf32.f32") == 1024
    assert tensor_core.mma([[1.0]], [[1024.5]], kind="tf32.f32", tf32_round="rna") == 1025


def test_bf16_sums_drift_downwards():
    """4,096 squares of 0.1 as bf16: every block's sum is cut off."""
    tenths = np.full((1, 4096), 0x3DCD, np.uint16)
    d = float(tensor_core.mma(tenths, tenths.T, kind="bf16.f32")[0, 0])
    exact = 4096 * 0.10009765625**2
    assert 1e-4 < exact - d < 1e-2


def test_c_is_added_and_broadcast():
    a, b = np.ones((3, 2, 4), np.float16), np.ones((4, 5), np.float16)
    c = np.arange(5, dtype=np.float32)
    d = tensor_core.mma(a, b, c, kind="f16.f32")
    assert d.shape == (3, 2, 5)
    assert (d == 4 + c).all()


def test_strides_and_stacks_on_either_side():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((7, 4, 6)).astype(np.float16).swapaxes(0, 2)
    b = rng.standard_normal((6, 7, 3)).astype(np.float16)[::-1]
    d = tensor_core.mma(a, b, kind="f16.f32")
    for i in range(6):
        assert (d[i] == tensor_core.mma(a[i].copy(), b[i].copy(), kind="f16.f32")).all()
    shared = tensor_core.mma(a[0], b, kind="f16.f32")
    assert (shared[2] == tensor_core.mma(a[0], b[2], kind="f16.f32")).all()


def test_lists_are_rounded_to_the_kind():
    assert tensor_core.mma([[0.1]], [[1]], kind="f16.f32") == np.float32(np.float16(0.1))
    assert tensor_core.mma([[3]], [[4]], [[5]], kind="s8.s32") == 17


def test_f64_rounding_modes():
    a, b = [[1.0, 2.0**-60]], [[1.0], [1.0]]
    up = tensor_core.mma(a, b, kind="f64", rounding_mode="rp")
    assert up[0, 0] == np.nextafter(1.0, 2.0)
    assert tensor_core.mma(a, b, kind="f64")[0, 0] == 1.0


def test_satfinite():
    most = np.array([[2**31 - 1]], np.int32)
    one = np.ones((1, 1), np.int8)
    assert tensor_core.mma(one, one, most, kind="s8.s32") == -(2**31)
    assert tensor_core.mma(one, one, most, kind="s8.s32", satfinite=True) == 2**31 - 1


def test_empty_stacks_and_empty_k():
    assert tensor_core.mma(np.ones((0, 2, 3), np.float16), np.ones((3, 4), np.float16),
                           kind="f16.f32").shape == (0, 2, 4)  # fmt: skip
    empty = np.ones((2, 0), np.float16)
    assert (tensor_core.mma(empty, empty.T, kind="f16.f32") == 0).all()


def test_without_the_native_core_the_bits_are_the_same(monkeypatch):
    rng = np.random.default_rng(1)
    a = rng.standard_normal((5, 20)).astype(np.float16)
    b = rng.standard_normal((20, 6)).astype(np.float16)
    sparse = tensor_core.prune(a)
    expected = tensor_core.mma(a, b, kind="f16.f32")
    expected_sparse = tensor_core.sparse_mma(sparse, b, kind="f16.f32").d
    monkeypatch.setattr(native, "_function", lambda: None)
    assert (tensor_core.mma(a, b, kind="f16.f32") == expected).all()
    assert (tensor_core.sparse_mma(sparse, b, kind="f16.f32").d == expected_sparse).all()


@pytest.mark.parametrize("name", ["bfloat16", "int4", "uint4"])
def test_types_of_ml_dtypes(name):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="needs ml_dtypes")
    kind = {"bfloat16": "bf16.f32", "int4": "s4.s32", "uint4": "u4.s32"}[name]
    low = 0 if name == "uint4" else -4
    a = np.arange(low, low + 8).reshape(2, 4).astype(getattr(ml_dtypes, name))
    b = a.T.copy()
    d = tensor_core.mma(a, b, kind=kind)
    assert (d == a.astype(np.int64) @ b.astype(np.int64)).all()
    pruned = tensor_core.prune(a)
    assert pruned.dtype == a.dtype
    assert (tensor_core.expand(tensor_core.compress(pruned)) == pruned).all()


# ------------------------------------------------------------------ gemm


def test_a_tile_changes_nothing_but_where_k_is_cut():
    rng = np.random.default_rng(3)
    a = rng.standard_normal((20, 200)).astype(np.float16)
    b = rng.standard_normal((200, 12)).astype(np.float16)
    plain = tensor_core.mma(a, b, kind="f16.f32")
    for tile in ((64, 64, 32), (256, 128, 64), (16, 8, 8)):
        assert (tensor_core.gemm(a, b, kind="f16.f32", tile=tile) == plain).all()
    # 200 is seven tiles of 32: four for the first CTA, three for the second.
    halves = [tensor_core.mma(a[:, s], b[s], kind="f16.f32") for s in (slice(128), slice(128, 200))]
    split = tensor_core.gemm(a, b, kind="f16.f32", tile=(64, 64, 32), split_k=2)
    assert (split == halves[0] + halves[1]).all()
    assert (split != plain).any()


def test_warps_share_a_tiles_k():
    rng = np.random.default_rng(4)
    a = rng.standard_normal((4, 96)).astype(np.float16)
    b = rng.standard_normal((96, 4)).astype(np.float16)
    k = np.arange(96)
    parts = [k[k % 32 // 16 == warp] for warp in (0, 1)]
    sums = [tensor_core.mma(a[:, p], b[p], kind="f16.f32") for p in parts]
    d = tensor_core.gemm(a, b, kind="f16.f32", tile=(64, 64, 32), k_warps=2)
    assert (d == sums[0] + sums[1]).all()


def test_gemm_adds_c_at_the_end():
    # Kept back, c = 1 meets the whole sum; from the start it would be cut off with each block.
    a, b = np.full((1, 16), 2.0**6, np.float16), np.full((16, 1), 2.0**6, np.float16)
    c = np.array([[2.0**-9]], np.float32)
    total = np.float32(16 * 2.0**12) + c[0, 0]
    assert tensor_core.gemm(a, b, c, kind="f16.f32")[0, 0] == total
    assert tensor_core.gemm([[100]], [[100]], [[2**31 - 1]], kind="s8.s32") == 10000 - 2**31 - 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tile": (60, 64, 32)}, "a tile of 60 x 64 is no whole number"),
        ({"tile": (64, 64, 12)}, "k of 12 is no multiple of 8"),
        ({"tile": (64, 64, 32), "k_warps": 3}, "k of 32 is no multiple of 24"),
        ({"split_k": 0}, "are positive"),
    ],
)
def test_gemm_refusals(options, message):
    one = np.ones((1, 1), np.float16)
    with pytest.raises(ValueError, match=message):
        tensor_core.gemm(one, one, kind="f16.f32", **options)


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        (np.ones((1, 1)), np.ones((1, 1)), {"kind": "f16.f32"},
         "a of f16.f32 is float16, not float64; convert it first"),
        (np.ones((1, 1), np.float32), np.ones((1, 1)), {"kind": "bf16.f32"},
         r"bfloat16 \(ml_dtypes\) or uint16 holding its bits, not float32"),
        (np.ones((1, 1), np.float16), np.ones((2, 1), np.float16), {"kind": "f16.f32"},
         r"no product of \(1, 1\) and \(2, 1\): k is 1 and 2"),
        (np.ones((2, 1, 1), np.float16), np.ones((3, 1, 1), np.float16), {"kind": "f16.f32"},
         "stacks of"),
        (np.ones(3, np.float16), np.ones((3, 1), np.float16), {"kind": "f16.f32"},
         "a has 1 dimensions"),
        (np.full((1, 1), 8, np.int8), np.ones((1, 1), np.int8), {"kind": "s4.s32"},
         "a of s4.s32 holds 8 to 8; it takes -8 to 7"),
        (np.full((1, 1), 2, np.uint8), np.ones((1, 1), np.uint8), {"kind": "b1.and"},
         "it takes 0 to 1"),
        (np.ones((1, 1), np.uint8), np.ones((1, 1), np.int8), {"kind": "s8.s32"},
         "a of s8.s32 is int8, not uint8"),
        ([[300]], [[1]], {"kind": "u8.s32"}, "holds 300 to 300; it takes 0 to 255"),
        ([[1]], [[1]], {"kind": "fp8.f32"}, "no tensor-core kind"),
        ([[1]], [[1]], {"kind": "f16.f32", "tf32_round": "rna"}, "tf32_round is for tf32.f32"),
        ([[1]], [[1]], {"kind": "tf32.f32", "tf32_round": "up"}, "'raw' or 'rna', not 'up'"),
        ([[1]], [[1]], {"kind": "f16.f32", "rounding_mode": "rz"}, "rounding_mode is for f64"),
        ([[1]], [[1]], {"kind": "f64", "rounding_mode": "up"}, "rn, rz, rm or rp"),
        ([[1]], [[1]], {"kind": "f16.f32", "satfinite": True}, "satfinite is for integers"),
    ],
)  # fmt: skip
def test_refusals(a, b, options, message):
    with pytest.raises(ValueError, match=message):
        tensor_core.mma(a, b, **options)


@pytest.mark.parametrize(
    ("kind", "c", "message"),
    [
        ("f16.f32", np.ones((1, 1)), "c of f16.f32 is float32, not float64"),
        ("f16.f32", np.ones((3, 3), np.float32), r"c of shape \(3, 3\) does not fit"),
        ("s8.s32", np.ones((1, 1), np.int64), "c of s8.s32 is int32, not int64"),
        ("s8.s32", [[1.5]], "c of s8.s32 is int32, not float64"),
    ],
)
def test_refusals_of_c(kind, c, message):
    with pytest.raises(ValueError, match=message):
        tensor_core.mma([[1]], [[1]], c, kind=kind)


def test_every_kind_has_a_native_code():
    assert native._function() is not None
    for kind, row in RULES.items():
        a = np.zeros((1, 1), np.uint8 if row.operand is None else row.operand.dtype)
        c = np.zeros((1, 1), np.int32 if row.accumulator is None else row.accumulator.dtype)
        assert (native.multiply(row, a, a, c) == numpy_mma.mma(a, a, c, kind=kind)).all()
