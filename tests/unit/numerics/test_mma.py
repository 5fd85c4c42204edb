"""The tensor core's arithmetic: cases to check by hand, and an oracle of exact rationals."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.helpers import tensor_oracle as oracle
from tests.helpers.tensor_numbers import random_bits, random_operands
from va100.numerics.formats import BF16, F16, F32, tf32_nearest_away
from va100.numerics.mma import mma
from va100.numerics.mma_rules import RULES, Procedure, rule

ALIGNED = [kind for kind, row in RULES.items() if row.procedure is Procedure.ALIGNED]
INTEGER = [kind for kind, row in RULES.items() if row.procedure is Procedure.INTEGER]
MODES = ("rn", "rz", "rm", "rp")


def one(kind, a, b, c, **options):
    """Bits of one output element."""
    row = rule(kind)
    operand = np.int64 if row.operand is None else row.operand.dtype
    accumulator = np.int32 if row.accumulator is None else row.accumulator.dtype
    return mma(
        np.array([a], operand),
        np.array(b, operand)[:, None],
        np.array([[c]], accumulator),
        kind=kind,
        **options,
    )[0, 0]


# ------------------------------------------------------------------ by hand


@pytest.mark.parametrize(
    ("kind", "a", "b", "c", "d", "why"),
    [
        ("f16.f32", [0x3C00] * 8, [0x4000] * 8, 0x40400000, 0x41980000, "8 * 1 * 2 + 3 = 19"),
        ("f16.f32", [0x3C00, 0x0C00], [0x3C00, 0x0C00], 0, 0x3F800000, "1 + 2**-24: cut by f32"),
        ("f16.f32", [0x3C00, 0x1000], [0x3C00, 0x1000], 0, 0x3F800002, "1 + 2**-22 is exact"),
        ("f16.f32", [0x0001], [0x0001], 0, 0x27800000, "2**-24 * 2**-24: subnormals multiply"),
        ("f16.f32", [0x8000], [0x3C00], 0x80000000, 0x00000000, "-0 + -0 is +0"),
        ("f16.f32", [0x7C00], [0x0000], 0, 0x7FFFFFFF, "infinity times zero"),
        ("f16.f32", [0x7C00], [0xBC00], 0x3F800000, 0xFF800000, "-infinity"),
        ("f16.f32", [0x7C00], [0x3C00], 0xFF800000, 0x7FFFFFFF, "infinity minus infinity"),
        ("f16.f32", [0xFE01], [0x3C00], 0, 0x7FFFFFFF, "a NaN's payload and sign are lost"),
        ("bf16.f32", [0x7F00, 0xFF00], [0x7F00, 0x7F00], 0x3F800000, 0, "2**254 inside, cancels"),
        ("bf16.f32", [0x7F00], [0x4000], 0, 0x7F800000, "2**128 is infinite, not the largest"),
        ("bf16.f32", [0x0080], [0x3C00], 0, 0x00010000, "a subnormal sum"),
        ("tf32.f32", [0x3F801FFF], [0x3F800000], 0, 0x3F800000, "the lowest 13 bits are not read"),
        ("tf32.f32", [0x7F800001], [0x3F800000], 0, 0x7F800000, "not even a NaN's"),
        ("tf32.f32", [0x00001FFF], [0x7F000000], 0, 0x00000000, "nor a subnormal's"),
        ("f16.f16", [0x7BFF], [0x3C00], 0x4C00, 0x7C00, "65504 + 16 rounds to infinity"),
        ("f16.f16", [0x7BFF], [0x3C00], 0x4B80, 0x7BFF, "65504 + 15 does not"),
        ("f16.f16", [0x3C00], [0x3C00], 0x6800, 0x6800, "2048 + 1: a tie to even"),
        ("f16.f16", [0x4200], [0x3C00], 0x6800, 0x6802, "2048 + 3: a tie to even, up"),
        ("f16.f16", [0x0001], [0x3800], 0x0000, 0x0000, "half of the smallest: a tie to zero"),
        ("f64", [1 << 63] * 4, [0x3FF << 52] * 4, 1 << 63, 1 << 63, "-0 stays in f64"),
    ],
)
def test_by_hand(kind, a, b, c, d, why):
    assert hex(one(kind, a, b, c)) == hex(d), why


def test_a_block_is_cut_off_once():
    # Beside 2**24 the unit is 1, while f32 holds even numbers only.
    large, unit = 0x6C00, 0x3C00  # 4096 and 1
    assert single([large, unit]) == 2.0**24
    assert single([large, unit, unit]) == 2.0**24 + 2
    # The same two, one in each block, are lost one after the other.
    assert single([large, unit, *[0] * 6, unit]) == 2.0**24
    # Halves are below the unit: each is lost, however many.
    half = [0x39A8] * 7  # its square is just below 1/2 + 1/512
    assert single([large, *half]) == 2.0**24


def single(values):
    """A dot product of f16 numbers with themselves."""
    return one("f16.f32", values, values, 0).view(np.float32)


def test_f16_sum_is_rounded_between_blocks():
    # 2048 + 1 is a tie to 2048, twice; added at once, the two ones would make 2050.
    one16 = [0x3C00] + [0] * 7
    assert one("f16.f16", one16 * 2, one16 * 2, 0x6800) == 0x6800
    assert one("f16.f16", [0x3C00, 0x3C00], [0x3C00, 0x3C00], 0x6800) == 0x6801


def test_volta_shape_adds_in_order():
    # 2**-24 twice, then 1: the small ones meet first.
    a, b = [0x0C00, 0x0C00, 0x3C00, 0], [0x0C00, 0x0C00, 0x3C00, 0]
    assert one("m8n8k4.f16.f32", a, b, 0) == 0x3F800001
    assert one("m8n8k4.f16.f32", a[::-1], b[::-1], 0) == 0x3F800000


@pytest.mark.parametrize(
    ("kind", "a", "b", "c", "wrapped", "clamped"),
    [
        ("s8.s32", [-128] * 32, [-128] * 32, 0, 1 << 19, 1 << 19),
        ("s8.s32", [1], [1], (1 << 31) - 1, -(1 << 31), (1 << 31) - 1),
        ("s8.s32", [-1], [1], -(1 << 31), (1 << 31) - 1, -(1 << 31)),
        ("u8.s32", [255], [255], 0, 65025, 65025),
        ("s8.u8.s32", [-128], [255], 0, -32640, -32640),
        ("u8.s8.s32", [255], [-128], 0, -32640, -32640),
        ("s4.s32", [-8] * 64, [7] * 64, 0, -3584, -3584),
        ("u4.s4.s32", [15], [-8], 0, -120, -120),
    ],
)
def test_integers_by_hand(kind, a, b, c, wrapped, clamped):
    assert one(kind, a, b, c) == wrapped
    assert one(kind, a, b, c, satfinite=True) == clamped


def test_clamps_once_an_instruction():
    # Within an instruction the sum may leave the range and come back.
    top = (1 << 31) - 1
    assert one("s8.s32", [1, -1], [1, 1], top, satfinite=True) == top
    a = [1] + [0] * 31 + [-1]
    assert one("s8.s32", a, [1] * 33, top, satfinite=True) == top - 1


def test_bits_are_counted():
    a, b = [1, 1, 0, 0] * 32, [1, 0, 1, 0] * 32
    assert one("b1.xor", a, b, 5) == 69
    assert one("b1.and", a, b, -1) == 31


def test_tf32_rounding_before_the_product():
    raw = np.float32(1024.5).view(np.uint32)
    (rounded,) = tf32_nearest_away(np.array([raw]))
    one32 = int(np.float32(1).view(np.uint32))
    assert one("tf32.f32", [one32], [raw], 0) == np.float32(1024).view(np.uint32)
    assert one("tf32.f32", [one32], [rounded], 0) == np.float32(1025).view(np.uint32)


# ------------------------------------------------------------------ the oracle


def count(full: bool, usual: int) -> int:
    return 100_000 if full else usual


@pytest.mark.parametrize("kind", ALIGNED)
def test_aligned_against_rationals(kind, full):
    row = rule(kind)
    rng = np.random.default_rng(len(kind) + ord(kind[0]))
    elements = count(full, 1200)
    for _ in range(elements // 100):
        a, b, c = random_operands(row, 1, 10, 10, int(rng.integers(1, 2 * row.block + 1)), rng)
        result = mma(a, b, c, kind=kind)
        for i, j in np.ndindex(10, 10):
            expected = oracle.element(kind, a[0, i].tolist(), b[0, :, j].tolist(), int(c[0, i, j]))
            assert hex(result[0, i, j]) == hex(expected), (a[0, i], b[0, :, j], c[0, i, j])


@pytest.mark.parametrize("mode", MODES)
def test_f64_against_rationals(mode, full):
    row = rule("f64")
    rng = np.random.default_rng(64)
    for _ in range(count(full, 400) // 100):
        a, b, c = random_operands(row, 1, 10, 10, 4, rng)
        result = mma(a, b, c, kind="f64", mode=mode)
        for i, j in np.ndindex(10, 10):
            expected = oracle.chain(mode, a[0, i].tolist(), b[0, :, j].tolist(), int(c[0, i, j]))
            assert hex(result[0, i, j]) == hex(expected)


@pytest.mark.parametrize("accumulator", ["f32", "f16"])
def test_volta_against_rationals(accumulator, full):
    kind = f"m8n8k4.f16.{accumulator}"
    rng = np.random.default_rng(84)
    for _ in range(count(full, 400) // 100):
        a, b, c = random_operands(rule(kind), 1, 10, 10, 4, rng)
        result = mma(a, b, c, kind=kind)
        for i, j in np.ndindex(10, 10):
            pair = a[0, i].tolist(), b[0, :, j].tolist()
            expected = oracle.volta(accumulator, *pair, int(c[0, i, j]))
            assert hex(result[0, i, j]) == hex(expected)


@pytest.mark.parametrize("kind", INTEGER)
@pytest.mark.parametrize("satfinite", [False, True])
def test_integers_against_python(kind, satfinite, full):
    row = rule(kind)
    rng = np.random.default_rng(8)
    for _ in range(count(full, 300) // 100):
        a, b, c = random_operands(row, 1, 10, 10, row.step, rng)
        result = mma(a, b, c, kind=kind, satfinite=satfinite)
        for i, j in np.ndindex(10, 10):
            pairs = zip(a[0, i].tolist(), b[0, :, j].tolist(), strict=True)
            total = sum(x * y for x, y in pairs) + int(c[0, i, j])
            if satfinite:
                expected = min(max(total, -(1 << 31)), (1 << 31) - 1)
            else:
                expected = (total + (1 << 31)) % (1 << 32) - (1 << 31)
            assert result[0, i, j] == expected


@pytest.mark.parametrize("operation", ["xor", "and"])
def test_bits_against_python(operation, full):
    rng = np.random.default_rng(1)
    for _ in range(count(full, 300) // 100):
        a, b, c = random_operands(rule(f"b1.{operation}"), 1, 10, 10, 256, rng)
        result = mma(a, b, c, kind=f"b1.{operation}")
        for i, j in np.ndindex(10, 10):
            pairs = zip(a[0, i].tolist(), b[0, :, j].tolist(), strict=True)
            ones = sum((x & y) if operation == "and" else (x ^ y) for x, y in pairs)
            total = (int(c[0, i, j]) + ones + (1 << 31)) % (1 << 32) - (1 << 31)
            assert result[0, i, j] == total


# ------------------------------------------------------------------ reference data


def hexes(values, dtype):
    return np.array([int(v, 16) for v in values], dtype)


def test_published_vectors_of_floats(shared):
    vectors = json.loads(shared("facts/numerics_vectors.json").read_text(encoding="utf-8"))
    checked = 0
    for group in ("f16_f32", "f16_f16", "bf16_f32", "tf32_f32", "f64"):
        kind = group.replace("_", ".")
        for v in vectors[group]:
            got = one(
                kind, [int(x, 16) for x in v["a"]], [int(x, 16) for x in v["b"]], int(v["c"], 16)
            )
            assert int(got) == int(v["d"], 16), v
            checked += 1
    for v in vectors["m8n8k4_f16_software"]:
        d, _, _, c = v["instr"].split(".row.col.")[1].split()[0].split(".")
        start = hexes([v["c"]], np.uint16 if c == "f16" else np.uint32)
        if (c, d) == ("f16", "f32"):
            start = start.view(np.float16).astype(np.float32).view(np.uint32)
        pair = ([int(x, 16) for x in v[side]] for side in ("a", "b"))
        assert int(one(f"m8n8k4.f16.{d}", *pair, int(start[0]))) == int(v["d"], 16), v
        checked += 1
    for v in vectors["cvt_rna_tf32"]:
        assert int(tf32_nearest_away(hexes([v["a"]], np.uint32))[0]) == int(v["d"], 16), v
        checked += 1
    assert checked == 340


def test_published_vectors_of_integers(shared):
    vectors = json.loads(shared("facts/numerics_vectors.json").read_text(encoding="utf-8"))
    for v in vectors["s8_u8"] + vectors["s4_u4"]:
        a, b = v["instr"].split(".")[-3:-1]
        kind = f"{a}.s32" if a == b else f"{a}.{b}.s32"
        start = int(hexes([v["c"]], np.uint32).view(np.int32)[0])
        got = one(kind, v["a"], v["b"], start, satfinite="satfinite" in v["instr"])
        assert int(got.view(np.uint32)) == int(v["d"], 16), v
    for v in vectors["b1"]:
        depth = 256 if "k256" in v["instr"] else 128
        a, b = ([int(v[side], 16) >> i & 1 for i in range(depth)] for side in ("a", "b"))
        start = int(hexes([v["c"]], np.uint32).view(np.int32)[0])
        got = one("b1.and" if ".and." in v["instr"] else "b1.xor", a, b, start)
        assert int(got.view(np.uint32)) == int(v["d"], 16), v


# ------------------------------------------------------------------ shapes and refusals


def test_stacks_broadcast_and_k_is_padded():
    rng = np.random.default_rng(5)
    a = random_bits(BF16, (3, 1, 4, 11), rng, "near")
    b = random_bits(BF16, (2, 11, 5), rng, "near")
    c = random_bits(F32, (5,), rng, "near")
    result = mma(a, b, c, kind="bf16.f32")
    assert result.shape == (3, 2, 4, 5)
    for i, j in np.ndindex(3, 2):
        alone = mma(a[i, 0], b[j], np.broadcast_to(c, (4, 5)), kind="bf16.f32")
        assert (result[i, j] == alone).all()


def test_an_empty_k_gives_c():
    c = np.array([[0x80000000]], np.uint32)
    empty = np.zeros((1, 0), np.uint16)
    assert mma(empty, empty.T, c, kind="f16.f32")[0, 0] == 0x80000000


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("fp8.f32", {}, "no tensor-core kind 'fp8.f32'"),
        ("f16.f32", {"satfinite": True}, "f16.f32 has no .satfinite"),
        ("f16.f32", {"mode": "rz"}, "f16.f32 has no rounding mode .rz"),
    ],
)
def test_refuses_what_there_is_not(kind, options, message):
    a = np.zeros((8, 8), np.uint16)
    with pytest.raises(ValueError, match=message):
        mma(a, a, np.zeros((8, 8), np.uint32), kind=kind, **options)


def test_refuses_shapes_that_do_not_fit():
    a = np.zeros((2, 3), np.uint16)
    with pytest.raises(ValueError, match=r"no product of \(2, 3\) and \(2, 3\)"):
        mma(a, a, np.zeros((2, 3), np.uint32), kind="f16.f32")


def test_every_rule_is_complete():
    for kind, row in RULES.items():
        assert row.kind == kind
        assert row.evidence
        assert row.step % row.block == 0
        if row.procedure is Procedure.ALIGNED:
            assert row.operand in (F16, BF16, F32)
            assert row.alignment_bits == 24
