"""The PTX that nvcc, NVRTC, Triton, numba, CuPy and XLA wrote: read, checked, printed, resolved."""

from __future__ import annotations

import re

import pytest

from tests.helpers.ptx_corpus import require_corpus
from tests.helpers.ptx_trees import without_spans
from va100.ptx.cfg import build_flow
from va100.ptx.isa import Support, decode
from va100.ptx.parser import parse
from va100.ptx.printer import print_module
from va100.ptx.summary import summarise
from va100.ptx.verify import problems, unsupported

_COMMENT = re.compile(r"//[^\n]*")


@pytest.fixture(scope="module")
def corpus(request):
    return {path.name: path.read_text() for path in require_corpus(request.config)}


def test_every_text_keeps_the_rules(corpus):
    found = {name: [str(p) for p in problems(parse(text, name))] for name, text in corpus.items()}
    assert {name: p for name, p in found.items() if p} == {}


def test_every_text_prints_back_to_the_same_tree(corpus):
    for name, text in corpus.items():
        module = parse(text, name)
        printed = print_module(module)
        again = parse(printed, name)
        assert without_spans(again) == without_spans(module), name
        assert print_module(again) == printed, name


def test_every_instruction_is_found_where_its_span_says(corpus):
    for name, text in corpus.items():
        module = parse(text, name)
        for function in module.functions:
            if function.body is None:
                continue
            flow = build_flow(module, function)
            for instruction, line in zip(flow.instructions, flow.lines, strict=True):
                written = text[instruction.span.start : instruction.span.end]
                if written == "}":
                    continue  # the ret that running off the end means
                assert written.endswith(";"), name
                assert instruction.op in "".join(written.split()), name
                assert module.line_of(instruction.span.start) == line, name


def test_blocks_partition_the_instructions_control_reaches(corpus):
    for name, text in corpus.items():
        module = parse(text, name)
        for function in module.functions:
            if function.body is None:
                continue
            flow = build_flow(module, function)
            edges = {(b.index, s) for b in flow.blocks for s in b.successors}
            assert edges == {(p, b.index) for b in flow.blocks for p in b.predecessors}, name
            previous = 0
            for block in flow.blocks:
                assert previous <= block.start < block.end, name
                previous = block.end
                leaves = flow.instructions[block.end - 1].opcode in ("ret", "exit")
                assert block.successors or leaves, name


def test_what_is_not_executed_is_named_with_its_line(corpus):
    module = parse(corpus["05_mma_inline.ptx"], "05_mma_inline.ptx")
    (kernel,) = (k for k in module.kernels if k.name == "mma_m16n8k16_f16")
    lines = corpus["05_mma_inline.ptx"].splitlines()
    for error in unsupported(module, kernel):
        operation = error.problem.split("'")[1]
        assert operation in lines[error.line - 1]
        assert decode(operation).form.support is Support.PARSED
    assert unsupported(parse(corpus["01_elementwise.ptx"]), parse(
        corpus["01_elementwise.ptx"]).kernels[0]) == []  # fmt: skip


def test_summary_counts_what_the_text_holds(corpus):
    text = corpus["02_reduction.ptx"]
    module = parse(text)
    code = _COMMENT.sub("", text)
    counted = sum(
        summarise(module, f).instruction_count for f in module.functions if f.body is not None
    )
    assert counted == len(re.findall(r"^\s+(?:@!?%p\d+ )?[a-z][\w.]*\s*[^;{}]*;", code, re.M))
