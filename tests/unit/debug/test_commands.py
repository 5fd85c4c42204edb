"""The debugger's commands on small kernels, without a driver."""

from __future__ import annotations

import io

import pytest

from tests.helpers.watching import Launch
from va100.debug.command_help import HELP
from va100.debug.commands import ALIASES, Prompt
from va100.errors import IllegalAddress

NAMELESS = "the code has no names of variables"


class Left(Exception):
    """The debugger has ended the program."""


def leave() -> None:
    raise Left


def prompt(*commands: str) -> tuple[Prompt, io.StringIO]:
    out = io.StringIO()
    lines = iter(commands)

    def read(text: str) -> str | None:
        line = next(lines, None)
        if line is not None:
            out.write(f"{text}{line}\n")
        return line

    return Prompt(read, out, leave), out


def session(launch: Launch, *commands: str, **how: object) -> list[list[str]]:
    """Answers to each command: its lines."""
    made, out = prompt(*commands, "continue")
    made.begin()
    launch(made.debugger, **how)
    parts = out.getvalue().split("(va100) ")[1 : len(commands) + 1]
    return [part.rstrip().split("\n")[1:] for part in parts]


class TestStopping:
    def test_at_a_kernel_once_a_launch(self, launch: Launch) -> None:
        answers = session(launch, "break scale", "run", "continue", grid=2, block=64)
        assert answers[1][1:3] == [
            "Breakpoint 1",
            "scale at scale.cu:8  [kernel scale, block (0, 0, 0), thread (0, 0, 0), "
            "warp 0 lane 0, lanes 0xffffffff]",
        ]
        assert answers[2] == ["[the launch has ended]"]

    def test_at_a_line(self, launch: Launch) -> None:
        answers = session(launch, "b scale.cu:10", "r")
        assert answers[1][2].startswith("scale at scale.cu:10")
        assert answers[1][3] == "ptx:30\tshl.b32 %r3, %r2, 2;"

    def test_at_the_next_line_that_has_code(self, launch: Launch) -> None:
        answers = session(launch, "b 4", "r")
        assert answers[1][2].startswith("scale at scale.cu:8")

    def test_at_a_line_of_ptx(self, launch: Launch) -> None:
        answers = session(launch, "b ptx:33", "r")
        assert answers[1][-1] == "ptx:33\tst.shared.u32 [%r5], %r2;"

    def test_in_a_function(self, launch: Launch) -> None:
        answers = session(launch, "b twice", "r", "bt")
        assert answers[2] == [
            "#0  twice at scale.cu:3 (ptx:8)",
            "#1  scale at scale.cu:11 (ptx:35)",
        ]

    def test_where_a_condition_holds(self, launch: Launch) -> None:
        how = {"grid": 2, "block": 64, "count": 50}
        condition = "b 10 if threadIdx.x == 40 && blockIdx.x == 1"
        answers = session(launch, condition, "r", "c", **how)
        assert "block (1, 0, 0), thread (40, 0, 0), warp 1 lane 8" in answers[1][2]
        assert answers[2] == ["[the launch has ended]"]

    def test_a_condition_that_cannot_be_judged_stops(self, launch: Launch) -> None:
        answers = session(launch, "b 10 if nothing > 3", "r")
        assert "no variable nothing here" in answers[1][0]
        assert answers[1][2] == "Breakpoint 1"

    def test_once(self, launch: Launch) -> None:
        answers = session(launch, "tbreak 9", "r", "info breakpoints", "c", block=64)
        assert answers[1][1] == "Temporary breakpoint 1"
        assert answers[2] == ["no breakpoints"]
        assert answers[3] == ["[the launch has ended]"]

    def test_deleted_and_disabled(self, launch: Launch) -> None:
        answers = session(
            launch, "b 9", "b 10", "b 12", "disable 1", "delete 2", "info breakpoints", "r"
        )
        assert answers[5] == ["1  9, disabled, hit 0 times", "3  12, hit 0 times"]
        assert answers[6][1] == "Breakpoint 3"

    def test_set_while_stopped(self, launch: Launch) -> None:
        answers = session(launch, "b scale", "r", "b 12", "b 99", "c")
        assert answers[3] == [
            "Breakpoint 3: 99; no code that is loaded has it, perhaps some will",
        ]
        assert answers[4][1] == "Breakpoint 2"

    def test_where_it_faults(self, launch: Launch) -> None:
        text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry bad(.param .u64 p, .param .u32 n) {
    .reg .b64 %rd1;
    .reg .b32 %r1;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd1, %r1, 8;
    st.global.u32 [%rd1], 1;
    ret;
}
"""
        made, out = prompt("catch", "run", "print $rd1", "c")
        made.begin()
        assert made.debugger.wants("bad", None)  # type: ignore[arg-type]
        with pytest.raises(IllegalAddress):
            launch(made.debugger, text=text, kernel="bad")
        assert "illegal address 0x0" in out.getvalue()
        assert "[the launch ends with its fault]" not in out.getvalue()

    def test_watches_only_launches_that_may_stop(self, launch: Launch) -> None:
        made, _ = prompt("b elsewhere")
        made.begin()
        launch(made.debugger)
        assert [b.where for b in made.debugger.unfound()] == ["elsewhere"]


class TestStepping:
    def test_lines_into_calls(self, launch: Launch) -> None:
        answers = session(launch, "b 10", "r", "step", "step", "step", "step", "step")
        at = [answer[0] for answer in answers[2:]]
        assert at == [
            "ptx:35\tcall (%r6), twice, (%r2);",
            "ptx:8\tadd.s32 %out, %in, %in;",
            "ptx:36\tcvt.rn.f32.s32 %f1, %r6;",
            "ptx:40\tld.global.f32 %f2, [%rd3];",
            "ptx:45\tret;",
        ]

    def test_lines_past_calls(self, launch: Launch) -> None:
        answers = session(launch, "b 11", "r", "next")
        assert answers[2] == ["ptx:40\tld.global.f32 %f2, [%rd3];"]

    def test_instructions(self, launch: Launch) -> None:
        answers = session(launch, "b ptx:33", "r", "stepi", "si", "p %in")
        assert answers[2] == ["ptx:35\tcall (%r6), twice, (%r2);"]
        assert answers[3] == ["ptx:8\tadd.s32 %out, %in, %in;"]
        assert answers[4] == ["0"]

    def test_instructions_past_calls(self, launch: Launch) -> None:
        answers = session(launch, "b ptx:35", "r", "nexti")
        assert answers[2] == ["ptx:36\tcvt.rn.f32.s32 %f1, %r6;"]

    def test_out_of_a_function(self, launch: Launch) -> None:
        answers = session(launch, "b twice", "r", "finish", "p $r6", "finish")
        assert answers[2] == ["ptx:36\tcvt.rn.f32.s32 %f1, %r6;"]
        assert answers[4] == ["this is the kernel itself: it has no caller; `continue` goes on"]

    def test_follows_the_lanes_of_the_thread(self, launch: Launch) -> None:
        answers = session(launch, "b ptx:28", "r", "thread (9,0,0)", "stepi")
        assert answers[3] == ["ptx:45\tret;"]

    def test_to_the_end(self, launch: Launch) -> None:
        answers = session(launch, "b ptx:45 if threadIdx.x == 9", "r", "step")
        assert answers[2] == ["[the launch has ended; the thread that was stepped has ended]"]


class TestLooking:
    def test_registers_and_indices(self, launch: Launch) -> None:
        answers = session(
            launch, "b 12 if threadIdx.x == 2", "r", "p $f1", "p/x %r5", "p $r2 * 2 + 1",
            "p threadIdx", "p blockDim.x", "p %tid.x", "p $p1",
        )  # fmt: skip
        values = [answer[0] for answer in answers[2:]]
        assert values == ["4", "0x8", "5", "{x = 2, y = 0, z = 0}", "32", "2", "false"]

    def test_memory(self, launch: Launch) -> None:
        answers = session(
            launch, "b 12", "r", "x/3f $rd3", "x/3dw shared", "p *(float *)$rd3", "p tile[8]",
            "p ((float *)param_0)[1]", "x/2xb shared + 4", "x/xg 16",
        )  # fmt: skip
        assert answers[2][0].split("\t")[1:] == ["0.5", "0.5", "0.5"]
        assert answers[3] == ["shared+0x0:\t0\t1\t2"]
        assert answers[4] == ["0.5"]
        assert answers[5] == ["2"]
        assert answers[6] == ["0.5"]
        assert answers[7] == ["shared+0x4:\t0x1\t0x0"]
        assert answers[8] == ["0x10 is not memory that a kernel may read"]

    def test_every_lane(self, launch: Launch) -> None:
        answers = session(launch, "b 12", "r", "lanes $f1")
        assert answers[2] == [
            "*  0 thread (0, 0, 0): 0",
            "   1 thread (1, 0, 0): 2",
            "   2 thread (2, 0, 0): 4",
        ]

    def test_threads_and_warps(self, launch: Launch) -> None:
        answers = session(launch, "b 10", "r", "info threads", "info warps", "info kernels")
        assert answers[2][1] == (
            "* block (0, 0, 0)  (0, 0, 0)..(2, 0, 0)  3 threads at scale.cu:10 ptx:30"
        )
        assert "(3, 0, 0)..(31, 0, 0)  29 threads at scale.cu:13" in answers[2][2]
        assert answers[3][0].endswith("lanes 0x00000007  scale at scale.cu:10 ptx:30  ready")
        assert "1 of 1 blocks under way" in answers[4][0]

    def test_who_waits(self, launch: Launch) -> None:
        text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry wait(.param .u64 p, .param .u32 n) {
    .reg .b32 %r1;
    bar.sync 0;
    mov.u32 %r1, 1;
    ret;
}
"""
        answers = session(launch, "b ptx:6 if warp == 1", "r", "info warps", "warp 0",
                          kernel="wait", text=text, block=64)  # fmt: skip
        assert answers[2][0].endswith("waits: barrier 0") or answers[2][1].endswith(
            "waits: barrier 0"
        )
        assert "thread (0, 0, 0), warp 0 lane 0" in answers[3][0]

    def test_another_thread(self, launch: Launch) -> None:
        answers = session(
            launch, "b 12", "r", "thread 2", "p $f1", "lane 1", "p $f1", "block (3,0,0)", "thread"
        )
        assert answers[3] == ["4"]
        assert answers[5] == ["2"]
        assert "block (3, 0, 0) thread (1, 0, 0) does not run now" in answers[6][0]
        assert "thread (1, 0, 0), warp 0 lane 1" in answers[7][0]

    def test_lists(self, launch: Launch) -> None:
        answers = session(
            launch, "b 12", "r", "info registers $r2 %f1", "info shared", "info args",
            "info locals", "disassemble",
        )  # fmt: skip
        assert answers[2] == ["%r2        .b32   0  0x0", "%f1        .f32   0  0x0"]
        assert answers[3][1] == "shared+0x0  256 bytes  _ZZ5scalePfiE4tile"
        assert answers[4][1] == "param_1 = 0x3"
        assert answers[5][0].startswith(NAMELESS)
        assert "=>40\t    ld.global.f32 %f2, [%rd3];" in answers[6]

    def test_the_source_is_not_there(self, launch: Launch) -> None:
        answers = session(launch, "b 12", "r", "list")
        assert answers[2] == ["no source: scale.cu is not there; `disassemble` shows PTX"]


class TestCommandLine:
    @pytest.mark.parametrize(
        ("command", "answer"),
        [
            ("frobnicate", "'frobnicate' is no command; `help` lists them"),
            ("print", "print what?"),
            ("p 1 +", "it ends too early"),
            ("p 3 3", "'3' is not expected there"),
            ("p $r99", "%r99 is no register here"),
            ("p nosuch", "no variable nosuch here; " + NAMELESS),
            ("p/q 1", "/q is no format; there are x d u f t c"),
            ("p 1 / 0", "division by zero"),
            ("p 1.5 & 1", "& takes no floating-point number"),
            ("p *3", "int is no pointer; cast it, as *(float *)$rd1"),
            ("x", "x needs an address, as in x/8f $rd1"),
            ("x/4z 0", "/z: formats are x d u f c t s, sizes b h w g"),
            ("info", "info what? kernels, threads, warps, registers, locals, args, shared, "),
            ("delete 7", "there is no breakpoint 7"),
            ("thread somewhere", "say thread (X,Y,Z), block (X,Y,Z), or both"),
            ("run", "it runs already; `continue` goes on"),
            ("break", "name a function's name, FILE:LINE, LINE, or ptx:LINE"),
        ],
    )
    def test_what_it_refuses(self, launch: Launch, command: str, answer: str) -> None:
        answers = session(launch, "b scale", "r", command)
        assert answers[2][0].startswith(answer)

    @pytest.mark.parametrize("command", ["p 1", "bt", "step", "info threads", "list"])
    def test_before_anything_has_stopped(self, command: str) -> None:
        made, out = prompt(command)
        made.begin()
        assert "no kernel has stopped" in out.getvalue()

    def test_blank_lines_and_comments(self, launch: Launch) -> None:
        answers = session(launch, "", "# a remark", "b scale", "r", "si", "")
        assert answers[0] == answers[1] == []
        assert answers[4] == ["ptx:24\tld.param.u32 %r1, [scale_param_1];"]
        assert answers[5][0].startswith("ptx:26\tmov.u32")

    def test_short_forms(self, launch: Launch) -> None:
        answers = session(launch, "br scale", "r", "disas")
        assert len(answers[2]) > 3

    def test_help(self) -> None:
        made, out = prompt("help", "help x", "h bt", "help me")
        made.begin()
        assert out.getvalue().count("    ") >= len(HELP)
        assert "'me' is no command" in out.getvalue()

    def test_every_command_is_explained(self) -> None:
        commands = {n.removeprefix("do_") for n in dir(Prompt) if n.startswith("do_")}
        assert commands == set(HELP)
        assert set(ALIASES.values()) <= commands

    def test_quit(self, launch: Launch) -> None:
        made, _ = prompt("b scale", "r", "quit")
        made.begin()
        with pytest.raises(Left):
            launch(made.debugger)


def test_debugging_changes_nothing(launch: Launch) -> None:
    made, _ = prompt("b 10", "r", "p tile", "si", "next", "c")
    made.begin()
    assert launch(made.debugger) == [0.5, 2.5, 4.5]
