"""Carry chains: 128-bit numbers by 32- and 64-bit instructions, against Python integers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.builders import integers
from tests.helpers.engines import load, pack
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine

COUNT = 256
WORDS = {32: 4, 64: 2}
_BASE = {32: "%r", 64: "%d"}


def _header(bits: int) -> str:
    size = 16
    loads = "\n".join(
        f"    ld.global.b{bits} {_BASE[bits]}{10 * k + i}, [%d{60 + k}+{i * bits // 8}];"
        for k in (0, 1)
        for i in range(WORDS[bits])
    )
    return f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry wide(.param .u64 a, .param .u64 b, .param .u64 out)
{{
    .reg .b32 %r<64>;
    .reg .b64 %d<64>;
    mov.u32 %r60, %ctaid.x;
    mov.u32 %r61, %tid.x;
    mad.lo.u32 %r60, %r60, 64, %r61;
    mul.wide.u32 %d63, %r60, {size};
    ld.param.u64 %d60, [a];
    add.s64 %d60, %d60, %d63;
    ld.param.u64 %d61, [b];
    add.s64 %d61, %d61, %d63;
    ld.param.u64 %d62, [out];
    add.s64 %d62, %d62, %d63;
{loads}
"""


def _stores(bits: int, first: int) -> str:
    return "\n".join(
        f"    st.global.b{bits} [%d62+{i * bits // 8}], {_BASE[bits]}{first + i};"
        for i in range(WORDS[bits])
    )


def _chain(opcode: str, kind: str, bits: int) -> str:
    """``add.cc``, ``addc.cc`` …, ``addc``."""
    r = _BASE[bits]
    last = WORDS[bits] - 1
    lines = []
    for i in range(last + 1):
        head = f"{opcode}.cc" if i == 0 else f"{opcode}c.cc" if i < last else f"{opcode}c"
        lines.append(f"    {head}.{kind} {r}{20 + i}, {r}{i}, {r}{10 + i};")
    return "\n".join(lines)


def _square_chain(kind: str, bits: int) -> str:
    """Low 128 bits of a * b in a schoolbook of ``mad`` and ``madc``."""
    r, n = _BASE[bits], WORDS[bits]
    lines = [f"    mov.b{bits} {r}{20 + i}, 0;" for i in range(n)]
    for j in range(n):
        for half, shift in (("lo", 0), ("hi", 1)):
            row = [(i, i + j + shift) for i in range(n) if i + j + shift < n]
            for at, (i, k) in enumerate(row):
                first, final = at == 0, at == len(row) - 1
                opcode = "mad" if first else "madc"
                carry = "" if final and not first else ".cc"
                if first and final:
                    carry = ".cc"
                head = f"{opcode}.{half}{carry}.{kind}"
                lines.append(f"    {head} {r}{20 + k}, {r}{i}, {r}{10 + j}, {r}{20 + k};")
    return "\n".join(lines)


def _run(text: str, engine: Engine, arena: Arena) -> tuple[list[int], list[int], list[int]]:
    rng = np.random.default_rng(11)
    a, b = (np.stack([integers(64, COUNT, rng) for _ in (0, 1)], axis=1) for _ in (0, 1))
    b[:8] = a[:8]
    loaded = load(text, arena, "wide.ptx")
    try:
        places = [loaded.buffer(x) for x in (a, b, np.zeros_like(a))]
        loaded.run(engine, "wide", (COUNT // 64,), (64,), pack(*places))
        out = loaded.read(places[2], np.uint64, 2 * COUNT).reshape(COUNT, 2)
    finally:
        loaded.close()
    return tuple([int(low) | int(high) << 64 for low, high in x.tolist()] for x in (a, b, out))


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("opcode", ["add", "sub"])
def test_sums(opcode: str, kind: str, engine: Engine, arena: Arena) -> None:
    bits = int(kind[1:])
    text = _header(bits) + _chain(opcode, kind, bits) + "\n" + _stores(bits, 20) + "\n    ret;\n}\n"
    a, b, out = _run(text, engine, arena)
    for x, y, got in zip(a, b, out, strict=True):
        want = (x + y if opcode == "add" else x - y) % (1 << 128)
        assert got == want, f"{x:#x} {opcode} {y:#x}"


@pytest.mark.parametrize("kind", ["u32", "u64"])
def test_products(kind: str, engine: Engine, arena: Arena) -> None:
    bits = int(kind[1:])
    text = _header(bits) + _square_chain(kind, bits) + "\n" + _stores(bits, 20) + "\n    ret;\n}\n"
    a, b, out = _run(text, engine, arena)
    for x, y, got in zip(a, b, out, strict=True):
        assert got == x * y % (1 << 128), f"{x:#x} * {y:#x}"
