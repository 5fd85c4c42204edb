"""Joined modules on both engines: the definition that was chosen is the one that runs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from tests.helpers.linked_texts import CALLEE, CALLER
from tests.helpers.ptx_trees import HEADER
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.ptx.link import linked_text
from va100.ptx.parser import parse

WEAK = ".weak .global .align 4 .b8 table[8] = {9, 0, 0, 0, 9, 0, 0, 0};\n"
COMMON = ".common .global .align 4 .b8 table[8];\n"
ALIASED = CALLEE.replace("twice", "double") + (
    ".visible .func (.param .b32 r) twice (.param .b32 x);\n.alias twice, double;\n"
)
PRIVATE = """
.global .align 4 .b8 hidden[4] = {100};
.func (.param .b32 r) helper () { st.param.b32 [r], 7; ret; }
"""
FUNCTION_TABLE = (
    CALLER.replace("call.uni (q0), twice, (p0);", "call (q0), %d1, (p0), kind;")
    .replace(
        "    {\n    .param .b32 p0;",
        "    mov.u64 %d1, pointers;\n    ld.global.u64 %d1, [%d1];\n"
        "kind: .callprototype (.param .b32 _) _ (.param .b32 _);\n    {\n    .param .b32 p0;",
        1,
    )
    .replace(".visible .entry", ".extern .global .u64 pointers[1];\n.visible .entry")
)
POINTERS = """
.extern .func (.param .b32 r) twice (.param .b32 x);
.visible .global .u64 pointers[1] = {twice};
"""


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        ((CALLER, CALLEE), 4),
        ((CALLEE, CALLER), 4),
        ((WEAK + CALLER.replace(".extern .global .align 4 .b8 table[8];", ""), CALLEE), 4),
        ((COMMON, CALLER, CALLEE), 4),
        ((CALLER, ALIASED), 4),
        ((PRIVATE + CALLER, PRIVATE + CALLEE), 4),
        ((FUNCTION_TABLE, POINTERS, CALLEE), 4),
        ((FUNCTION_TABLE, POINTERS, PRIVATE + ALIASED), 4),
        ((CALLER, WEAK + CALLEE.replace(".visible .global", "// .visible .global")), 18),
    ],
)
def test_what_was_chosen_runs(
    engine: Engine, arena: Arena, texts: tuple[str, ...], wanted: int
) -> None:
    assert _answer(engine, arena, texts) == wanted


DYNAMIC = """
.extern .shared .align {align} .b8 window[];
.visible .func (.param .b32 r) {name} ()
{{
    .reg .b32 %r<2>;
    mov.u32 %r1, window;
    st.param.b32 [r], %r1;
    ret;
}}
"""
DIFFERENCE = """
.extern .func (.param .b32 r) first ();
.extern .func (.param .b32 r) second ();
.visible .shared .align 4 .b8 fixed[4];
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<5>;
    .reg .b64 %d;
    { .param .b32 a; call.uni (a), first; ld.param.b32 %r1, [a]; }
    { .param .b32 a; call.uni (a), second; ld.param.b32 %r2, [a]; }
    sub.u32 %r3, %r1, %r2;
    and.b32 %r4, %r1, 63;
    or.b32 %r3, %r3, %r4;
    mov.u32 %r4, fixed;
    ld.param.u64 %d, [out];
    st.global.u32 [%d], %r3;
    ret;
}
"""


def test_dynamic_shared_memory_is_one_with_the_greatest_alignment(
    engine: Engine, arena: Arena
) -> None:
    texts = (
        DYNAMIC.format(align=4, name="first"),
        DIFFERENCE,
        DYNAMIC.format(align=64, name="second"),
    )
    assert _answer(engine, arena, texts) == 0


def _answer(engine: Engine, arena: Arena, texts: tuple[str, ...]) -> int:
    joined = linked_text([parse(HEADER + t, f"{i}.ptx") for i, t in enumerate(texts)])
    loaded = load(joined, arena)
    try:
        out = loaded.buffer(np.zeros(1, np.uint32))
        loaded.run(engine, "k", (1,), (1,), pack(out), shared_bytes=64)
        return int(loaded.read(out, np.uint32, 1)[0])
    finally:
        loaded.close()
