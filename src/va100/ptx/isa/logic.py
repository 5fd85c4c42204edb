"""Bitwise logic, shifts, funnel shifts and byte permutation: the rows."""

from __future__ import annotations

from functools import partial
from typing import Final

from va100.ptx.isa.form import Family, Form
from va100.ptx.isa.rows import BITS, INTEGERS, form
from va100.work import Pipe

_ALU: Final = partial(form, family=Family.LOGIC, pipe=Pipe.ALU)
_SECTION: Final = "logic-and-shift-instructions-"

FORMS: Final[tuple[Form, ...]] = (
    _ALU("and", f"pred|{BITS}", "dab", anchor=_SECTION + "and"),
    _ALU("or", f"pred|{BITS}", "dab", anchor=_SECTION + "or"),
    _ALU("xor", f"pred|{BITS}", "dab", anchor=_SECTION + "xor"),
    _ALU("not", f"pred|{BITS}", "da", anchor=_SECTION + "not"),
    _ALU("cnot", BITS, "da", anchor=_SECTION + "cnot"),
    _ALU("lop3", "b32", "dabci", anchor=_SECTION + "lop3", since=(4, 3), min_sm=50),
    _ALU("lop3", "or|and b32", "dqabcip", anchor=_SECTION + "lop3", since=(8, 2), min_sm=70),
    _ALU("shf", "l|r clamp|wrap b32", "dabc", anchor=_SECTION + "shf", since=(3, 1), min_sm=32),
    _ALU("shl", BITS, "dab", anchor=_SECTION + "shl"),
    _ALU("shr", f"{BITS}|{INTEGERS}", "dab", anchor=_SECTION + "shr"),
    _ALU("prmt", "b32 ?f4e|b4e|rc8|ecl|ecr|rc16", "dabc", since=(2, 0),
         anchor="data-movement-and-conversion-instructions-prmt"),
)  # fmt: skip
