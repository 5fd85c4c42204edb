"""What a kernel did wrong, told by both engines in the same words that matter."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from tests.helpers.kernels import kernel
from va100 import errors
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine


def _run(
    body: str, engine: Engine, arena: Arena, *, grid: int = 3, block: int = 64, before: str = ""
) -> tuple[int, bytes]:
    """Run a kernel on a buffer of 64 words; returns the buffer's address and the output."""
    loaded = load(kernel("wrong", "u64", body, before=before), arena, "wrong.ptx")
    try:
        place = loaded.buffer(np.zeros(64, np.uint32))
        outcome = loaded.run(engine, "wrong", (grid,), (block,), pack(place))
        return place, outcome.output
    finally:
        loaded.close()


def _line(body: str, mark: str, before: str = "") -> int:
    text = kernel("wrong", "u64", body, before=before)
    return text[: text.index(mark)].count("\n") + 1


class TestIllegalAddress:
    def test_past_the_end_of_a_buffer(self, engine: Engine, arena: Arena) -> None:
        """Thread 70 is the first whose word lies past the granule after the buffer."""
        body = """
    mul.wide.u32 %d1, %r0, 4;
    add.s64 %d1, %d1, %d60;
    ld.global.u32 %r4, [%d1];
    ret;
"""
        with pytest.raises(errors.IllegalAddress) as caught:
            _run(body, engine, arena)
        fault = caught.value
        assert fault.kernel == "wrong"
        assert fault.cta == (1, 0, 0)
        assert fault.thread == (0, 0, 0)
        assert fault.line == _line(body, "ld.global.u32 %r4")
        assert fault.size == 4
        assert fault.space == "global"
        assert "64" in str(fault) or "256" in fault.nearest
        assert "ld.global.u32" in fault.instruction

    def test_null(self, engine: Engine, arena: Arena) -> None:
        body = "    mov.u64 %d1, 0;\n    st.u32 [%d1+8], %r0;\n    ret;\n"
        with pytest.raises(errors.IllegalAddress) as caught:
            _run(body, engine, arena)
        assert caught.value.address == 8
        assert caught.value.size == 4

    def test_all_of_the_last_unit_of_shared_memory_is_there(
        self, engine: Engine, arena: Arena
    ) -> None:
        """A chip gives 128 bytes at a time; compilers load vectors across the end of a variable."""
        body = """
    .shared .align 16 .b8 box[28];
    mov.u32 %r4, box;
    st.shared.u32 [%r4+16], %r0;
    ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4+16];
    st.shared.u32 [%r4+124], %r0;
    mov.u32 %r9, %total_smem_size;
    st.global.u32 [%d60], %r9;
    ret;
"""
        loaded = load(kernel("test", "u64", body), arena)
        out = loaded.buffer(np.zeros(1, np.uint32))
        loaded.run(engine, "test", (1,), (1,), pack(out))
        assert loaded.read(out, np.uint32, 1)[0] == 128
        loaded.close()

    def test_shared_past_its_window(self, engine: Engine, arena: Arena) -> None:
        body = """
    .shared .align 4 .b8 box[128];
    mov.u32 %r4, box;
    shl.b32 %r5, %r3, 8;
    add.u32 %r4, %r4, %r5;
    st.shared.u32 [%r4], %r0;
    ret;
"""
        with pytest.raises(errors.IllegalAddress) as caught:
            _run(body, engine, arena)
        assert caught.value.space == "shared"
        assert caught.value.thread == (1, 0, 0)

    def test_freed_memory(self, engine: Engine, arena: Arena) -> None:
        loaded = load(
            kernel("wrong", "u64", "    ld.global.u32 %r4, [%d60];\n    ret;\n"), arena, "wrong.ptx"
        )
        place = arena.allocate(4096)
        arena.free(place)
        with pytest.raises(errors.IllegalAddress) as caught:
            loaded.run(engine, "wrong", (1,), (32,), pack(place))
        assert caught.value.address == place
        loaded.close()

    def test_atomic(self, engine: Engine, arena: Arena) -> None:
        body = "    mov.u64 %d1, 64;\n    atom.global.add.u32 %r4, [%d1], 1;\n    ret;\n"
        with pytest.raises(errors.IllegalAddress):
            _run(body, engine, arena)

    def test_only_lanes_that_execute_count(self, engine: Engine, arena: Arena) -> None:
        body = """
    setp.eq.u32 %p1, %r0, 77;
    mov.u64 %d1, 4096;
    @%p1 ld.global.u32 %r4, [%d1];
    ret;
"""
        with pytest.raises(errors.IllegalAddress) as caught:
            _run(body, engine, arena)
        assert caught.value.cta == (1, 0, 0)
        assert caught.value.thread == (13, 0, 0)

    def test_machine_survives(self, engine: Engine, arena: Arena) -> None:
        with pytest.raises(errors.IllegalAddress):
            _run("    mov.u64 %d1, 8;\n    ld.u32 %r4, [%d1];\n    ret;\n", engine, arena)
        _run("    st.global.u32 [%d60], %r0;\n    ret;\n", engine, arena)


class TestMisalignedAddress:
    @pytest.mark.parametrize(("access", "size"), [
        ("ld.global.u32 %r4", 4), ("ld.global.v4.u32 {%r4, %r5, %r6, %r7}", 16),
        ("ld.global.u64 %d2", 8), ("ld.global.v2.u8 {%r4, %r5}", 2),
    ])  # fmt: skip
    def test_load(self, access: str, size: int, engine: Engine, arena: Arena) -> None:
        body = f"    add.s64 %d1, %d60, {size // 2 or 1};\n    {access}, [%d1];\n    ret;\n"
        with pytest.raises(errors.MisalignedAddress) as caught:
            _run(body, engine, arena)
        assert caught.value.size == size
        assert caught.value.address % size == size // 2

    def test_shared(self, engine: Engine, arena: Arena) -> None:
        body = """
    .shared .align 8 .b8 box[512];
    mov.u32 %r4, box;
    st.shared.u64 [%r4+4], %d60;
    ret;
"""
        with pytest.raises(errors.MisalignedAddress):
            _run(body, engine, arena)


class TestStops:
    def test_trap(self, engine: Engine, arena: Arena) -> None:
        body = """
    setp.ne.u32 %p1, %r0, 100;
    @%p1 bra FINE;
    trap;
FINE:
    ret;
"""
        with pytest.raises(errors.TrapExecuted) as caught:
            _run(body, engine, arena)
        assert caught.value.cta == (1, 0, 0)
        assert caught.value.thread == (36, 0, 0)
        assert caught.value.line == _line(body, "trap;")

    def test_assertion(self, engine: Engine, arena: Arena) -> None:
        before = """
.extern .func __assertfail(
    .param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);
.global .align 1 .b8 message[8] = {120, 32, 62, 32, 48, 0};
.global .align 1 .b8 file[8] = {97, 46, 99, 117, 0};
"""
        body = """
    setp.ne.u32 %p1, %r0, 5;
    @%p1 ret;
    {
    .param .b64 m;
    .param .b64 f;
    .param .b32 l;
    .param .b64 n;
    .param .b64 c;
    mov.u64 %d1, message;
    mov.u64 %d2, file;
    st.param.b64 [m], %d1;
    st.param.b64 [f], %d2;
    st.param.b32 [l], 17;
    st.param.b64 [n], %d1;
    st.param.b64 [c], 1;
    call.uni __assertfail, (m, f, l, n, c);
    }
    ret;
"""
        with pytest.raises(errors.AssertFailed) as caught:
            _run(body, engine, arena, before=before)
        assert caught.value.condition == "x > 0"
        assert caught.value.thread == (5, 0, 0)

    def test_barrier_that_cannot_complete(self, engine: Engine, arena: Arena) -> None:
        body = """
    setp.lt.u32 %p1, %r3, 32;
    @%p1 bra OTHER;
    bar.sync 1, 64;
OTHER:
    bar.sync 2, 64;
    ret;
"""
        with pytest.raises(errors.Deadlock):
            _run(body, engine, arena)

    def test_vote_with_a_lane_that_waits_elsewhere(self, engine: Engine, arena: Arena) -> None:
        body = """
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra OTHER;
    vote.sync.any.pred %p2, %p1, -1;
    bra DONE;
OTHER:
    bar.sync 0;
DONE:
    ret;
"""
        with pytest.raises(errors.Deadlock):
            _run(body, engine, arena, block=32)

    def test_call_of_nothing(self, engine: Engine, arena: Arena) -> None:
        body = """
    mov.u64 %d1, 12345;
    prototype: .callprototype _ ();
    call %d1, (), prototype;
    ret;
"""
        with pytest.raises(errors.DeviceFault):
            _run(body, engine, arena)

    def test_endless_recursion(self, engine: Engine, arena: Arena) -> None:
        before = """
.func deeper(.param .b32 n)
{
    .reg .b32 %r<4>;
    .reg .pred %p<2>;
    .local .align 16 .b8 room[512];
    ld.param.b32 %r1, [n];
    st.local.u32 [room], %r1;
    setp.eq.u32 %p1, %r1, 0xffffffff;
    @%p1 ret;
    {
    .param .b32 a;
    st.param.b32 [a], %r1;
    call deeper, (a);
    }
    ret;
}
"""
        body = """
    {
    .param .b32 a;
    st.param.b32 [a], %r0;
    call deeper, (a);
    }
    ret;
"""
        with pytest.raises(errors.DeviceFault):
            _run(body, engine, arena, before=before, block=32, grid=1)


PRINT_ROOM = """
    mov.u64 %d1, room;
    cvta.local.u64 %d1, %d1;
    mov.u64 %d2, text;
    {
    .param .b64 f;
    .param .b64 a;
    .param .b32 r;
    st.param.b64 [f], %d2;
    st.param.b64 [a], %d1;
    call.uni (r), vprintf, (f, a);
    ld.param.b32 %r4, [r];
    }
    ret;
"""
"""Print `text` with the arguments that lie in `room`."""

PRINTS = [
    ("n=%d u=%u x=%x|", "iii", (-5, 4294967295, 48879), b"n=-5 u=4294967295 x=beef|"),
    ("%5d|%-5d|%05d|%+d", "iiii", (42, 42, 42, 42), b"   42|42   |00042|+42"),
    ("%lld %llu %llx", "qqq", (-7, 2**64 - 1, 255), b"-7 18446744073709551615 ff"),
    ("%f %.2f %8.3f|%e %g", "ddddd", (1.5, 2.345, -1.0, 1234.5, 0.0001),
     b"1.500000 2.35   -1.000|1.234500e+03 0.0001"),
    ("%c%c%%%o %#x", "iiii", (72, 105, 8, 255), b"Hi%10 0xff"),
    ("%*d|%-*d|%.*f", "iiiiid", (6, 42, 6, 42, 1, 2.55), b"    42|42    |2.5"),
    ("no arguments\n", "", (), b"no arguments\n"),
    ("%hd %hhu", "ii", (70000, 300), b"4464 44"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kinds", "values", "want"), PRINTS, ids=[p[0] for p in PRINTS])
def test_printf(
    text: str, kinds: str, values: tuple, want: bytes, engine: Engine, arena: Arena
) -> None:
    packed = b""
    for kind, value in zip(kinds, values, strict=True):
        size = 4 if kind == "i" else 8
        packed += b"\0" * (-len(packed) % size)
        raw = np.array([value], np.float64) if kind == "d" else None
        packed += (
            raw.tobytes() if raw is not None else (value % (1 << 8 * size)).to_bytes(size, "little")
        )
    packed = packed.ljust(max(8, -(-len(packed) // 8) * 8), b"\0")
    stores = "\n".join(
        f"    mov.u64 %d5, {int.from_bytes(packed[i : i + 8], 'little'):#x};\n"
        f"    st.local.u64 [room+{i}], %d5;"
        for i in range(0, len(packed), 8)
    )
    letters = ", ".join(map(str, [*text.encode(), 0]))
    before = f"""
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[{len(text) + 1}] = {{{letters}}};
"""
    body = f"""
    .local .align 8 .b8 room[{len(packed)}];
{stores}
{PRINT_ROOM}"""
    _, output = _run(body, engine, arena, grid=1, block=1, before=before)
    assert output == want


def test_printf_order_and_strings(engine: Engine, arena: Arena) -> None:
    """Lanes print in order; a string argument is read from memory."""
    before = """
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[8] = {37, 115, 37, 100, 59, 0};
.global .align 1 .b8 word[4] = {111, 107, 0};
"""
    body = f"""
    .local .align 8 .b8 room[16];
    mov.u64 %d3, word;
    st.local.u64 [room], %d3;
    st.local.u32 [room+8], %r0;
{PRINT_ROOM}"""
    _, output = _run(body, engine, arena, grid=2, block=3, before=before)
    assert output == b"".join(b"ok%d;" % i for i in range(6))


def test_device_heap(engine: Engine, arena: Arena) -> None:
    """malloc, use, free."""
    before = """
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
"""
    body = """
    {
    .param .b64 n;
    .param .b64 r;
    st.param.b64 [n], 64;
    call.uni (r), malloc, (n);
    ld.param.b64 %d1, [r];
    }
    st.u32 [%d1+60], %r0;
    ld.u32 %r5, [%d1+60];
    mul.wide.u32 %d2, %r0, 4;
    add.s64 %d2, %d2, %d60;
    st.global.u32 [%d2], %r5;
    {
    .param .b64 p;
    st.param.b64 [p], %d1;
    call.uni free, (p);
    }
    ret;
"""
    loaded = load(kernel("wrong", "u64", body, before=before), arena, "heap.ptx")
    try:
        place = loaded.buffer(np.zeros(64, np.uint32))
        loaded.run(engine, "wrong", (2,), (32,), pack(place))
        assert loaded.read(place, np.uint32, 64).tolist() == list(range(64))
    finally:
        loaded.close()
