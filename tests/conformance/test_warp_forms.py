"""Exchanges, votes and barriers of every form, under several member masks, by Python integers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.builders import executed_forms, integers, spellings
from tests.helpers.engines import load, pack
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.ptx.isa import decode
from va100.ptx.isa.form import Family
from va100.ptx.types import PtxType

LANES = 32
MASKS = (0xFFFFFFFF, 0x0000FFFF, 0xAAAAAAAA, 0x80000001, 0x00000010, 0x7FFF0F3C)
ROUNDS = 8
"""Operand sets each form is tried with, one CTA each."""
FORMS = [t for f in executed_forms() if f.family is Family.WARP for t in spellings(f)]


def _text(operation_text: str, mask: int) -> str:
    """Lanes of the mask execute the instruction; the others go round it."""
    operation = decode(operation_text)
    wide = operation.type is PtxType.B64
    a = "%d0" if wide else "%r0"
    both = "%r4|%p4" if operation.combine == "all" else "%r4"
    cast = "%r4" if operation.combine == "ballot" else "%p4"
    named = f", {mask:#x}" if "sync" in operation.modifiers else ""
    call = {
        "shfl": f"{operation_text} %r4|%p4, {a}, %r1, %r2{named};",
        "vote": f"{operation_text} {cast}, %p0{named};",
        "match": f"{operation_text} {both}, {a}, {mask:#x};",
        "redux": f"{operation_text} %r4, {a}, {mask:#x};",
        "activemask": f"{operation_text} %r4;",
    }[operation.opcode]
    return f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry meet(.param .u64 source, .param .u64 target)
{{
    .reg .pred %p<8>;
    .reg .b32 %r<16>;
    .reg .b64 %d<16>;
    mov.u32 %r10, %tid.x;
    mov.u32 %r11, %ctaid.x;
    mad.lo.u32 %r12, %r11, {LANES}, %r10;
    mul.wide.u32 %d10, %r12, 32;
    ld.param.u64 %d11, [source];
    add.s64 %d11, %d11, %d10;
    mul.wide.u32 %d12, %r12, 8;
    ld.param.u64 %d13, [target];
    add.s64 %d13, %d13, %d12;
    ld.global.u64 %d0, [%d11];
    cvt.u32.u64 %r0, %d0;
    ld.global.u32 %r1, [%d11+8];
    ld.global.u32 %r2, [%d11+16];
    ld.global.u32 %r3, [%d11+24];
    setp.ne.u32 %p0, %r3, 0;
    mov.u32 %r4, 0xdead;
    setp.ne.u32 %p4, %r10, %r10;
    shr.u32 %r5, {mask:#x}, %r10;
    and.b32 %r5, %r5, 1;
    setp.eq.u32 %p5, %r5, 0;
    @%p5 bra OUT;
    {call}
    selp.u32 %r6, 1, 0, %p4;
    st.global.v2.u32 [%d13], {{%r4, %r6}};
OUT:
    ret;
}}
"""


def _operands(operation_text: str, rng: np.random.Generator) -> np.ndarray:
    """(rounds, lanes, 4): value, b, c, flag."""
    operation = decode(operation_text)
    table = np.zeros((ROUNDS, LANES, 4), np.uint64)
    for round_index in range(ROUNDS):
        values = integers(operation.type.bits if operation.opcode != "vote" else 32, LANES, rng)
        if operation.opcode == "match":
            values = rng.choice(values[: 1 + round_index % 4], LANES)
        table[round_index, :, 0] = values
        table[round_index, :, 1] = rng.integers(0, 40, LANES) if round_index % 2 else round_index
        segment = (0, 0x18, 0x10, 0x1F)[round_index % 4]
        clamp = 0 if operation.combine == "up" else (31, 31, 7, 20)[round_index % 4]
        table[round_index, :, 2] = segment << 8 | clamp
        flags = rng.integers(0, 2, LANES)
        table[round_index, :, 3] = (0, 1)[round_index] if round_index < 2 else flags
    return table


def _shfl(
    mode: str, members: list[int], rows: list[list[int]], lane: int
) -> tuple[int | None, int]:
    _, b, c, _ = rows[lane]
    segment, clamp, offset = c >> 8 & 31, c & 31, b & 31
    low = lane & segment
    high = low | clamp & ~segment & 31
    source, inside = {
        "up": (lane - offset, lane - offset >= high),
        "down": (lane + offset, lane + offset <= high),
        "bfly": (lane ^ offset, lane ^ offset <= high),
        "idx": (low | offset & ~segment & 31, (low | offset & ~segment & 31) <= high),
    }[mode]
    source = source if inside else lane
    # A value taken from a lane that takes no part is undefined.
    value = rows[source][0] & 0xFFFFFFFF if source in members else None
    return value, int(inside)


def _wanted(
    operation_text: str, members: list[int], rows: list[list[int]], lane: int
) -> tuple[int | None, int]:
    operation = decode(operation_text)
    ballot = sum(1 << m for m in members if rows[m][3])
    everyone = sum(1 << m for m in members)
    if operation.opcode == "shfl":
        return _shfl(operation.combine, members, rows, lane)
    if operation.opcode == "vote":
        if operation.combine == "ballot":
            return ballot, 0
        true = {"all": ballot == everyone, "any": ballot != 0, "uni": ballot in (0, everyone)}
        return 0xDEAD, int(true[operation.combine])
    if operation.opcode == "activemask":
        return everyone, 0
    values = {m: rows[m][0] % (1 << operation.type.bits) for m in members}
    if operation.opcode == "match":
        alike = sum(1 << m for m in members if values[m] == values[lane])
        if operation.combine == "any":
            return alike, 0
        return (everyone, 1) if alike == everyone else (0, 0)
    return _reduced(operation_text, list(values.values())), 0


def _reduced(operation_text: str, values: list[int]) -> int:
    operation = decode(operation_text)
    if operation.type.is_signed:
        values = [v - (1 << 32) if v >> 31 else v for v in values]
    result = values[0]
    for value in values[1:]:
        result = {
            "add": result + value, "and": result & value, "or": result | value,
            "xor": result ^ value, "min": min(result, value), "max": max(result, value),
        }[operation.combine]  # fmt: skip
    return result % (1 << 32)


@pytest.mark.parametrize("mask", MASKS, ids=hex)
@pytest.mark.parametrize("text", FORMS)
def test_exchange(text: str, mask: int, engine: Engine, arena: Arena) -> None:
    table = _operands(text, np.random.default_rng(mask))
    loaded = load(_text(text, mask), arena, "meet.ptx")
    try:
        source = loaded.buffer(table)
        target = loaded.buffer(np.zeros(ROUNDS * LANES * 2, np.uint32))
        loaded.run(engine, "meet", (ROUNDS,), (LANES,), pack(source, target))
        output = loaded.read(target, np.uint32, ROUNDS * LANES * 2).reshape(ROUNDS, LANES, 2)
    finally:
        loaded.close()
    members = [lane for lane in range(LANES) if mask >> lane & 1]
    for round_index in range(ROUNDS):
        rows = table[round_index].tolist()
        for lane in members:
            value, flag = _wanted(text, members, rows, lane)
            got = output[round_index, lane].tolist()
            assert got[1] == flag, (text, hex(mask), round_index, lane)
            if value is not None:
                assert got[0] == value, (text, hex(mask), round_index, lane)


@pytest.mark.parametrize("mask", MASKS, ids=hex)
@pytest.mark.parametrize("text", [t for t in FORMS if t.startswith("vote.") and ".sync" not in t])
def test_votes_of_those_whose_guard_holds(
    text: str, mask: int, engine: Engine, arena: Arena
) -> None:
    """Under a guard in place of a branch: lanes without it neither vote nor count."""
    table = _operands(text, np.random.default_rng(mask))
    body = _text(text, mask).replace("@%p5 bra OUT;", "").replace("vote.", "@!%p5 vote.", 1)
    loaded = load(body, arena, "meet.ptx")
    try:
        source = loaded.buffer(table)
        target = loaded.buffer(np.zeros(ROUNDS * LANES * 2, np.uint32))
        loaded.run(engine, "meet", (ROUNDS,), (LANES,), pack(source, target))
        output = loaded.read(target, np.uint32, ROUNDS * LANES * 2).reshape(ROUNDS, LANES, 2)
    finally:
        loaded.close()
    members = [lane for lane in range(LANES) if mask >> lane & 1]
    for round_index in range(ROUNDS):
        rows = table[round_index].tolist()
        for lane in range(LANES):
            votes = lane in members
            wanted = _wanted(text, members, rows, lane) if votes else (0xDEAD, 0)
            assert tuple(output[round_index, lane].tolist()) == wanted


# ---------------------------------------------------------------- barriers

BARRIERS = [
    t
    for f in executed_forms()
    if f.family is Family.BARRIER and f.opcode in ("bar", "barrier")
    for t in spellings(f)
]
FENCES = [
    t
    for f in executed_forms()
    if f.family is Family.BARRIER and f.opcode in ("membar", "fence")
    for t in spellings(f)
]


def _barrier_text(text: str, *, counted: bool) -> str:
    """Every warp stores, meets the others, and reads what the next warp stored."""
    operation = decode(text)
    count = ", 96" if counted else ""
    after = ""
    if "warp" in operation.modifiers:
        line = f"{text} -1;"
    elif "red" in operation.modifiers:
        result = "%r8" if operation.combine == "popc" else "%p2"
        line = f"{text} {result}, 3{count}, %p1;"
        after = "" if operation.combine == "popc" else "selp.u32 %r8, 1, 0, %p2;"
    elif "arrive" in operation.modifiers:
        # The first warp only arrives; the others wait for it too.
        line = f"@%p3 {text} 3, 96;\n    @!%p3 bar.sync 3, 96;"
    else:
        line = f"{text} 3{count};"
    return f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry gather(.param .u64 target)
{{
    .reg .pred %p<8>;
    .reg .b32 %r<16>;
    .reg .b64 %d<8>;
    .shared .align 4 .b8 box[384];
    mov.u32 %r0, %tid.x;
    shl.b32 %r1, %r0, 2;
    mov.u32 %r2, box;
    add.u32 %r3, %r2, %r1;
    mul.lo.u32 %r4, %r0, 3;
    mov.u32 %r8, 0;
    st.shared.u32 [%r3], %r4;
    setp.lt.u32 %p1, %r0, 50;
    setp.lt.u32 %p3, %r0, 32;
    {line}
    {after}
    xor.b32 %r5, %r3, 4;
    ld.shared.u32 %r6, [%r5];
    @%p3 ld.shared.u32 %r6, [%r3];
    add.u32 %r6, %r6, %r8;
    mul.wide.u32 %d0, %r0, 4;
    ld.param.u64 %d1, [target];
    add.s64 %d1, %d1, %d0;
    st.global.u32 [%d1], %r6;
    ret;
}}
"""


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("text", BARRIERS)
def test_barrier(text: str, counted: bool, engine: Engine, arena: Arena) -> None:
    loaded = load(_barrier_text(text, counted=counted), arena, "gather.ptx")
    try:
        target = loaded.buffer(np.zeros(96, np.uint32))
        loaded.run(engine, "gather", (1,), (96,), pack(target))
        got = loaded.read(target, np.uint32, 96)
    finally:
        loaded.close()
    thread = np.arange(96)
    extra = {"popc": 50, "and": 0, "or": 1}.get(decode(text).combine, 0)
    want = np.where(thread < 32, thread, thread ^ 1) * 3 + extra
    np.testing.assert_array_equal(got, want.astype(np.uint32), err_msg=text)


@pytest.mark.parametrize("text", FENCES)
def test_fence(text: str, engine: Engine, arena: Arena) -> None:
    """A fence between a store and a load of the same thread changes nothing."""
    body = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry order(.param .u64 target)
{{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %d0, %r0, 4;
    ld.param.u64 %d1, [target];
    add.s64 %d1, %d1, %d0;
    st.global.u32 [%d1], %r0;
    {text};
    ld.global.u32 %r1, [%d1];
    add.u32 %r1, %r1, 1;
    st.global.u32 [%d1], %r1;
    ret;
}}
"""
    loaded = load(body, arena, "order.ptx")
    try:
        target = loaded.buffer(np.zeros(32, np.uint32))
        loaded.run(engine, "order", (1,), (32,), pack(target))
        assert loaded.read(target, np.uint32, 32).tolist() == list(range(1, 33))
    finally:
        loaded.close()
