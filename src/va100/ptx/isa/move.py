"""Moves, packing, address space conversion: the rows."""

from __future__ import annotations

from functools import partial
from typing import Final

from va100.ptx.isa.form import Family, Form
from va100.ptx.isa.rows import form
from va100.work import Pipe

_ALU: Final = partial(form, family=Family.MOVE, pipe=Pipe.ALU)
_SECTION: Final = "data-movement-and-conversion-instructions-"
_SPACES: Final = "const|global|local|shared|shared::cta"

FORMS: Final[tuple[Form, ...]] = (
    _ALU("mov", "pred|b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64", "vv", anchor=_SECTION + "mov"),
    _ALU("mov", "v2|v4 b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64", "vv",
         anchor=_SECTION + "mov"),
    _ALU("mov", "b128", "vv", anchor=_SECTION + "mov", since=(8, 3), min_sm=70),
    _ALU("cvta", f"?to {_SPACES} u32|u64", "da", anchor=_SECTION + "cvta", since=(2, 0)),
    _ALU("cvta", "?to param|param::entry u32|u64", "da", anchor=_SECTION + "cvta", since=(7, 7),
         min_sm=70),
    _ALU("cvta", "?to shared::cluster u32|u64", "da", anchor=_SECTION + "cvta", since=(7, 8),
         min_sm=90),
    _ALU("isspacep", _SPACES, "da", anchor=_SECTION + "isspacep", since=(2, 0)),
    _ALU("isspacep", "param|param::entry", "da", anchor=_SECTION + "isspacep", since=(7, 7),
         min_sm=70),
    _ALU("isspacep", "shared::cluster", "da", anchor=_SECTION + "isspacep", since=(7, 8),
         min_sm=90),
    _ALU("mapa", "?shared::cluster u32|u64", "dab", anchor=_SECTION + "mapa", since=(7, 8),
         min_sm=90),
    _ALU("getctarank", "?shared::cluster u32|u64", "da", anchor=_SECTION + "getctarank",
         since=(7, 8), min_sm=90),
)  # fmt: skip
