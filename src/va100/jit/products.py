"""Matrix products of a warp: calls of the native functions that have the tensor core's arithmetic.

A ``wmma`` product is several ``mma`` products on parts of its fragments.  The functions' names
and what they expect are in ``native/exec/mma.h``.
"""

from __future__ import annotations

from va100.jit import tiles
from va100.jit.access import LANES
from va100.jit.context import Context
from va100.jit.emit import Value
from va100.ptx.isa.form import Operation
from va100.ptx.isa.tiles import Product, Tile, product_of
from va100.ptx.program import Immediate, Operand
from va100.ptx.types import PtxType

_ORDERED = 0x100
"""Added to a selector: pairs of metadata must ascend."""


def lower_product(c: Context, op: Operation) -> list[Value]:
    """Emit a product; the registers of D."""
    product = product_of(op)
    _, a, b, c_operand = c.instruction.operands[:4]
    left = tiles.store_registers(c, a, product.a)
    right = tiles.store_registers(c, b, product.b)
    narrow = product.d.type is PtxType.F16
    wide = PtxType.F32 in (product.d.type, product.c.type)
    if product.is_volta:
        return _volta(c, product, (left, right, c_operand))
    total = _accumulator(c, c_operand, product.c, widen=wide)
    if product.sparse:
        _sparse(c, op, product, (left, right, total))
    else:
        _dense(c, op, product, (left, right, total))
    bits = product.d.register_bits
    if narrow and wide:
        return _narrowed(c, tiles.load_registers(c, total, 2 * product.d.registers, bits))
    return tiles.load_registers(c, total, product.d.registers, bits)


def _accumulator(c: Context, operand: Operand | None, tile: Tile, *, widen: bool) -> str:
    where = tiles.store_registers(c, operand, tile)
    if not widen or tile.type is not PtxType.F16:
        return where
    halves = []
    for packed in tiles.load_registers(c, where, tile.registers, 32):
        high = c.op(f"lshr <32 x i32> {c.vector(packed)}, splat (i32 16)")
        halves += [c.resized(packed, 16), c.resized(c.from_vector(high, 32), 16)]
    return tiles.store_values(c, [c.elementwise("va_m_cvt_f32_f16", [h], 32) for h in halves])


def _narrowed(c: Context, values: list[Value]) -> list[Value]:
    """Pairs of f32 as f16, rounded to nearest even."""
    return [
        c.elementwise("va_m_cvt_f16x2_f32_rn", [high, low], 32)
        for low, high in zip(values[::2], values[1::2], strict=True)
    ]


def _dense(c: Context, op: Operation, product: Product, where: tuple[str, str, str]) -> None:
    m, n, k = product.shape
    left, right, total = where
    a, b = product.a, product.b
    if m == 8 and n == 32:  # its transpose is computed
        left, right, m, n = right, left, n, m
        a, b = b, a
    height = min(m, 16)
    name = f"va_mma_m{height}n8k{k}_{_kind(op, product, a, b)}"
    _need(c, name, "declare void {}(ptr, ptr, ptr, ptr)")
    steps = [(down, across) for down in range(m // height) for across in range(n // 8)]
    wide_c = 32 if PtxType.F32 in (product.d.type, product.c.type) else product.c.type.bits
    for step, (down, across) in enumerate(steps):
        parts = (
            _part(c, left, down, height * k, a),
            _part(c, right, across, 8 * k, b),
            _part(c, total, step, height * 8, product.c, wide_c),
        )
        c.line(f"call void @{name}(ptr {parts[0]}, ptr {parts[1]}, ptr {parts[2]}, ptr {parts[2]})")


def _need(c: Context, name: str, signature: str) -> None:
    if name not in c.helpers:
        raise c.refuse(f"no native function {name}")
    c.declare(name, signature)


def _part(
    c: Context, where: str, index: int, elements: int, tile: Tile, bits: int | None = None
) -> str:
    """Registers of one ``mma`` among those of a ``wmma`` operand."""
    element_bits = bits or tile.type.bits
    width = max(element_bits, 32)
    registers = elements * element_bits // (LANES * width)
    return tiles.register_at(c, where, index * registers, width)


def _kind(op: Operation, product: Product, a: Tile, b: Tile) -> str:
    """The end of a native function's name."""
    first, second = a.type.value, b.type.value
    if product.logic:
        return f"b1_{product.logic}"
    if a.type is PtxType.F64:
        return "f64" + (f"_{op.rounding}" if op.rounding not in ("", "rn") else "")
    if a.type is PtxType.F16:
        return "f16_f32" if PtxType.F32 in (product.d.type, product.c.type) else "f16_f16"
    if a.type.is_float:
        return f"{first}_f32"
    pair = first if first == second else f"{first}_{second}"
    return f"{pair}_s32" + ("_sat" if op.saturate else "")


def _volta(c: Context, product: Product, where: tuple[str, str, Operand | None]) -> list[Value]:
    left, right, operand = where
    total = tiles.store_registers(c, operand, product.c)
    bits, count = product.d.register_bits, product.d.registers
    result = c.array(f"i{bits}", LANES * count)
    layouts = f"{product.a.layout}_{product.b.layout}"
    name = f"va_mma_m8n8k4_f16_{product.d.type.value}_{product.c.type.value}_{layouts}"
    _need(c, name, "declare void {}(ptr, ptr, ptr, ptr)")
    c.line(f"call void @{name}(ptr {left}, ptr {right}, ptr {total}, ptr {result})")
    return tiles.load_registers(c, result, count, bits)


def _sparse(c: Context, op: Operation, product: Product, where: tuple[str, str, str]) -> None:
    left, right, total = where
    metadata, selected = c.instruction.operands[4:6]
    selector = selected.value if isinstance(selected, Immediate) else -1
    if not 0 <= selector < product.selectors:
        raise c.refuse(
            f"sparsity selector {selector} is not one of the {product.selectors} of this shape"
        )
    table = tiles.store_values(c, [c.read_sized(metadata, PtxType.B32)])
    m, n, k = product.shape
    bits = product.a.type.bits
    name = f"va_mma_sp_m{m}n{n}k{k}_{_kind(op, product, product.a, product.b)}"
    packed = selector + (_ORDERED if product.ordered else 0)
    _need(c, name, "declare i32 {}(ptr, ptr, ptr, ptr, ptr, i32)")
    lane = c.op(
        f"call i32 @{name}(ptr {left}, ptr {right}, ptr {total}, ptr {total}, ptr {table}, "
        f"i32 {packed})"
    )
    wrong = c.op(f"icmp sge i32 {lane}, 0")
    if c.mask_may_be_empty:
        wrong = c.op(f"and i1 {wrong}, {c.op(f'icmp ne i32 {c.lanes}, 0')}")
    bad, good = c.name("bad"), c.name("good")
    c.line(f"br i1 {wrong}, label %{bad}, label %{good}, !prof !1")
    c.label(bad)
    shape = k | bits << 16 | selector << 24 | int(product.ordered) << 32
    c.declare("va_h_metadata", "declare void {}(ptr, i32, i32, ptr, i64) cold")
    c.line(f"call void @va_h_metadata(ptr %w, i32 {c.site}, i32 {lane}, ptr {table}, i64 {shape})")
    c.line(f"br label %{good}")
    c.label(good)
