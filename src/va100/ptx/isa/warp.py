"""Exchanges and votes among the lanes of a warp: the rows."""

from __future__ import annotations

from functools import partial
from typing import Final

from va100.ptx.isa.form import Family, Form, Support
from va100.ptx.isa.rows import form
from va100.work import Pipe

_LSU: Final = partial(form, family=Family.WARP, pipe=Pipe.LSU)
_ALU: Final = partial(form, family=Family.WARP, pipe=Pipe.ALU)
_SECTION: Final = "parallel-synchronization-and-communication-instructions-"
_SHUFFLE: Final = "data-movement-and-conversion-instructions-shfl-sync"

FORMS: Final[tuple[Form, ...]] = (
    _LSU("shfl", "sync up|down|bfly|idx b32", "dqabce", anchor=_SHUFFLE, since=(6, 0), min_sm=30),
    _ALU("vote", "sync all|any|uni pred", "dpb", anchor=_SECTION + "vote-sync", since=(6, 0),
         min_sm=30),
    _ALU("vote", "sync ballot b32", "dpb", anchor=_SECTION + "vote-sync", since=(6, 0), min_sm=30),
    # As texts for sm_60 and earlier have them: among the lanes that happen to execute together.
    _LSU("shfl", "up|down|bfly|idx b32", "dqabc", anchor=_SHUFFLE, since=(3, 0), min_sm=30,
         until=(6, 4), until_sm=70),
    _ALU("vote", "all|any|uni pred", "dp", anchor=_SECTION + "vote", since=(1, 2), until=(6, 4),
         until_sm=70),
    _ALU("vote", "ballot b32", "dp", anchor=_SECTION + "vote", since=(2, 0), until=(6, 4),
         until_sm=70),
    _ALU("match", "any sync b32|b64", "dab", anchor=_SECTION + "match-sync", since=(6, 0),
         min_sm=70),
    _ALU("match", "all sync b32|b64", "dqab", anchor=_SECTION + "match-sync", since=(6, 0),
         min_sm=70),
    _ALU("activemask", "b32", "d", anchor=_SECTION + "activemask", since=(6, 2), min_sm=30),
    _ALU("redux", "sync add|min|max u32|s32", "dab", anchor=_SECTION + "redux-sync", since=(7, 0),
         min_sm=80),
    _ALU("redux", "sync and|or|xor b32", "dab", anchor=_SECTION + "redux-sync", since=(7, 0),
         min_sm=80),
    _ALU("redux", "sync min|max ?abs ?NaN f32", "dab", anchor=_SECTION + "redux-sync",
         since=(8, 6), min_sm=100, support=Support.PARSED),
    _ALU("elect", "sync", "dqa", anchor=_SECTION + "elect-sync", since=(8, 0), min_sm=90,
         support=Support.PARSED),
)  # fmt: skip
