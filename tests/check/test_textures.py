"""Texels under the checker: bounds, definedness and races of what fetches and surfaces touch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from tests.helpers.checking import Bench, bench
from va100.gpu.texture import (
    AddressMode,
    Kind,
    Layout,
    TexelFormat,
    Texture,
    add_texture,
    remove_texture,
)

THREADS = 64
TEXEL = 4

HEAD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 texture, .param .u64 surface, .param .u64 memory, .param .u64 out)
{
    .reg .pred %p<3>; .reg .b32 %r<12>; .reg .f32 %f<8>; .reg .b64 %d<8>;
    ld.param.u64 %d0, [texture];
    ld.param.u64 %d1, [surface];
    ld.param.u64 %d2, [memory];
    ld.param.u64 %d3, [out];
    mov.u32 %r0, %tid.x;
    shl.b32 %r1, %r0, 2;
    xor.b32 %r2, %r0, 1;
    shl.b32 %r3, %r2, 2;
    cvt.u64.u32 %d4, %r1;
    add.u64 %d5, %d2, %d4;
    add.u64 %d6, %d3, %d4;
    mov.u32 %r9, 0;
"""
FETCH = "    tex.1d.v4.u32.s32 {%r9, %r6, %r7, %r8}, [%d0, {%r0}];\n"
FETCH_NEXT = "    tex.1d.v4.u32.s32 {%r9, %r6, %r7, %r8}, [%d0, {%r2}];\n"
LOAD = "    suld.b.1d.b32.trap %r9, [%d1, {%r1}];\n"
LOAD_NEXT = "    suld.b.1d.b32.trap %r9, [%d1, {%r3}];\n"
STORE = "    sust.b.1d.b32.trap [%d1, {%r1}], %r0;\n"
STORE_ONE = "    sust.b.1d.b32.clamp [%d1, {0}], %r0;\n"
REDUCE = "    sured.b.1d.add.u32.trap [%d1, {0}], 1;\n"
PLAIN_STORE = "    st.global.u32 [%d5], %r0;\n"
PLAIN_LOAD = "    ld.global.u32 %r9, [%d5];\n"
BARRIER = "    bar.sync 0;\n"
TAIL = "    st.global.u32 [%d6], %r9;\n    ret;\n}\n"


def _described(base: int, kind: Kind, layout: Layout, width: int) -> Texture:
    texture = Texture(
        base=base, pitch=width * TEXEL, slice=width * TEXEL, kind=kind, layout=layout, width=width,
        height=0, depth=0, layers=0, is_cube=False, format=TexelFormat.U32, channels=1,
        linear=False, normalized=False, as_integer=True,
    )  # fmt: skip
    texture.address[:] = (AddressMode.CLAMP,) * 3
    return texture


class Objects:
    """A texture and a surface over one buffer of 32-bit texels."""

    def __init__(
        self, made: Bench, *, defined: bool, layout: Layout, texels: int, short: int
    ) -> None:
        self.made = made
        self.memory = made.buffer(THREADS * TEXEL - short, defined=defined)
        self.texture = add_texture(_described(self.memory, Kind.TEXTURE, layout, texels))
        self.surface = add_texture(_described(self.memory, Kind.SURFACE, layout, texels))
        self.out = made.buffer(THREADS * TEXEL)

    def run(self) -> None:
        values = (self.texture, self.surface, self.memory, self.out)
        self.made.run("k", (1,), (THREADS,), *(np.uint64(v) for v in values))

    def close(self) -> None:
        remove_texture(self.texture, Kind.TEXTURE)
        remove_texture(self.surface, Kind.SURFACE)


@contextmanager
def objects(
    body: str,
    *,
    defined: bool = True,
    layout: Layout = Layout.LINEAR,
    texels: int = THREADS,
    short: int = 0,
) -> Iterator[Objects]:
    with bench(HEAD + body + TAIL) as made:
        opened = Objects(made, defined=defined, layout=layout, texels=texels, short=short)
        try:
            yield opened
        finally:
            opened.close()


def told(body: str, *, launches: int = 1, **facts: object) -> set[tuple[str, str]]:
    """Kinds and severities of what is found."""
    with objects(body, **facts) as opened:
        for _ in range(launches):
            opened.run()
        assert opened.made.fault is None
        return {(f.kind, f.severity) for f in opened.made.found() if f.severity != "info"}


CLEAN: set[tuple[str, str]] = set()
RACE = {("race", "error")}
UNDEFINED = {("uninitialised", "error")}
LAYOUTS = pytest.mark.parametrize("layout", [Layout.LINEAR, Layout.ARRAY])


@LAYOUTS
@pytest.mark.parametrize("read", [FETCH, LOAD])
def test_texels_that_nobody_wrote(read: str, layout: Layout) -> None:
    assert told(read, layout=layout) == CLEAN
    assert told(read, layout=layout, defined=False) == UNDEFINED


@LAYOUTS
def test_stores_define(layout: Layout) -> None:
    assert told(STORE + LOAD, layout=layout, defined=False) == CLEAN
    half = "    setp.lt.u32 %p1, %r0, 32;\n    @%p1 " + STORE.strip() + "\n" + BARRIER
    assert told(half + LOAD, layout=layout, defined=False) == UNDEFINED


def test_formatted_stores_define_the_texel() -> None:
    assert told("    sust.p.1d.b32.trap [%d1, {%r0}], %r0;\n" + LOAD, defined=False) == CLEAN


def test_coordinates_outside_are_no_fault() -> None:
    """The texture has 16 texels; what the address mode makes of the others is defined."""
    assert told(FETCH, texels=16) == CLEAN
    assert told("    suld.b.1d.b32.zero %r9, [%d1, {%r1}];\n", texels=16) == CLEAN


@pytest.mark.parametrize("read", [FETCH, LOAD])
def test_linear_memory_that_is_too_small(read: str) -> None:
    with objects(read, short=4 * TEXEL) as opened:
        opened.run()
        assert [(f.kind, f.count) for f in opened.made.found()] == [("out-of-bounds", 4)]


class TestRaces:
    def test_of_stores_and_loads(self) -> None:
        assert told(STORE + LOAD) == CLEAN
        assert told(STORE + LOAD_NEXT) == RACE
        assert told(STORE + BARRIER + LOAD_NEXT) == CLEAN

    def test_of_stores(self) -> None:
        assert told(STORE_ONE) == RACE

    def test_of_reductions(self) -> None:
        assert told(REDUCE) == CLEAN
        assert told(REDUCE + LOAD) == RACE
        assert told(REDUCE + BARRIER + LOAD) == CLEAN

    def test_of_surfaces_and_plain_accesses(self) -> None:
        assert told(PLAIN_STORE + LOAD_NEXT) == RACE
        assert told(PLAIN_STORE + BARRIER + LOAD_NEXT) == CLEAN
        assert told(STORE_ONE.replace("[%d1, {0}]", "[%d1, {%r3}]") + PLAIN_LOAD) == RACE

    def test_of_fetches(self) -> None:
        """A fetch needs not see what its own launch wrote, even behind a barrier."""
        stale = {("stale-texel", "warn")}
        assert told(PLAIN_STORE + FETCH_NEXT) == RACE | stale
        assert told(PLAIN_STORE + BARRIER + FETCH_NEXT) == stale
        assert told(STORE + FETCH) == stale

    def test_of_launches(self) -> None:
        body = "    @%p0 bra L;\nL:\n" + FETCH + BARRIER + "    add.u32 %r9, %r9, 1;\n"
        assert told(body, launches=2) == CLEAN
