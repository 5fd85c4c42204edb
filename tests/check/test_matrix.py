"""Matrix instructions under the checker: their words are read, written and ordered like others'."""

from __future__ import annotations

import pytest

from tests.helpers.checking import bench

HEAD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .reg .pred %p<4>;
    .reg .b32 %r<16>;
    .reg .b64 %d<8>;
    .shared .align 16 .b8 box[1024];
    ld.param.u64 %d0, [in];
    ld.param.u64 %d1, [out];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, box;
    shl.b32 %r2, %r0, 4;
    add.u32 %r2, %r2, %r1;
    xor.b32 %r3, %r2, 512;
    setp.eq.u32 %p1, %r0, 99;
"""
STORE = "    st.shared.v4.u32 [%r2], {%r0, %r0, %r0, %r0};\n"
LOAD = "    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r3];\n"
BARRIER = "    bar.sync 0;\n"
PUT = "    wmma.store.d.sync.aligned.row.m8n8k32.shared.s32 [%r1], {%r4, %r5};\n"
GET = "    wmma.load.c.sync.aligned.row.m8n8k32.shared.s32 {%r4, %r5}, [%r1];\n"


def _kinds(body: str, *, block: int = 64, in_bytes: int = 4096, defined: bool = True) -> set[str]:
    with bench(HEAD + body + "    ret;\n}\n") as made:
        places = made.buffer(in_bytes, defined=defined), made.buffer(4096)
        made.run("k", (1,), (block,), *places)
        return {finding.kind for finding in made.found()}


class TestShared:
    def test_rows_that_another_warp_stored(self) -> None:
        assert "race" in _kinds(STORE + LOAD)
        assert _kinds(STORE + BARRIER + LOAD) == set()

    def test_rows_that_nobody_stored(self) -> None:
        assert _kinds(LOAD, block=32) == {"uninitialised"}

    def test_rows_that_are_not_read(self) -> None:
        """Of one matrix eight lanes' rows are read; the others' addresses do not count."""
        half = (
            "    setp.lt.u32 %p2, %r0, 8;\n    @%p2 st.shared.v4.u32 [%r2], {%r0, %r0, %r0, %r0};\n"
        )
        sync = "    bar.warp.sync -1;\n"
        one = "    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r2];\n"
        two = "    ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r4, %r5}, [%r2];\n"
        assert _kinds(half + sync + one, block=32) == set()
        assert _kinds(half + sync + two, block=32) == {"uninitialised"}

    def test_a_tile_that_two_warps_store(self) -> None:
        assert _kinds(PUT) == {"race"}

    def test_a_tile_stored_and_loaded(self) -> None:
        assert _kinds(PUT + "    bar.warp.sync -1;\n" + GET, block=32) == set()


class TestGlobal:
    LOAD = "    wmma.load.c.sync.aligned.row.m8n8k32.global.s32 {%r4, %r5}, [%d0], 8;\n"

    def test_undefined(self) -> None:
        assert _kinds(self.LOAD, block=32) == set()
        assert _kinds(self.LOAD, block=32, defined=False) == {"uninitialised"}

    @pytest.mark.parametrize(("size", "kinds"), [(256, set()), (252, {"out-of-bounds"})])
    def test_bounds_to_the_byte(self, size: int, kinds: set[str]) -> None:
        assert _kinds(self.LOAD, block=32, in_bytes=size) == kinds


def test_missing_lanes() -> None:
    body = (
        "    setp.lt.u32 %p2, %r0, 16;\n    @%p2 movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r5;\n"
    )
    assert _kinds(body, block=32) == {"illegal-instruction"}
