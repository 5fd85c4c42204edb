"""Trees to text and back."""

from __future__ import annotations

import pytest

from tests.helpers.ptx_corpus import GOLDEN, golden_texts
from tests.helpers.ptx_trees import without_spans
from va100.ptx.parser import parse
from va100.ptx.printer import print_function, print_module, print_operand
from va100.ptx.program import Address, Immediate, Register, Symbol

EXPECTED = GOLDEN / "syntax.printed"


def test_golden_print(request):
    printed = print_module(parse(golden_texts()["syntax.ptx"]))
    if request.config.getoption("--update-golden", default=False):
        EXPECTED.write_text(printed, encoding="utf-8")
    assert printed == EXPECTED.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", golden_texts())
def test_printing_and_parsing_gives_the_same_tree(name):
    module = parse(golden_texts()[name])
    assert without_spans(parse(print_module(module))) == without_spans(module)


def test_one_function():
    module = parse(golden_texts()["syntax.ptx"])
    text = print_function(next(f for f in module.functions if f.name == "minimal"))
    assert text == ".entry minimal (\n)\n{\n    ret;\n}"


@pytest.mark.parametrize(
    ("operand", "text"),
    [
        (None, "_"),
        (Immediate(-5, "int"), "-5"),
        (Immediate(0x3F800000, "f32"), "0f3F800000"),
        (Immediate(1, "f64"), "0d0000000000000001"),
        (Symbol("x", -4), "x-4"),
        (Address(None, 16), "[16]"),
        (Address(Register("%rd1"), 0), "[%rd1]"),
    ],
)
def test_operands(operand, text):
    assert print_operand(operand) == text
