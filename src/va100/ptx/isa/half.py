"""Half precision and bfloat16 arithmetic, scalar and packed: the rows."""

from __future__ import annotations

from functools import partial
from typing import Final

from va100.ptx.isa.form import Family, Form
from va100.ptx.isa.rows import form
from va100.work import Pipe

_FP16: Final = partial(form, family=Family.HALF, pipe=Pipe.FP16)
_XU: Final = partial(form, family=Family.HALF, pipe=Pipe.XU)
_SECTION: Final = "half-precision-floating-point-instructions-"
_F16: Final = "f16|f16x2"
_BF16: Final = "bf16|bf16x2"


def _arithmetic(opcode: str) -> tuple[Form, ...]:
    anchor = _SECTION + opcode
    return (
        _FP16(opcode, f"?rn ?ftz ?sat {_F16}", "dab", anchor=anchor, since=(4, 2), min_sm=53),
        _FP16(opcode, f"?rn {_BF16}", "dab", anchor=anchor, since=(7, 8), min_sm=90),
    )


def _extremum(opcode: str) -> tuple[Form, ...]:
    anchor = _SECTION + opcode
    return (
        _FP16(opcode, f"?ftz ?NaN {_F16}", "dab", anchor=anchor, since=(7, 0), min_sm=80),
        _FP16(opcode, f"?NaN {_BF16}", "dab", anchor=anchor, since=(7, 0), min_sm=80),
        _FP16(opcode, f"?ftz ?NaN xorsign abs {_F16}", "dab", anchor=anchor, since=(7, 2),
              min_sm=86),
        _FP16(opcode, f"?NaN xorsign abs {_BF16}", "dab", anchor=anchor, since=(7, 2), min_sm=86),
    )  # fmt: skip


FORMS: Final[tuple[Form, ...]] = (
    *_arithmetic("add"),
    *_arithmetic("sub"),
    *_arithmetic("mul"),
    _FP16("fma", f"rn ?ftz ?sat {_F16}", "dabc", anchor=_SECTION + "fma", since=(4, 2), min_sm=53),
    _FP16("fma", f"rn ?ftz relu {_F16}", "dabc", anchor=_SECTION + "fma", since=(7, 0), min_sm=80),
    _FP16("fma", f"rn ?relu {_BF16}", "dabc", anchor=_SECTION + "fma", since=(7, 0), min_sm=80),
    _FP16("fma", f"rn oob ?relu {_F16}|{_BF16}", "dabc", anchor=_SECTION + "fma", since=(8, 1),
          min_sm=90),
    _FP16("neg", f"?ftz {_F16}", "da", anchor=_SECTION + "neg", since=(6, 0), min_sm=53),
    _FP16("neg", _BF16, "da", anchor=_SECTION + "neg", since=(7, 0), min_sm=80),
    _FP16("abs", f"?ftz {_F16}", "da", anchor=_SECTION + "abs", since=(6, 5), min_sm=53),
    _FP16("abs", _BF16, "da", anchor=_SECTION + "abs", since=(7, 0), min_sm=80),
    *_extremum("min"),
    *_extremum("max"),
    _XU("tanh", f"approx {_F16}", "da", anchor=_SECTION + "tanh", since=(7, 0), min_sm=75),
    _XU("tanh", f"approx {_BF16}", "da", anchor=_SECTION + "tanh", since=(7, 8), min_sm=90),
    _XU("ex2", f"approx {_F16}", "da", anchor=_SECTION + "ex2", since=(7, 0), min_sm=75),
    _XU("ex2", f"approx ftz {_BF16}", "da", anchor=_SECTION + "ex2", since=(7, 8), min_sm=90),
)  # fmt: skip
