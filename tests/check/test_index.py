"""Accesses judged whole find what lanes judged one by one find, on kernels of random accesses.

The oracle is the checker's own slow way, which the planted bugs prove: it keeps every mark.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.checking import bench
from va100.gpu.native import library

CELLS = 32
THREADS, WORDS = 96, 256
RACES = 8

HEAD = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .pred %p<3>; .reg .b16 %h<2>; .reg .b32 %r<8>; .reg .b64 %d<6>;
    .shared .align 16 .b8 box[{4 * WORDS}];
    ld.param.u64 %d1, [out];
    mov.u32 %r0, %tid.x;
    mov.u32 %r7, 0;
    mov.b64 %d5, 0;
"""
SYNCS = (
    "bar.sync 0;",
    "bar.warp.sync -1;",
    "bar.warp.sync 0xffff;\n    bar.warp.sync -1;",
    "membar.gl;",
    "membar.cta;",
    "barrier.sync 1, 96;",
)
TYPES = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}
REGISTERS = {1: "%h1", 2: "%h1", 4: "%r7", 8: "%d5"}


@dataclass(frozen=True)
class Step:
    """An access of lanes from one number to another, or a line that orders."""

    order: str = ""
    kind: str = "ld"
    shared: bool = True
    size: int = 4
    stride: int = 1
    twist: int = 0
    offset: int = 0
    first: int = 0
    last: int = THREADS

    def text(self) -> str:
        """PTX of it."""
        if self.order:
            guard = "    @%p1 " if "warp" not in self.order and "bar" not in self.order else "    "
            return f"    setp.lt.u32 %p1, %r0, {self.last};\n{guard}{self.order}\n"
        space = "shared" if self.shared else "global"
        lines = [
            f"xor.b32 %r1, %r0, {self.twist};",
            f"mul.lo.u32 %r1, %r1, {self.stride};",
            f"add.u32 %r1, %r1, {self.offset};",
            f"rem.u32 %r1, %r1, {4 * WORDS // self.size};",
            f"mul.lo.u32 %r1, %r1, {self.size};",
            f"setp.ge.u32 %p1, %r0, {self.first};",
            f"setp.lt.and.u32 %p1, %r0, {self.last}, %p1;",
        ]
        if self.shared:
            lines += ["mov.u32 %r2, box;", "add.u32 %r2, %r2, %r1;"]
        else:
            lines += ["cvt.u64.u32 %d2, %r1;", "add.u64 %d2, %d1, %d2;"]
        where = "[%r2]" if self.shared else "[%d2]"
        value = REGISTERS[self.size]
        match self.kind:
            case "ld" | "ld.volatile":
                access = f"{self.kind}.{space}.{TYPES[self.size]} {value}, {where};"
            case "st" | "st.volatile":
                access = f"{self.kind}.{space}.{TYPES[self.size]} {where}, {value};"
            case _:
                access = f"red.{space}.add.{TYPES[self.size]} {where}, {value};"
        lines.append(f"@%p1 {access}")
        return "".join(f"    {line}\n" for line in lines)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """A step of a kernel."""
    if draw(st.integers(0, 3)) == 0:
        return Step(order=draw(st.sampled_from(SYNCS)), last=draw(st.sampled_from((THREADS, 40))))
    kind = draw(
        st.sampled_from(("ld", "ld", "ld", "st", "st", "red", "ld.volatile", "st.volatile"))
    )
    first = draw(st.sampled_from((0, 0, 0, 5, 32)))
    return Step(
        kind=kind,
        shared=draw(st.booleans()),
        size=draw(st.sampled_from((4, 4, 8) if kind == "red" else (4, 4, 4, 8, 2, 1))),
        stride=draw(st.sampled_from((0, 1, 1, 1, 2, 5))),
        twist=draw(st.sampled_from((0, 0, 0, 1, 33))),
        offset=draw(st.sampled_from((0, 0, 1, 32, 96))),
        first=first,
        last=draw(st.sampled_from((THREADS, THREADS, first + 1, 64))),
    )


def _races(text: str, grid: int, *, cells: bool) -> list[tuple[object, ...]]:
    with bench(text, ["racecheck"]) as made:
        if cells:
            library().va_check_enable(ctypes.c_uint32(RACES | CELLS))
        out = made.buffer(4 * WORDS)
        made.run("k", (grid,), (THREADS,), np.uint64(out))
        assert made.fault is None
        found = made.found()
    return sorted((f.severity, f.count, f.space, f.first.line, f.second.line) for f in found)


@settings(max_examples=25, deadline=None, print_blob=True)
@given(st.lists(steps(), min_size=2, max_size=14), st.sampled_from((1, 3)))
def test_index_and_cells_agree(made: list[Step], grid: int) -> None:
    text = HEAD + "".join(step.text() for step in made) + "    ret;\n}\n"
    assert _races(text, grid, cells=False) == _races(text, grid, cells=True)
