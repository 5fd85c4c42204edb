"""Memory on the stack, and virtual time: every form, with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.builders import executed_forms
from tests.helpers.engines import load, pack
from tests.helpers.kernels import kernel
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.ptx.isa.form import Family
from va100.ptx.isa.special import SPECIAL_REGISTERS

CALLEE = """
.func (.reg .b32 out) spoil(.reg .b32 x)
{
    .reg .b32 %r<4>;
    .local .align 16 .b8 own[64];
    st.local.v4.u32 [own], {x, x, x, x};
    st.local.v4.u32 [own+48], {x, x, x, x};
    ld.local.u32 %r1, [own+56];
    add.u32 out, %r1, 1;
    ret;
}
"""


def _run(
    engine: Engine, arena: Arena, body: str, count: int, *, before: str = "", threads: int = 32
) -> np.ndarray:
    text = kernel("here", "u64", body, before=before)
    loaded = load(text, arena, "here.ptx")
    try:
        target = loaded.buffer(np.zeros(count * threads, np.uint64))
        loaded.run(engine, "here", (1,), (threads,), pack(target))
        return loaded.read(target, np.uint64, count * threads).reshape(threads, count)
    finally:
        loaded.close()


PLACE = """
    mul.wide.u32 %d1, %r3, {bytes};
    add.s64 %d2, %d60, %d1;
"""


@pytest.mark.parametrize("kind", ["u32", "u64"])
@pytest.mark.parametrize("alignment", ["", ", 4", ", 64"])
def test_alloca(kind: str, alignment: str, engine: Engine, arena: Arena) -> None:
    """Each lane takes another number of bytes; calls and allocations leave them alone."""
    letter = "%r" if kind == "u32" else "%d"
    body = f"""
    .local .align 4 .b8 fixed[12];
    and.b32 %r4, %r3, 7;
    shl.b32 %r5, %r4, 3;
    add.u32 %r5, %r5, 8;
    cvt.u64.u32 %d5, %r5;
    mov.u32 %r20, 5;
    st.local.u32 [fixed+8], %r20;
    stacksave.{kind} {letter}10;
    alloca.{kind} {letter}11, {letter}5{alignment};
    alloca.{kind} {letter}12, {letter}5{alignment};
    st.local.u64 [{letter}11], %d5;
    mov.u64 %d6, 99;
    st.local.u64 [{letter}12], %d6;
    setp.lt.u32 %p1, %r3, 20;
    @%p1 call (%r7), spoil, (%r3);
    @%p1 bra FIRST;
    call (%r7), spoil, (1000);
FIRST:
    ld.local.u64 %d7, [{letter}11];
    ld.local.u64 %d8, [{letter}12];
    stackrestore.{kind} {letter}10;
    alloca.{kind} {letter}13, 8{alignment};
    sub.{kind} {letter}14, {letter}13, {letter}11;
    sub.{kind} {letter}15, {letter}12, {letter}11;
    cvt.u64.{kind} %d16, {letter}14;
    cvt.u64.{kind} %d17, {letter}15;
    ld.local.u32 %r21, [fixed+8];
    add.u32 %r7, %r7, %r21;
    cvt.u64.u32 %d18, %r7;
{PLACE.format(bytes=40)}
    st.global.u64 [%d2], %d7;
    st.global.u64 [%d2+8], %d8;
    st.global.u64 [%d2+16], %d16;
    st.global.u64 [%d2+24], %d17;
    st.global.u64 [%d2+32], %d18;
    ret;
"""
    got = _run(engine, arena, body, 5, before=CALLEE)
    lane = np.arange(32)
    sizes = lane % 8 * 8 + 8
    unit = 64 if "64" in alignment else 8
    np.testing.assert_array_equal(got[:, 0], sizes)
    assert (got[:, 1] == 99).all()
    assert not got[:, 2].any()
    np.testing.assert_array_equal(got[:, 3], -(-sizes // unit) * unit)
    np.testing.assert_array_equal(got[:, 4], np.where(lane < 20, lane, 1000) + 6)


def test_alloca_in_a_function_ends_with_it(engine: Engine, arena: Arena) -> None:
    """Called in a loop it takes the same place again, and lanes that part have their own."""
    before = """
.func (.reg .b64 out) taken(.reg .b32 x)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    .reg .pred %p<2>;
    and.b32 %r1, x, 1;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra EVEN;
    alloca.u64 %d1, 256;
    st.local.u32 [%d1+252], x;
    ld.local.u32 %r2, [%d1+252];
    bra DONE;
EVEN:
    alloca.u64 %d1, 16;
    st.local.u32 [%d1+12], x;
    ld.local.u32 %r2, [%d1+12];
DONE:
    cvt.u64.u32 %d2, %r2;
    shl.b64 %d1, %d1, 32;
    add.s64 out, %d1, %d2;
    ret;
}
"""
    body = f"""
    mov.u64 %d8, 0;
    mov.u32 %r4, 0;
AGAIN:
    call (%d7), taken, (%r3);
    xor.b64 %d8, %d8, %d7;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, 400;
    @%p1 bra AGAIN;
{PLACE.format(bytes=16)}
    st.global.u64 [%d2], %d8;
    and.b64 %d7, %d7, 0xffffffff;
    st.global.u64 [%d2+8], %d7;
    ret;
"""
    got = _run(engine, arena, body, 2, before=before)
    assert not got[:, 0].any()
    np.testing.assert_array_equal(got[:, 1], np.arange(32))


def test_every_stack_form_is_here() -> None:
    names = {f.opcode for f in executed_forms() if f.family is Family.STACK}
    assert names == {"alloca", "stacksave", "stackrestore"}


# ---------------------------------------------------------------- time

TIMED = f"""
    mov.u64 %d10, %clock64;
    mov.u64 %d11, %clock64;
    mov.u32 %r4, 0;
    mov.u32 %r10, %clock;
LOOP:
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, 100;
    @%p1 bra LOOP;
    mov.u32 %r11, %clock;
    mov.u64 %d12, %globaltimer;
    nanosleep.u32 20000;
    mov.u64 %d13, %globaltimer;
    sub.s64 %d14, %d11, %d10;
    sub.u32 %r12, %r11, %r10;
    cvt.u64.u32 %d15, %r12;
    sub.s64 %d16, %d13, %d12;
    mov.u32 %r13, %clock_hi;
    mov.u32 %r14, %globaltimer_hi;
    shr.u64 %d17, %d13, 32;
    cvt.u32.u64 %r15, %d17;
    sub.u32 %r14, %r14, %r15;
    or.b32 %r13, %r13, %r14;
    cvt.u64.u32 %d18, %r13;
{PLACE.format(bytes=40)}
    st.global.u64 [%d2], %d14;
    st.global.u64 [%d2+8], %d15;
    st.global.u64 [%d2+16], %d16;
    st.global.u64 [%d2+24], %d18;
    st.global.u64 [%d2+32], %d12;
    ret;
"""


def test_time_passes_with_work(engine: Engine, arena: Arena) -> None:
    """Four cycles an instruction at 1410 MHz; sleeping takes the time it names."""
    first = _run(engine, arena, TIMED, 5, threads=64)
    assert (first[:, 0] == 4).all()
    assert (first[:, 1] == 4 * 301).all()
    assert ((first[:, 2] >= 20000) & (first[:, 2] < 20010)).all()
    assert not first[:, 3].any()
    later = _run(engine, arena, TIMED, 5, threads=64)
    assert later[:, 4].min() > first[:, 4].max() + 20000


def test_time_where_lanes_part(reference: Engine, jit: Engine, arena: Arena) -> None:
    """A warp's instructions count however many lanes execute them."""
    body = f"""
    mov.u64 %d10, %clock64;
    mov.u32 %r4, 0;
LOOP:
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, %r3;
    @%p1 bra LOOP;
    bar.warp.sync -1;
    mov.u64 %d11, %clock64;
    sub.s64 %d12, %d11, %d10;
{PLACE.format(bytes=8)}
    st.global.u64 [%d2], %d12;
    ret;
"""
    ours, theirs = (_run(e, arena, body, 1) for e in (reference, jit))
    assert ours.min() >= 4 * 3 * 31
    assert np.abs(ours.astype(np.int64) - theirs.astype(np.int64)).max() <= 4 * 40


def test_every_special_register_is_read(engine: Engine, arena: Arena) -> None:
    lines = []
    for index, (name, kind) in enumerate(sorted(SPECIAL_REGISTERS.items())):
        register = "%d5" if kind.bits == 64 else "%r5"
        lines.append(f"    mov.b{kind.bits} {register}, {name};")
        lines.append(f"    st.global.b{kind.bits} [%d2+{8 * index}], {register};")
    count = len(SPECIAL_REGISTERS)
    body = PLACE.format(bytes=8 * count) + "\n".join(lines) + "\n    ret;\n"
    got = _run(engine, arena, body, count)
    values = dict(zip(sorted(SPECIAL_REGISTERS), got[7].tolist(), strict=True))
    assert values["%laneid"] == values["%tid.x"] == 7
    assert values["%ntid.x"] == 32
    assert values["%ntid.w"] == values["%nctaid.w"] == values["%nctaid.x"] == 1
    assert values["%lanemask_le"] == 0xFF
    end = values["%reserved_smem_offset_end"]
    assert end == values["%reserved_smem_offset_cap"]
    begins = ("begin", "0", "1")
    assert {values[f"%reserved_smem_offset_{name}"] for name in begins} == {end - 1024}
    assert values["%total_smem_size"] == end - 1024
    assert values["%pm3"] == values["%envreg7"] == values["%tid.w"] == 0
