"""What the driver's crossing into Python says of a module."""

from __future__ import annotations

from va100.driver.compile import refusal_of
from va100.ptx.parser import parse

TEXT = """.version 8.0
.target sm_80
.address_size 64
.func asks () { .reg .b32 %a; suq.width.b32 %a, [%a]; ret; }
.entry clean () { ret; }
.entry asking () { call asks; ret; }
"""


def test_a_kernel_that_reaches_what_is_not_executed_is_refused_with_its_line() -> None:
    module = parse(TEXT, "text.ptx")
    assert refusal_of(module, "clean") is None
    refusal = (refusal_of(module, "asking") or b"").decode()
    assert "suq.width.b32" in refusal
    assert "text.ptx:4" in refusal
