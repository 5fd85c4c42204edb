"""Forward progress, barriers, determinism: what the scheduler of CTAs and warps promises."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from tests.helpers.kernels import kernel
from va100.errors import Deadlock, TrapExecuted
from va100.gpu.arena import Arena
from va100.jit.engine import JitEngine


def _run(text, arguments, *, grid=(1,), block=(32,), workers=1, **launch):
    arena = Arena()
    loaded = load(text, arena)
    try:
        places = [loaded.buffer(a) if isinstance(a, np.ndarray) else a for a in arguments]
        outcome = loaded.run(
            JitEngine(workers=workers), "test", grid, block, pack(*places), **launch
        )
        buffers = [
            loaded.read(place, a.dtype, a.size)
            for place, a in zip(places, arguments, strict=True)
            if isinstance(a, np.ndarray)
        ]
    finally:
        loaded.close()
    return buffers, outcome


def _zeros(count: int) -> np.ndarray:
    return np.zeros(count, np.uint32)


@pytest.mark.parametrize("workers", [1, 2])
def test_lock_taken_by_every_lane(workers: int) -> None:
    # All lanes of a warp contend; the holder sits behind the loop of the others.
    body = """
    mov.u32 %r8, 0;
AGAIN:
    setp.ge.u32 %p2, %r8, 3;
    @%p2 bra DONE;
SPIN:
    atom.global.cas.b32 %r4, [%d60], 0, 1;
    setp.ne.u32 %p0, %r4, 0;
    @%p0 bra SPIN;
    ld.volatile.global.u32 %r5, [%d60+4];
    add.u32 %r5, %r5, 1;
    st.volatile.global.u32 [%d60+4], %r5;
    membar.gl;
    atom.global.exch.b32 %r6, [%d60], 0;
    add.u32 %r8, %r8, 1;
    bra AGAIN;
DONE:
    ret;
"""
    (got,), _ = _run(
        kernel("test", "u64", body), [_zeros(2)], grid=(4,), block=(64,), workers=workers
    )
    np.testing.assert_array_equal(got, [0, 3 * 4 * 64])


def _ping_pong(who: str) -> str:
    return f"""
    mov.u32 %r4, %tid.x;
    {who}
    setp.gt.u32 %p3, %r4, 1;
    @%p3 ret;
    mov.u32 %r5, 0;
LOOP:
    ld.volatile.global.u32 %r6, [%d60];
    and.b32 %r7, %r6, 1;
    setp.ne.u32 %p0, %r7, %r4;
    @%p0 bra LOOP;
    add.u32 %r6, %r6, 1;
    st.volatile.global.u32 [%d60], %r6;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 50;
    @%p1 bra LOOP;
    ret;
"""


def test_lanes_of_one_warp_take_turns() -> None:
    (got,), _ = _run(kernel("test", "u64", _ping_pong("")), [_zeros(1)])
    assert got[0] == 100


def test_warps_take_turns() -> None:
    who = "and.b32 %r8, %r4, 31; setp.ne.u32 %p2, %r8, 0; @%p2 ret; shr.u32 %r4, %r4, 5;"
    (got,), _ = _run(kernel("test", "u64", _ping_pong(who)), [_zeros(1)], block=(64,))
    assert got[0] == 100


GRID_BARRIER = """
    mov.u32 %r4, %nctaid.x;
    mov.u32 %r10, 0;
    mov.u32 %r11, %r4;
ROUND:
    bar.sync 0;
    setp.ne.u32 %p0, %r3, 0;
    @%p0 bra WAIT;
    atom.global.add.u32 %r5, [%d60], 1;
SPIN:
    ld.acquire.gpu.global.u32 %r6, [%d60];
    setp.lt.u32 %p1, %r6, %r11;
    @%p1 bra SPIN;
WAIT:
    bar.sync 0;
    add.u32 %r11, %r11, %r4;
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p2, %r10, 3;
    @%p2 bra ROUND;
    add.s64 %d1, %d61, %d0;
    ld.volatile.global.u32 %r6, [%d60];
    st.global.u32 [%d1], %r6;
    ret;
"""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("cooperative", [False, True])
def test_barrier_of_the_whole_grid(workers: int, cooperative: bool) -> None:
    (count, got), _ = _run(
        kernel("test", "u64 u64", GRID_BARRIER),
        [_zeros(1), _zeros(120 * 64)],
        grid=(120,),
        block=(64,),
        workers=workers,
        cooperative=cooperative,
    )
    assert count[0] == 360
    assert (got == 360).all()


def test_last_cta_sums_what_the_others_left() -> None:
    body = """
    mov.u32 %r4, %nctaid.x;
    add.u32 %r5, %r0, 1;
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1+256], %r5;
    membar.gl;
    atom.global.inc.u32 %r6, [%d60], %r4;
    sub.u32 %r7, %r4, 1;
    setp.ne.u32 %p0, %r6, %r7;
    @%p0 ret;
    mov.u32 %r8, 0;
    mov.u32 %r9, 0;
    add.s64 %d2, %d60, 256;
SUM:
    ld.volatile.global.u32 %r10, [%d2];
    add.u32 %r8, %r8, %r10;
    add.s64 %d2, %d2, 4;
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p1, %r9, %r4;
    @%p1 bra SUM;
    st.global.u32 [%d60+4], %r8;
    ret;
"""
    (got,), _ = _run(
        kernel("test", "u64", body), [_zeros(64 + 50)], grid=(50,), block=(1,), workers=2
    )
    assert got[1] == 50 * 51 // 2


def test_warps_that_exit_are_not_waited_for() -> None:
    body = """
    setp.ge.u32 %p0, %r3, 64;
    @%p0 ret;
    bar.sync 0;
    setp.ge.u32 %p1, %r3, 40;
    @%p1 ret;
    bar.sync 0;
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1], 1;
    ret;
"""
    (got,), _ = _run(kernel("test", "u64", body), [_zeros(128)], block=(128,))
    np.testing.assert_array_equal(got, [1] * 40 + [0] * 88)


def test_warp_that_waits_for_ever_is_found() -> None:
    body = """
SPIN:
    ld.volatile.global.u32 %r4, [%d60];
    setp.eq.u32 %p0, %r4, 0;
    @%p0 bra SPIN;
    ret;
"""
    with pytest.raises(Deadlock, match="only spins"):
        _run(kernel("test", "u64", body), [_zeros(1)], grid=(2,), workers=1)


FLOAT_SUM = """
    cvt.rn.f32.u32 %f0, %r0;
    add.f32 %f0, %f0, 0f3F800000;
    rcp.rn.f32 %f0, %f0;
    atom.global.add.f32 %f1, [%d60], %f0;
    add.s64 %d1, %d61, %d0;
    st.global.f32 [%d1], %f1;
    red.global.add.f32 [%d60+4], %f0;
    ret;
"""


def test_float_atomics_give_the_same_bits_with_any_number_of_workers() -> None:
    results = [
        _run(
            kernel("test", "u64 u64", FLOAT_SUM),
            [_zeros(2), _zeros(60 * 96)],
            grid=(60,),
            block=(96,),
            workers=workers,
        )[0]
        for workers in (1, 2, 4, 1)
    ]
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_integer_reductions_with_many_workers(workers: int) -> None:
    body = "red.global.add.u32 [%d60], %r0;\nred.global.max.s32 [%d60+4], %r0;\nret;"
    (got,), _ = _run(
        kernel("test", "u64", body), [_zeros(2)], grid=(200,), block=(64,), workers=workers
    )
    n = 200 * 64
    np.testing.assert_array_equal(got, [n * (n - 1) // 2 % 2**32, n - 1])


PRINTF = """
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.global .align 1 .b8 fmt[64] = {@};
"""


def _print(text: bytes, stores: str, *, grid=(1,), block=(1,), workers=1, guard="") -> bytes:
    before = PRINTF.replace("@", ", ".join(map(str, text + b"\0")))
    body = f"""
    {{
    .local .align 8 .b8 args[32];
    .reg .u64 %a;
    mov.u64 %a, args;
    {stores}
    cvta.local.u64 %a, %a;
    mov.u64 %d5, fmt;
    {{ .param .b64 f; .param .b64 p; .param .b32 r;
    st.param.b64 [f], %d5; st.param.b64 [p], %a;
    {guard} call (r), vprintf, (f, p);
    ld.param.b32 %r9, [r]; }}
    st.global.u32 [%d60], %r9;
    }}
    ret;
"""
    _, outcome = _run(
        kernel("test", "u64", body, before=before),
        [_zeros(1)],
        grid=grid,
        block=block,
        workers=workers,
    )
    return outcome.output


@pytest.mark.parametrize("workers", [1, 2])
def test_printf_comes_in_order_of_cta_warp_and_lane(workers: int) -> None:
    stores = "mov.u32 %r5, %ctaid.x; st.local.u32 [args], %r5; st.local.u32 [args+4], %r3;"
    got = _print(b"%d.%d ", stores, grid=(9,), block=(40,), workers=workers)
    assert got.decode().split() == [f"{c}.{t}" for c in range(9) for t in range(40)]


def test_printf_of_lanes_that_parted() -> None:
    stores = "setp.lt.u32 %p0, %r3, 5; setp.eq.and.u32 %p0, %r3, 3, %p0; st.local.u32 [args], %r3;"
    assert _print(b"<%d>", stores, block=(32,), guard="@%p0") == b"<3>"


@pytest.mark.parametrize(
    ("text", "stores", "want"),
    [
        (b"100%%\n", "", b"100%\n"),
        (b"%5d|%-5d|%05d", "".join(f"st.local.u32 [args+{4 * k}], 42;" for k in range(3)),
         b"   42|42   |00042"),
        (b"%x %X %o %u", "".join(f"st.local.u32 [args+{4 * k}], -1;" for k in range(4)),
         b"ffffffff FFFFFFFF 37777777777 4294967295"),
        (b"%lld %llx", "st.local.u64 [args], -5; st.local.u64 [args+8], 0x123456789abcdef0;",
         b"-5 123456789abcdef0"),
        (b"%d %f", "st.local.u32 [args], 7; st.local.f64 [args+8], 0d3FF8000000000000;",
         b"7 1.500000"),
        (b"%.3e %g %c", "st.local.f64 [args], 0d40C81CD6E631F8A1; "
         "st.local.f64 [args+8], 0d3FB999999999999A; st.local.u32 [args+16], 65;",
         b"1.235e+04 0.1 A"),
        (b"%*d", "st.local.u32 [args], 6; st.local.u32 [args+4], 9;", b"     9"),
        (b"%s", "mov.u64 %d6, fmt; st.local.u64 [args], %d6;", b"%s"),
        (b"%p", "st.local.u64 [args], 0x200000200000;", b"0x200000200000"),
        (b"tail %", "", b"tail %"),
    ],
)  # fmt: skip
def test_printf_formats(text: bytes, stores: str, want: bytes) -> None:
    assert _print(text, stores) == want


def test_waiting_for_long_work_elsewhere_is_no_deadlock() -> None:
    """One CTA only spins while the other computes for seconds without a sign of life."""
    body = """
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra WAIT;
    mov.u32 %r10, 1;
    mov.u32 %r11, 0;
WORK:
    shl.b32 %r12, %r10, 13;
    xor.b32 %r10, %r10, %r12;
    shr.u32 %r12, %r10, 17;
    xor.b32 %r10, %r10, %r12;
    add.u32 %r11, %r11, 1;
    setp.lt.u32 %p2, %r11, 1200000000;
    @%p2 bra WORK;
    st.global.u32 [%d60+4], %r10;
    membar.gl;
    mov.u32 %r13, 1;
    st.volatile.global.u32 [%d60], %r13;
    ret;
WAIT:
    ld.volatile.global.u32 %r4, [%d60];
    setp.eq.u32 %p0, %r4, 0;
    @%p0 bra WAIT;
    ret;
"""
    (got,), _ = _run(kernel("test", "u64", body), [_zeros(2)], grid=(2,), workers=2)
    assert got[0] == 1
    assert got[1]


SUM = """
    cvt.rn.f32.u32 %f1, %r0;
    add.f32 %f1, %f1, 0f3F800000;
    rcp.rn.f32 %f1, %f1;
    red.global.add.f32 [%d60], %f1;
    atom.global.add.u32 %r5, [%d60+4], 1;
    mul.wide.u32 %d5, %r0, 4;
    add.s64 %d5, %d60, %d5;
    st.global.u32 [%d5+8], %r5;
    ret;
"""


@pytest.mark.parametrize("barrier", ["", "bar.sync 0;"])
def test_orders_are_shuffled_on_request_and_repeat(barrier: str) -> None:
    grid, block = 12, 256
    text = kernel("test", "u64", barrier + SUM)

    def run(shuffle: int, workers: int) -> tuple[int, tuple[int, ...]]:
        arena = Arena()
        loaded = load(text, arena)
        try:
            place = loaded.buffer(_zeros(2 + grid * block))
            engine = JitEngine(workers=workers, shuffle=shuffle)
            loaded.run(engine, "test", (grid,), (block,), pack(place))
            got = loaded.read(place, np.uint32, 2 + grid * block)
        finally:
            loaded.close()
        assert got[1] == grid * block
        np.testing.assert_array_equal(np.sort(got[2:]), np.arange(grid * block))
        return int(got[0]), tuple(got[2:].tolist())

    plain = run(0, 1)
    assert run(0, 2) == plain
    if not barrier:
        assert plain[1] == tuple(range(grid * block))
    others = {seed: run(seed, 1) for seed in range(1, 9)}
    assert all(run(seed, 2) == found for seed, found in others.items())
    assert len({found[1] for found in others.values()}) == len(others)
    assert len({found[0] for found in others.values()} | {plain[0]}) > 1
    # Whole warps still act together, and each CTA's warps stay in their CTA.
    warps = np.array(others[1][1]).reshape(-1, 32)
    np.testing.assert_array_equal(warps - warps[:, :1], np.arange(32) + 0 * warps[:, :1])


NEIGHBOURS = """
    mov.u32 %r4, %ctaid.y;
    mov.u32 %r5, %ctaid.z;
    call (%r6), where, ();
    mad.lo.u32 %r7, %r5, 3, %r4;
    mad.lo.u32 %r7, %r7, 250, %r6;
    mov.u32 %r8, %tid.x;
    mad.lo.u32 %r9, %r7, 64, %r8;
    mul.wide.u32 %d5, %r9, 8;
    add.s64 %d5, %d60, %d5;
    mov.u32 %r10, %ctaid.x;
    mov.u32 %r11, %smid;
    shl.b32 %r12, %r10, 16;
    or.b32 %r12, %r12, %r11;
    st.global.v2.u32 [%d5], {%r12, %r7};
"""
WHERE = """
.func (.reg .b32 %x) where()
{
    mov.u32 %x, %ctaid.x;
    ret;
}
"""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("barrier", ["", "bar.sync 0;"])
def test_ctas_that_one_call_runs_have_places_of_their_own(barrier: str, workers: int) -> None:
    # Rows longer than the chip has SMs, and several of them.
    grid = (250, 3, 2)
    text = kernel("test", "u64", barrier + NEIGHBOURS + "ret;", before=WHERE)
    (got,), outcome = _run(text, [_zeros(1500 * 64 * 2)], grid=grid, block=(64,), workers=workers)
    cta = np.arange(1500).repeat(64)
    words = got.reshape(-1, 2)
    np.testing.assert_array_equal(words[:, 1], cta)
    np.testing.assert_array_equal(words[:, 0] >> 16, cta % 250)
    np.testing.assert_array_equal(words[:, 0] & 0xFFFF, cta % 108)
    assert outcome.counters.warp_count == 3000
    assert outcome.counters.opcode_instructions["st.global.v2.u32"] == 3000


def test_a_fault_within_a_row_names_its_cta() -> None:
    body = """
    mov.u32 %r4, %ctaid.x;
    setp.eq.u32 %p1, %r4, 777;
    @%p1 trap;
    ret;
"""
    with pytest.raises(TrapExecuted) as caught:
        _run(kernel("test", "u64", body), [_zeros(1)], grid=(1000, 2), block=(96,))
    assert caught.value.cta == (777, 0, 0)
