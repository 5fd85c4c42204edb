"""Matrix products: fragments to matrices, the tensor core's arithmetic, and back.

The arithmetic is :func:`va100.numerics.mma.mma`; here is only which kind an instruction is and
what becomes of its operands before and after.
"""

from __future__ import annotations

import numpy as np

from va100.errors import IllegalInstruction
from va100.numerics import convert, fragments, sparsity, tiles
from va100.numerics.formats import F16, F32, widen_to_f32
from va100.numerics.fragments import Fragment
from va100.numerics.mma import mma
from va100.numerics.sparse_metadata import metadata_layout, unpack_metadata
from va100.ptx.isa.tiles import Product, Tile, product_of
from va100.ptx.program import Immediate, Vector
from va100.ptx.types import PtxType
from va100.reference.collective import Collective
from va100.reference.lanes import U32, Lanes, unsigned_type


def multiply(all_lanes: Collective) -> None:
    """``mma``, ``mma.sp`` and ``wmma.mma``."""
    operation = all_lanes.operation
    product = product_of(operation)
    tiled = operation.opcode == "wmma"
    destination, *sources = all_lanes.step.operands[:4]
    a, b, c = (
        _matrix(product, tile, all_lanes.registers(operand, tile), tiled=tiled)
        for operand, tile in zip(sources, (product.a, product.b, product.c), strict=True)
    )
    wide = PtxType.F32 in (product.d.type, product.c.type)
    if wide and product.c.type is PtxType.F16:
        c = np.ascontiguousarray(widen_to_f32(F16, c))
    if product.sparse:
        columns = _columns(all_lanes, product)
        a, b, c = a[:, None, :], b[columns], c[:, None, :]
    kind, mode = kind_of(product), operation.rounding or "rn"
    # Texts before PTX 6.5 may ask it of floating point, of which chips since sm_70 make nothing.
    satfinite = operation.saturate and product.d.type is PtxType.S32
    result = mma(a, b, c, kind=kind, mode=mode, satfinite=satfinite)
    if product.sparse:
        result = result[:, 0]
    if wide and product.d.type is PtxType.F16:
        result = convert.float_to_float(F32, F16, "rn", result)
    registers = _registers(product, result, tiled=tiled)
    elements = destination.elements if isinstance(destination, Vector) else ()
    for element, register in zip(elements, registers, strict=True):
        all_lanes.write(element, register)


def kind_of(product: Product) -> str:
    """Row of the table of kinds."""
    a, b = product.a.type.value, product.b.type.value
    wide = PtxType.F32 in (product.c.type, product.d.type)
    if product.a.type is PtxType.F16:
        return f"{'m8n8k4.' if product.is_volta else ''}f16.{'f32' if wide else 'f16'}"
    if product.a.type in (PtxType.BF16, PtxType.TF32):
        return f"{a}.f32"
    if product.a.type is PtxType.F64:
        return "f64"
    if product.logic:
        return f"b1.{product.logic}"
    return f"{a}.s32" if a == b else f"{a}.{b}.s32"


def _fragment(product: Product, tile: Tile, *, tiled: bool) -> Fragment:
    m, _, k = product.shape
    bits = tile.type.bits
    role = "c" if tile.role == "d" else tile.role
    if tiled:
        return tiles.wmma_fragment(role, product.shape, bits)
    if role == "a":
        return fragments.fragment_a(m, k // 2 if product.sparse else k, bits)
    return fragments.fragment_b(k, bits) if role == "b" else fragments.fragment_c(m, bits)


def _quads(tile: Tile) -> tuple[Fragment, ...]:
    """Fragments of the four products of the Volta shape."""
    if tile.role == "a":
        return fragments.volta_a(row_major=tile.layout == "row")
    if tile.role == "b":
        return fragments.volta_b(row_major=tile.layout == "row")
    return fragments.volta_c(tile.type.bits)


def _matrix(product: Product, tile: Tile, registers: Lanes, *, tiled: bool) -> Lanes:
    """Operand in the form that the arithmetic takes: raw bits, or numbers of integers."""
    if product.is_volta:
        matrix = np.stack(
            [f.gather(registers[:, tiles.quad_lanes(q)]) for q, f in enumerate(_quads(tile))]
        )
    else:
        fragment = _fragment(product, tile, tiled=tiled)
        matrix = fragment.gather(registers[: fragment.registers])
    kind = tile.type
    if not kind.is_signed:
        return matrix.astype(unsigned_type(max(kind.bits, 8)))
    sign = np.int64(1 << (kind.bits - 1))
    numbers: Lanes = (matrix.astype(np.int64) ^ sign) - sign
    return numbers


def _registers(product: Product, result: Lanes, *, tiled: bool) -> Lanes:
    tile = product.d
    matrix = result.view(unsigned_type(8 * result.dtype.itemsize))
    matrix = matrix.astype(unsigned_type(tile.register_bits))
    if not product.is_volta:
        return _fragment(product, tile, tiled=tiled).scatter(matrix)
    registers = np.zeros((tile.registers, 32), np.uint32)
    for quad, fragment in enumerate(_quads(tile)):
        registers[:, tiles.quad_lanes(quad)] = fragment.scatter(matrix[quad])
    return registers


# ---------------------------------------------------------------- sparsity


def _columns(all_lanes: Collective, product: Product) -> Lanes:
    """Dense column of every element of compressed A, (m, k / 2).

    Raises
    ------
    IllegalInstruction
        Metadata names no two elements.
    """
    operands = all_lanes.step.operands
    selector = operands[5].value if isinstance(operands[5], Immediate) else -1
    bits = product.a.type.bits
    if not 0 <= selector < product.selectors:
        raise all_lanes.whole.broken(
            f"sparsity selector {selector} is not one of the {product.selectors} of this shape"
        )
    words = all_lanes.read(operands[4], U32)
    lanes = metadata_layout(product.shape[2], bits).lanes[selector]
    values = unpack_metadata(words, product.shape[2], bits, selector)
    wrong = ~_legal(values, bits, ordered=product.ordered)
    if wrong.any():
        row, chunk = (int(v) for v in np.argwhere(wrong)[0])
        lane = int(lanes[row, chunk])
        raise IllegalInstruction(
            f"metadata 0x{int(values[row, chunk]):x} of row {row}, chunk {chunk}, in lane {lane}: "
            f"{_rule(bits, ordered=product.ordered)}",
            **all_lanes.whole.place(lane),
        )
    return sparsity.places(values, sparsity.pattern_of(kind_of(product)), ordered=product.ordered)


def _legal(values: Lanes, bits: int, *, ordered: bool) -> Lanes:
    first, second = values & 3, values >> 2
    legal: Lanes = first < second if ordered else first != second
    if bits == 32:
        legal = (values == 0x4) | (values == 0xE)
    return legal


def _rule(bits: int, *, ordered: bool) -> str:
    if bits == 32:
        return "tf32 takes 0x4 and 0xe"
    return "its two positions must ascend" if ordered else "its two positions must differ"
