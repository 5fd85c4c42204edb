"""Every matrix product of the table: JIT, reference and exact numbers, to the bit.

Many instructions share a kernel; each is tried with several sets of operands, one CTA each, while
the warp is together, after it has parted, and under a guard.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tests.helpers import matrix_rules as rules
from tests.helpers import tensor_oracle as oracle
from tests.helpers.builders import executed_forms, spellings
from tests.helpers.engines import load, pack
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.ptx.isa import decode
from va100.ptx.isa.form import Family
from va100.ptx.isa.tiles import Product, Tile, product_of

ROUNDS = 4
ELEMENTS = 100_000
"""Elements of every product on which the engines are compared when everything runs."""
BATCH = 12
SOME = 6
"""Elements of a product compared with exact numbers, unless everything runs."""
SLOT = 8
"""Bytes a register takes in memory."""


def _is_product(text: str) -> bool:
    """Layouts say how ``wmma``'s fragments were loaded; the product is the same for all four."""
    repeated = text.startswith("wmma") and (".row.row." in text or ".col.col." in text)
    return text.startswith(("mma.", "wmma.mma.")) and not repeated


FORMS = [
    t for f in executed_forms() if f.family is Family.MATRIX for t in spellings(f) if _is_product(t)
]
BATCHES = [FORMS[i : i + BATCH] for i in range(0, len(FORMS), BATCH)]


@dataclass(frozen=True)
class Instance:
    """One instruction with its operands' registers as (rounds, registers, 32) raw bits."""

    text: str
    selector: int
    sources: tuple[np.ndarray, ...]

    @property
    def product(self) -> Product:
        return product_of(decode(self.text))


# ---------------------------------------------------------------- operands


def _registers(tile: Tile, rounds: int, rng: np.random.Generator) -> np.ndarray:
    """Rounds of random bits, of ordinary numbers twice, of tiny to huge ones, and again."""
    shape = (rounds, tile.registers, 32)
    raw = rng.integers(0, 1 << 64, shape, dtype=np.uint64, endpoint=False)
    kind = tile.type.value
    layouts = {"f16": (16, 10, 15), "bf16": (16, 7, 127), "tf32": (32, 23, 127),
               "f32": (32, 23, 127), "f64": (64, 52, 1023)}  # fmt: skip
    if kind in layouts:
        bits, fraction, bias = layouts[kind]
        for start in range(0, tile.register_bits, bits):
            for which, (low, high) in enumerate(((-3, 3), (-3, 3), (-bias, 6 - bias))):
                field = rng.integers(bias + low, bias + high, shape).astype(np.uint64)
                place = np.uint64(start + fraction)
                mask = np.uint64(2 * bias + 1) << place
                some = slice(which, None, 4)
                raw[some] = ((raw & ~mask) | field << place)[some]
    if tile.role == "c" and kind == "s32":  # some close to the ends
        ends = np.where(rng.random(shape) < 0.5, 0x7FFFFFF0, 0x80000010).astype(np.uint64)
        raw = np.where(rng.random(shape) < 0.3, ends + (raw & np.uint64(15)), raw)
    return raw & np.uint64((1 << tile.register_bits) - 1)


def _metadata(product: Product, rounds: int, rng: np.random.Generator) -> np.ndarray:
    """(rounds, 1, 32): pairs of positions in every nibble."""
    if product.a.type.bits == 32:
        legal = [0x4, 0xE]
    else:
        legal = [
            i | j << 2
            for i in range(4)
            for j in range(4)
            if i < j or (i != j and not product.ordered)
        ]
    nibbles = rng.choice(np.array(legal, np.uint64), (rounds, 1, 32, 8))
    shifts = np.arange(0, 32, 4, dtype=np.uint64)
    return np.bitwise_or.reduce(nibbles << shifts, axis=3)


def _instance(text: str, rng: np.random.Generator, rounds: int = ROUNDS) -> Instance:
    product = product_of(decode(text))
    sources = [_registers(tile, rounds, rng) for tile in (product.a, product.b, product.c)]
    if product.sparse:
        sources.append(_metadata(product, rounds, rng))
    selector = int(rng.integers(product.selectors)) if product.sparse else 0
    return Instance(text, selector, tuple(sources))


# ---------------------------------------------------------------- kernels


def _kernel(batch: list[Instance], style: str) -> tuple[str, int, int]:
    """Text, and how many registers a round reads and writes."""
    lines, read, written = [], 0, 0
    for instance in batch:
        product = instance.product
        names: list[list[str]] = []
        tiles = [product.a, product.b, product.c]
        widths = [(t.registers, t.register_bits) for t in tiles]
        if product.sparse:
            widths.append((1, 32))
        for operand, (registers, bits) in enumerate(widths):
            names.append(
                [f"{'%d' if bits == 64 else '%r'}{20 + 10 * operand + i}" for i in range(registers)]
            )
            for name in names[-1]:
                lines.append(f"    ld.global.b{bits} {name}, [%d1+{read * 32 * SLOT}];")
                read += 1
        bits = product.d.register_bits
        results = [f"{'%d' if bits == 64 else '%r'}{60 + i}" for i in range(product.d.registers)]
        lines += [f"    mov.b{bits} {name}, 0xdead;" for name in results]
        operands = ", ".join(f"{{{', '.join(group)}}}" for group in (results, *names[:3]))
        tail = f", {names[3][0]}, {instance.selector}" if product.sparse else ""
        guard = "@%p2 " if style == "guarded" else ""
        lines.append(f"    {guard}{instance.text} {operands}{tail};")
        for name in results:
            lines.append(f"    st.global.b{bits} [%d2+{written * 32 * SLOT}], {name};")
            written += 1
    body = "\n".join(lines)
    late = style == "parted"
    return (
        f"""
.version 8.8
.target sm_80
.address_size 64
.visible .entry product(.param .u64 source, .param .u64 target)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<80>;
    .reg .b64 %d<80>;
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    ld.param.u64 %d1, [source];
    ld.param.u64 %d2, [target];
    mul.wide.u32 %d3, %r0, {SLOT};
    add.s64 %d1, %d1, %d3;
    add.s64 %d2, %d2, %d3;
    mul.wide.u32 %d3, %r1, {read * 32 * SLOT};
    add.s64 %d1, %d1, %d3;
    mul.wide.u32 %d3, %r1, {written * 32 * SLOT};
    add.s64 %d2, %d2, %d3;
    mov.u32 %r2, 0;
    setp.lt.u32 %p1, %r0, 13;
    mul.lo.u32 %r4, %r0, %r0;
    shr.u32 %r4, %r4, 20;
    and.b32 %r3, %r1, 1;
    add.u32 %r3, %r3, %r4;
    setp.ne.u32 %p2, %r3, 0;
    {"@%p1 bra COLD;" if late else ""}
JOIN:
{body}
    add.u32 %r2, %r2, %r2;
    ret;
COLD:
    mov.u32 %r2, 5;
    bra JOIN;
}}
""",
        read,
        written,
    )


def _run(batch: list[Instance], style: str, engine: Engine, arena: Arena) -> list[np.ndarray]:
    """Registers of D of each instruction, (rounds, registers, 32)."""
    text, read, written = _kernel(batch, style)
    source = np.concatenate([s for i in batch for s in i.sources], axis=1)
    rounds = len(source)
    assert source.shape == (rounds, read, 32)
    loaded = load(text, arena, "product.ptx")
    try:
        places = loaded.buffer(source), loaded.buffer(np.zeros(rounds * written * 32, np.uint64))
        loaded.run(engine, "product", (rounds,), (32,), pack(*places))
        found = loaded.read(places[1], np.uint64, rounds * written * 32)
    finally:
        loaded.close()
    found = found.reshape(rounds, written, 32)
    results, at = [], 0
    for instance in batch:
        count = instance.product.d.registers
        results.append(found[:, at : at + count])
        at += count
    return results


# ---------------------------------------------------------------- the answer


def _places(product: Product, tile: Tile, *, tiled: bool) -> dict:
    m, _, k = product.shape
    if product.is_volta:
        return rules.volta_holds(tile.role, tile.layout, tile.type.bits)
    if tiled:
        return rules.tile_holds(tile.role, product.shape, tile.type.bits)
    k = k // 2 if product.sparse and tile.role == "a" else k
    return rules.holds(tile.role, m, k, tile.type.bits)


def _matrix(product: Product, tile: Tile, registers: np.ndarray, *, tiled: bool) -> dict:
    """(row, column) to raw bits."""
    bits = tile.type.bits
    return {
        place: int(registers[r, lane]) >> (bits * j) & ((1 << bits) - 1)
        for (r, lane, j), place in _places(product, tile, tiled=tiled).items()
    }


def _element(instance: Instance, a: list[int], b: list[int], c: int) -> int:
    product, operation = instance.product, decode(instance.text)
    kind, d, acc = (t.type.value for t in (product.a, product.d, product.c))
    if acc == "f16" and d == "f32":
        c = rules.widened(c)
    if product.is_volta:
        return oracle.volta(d, a, b, c)
    if kind == "f64":
        return oracle.chain(operation.rounding or "rn", a, b, c)
    if product.logic:
        return rules.count(product.logic, a, b, c)
    if d == "s32":
        pair = (kind, product.b.type.value)
        return rules.whole(pair, a, b, c, clamp=operation.saturate)
    result = oracle.element(f"{kind}.{'f32' if 'f32' in (d, acc) else 'f16'}", a, b, c)
    return rules.narrowed(result) if d == "f16" and acc == "f32" else result


def _check(
    instance: Instance, round_index: int, have: np.ndarray, chosen: np.random.Generator | None
) -> None:
    """Compare registers of D, (registers, 32), with the exact answer: all elements, or some."""
    product = instance.product
    tiled = instance.text.startswith("wmma")
    a, b, c = (
        _matrix(product, tile, source[round_index], tiled=tiled)
        for tile, source in zip(
            (product.a, product.b, product.c), instance.sources[:3], strict=True
        )
    )
    places = list(_places(product, product.d, tiled=tiled).items())
    if chosen is not None:
        places = [places[i] for i in chosen.choice(len(places), SOME, replace=False)]
    bits, depth = product.d.type.bits, product.shape[2]
    for (r, lane, j), (row, column) in places:
        quad = row // 8 if product.is_volta else 0
        ks = range(depth // 2 if product.sparse else depth)
        dense = [_dense_k(instance, round_index, row, k) for k in ks]
        left = [a[row, k] for k in ks]
        right = [b[4 * quad + k, column] for k in dense]
        want = _element(instance, left, right, c[row, column])
        got = int(have[r, lane]) >> (bits * j) & ((1 << bits) - 1)
        assert got == want, (instance.text, round_index, row, column, hex(got), hex(want))


def _dense_k(instance: Instance, round_index: int, row: int, k: int) -> int:
    """Column of the dense A at which compressed element k of a row stands."""
    product = instance.product
    if not product.sparse:
        return k
    bits, depth = product.a.type.bits, product.shape[2]
    chunk, position = {32: (k, 0), 16: (k // 2, k % 2), 8: (k // 2, k % 2),
                       4: (k // 4, k // 2 % 2)}[bits]  # fmt: skip
    chunks = {32: depth // 2, 16: depth // 4, 8: depth // 4, 4: depth // 8}[bits]
    g, below, f = row % 8, row // 8, instance.selector
    if bits >= 16:
        lane = 4 * g + (2 * f + chunk // 4 if chunks == 8 else f)
        shift = 16 * below + 4 * (chunk % 4)
    elif chunks == 8:
        lane, shift = 4 * g + 2 * f + below, 4 * chunk
    else:
        lane, shift = 4 * g + below + 2 * (chunk // 8), 4 * (chunk % 8)
    nibble = int(instance.sources[3][round_index, 0, lane]) >> shift & 15
    index = nibble >> (2 * position) & 3
    if bits == 32:
        return 2 * chunk + (nibble >> 1 & 1)
    return 8 * chunk + 2 * index + k % 2 if bits == 4 else 4 * chunk + index


# ---------------------------------------------------------------- tests


GUARDED = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
    "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32",
)


def test_guard(engine: Engine, arena: Arena) -> None:
    """The guard holds in all lanes of every other CTA, and in none of the rest."""
    instances = [_instance(text, np.random.default_rng(7)) for text in GUARDED]
    found = _run(instances, "guarded", engine, arena)
    for instance, have in zip(instances, found, strict=True):
        assert (have[0::2] == 0xDEAD).all(), instance.text
        for round_index in range(1, ROUNDS, 2):
            _check(instance, round_index, have[round_index], None)


@pytest.mark.parametrize("batch", BATCHES, ids=lambda b: b[0])
def test_product(
    batch: list[str], reference: Engine, jit: Engine, arena: Arena, full: bool
) -> None:
    m, n, _ = product_of(decode(batch[0])).shape
    rounds = -(-ELEMENTS // (m * n)) if full else ROUNDS
    rngs = [np.random.default_rng(i) for i in range(len(batch))]
    instances = [_instance(text, rng, rounds) for text, rng in zip(batch, rngs, strict=True)]
    expected = _run(instances, "whole", reference, arena)
    for style in ("whole", "parted"):
        got = _run(instances, style, jit, arena)
        for instance, want, have in zip(instances, expected, got, strict=True):
            np.testing.assert_array_equal(have, want, err_msg=f"{instance.text} {style}")
    chosen = None if full else np.random.default_rng(len(batch[0]))
    for instance, have in zip(instances, expected, strict=True):
        for round_index in range(ROUNDS):
            _check(instance, round_index, have[round_index], chosen)
