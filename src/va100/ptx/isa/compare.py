"""Comparison and selection: the rows."""

from __future__ import annotations

from functools import partial
from typing import Final

from va100.ptx.isa.form import Family, Form
from va100.ptx.isa.rows import form
from va100.work import Pipe

_ALU: Final = partial(form, family=Family.COMPARE, pipe=Pipe.ALU)
_FP64: Final = partial(form, family=Family.COMPARE, pipe=Pipe.FP64)
_FP16: Final = partial(form, family=Family.COMPARE, pipe=Pipe.FP16)
_SECTION: Final = "comparison-and-selection-instructions-"
_HALF_SECTION: Final = "half-precision-comparison-instructions-"

_EQUAL: Final = "eq|ne"
_ORDER: Final = "eq|ne|lt|le|gt|ge"
_UNSIGNED: Final = _ORDER + "|lo|ls|hi|hs"
_FLOATING: Final = _ORDER + "|equ|neu|ltu|leu|gtu|geu|num|nan"
_COMBINE: Final = "and|or|xor"
_SELECTED: Final = "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64"
_INTEGER_SOURCES: Final = (
    (_EQUAL, "b16|b32|b64"),
    (_UNSIGNED, "u16|u32|u64"),
    (_ORDER, "s16|s32|s64"),
)


def _setp() -> tuple[Form, ...]:
    rows = []
    anchor = _SECTION + "setp"
    half = partial(_FP16, anchor=_HALF_SECTION + "setp", since=(4, 2), min_sm=53)
    brain = partial(_FP16, anchor=_HALF_SECTION + "setp", since=(7, 8), min_sm=90)
    for combine, tail in (("", ""), (f" {_COMBINE}", "p")):
        for comparisons, types in _INTEGER_SOURCES:
            rows.append(
                _ALU("setp", f"{comparisons}{combine} {types}", f"dqab{tail}", anchor=anchor)
            )
        rows += [
            _ALU("setp", f"{_FLOATING}{combine} ?ftz f32", f"dqab{tail}", anchor=anchor),
            _FP64("setp", f"{_FLOATING}{combine} f64", f"dqab{tail}", anchor=anchor),
            half("setp", f"{_FLOATING}{combine} ?ftz f16", f"dqab{tail}"),
            half("setp", f"{_FLOATING}{combine} ?ftz f16x2", f"dqab{tail}"),
            brain("setp", f"{_FLOATING}{combine} bf16|bf16x2", f"dqab{tail}"),
        ]
    return tuple(rows)


def _set() -> tuple[Form, ...]:
    rows = []
    anchor = _SECTION + "set"
    half = partial(_FP16, anchor=_HALF_SECTION + "set", since=(4, 2), min_sm=53)
    brain = partial(_FP16, anchor=_HALF_SECTION + "set", since=(7, 8), min_sm=90)
    for combine, tail in (("", ""), (f" {_COMBINE}", "p")):
        for comparisons, types in _INTEGER_SOURCES:
            slots = f"{comparisons}{combine} u32|s32|f32 {types}"
            rows.append(_ALU("set", slots, f"dab{tail}", anchor=anchor))
            rows.append(half("set", f"{comparisons}{combine} f16 {types}", f"dab{tail}"))
        rows += [
            _ALU("set", f"{_FLOATING}{combine} ?ftz u32|s32|f32 f32", f"dab{tail}", anchor=anchor),
            _FP64("set", f"{_FLOATING}{combine} u32|s32|f32 f64", f"dab{tail}", anchor=anchor),
            half("set", f"{_FLOATING}{combine} ?ftz f16 f16|f32|f64", f"dab{tail}"),
            half("set", f"{_FLOATING}{combine} ?ftz u16|s16|u32|s32 f16", f"dab{tail}"),
            half("set", f"{_FLOATING}{combine} ?ftz f16x2|u32|s32 f16x2", f"dab{tail}"),
            brain("set", f"{_FLOATING}{combine} bf16|u16|s16|u32|s32 bf16", f"dab{tail}"),
            brain("set", f"{_FLOATING}{combine} bf16x2|u32|s32 bf16x2", f"dab{tail}"),
        ]
    return tuple(rows)


FORMS: Final[tuple[Form, ...]] = (
    *_setp(),
    *_set(),
    _ALU("selp", _SELECTED, "dabp", anchor=_SECTION + "selp"),
    _ALU("slct", f"{_SELECTED} s32", "dabc", anchor=_SECTION + "slct"),
    _ALU("slct", f"?ftz {_SELECTED} f32", "dabc", anchor=_SECTION + "slct"),
)
