"""``ldmatrix``, ``movmatrix``, ``wmma.load`` and ``wmma.store``: every spelling, lane by lane."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import matrix_rules as rules
from tests.helpers.builders import executed_forms, spellings
from tests.helpers.engines import load, pack
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.ptx.isa import decode
from va100.ptx.isa.form import Family
from va100.ptx.isa.tiles import moved_of, shape_of, tiles_of

BATCH = 16
BYTES = 16384
"""Memory that tiles are taken from, and put into."""
SHARED = 8192
SLOT = 8


def _spelled(start: str) -> list[str]:
    return [
        t
        for f in executed_forms()
        if f.family is Family.MATRIX
        for t in spellings(f)
        if t.startswith(start)
    ]


def _batches(texts: list[str]) -> list[list[str]]:
    return [texts[i : i + BATCH] for i in range(0, len(texts), BATCH)]


def _stride(text: str) -> int | None:
    """Elements from line to line; ``None``: left out, the tile's own extent counts."""
    tile = moved_of(decode(text))
    extent = tile.columns if tile.layout == "row" else tile.rows
    if len(text) % 3 == 0:
        return None
    return extent + max(128 // tile.type.bits, 1) * (len(text) % 5)


def _module(body: str) -> str:
    """A kernel of one warp that has both buffers and a copy of the first in shared memory."""
    return f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry move(.param .u64 source, .param .u64 target)
{{
    .reg .pred %p<4>;
    .reg .b16 %h<4>;
    .reg .b32 %r<80>;
    .reg .b64 %d<80>;
    .shared .align 128 .b8 box[{SHARED}];
    mov.u32 %r0, %tid.x;
    ld.param.u64 %d1, [source];
    ld.param.u64 %d2, [target];
    mov.u32 %r1, box;
    cvta.shared.u64 %d4, box;
    shl.b32 %r2, %r0, 4;
    add.u32 %r3, %r1, %r2;
    mul.wide.u32 %d5, %r0, 16;
    add.s64 %d5, %d5, %d1;
    mov.u32 %r4, 0;
COPY:
    ld.global.v4.u32 {{%r10, %r11, %r12, %r13}}, [%d5];
    st.shared.v4.u32 [%r3], {{%r10, %r11, %r12, %r13}};
    add.s64 %d5, %d5, 512;
    add.u32 %r3, %r3, 512;
    add.u32 %r4, %r4, 512;
    setp.lt.u32 %p1, %r4, {SHARED};
    @%p1 bra COPY;
    bar.sync 0;
    mul.wide.u32 %d3, %r0, {SLOT};
    add.s64 %d3, %d3, %d2;
{body}
    ret;
}}
"""


def _run(body: str, source: np.ndarray, engine: Engine, arena: Arena, count: int) -> np.ndarray:
    """The first ``count`` bytes of the target, which begins as 0xEE."""
    loaded = load(_module(body), arena, "move.ptx")
    try:
        places = loaded.buffer(source), loaded.buffer(np.full(count, 0xEE, np.uint8))
        loaded.run(engine, "move", (1,), (32,), pack(*places))
        return loaded.read(places[1], np.uint8, count)
    finally:
        loaded.close()


def _source() -> np.ndarray:
    return np.random.default_rng(11).integers(0, 256, BYTES, np.uint8, endpoint=False)


def _names(count: int, bits: int) -> list[str]:
    return [f"{'%d' if bits == 64 else '%r'}{20 + i}" for i in range(count)]


def _store_all(names: list[str], bits: int, at: int) -> list[str]:
    return [
        f"    st.global.b{bits} [%d3+{(at + i) * 32 * SLOT}], {name};"
        for i, name in enumerate(names)
    ]


def _element(memory: np.ndarray, bit: int, bits: int) -> int:
    """Raw bits at a bit offset."""
    low = bit // 8
    word = int.from_bytes(memory[low : low + 8].tobytes(), "little")
    return word >> (bit % 8) & ((1 << bits) - 1)


# ---------------------------------------------------------------- ldmatrix, movmatrix

ROWS = tuple((37 * lane + 11) % 400 * 16 for lane in range(32))
"""Offset of the row each lane gives."""


@pytest.mark.parametrize("text", _spelled("ldmatrix"))
def test_ldmatrix(text: str, engine: Engine, arena: Arena) -> None:
    operation = decode(text)
    count = tiles_of(operation)[0].registers
    names = _names(count, 32)
    address = "%r5" if ".shared" in text else "%d6"
    body = "\n".join([
        "    mad.lo.u32 %r5, %r0, 37, 11;", "    rem.u32 %r5, %r5, 400;",
        "    shl.b32 %r5, %r5, 4;", "    cvt.u64.u32 %d6, %r5;", "    add.s64 %d6, %d6, %d4;",
        "    add.u32 %r5, %r5, %r1;",
        f"    {text} {{{', '.join(names)}}}, [{address}];", *_store_all(names, 32, 0),
    ])  # fmt: skip
    source = _source()
    got = _run(body, source, engine, arena, count * 32 * SLOT).view(np.uint64).reshape(count, 32)
    for matrix in range(count):
        rows = [source[ROWS[8 * matrix + i] :][:16].view(np.uint16) for i in range(8)]
        for lane in range(32):
            g, t = lane >> 2, lane & 3
            pair = (rows[g][2 * t], rows[g][2 * t + 1])
            if ".trans" in text:
                pair = (rows[2 * t][g], rows[2 * t + 1][g])
            want = int(pair[0]) | int(pair[1]) << 16
            assert int(got[matrix, lane]) & 0xFFFFFFFF == want, (text, matrix, lane)


def test_movmatrix(engine: Engine, arena: Arena) -> None:
    (text,) = _spelled("movmatrix")
    body = "\n".join([
        "    mul.wide.u32 %d6, %r0, 4;", "    add.s64 %d6, %d6, %d1;",
        "    ld.global.u32 %r5, [%d6];", f"    {text} %r6, %r5;", *_store_all(["%r6"], 32, 0),
    ])  # fmt: skip
    source = _source()
    got = _run(body, source, engine, arena, 32 * SLOT).view(np.uint32)[::2]
    want = source[:128].view(np.uint16).reshape(8, 8).T.reshape(-1).view(np.uint32)
    np.testing.assert_array_equal(got, want)


# ---------------------------------------------------------------- wmma.load


def _address(text: str) -> str:
    if ".shared" in text:
        return "%r1+256"
    if ".global" in text or len(text) % 2:
        return "%d1+256"
    return "%d4+256"  # generic, in shared memory


@pytest.mark.parametrize("batch", _batches(_spelled("wmma.load")), ids=lambda b: b[0])
def test_wmma_load(batch: list[str], engine: Engine, arena: Arena) -> None:
    lines, at = [], 0
    for text in batch:
        tile, stride = moved_of(decode(text)), _stride(text)
        names = _names(tile.registers, tile.register_bits)
        tail = "" if stride is None else f", {stride}"
        if stride is not None and stride % 2:  # in a register, now and then
            lines.append(f"    mov.u32 %r6, {stride};")
            tail = ", %r6"
        lines.append(f"    {text} {{{', '.join(names)}}}, [{_address(text)}]{tail};")
        lines += _store_all(names, tile.register_bits, at)
        at += tile.registers
    source = _source()
    found = _run("\n".join(lines), source, engine, arena, at * 32 * SLOT)
    registers, at = found.view(np.uint64).reshape(-1, 32), 0
    for text in batch:
        tile = moved_of(decode(text))
        _check_load(text, source, registers[at : at + tile.registers])
        at += tile.registers


def _check_load(text: str, source: np.ndarray, registers: np.ndarray) -> None:
    operation = decode(text)
    tile, stride = moved_of(operation), _stride(text)
    bits = tile.type.bits
    stride = stride or (tile.columns if tile.layout == "row" else tile.rows)
    places = rules.tile_holds(tile.role, shape_of(operation), bits)
    own = max(r for r, _, _ in places) + 1
    mask = (1 << bits) - 1
    for (r, lane, j), (row, column) in places.items():
        line, along = (row, column) if tile.layout == "row" else (column, row)
        want = _element(source, 256 * 8 + (line * stride + along) * bits, bits)
        for copy in range(r, tile.registers, own):
            assert int(registers[copy, lane]) >> (bits * j) & mask == want, (text, copy, lane, j)


# ---------------------------------------------------------------- wmma.store


@pytest.mark.parametrize("batch", _batches(_spelled("wmma.store")), ids=lambda b: b[0])
def test_wmma_store(batch: list[str], engine: Engine, arena: Arena) -> None:
    """Registers come from memory, a tile is stored, and shared memory is copied out after it."""
    lines: list[str] = []
    source = _source()
    for index, text in enumerate(batch):
        tile, stride = moved_of(decode(text)), _stride(text)
        names = _names(tile.registers, tile.register_bits)
        size = tile.register_bits // 8
        lines += [f"    mul.wide.u32 %d6, %r0, {size};", "    add.s64 %d6, %d6, %d1;"]
        lines += [
            f"    ld.global.b{8 * size} {name}, [%d6+{(r * 32) * size}];"
            for r, name in enumerate(names)
        ]
        tail = "" if stride is None else f", {stride}"
        place = "%r1" if ".shared" in text else "%d7"
        window = f"{index * SHARED}"
        lines += [f"    add.s64 %d7, %d2, {window};"]
        lines += [f"    {text} [{place}+256], {{{', '.join(names)}}}{tail};"]
        if ".shared" in text:
            lines += _copy_out(index)
    count = len(batch) * SHARED
    found = _run("\n".join(lines), source, engine, arena, count).reshape(len(batch), SHARED)
    shared = source[:SHARED].copy()
    for text, window in zip(batch, found, strict=True):
        target = shared if ".shared" in text else np.full(SHARED, 0xEE, np.uint8)
        _store(text, source, target)
        np.testing.assert_array_equal(window, target, err_msg=text)


def _copy_out(index: int) -> list[str]:
    label = f"OUT{index}"
    return [
        "    shl.b32 %r5, %r0, 4;", "    cvt.u64.u32 %d8, %r5;", "    add.s64 %d8, %d8, %d7;",
        "    add.u32 %r5, %r5, %r1;", "    mov.u32 %r6, 0;", f"{label}:",
        "    ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r5];",
        "    st.global.v4.u32 [%d8], {%r10, %r11, %r12, %r13};",
        "    add.s64 %d8, %d8, 512;", "    add.u32 %r5, %r5, 512;", "    add.u32 %r6, %r6, 512;",
        f"    setp.lt.u32 %p1, %r6, {SHARED};", f"    @%p1 bra {label};",
    ]  # fmt: skip


def _store(text: str, source: np.ndarray, target: np.ndarray) -> None:
    operation = decode(text)
    tile, stride = moved_of(operation), _stride(text)
    size = tile.type.bits // 8
    stride = stride or (tile.columns if tile.layout == "row" else tile.rows)
    width = tile.register_bits // 8
    for (r, lane, j), (row, column) in rules.tile_holds(
        "c", shape_of(operation), tile.type.bits
    ).items():
        line, along = (row, column) if tile.layout == "row" else (column, row)
        place = 256 + (line * stride + along) * size
        at = (r * 32 + lane) * width + j * size
        target[place : place + size] = source[at : at + size]
