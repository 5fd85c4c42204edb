"""Hand-written PTX kernels with their right answers; every engine must give them.

Each case makes its arguments from a seeded generator and says what the buffers hold afterwards.
Nothing here depends on the order of threads unless PTX fixes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.helpers.engines import load, pack
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine, LaunchOutcome

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
REGISTERS = """
    .reg .pred %p<16>;
    .reg .b16 %h<16>;
    .reg .b32 %r<64>;
    .reg .b64 %d<64>;
    .reg .f32 %f<32>;
    .reg .f64 %fd<16>;
"""
GLOBAL_INDEX = """
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r0, %r1, %r2, %r3;
    mul.wide.u32 %d0, %r0, 4;
"""
"""Leaves the global index in %r0, four times it in %d0, tid.x in %r3."""

Argument = np.ndarray | np.generic


@dataclass(frozen=True, kw_only=True)
class KernelCase:
    """A kernel, its launch, and its answer.

    ``expected`` maps the arguments to what some of the buffers hold afterwards, by index.
    """

    name: str
    text: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: Callable[[np.random.Generator], list[Argument]]
    expected: Callable[[list[Argument]], dict[int, np.ndarray]]
    shared_bytes: int = 0
    cooperative: bool = False
    tolerance: float = 0.0


def run_case(case: KernelCase, engine: Engine, arena: Arena) -> tuple[list, LaunchOutcome]:
    """Run a case; returns the buffers afterwards and the outcome."""
    arguments = case.arguments(np.random.default_rng(1234))
    loaded = load(case.text, arena, f"{case.name}.ptx")
    try:
        places = [loaded.buffer(a) if isinstance(a, np.ndarray) else a for a in arguments]
        outcome = loaded.run(
            engine,
            case.name,
            case.grid,
            case.block,
            pack(*places),
            shared_bytes=case.shared_bytes,
            cooperative=case.cooperative,
        )
        buffers = [
            loaded.read(place, a.dtype, a.size).reshape(a.shape)
            if isinstance(a, np.ndarray)
            else None
            for place, a in zip(places, arguments, strict=True)
        ]
    finally:
        loaded.close()
    return buffers, outcome


def check_case(case: KernelCase, engine: Engine, arena: Arena) -> list:
    """Run a case and compare it with its answer."""
    buffers, _ = run_case(case, engine, arena)
    for index, want in case.expected(case.arguments(np.random.default_rng(1234))).items():
        got = buffers[index]
        if case.tolerance:
            np.testing.assert_allclose(got, want, rtol=case.tolerance, err_msg=case.name)
        else:
            np.testing.assert_array_equal(got, want, err_msg=case.name)
    return buffers


def kernel(name: str, params: str, body: str, *, before: str = "") -> str:
    """A module with one kernel; parameters ``p q n`` as ``u64 u64 u32``."""
    declared = ",\n".join(f"    .param .{kind} {name}_{i}" for i, kind in enumerate(params.split()))
    first = {"u64": ("%d", 60), "u32": ("%r", 60), "f32": ("%f", 28)}
    loads = "\n".join(
        f"    ld.param.{kind} {first[kind][0]}{first[kind][1] + i}, [{name}_{i}];"
        for i, kind in enumerate(params.split())
    )
    return (
        f"{HEADER}\n{before}\n.visible .entry {name}(\n{declared}\n)\n{{{REGISTERS}\n{loads}\n"
        f"{GLOBAL_INDEX}\n{body}\n}}\n"
    )


def _floats(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.standard_normal(count).astype(np.float32)


def _words(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.integers(0, 2**32, count, dtype=np.uint32)


def _zeros(count: int, dtype: type = np.uint32) -> np.ndarray:
    return np.zeros(count, dtype)


SAXPY = KernelCase(
    name="saxpy",
    text=kernel(
        "saxpy",
        "u64 u64 u32 f32",
        """
    setp.ge.u32 %p0, %r0, %r62;
    @%p0 bra DONE;
    add.s64 %d1, %d60, %d0;
    add.s64 %d2, %d61, %d0;
    ld.global.f32 %f0, [%d1];
    ld.global.f32 %f1, [%d2];
    fma.rn.f32 %f2, %f31, %f0, %f1;
    st.global.f32 [%d2], %f2;
DONE:
    ret;
""",
    ),
    grid=(9,),
    block=(128,),
    arguments=lambda rng: [
        _floats(rng, 1100),
        _floats(rng, 1100),
        np.uint32(1100),
        np.float32(2.5),
    ],
    expected=lambda a: {
        1: (np.float64(2.5) * a[0].astype(np.float64) + a[1]).astype(np.float32),
    },
    tolerance=1e-6,
)


def _collatz(values: np.ndarray) -> np.ndarray:
    counts = []
    for start in values.tolist():
        value, steps = start % 97 + 1, 0
        while value != 1:
            value = 3 * value + 1 if value & 1 else value // 2
            steps += 1
        counts.append(steps)
    return np.array(counts, np.uint32)


DIVERGENCE = KernelCase(
    name="collatz",
    text=kernel(
        "collatz",
        "u64 u64",
        """
    add.s64 %d1, %d60, %d0;
    ld.global.u32 %r4, [%d1];
    rem.u32 %r5, %r4, 97;
    add.u32 %r5, %r5, 1;
    mov.u32 %r6, 0;
LOOP:
    setp.eq.u32 %p0, %r5, 1;
    @%p0 bra DONE;
    and.b32 %r7, %r5, 1;
    setp.eq.u32 %p1, %r7, 0;
    @%p1 bra EVEN;
    mad.lo.u32 %r5, %r5, 3, 1;
    bra NEXT;
EVEN:
    shr.u32 %r5, %r5, 1;
NEXT:
    add.u32 %r6, %r6, 1;
    bra LOOP;
DONE:
    add.s64 %d2, %d61, %d0;
    st.global.u32 [%d2], %r6;
    ret;
""",
    ),
    grid=(2,),
    block=(64,),
    arguments=lambda rng: [_words(rng, 128), _zeros(128)],
    expected=lambda a: {1: _collatz(a[0])},
)

NESTED_LOOPS = KernelCase(
    name="nested",
    text=kernel(
        "nested",
        "u64",
        """
    mov.u32 %r4, 0;
    mov.u32 %r5, 0;
OUTER:
    and.b32 %r6, %r0, 7;
    setp.gt.u32 %p0, %r5, %r6;
    @%p0 bra DONE;
    mov.u32 %r7, 0;
INNER:
    add.u32 %r8, %r5, %r3;
    and.b32 %r8, %r8, 3;
    setp.ge.u32 %p1, %r7, %r8;
    @%p1 bra INNER_DONE;
    mad.lo.u32 %r4, %r7, %r5, %r4;
    add.u32 %r4, %r4, 1;
    add.u32 %r7, %r7, 1;
    setp.eq.u32 %p2, %r4, 9;
    @%p2 bra DONE;
    bra INNER;
INNER_DONE:
    add.u32 %r5, %r5, 1;
    bra OUTER;
DONE:
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1], %r4;
    ret;
""",
    ),
    grid=(1,),
    block=(96,),
    arguments=lambda rng: [_zeros(96)],
    expected=lambda a: {0: np.array([_nested(t) for t in range(96)], np.uint32)},
)


def _nested(tid: int) -> int:
    total = 0
    for outer in range((tid & 7) + 1):
        for inner in range((outer + tid) & 3):
            total += inner * outer + 1
            if total == 9:
                return total
    return total


BARRIER_REDUCTION = KernelCase(
    name="tree",
    text=kernel(
        "tree",
        "u64 u64",
        """
    .shared .align 4 .b8 sums[1024];
    add.s64 %d1, %d60, %d0;
    ld.global.u32 %r4, [%d1];
    shl.b32 %r5, %r3, 2;
    mov.u32 %r6, sums;
    add.u32 %r7, %r6, %r5;
    st.shared.u32 [%r7], %r4;
    mov.u32 %r8, 128;
STEP:
    bar.sync 0;
    setp.ge.u32 %p0, %r3, %r8;
    @%p0 bra SKIP;
    shl.b32 %r9, %r8, 2;
    add.u32 %r10, %r7, %r9;
    ld.shared.u32 %r11, [%r10];
    ld.shared.u32 %r12, [%r7];
    add.u32 %r12, %r12, %r11;
    st.shared.u32 [%r7], %r12;
SKIP:
    shr.u32 %r8, %r8, 1;
    setp.ne.u32 %p1, %r8, 0;
    @%p1 bra STEP;
    bar.sync 0;
    setp.ne.u32 %p2, %r3, 0;
    @%p2 ret;
    ld.shared.u32 %r13, [sums];
    mul.wide.u32 %d2, %r1, 4;
    add.s64 %d3, %d61, %d2;
    st.global.u32 [%d3], %r13;
    ret;
""",
    ),
    grid=(3,),
    block=(256,),
    arguments=lambda rng: [_words(rng, 768), _zeros(3)],
    expected=lambda a: {
        1: a[0].reshape(3, 256).sum(axis=1, dtype=np.uint64).astype(np.uint32),
    },
)


def _shuffled(values: np.ndarray) -> np.ndarray:
    warps = values.reshape(-1, 32)
    lane = np.arange(32)
    up = np.where(lane >= 3, warps[:, (lane - 3) % 32], warps)
    down = np.where(lane + 5 <= 31, warps[:, (lane + 5) % 32], warps)
    across = warps[:, lane ^ 21]
    index = warps[:, (lane & 24) | 6]
    return (up + 3 * down + 5 * across + 7 * index).astype(np.uint32).reshape(-1)


SHUFFLES = KernelCase(
    name="shuffles",
    text=kernel(
        "shuffles",
        "u64 u64",
        """
    add.s64 %d1, %d60, %d0;
    ld.global.u32 %r4, [%d1];
    shfl.sync.up.b32 %r5|%p0, %r4, 3, 0, 0xffffffff;
    shfl.sync.down.b32 %r6, %r4, 5, 31, -1;
    shfl.sync.bfly.b32 %r7, %r4, 21, 31, -1;
    mov.u32 %r9, 6167;
    shfl.sync.idx.b32 %r8, %r4, 6, 0x181f, -1;
    mad.lo.u32 %r5, %r6, 3, %r5;
    mad.lo.u32 %r5, %r7, 5, %r5;
    mad.lo.u32 %r5, %r8, 7, %r5;
    add.s64 %d2, %d61, %d0;
    st.global.u32 [%d2], %r5;
    ret;
""",
    ),
    grid=(1,),
    block=(64,),
    arguments=lambda rng: [_words(rng, 64), _zeros(64)],
    expected=lambda a: {1: _shuffled(a[0])},
)

LANE_LOCK = KernelCase(
    name="lane_lock",
    text=kernel(
        "lane_lock",
        "u64 u64",
        """
    // Every lane takes one lock in turn: the owner's lane must go on while the others spin.
TRY:
    atom.global.cas.b32 %r4, [%d60], 0, 1;
    setp.ne.u32 %p0, %r4, 0;
    @%p0 bra TRY;
    ld.volatile.global.u32 %r5, [%d61];
    mad.lo.u32 %r5, %r5, 1, 1;
    st.volatile.global.u32 [%d61], %r5;
    membar.gl;
    atom.global.exch.b32 %r6, [%d60], 0;
    ret;
""",
    ),
    grid=(2,),
    block=(24,),
    arguments=lambda rng: [_zeros(1), _zeros(1)],
    expected=lambda a: {0: _zeros(1), 1: np.array([48], np.uint32)},
)

LAST_BLOCK = KernelCase(
    name="last_block",
    text=kernel(
        "last_block",
        "u64 u64 u64",
        """
    // The CTA that arrives last adds up what the others left.
    .shared .align 4 .u32 ticket;
    mul.wide.u32 %d1, %r1, 4;
    add.s64 %d2, %d60, %d1;
    setp.ne.u32 %p0, %r3, 0;
    @%p0 bra WAIT;
    mad.lo.u32 %r4, %r1, %r1, 7;
    st.global.u32 [%d2], %r4;
    membar.gl;
    mov.u32 %r5, %nctaid.x;
    sub.u32 %r6, %r5, 1;
    atom.global.inc.u32 %r7, [%d61], %r6;
    st.shared.u32 [ticket], %r7;
WAIT:
    bar.sync 0;
    ld.shared.u32 %r8, [ticket];
    mov.u32 %r9, %nctaid.x;
    add.u32 %r10, %r8, 1;
    setp.ne.u32 %p1, %r10, %r9;
    or.pred %p1, %p1, %p0;
    @%p1 exit;
    mov.u32 %r11, 0;
    mov.u32 %r12, 0;
ADD:
    mul.wide.u32 %d3, %r12, 4;
    add.s64 %d4, %d60, %d3;
    ld.volatile.global.u32 %r13, [%d4];
    add.u32 %r11, %r11, %r13;
    add.u32 %r12, %r12, 1;
    setp.lt.u32 %p2, %r12, %r9;
    @%p2 bra ADD;
    st.global.u32 [%d62], %r11;
    exit;
""",
    ),
    grid=(10,),
    block=(64,),
    arguments=lambda rng: [_zeros(10), _zeros(1), _zeros(1)],
    expected=lambda a: {
        0: (np.arange(10) ** 2 + 7).astype(np.uint32),
        1: _zeros(1),
        2: np.array([sum(i * i + 7 for i in range(10))], np.uint32),
    },
)

LOCAL_ARRAY = KernelCase(
    name="local_array",
    text=kernel(
        "local_array",
        "u64 u64",
        """
    .local .align 16 .b8 stack[64];
    mov.u64 %d1, stack;
    cvta.local.u64 %d2, %d1;
    mov.u32 %r4, 0;
FILL:
    mul.lo.u32 %r5, %r4, %r4;
    add.u32 %r5, %r5, %r0;
    mul.wide.u32 %d3, %r4, 4;
    add.s64 %d4, %d1, %d3;
    st.local.u32 [%d4], %r5;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p0, %r4, 16;
    @%p0 bra FILL;
    add.s64 %d5, %d60, %d0;
    ld.global.u32 %r6, [%d5];
    and.b32 %r6, %r6, 15;
    mul.wide.u32 %d6, %r6, 4;
    add.s64 %d7, %d2, %d6;
    ld.u32 %r7, [%d7];
    ld.local.v4.u32 {%r8, %r9, %r10, %r11}, [stack+16];
    add.u32 %r7, %r7, %r9;
    add.s64 %d8, %d61, %d0;
    st.global.u32 [%d8], %r7;
    ret;
""",
    ),
    grid=(2,),
    block=(48,),
    arguments=lambda rng: [_words(rng, 96), _zeros(96)],
    expected=lambda a: {
        1: ((a[0] & 15) ** 2 + 2 * np.arange(96) + 25).astype(np.uint32),
    },
)

CALLS = KernelCase(
    name="calls",
    text=kernel(
        "calls",
        "u64 u64",
        """
    add.s64 %d1, %d60, %d0;
    ld.global.u32 %r4, [%d1];
    {
    .param .b32 a;
    .param .align 8 .b8 b[16];
    .param .b32 r;
    st.param.b32 [a], %r4;
    st.param.b32 [b+4], %r0;
    st.param.b32 [b+12], 1000;
    call.uni (r), weigh, (a, b);
    ld.param.b32 %r5, [r];
    }
    setp.lt.u32 %p0, %r3, 20;
    @%p0 call (%r5), plus, (%r5, 5);
    add.s64 %d2, %d61, %d0;
    st.global.u32 [%d2], %r5;
    ret;
""",
        before="""
.func (.reg .b32 out) plus(.reg .b32 x, .reg .b32 y)
{
    add.u32 out, x, y;
    ret;
}
.func (.param .b32 out) weigh(.param .b32 x, .param .align 8 .b8 y[16])
{
    .reg .b32 %r<8>;
    .reg .pred %p<2>;
    ld.param.b32 %r1, [x];
    ld.param.b32 %r2, [y+4];
    ld.param.b32 %r3, [y+12];
    and.b32 %r4, %r2, 1;
    setp.eq.u32 %p1, %r4, 0;
    @%p1 bra EVEN;
    add.u32 %r5, %r1, %r3;
    st.param.b32 [out], %r5;
    ret;
EVEN:
    sub.u32 %r5, %r1, %r3;
    st.param.b32 [out], %r5;
    ret;
}
""",
    ),
    grid=(1,),
    block=(64,),
    arguments=lambda rng: [_words(rng, 64), _zeros(64)],
    expected=lambda a: {
        1: (
            a[0]
            + np.where(np.arange(64) % 2 == 1, 1000, -1000).astype(np.int64)
            + np.where(np.arange(64) < 20, 5, 0)
        ).astype(np.uint32),
    },
)

RECURSION = KernelCase(
    name="recursion",
    text=kernel(
        "recursion",
        "u64",
        """
    and.b32 %r4, %r0, 7;
    {
    .param .b32 a;
    .param .b32 r;
    st.param.b32 [a], %r4;
    call.uni (r), fibonacci, (a);
    ld.param.b32 %r5, [r];
    }
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1], %r5;
    ret;
""",
        before="""
.func (.param .b32 out) fibonacci(.param .b32 n)
{
    .reg .b32 %r<8>;
    .reg .pred %p<2>;
    .local .align 4 .b8 keep[4];
    ld.param.b32 %r1, [n];
    setp.lt.u32 %p1, %r1, 2;
    @%p1 bra BASE;
    {
    .param .b32 a;
    .param .b32 r;
    sub.u32 %r2, %r1, 1;
    st.param.b32 [a], %r2;
    call (r), fibonacci, (a);
    ld.param.b32 %r3, [r];
    }
    st.local.u32 [keep], %r3;
    {
    .param .b32 a;
    .param .b32 r;
    sub.u32 %r4, %r1, 2;
    st.param.b32 [a], %r4;
    call (r), fibonacci, (a);
    ld.param.b32 %r5, [r];
    }
    ld.local.u32 %r6, [keep];
    add.u32 %r7, %r6, %r5;
    st.param.b32 [out], %r7;
    ret;
BASE:
    st.param.b32 [out], %r1;
    ret;
}
""",
    ),
    grid=(1,),
    block=(32,),
    arguments=lambda rng: [_zeros(32)],
    expected=lambda a: {0: np.array([_fibonacci(i & 7) for i in range(32)], np.uint32)},
)


def _fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


INDIRECT = KernelCase(
    name="indirect",
    text=kernel(
        "indirect",
        "u64",
        """
    rem.u32 %r4, %r0, 3;
    mul.wide.u32 %d1, %r4, 8;
    mov.u64 %d2, table;
    add.s64 %d3, %d2, %d1;
    ld.global.u64 %d4, [%d3];
    {
    .param .b32 a;
    .param .b32 r;
    st.param.b32 [a], %r0;
    prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (r), %d4, (a), prototype;
    ld.param.b32 %r5, [r];
    }
    add.s64 %d5, %d60, %d0;
    st.global.u32 [%d5], %r5;
    ret;
""",
        before="""
.visible .func (.param .b32 out) twice(.param .b32 x)
{
    .reg .b32 %r<4>;
    ld.param.b32 %r1, [x];
    add.u32 %r2, %r1, %r1;
    st.param.b32 [out], %r2;
    ret;
}
.visible .func (.param .b32 out) square(.param .b32 x)
{
    .reg .b32 %r<4>;
    ld.param.b32 %r1, [x];
    mul.lo.u32 %r2, %r1, %r1;
    st.param.b32 [out], %r2;
    ret;
}
.visible .func (.param .b32 out) flip(.param .b32 x)
{
    .reg .b32 %r<4>;
    ld.param.b32 %r1, [x];
    not.b32 %r2, %r1;
    st.param.b32 [out], %r2;
    ret;
}
.global .align 8 .u64 table[3] = {twice, square, flip};
""",
    ),
    grid=(1,),
    block=(64,),
    arguments=lambda rng: [_zeros(64)],
    expected=lambda a: {
        0: np.array([(2 * i, i * i, ~i & 0xFFFFFFFF)[i % 3] for i in range(64)], np.uint32)
    },
)

BRANCH_TABLE = KernelCase(
    name="branch_table",
    text=kernel(
        "branch_table",
        "u64",
        """
    and.b32 %r4, %r0, 3;
targets: .branchtargets A, B, C, A;
    brx.idx %r4, targets;
A:
    mov.u32 %r5, 11;
    bra DONE;
B:
    mov.u32 %r5, 22;
    bra DONE;
C:
    mov.u32 %r5, 33;
DONE:
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1], %r5;
    ret;
""",
    ),
    grid=(1,),
    block=(64,),
    arguments=lambda rng: [_zeros(64)],
    expected=lambda a: {0: np.tile(np.array([11, 22, 33, 11], np.uint32), 16)},
)

VECTORS = KernelCase(
    name="vectors",
    text=kernel(
        "vectors",
        "u64 u64",
        """
    mul.wide.u32 %d1, %r0, 16;
    add.s64 %d2, %d60, %d1;
    add.s64 %d3, %d61, %d1;
    ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d2];
    ld.global.v2.u64 {%d4, %d5}, [%d2];
    mov.b64 {%r8, %r9}, %d4;
    xor.b32 %r8, %r8, %r7;
    mov.b64 %d6, {%r5, %r8};
    add.s64 %d6, %d6, %d5;
    mov.b64 {%r10, %r11}, %d6;
    mov.b32 {%h1, %h2}, %r6;
    mov.b32 %r12, {%h2, %h1};
    st.global.v4.u32 [%d3], {%r10, %r11, %r12, %r4};
    ld.global.v4.u8 {%r13, %r14, %r15, %r16}, [%d2];
    st.global.v2.u8 [%d3+12], {%r16, %r13};
    ret;
""",
    ),
    grid=(2,),
    block=(32,),
    arguments=lambda rng: [_words(rng, 256), _zeros(256)],
    expected=lambda a: {1: _vectors(a[0])},
)


def _vectors(words: np.ndarray) -> np.ndarray:
    rows = []
    for a, b, c, d in words.reshape(-1, 4).tolist():
        total = ((((a ^ d) << 32) | b) + ((d << 32) | c)) % 2**64
        last = (a & 0xFFFF0000) | (a >> 24) | (a & 0xFF) << 8
        rows += [total & 0xFFFFFFFF, total >> 32, (c >> 16 | c << 16) & 0xFFFFFFFF, last]
    return np.array(rows, np.uint32)


HISTOGRAM = KernelCase(
    name="histogram",
    text=kernel(
        "histogram",
        "u64 u64 u64",
        """
    .shared .align 4 .b8 bins[64];
    setp.lt.u32 %p0, %r3, 16;
    shl.b32 %r4, %r3, 2;
    mov.u32 %r5, bins;
    add.u32 %r6, %r5, %r4;
    @%p0 st.shared.u32 [%r6], 0;
    bar.sync 0;
    add.s64 %d1, %d60, %d0;
    ld.global.u32 %r7, [%d1];
    and.b32 %r8, %r7, 15;
    shl.b32 %r9, %r8, 2;
    add.u32 %r10, %r5, %r9;
    atom.shared.add.u32 %r11, [%r10], 1;
    red.global.max.u32 [%d62], %r7;
    red.global.xor.b32 [%d62+4], %r7;
    bar.sync 0;
    mul.wide.u32 %d2, %r3, 4;
    add.s64 %d3, %d61, %d2;
    @%p0 ld.shared.u32 %r12, [%r6];
    @%p0 red.global.add.u32 [%d3], %r12;
    ret;
""",
    ),
    grid=(4,),
    block=(96,),
    arguments=lambda rng: [_words(rng, 384), _zeros(16), _zeros(2)],
    expected=lambda a: {
        1: np.bincount(a[0] & 15, minlength=16).astype(np.uint32),
        2: np.array([a[0].max(), np.bitwise_xor.reduce(a[0])], np.uint32),
    },
)

VOTES = KernelCase(
    name="votes",
    text=kernel(
        "votes",
        "u64 u64",
        """
    add.s64 %d1, %d60, %d0;
    ld.global.u32 %r4, [%d1];
    and.b32 %r5, %r4, 1;
    setp.ne.u32 %p0, %r5, 0;
    vote.sync.ballot.b32 %r6, %p0, -1;
    vote.sync.any.pred %p1, %p0, -1;
    vote.sync.all.pred %p2, !%p0, -1;
    vote.sync.uni.pred %p3, %p0, -1;
    selp.u32 %r7, 1, 0, %p1;
    selp.u32 %r8, 2, 0, %p2;
    selp.u32 %r9, 4, 0, %p3;
    or.b32 %r7, %r7, %r8;
    or.b32 %r7, %r7, %r9;
    add.u32 %r6, %r6, %r7;
    and.b32 %r10, %r4, 6;
    match.any.sync.b32 %r11, %r10, -1;
    redux.sync.add.s32 %r12, %r4, -1;
    add.u32 %r6, %r6, %r11;
    xor.b32 %r6, %r6, %r12;
    activemask.b32 %r13;
    add.u32 %r6, %r6, %r13;
    add.s64 %d2, %d61, %d0;
    st.global.u32 [%d2], %r6;
    ret;
""",
    ),
    grid=(1,),
    block=(96,),
    arguments=lambda rng: [
        np.concatenate((_words(rng, 32), _words(rng, 32) | 1, _words(rng, 32) & ~np.uint32(1))),
        _zeros(96),
    ],
    expected=lambda a: {1: np.concatenate([_votes(w) for w in a[0].reshape(-1, 32)])},
)


def _votes(values: np.ndarray) -> np.ndarray:
    ballot = sum(1 << i for i, v in enumerate(values.tolist()) if v & 1)
    flags = (ballot != 0) | (ballot == 0) << 1 | (ballot in (0, 0xFFFFFFFF)) << 2
    alike = [
        sum(1 << j for j, w in enumerate(values.tolist()) if w & 6 == v & 6)
        for v in values.tolist()
    ]
    total = sum(values.tolist())
    return np.array(
        [(((ballot + flags + m) ^ total) + 0xFFFFFFFF) & 0xFFFFFFFF for m in alike], np.uint32
    )


PARTIAL_WARPS = KernelCase(
    name="partial",
    text=kernel(
        "partial",
        "u64",
        """
    // Blocks of 7 x 5 threads: one warp is whole, one has three lanes.
    mov.u32 %r4, %tid.y;
    mov.u32 %r5, %ntid.x;
    mad.lo.u32 %r6, %r4, %r5, %r3;
    mov.u32 %r7, %ctaid.x;
    mad.lo.u32 %r6, %r7, 35, %r6;
    mov.u32 %r8, %laneid;
    mov.u32 %r9, %lanemask_lt;
    activemask.b32 %r10;
    and.b32 %r11, %r9, %r10;
    popc.b32 %r12, %r11;
    mov.u32 %r13, %warpid;
    shl.b32 %r13, %r13, 8;
    add.u32 %r12, %r12, %r13;
    bar.sync 0;
    shl.b32 %r14, %r8, 16;
    add.u32 %r12, %r12, %r14;
    mul.wide.u32 %d1, %r6, 4;
    add.s64 %d2, %d60, %d1;
    st.global.u32 [%d2], %r12;
    ret;
""",
    ),
    grid=(3,),
    block=(7, 5),
    arguments=lambda rng: [_zeros(105)],
    expected=lambda a: {
        0: np.tile(np.array([(i % 32) * 0x10001 + (i // 32 << 8) for i in range(35)], np.uint32), 3)
    },
)

EARLY_EXIT = KernelCase(
    name="early_exit",
    text=kernel(
        "early_exit",
        "u64",
        """
    // A third of the lanes leave; the others still meet at the barrier and in the vote.
    rem.u32 %r4, %r3, 3;
    setp.eq.u32 %p0, %r4, 0;
    @%p0 exit;
    bar.sync 0;
    setp.gt.u32 %p1, %r3, 40;
    vote.sync.ballot.b32 %r5, %p1, -1;
    popc.b32 %r6, %r5;
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1], %r6;
    ret;
""",
    ),
    grid=(1,),
    block=(64,),
    arguments=lambda rng: [np.full(64, 99, np.uint32)],
    expected=lambda a: {
        0: np.array(
            [
                99
                if i % 3 == 0
                else sum(1 for j in range(i // 32 * 32, i // 32 * 32 + 32) if j % 3 and j > 40)
                for i in range(64)
            ],
            np.uint32,
        )
    },
)

NAMED_BARRIERS = KernelCase(
    name="producers",
    text=kernel(
        "producers",
        "u64 u64",
        """
    // Warp 0 fills shared memory and arrives; warp 1 waits for it, then signals back.
    .shared .align 4 .b8 box[128];
    mov.u32 %r4, %laneid;
    shl.b32 %r5, %r4, 2;
    mov.u32 %r6, box;
    add.u32 %r7, %r6, %r5;
    mul.wide.u32 %d3, %r4, 4;
    setp.ge.u32 %p0, %r3, 32;
    @%p0 bra CONSUME;
    add.s64 %d1, %d60, %d3;
    ld.global.u32 %r8, [%d1];
    st.shared.u32 [%r7], %r8;
    bar.arrive 1, 64;
    bar.sync 2, 64;
    ret;
CONSUME:
    bar.sync 1, 64;
    xor.b32 %r9, %r7, 4;
    ld.shared.u32 %r10, [%r9];
    add.s64 %d2, %d61, %d3;
    st.global.u32 [%d2], %r10;
    bar.sync 2, 64;
    ret;
""",
    ),
    grid=(1,),
    block=(64,),
    arguments=lambda rng: [_words(rng, 32), _zeros(32)],
    expected=lambda a: {1: a[0][np.arange(32) ^ 1]},
)

BARRIER_VOTES = KernelCase(
    name="barrier_votes",
    text=kernel(
        "barrier_votes",
        "u64",
        """
    setp.lt.u32 %p0, %r3, 70;
    bar.red.popc.u32 %r4, 0, %p0;
    bar.red.and.pred %p1, 0, %p0;
    bar.red.or.pred %p2, 0, !%p0;
    selp.u32 %r5, 1000, 0, %p1;
    selp.u32 %r6, 10000, 0, %p2;
    add.u32 %r4, %r4, %r5;
    add.u32 %r4, %r4, %r6;
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1], %r4;
    ret;
""",
    ),
    grid=(2,),
    block=(96,),
    arguments=lambda rng: [_zeros(192)],
    expected=lambda a: {0: np.full(192, 10070, np.uint32)},
)

DIVERGED_SYNC = KernelCase(
    name="diverged_sync",
    text=kernel(
        "diverged_sync",
        "u64",
        """
    // Two halves of a warp meet in two places of the text, each half with its own mask first.
    mov.u32 %r4, %laneid;
    setp.lt.u32 %p0, %r4, 16;
    @%p0 bra LOW;
    mul.lo.u32 %r5, %r4, 3;
    shfl.sync.bfly.b32 %r6, %r5, 1, 31, 0xffff0000;
    bar.warp.sync -1;
    shfl.sync.idx.b32 %r7, %r6, 2, 31, -1;
    bra DONE;
LOW:
    mul.lo.u32 %r5, %r4, 5;
    shfl.sync.bfly.b32 %r6, %r5, 2, 31, 0x0000ffff;
    bar.warp.sync -1;
    shfl.sync.idx.b32 %r7, %r6, 17, 31, -1;
DONE:
    shl.b32 %r6, %r6, 16;
    add.u32 %r7, %r7, %r6;
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1], %r7;
    ret;
""",
    ),
    grid=(1,),
    block=(32,),
    arguments=lambda rng: [_zeros(32)],
    expected=lambda a: {
        0: np.array(
            [
                ((i ^ 2) * 5 << 16) + (17 ^ 1) * 3 if i < 16 else ((i ^ 1) * 3 << 16) + (2 ^ 2) * 5
                for i in range(32)
            ],
            np.uint32,
        )
    },
)

DYNAMIC_SHARED = KernelCase(
    name="dynamic",
    text=kernel(
        "dynamic",
        "u64",
        """
    .shared .align 4 .b8 fixed[20];
    mov.u32 %r4, extra;
    shl.b32 %r5, %r3, 3;
    add.u32 %r5, %r5, %r4;
    mul.wide.u32 %d1, %r3, 7;
    st.shared.u64 [%r5], %d1;
    @%p0 st.shared.u32 [fixed], 1;
    bar.sync 0;
    xor.b32 %r6, %r3, 63;
    shl.b32 %r6, %r6, 3;
    add.u32 %r6, %r6, %r4;
    cvt.u64.u32 %d2, %r6;
    cvta.shared.u64 %d3, %d2;
    ld.u64 %d4, [%d3];
    cvt.u32.u64 %r7, %d4;
    mov.u32 %r8, %dynamic_smem_size;
    add.u32 %r7, %r7, %r8;
    isspacep.shared %p1, %d3;
    isspacep.global %p2, %d60;
    selp.u32 %r9, 10000, 0, %p1;
    selp.u32 %r10, 20000, 0, %p2;
    add.u32 %r7, %r7, %r9;
    add.u32 %r7, %r7, %r10;
    add.s64 %d5, %d60, %d0;
    st.global.u32 [%d5], %r7;
    ret;
""",
        before=".extern .shared .align 16 .b8 extra[];",
    ),
    grid=(1,),
    block=(64,),
    arguments=lambda rng: [_zeros(64)],
    expected=lambda a: {0: np.array([(i ^ 63) * 7 + 512 + 30000 for i in range(64)], np.uint32)},
    shared_bytes=512,
)

CONSTANTS = KernelCase(
    name="constants",
    text=kernel(
        "constants",
        "u64",
        """
    and.b32 %r4, %r0, 3;
    mul.wide.u32 %d1, %r4, 4;
    mov.u64 %d2, weights;
    add.s64 %d3, %d2, %d1;
    ld.const.f32 %f0, [%d3];
    ld.const.f32 %f1, [weights+4];
    ld.global.u32 %r5, [offset];
    cvt.rn.f32.u32 %f2, %r5;
    fma.rn.f32 %f0, %f0, %f1, %f2;
    add.s64 %d4, %d60, %d0;
    st.global.f32 [%d4], %f0;
    ret;
""",
        before="""
.const .align 4 .f32 weights[4] = {0f3F800000, 2.5, 0f40400000, -4.0};
.global .align 4 .u32 offset = 100;
""",
    ),
    grid=(1,),
    block=(32,),
    arguments=lambda rng: [_zeros(32, np.float32)],
    expected=lambda a: {
        0: np.tile(np.array([1, 2.5, 3, -4], np.float32) * np.float32(2.5) + 100, 8).astype(
            np.float32
        )
    },
)

WAITING_CTAS = KernelCase(
    name="waiting",
    text=kernel(
        "waiting",
        "u64",
        """
    // Every CTA waits for the one after it: progress needs CTAs that run beside each other.
    setp.ne.u32 %p0, %r3, 0;
    @%p0 exit;
    mov.u32 %r4, %nctaid.x;
    add.u32 %r5, %r1, 1;
    setp.ge.u32 %p1, %r5, %r4;
    mul.wide.u32 %d1, %r1, 4;
    add.s64 %d2, %d60, %d1;
    mov.u32 %r6, 0;
    @%p1 bra SIGNAL;
SPIN:
    ld.volatile.global.u32 %r6, [%d2+4];
    setp.eq.u32 %p2, %r6, 0;
    @%p2 bra SPIN;
SIGNAL:
    add.u32 %r6, %r6, 1;
    st.volatile.global.u32 [%d2], %r6;
    exit;
""",
    ),
    grid=(4,),
    block=(32,),
    arguments=lambda rng: [_zeros(4)],
    expected=lambda a: {0: np.array([4, 3, 2, 1], np.uint32)},
    cooperative=True,
)

CASES = (
    SAXPY,
    DIVERGENCE,
    NESTED_LOOPS,
    BARRIER_REDUCTION,
    SHUFFLES,
    LANE_LOCK,
    LAST_BLOCK,
    LOCAL_ARRAY,
    CALLS,
    RECURSION,
    INDIRECT,
    BRANCH_TABLE,
    VECTORS,
    HISTOGRAM,
    VOTES,
    PARTIAL_WARPS,
    EARLY_EXIT,
    NAMED_BARRIERS,
    BARRIER_VOTES,
    DIVERGED_SYNC,
    DYNAMIC_SHARED,
    CONSTANTS,
    WAITING_CTAS,
)
