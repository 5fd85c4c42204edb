"""What lies behind a barrier, and loads that compare-and-swap checks again."""

from __future__ import annotations

import pytest

from va100.check.flow import VariantFlow
from va100.ptx.cfg import build_flow
from va100.ptx.parser import parse

HEAD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<4>;
    ld.param.u64 %d1, [out];
"""


def flow_of(body):
    module = parse(HEAD + body + "}", "t.ptx")
    function = module.functions[0]
    return VariantFlow(("k",), {"k": build_flow(module, function)})


def sites(flow, opcode):
    return [k for k, i in enumerate(flow.flows["k"].instructions) if i.opcode == opcode]


@pytest.mark.parametrize(
    ("body", "behind"),
    [
        ("bar.sync 0; st.global.u32 [%d1], %r1; ret;", True),
        ("st.global.u32 [%d1], %r1; bar.sync 0; ret;", False),
        # Returned early: the store is on the other side.
        ("@%p1 bra L; bar.sync 0; ret; L: st.global.u32 [%d1], %r1; ret;", False),
        # Went round the barrier.
        ("@%p1 bra L; bar.sync 0; L: st.global.u32 [%d1], %r1; ret;", True),
        # Before the barrier in a loop, though the barrier leads to it again.
        ("L: st.global.u32 [%d1], %r1; @%p2 bra E; bar.sync 0; bra L; E: ret;", False),
        # Behind the loop.
        ("L: @%p2 bra E; bar.sync 0; bra L; E: st.global.u32 [%d1], %r1; ret;", True),
    ],
)
def test_behind(body, behind):
    flow = flow_of(body)
    assert flow.behind(sites(flow, "bar")[0], sites(flow, "st")[0]) is behind


LOCATED = """
    .loc 1 30 0
    mov.u32 %r1, 0;
    .loc 2 7 3, function_name $L__info, inlined_at 1 41 9
    st.global.u32 [%d1], %r1;
    .loc 3 5 1, function_name $L__info, inlined_at 2 7 3
    red.global.add.u32 [%d1], %r1;
    .loc 2 9 1, function_name $L__info, inlined_at 1 50 2
    .loc 2 8 1, function_name $L__info, inlined_at 2 9 1
    bar.sync 0;
    ret;
"""
FILES = {1: "main.cu", 2: "/opt/cuda/include/intrinsics.hpp", 3: "helpers.cuh"}


@pytest.mark.parametrize(
    ("opcode", "place"),
    [
        ("mov", ("main.cu", 30)),
        ("st", ("main.cu", 41)),
        ("red", (FILES[3], 5)),
        ("bar", ("main.cu", 50)),
    ],
)
def test_source_is_the_programs_own(opcode, place):
    flow = flow_of(LOCATED)
    flow = VariantFlow(flow.functions, flow.flows, FILES)
    assert flow.source_of(sites(flow, opcode)[0]) == place


def test_source_of_code_only_in_a_header_is_there():
    flow = flow_of("    .loc 2 7 3\n    bar.sync 0;\n    ret;\n")
    flow = VariantFlow(flow.functions, flow.flows, FILES)
    assert flow.source_of(sites(flow, "bar")[0]) == (FILES[2], 7)
    assert flow.source_of(99) is None


def test_sites_of_no_function():
    flow = flow_of("bar.sync 0; ret;")
    assert not flow.behind(1, 99)
    assert not flow.feeds_swap(99)


@pytest.mark.parametrize(
    ("load", "swap", "feeds"),
    [
        ("ld.global.u32 %r1, [%d1];", "atom.global.cas.b32 %r2, [%d1], %r1, %r3;", True),
        (
            "ld.global.u32 %r1, [%d1]; mov.u32 %r4, %r1;",
            "atom.global.cas.b32 %r2, [%d1], %r4, %r3;",
            True,
        ),
        (
            "cvta.to.global.u64 %d2, %d1; ld.global.u32 %r1, [%d2+4];",
            "atom.cas.b32 %r2, [%d1+4], %r1, %r3;",
            True,
        ),
        (
            "mov.u64 %d3, %d1; ld.global.u32 %r1, [%d3];",
            "mov.u64 %d2, %d3; atom.global.cas.b32 %r2, [%d2], %r1, %r3;",
            True,
        ),
        ("ld.global.u32 %r1, [%d1];", "atom.global.cas.b32 %r2, [%d1+4], %r1, %r3;", False),
        ("ld.global.u32 %r1, [%d1];", "atom.global.cas.b32 %r2, [%d1], %r3, %r1;", False),
        ("ld.global.u32 %r1, [%d1];", "atom.global.add.u32 %r2, [%d1], %r1;", False),
    ],
)
def test_feeds_swap(load, swap, feeds):
    flow = flow_of(load + swap + "ret;")
    place = next(
        k
        for k, o in enumerate(flow.flows["k"].operations)
        if o.opcode == "ld" and o.space is not None and o.space.value == "global"
    )
    assert flow.feeds_swap(place) is feeds
