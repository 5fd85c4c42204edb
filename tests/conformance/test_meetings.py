"""Lanes of a warp that meet at like instructions in two places of the text."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from tests.helpers.kernels import kernel
from va100.errors import Deadlock
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.jit.twins import twin_groups
from va100.ptx.cfg import build_flow
from va100.ptx.parser import parse

LANES = 32


def _text(low: str, high: str, *, after: str = "") -> str:
    """Lanes below 12 take one arm, the others the other; %r9 and %p3 are what they give."""
    return kernel(
        "arms",
        "u64",
        f"""
    mov.u32 %r4, %laneid;
    mul.lo.u32 %r5, %r4, 7;
    and.b32 %r6, %r4, 3;
    setp.eq.u32 %p2, %r6, 1;
    setp.ne.u32 %p3, %r4, %r4;
    mov.u32 %r9, 0;
    setp.lt.u32 %p0, %r4, 12;
    @%p0 bra LOW;
    add.u32 %r7, %r5, 1;
    {high}
    add.u32 %r9, %r9, 100000;
    bra DONE;
LOW:
    add.u32 %r8, %r5, 2;
    {low}
DONE:
    {after}
    selp.u32 %r10, 1, 0, %p3;
    mul.wide.u32 %d1, %r3, 8;
    add.s64 %d2, %d60, %d1;
    st.global.v2.u32 [%d2], {{%r9, %r10}};
    ret;
""",
    )


def _run(engine: Engine, arena: Arena, text: str, threads: int = LANES) -> np.ndarray:
    loaded = load(text, arena, "arms.ptx")
    try:
        target = loaded.buffer(np.zeros(threads * 2, np.uint32))
        loaded.run(engine, "arms", (1,), (threads,), pack(target))
        return loaded.read(target, np.uint32, threads * 2).reshape(threads, 2)
    finally:
        loaded.close()


LANE = np.arange(LANES)
OWN = np.where(LANE < 12, 7 * LANE + 2, 7 * LANE + 1)
ARM = np.where(LANE < 12, 0, 100000)
YES = (LANE & 3) == 1
BALLOT = int(sum(1 << int(i) for i in np.flatnonzero(YES)))

CASES = [
    ("shfl.sync.bfly.b32 %r9|%p3, {}, 13, 31, -1;", OWN[LANE ^ 13], np.ones(LANES)),
    ("shfl.sync.idx.b32 %r9, {}, 14, 31, -1;", np.full(LANES, OWN[14]), np.zeros(LANES)),
    ("vote.sync.ballot.b32 %r9, %p2, -1;", np.full(LANES, BALLOT), np.zeros(LANES)),
    ("vote.sync.any.pred %p3, %p2, -1;", np.zeros(LANES), np.ones(LANES)),
    ("vote.sync.all.pred %p3, %p2, -1;", np.zeros(LANES), np.zeros(LANES)),
    ("vote.sync.uni.pred %p3, %p2, -1;", np.zeros(LANES), np.zeros(LANES)),
    (
        "match.any.sync.b32 %r9, %r6, -1;",
        np.array([sum(1 << j for j in range(32) if (j ^ i) & 3 == 0) for i in range(32)]),
        np.zeros(LANES),
    ),
    ("match.all.sync.b32 %r9|%p3, 4, -1;", np.full(LANES, 0xFFFFFFFF), np.ones(LANES)),
    ("redux.sync.add.s32 %r9, {}, -1;", np.full(LANES, OWN.sum()), np.zeros(LANES)),
    ("redux.sync.max.u32 %r9, {}, -1;", np.full(LANES, OWN.max()), np.zeros(LANES)),
    ("bar.warp.sync -1;", np.zeros(LANES), np.zeros(LANES)),
]


@pytest.mark.parametrize(("line", "value", "flag"), CASES, ids=lambda v: str(v)[:18])
def test_two_arms(
    line: str, value: np.ndarray, flag: np.ndarray, engine: Engine, arena: Arena
) -> None:
    got = _run(engine, arena, _text(line.format("%r8"), line.format("%r7")))
    np.testing.assert_array_equal(got[:, 0], (value + ARM).astype(np.uint64) & 0xFFFFFFFF)
    np.testing.assert_array_equal(got[:, 1], flag)


@pytest.mark.parametrize("count", ["", ", 64"])
@pytest.mark.parametrize(
    ("line", "value", "flag"),
    [
        ("barrier.red.popc.u32 %r9, 1{}, %p2;", 16, 0),
        ("barrier.red.and.pred %p3, 1{}, %p2;", 0, 0),
        ("barrier.red.or.pred %p3, 1{}, %p2;", 0, 1),
    ],
    ids=["popc", "and", "or"],
)
def test_a_reducing_barrier_in_two_arms(
    line: str, value: int, flag: int, count: str, engine: Engine, arena: Arena
) -> None:
    """One lane in four of both warps votes, on both sides of the branch."""
    got = _run(engine, arena, _text(line.format(count), line.format(count)), 64)
    np.testing.assert_array_equal(got[:, 0], value + np.tile(ARM, 2))
    np.testing.assert_array_equal(got[:, 1], np.full(64, flag))


@pytest.mark.parametrize("count", ["", ", 64"])
def test_a_barrier_in_two_arms(count: str, engine: Engine, arena: Arena) -> None:
    """The warp comes once, whatever its lanes; the other warp waits for it."""
    low = f"""
    .shared .align 4 .b8 box[256];
    shl.b32 %r11, %r3, 2;
    mov.u32 %r12, box;
    add.u32 %r12, %r12, %r11;
    st.shared.u32 [%r12], %r3;
    barrier.sync 1{count};
    xor.b32 %r13, %r12, 128;
    ld.shared.u32 %r9, [%r13];
"""
    high = low.replace(".shared .align 4 .b8 box[256];", "")
    got = _run(
        engine,
        arena,
        _text(low.replace(".shared .align 4 .b8 box[256];", ""), high).replace(
            "    mul.lo.u32 %r5", "    .shared .align 4 .b8 box[256];\n    mul.lo.u32 %r5", 1
        ),
        64,
    )
    thread = np.arange(64)
    np.testing.assert_array_equal(got[:, 0], (thread ^ 32) + np.tile(ARM, 2))


COUNTS = [
    ("barrier.sync 1, {};", "barrier.sync {};", 0),
    ("bar.sync 1, {};", "bar.sync {};", 0),
    ("barrier.red.popc.u32 %r9, 1, {}, %p2;", "barrier.red.popc.u32 %r9, {}, %p2;", 16),
]


@pytest.mark.parametrize(("counted", "plain", "votes"), COUNTS)
@pytest.mark.parametrize("first", ["counted", "plain"])
def test_one_warp_among_itself_beside_a_barrier_of_all(
    counted: str, plain: str, votes: int, first: str, engine: Engine, arena: Arena
) -> None:
    """The first warp does not wait for the other where it counts only itself."""
    own = f"@%p0 bra PAST;\n    {counted.format(32)}\nPAST:"
    everyone = plain.format(0)
    lines = (own, everyone) if first == "counted" else (everyone, own)
    text = kernel(
        "arms",
        "u64",
        f"""
    .shared .align 4 .b8 box[256];
    and.b32 %r6, %r3, 3;
    setp.eq.u32 %p2, %r6, 1;
    mov.u32 %r9, 0;
    setp.ge.u32 %p0, %r3, 32;
    shl.b32 %r11, %r3, 2;
    mov.u32 %r12, box;
    add.u32 %r12, %r12, %r11;
    st.shared.u32 [%r12], %r3;
    {lines[0]}
    {lines[1]}
    xor.b32 %r13, %r12, 252;
    ld.shared.u32 %r10, [%r13];
    mul.wide.u32 %d1, %r3, 8;
    add.s64 %d2, %d60, %d1;
    st.global.v2.u32 [%d2], {{%r9, %r10}};
    ret;
""",
    )
    got = _run(engine, arena, text, 64)
    thread = np.arange(64)
    last = np.where(thread < 32, votes // 2, votes) if first == "plain" else votes
    np.testing.assert_array_equal(got[:, 0], np.broadcast_to(last, 64))
    np.testing.assert_array_equal(got[:, 1], 63 - thread)


@pytest.mark.parametrize(("counted", "plain", "votes"), [COUNTS[0], COUNTS[2]])
@pytest.mark.parametrize("low", ["counted", "plain"])
def test_a_count_that_is_all_meets_none(
    counted: str, plain: str, votes: int, low: str, engine: Engine, arena: Arena
) -> None:
    """A barrier that leaves the count out expects all of the CTA, so both are one."""
    lines = [counted.format(64), plain.format(1)]
    got = _run(engine, arena, _text(*(lines if low == "counted" else lines[::-1])), 64)
    np.testing.assert_array_equal(got[:, 0], votes + np.tile(ARM, 2))


def test_arms_in_a_loop(engine: Engine, arena: Arena) -> None:
    """Every round sorts the lanes anew."""
    body = """
    mov.u32 %r9, %laneid;
    mov.u32 %r4, 0;
LOOP:
    xor.b32 %r5, %r3, %r4;
    and.b32 %r5, %r5, 2;
    setp.eq.u32 %p0, %r5, 0;
    @%p0 bra EVEN;
    shfl.sync.down.b32 %r6, %r9, 1, 31, -1;
    mad.lo.u32 %r9, %r9, 3, %r6;
    bra NEXT;
EVEN:
    shfl.sync.down.b32 %r6, %r9, 3, 31, -1;
    mad.lo.u32 %r9, %r9, 5, %r6;
NEXT:
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, 9;
    @%p1 bra LOOP;
    mul.wide.u32 %d1, %r3, 8;
    add.s64 %d2, %d60, %d1;
    st.global.u32 [%d2], %r9;
    ret;
"""
    got = _run(engine, arena, kernel("arms", "u64", body))
    value = LANE.astype(np.uint32)
    for turn in range(9):
        even = (LANE ^ turn) & 2 == 0
        step = np.where(even, 3, 1)
        source = np.where(LANE + step <= 31, LANE + step, LANE)
        value = value * np.where(even, 5, 3).astype(np.uint32) + value[source]
    np.testing.assert_array_equal(got[:, 0], value)


def test_who_never_comes_is_still_missed(engine: Engine, arena: Arena) -> None:
    """Arms that wait for different masks do not meet."""
    low = "bar.warp.sync 0x80000fff;"
    high = "bar.warp.sync 0xfffff001;"
    with pytest.raises(Deadlock):
        _run(engine, arena, _text(low, high))


def test_places_on_one_path_are_no_twins() -> None:
    """A reduction's shuffles follow one another, so each needs its own place only."""
    chain = "\n".join(f"    shfl.sync.bfly.b32 %r4, %r4, {1 << i}, 31, -1;" for i in range(5))
    loop = f"LOOP:\n{chain}\n    setp.lt.u32 %p0, %r4, 9;\n    @%p0 bra LOOP;\n    ret;\n"
    module = parse(kernel("arms", "u64", loop), "chain.ptx")
    assert twin_groups(build_flow(module, module.functions[0])) == ()
    line = "vote.sync.any.pred %p3, %p2, -1;"
    module = parse(_text(line, line), "arms.ptx")
    (group,) = twin_groups(build_flow(module, module.functions[0]))
    assert len(group) == 2
