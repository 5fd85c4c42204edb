"""How often a warp waits for loads."""

from __future__ import annotations

import pytest

from tests.helpers.kernels import HEADER
from va100.ptx.cfg import build_flow
from va100.ptx.parser import parse
from va100.ptx.waits import (
    REQUESTS_IN_FLIGHT,
    constant_bytes,
    constant_waits,
    load_waits,
    looped_instructions,
)

DECLARED = """
    .reg .pred %p<4>;
    .reg .b32 %r<40>;
    .reg .b64 %d<40>;
    .shared .align 4 .b8 box[4096];
"""


def waits_of(body):
    text = f"{HEADER}.visible .entry k(.param .u64 data)\n{{{DECLARED}{body}\n    ret;\n}}\n"
    module = parse(text, "k.ptx")
    return [wait for wait in load_waits(build_flow(module, module.kernels[0])) if wait]


def loads(count, base="%d0"):
    return "".join(f"ld.global.u32 %r{n}, [{base}+{4 * n}];\n" for n in range(count))


class TestLoadWaits:
    def test_a_load_alone_is_waited_for(self):
        assert waits_of(loads(1)) == [1.0]

    def test_loads_that_do_not_need_each_other_are_waited_for_together(self):
        assert sum(waits_of(loads(4))) == pytest.approx(1.0)

    def test_no_more_than_are_in_flight_at_once(self):
        assert sum(waits_of(loads(20))) == pytest.approx(20 / REQUESTS_IN_FLIGHT)

    def test_pointers_are_waited_for_one_after_another(self):
        chase = "".join(f"ld.global.u64 %d{n + 1}, [%d{n}];\n" for n in range(5))
        assert sum(waits_of(chase)) == pytest.approx(5.0)

    def test_an_address_that_was_reckoned_from_a_load_needs_it(self):
        body = loads(1) + "cvt.u64.u32 %d1, %r0;\nadd.u64 %d2, %d1, 4;\n" + loads(2, "%d2")
        assert sum(waits_of(body)) == pytest.approx(2.0)

    def test_stores_shared_memory_and_parameters_are_not_waited_for(self):
        body = "ld.param.u64 %d0, [data];\nld.shared.u32 %r0, [box];\nst.global.u32 [%d0], %r0;\n"
        assert waits_of(body) == []

    def test_a_barrier_parts_loads(self):
        assert sum(waits_of(loads(2) + "bar.sync 0;\n" + loads(2))) == pytest.approx(2.0)

    def test_a_loop_waits_each_time(self):
        body = f"TOP:\n{loads(2)}setp.lt.u32 %p0, %r0, 9;\n@%p0 bra TOP;\n{loads(2)}"
        assert sum(waits_of(body)) == pytest.approx(2.0)

    def test_short_arms_part_nothing(self):
        arm = "@%p{n} bra L{n};\nld.global.u32 %r{n}, [%d0+{n}];\nL{n}:\n"
        body = "".join(arm.format(n=n) for n in range(4))
        assert sum(waits_of(body)) == pytest.approx(1.0)

    def test_long_arms_do(self):
        work = "add.u32 %r9, %r9, 1;\n" * 20
        body = f"{loads(1)}@%p0 bra L;\n{work}{loads(1)}L:\n{loads(1)}"
        assert sum(waits_of(body)) > 1.5

    def test_matrices_are_waited_for_when_they_are_loaded_only(self):
        tile = "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}"
        product = "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32"
        load = f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {tile}, [%d0];\n"
        acc = "{" + ", ".join(f"%f{n}" for n in range(8)) + "}"
        assert waits_of(load) == [1.0]
        assert waits_of(f".reg .f32 %f<8>;\n{product} {acc}, {tile}, {tile}, {acc};\n") == []


def test_instructions_of_a_loop_are_those_between_a_jump_back_and_its_target():
    body = "mov.u32 %r1, 0;\nTOP:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p0, %r1, 9;\n"
    text = f"{HEADER}.visible .entry k()\n{{{DECLARED}{body}@%p0 bra TOP;\nret;\n}}\n"
    module = parse(text, "k.ptx")
    assert looped_instructions(build_flow(module, module.kernels[0])) == {1, 2, 3}


def constants_of(body):
    text = (
        f"{HEADER}.const .align 4 .b8 table[512];\n.const .f32 scale;\n"
        f".visible .entry k(.param .u64 data)\n{{{DECLARED}{body}\n    ret;\n}}\n"
    )
    module = parse(text, "k.ptx")
    return sum(constant_waits(build_flow(module, module.kernels[0]))), constant_bytes(module)


class TestConstantWaits:
    def test_a_known_place_is_an_operand_and_waits_for_nothing(self):
        body = (
            "ld.const.f32 %r0, [scale];\nld.const.u32 %r1, [table+8];\n"
            "mov.u64 %d0, table;\nadd.s64 %d1, %d0, 16;\nld.const.u32 %r2, [%d1+4];\n"
        )
        assert constants_of(body) == (0.0, 516)

    def test_a_reckoned_place_is_waited_for(self):
        body = "mov.u64 %d0, table;\nadd.s64 %d1, %d0, %d9;\nld.const.u32 %r2, [%d1];\n"
        assert constants_of(body) == (1.0, 516)

    def test_places_found_in_the_table_are_waited_for_one_after_another(self):
        step = "ld.const.u32 %r1, [%d1];\ncvt.u64.u32 %d2, %r1;\nadd.s64 %d1, %d1, %d2;\n"
        assert constants_of("mov.u64 %d1, table;\n" + 3 * step)[0] == pytest.approx(3.0)

    def test_an_address_that_changes_in_a_loop_is_not_known(self):
        body = (
            "mov.u64 %d1, table;\nTOP:\nld.const.u32 %r1, [%d1];\nadd.s64 %d1, %d1, %d3;\n"
            "setp.lt.u32 %p0, %r1, 9;\n@%p0 bra TOP;\n"
        )
        assert constants_of(body)[0] == pytest.approx(1.0)

    def test_loads_of_other_memory_do_not_count(self):
        assert constants_of(loads(3))[0] == 0.0
