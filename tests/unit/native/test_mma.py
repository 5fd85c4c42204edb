"""The native tensor core against :mod:`va100.numerics.mma`: warps' registers, whole matrices."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.tensor_numbers import STYLES, random_bits, random_operands
from va100.gpu.native import library
from va100.numerics.formats import F16, F32, widen_to_f32
from va100.numerics.fragments import (
    Fragment,
    fragment_a,
    fragment_b,
    fragment_c,
    volta_a,
    volta_b,
    volta_c,
)
from va100.numerics.mma import mma
from va100.numerics.mma_rules import RULES, MmaRule, Procedure, rule
from va100.tensor_core.native import Modifiers, multiply

Array = npt.NDArray[Any]
HELPER = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)


def helper(name: str) -> Any:
    """A function of machine code, by its name."""
    lib = library()
    lib.va_exec_helper.restype = ctypes.c_uint64
    lib.va_exec_helper.argtypes = (ctypes.c_char_p,)
    address = lib.va_exec_helper(name.encode())
    assert address, name
    return HELPER(address)


# ------------------------------------------------------------------ registers


def warp_cases() -> Iterator[tuple[str, str, int, int, dict[str, Any]]]:
    """Name of a helper, its kind, M, K, modifiers."""
    for kind in ("f16.f32", "f16.f16", "bf16.f32"):
        for k in (8, 16):
            yield f"m16n8k{k}_{spelled(kind)}", kind, 16, k, {}
    for k in (4, 8):
        yield f"m16n8k{k}_tf32_f32", "tf32.f32", 16, k, {}
    for mode in ("rn", "rz", "rm", "rp"):
        suffix = "" if mode == "rn" else f"_{mode}"
        yield f"m8n8k4_f64{suffix}", "f64", 8, 4, {"mode": mode}
    for kind, row in RULES.items():
        if row.procedure is Procedure.INTEGER:
            for m, k in ((8, row.step // 2), (16, row.step // 2), (16, row.step)):
                yield f"m{m}n8k{k}_{spelled(kind)}", kind, m, k, {}
                yield f"m{m}n8k{k}_{spelled(kind)}_sat", kind, m, k, {"satfinite": True}
    for operation in ("xor", "and"):
        for m, k in ((8, 128), (16, 128), (16, 256)):
            yield f"m{m}n8k{k}_b1_{operation}", f"b1.{operation}", m, k, {}


def spelled(kind: str) -> str:
    return kind.replace(".", "_")


WARP_CASES = list(warp_cases())


def element_bits(row: MmaRule) -> int:
    return row.element_bits or row.operand.bits


def registers_of(fragment: Fragment, matrix: Array, bits: int) -> Array:
    """Registers that hold a matrix of elements."""
    word = np.uint64 if bits == 64 else np.uint32
    mask = word((1 << bits) - 1)
    raw = matrix.astype(np.int64).astype(np.uint64) if matrix.dtype.kind == "i" else matrix
    return np.ascontiguousarray(fragment.scatter(raw.astype(word) & mask))


def run(name: str, a: Array, b: Array, c: Array, *, in_place: bool = False) -> Array:
    d = c if in_place else np.full_like(c, 0x55)
    helper(name)(*(x.ctypes.data for x in (a, b, c, d)))
    return d


@pytest.mark.parametrize(("name", "kind", "m", "k", "options"), WARP_CASES, ids=str)
def test_warps(name, kind, m, k, options, full):
    row = rule(kind)
    bits, sum_bits = element_bits(row), 32 if row.accumulator is None else row.accumulator.bits
    fa, fb, fc = fragment_a(m, k, bits), fragment_b(k, bits), fragment_c(m, sum_bits)
    rng = np.random.default_rng(k + m)
    for turn in range(100_000 // (8 * m) if full else 12):
        a, b, c = (x[0] for x in random_operands(row, 1, m, 8, k, rng))
        expected = mma(a, b, c, kind=kind, **options)
        registers = [registers_of(f, x, w) for f, x, w in ((fa, a, bits), (fb, b, bits))]
        sums = registers_of(fc, c.view(f"u{c.dtype.itemsize}"), sum_bits)
        got = fc.gather(run(f"va_mma_{name}", *registers, sums, in_place=turn % 2 == 1))
        assert (got == expected.view(f"u{c.dtype.itemsize}").astype(got.dtype)).all()


VOLTA_CASES = [
    (d, c, a_row, b_row)
    for d, c in (("f32", "f32"), ("f32", "f16"), ("f16", "f16"))
    for a_row in (True, False)
    for b_row in (True, False)
]


@pytest.mark.parametrize(("d", "c", "a_row", "b_row"), VOLTA_CASES)
def test_volta_warps(d, c, a_row, b_row, full):
    layouts = "_".join("row" if by_row else "col" for by_row in (a_row, b_row))
    name = f"va_mma_m8n8k4_f16_{d}_{c}_{layouts}"
    bits = {"f16": 16, "f32": 32}
    fa, fb = volta_a(row_major=a_row), volta_b(row_major=b_row)
    fc, fd = volta_c(bits[c]), volta_c(bits[d])
    rng = np.random.default_rng(12)
    for _ in range(400 if full else 6):
        a, b, _ = random_operands(rule("m8n8k4.f16.f16"), 4, 8, 8, 4, rng)
        start = random_bits({"f16": F16, "f32": F32}[c], (4, 8, 8), rng, str(rng.choice(STYLES)))
        registers = [quads(f, x) for f, x in ((fa, a), (fb, b), (fc, start))]
        result = np.zeros((fd[0].registers, 32), np.uint32)
        helper(name)(*(x.ctypes.data for x in (*registers, result)))
        wide = widen_to_f32(F16, start) if (d, c) == ("f32", "f16") else start
        expected = mma(a, b, wide, kind=f"m8n8k4.f16.{d}")
        for quad in range(4):
            assert (fd[quad].gather(result[:, lanes(quad)]) == expected[quad]).all()


def lanes(quad: int) -> list[int]:
    return [*range(4 * quad, 4 * quad + 4), *range(16 + 4 * quad, 20 + 4 * quad)]


def quads(fragments: tuple[Fragment, ...], matrices: Array) -> Array:
    """A warp's registers with one matrix for each of its four products."""
    registers = np.zeros((fragments[0].registers, 32), np.uint32)
    for quad, (fragment, matrix) in enumerate(zip(fragments, matrices, strict=True)):
        registers[:, lanes(quad)] = fragment.scatter(matrix.astype(np.uint32))
    return registers


# ------------------------------------------------------------------ matrices


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("kind", list(RULES))
def test_matrices(kind, portable, full):
    row = rule(kind)
    rng = np.random.default_rng(7)
    for turn in range(150 if full else 12):
        m, n, k = (int(rng.integers(1, top)) for top in (20, 20, 70))
        if turn % 3 == 0:
            m, n, k = 16, 8, row.step
        a, b, c = random_operands(row, 3, m, n, k, rng)
        options: dict[str, Any] = {}
        if kind == "f64":
            options["mode"] = ("rn", "rz", "rm", "rp")[turn % 4]
        elif row.procedure is Procedure.INTEGER:
            options["satfinite"] = turn % 2 == 1
        expected = mma(a, b, c, kind=kind, **options)
        modifiers = Modifiers(portable=portable, **options)
        assert (multiply(row, a, b, c, modifiers) == expected).all()


@pytest.mark.parametrize("kind", ["f16.f32", "f16.f16", "bf16.f32", "tf32.f32"])
def test_both_ways_give_the_same_bits(kind):
    """A number beyond the narrow way's range, beside all others, changes nothing but the way."""
    row = rule(kind)
    rng = np.random.default_rng(3)
    a = random_bits(row.operand, (2, 16, 64), rng, "near")
    b = random_bits(row.operand, (2, 64, 8), rng, "near")
    c = random_bits(row.accumulator, (2, 16, 8), rng, "near")
    narrow = multiply(row, a, b, c)
    infinity = np.full((2, 64, 1), row.operand.infinity, row.operand.dtype)
    wide = multiply(
        row, a, np.concatenate([b, infinity], axis=2), np.pad(c, [(0, 0)] * 2 + [(0, 1)])
    )
    # The ninth column is in a panel of its own; put the infinity into the same one.
    together = multiply(
        row, a, np.concatenate([b[..., :7], infinity], axis=2), np.concatenate([c], axis=2)
    )
    assert (wide[..., :8] == narrow).all()
    assert (together[..., :7] == narrow[..., :7]).all()


@pytest.mark.parametrize("kind", ["bf16.f32", "tf32.f32"])
@pytest.mark.parametrize("exponent", [-51, -50, 49, 50])
def test_the_edge_of_the_narrow_way(kind, exponent):
    row = rule(kind)
    rng = np.random.default_rng(exponent + 100)
    fields = np.uint64((exponent + 127) << (row.operand.precision - 1))
    mask = np.uint64((1 << (row.operand.precision - 1)) - 1 | row.operand.sign_bit)

    def edge(shape):
        raw = rng.integers(0, 1 << row.operand.bits, shape, dtype=np.uint64)
        return ((raw & mask) | fields).astype(row.operand.dtype)

    a, b = edge((40, 16, 16)), edge((40, 16, 8))
    for style in ("raw", "tiny", "zeros", "near"):
        c = random_bits(F32, (40, 16, 8), rng, style)
        assert (multiply(row, a, b, c) == mma(a, b, c, kind=kind)).all()


def test_large_matrices_are_cut_into_groups_and_chunks():
    """More rows than are taken apart at a time, more k than stays in the first cache."""
    row = rule("f16.f32")
    rng = np.random.default_rng(9)
    k = 2056
    a = random_bits(F16, (520, k), rng, "zeros")
    b = random_bits(F16, (k, 3), rng, "near")
    c = random_bits(F32, (520, 3), rng, "near")
    a[501, 5] = 0x7C00
    result = multiply(row, a, b, c)
    some = [0, 15, 16, 500, 501, 502, 511, 512, 519]
    assert (result[some] == mma(a[some], b, c[some], kind="f16.f32")).all()
