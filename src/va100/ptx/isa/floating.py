"""Single and double precision floating point: the rows.

Half precision is in :mod:`va100.ptx.isa.half`; comparisons in :mod:`va100.ptx.isa.compare`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from va100.ptx.isa.form import Family, Form
from va100.ptx.isa.rows import ROUNDINGS, form
from va100.work import Pipe

_FMA: Final = partial(form, family=Family.FLOATING, pipe=Pipe.FMA)
_ALU: Final = partial(form, family=Family.FLOATING, pipe=Pipe.ALU)
_FP64: Final = partial(form, family=Family.FLOATING, pipe=Pipe.FP64)
_XU: Final = partial(form, family=Family.FLOATING, pipe=Pipe.XU)
_SECTION: Final = "floating-point-instructions-"
_KINDS: Final = "finite|infinite|number|notanumber|normal|subnormal"


def _arithmetic(opcode: str, operands: str, *, rounding: str) -> tuple[Form, ...]:
    anchor = _SECTION + opcode
    return (
        _FMA(opcode, f"{rounding} ?ftz ?sat f32", operands, anchor=anchor),
        _FP64(opcode, f"{rounding} f64", operands, anchor=anchor),
        _FMA(opcode, f"{rounding} ?ftz f32x2", operands, anchor=anchor, since=(8, 6), min_sm=100),
    )


def _extremum(opcode: str) -> tuple[Form, ...]:
    anchor = _SECTION + opcode
    return (
        _ALU(opcode, "?ftz f32", "dab", anchor=anchor),
        _ALU(opcode, "?ftz NaN f32", "dab", anchor=anchor, since=(7, 0), min_sm=80),
        _FP64(opcode, "f64", "dab", anchor=anchor),
        _ALU(opcode, "?ftz ?NaN xorsign abs f32", "dab", anchor=anchor, since=(7, 2), min_sm=86),
        _ALU(opcode, "?ftz ?NaN ?abs f32", "dabc", anchor=anchor, since=(8, 8), min_sm=100),
    )


FORMS: Final[tuple[Form, ...]] = (
    _ALU("testp", f"{_KINDS} f32", "da", anchor=_SECTION + "testp", since=(2, 0)),
    _FP64("testp", f"{_KINDS} f64", "da", anchor=_SECTION + "testp", since=(2, 0)),
    _ALU("copysign", "f32|f64", "dab", anchor=_SECTION + "copysign", since=(2, 0)),
    *_arithmetic("add", "dab", rounding=f"?{ROUNDINGS}"),
    *_arithmetic("sub", "dab", rounding=f"?{ROUNDINGS}"),
    *_arithmetic("mul", "dab", rounding=f"?{ROUNDINGS}"),
    *_arithmetic("fma", "dabc", rounding=ROUNDINGS),
    _FMA("mad", f"{ROUNDINGS} ?ftz ?sat f32", "dabc", anchor=_SECTION + "mad"),
    _FP64("mad", f"{ROUNDINGS} f64", "dabc", anchor=_SECTION + "mad"),
    _FMA("add", f"?{ROUNDINGS} ?sat f32 f16|bf16", "dab", anchor=_SECTION + "add", since=(8, 6),
         min_sm=100),
    _FMA("sub", f"?{ROUNDINGS} ?sat f32 f16|bf16", "dab", anchor=_SECTION + "sub", since=(8, 6),
         min_sm=100),
    _FMA("fma", f"{ROUNDINGS} ?sat f32 f16|bf16", "dabc", anchor=_SECTION + "fma", since=(8, 6),
         min_sm=100),
    _XU("div", "approx|full ?ftz f32", "dab", anchor=_SECTION + "div"),
    _XU("div", f"{ROUNDINGS} ?ftz f32", "dab", anchor=_SECTION + "div", since=(1, 4)),
    _FP64("div", f"{ROUNDINGS} f64", "dab", anchor=_SECTION + "div", since=(1, 4)),
    _ALU("abs", "?ftz f32", "da", anchor=_SECTION + "abs"),
    _FP64("abs", "f64", "da", anchor=_SECTION + "abs"),
    _ALU("neg", "?ftz f32", "da", anchor=_SECTION + "neg"),
    _FP64("neg", "f64", "da", anchor=_SECTION + "neg"),
    *_extremum("min"),
    *_extremum("max"),
    _XU("rcp", "approx ?ftz f32", "da", anchor=_SECTION + "rcp"),
    _XU("rcp", f"{ROUNDINGS} ?ftz f32", "da", anchor=_SECTION + "rcp", since=(1, 4)),
    _FP64("rcp", f"{ROUNDINGS} f64", "da", anchor=_SECTION + "rcp", since=(1, 4)),
    _XU("rcp", "approx ftz f64", "da", anchor=_SECTION + "rcp-approx-ftz-f64", since=(2, 1)),
    _XU("sqrt", "approx ?ftz f32", "da", anchor=_SECTION + "sqrt"),
    _XU("sqrt", f"{ROUNDINGS} ?ftz f32", "da", anchor=_SECTION + "sqrt", since=(1, 4)),
    _FP64("sqrt", f"{ROUNDINGS} f64", "da", anchor=_SECTION + "sqrt", since=(1, 4)),
    _XU("rsqrt", "approx ?ftz f32", "da", anchor=_SECTION + "rsqrt"),
    _XU("rsqrt", "approx f64", "da", anchor=_SECTION + "rsqrt", since=(1, 4)),
    _XU("rsqrt", "approx ftz f64", "da", anchor=_SECTION + "rsqrt-approx-ftz-f64", since=(4, 0)),
    _XU("sin", "approx ?ftz f32", "da", anchor=_SECTION + "sin"),
    _XU("cos", "approx ?ftz f32", "da", anchor=_SECTION + "cos"),
    _XU("sin", "approx 2pi ftz f32", "da", anchor=_SECTION + "sin", since=(9, 5)),
    _XU("cos", "approx 2pi ftz f32", "da", anchor=_SECTION + "cos", since=(9, 5)),
    _XU("lg2", "approx ?ftz f32", "da", anchor=_SECTION + "lg2"),
    _XU("ex2", "approx ?ftz f32", "da", anchor=_SECTION + "ex2"),
    _XU("tanh", "approx f32", "da", anchor=_SECTION + "tanh", since=(7, 0), min_sm=75),
)  # fmt: skip
