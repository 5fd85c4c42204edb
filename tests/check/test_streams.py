"""Races between streams: what the host, events and the legacy stream order, and what they do not.

The calls are made here as the driver makes them; that it does is for the program at the end.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.checking import Bench, bench
from va100.cli import toolchain
from va100.config import Settings
from va100.errors import SetupError
from va100.gpu.native import NATIVE_DIR, library

PROGRAM = Path(__file__).parent / "streams.cu"
THREADS, WORD = 64, 4
BYTES = THREADS * WORD
TEXT = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry put(.param .u64 to, .param .u64 from)
{
    .reg .b32 %r<3>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [to];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %d2, %r0, 4;
    add.u64 %d0, %d0, %d2;
    st.global.u32 [%d0], %r0;
    ret;
}
.visible .entry move(.param .u64 to, .param .u64 from)
{
    .reg .b32 %r<3>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [to];
    ld.param.u64 %d1, [from];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %d2, %r0, 4;
    add.u64 %d0, %d0, %d2;
    add.u64 %d1, %d1, %d2;
    ld.global.u32 %r1, [%d1];
    st.global.u32 [%d0], %r1;
    ret;
}
.visible .entry bump(.param .u64 to, .param .u64 from)
{
    .reg .b64 %d<2>;
    ld.param.u64 %d0, [to];
    red.global.add.u32 [%d0], 1;
    ret;
}
"""


class Stream(ctypes.Structure):
    """``va_check_stream``."""

    _fields_ = (
        ("id", ctypes.c_uint32),
        ("legacy", ctypes.c_uint32),
        ("blocking", ctypes.c_uint32),
        ("group", ctypes.c_void_p),
    )


LEGACY = Stream(1, 1, 1, 7)
S, T = Stream(2, 0, 1, 7), Stream(3, 0, 1, 7)
FREE = Stream(4, 0, 0, 7)
"""A non-blocking one."""


@dataclass
class Host:
    """A program's calls, in order."""

    made: Bench
    a: int = 0
    b: int = 0
    lib: ctypes.CDLL = field(default_factory=library)

    def __post_init__(self) -> None:
        self.a, self.b = self.made.buffer(BYTES), self.made.buffer(BYTES)
        self.lib.va_check_stream_made()

    def launch(self, kernel: str, stream: Stream, to: int, source: int = 0) -> None:
        self.made.run(kernel, (1,), (THREADS,), np.uint64(to), np.uint64(source))
        self.lib.va_check_work(ctypes.byref(stream))

    def copy(self, stream: Stream, to: int, source: int) -> None:
        words = (ctypes.c_uint64(v) for v in (to, source, BYTES))
        self.lib.va_check_copied(*words)
        self.lib.va_check_work(ctypes.byref(stream))

    def fill(self, stream: Stream, to: int) -> None:
        self.lib.va_check_filled(ctypes.c_uint64(to), ctypes.c_uint64(BYTES))
        self.lib.va_check_work(ctypes.byref(stream))

    def record(self, event: int, stream: Stream) -> None:
        self.lib.va_check_event_recorded(ctypes.byref(stream), ctypes.c_void_p(event))

    def wait(self, stream: Stream, event: int) -> None:
        self.lib.va_check_event_awaited(ctypes.byref(stream), ctypes.c_void_p(event))

    def join(self, stream: Stream | None = None, event: int = 0) -> None:
        which = None if stream is None else ctypes.byref(stream)
        self.lib.va_check_host_waited(which, None, ctypes.c_void_p(event))

    def races(self) -> list[tuple[str, int]]:
        return [(f.title.partition("streams: ")[2], f.count) for f in self.made.found()]


@pytest.fixture
def host():
    with bench(TEXT, ["racecheck"]) as made:
        yield Host(made)


WRITE_READ = [("a write and a read", 1)]


class TestOrder:
    def test_nothing(self, host: Host) -> None:
        host.launch("put", S, host.a)
        host.launch("move", T, host.b, host.a)
        assert host.races() == WRITE_READ
        (race,) = host.made.found()
        assert (race.kind, race.severity, race.space) == ("stream-race", "error", "global")
        assert {race.first.instruction[:9], race.second.instruction[:9]} == {
            "st.global",
            "ld.global",
        }
        assert any("stream 2" in d for d in race.details)
        assert any("stream 3" in d for d in race.details)

    def test_one_stream(self, host: Host) -> None:
        host.launch("put", S, host.a)
        host.launch("move", S, host.b, host.a)
        assert host.races() == []

    def test_an_event(self, host: Host) -> None:
        host.launch("put", S, host.a)
        host.record(9, S)
        host.wait(T, 9)
        host.launch("move", T, host.b, host.a)
        assert host.races() == []

    def test_an_event_too_early(self, host: Host) -> None:
        host.record(9, S)
        host.launch("put", S, host.a)
        host.wait(T, 9)
        host.launch("move", T, host.b, host.a)
        assert host.races() == WRITE_READ

    def test_an_event_through_a_third_stream(self, host: Host) -> None:
        host.launch("put", S, host.a)
        host.record(8, S)
        host.wait(FREE, 8)
        host.record(9, FREE)
        host.wait(T, 9)
        host.launch("move", T, host.b, host.a)
        assert host.races() == []

    @pytest.mark.parametrize(("stream", "event"), [(S, 0), (None, 0), (None, 9)])
    def test_the_host_waits(self, host: Host, stream: Stream | None, event: int) -> None:
        host.launch("put", S, host.a)
        host.record(9, S)
        host.join(stream, event)
        host.launch("move", T, host.b, host.a)
        assert host.races() == []

    def test_the_host_waits_for_another(self, host: Host) -> None:
        host.launch("put", S, host.a)
        host.join(T)
        host.launch("move", T, host.b, host.a)
        assert host.races() == WRITE_READ

    def test_the_legacy_stream(self, host: Host) -> None:
        host.launch("put", S, host.a)
        host.launch("move", LEGACY, host.b, host.a)
        host.launch("move", T, host.a, host.b)
        assert host.races() == []

    def test_the_legacy_stream_and_one_that_does_not_block(self, host: Host) -> None:
        host.launch("put", LEGACY, host.a)
        host.launch("move", FREE, host.b, host.a)
        assert host.races() == WRITE_READ

    def test_one_direction_only(self, host: Host) -> None:
        """Reads of the last turn race with writes of the next."""
        for turn in range(3):
            host.launch("put", S, host.a)
            host.record(turn + 1, S)
            host.wait(T, turn + 1)
            host.launch("move", T, host.b, host.a)
        assert host.races() == [("a write and a read", 2)]


class TestConflicts:
    def test_reads(self, host: Host) -> None:
        c = host.made.buffer(BYTES)
        host.launch("move", S, host.b, host.a)
        host.launch("move", T, c, host.a)
        assert host.races() == []

    def test_atomics(self, host: Host) -> None:
        host.launch("bump", S, host.a)
        host.launch("bump", T, host.a)
        assert host.races() == []
        host.launch("put", FREE, host.a)
        assert [count for _, count in host.races()] == [2]

    def test_neighbours(self, host: Host) -> None:
        big = host.made.buffer(4 * BYTES)
        host.launch("put", S, big)
        host.launch("put", T, big + BYTES)
        assert host.races() == []
        host.launch("put", FREE, big + BYTES - WORD)
        assert host.races() == [("a write and a write", 2)]

    def test_a_kernel_and_copies(self, host: Host) -> None:
        host.launch("put", S, host.a)
        host.copy(T, host.b, host.a)
        assert host.races() == [("a write and a copy from it", 1)]

    def test_a_copy_and_a_kernel(self, host: Host) -> None:
        host.copy(S, host.a, host.b)
        host.launch("move", T, host.made.buffer(BYTES), host.a)
        assert host.races() == [("a read and a copy to it", 1)]

    def test_a_kernel_and_a_fill(self, host: Host) -> None:
        host.launch("move", S, host.b, host.a)
        host.fill(T, host.a)
        assert host.races() == [("a read and a fill", 1)]

    def test_copies(self, host: Host) -> None:
        host.copy(S, host.a, host.b)
        host.copy(T, host.a, host.b)
        assert host.races() == [("a copy to it and a copy to it", 1)]

    def test_memory_that_was_freed_and_given_anew(self, host: Host) -> None:
        host.launch("put", S, host.a)
        host.made.free(host.a)
        again = host.made.buffer(BYTES)
        host.launch("put", T, again)
        assert host.races() == []


class TestPrograms:
    """The driver tells of streams, events and waits as programs use them."""

    @pytest.mark.parametrize(
        ("mode", "count"),
        [("race", 1), ("early", 1), ("free", 1), ("copy_in", 1), ("event", 0), ("query", 0),
         ("event_query", 0), ("legacy", 0), ("callback", 0)],
    )  # fmt: skip
    def test_modes(self, program: Path, mode: str, count: int) -> None:
        words = ("check", "--tool", "racecheck", "--json", str(program), mode)
        outcome = subprocess.run(
            [sys.executable, "-m", "va100.cli", *words],
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        found = json.loads(outcome.stdout)["findings"]
        assert [f["kind"] for f in found] == ["stream-race"] * count, outcome.stderr


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    try:
        compiler = toolchain.find_compiler(Settings.from_environment())
    except SetupError as error:
        pytest.skip(str(error))
    if not (NATIVE_DIR / compiler.runtime_name).exists():
        pytest.skip(f"the native core has no {compiler.runtime_name} yet")
    made = tmp_path_factory.mktemp("streams") / "streams"
    command = ["nvcc", "-arch=sm_80", "-cudart", "shared", "-o", str(made), str(PROGRAM)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("nvcc is not on the path, or does not compile programs here")
    return made
