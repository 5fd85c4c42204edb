"""Core dumps: written when a kernel faults, read by the debugger."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.helpers.watching import Launch
from tests.unit.debug.test_commands import leave
from va100.debug.commands import Prompt
from va100.debug.core import Core, Dumper, read_core
from va100.debug.debugger import Stop
from va100.errors import Deadlock, IllegalAddress, SetupError

BAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry bad(.param .u64 bad_param_0, .param .u32 bad_param_1) {
    .reg .b64 %rd<3>;
    .reg .b32 %r<4>;
    .reg .pred %p1;
    .shared .align 4 .b8 box[128];
    ld.param.u64 %rd1, [bad_param_0];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, box;
    add.u32 %r2, %r2, %r3;
    st.shared.u32 [%r2], %r1;
    setp.lt.u32 %p1, %r1, 5;
    @%p1 bra LOW;
    bar.sync 0;
LOW:
    setp.ne.u32 %p1, %r1, 3;
    mov.u64 %rd2, %rd1;
    @%p1 bra FINE;
    mov.u64 %rd2, 24;
FINE:
    st.global.f32 [%rd2], 0f3F800000;
    ret;
}
"""


def dumped(launch: Launch, path: Path, text: str = BAD, **how: object) -> Core:
    told: list[str] = []
    with pytest.raises((IllegalAddress, Deadlock)):
        launch(Dumper(path, told.append), text, **how)
    assert str(path) in told[0]
    return read_core(path)


def answers(core: Core, *commands: str) -> list[str]:
    out = io.StringIO()
    lines = iter(commands)
    prompt = Prompt(lambda _: next(lines, None), out, leave)
    moment, lane = core.focus()
    prompt.look(Stop(moment, lane, core.fault, is_dead=True))
    return out.getvalue().splitlines()


def test_what_is_in_it(launch: Launch, tmp_path: Path) -> None:
    core = dumped(launch, tmp_path / "core", kernel="bad", block=64)
    assert "illegal address 0x18" in core.fault
    moment, lane = core.focus()
    assert (moment.warp, lane, moment.spot.ptx_line) == (0, 3, 24)
    assert [moment.register("%r1", i) for i in range(5)] == [0, 1, 2, 3, 4]
    standings = {(s.warp, s.lanes, s.waits) for s in moment.standings()}
    assert (0, 0xFFFFFFE0, "barrier 0") in standings
    assert any(warp == 1 for warp, _, _ in standings)


def test_the_debugger_looks_at_it(launch: Launch, tmp_path: Path) -> None:
    core = dumped(launch, tmp_path / "core", kernel="bad")
    lines = answers(
        core, "p $rd2", "p ((int *)box)[3]", "x/2dw shared + 4", "x/2f param_0", "p threadIdx.x",
        "thread 9", "p $r1", "bt", "info shared", "stepi", "c", "x 4096",
    )  # fmt: skip
    assert "[kernel bad, block (0, 0, 0), thread (3, 0, 0)" in "\n".join(lines)
    assert "24" in lines
    assert lines.count("3") == 2
    assert "shared+0x4:\t1\t2" in lines
    assert "9" in lines
    assert any(line.endswith(":\t0.5\t0.5") for line in lines)
    assert sum("this is a core dump" in line for line in lines) == 2
    assert "0x1000 is not in the dump" in lines


def test_a_deadlock(launch: Launch, tmp_path: Path) -> None:
    text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry stuck(.param .u64 p, .param .u32 n) {
    .reg .b32 %r1;
    .reg .pred %p1;
    mov.u32 %r1, %laneid;
    setp.lt.u32 %p1, %r1, 4;
    @%p1 bra LOW;
    bar.sync 0, 64;
LOW:
    bar.sync 1, 64;
    ret;
}
"""
    core = dumped(launch, tmp_path / "core", text, kernel="stuck")
    assert "barrier" in core.fault
    assert {m.waits for m in core.moments} == {"barrier 0", "barrier 1"}


def test_only_the_first_fault(launch: Launch, tmp_path: Path) -> None:
    dumper = Dumper(tmp_path / "core", lambda _: None)
    assert dumper.wants("bad", None)  # type: ignore[arg-type]
    with pytest.raises(IllegalAddress):
        launch(dumper, BAD, kernel="bad")
    assert not dumper.wants("bad", None)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format": "other"}'])
def test_a_file_that_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "core"
    path.write_text(text)
    with pytest.raises(SetupError, match="is no core dump"):
        read_core(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="No such file"):
        read_core(tmp_path / "none")
