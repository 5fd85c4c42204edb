"""Scalar and SIMD video instructions: the rows."""

from __future__ import annotations

from functools import partial
from typing import Final

from va100.ptx.isa.form import Family, Form
from va100.ptx.isa.rows import form
from va100.work import Pipe

_ROW: Final = partial(form, family=Family.VIDEO, pipe=Pipe.ALU, min_sm=20)
_SCALAR: Final = partial(_ROW, anchor="scalar-video-instructions", since=(2, 0))
_SIMD: Final = partial(_ROW, anchor="simd-video-instructions", since=(3, 0))
_T: Final = "u32|s32"
_TRIPLE: Final = f"{_T} {_T} {_T}"
_COMPARISONS: Final = "eq|ne|lt|le|gt|ge"
_SCALAR_ARITHMETIC: Final = ("vadd", "vsub", "vabsdiff", "vmin", "vmax")
_SIMD_ARITHMETIC: Final = ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax")

FORMS: Final[tuple[Form, ...]] = (
    *(_SCALAR(op, f"{_TRIPLE} ?sat ?add|min|max", "dab?c") for op in _SCALAR_ARITHMETIC),
    *(
        _SCALAR(op, f"{_T} {_T} u32 ?sat clamp|wrap ?add|min|max", "dab?c")
        for op in ("vshl", "vshr")
    ),
    _SCALAR("vmad", f"{_TRIPLE} ?po ?sat ?shr7|shr15", "dabc"),
    _SCALAR("vset", f"{_T} {_T} {_COMPARISONS} ?add|min|max", "dab?c"),
    *(
        _SIMD(f"{op}{lanes}", f"{_TRIPLE} ?sat ?add", "dabc")
        for lanes in (2, 4)
        for op in _SIMD_ARITHMETIC
    ),
    *(_SIMD(f"vset{lanes}", f"{_T} {_T} {_COMPARISONS} ?add", "dabc") for lanes in (2, 4)),
)
