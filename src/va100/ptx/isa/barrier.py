"""Barriers of a CTA or warp, memory barriers and fences: the rows.

Asynchronous copies and ``mbarrier`` objects are in :mod:`va100.ptx.isa.asynchronous`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from va100.ptx.isa.form import Family, Form, Support
from va100.ptx.isa.rows import form
from va100.work import Pipe

_ROW: Final = partial(form, family=Family.BARRIER, pipe=Pipe.CONTROL)
_LSU: Final = partial(form, family=Family.BARRIER, pipe=Pipe.LSU)
_PARSED: Final = partial(_ROW, support=Support.PARSED)
_SECTION: Final = "parallel-synchronization-and-communication-instructions-"
_BAR: Final = _SECTION + "bar"
_FENCE: Final = _SECTION + "membar"

FORMS: Final[tuple[Form, ...]] = (
    _ROW("bar", "?cta sync", "a?b", anchor=_BAR),
    _ROW("bar", "?cta arrive", "ab", anchor=_BAR, since=(2, 0)),
    _ROW("bar", "?cta red popc u32", "da?bp", anchor=_BAR, since=(2, 0)),
    _ROW("bar", "?cta red and|or pred", "da?bp", anchor=_BAR, since=(2, 0)),
    _ROW("barrier", "?cta sync ?aligned", "a?b", anchor=_BAR, since=(6, 0), min_sm=30),
    _ROW("barrier", "?cta arrive ?aligned", "ab", anchor=_BAR, since=(6, 0), min_sm=30),
    _ROW("barrier", "?cta red popc ?aligned u32", "da?bp", anchor=_BAR, since=(6, 0), min_sm=30),
    _ROW("barrier", "?cta red and|or ?aligned pred", "da?bp", anchor=_BAR, since=(6, 0),
         min_sm=30),
    _ROW("bar", "warp sync", "a", anchor=_SECTION + "bar-warp-sync", since=(6, 0), min_sm=30),
    _LSU("membar", "cta|gl|sys", "", anchor=_FENCE, since=(1, 4)),
    _LSU("fence", "?sc|acq_rel cta|gpu|sys", "", anchor=_FENCE, since=(6, 0), min_sm=70),
    _LSU("membar", "proxy alias", "", anchor=_FENCE, since=(7, 5), min_sm=70),
    _LSU("fence", "proxy alias", "", anchor=_FENCE, since=(7, 5), min_sm=70),
    # Beyond the A100.
    _PARSED("fence", "?sc|acq_rel|acquire|release cluster", "", anchor=_FENCE, since=(7, 8),
            min_sm=90),
    _PARSED("fence", "acquire|release cta|gpu|sys", "", anchor=_FENCE, since=(8, 6), min_sm=90),
    _PARSED("fence", "acquire|release sync_restrict::shared::cta|sync_restrict::shared::cluster "
            "cluster", "", anchor=_FENCE, since=(8, 6), min_sm=90),
    _PARSED("fence", "mbarrier_init release cluster", "", anchor=_FENCE, since=(8, 0), min_sm=90),
    _PARSED("fence", "proxy async|async::generic ?global|shared::cta|shared::cluster", "",
            anchor=_FENCE, since=(8, 0), min_sm=90),
    _PARSED("fence", "proxy tensormap::generic release|acquire cta|cluster|gpu|sys", "?m?i",
            anchor=_FENCE, since=(8, 3), min_sm=90),
    _PARSED("barrier", "cluster arrive ?release|relaxed ?aligned", "",
            anchor=_SECTION + "barrier-cluster", since=(7, 8), min_sm=90),
    _PARSED("barrier", "cluster wait ?acquire ?aligned", "", anchor=_SECTION + "barrier-cluster",
            since=(7, 8), min_sm=90),
)  # fmt: skip
