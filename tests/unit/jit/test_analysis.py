"""What is known of a function before code is written; and that NaNs look alike wherever seen."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.kernels import kernel
from tests.unit.jit.conftest import Run
from va100.jit.analysis import Analysis, analyse
from va100.ptx.cfg import build_flow
from va100.ptx.parser import parse
from va100.work import Dim3


def _analysis(body: str, params: str = "u64 u32", block: Dim3 = Dim3(64)) -> Analysis:  # noqa: B008
    module = parse(kernel("test", params, body), "test.ptx")
    function = module.kernels[0]
    return analyse(build_flow(module, function), block, is_kernel=True)


def test_what_never_changes_is_invariant() -> None:
    found = _analysis(
        """
    add.u32 %r5, %r61, 3;
    ld.global.u32 %r6, [%d60];
    add.u32 %r7, %r6, 1;
    mov.u32 %r8, %clock;
    mov.u32 %r9, 0;
LOOP:
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p0, %r9, %r61;
    @%p0 bra LOOP;
    ret;
"""
    )
    assert {"%r61", "%r5", "%r3", "%d0"} <= found.invariant
    assert not {"%r6", "%r7", "%r8", "%r9", "%p0"} & found.invariant


def test_uniform_and_varying_predicates() -> None:
    found = _analysis(
        """
    setp.eq.u32 %p0, %r61, 3;
    setp.eq.u32 %p1, %r3, 3;
    vote.sync.any.pred %p2, %p1, 0xffffffff;
    @%p1 setp.eq.u32 %p3, %r61, 4;
    and.pred %p4, %p0, %p1;
    ret;
"""
    )
    assert {"%p0", "%p2"} <= found.uniform_predicates
    assert not {"%p1", "%p3", "%p4"} & found.uniform_predicates


@pytest.mark.parametrize(
    ("inside", "spins"),
    [
        ("ld.volatile.global.u32 %r4, [%d60];", True),
        ("atom.global.add.u32 %r4, [%d60], 0;", True),
        ("ld.acquire.gpu.global.u32 %r4, [%d60];", True),
        ("ld.global.u32 %r4, [%d60];", False),
        ("membar.gl; ld.global.u32 %r4, [%d60];", True),
        ("add.u32 %r4, %r4, 1;", False),
        ("add.u32 %r4, %r4, 1; nanosleep.u32 20;", True),
    ],
)
def test_loops_that_may_wait(inside: str, spins: bool) -> None:
    found = _analysis(f"mov.u32 %r4, 0;\nL:\n{inside}\nsetp.lt.u32 %p0, %r4, 9;\n@%p0 bra L;\nret;")
    assert bool(found.spin_edges) is spins


def test_arithmetic_may_leave_nan_as_it_is_and_moved_bits_may_not() -> None:
    found = _analysis(
        """
    add.f32 %f0, 0f3F800000, 0f7F800000;
    mul.f32 %f1, %f0, %f0;
    mov.f32 %f2, %f1;
    mov.b32 %f3, %r61;
    ld.global.f32 %f4, [%d60];
    add.f32 %f5, %f4, %f3;
    mov.f32 %f6, 0f7FC00001;
    ret;
"""
    )
    assert {"%f0", "%f1", "%f2", "%f5"} <= found.lazy_nan
    assert not {"%f3", "%f4", "%f6"} & found.lazy_nan


OBSERVE = {
    "store": "st.global.f32 [%d1], %f3;",
    "vector store": "st.global.v2.f32 [%d2], {%f3, %f3}; ld.global.f32 %f5, [%d2]; "
    "mov.b32 %r5, %f5; st.global.u32 [%d1], %r5;",
    "mov": "mov.b32 %r5, %f3; st.global.u32 [%d1], %r5;",
    "pack": "mov.b64 %d5, {%f3, %f3}; shr.u64 %d5, %d5, 32; cvt.u32.u64 %r5, %d5; "
    "st.global.u32 [%d1], %r5;",
    "shuffle": "shfl.sync.bfly.b32 %r5, %f3, 1, 31, 0xffffffff; st.global.u32 [%d1], %r5;",
    "select": "selp.f32 %f4, %f3, %f3, %p0; mov.b32 %r5, %f4; st.global.u32 [%d1], %r5;",
    "bit select": "selp.b32 %r5, %f3, %f3, %p0; st.global.u32 [%d1], %r5;",
    "logic": "and.b32 %r5, %f3, 0xffffffff; st.global.u32 [%d1], %r5;",
    "exchange": "atom.global.exch.b32 %r5, [%d1], %f3;",
    "local": "{ .local .align 4 .b8 a[4]; st.local.f32 [a], %f3; ld.local.u32 %r5, [a]; } "
    "st.global.u32 [%d1], %r5;",
    "shared": "{ .shared .align 4 .b8 s[128]; .reg .u32 %q; mov.u32 %q, s; "
    "mad.lo.u32 %q, %r3, 4, %q; st.shared.f32 [%q], %f3; ld.shared.u32 %r5, [%q]; } "
    "st.global.u32 [%d1], %r5;",
    "match": "match.any.sync.b32 %r5, %f3, 0xffffffff; setp.eq.u32 %p2, %r5, -1; "
    "selp.u32 %r5, 0x7fffffff, %r5, %p2; st.global.u32 [%d1], %r5;",
}


@pytest.mark.parametrize("how", OBSERVE)
@pytest.mark.parametrize("kind", ["varying", "uniform", "guarded", "masked"])
def test_nan_of_arithmetic_is_the_canonical_one_wherever_it_is_seen(
    run: Run, how: str, kind: str
) -> None:
    # Infinity minus infinity: the host's NaN is negative and has another payload.
    start = {
        "varying": "cvt.rn.f32.u32 %f0, %r3; mul.f32 %f0, %f0, 0f7F800000; "
        "add.f32 %f0, %f0, 0f7F800000;",
        "uniform": "mov.b32 %f0, %r62;",
        "guarded": "mov.b32 %f0, %r62; mov.f32 %f3, 0f7F800000;",
        "masked": "mov.b32 %f0, %r62; setp.lt.u32 %p3, %r3, 9; @%p3 bra ON; mov.u32 %r9, 1;\nON:",
    }[kind]
    guard = "@%p1 " if kind == "guarded" else ""
    body = f"""
    add.s64 %d1, %d60, %d0;
    shl.b64 %d2, %d0, 1;
    add.s64 %d2, %d61, %d2;
    setp.lt.u32 %p0, %r3, 7;
    setp.lt.u32 %p1, %r3, 100;
    {start}
    {guard}sub.f32 %f3, %f0, %f0;
    {OBSERVE[how]}
    ret;
"""
    infinity = np.uint32(0x7F800000)
    out = [np.zeros(32, np.uint32), np.zeros(64, np.uint32), infinity]
    got, _ = run("u64 u64 u32", body, out)
    np.testing.assert_array_equal(got, np.full(32, 0x7FFFFFFF, np.uint32))
