"""Lanes that have parted: groups that meet at one instruction, each apart, then together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

Run = Callable[..., list[np.ndarray]]

# %r41: tid.x, %r42: a label, %r43: the lanes here, %r44: those of them with the same label.
LABELLED = """
    mov.u32 %r41, %tid.x;
    mul.lo.u32 %r42, %r41, 7;
    rem.u32 %r42, %r42, 5;
    rem.u32 %r40, %r41, 3;
    setp.eq.u32 %p1, %r40, 0;
    @%p1 bra DONE;
    activemask.b32 %r43;
    match.any.sync.b32 %r44, %r42, %r43;
"""
STORE = """
    mad.wide.u32 %d41, %r41, 4, %d60;
    st.global.u32 [%d41], %r45;
DONE:
    ret;
"""
HERE = [i for i in range(32) if i % 3]
LABEL = [i * 7 % 5 for i in range(32)]


def _same(lane: int) -> list[int]:
    return [i for i in HERE if LABEL[i] == LABEL[lane]]


GROUPED = {
    "redux": "redux.sync.add.u32 %r46, %r41, %r44;",
    "shfl": "shfl.sync.idx.b32 %r46, %r41, %r41, 31, %r44;",
    "vote": "vote.sync.ballot.b32 %r46, %p1, %r44;",
    "match": "match.any.sync.b32 %r46, %r42, %r44;",
    "bar.warp": "bar.warp.sync %r44;",
    "twice": "bar.warp.sync %r44;\nbar.warp.sync %r44;",
    "guarded": "setp.gt.u32 %p2, %r42, 2;\n@%p2 bar.warp.sync %r44;",
    "branch": "bar.warp.sync %r44;\nsetp.gt.u32 %p2, %r42, 2;\n@%p2 bra NEXT;\nNEXT:",
}


@pytest.mark.parametrize("grouped", GROUPED)
def test_groups_meet_apart_and_then_together(run: Run, grouped: str) -> None:
    body = (
        LABELLED
        + GROUPED[grouped]
        + "\nsetp.eq.u32 %p3, %r42, 3;\nvote.sync.ballot.b32 %r45, %p3, %r43;"
        + STORE
    )
    (got,) = run("u64", body, [np.zeros(32, np.uint32)])
    ballot = sum(1 << i for i in HERE if LABEL[i] == 3)
    np.testing.assert_array_equal(got, [ballot if i in HERE else 0 for i in range(32)])


def test_each_group_has_its_own_sum(run: Run) -> None:
    body = LABELLED + "redux.sync.add.u32 %r45, %r41, %r44;\nbar.warp.sync %r43;" + STORE
    (got,) = run("u64", body, [np.zeros(32, np.uint32)])
    np.testing.assert_array_equal(got, [sum(_same(i)) if i in HERE else 0 for i in range(32)])


def test_a_whole_group_does_not_wait_for_the_first_lanes(run: Run) -> None:
    # Lanes 0 and 31 name each other, but 31 comes only once the other thirty are past.
    body = """
    mov.u32 %r41, %tid.x;
    setp.eq.u32 %p1, %r41, 0;
    setp.eq.u32 %p2, %r41, 31;
    or.pred %p3, %p1, %p2;
    selp.b32 %r44, 0x80000001, 0x7ffffffe, %p3;
    @!%p2 bra MEET;
    bar.warp.sync 0xfffffffe;
MEET:
    redux.sync.add.u32 %r45, %r41, %r44;
    @%p3 bra STORED;
    bar.warp.sync 0xfffffffe;
STORED:
    mad.wide.u32 %d41, %r41, 4, %d60;
    st.global.u32 [%d41], %r45;
    ret;
"""
    (got,) = run("u64", body, [np.zeros(32, np.uint32)])
    inner = sum(range(1, 31))
    np.testing.assert_array_equal(got, [31, *[inner] * 30, 31])
