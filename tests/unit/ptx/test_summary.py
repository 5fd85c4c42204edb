"""Summaries of kernels, and their flow graphs as text."""

from __future__ import annotations

from tests.helpers.ptx_trees import HEADER, kernel_text
from va100.ptx.cfg import build_flow
from va100.ptx.cfg_text import flow_dot, flow_text
from va100.ptx.parser import parse
from va100.ptx.summary import form_counts, summarise

TEXT = (
    HEADER
    + """
.extern .shared .align 16 .b8 dynamic[];
.shared .f32 tile[32];
.shared .f32 other[32];
.func helper () { .local .b8 stack[24]; .shared .b32 mine; .reg .u64 %a; mov.u64 %a, stack; ret; }
.entry k (.param .u64 p) .maxntid 64
{
    .reg .b32 %r<4>;
    .reg .pred %q;
    mov.u32 %r1, tile;
    ld.shared.u32 %r2, [dynamic+4];
    @%q bra L;
    suq.width.b32 %r1, [%r2+4];
    suq.width.b32 %r1, [%r2+4];
L:  call helper;
    ret;
}
"""
)


class TestSummarise:
    def test_a_kernel(self):
        module = parse(TEXT)
        summary = summarise(module, module.kernels[0])
        assert (summary.name, summary.is_kernel, summary.line) == ("k", True, 9)
        assert summary.registers == {"b32": 2, "pred": 1}
        assert summary.static_shared_bytes == 32 * 4 + 4
        assert summary.uses_dynamic_shared
        assert summary.local_bytes == 24
        assert (summary.instruction_count, summary.block_count) == (7, 3)
        assert summary.families == {"control": 3, "texture": 2, "move": 1, "memory": 1}
        assert summary.calls == ("helper",)
        assert summary.unsupported == {"suq.width.b32": (16, 17)}
        assert summary.directives == (("maxntid", (64,)),)

    def test_no_shared(self):
        module = parse(kernel_text("ret;"))
        summary = summarise(module, module.kernels[0])
        assert (summary.static_shared_bytes, summary.uses_dynamic_shared) == (0, False)

    def test_form_counts(self):
        counts = form_counts(parse(TEXT))
        by_example = {example.text: count for count, example in counts.values()}
        assert by_example["suq.width.b32"] == 2
        assert by_example["ret"] == 2


class TestFlowText:
    def test_text(self):
        module = parse(kernel_text("@%p1 bra L; mov.u32 %r1, 1; L: ret;"))
        text = flow_text(build_flow(module, module.kernels[0]))
        headings = [line.strip() for line in text.splitlines() if "block " in line]
        assert headings == [
            "block 0 -> 2, 1; dominated by none, meets again at 2",
            "block 1 -> 2; dominated by 0, meets again at 2",
            "block 2 (L) -> leaves; dominated by 0, meets again at none",
        ]
        assert "kernel k: 3 blocks" in text
        assert "@%p1 bra L;" in text

    def test_dot(self):
        module = parse(kernel_text("@%p1 bra L; mov.b32 %r1, {%h1, %h2}; L: ret;"))
        text = flow_dot(build_flow(module, module.kernels[0]))
        assert "b0 -> b2;" in text
        assert "b0 -> b1;" in text
        assert "b0 -> b2 [style=dashed" in text
        assert r"\{%h1, %h2\}" in text
        assert text.count("{") - text.count(r"\{") == 1
