"""What is found out about a module's text, and what is trusted of it in a later process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from va100.driver import checked
from va100.driver.checked import checked_module, refusal_of
from va100.errors import PtxError
from va100.ptx.body import UnreadBody
from va100.ptx.parser import parse

HEADER = ".version 9.0\n.target sm_80\n.address_size 64\n"
TEXT = f"""{HEADER}
.func asks () {{ .reg .b32 %t; mov.u32 %t, %perctamemorysize; ret; }}
.entry clean (.param .u64 data)  // not {{ a body
{{
    .reg .b32 tile, %r<4>;  /* }} nor its end */
    {{ .reg .b32 %r1; mov.b32 %r1, tile; }}
    ret;
}}
.entry asking () {{ call asks; ret; }}
"""
BROKEN = TEXT.replace("mov.b32 %r1, tile", "mov.b64 %r1, tile")
ALIASED = f"""{HEADER}
.visible .func real () {{ .reg .b32 %a; mov.b32 %a, 1; ret; }}
.visible .func other ();
.alias other, real;
.entry k () {{ call other; ret; }}
"""


class Kept:
    """A cache in memory, which counts what it had to have made."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}

    def __call__(self, text: str, make: Callable[[], bytes]) -> bytes:
        if text not in self.entries:
            self.entries[text] = make()
        return self.entries[text]


def test_a_kernel_that_reaches_what_is_not_executed_is_refused_with_its_line() -> None:
    module = parse(TEXT, "text.ptx")
    clean, asking = module.kernels
    assert refusal_of(module, clean) == ""
    assert "%perctamemorysize" in refusal_of(module, asking)
    assert "text.ptx:5" in refusal_of(module, asking)


@pytest.mark.parametrize("text", [TEXT, ALIASED])
def test_what_is_known_of_a_text_gives_the_same_module(text: str) -> None:
    keep = Kept()
    first = checked_module(text, "text.ptx", keep)
    again = checked_module(text, "text.ptx", keep)
    bodies = [f.body for f in again.ptx.functions if f.body is not None]
    assert bodies
    assert all(isinstance(body, UnreadBody) for body in bodies)
    assert again == first == checked_module(text, "text.ptx")


def test_what_is_known_of_a_text_is_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = Kept()
    checked_module(TEXT, "text.ptx", keep)
    monkeypatch.setattr(checked, "verify", lambda _: pytest.fail("verified again"))
    again = checked_module(TEXT, "other.ptx", keep)
    assert list(again.refusals) == ["asking"]
    assert "other.ptx:5" in again.refusals["asking"]


def test_nothing_is_kept_of_a_text_that_is_refused() -> None:
    keep = Kept()
    for _ in range(2):
        with pytest.raises(PtxError, match=r"mov\.b64|%r1"):
            checked_module(BROKEN, "text.ptx", keep)
    assert not keep.entries
