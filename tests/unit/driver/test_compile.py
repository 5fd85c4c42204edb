"""What the driver's crossing into Python says of a module."""

from __future__ import annotations

from va100.driver.compile import refusal_of
from va100.ptx.parser import parse

TEXT = """.version 8.0
.target sm_80
.address_size 64
.func asks () { .reg .b32 %a<5>; .reg .b64 %t;
  tex.2dms.v4.s32.s32 {%a1, %a2, %a3, %a4}, [%t, {%a0, %a1, %a2, %a3}]; ret; }
.entry clean () { ret; }
.entry asking () { call asks; ret; }
"""


def test_a_kernel_that_reaches_what_is_not_executed_is_refused_with_its_line() -> None:
    module = parse(TEXT, "text.ptx")
    assert refusal_of(module, "clean") is None
    refusal = (refusal_of(module, "asking") or b"").decode()
    assert "tex.2dms.v4.s32.s32" in refusal
    assert "text.ptx:5" in refusal
