"""What ``VA100_TRACE`` may say, and the lines of a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.watching import Launch
from va100.debug.trace import Tracer, open_trace, read_options
from va100.errors import IllegalAddress, SetupError
from va100.work import Dim3

HEAD = "scale cta(0,0,0) thread({x},0,0) scale.cu:"


def traced(launch: Launch, options: str, **how: object) -> list[str]:
    lines: list[str] = []
    launch(Tracer(read_options(options), lines.append), **how)
    return [line.rstrip("\n") for line in lines]


class TestOptions:
    def test_all_of_them(self) -> None:
        options = read_options("kernel=sax,cta=1,thread=0-3+7,limit=10,out=trace.txt")
        assert options.kernel == "sax"
        assert options.out == Path("trace.txt")
        assert options.limit == 10
        extent = Dim3(64)
        chosen = [x for x in range(64) if options.threads.has(Dim3(x, 0, 0), extent)]
        assert chosen == [0, 1, 2, 3, 7]
        assert not options.ctas.has(Dim3(0, 0, 0), extent)

    def test_three_dimensions(self) -> None:
        options = read_options("thread=*:1:0-2")
        extent = Dim3(4, 4, 4)
        assert options.threads.has(Dim3(3, 1, 2), extent)
        assert not options.threads.has(Dim3(3, 2, 2), extent)
        assert not options.threads.has(Dim3(3, 1, 3), extent)

    def test_a_number_counts_x_fastest(self) -> None:
        assert read_options("thread=5").threads.has(Dim3(1, 1, 0), Dim3(4, 4, 1))

    @pytest.mark.parametrize("text", ["1", "all", "thread=*"])
    def test_everything(self, text: str) -> None:
        options = read_options(text)
        assert options.wants("_Z5saxpyifPKfPf")
        assert options.threads.has(Dim3(9, 0, 0), Dim3(64))

    def test_a_mangled_name_is_known_by_what_people_write(self) -> None:
        assert read_options("kernel=reduce<256").wants("_Z6reduceILi256EfEvPKT0_PS0_")

    @pytest.mark.parametrize(
        ("text", "word"),
        [
            ("cta", "'cta'"),
            ("lane=3", "'lane=3'"),
            ("thread=a", "'a'"),
            ("thread=1-", "'1-'"),
            ("thread=1:2:3:4", "three dimensions"),
            ("limit=many", "limit=many"),
        ],
    )
    def test_what_it_refuses(self, text: str, word: str) -> None:
        with pytest.raises(SetupError, match=word) as caught:
            read_options(text)
        assert "kernel=saxpy,cta=0" in str(caught.value)

    def test_a_file_that_cannot_be_written(self, tmp_path: Path) -> None:
        options = read_options(f"out={tmp_path}/none/trace")
        with pytest.raises(SetupError, match="No such file"):
            open_trace(options, None)  # type: ignore[arg-type]


class TestLines:
    def test_values_before_and_after(self, launch: Launch) -> None:
        lines = traced(launch, "thread=2")
        head = HEAD.format(x=2)
        assert lines[3] == (
            f"{head}9 ptx:27 | setp.ge.u32 %p1, %r2, %r1; | %r2=2 %r1=3 | %p1: false -> false"
        )
        assert lines[4] == f"{head}9 ptx:28 | @%p1 bra END; | %p1=false | not executed"
        assert lines[8] == (
            f"{head}10 ptx:33 | st.shared.u32 [%r5], %r2; | %r5=8 %r2=2 [shared+0x8] "
            "| [shared+0x8]: 0 -> 2"
        )

    def test_what_is_loaded_and_stored(self, launch: Launch) -> None:
        lines = traced(launch, "thread=1")
        load, _, store, end = lines[-4:]
        assert "| ld.global.f32 %f2, [%rd3]; | %rd3=0x" in load
        assert load.endswith("] | %f2: 0 -> 0.5")
        assert store.endswith("]: 0.5 -> 2.5")
        assert end.endswith("scale.cu:13 ptx:45 | ret;")

    def test_a_called_function(self, launch: Launch) -> None:
        lines = traced(launch, "thread=2")
        assert (
            HEAD.format(x=2) + "3 ptx:8 | add.s32 %out, %in, %in; | %in=2 | %out: 0 -> 4" in lines
        )

    def test_several_threads_one_after_another(self, launch: Launch) -> None:
        lines = traced(launch, "thread=0+5")
        assert lines[0].startswith(HEAD.format(x=0))
        assert lines[1].startswith(HEAD.format(x=5))

    def test_only_the_chosen_cta(self, launch: Launch) -> None:
        lines = traced(launch, "cta=1,thread=0", grid=2)
        assert {line.split()[1] for line in lines} == {"cta(1,0,0)"}

    def test_a_limit(self, launch: Launch) -> None:
        lines = traced(launch, "limit=2")
        assert lines[2:] == ["va100 trace: the limit of 2 lines is reached"]

    def test_a_fault(self, launch: Launch) -> None:
        text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry bad(.param .u64 p, .param .u32 n) {
    .reg .b64 %rd1;
    mov.u64 %rd1, 16;
    st.global.u32 [%rd1], 1;
    ret;
}
"""
        lines: list[str] = []
        with pytest.raises(IllegalAddress):
            launch(Tracer(read_options("thread=0"), lines.append), text, kernel="bad")
        assert "faulted: illegal address 0x10" in lines[-1]

    def test_lanes_that_wait_tell_what_they_get(self, launch: Launch) -> None:
        text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry meet(.param .u64 p, .param .u32 n) {
    .reg .b32 %r<4>;
    .reg .pred %p1;
    mov.u32 %r1, %laneid;
    setp.lt.u32 %p1, %r1, 16;
    @%p1 bra LOW;
    add.u32 %r1, %r1, 100;
LOW:
    shfl.sync.idx.b32 %r2, %r1, 31, 31, -1;
    bar.sync 0;
    ret;
}
"""
        lines = traced(launch, "thread=0", kernel="meet", text=text)
        found = [line for line in lines if "shfl" in line]
        assert len(found) == 1
        assert found[0].endswith("%r2: 0 -> 131")


def test_watching_changes_nothing(launch: Launch) -> None:
    assert launch(Tracer(read_options("thread=1"), lambda _: None)) == [0.5, 2.5, 4.5]
