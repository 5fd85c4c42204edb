"""Functions that come with CUDA and not with the program, on both engines."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from tests.helpers.kernels import HEADER
from va100 import errors
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.ptx.link import linked_text
from va100.ptx.parser import parse

GRID_SYNC = (
    HEADER
    + """
.extern .func (.param .b32 r) cudaCGSynchronize (.param .b64 handle, .param .b32 flags);
.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle (.param .b32 scope);
.visible .entry turns(.param .u64 cells, .param .u64 out, .param .u32 scope)
{
    .reg .pred %p<2>;
    .reg .b32 %r<12>;
    .reg .b64 %d<8>;
    ld.param.u64 %d1, [cells];
    ld.param.u64 %d2, [out];
    ld.param.u32 %r1, [scope];
    {
    .param .b32 a;
    .param .b64 b;
    st.param.b32 [a], %r1;
    call.uni (b), cudaCGGetIntrinsicHandle, (a);
    ld.param.b64 %d3, [b];
    }
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %nctaid.x;
    mov.u32 %r4, %tid.x;
    mov.u32 %r5, %ntid.x;
    mad.lo.u32 %r6, %r2, %r5, %r4;
    mul.wide.u32 %d4, %r6, 4;
    add.s64 %d5, %d1, %d4;
    mov.u32 %r7, 0;
TURN:
    mad.lo.u32 %r8, %r7, 1000, %r6;
    st.global.u32 [%d5], %r8;
    call.uni sync, (%d3);
    // of the thread of the same number in the next CTA
    add.u32 %r9, %r2, 1;
    rem.u32 %r9, %r9, %r3;
    mad.lo.u32 %r9, %r9, %r5, %r4;
    mul.wide.u32 %d6, %r9, 4;
    add.s64 %d6, %d1, %d6;
    ld.global.u32 %r10, [%d6];
    add.s64 %d6, %d2, %d4;
    st.global.u32 [%d6], %r10;
    call.uni sync, (%d3);
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p1, %r7, 3;
    @%p1 bra TURN;
    ret;
}
.func sync(.param .b64 handle)
{
    .reg .b64 %d;
    ld.param.u64 %d, [handle];
    {
    .param .b64 a;
    .param .b32 b;
    .param .b32 c;
    st.param.b64 [a], %d;
    st.param.b32 [b], 0;
    call.uni (c), cudaCGSynchronize, (a, b);
    }
    ret;
}
"""
)


def _synchronised(engine: Engine, arena: Arena, *, scope: int) -> np.ndarray:
    loaded = load(linked_text([parse(GRID_SYNC)]), arena)
    try:
        cells = loaded.buffer(np.zeros(256, np.uint32))
        out = loaded.buffer(np.zeros(256, np.uint32))
        block = pack(cells, out, np.uint32(scope))
        loaded.run(engine, "turns", (4,), (64,), block, cooperative=True)
        return loaded.read(out, np.uint32, 256)
    finally:
        loaded.close()


def test_a_grid_waits_for_all_of_itself(engine: Engine, arena: Arena) -> None:
    got = _synchronised(engine, arena, scope=1)
    assert got.tolist() == [2000 + (i + 64) % 256 for i in range(256)]


def test_there_is_no_handle_for_several_gpus(engine: Engine, arena: Arena) -> None:
    with pytest.raises(errors.TrapExecuted):
        _synchronised(engine, arena, scope=2)


# ---------------------------------------------------------------- grids that device code launches

DECLARATIONS = """
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2 (
    .param .b64 f, .param .align 4 .b8 grid[12], .param .align 4 .b8 block[12], .param .b32 s);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2 (.param .b64 p, .param .b64 stream);
.extern .func (.param .b32 r) __cudaCDP2GetLastError ();
"""
# log: one word that counts, then what was written in order.
NOTE = """
.func note(.param .b64 log, .param .b32 what)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<3>;
    ld.param.u64 %d1, [log];
    ld.param.u32 %r1, [what];
    atom.global.add.u32 %r2, [%d1], 1;
    mul.wide.u32 %d2, %r2, 4;
    add.s64 %d1, %d1, %d2;
    st.global.u32 [%d1+4], %r1;
    ret;
}
"""


def _launch(kernel: str, what: str, *, stream: int = 0, grid: int = 1, block: int = 1) -> str:
    """Launch a kernel that takes the log and a number; the result is in %r9."""
    return f"""
    {{
    .reg .b64 %place, %code;
    .param .b64 f;
    .param .align 4 .b8 grid[12];
    .param .align 4 .b8 block[12];
    .param .b32 shared;
    .param .b64 room;
    .param .b64 stream;
    .param .b32 error;
    mov.u64 %code, {kernel};
    st.param.b64 [f], %code;
    st.param.b32 [grid], {grid};
    st.param.b32 [grid+4], 1;
    st.param.b32 [grid+8], 1;
    st.param.b32 [block], {block};
    st.param.b32 [block+4], 1;
    st.param.b32 [block+8], 1;
    st.param.b32 [shared], 0;
    call.uni (room), __cudaCDP2GetParameterBufferV2, (f, grid, block, shared);
    ld.param.b64 %place, [room];
    st.u64 [%place], %d1;
    st.u32 [%place+8], {what};
    st.param.b64 [room], %place;
    st.param.b64 [stream], {stream};
    call.uni (error), __cudaCDP2LaunchDeviceV2, (room, stream);
    ld.param.b32 %r9, [error];
    }}
"""


def _noting(what: str) -> str:
    return f"""
    {{
    .param .b64 l;
    .param .b32 w;
    st.param.b64 [l], %d1;
    st.param.b32 [w], {what};
    call.uni note, (l, w);
    }}
"""


def _kernel(name: str, body: str) -> str:
    return f"""
.visible .entry {name}(.param .u64 log, .param .u32 what)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<10>;
    .reg .b64 %d<2>;
    ld.param.u64 %d1, [log];
    ld.param.u32 %r1, [what];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %ctaid.x;
{body}
    ret;
}}
"""


def _logged(
    engine: Engine, arena: Arena, *kernels: str, grid: int = 1, block: int = 1, what: int = 0
) -> list[int]:
    text = HEADER + DECLARATIONS + NOTE + "".join(kernels)
    loaded = load(linked_text([parse(text)]), arena)
    try:
        log = loaded.buffer(np.zeros(256, np.uint32))
        loaded.run(engine, "parent", (grid,), (block,), pack(log, np.uint32(what)))
        count, *entries = loaded.read(log, np.uint32, 256).tolist()
        return entries[:count]
    finally:
        loaded.close()


def test_children_run_after_their_parent_in_launch_order(engine: Engine, arena: Arena) -> None:
    parent = _kernel("parent", _launch("child", "1") + _launch("child", "2") + _noting("9"))
    child = _kernel("child", _noting("%r1"))
    assert _logged(engine, arena, parent, child) == [9, 1, 2]


def test_every_lane_launches(engine: Engine, arena: Arena) -> None:
    body = "mad.lo.u32 %r4, %r3, 40, %r2;" + _launch("child", "%r4")
    child = _kernel("child", _noting("%r1"))
    got = _logged(engine, arena, _kernel("parent", body), child, grid=2, block=40)
    assert sorted(got) == list(range(80))


def test_children_have_shapes_of_their_own(engine: Engine, arena: Arena) -> None:
    child = _kernel("child", "mad.lo.u32 %r4, %r3, 100, %r2;" + _noting("%r4"))
    parent = _kernel("parent", _launch("child", "0", grid=3, block=2))
    assert sorted(_logged(engine, arena, parent, child)) == [0, 1, 100, 101, 200, 201]


def test_a_grid_ends_when_its_children_have(engine: Engine, arena: Arena) -> None:
    """The grandchild runs before the second child."""
    parent = _kernel("parent", _launch("child", "1") + _launch("child", "2"))
    child = _kernel("child", _noting("%r1") + "add.u32 %r4, %r1, 10;" + _launch("last", "%r4"))
    assert _logged(engine, arena, parent, child, _kernel("last", _noting("%r1"))) == [1, 11, 2, 12]


def test_tail_launches_come_last(engine: Engine, arena: Arena) -> None:
    tail, fire_and_forget = 3, 4
    body = (
        _launch("child", "1", stream=tail)
        + _launch("child", "2", stream=fire_and_forget)
        + _launch("child", "3", stream=tail)
        + _launch("child", "4")
    )
    child = _kernel("child", _noting("%r1"))
    assert _logged(engine, arena, _kernel("parent", body), child) == [2, 4, 1, 3]


def test_a_grid_may_launch_itself_again_and_again(engine: Engine, arena: Arena) -> None:
    body = f"""
    setp.eq.u32 %p1, %r1, 0;
    @%p1 ret;
    {_noting("%r1")}
    sub.u32 %r4, %r1, 1;
    {_launch("parent", "%r4", stream=3)}
"""
    assert _logged(engine, arena, _kernel("parent", body), what=60) == list(range(60, 0, -1))


def test_a_launch_no_gpu_takes_is_an_error_of_its_thread(engine: Engine, arena: Arena) -> None:
    body = (
        _launch("parent", "0", block=1025)
        + _noting("%r9")
        + """
    {
    .param .b32 e;
    call.uni (e), __cudaCDP2GetLastError, ();
    ld.param.b32 %r4, [e];
    }
"""
        + _noting("%r4")
    )
    assert _logged(engine, arena, _kernel("parent", body)) == [9, 9]


def test_what_a_faulting_grid_launched_does_not_run(engine: Engine, arena: Arena) -> None:
    parent = _kernel("parent", _launch("child", "1") + "trap;")
    child = _kernel("child", _noting("%r1"))
    with pytest.raises(errors.TrapExecuted):
        _logged(engine, arena, parent, child)
    calm = _kernel("parent", _noting("7"))
    assert _logged(engine, arena, calm, child) == [7]
