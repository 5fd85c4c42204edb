"""Stack manipulation: the rows."""

from __future__ import annotations

from functools import partial
from typing import Final

from va100.ptx.isa.form import Family, Form
from va100.ptx.isa.rows import form
from va100.work import Pipe

_ROW: Final = partial(form, family=Family.STACK, pipe=Pipe.ALU, since=(7, 3), min_sm=52)
_SECTION: Final = "stack-manipulation-instructions-"

FORMS: Final[tuple[Form, ...]] = (
    _ROW("stacksave", "u32|u64", "d", anchor=_SECTION + "stacksave"),
    _ROW("stackrestore", "u32|u64", "a", anchor=_SECTION + "stackrestore"),
    _ROW("alloca", "u32|u64", "da?i", anchor=_SECTION + "alloca"),
)
