"""What goes wrong at matrix instructions, told by both engines with kernel, line and lane."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from va100 import errors
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine

MMA = (
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
    "{%f0, %f1, %f2, %f3}, {%r1, %r2}, {%r3}, {%f0, %f1, %f2, %f3};"
)
SPARSE = (
    "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, "
    "{%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}, {%f0, %f1, %f2, %f3}, %r8, 1;"
)


def _module(body: str) -> str:
    return f"""
.version 8.6
.target sm_80
.address_size 64
.visible .entry wrong(.param .u64 buffer)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<16>;
    .reg .b64 %d<8>;
    .reg .f32 %f<8>;
    .shared .align 128 .b8 box[1024];
    mov.u32 %r0, %tid.x;
    ld.param.u64 %d0, [buffer];
    mov.u32 %r10, box;
{body}
    ret;
}}
"""


def _fault(
    body: str, engine: Engine, arena: Arena, kind: type[errors.DeviceFault], *, block: int = 32
) -> errors.DeviceFault:
    loaded = load(_module(body), arena, "wrong.ptx")
    try:
        place = loaded.buffer(np.zeros(64, np.uint32))
        with pytest.raises(kind) as caught:
            loaded.run(engine, "wrong", (1,), (block,), pack(place))
    finally:
        loaded.close()
    fault = caught.value
    assert fault.kernel == "wrong"
    assert fault.cta == (0, 0, 0)
    lines = _module(body).splitlines()
    assert fault.instruction.split()[0] in lines[fault.line - 1]
    assert re.search(r"(mma|matrix)", lines[fault.line - 1])
    return fault


def _runs(body: str, engine: Engine, arena: Arena, *, block: int = 32) -> None:
    loaded = load(_module(body), arena, "right.ptx")
    try:
        place = loaded.buffer(np.zeros(64, np.uint32))
        loaded.run(engine, "wrong", (1,), (block,), pack(place))
    finally:
        loaded.close()


class TestMissingLanes:
    def test_guard(self, engine: Engine, arena: Arena) -> None:
        body = f"    setp.ge.u32 %p1, %r0, 20;\n    @%p1 {MMA}"
        fault = _fault(body, engine, arena, errors.IllegalInstruction)
        assert "needs all 32 lanes" in str(fault)
        assert "lanes 0xfff00000" in str(fault)
        assert "lane 0 does not" in str(fault)
        assert fault.thread == (20, 0, 0)

    def test_others_have_exited(self, engine: Engine, arena: Arena) -> None:
        body = f"    setp.eq.u32 %p1, %r0, 5;\n    @%p1 ret;\n    {MMA}"
        fault = _fault(body, engine, arena, errors.IllegalInstruction)
        assert "lane 5 does not" in str(fault)
        assert fault.thread == (0, 0, 0)

    def test_others_wait_at_a_barrier(self, engine: Engine, arena: Arena) -> None:
        body = f"""
    setp.lt.u32 %p1, %r0, 16;
    @%p1 bra PRODUCT;
    bar.sync 0;
    bra DONE;
PRODUCT:
    {MMA}
DONE:"""
        fault = _fault(body, engine, arena, errors.IllegalInstruction)
        assert "lane 16 does not" in str(fault)

    def test_others_are_at_another_one(self, engine: Engine, arena: Arena) -> None:
        body = f"""
    setp.lt.u32 %p1, %r0, 16;
    @%p1 bra PRODUCT;
    {MMA}
    bra DONE;
PRODUCT:
    {MMA}
DONE:"""
        _fault(body, engine, arena, errors.IllegalInstruction)

    @pytest.mark.parametrize("text", [
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r10];",
        "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;",
        "wmma.load.c.sync.aligned.row.m8n8k32.s32 {%r1, %r2}, [%d0];",
        "wmma.store.d.sync.aligned.row.m8n8k32.s32 [%d0], {%r1, %r2};", SPARSE,
    ])  # fmt: skip
    def test_every_opcode(self, text: str, engine: Engine, arena: Arena) -> None:
        body = f"    setp.ne.u32 %p1, %r0, 31;\n    @%p1 {text}"
        fault = _fault(body, engine, arena, errors.IllegalInstruction)
        assert "lane 31 does not" in str(fault)

    def test_small_block(self, engine: Engine, arena: Arena) -> None:
        fault = _fault(f"    {MMA}", engine, arena, errors.IllegalInstruction, block=20)
        assert "lanes 0x000fffff" in str(fault)

    def test_second_warp_of_a_ragged_block(self, engine: Engine, arena: Arena) -> None:
        fault = _fault(f"    {MMA}", engine, arena, errors.IllegalInstruction, block=40)
        assert fault.thread == (32, 0, 0)


class TestLanesThatCome:
    def test_late(self, engine: Engine, arena: Arena) -> None:
        """Lanes that take a detour laid out behind the instruction are waited for."""
        _runs(f"""
    setp.lt.u32 %p1, %r0, 13;
    @%p1 bra COLD;
JOIN:
    {MMA}
    {MMA}
    ret;
COLD:
    add.u32 %r5, %r5, 1;
    bra JOIN;""", engine, arena)  # fmt: skip

    def test_guard_that_holds_nowhere(self, engine: Engine, arena: Arena) -> None:
        _runs(f"""
    setp.eq.u32 %p1, %r0, 77;
    @%p1 {MMA}
    mov.u64 %d1, 64;
    mov.u32 %r5, 3;
    @%p1 wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {{%r1}}, [%d1], %r5;
    @%p1 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r1}}, [%r0];
    @%p1 {SPARSE}""", engine, arena)  # fmt: skip


class TestRows:
    def test_misaligned(self, engine: Engine, arena: Arena) -> None:
        body = """
    shl.b32 %r5, %r0, 4;
    setp.eq.u32 %p1, %r0, 11;
    @%p1 add.u32 %r5, %r5, 8;
    add.u32 %r5, %r5, %r10;
    ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%r5];"""
        fault = _fault(body, engine, arena, errors.MisalignedAddress)
        assert isinstance(fault, errors.MisalignedAddress)
        assert (fault.thread, fault.size, fault.space) == ((11, 0, 0), 16, "shared")

    @pytest.mark.parametrize("generic", [False, True])
    def test_outside(self, generic: bool, engine: Engine, arena: Arena) -> None:
        """Lane 15's row begins where shared memory ends."""
        address, space = ("%d1", "") if generic else ("%r5", ".shared")
        body = f"""
    mul.lo.u32 %r5, %r0, 80;
    sub.u32 %r5, %r5, 176;
    setp.lt.u32 %p1, %r0, 3;
    selp.u32 %r5, 0, %r5, %p1;
    add.u32 %r5, %r5, %r10;
    cvt.u64.u32 %d1, %r5;
    cvta.shared.u64 %d1, %d1;
    ldmatrix.sync.aligned.m8n8.x2{space}.b16 {{%r1, %r2}}, [{address}];"""
        fault = _fault(body, engine, arena, errors.IllegalAddress)
        assert isinstance(fault, errors.IllegalAddress)
        assert (fault.thread, fault.size, fault.space) == ((15, 0, 0), 16, "shared")
        assert fault.address == 1024

    def test_lanes_without_a_row_may_point_anywhere(self, engine: Engine, arena: Arena) -> None:
        body = """
    shl.b32 %r5, %r0, 4;
    setp.gt.u32 %p1, %r0, 15;
    @%p1 mov.u32 %r5, 0x7fffffff;
    ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%r5];"""
        _runs(body, engine, arena)


class TestTiles:
    def test_outside(self, engine: Engine, arena: Arena) -> None:
        """256 bytes: of eight rows, 64 bytes apart, the fifth and the rest are beyond."""
        body = """
    mov.u32 %r5, 16;
    wmma.load.c.sync.aligned.row.m8n8k32.global.s32 {%r1, %r2}, [%d0], %r5;"""
        fault = _fault(body, engine, arena, errors.IllegalAddress)
        assert isinstance(fault, errors.IllegalAddress)
        assert fault.thread == (16, 0, 0)
        assert fault.space == "global"

    def test_misaligned(self, engine: Engine, arena: Arena) -> None:
        body = """
    wmma.store.d.sync.aligned.row.m8n8k32.global.s32 [%d0+2], {%r1, %r2};"""
        fault = _fault(body, engine, arena, errors.MisalignedAddress)
        assert fault.thread == (0, 0, 0)

    def test_addresses_differ(self, engine: Engine, arena: Arena) -> None:
        body = """
    mul.lo.u32 %r5, %r0, %r0;
    shr.u32 %r5, %r5, 8;
    mul.wide.u32 %d1, %r5, 32;
    add.s64 %d1, %d1, %d0;
    wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r1}, [%d1];"""
        fault = _fault(body, engine, arena, errors.IllegalInstruction)
        assert "lane 16 gives address" in str(fault)
        assert fault.thread == (16, 0, 0)

    def test_fraction_of_a_byte(self, engine: Engine, arena: Arena) -> None:
        body = """
    mov.u32 %r5, 33;
    wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r1}, [%d0], %r5;"""
        fault = _fault(body, engine, arena, errors.IllegalInstruction)
        assert "33 elements of 4 bits" in str(fault)


class TestMetadata:
    def test_one_position_twice(self, engine: Engine, arena: Arena) -> None:
        """Lane 14 of selector 1 holds rows 3 and 11, chunks 0 to 3: nibble 6 is row 11's third."""
        body = f"""
    mov.u32 %r8, 0x44444444;
    setp.eq.u32 %p1, %r0, 14;
    @%p1 mov.u32 %r8, 0x4a444444;
    {SPARSE}"""
        fault = _fault(body, engine, arena, errors.IllegalInstruction)
        assert "metadata 0xa of row 11, chunk 2, in lane 14" in str(fault)
        assert "must differ" in str(fault)
        assert fault.thread == (14, 0, 0)

    def test_lanes_of_another_selector_are_not_read(self, engine: Engine, arena: Arena) -> None:
        _runs(f"""
    mov.u32 %r8, 0x44444444;
    setp.eq.u32 %p1, %r0, 13;
    @%p1 mov.u32 %r8, 0;
    {SPARSE}""", engine, arena)  # fmt: skip

    def test_order(self, engine: Engine, arena: Arena) -> None:
        text = SPARSE.replace("mma.sp", "mma.sp::ordered_metadata")
        body = f"    mov.u32 %r8, 0x44444414;\n    {text}"
        fault = _fault(body, engine, arena, errors.IllegalInstruction)
        assert "metadata 0x1 of row 0, chunk 1, in lane 2: its two positions must ascend" in str(
            fault
        )

    @pytest.mark.parametrize(
        ("shape", "kind", "registers", "where"),
        [
            ("m16n8k16", "f32.tf32.tf32.f32", 4, "row 0, chunk 2, in lane 0"),
            ("m16n8k64", "s32.s8.s8.s32", 4, "row 0, chunk 2, in lane 0"),
            ("m16n8k128", "s32.s4.s4.s32", 4, "row 0, chunk 2, in lane 0"),
            ("m16n8k32", "s32.u8.s8.s32", 2, "row 0, chunk 2, in lane 0"),
        ],
    )
    def test_other_types(
        self, shape: str, kind: str, registers: int, where: str, engine: Engine, arena: Arena
    ) -> None:
        names = ", ".join(f"%r{1 + i}" for i in range(registers))
        total = "{%f0, %f1, %f2, %f3}" if kind[0] == "f" else "{%r11, %r12, %r13, %r14}"
        body = f"""
    mov.u32 %r8, 0x44444044;
    mma.sp.sync.aligned.{shape}.row.col.{kind}
        {total}, {{{names}}}, {{{names}}}, {total}, %r8, 0;"""
        fault = _fault(body, engine, arena, errors.IllegalInstruction)
        assert f"metadata 0x0 of {where}" in str(fault)
        assert ("tf32 takes 0x4 and 0xe" in str(fault)) == ("tf32" in kind)
