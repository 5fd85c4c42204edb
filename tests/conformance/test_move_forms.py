"""Moves, address conversion, control: every row of the two families."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.builders import executed_forms, integers, spellings
from tests.helpers.engines import load, pack
from tests.helpers.kernels import CASES, kernel
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.ptx.isa import decode
from va100.ptx.isa.form import Family
from va100.ptx.types import PtxType, Space

MOVES = [
    t
    for f in executed_forms()
    if f.opcode == "mov"
    for t in spellings(f)
    if decode(t).type is not PtxType.B128 and decode(t).vector == 1
]
TO_GENERIC = {"shared": "%d26", "local": "%d28", "global": "%d21", "const": "%d27", "param": "%d25"}


def _run(text: str, engine: Engine, arena: Arena, source: np.ndarray, count: int) -> np.ndarray:
    loaded = load(text, arena, "move.ptx")
    try:
        place = loaded.buffer(source)
        target = loaded.buffer(np.zeros(count, np.uint64))
        loaded.run(engine, "move", (2,), (32,), pack(place, target))
        return loaded.read(target, np.uint64, count)
    finally:
        loaded.close()


PACKS = {
    PtxType.B16: [("b8", 2)],
    PtxType.B32: [("b16", 2), ("b8", 4)],
    PtxType.B64: [("b32", 2), ("b16", 4)],
}


@pytest.mark.parametrize("text", MOVES)
def test_mov(text: str, engine: Engine, arena: Arena) -> None:
    """Through a second register and back; for bit types also through vectors of parts."""
    kind = decode(text).type
    size = 4 if kind is PtxType.PRED else kind.size_bytes
    letter = {2: "%h", 4: "%r", 8: "%d"}[size]
    body = f"""
    mul.wide.u32 %d1, %r0, 8;
    add.s64 %d2, %d60, %d1;
    add.s64 %d3, %d61, %d1;
    ld.global.b{8 * size} {letter}10, [%d2];
"""
    if kind is PtxType.PRED:
        body += f"""
    setp.ne.u32 %p1, %r10, 0;
    {text} %p2, %p1;
    selp.u32 %r11, 1, 0, %p2;
"""
    else:
        body += f"    {text} {letter}11, {letter}10;\n"
        for part, count in PACKS.get(kind, []):
            if part == "b8":
                continue
            names = [f"{'%h' if part == 'b16' else '%r'}{i + 2}" for i in range(count)]
            turned = [*names[1:], names[0]]
            body += f"    {text} {{{', '.join(names)}}}, {letter}11;\n"
            body += f"    {text} {letter}11, {{{', '.join(turned)}}};\n"
    body += f"    st.global.b{8 * size} [%d3], {letter}11;\n    ret;\n"
    source = integers(8 * size, 64, np.random.default_rng(1))
    got = _run(kernel("move", "u64 u64", body), engine, arena, source, 64)
    want = source
    if kind is PtxType.PRED:
        want = (source != 0).astype(np.uint64)
    for part, count in PACKS.get(kind, []):
        if part != "b8":
            shift = np.uint64(8 * size // count)
            low = want >> shift
            high = want << np.uint64(8 * size) - shift
            want = (low | high) & np.uint64((1 << 8 * size) - 1) if size < 8 else low | high
    np.testing.assert_array_equal(got, want, err_msg=text)


WIDE = """
.func (.reg .b128 out) swapped(.reg .b128 x)
{
    .reg .b64 %d<4>;
    mov.b128 {%d0, %d1}, x;
    mov.b128 out, {%d1, %d0};
    ret;
}
.func (.param .b128 out) kept(.param .b128 x)
{
    .reg .b128 %q;
    ld.param.b128 %q, [x];
    st.param.b128 [out], %q;
    ret;
}
"""


@pytest.mark.parametrize("guard", ["", "@%p1 "])
def test_mov_b128(guard: str, engine: Engine, arena: Arena) -> None:
    """Packed, copied, unpacked, through calls of both kinds, and round a loop."""
    body = f"""
    .reg .b128 %q<8>;
    mul.wide.u32 %d1, %r0, 8;
    add.s64 %d2, %d60, %d1;
    add.s64 %d3, %d61, %d1;
    ld.global.u64 %d4, [%d2];
    not.b64 %d5, %d4;
    and.b32 %r4, %r3, 1;
    setp.eq.u32 %p1, %r4, 0;
    mov.b128 %q1, {{%d4, %d5}};
    {guard}mov.b128 %q2, %q1;
    mov.u32 %r5, 0;
AGAIN:
    {guard}call (%q3), swapped, (%q2);
    mov.b128 %q2, %q3;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p2, %r5, 3;
    @%p2 bra AGAIN;
    {{
    .param .b128 a;
    .param .b128 b;
    st.param.b128 [a], %q2;
    call (b), kept, (a);
    ld.param.b128 %q4, [b];
    }}
    mov.b128 {{%d6, %d7}}, %q4;
    shl.b64 %d7, %d7, 1;
    xor.b64 %d6, %d6, %d7;
    st.global.u64 [%d3], %d6;
    ret;
"""
    source = integers(64, 64, np.random.default_rng(7))
    text = kernel("move", "u64 u64", body, before=WIDE).replace(".version 8.0", ".version 8.3")
    got = _run(text, engine, arena, source, 64)
    want = ~source ^ (source << np.uint64(1))
    if guard:
        want = np.where(np.arange(64) % 2 == 0, want, np.uint64(0))
    np.testing.assert_array_equal(got, want)


def _address_text(body: str) -> str:
    return f"""
.version 8.0
.target sm_80
.address_size 64
.const .align 8 .u64 fixed[2] = {{7, 11}};
.visible .entry move(.param .u64 source, .param .u64 target)
{{
    .reg .pred %p<8>;
    .reg .b32 %r<16>;
    .reg .b64 %d<32>;
    .shared .align 8 .b8 box[512];
    .local .align 8 .b8 own[16];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r0, %r2, 32, %r1;
    mul.wide.u32 %d20, %r0, 8;
    ld.param.u64 %d21, [source];
    add.s64 %d21, %d21, %d20;
    ld.param.u64 %d22, [target];
    add.s64 %d22, %d22, %d20;
    ld.global.u64 %d23, [%d21];
    mov.u64 %d26, box;
    mul.wide.u32 %d24, %r1, 8;
    add.s64 %d26, %d26, %d24;
    mov.u64 %d27, fixed;
    mov.u64 %d28, own;
    mov.u64 %d25, source;
{body}
    ret;
}}
"""


SPACES = ["shared", "local", "global", "const"]


@pytest.mark.parametrize("space", SPACES)
def test_cvta_and_back(space: str, engine: Engine, arena: Arena) -> None:
    """Store in the space, load by the generic address, store by it, load in the space."""
    name = TO_GENERIC[space]
    store = "" if space == "const" else f"    st.{space}.u64 [{name}], %d23;\n"
    change = "" if space == "const" else "    st.u64 [%d1], %d3;\n"
    body = f"""
{store}
    cvta.{space}.u64 %d1, {name};
    ld.u64 %d2, [%d1];
    add.s64 %d3, %d2, 5;
{change}
    cvta.to.{space}.u64 %d4, %d1;
    ld.{space}.u64 %d5, [%d4];
    st.global.u64 [%d22], %d5;
"""
    source = integers(64, 64, np.random.default_rng(2))
    got = _run(_address_text(body), engine, arena, source, 64)
    want = np.full(64, 7, np.uint64) if space == "const" else source + np.uint64(5)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("asked", ["shared", "local", "global"])
def test_isspacep(space: str, asked: str, engine: Engine, arena: Arena) -> None:
    body = f"""
    cvta.{space}.u64 %d1, {TO_GENERIC[space]};
    isspacep.{asked} %p1, %d1;
    selp.u64 %d2, 1, 0, %p1;
    st.global.u64 [%d22], %d2;
"""
    if (space, asked) == ("const", "global"):
        pytest.skip("PTX leaves it open whether constant memory has generic addresses of its own")
    got = _run(_address_text(body), engine, arena, np.zeros(64, np.uint64), 64)
    assert got.tolist() == [int(space == asked)] * 64


def test_cvta_param(engine: Engine, arena: Arena) -> None:
    body = """
    cvta.param.u64 %d1, %d25;
    ld.u64 %d2, [%d1];
    ld.param.u64 %d3, [source];
    xor.b64 %d2, %d2, %d3;
    isspacep.param %p1, %d1;
    selp.u64 %d4, 1, 0, %p1;
    add.s64 %d2, %d2, %d4;
    st.global.u64 [%d22], %d2;
"""
    got = _run(_address_text(body), engine, arena, np.zeros(64, np.uint64), 64)
    assert got.tolist() == [1] * 64


def test_every_control_opcode_runs_in_some_kernel() -> None:
    """The kernels with known answers use every executed row that moves control."""
    used = set()
    for case in CASES:
        for line in case.text.splitlines():
            words = [w for w in line.replace(";", " ").split() if not w.startswith("@")]
            if words:
                used.add(words[0].partition(".")[0])
    faulting = {"trap", "brkpt", "nanosleep", "pmevent"}
    for form in executed_forms():
        if form.family is Family.CONTROL and form.opcode not in faulting:
            assert form.opcode in used, form.opcode


@pytest.mark.parametrize("line", ["nanosleep.u32 20;", "brkpt;", "pmevent 5;", "pmevent.mask 3;"])
def test_pauses_change_nothing(line: str, engine: Engine, arena: Arena) -> None:
    body = f"    {line}\n    st.global.u64 [%d22], %d23;\n"
    source = integers(64, 64, np.random.default_rng(3))
    np.testing.assert_array_equal(_run(_address_text(body), engine, arena, source, 64), source)


VECTOR_MOVES = [
    t
    for f in executed_forms()
    if f.opcode == "mov"
    for t in spellings(f)
    if decode(t).vector in range(2, 1 + 16 // decode(t).type.size_bytes)
]


@pytest.mark.parametrize("text", VECTOR_MOVES)
def test_moves_of_vectors(text: str, engine: Engine, arena: Arena) -> None:
    """Through a declared vector, and back with its elements turned by one in their places."""
    operation = decode(text)
    count, size = operation.vector, operation.type.size_bytes
    letter = {2: "%h", 4: "%r", 8: "%d"}[size]
    names = [f"{letter}{i + 2}" for i in range(count)]
    listed, turned = ", ".join(names), ", ".join([*names[1:], names[0]])
    loads = [f"ld.global.b{8 * size} {n}, [%d60+{size * i}];" for i, n in enumerate(names)]
    stores = [f"st.global.b{8 * size} [%d61+{size * i}], {n};" for i, n in enumerate(names)]
    body = "\n".join(
        [
            f".reg .v{count} .b{8 * size} %whole, %other;",
            *loads,
            f"{text} %whole, {{{listed}}};",
            f"{text} %other, %whole;",
            f"{text} {{{listed}}}, %other;",
            f"{text} {{{listed}}}, {{{turned}}};",
            *stores,
            "ret;",
        ]
    )
    source = np.arange(1, 1 + 64, dtype=np.uint64) * np.uint64(0x0123456789ABCDEF)
    got = _run(kernel("move", "u64 u64", body), engine, arena, source, 64)
    parts = np.dtype(f"u{size}")
    want = np.roll(source.view(parts)[:count], -1)
    np.testing.assert_array_equal(got.view(parts)[:count], want)


def test_every_move_form_is_here() -> None:
    spaces = {Space(s) for s in SPACES} | {Space.PARAM}
    for form in executed_forms():
        if form.family is not Family.MOVE:
            continue
        if form.opcode == "mov":
            assert any(decode(t).form == form for t in (*MOVES, *VECTOR_MOVES, "mov.b128"))
        else:
            assert form.opcode in ("cvta", "isspacep")
            assert any(decode(t).space in spaces for t in spellings(form))
