"""What an A100 gives for a product of matrices, to the bit, without writing a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from va100.numerics import rounding
from va100.numerics.formats import Bits
from va100.numerics.mma_rules import MmaRule, Procedure, rule
from va100.tensor_core.arrays import (
    Array,
    accumulator_bits,
    operand_bits,
    result_array,
    result_shape,
)
from va100.tensor_core.native import Modifiers, multiply

Tile = tuple[int, int, int]


def mma(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    kind: str,
    tf32_round: str = "raw",
    rounding_mode: str = "rn",
    satfinite: bool = False,
) -> Array:
    """D = A B + C as the tensor cores of an A100 add it, any K, block after block of ascending k.

    Parameters
    ----------
    a : (..., M, K)
        float16, bfloat16 of ml_dtypes (or uint16 holding its bits), float32 for tf32, float64,
        int8 or uint8, int4 or uint4 of ml_dtypes (or a byte each), bool for b1.  Plain lists of
        numbers are rounded to the kind's type.
    b : (..., K, N)
    c : (..., M, N)
        Of the accumulator's type; zero when left out.
    kind : str
        ``f16.f32``, ``f16.f16``, ``bf16.f32``, ``tf32.f32``, ``f64``, ``s8.s32``, ``u8.s32``,
        ``s4.s32``, ``u4.s32``, mixed ones such as ``s8.u8.s32``, ``b1.xor``, ``b1.and``, and
        ``m8n8k4.f16.f32``, ``m8n8k4.f16.f16`` for the Volta shape.
    tf32_round : str
        ``raw``: the lowest 13 bits of a float32 are not read, as the instruction has it.
        ``rna``: to nearest, ties away, first, as compilers and libraries do.
    rounding_mode : str
        ``rn``, ``rz``, ``rm``, ``rp``; f64 only.
    satfinite : bool
        Integers: clamp instead of wrap, once an instruction of the deepest shape.

    Returns
    -------
    (..., M, N) float32, float16, float64 or int32

    Raises
    ------
    ValueError
        A type, a shape or a modifier is not the kind's.
    """
    row = rule(kind)
    modifiers = _modifiers(row, rounding_mode, satfinite=satfinite)
    x = operand_bits(row, "a", a, tf32_round)
    y = operand_bits(row, "b", b, tf32_round)
    z = accumulator_bits(row, c, result_shape(x, y))
    return result_array(row, multiply(row, x, y, z, modifiers))


def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    kind: str,
    tile: Tile = (128, 128, 32),
    k_warps: int = 1,
    split_k: int = 1,
    tf32_round: str = "raw",
) -> Array:
    """D = A B + C as a tiled kernel computes it: sums start at zero, C is added at the end.

    A CTA makes a tile of ``tile[0]`` by ``tile[1]``, ``tile[2]`` of k at a time.  Which rows and
    columns share a tile changes no bit; where k is cut does: with ``k_warps`` groups of warps
    take equal parts of each tile's k, with ``split_k`` CTAs take equal runs of tiles, and their
    sums are added in ascending order, rounded to nearest in the accumulator's type.

    Raises
    ------
    ValueError
        As :func:`mma`; or the tile is no whole number of instructions, or cannot be cut so.
    """
    row = rule(kind)
    _check_tile(row, tile, k_warps, split_k)
    x = operand_bits(row, "a", a, tf32_round)
    y = operand_bits(row, "b", b, tf32_round)
    shape = result_shape(x, y)
    z = accumulator_bits(row, c, shape)
    total: Bits | None = None
    for part in _parts(x.shape[-1], tile[2], k_warps, split_k):
        partial = multiply(row, x[..., part], y[..., part, :], np.zeros_like(z))
        total = partial if total is None else _added(row, total, partial)
    if total is None:
        total = np.zeros(shape, z.dtype)
    return result_array(row, total if c is None else _added(row, total, z))


def _modifiers(row: MmaRule, rounding_mode: str, *, satfinite: bool) -> Modifiers:
    if rounding_mode not in ("rn", "rz", "rm", "rp"):
        raise ValueError(f"rounding_mode is rn, rz, rm or rp, not {rounding_mode!r}")
    if rounding_mode != "rn" and row.procedure is not Procedure.CHAIN:
        raise ValueError(f"rounding_mode is for f64, not {row.kind}")
    if satfinite and row.procedure is not Procedure.INTEGER:
        raise ValueError(f"satfinite is for integers, not {row.kind}")
    return Modifiers(mode=rounding_mode, satfinite=satfinite)


def _check_tile(row: MmaRule, tile: Tile, k_warps: int, split_k: int) -> None:
    m, n, k = tile
    if min(m, n, k, k_warps, split_k) < 1:
        raise ValueError("tile, k_warps and split_k are positive")
    if m % 8 or n % 8:
        raise ValueError(f"a tile of {m} x {n} is no whole number of m16n8 or m8n8 products")
    if k % (k_warps * row.block):
        raise ValueError(
            f"a tile's k of {k} is no multiple of {k_warps * row.block}: "
            f"{row.block} a block of {row.kind}, for each of {k_warps} k_warps"
        )


def _parts(k: int, tile_k: int, k_warps: int, split_k: int) -> list[Any]:
    """Positions along k that are added up together, in the order in which the sums are added."""
    tiles = -(-k // tile_k)
    run = -(-tiles // split_k) * tile_k
    position = np.arange(k)
    parts: list[Any] = []
    for start in range(0, k, max(run, 1)):
        inside = position[start : start + run]
        if k_warps == 1:
            parts.append(slice(start, start + len(inside)))
            continue
        owner = inside % tile_k // (tile_k // k_warps)
        parts += [inside[owner == warp] for warp in range(k_warps)]
    return parts


def _added(row: MmaRule, x: Bits, y: Bits) -> Bits:
    if row.accumulator is None:
        return (x.view(np.uint32) + y.view(np.uint32)).view(np.int32)
    with np.errstate(all="ignore"):
        return rounding.add(row.accumulator, "rn", np.ascontiguousarray(x), np.ascontiguousarray(y))
