"""Texture and surface access and queries: the rows.

Multi-sampled textures, which CUDA cannot make, have one sample a texel.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from va100.ptx.isa.form import Family, Form
from va100.ptx.isa.rows import form
from va100.work import Pipe

_ROW: Final = partial(form, family=Family.TEXTURE, pipe=Pipe.TEX)
_TEXTURE: Final = "texture-instructions-"
_SURFACE: Final = "surface-instructions-"
_GEOMETRY: Final = "1d|2d|3d|a1d|a2d|cube|acube"
_SAMPLED: Final = "u32|s32|f32"
_SURFACES: Final = "1d|2d|3d|a1d|a2d"
_OUTSIDE: Final = "trap|clamp|zero"
_QUERIES: Final = (
    "width|height|depth|channel_data_type|channel_order|normalized_coords|array_size|"
    "num_mipmap_levels|num_samples|force_unnormalized_coords|filter_mode|addr_mode_0|"
    "addr_mode_1|addr_mode_2"
)

FORMS: Final[tuple[Form, ...]] = (
    _ROW("tex", f"{_GEOMETRY} v4 {_SAMPLED} s32|f32", "vm?a?b", anchor=_TEXTURE + "tex"),
    _ROW("tex", f"{_GEOMETRY} v2 f16x2 s32|f32", "vm?a?b", anchor=_TEXTURE + "tex", since=(4, 2),
         min_sm=53),
    _ROW("tex", f"base {_GEOMETRY} v4 {_SAMPLED} f32", "vm?a?b", anchor=_TEXTURE + "tex",
         since=(3, 1)),
    _ROW("tex", f"level {_GEOMETRY} v4 {_SAMPLED} f32", "vma?b?c", anchor=_TEXTURE + "tex",
         since=(3, 1)),
    _ROW("tex", f"grad {_GEOMETRY} v4 {_SAMPLED} f32", "vmab?c?e", anchor=_TEXTURE + "tex",
         since=(3, 1)),
    _ROW("tex", f"base|level|grad {_GEOMETRY} v2 f16x2 f32", "vm?a?b?c?e", since=(4, 2),
         min_sm=53, anchor=_TEXTURE + "tex"),
    _ROW("tex", f"?base|level 2dms|a2dms v4 {_SAMPLED} s32", "vm?a", anchor=_TEXTURE + "tex",
         since=(3, 2)),
    _ROW("tld4", f"r|g|b|a 2d|a2d|cube|acube v4 {_SAMPLED} f32", "vm?a?b",
         anchor=_TEXTURE + "tld4", since=(2, 2)),
    _ROW("txq", f"{_QUERIES} b32", "dm", anchor=_TEXTURE + "txq", since=(1, 5)),
    _ROW("txq", "level width|height|depth b32", "dma", anchor=_TEXTURE + "txq", since=(4, 3)),
    _ROW("istypep", "texref|samplerref|surfref", "da", anchor=_TEXTURE + "istypep",
         since=(4, 0)),
    _ROW("suld", f"b {_SURFACES} ?ca|cg|cs|cv ?v2|v4 b8|b16|b32|b64 ?{_OUTSIDE}", "vm",
         anchor=_SURFACE + "suld", since=(1, 5)),
    _ROW("sust", f"b {_SURFACES} ?wb|cg|cs|wt ?v2|v4 b8|b16|b32|b64 ?{_OUTSIDE}", "mv",
         anchor=_SURFACE + "sust", since=(1, 5)),
    _ROW("sust", f"p {_SURFACES} ?v2|v4 b32|u32|s32|f32 ?{_OUTSIDE}", "mv",
         anchor=_SURFACE + "sust", since=(2, 0)),
    _ROW("sured", f"b add|min|max|and|or {_SURFACES} u32|u64|s32|b32|s64 ?{_OUTSIDE}", "mb",
         anchor=_SURFACE + "sured", since=(2, 0)),
    _ROW("sured", f"p add|min|max|and|or {_SURFACES} b32|b64 ?{_OUTSIDE}", "mb",
         anchor=_SURFACE + "sured", since=(2, 0)),
    _ROW("suq", "width|height|depth|channel_data_type|channel_order|array_size|memory_layout b32",
         "dm", anchor=_SURFACE + "suq", since=(1, 5)),
)  # fmt: skip
