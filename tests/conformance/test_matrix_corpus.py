"""Matrix products that compilers wrote, against the same products taken block by block in NumPy.

The order in which a kernel feeds k to the tensor cores is ascending in all of them, so one call of
the arithmetic gives the bits that any tiling must give.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.numerics import convert
from va100.numerics.formats import BF16, F16, F32
from va100.numerics.mma import mma


@pytest.fixture
def texts(shared: Callable[[str], Path]) -> Callable[[str], str]:
    """Read a file of the corpus."""
    return lambda name: shared(f"data/ptx/{name}").read_text(encoding="utf-8")


def _random(kind: str, rows: int, columns: int, seed: int) -> np.ndarray:
    """Raw bits, or integers."""
    rng = np.random.default_rng(seed)
    if kind in ("s8", "u8"):
        low = -128 if kind == "s8" else 0
        return rng.integers(low, low + 256, (rows, columns)).astype(f"{'iu'[kind == 'u8']}1")
    floats = rng.standard_normal((rows, columns))
    if kind == "f64":
        return floats.view(np.uint64)
    single = floats.astype(np.float32).view(np.uint32)
    if kind == "bf16":
        return convert.float_to_float(F32, BF16, "rn", single)
    return floats.astype(np.float16).view(np.uint16) if kind == "f16" else single


# ---------------------------------------------------------------- wmma


@dataclass(frozen=True)
class Tile:
    """A kernel of the ``wmma`` file: it multiplies one tile over k and doubles the result."""

    kernel: str
    kind: str
    shape: tuple[int, int, int]
    a_rows: bool
    b_rows: bool
    sums: str

    @property
    def row(self) -> str:
        operand = self.kind
        return "f64" if operand == "f64" else f"{operand}.{self.sums}"


TILES = (
    Tile("wmma_f16_f32", "f16", (16, 16, 16), True, False, "f32"),
    Tile("wmma_f16_f16", "f16", (16, 16, 16), True, True, "f16"),
    Tile("wmma_f16_32x8", "f16", (32, 8, 16), False, True, "f32"),
    Tile("wmma_bf16", "bf16", (16, 16, 16), True, False, "f32"),
    Tile("wmma_tf32", "tf32", (16, 16, 8), True, False, "f32"),
    Tile("wmma_s8", "s8", (16, 16, 16), True, False, "s32"),
    Tile("wmma_u8", "u8", (8, 32, 16), True, False, "s32"),
    Tile("wmma_f64", "f64", (8, 8, 4), True, False, "f64"),
)
_STORED = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "s32": np.int32}


def _cut(matrix: np.ndarray, start: int, extent: tuple[int, int], *, rows: bool) -> np.ndarray:
    """A tile of flat memory whose lines are ``matrix.shape[1]`` elements apart."""
    pitch = matrix.shape[1]
    down, across = (pitch, 1) if rows else (1, pitch)
    places = np.arange(extent[0])[:, None] * down + np.arange(extent[1]) * across
    return matrix.reshape(-1)[start + places]


@pytest.mark.parametrize("tile", TILES, ids=lambda t: t.kernel)
def test_wmma(tile: Tile, texts: Callable[[str], str], engine: Engine, arena: Arena) -> None:
    depth = 64
    a, b = _random(tile.kind, 64, depth, 1), _random(tile.kind, 64, depth, 2)
    m, n, step = tile.shape
    stored = np.dtype(_STORED[tile.sums])
    loaded = load(texts("04_wmma.ptx"), arena, "04_wmma.ptx")
    try:
        places = [loaded.buffer(x) for x in (a, b, np.zeros((m, n), stored))]
        loaded.run(engine, tile.kernel, (1,), (32,), pack(*places, np.int32(depth)))
        got = loaded.read(places[2], stored, m * n).reshape(m, n)
    finally:
        loaded.close()
    raw = stored if tile.sums == "s32" else np.dtype(f"u{stored.itemsize}")
    total = np.zeros((m, n), raw)
    for k in range(0, depth, step):
        left = _cut(a, k, (m, step), rows=tile.a_rows)
        right = _cut(b, k, (step, n), rows=tile.b_rows)
        total = mma(left, right, total, kind=tile.row)
    want = total.view(stored) * stored.type(2)
    np.testing.assert_array_equal(got.view(f"u{stored.itemsize}"), want.view(f"u{stored.itemsize}"))


# ---------------------------------------------------------------- GEMMs


def _gemm(a: np.ndarray, b: np.ndarray, kind: str) -> np.ndarray:
    """f32 bits of a product that begins at zero."""
    return mma(a, b, np.zeros((a.shape[0], b.shape[1]), np.uint32), kind=f"{kind}.f32")


@pytest.mark.parametrize(
    ("name", "kind", "tile", "threads"),
    [
        ("t3_triton_matmul_f16.ptx", "f16", 64, 128),
        ("t4_triton_matmul_tf32.ptx", "tf32", 64, 128),
        ("t5_triton_matmul_bf16.ptx", "bf16", 128, 256),
    ],
)
def test_triton(
    name: str,
    kind: str,
    tile: int,
    threads: int,
    texts: Callable[[str], str],
    engine: Engine,
    arena: Arena,
) -> None:
    """Edges are masked: no extent is a multiple of its tile, but all of 16."""
    m, n, k = tile + 32, tile - 16, 80
    a, b = _random(kind, m, k, 3), _random(kind, k, n, 4)
    loaded = load(texts(name), arena, name)
    try:
        places = [loaded.buffer(x) for x in (a, b, np.zeros((m, n), a.dtype))]
        numbers = [np.int32(v) for v in (m, n, k, k, n, n)]
        loaded.run(
            engine, "matmul", (2, 1), (threads,), pack(*places, *numbers, 0, 0),
            shared_bytes=96 * 1024,
        )  # fmt: skip
        got = loaded.read(places[2], a.dtype, m * n).reshape(m, n)
    finally:
        loaded.close()
    want = _gemm(a, b, kind)
    if kind != "tf32":
        want = convert.float_to_float(F32, {"f16": F16, "bf16": BF16}[kind], "rn", want)
    np.testing.assert_array_equal(got, want)


def test_pipelined_gemm(texts: Callable[[str], str], engine: Engine, arena: Arena) -> None:
    """Three stages of ``cp.async``, swizzled shared memory, 128 x 128 a CTA."""
    m, n, k = 128, 128, 96
    a, b = _random("f16", m, k, 5), _random("f16", k, n, 6)
    loaded = load(texts("18_hmma_pipelined_gemm.ptx"), arena, "18.ptx")
    try:
        places = [loaded.buffer(x) for x in (a, b, np.zeros((m, n), np.uint16))]
        numbers = [np.int32(v) for v in (m, n, k)]
        loaded.run(engine, "hgemm", (1, 1), (256,), pack(*places, *numbers), shared_bytes=49152)
        got = loaded.read(places[2], np.uint16, m * n).reshape(m, n)
    finally:
        loaded.close()
    want = convert.float_to_float(F32, F16, "rn", _gemm(a, b, "f16"))
    np.testing.assert_array_equal(got, want)


def test_inline_mma(texts: Callable[[str], str], engine: Engine, arena: Arena) -> None:
    """``ldmatrix`` and ``mma.m16n8k16`` by hand."""
    a, b = _random("f16", 16, 64, 7), _random("f16", 64, 8, 8)
    loaded = load(texts("05_mma_inline.ptx"), arena, "05.ptx")
    try:
        places = [loaded.buffer(x) for x in (a, b, np.zeros((16, 8), np.uint32))]
        loaded.run(engine, "mma_m16n8k16_f16", (1,), (32,), pack(*places, np.int32(64)))
        got = loaded.read(places[2], np.uint32, 128).reshape(16, 8)
    finally:
        loaded.close()
    np.testing.assert_array_equal(got, _gemm(a, b, "f16"))
