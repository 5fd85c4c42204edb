"""Conversions between number formats: the rows."""

from __future__ import annotations

from functools import partial
from typing import Final

from va100.ptx.isa.form import Family, Form
from va100.ptx.isa.rows import INTEGER_ROUNDINGS, ROUNDINGS, form
from va100.work import Pipe

_SECTION: Final = "data-movement-and-conversion-instructions-"
_CVT: Final = partial(form, "cvt", family=Family.CONVERT, pipe=Pipe.XU, anchor=_SECTION + "cvt")
_ALU: Final = partial(form, "cvt", family=Family.CONVERT, pipe=Pipe.ALU, anchor=_SECTION + "cvt")
_PACK: Final = partial(
    form, "cvt", family=Family.CONVERT, pipe=Pipe.ALU, anchor=_SECTION + "cvt-pack"
)

_INTEGERS: Final = "u8|u16|u32|u64|s8|s16|s32|s64"
_FLOATS: Final = "f16|f32|f64"
_FP8: Final = "e4m3x2|e5m2x2"

FORMS: Final[tuple[Form, ...]] = (
    _ALU(f"?sat {_INTEGERS} {_INTEGERS}", "da"),
    _CVT(f"{ROUNDINGS} ?ftz ?sat {_FLOATS} {_INTEGERS}", "da"),
    _CVT(f"{INTEGER_ROUNDINGS} ?ftz ?sat {_INTEGERS} {_FLOATS}", "da"),
    _CVT(f"{ROUNDINGS} ?ftz ?sat f16 f32", "da"),
    _CVT(f"{ROUNDINGS} ?sat f16 f64", "da"),
    _CVT(f"{ROUNDINGS} ?ftz ?sat f32 f64", "da"),
    _CVT("?ftz ?sat f32 f16", "da"),
    _CVT("?sat f64 f16", "da"),
    _CVT("?ftz ?sat f64 f32", "da"),
    _ALU(f"?{INTEGER_ROUNDINGS} ?sat f16 f16", "da"),
    _ALU(f"?{INTEGER_ROUNDINGS} ?ftz ?sat f32 f32", "da"),
    _ALU(f"?{INTEGER_ROUNDINGS} ?sat f64 f64", "da"),
    _CVT("rn|rz relu f16 f32", "da", since=(7, 0), min_sm=80),
    _CVT("rn|rz ?relu bf16 f32", "da", since=(7, 0), min_sm=80),
    _CVT("rn|rz ?relu f16x2|bf16x2 f32", "dab", since=(7, 0), min_sm=80),
    _CVT("rna tf32 f32", "da", since=(7, 0), min_sm=80),
    _ALU("f32 bf16", "da", since=(7, 1), min_sm=80),
    _CVT("rn|rz ?relu satfinite f16|bf16 f32", "da", since=(8, 1), min_sm=80),
    _CVT("rn|rz ?relu satfinite f16x2|bf16x2 f32", "dab", since=(8, 1), min_sm=80),
    _CVT("rna satfinite tf32 f32", "da", since=(8, 1), min_sm=80),
    _PACK("pack sat u16|s16 s32", "dab", since=(6, 5), min_sm=72),
    _PACK("pack sat u8|s8 s32 b32", "dabc", since=(6, 5), min_sm=72),
    _PACK("pack sat u4|s4|u2|s2 s32 b32", "dabc", since=(6, 5), min_sm=75),
    # Beyond the A100.
    _CVT("rn|rz ?relu ?satfinite tf32 f32", "da", since=(7, 8), min_sm=90),
    _CVT(f"{ROUNDINGS} bf16 {_INTEGERS}|f16|f64", "da", since=(7, 8), min_sm=90),
    _CVT("bf16 bf16", "da", since=(7, 8), min_sm=90),
    _CVT(f"{INTEGER_ROUNDINGS} ?sat {_INTEGERS}|bf16 bf16", "da", since=(7, 8), min_sm=90),
    _CVT(f"?{ROUNDINGS} f16|f64 bf16", "da", since=(7, 8), min_sm=90),
    _CVT(f"rn satfinite ?relu {_FP8} f32", "dab", since=(7, 8), min_sm=89),
    _CVT(f"rn satfinite ?relu {_FP8} f16x2", "da", since=(7, 8), min_sm=89),
    _CVT(f"rn ?relu f16x2 {_FP8}", "da", since=(7, 8), min_sm=89),
    _CVT("rn satfinite ?relu e2m1x2|e2m3x2|e3m2x2 f32", "dab", since=(8, 6), min_sm=100),
    _CVT("rn ?relu f16x2 e2m1x2|e2m3x2|e3m2x2", "da", since=(8, 6), min_sm=100),
    _CVT("rz|rp ?satfinite ue8m0x2 f32", "dab", since=(8, 6), min_sm=100),
    _CVT("rz|rp ?satfinite ue8m0x2 bf16x2", "da", since=(8, 6), min_sm=100),
    _CVT("rn bf16x2 ue8m0x2", "da", since=(8, 6), min_sm=100),
    _CVT("rs ?relu ?satfinite f16x2|bf16x2 f32", "dabc", since=(8, 7), min_sm=100),
    _CVT("rs ?relu satfinite e4m3x4|e5m2x4|e2m1x4|e2m3x4|e3m2x4 f32", "dab", since=(8, 7),
         min_sm=100),
)  # fmt: skip
