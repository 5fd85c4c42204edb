"""Integer arithmetic, extended precision, bit fields and counts: the rows.

Facts only; the engines hold the semantics.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from va100.ptx.isa.form import Family, Form
from va100.ptx.isa.rows import INTEGERS, SIGNED, form
from va100.work import Pipe

_ALU: Final = partial(form, family=Family.INTEGER, pipe=Pipe.ALU)
_FMA: Final = partial(form, family=Family.INTEGER, pipe=Pipe.FMA)
_XU: Final = partial(form, family=Family.INTEGER, pipe=Pipe.XU)
_SECTION: Final = "integer-arithmetic-instructions-"
_CARRY: Final = "extended-precision-arithmetic-instructions-"
_CARRIED: Final = "u32|s32|u64|s64"

FORMS: Final[tuple[Form, ...]] = (
    _ALU("add", "u16|u32|u64|s16|s64", "dab", anchor=_SECTION + "add"),
    _ALU("add", "?sat s32", "dab", anchor=_SECTION + "add"),
    _ALU("add", "u16x2|s16x2", "dab", anchor=_SECTION + "add", since=(8, 0), min_sm=90),
    _ALU("sub", "u16|u32|u64|s16|s64", "dab", anchor=_SECTION + "sub"),
    _ALU("sub", "?sat s32", "dab", anchor=_SECTION + "sub"),
    _ALU("sub", "u16x2|s16x2", "dab", anchor=_SECTION + "sub", since=(9, 2), min_sm=100),
    _FMA("mul", f"hi|lo {INTEGERS}", "dab", anchor=_SECTION + "mul"),
    _FMA("mul", "wide u16|u32|s16|s32", "dab", anchor=_SECTION + "mul"),
    _FMA("mad", f"hi|lo {INTEGERS}", "dabc", anchor=_SECTION + "mad"),
    _FMA("mad", "wide u16|u32|s16|s32", "dabc", anchor=_SECTION + "mad"),
    _FMA("mad", "hi sat s32", "dabc", anchor=_SECTION + "mad"),
    _ALU("mul24", "hi|lo u32|s32", "dab", anchor=_SECTION + "mul24"),
    _ALU("mad24", "hi|lo u32|s32", "dabc", anchor=_SECTION + "mad24"),
    _ALU("mad24", "hi sat s32", "dabc", anchor=_SECTION + "mad24"),
    _ALU("sad", INTEGERS, "dabc", anchor=_SECTION + "sad"),
    _ALU("div", INTEGERS, "dab", anchor=_SECTION + "div"),
    _ALU("rem", INTEGERS, "dab", anchor=_SECTION + "rem"),
    _ALU("abs", SIGNED, "da", anchor=_SECTION + "abs"),
    _ALU("neg", SIGNED, "da", anchor=_SECTION + "neg"),
    _ALU("min", INTEGERS, "dab", anchor=_SECTION + "min"),
    _ALU("min", "relu s32|s16x2", "dab", anchor=_SECTION + "min", since=(8, 0), min_sm=90),
    _ALU("min", "u16x2|s16x2", "dab", anchor=_SECTION + "min", since=(8, 0), min_sm=90),
    _ALU("max", INTEGERS, "dab", anchor=_SECTION + "max"),
    _ALU("max", "relu s32|s16x2", "dab", anchor=_SECTION + "max", since=(8, 0), min_sm=90),
    _ALU("max", "u16x2|s16x2", "dab", anchor=_SECTION + "max", since=(8, 0), min_sm=90),
    _XU("popc", "b32|b64", "da", anchor=_SECTION + "popc", since=(2, 0)),
    _XU("clz", "b32|b64", "da", anchor=_SECTION + "clz", since=(2, 0)),
    _XU("bfind", "?shiftamt u32|u64|s32|s64", "da", anchor=_SECTION + "bfind", since=(2, 0)),
    _XU("brev", "b32|b64", "da", anchor=_SECTION + "brev", since=(2, 0)),
    _ALU("fns", "b32", "dabc", anchor=_SECTION + "fns", since=(6, 0), min_sm=30),
    _ALU("bfe", "u32|u64|s32|s64", "dabc", anchor=_SECTION + "bfe", since=(2, 0)),
    _ALU("bfi", "b32|b64", "dabce", anchor=_SECTION + "bfi", since=(2, 0)),
    _ALU("szext", "clamp|wrap u32|s32", "dab", anchor=_SECTION + "szext", since=(7, 6), min_sm=70),
    _ALU("bmsk", "clamp|wrap b32", "dab", anchor=_SECTION + "bmsk", since=(7, 6), min_sm=70),
    _FMA("dp4a", "u32|s32 u32|s32", "dabc", anchor=_SECTION + "dp4a", since=(5, 0), min_sm=61),
    _FMA("dp2a", "lo|hi u32|s32 u32|s32", "dabc", anchor=_SECTION + "dp2a", since=(5, 0),
         min_sm=61),
    _FMA("clmad", "lo|hi u64", "dabc", anchor=_SECTION + "clmad", since=(9, 3), min_sm=80),
    _ALU("add", f"cc {_CARRIED}", "dab", anchor=_CARRY + "add-cc", since=(1, 2)),
    _ALU("addc", f"?cc {_CARRIED}", "dab", anchor=_CARRY + "addc", since=(1, 2)),
    _ALU("sub", f"cc {_CARRIED}", "dab", anchor=_CARRY + "sub-cc", since=(1, 2)),
    _ALU("subc", f"?cc {_CARRIED}", "dab", anchor=_CARRY + "subc", since=(1, 2)),
    _FMA("mad", f"hi|lo cc {_CARRIED}", "dabc", anchor=_CARRY + "mad-cc", since=(3, 0)),
    _FMA("madc", f"hi|lo ?cc {_CARRIED}", "dabc", anchor=_CARRY + "madc", since=(3, 0)),
)  # fmt: skip
