"""Atomic operations and reductions in memory: the rows."""

from __future__ import annotations

from functools import partial
from typing import Final

from va100.ptx.isa.form import Family, Form, Support
from va100.ptx.isa.rows import form
from va100.work import Pipe

_LSU: Final = partial(form, family=Family.ATOMIC, pipe=Pipe.LSU)
_PARSED: Final = partial(_LSU, support=Support.PARSED)
_SECTION: Final = "parallel-synchronization-and-communication-instructions-"
_ORDER: Final = "?relaxed|acquire|release|acq_rel ?cta|gpu|sys ?global|shared|shared::cta"
_RED_ORDER: Final = "?relaxed|release ?cta|gpu|sys ?global|shared|shared::cta"
_HINT: Final = "?L2::cache_hint"

_OPERATIONS: Final = (
    ("and|or|xor", "b32|b64", (1, 2), 0),
    ("add", "u32|s32|u64|f32", (1, 2), 0),
    ("add", "f64", (5, 0), 60),
    ("add noftz", "f16", (6, 3), 70),
    ("add noftz", "f16x2", (6, 2), 60),
    ("inc|dec", "u32", (1, 2), 0),
    ("min|max", "u32|s32|u64|s64", (1, 2), 0),
)
"""Operation, types, PTX version, architecture, of what both ``atom`` and ``red`` have."""


def _shared_operations() -> tuple[Form, ...]:
    rows = []
    for operation, types, since, min_sm in _OPERATIONS:
        rows += [
            _LSU("atom", f"{_ORDER} {operation} {_HINT} {types}", "dmb?e",
                 anchor=_SECTION + "atom", since=since, min_sm=min_sm),
            _LSU("red", f"{_RED_ORDER} {operation} {_HINT} {types}", "mb?e",
                 anchor=_SECTION + "red", since=since, min_sm=min_sm),
        ]  # fmt: skip
    return tuple(rows)


FORMS: Final[tuple[Form, ...]] = (
    *_shared_operations(),
    _LSU("atom", f"{_ORDER} exch {_HINT} b32|b64|u32|s32|u64|s64|f32", "dmb?e",
         anchor=_SECTION + "atom", since=(1, 1)),
    _LSU("atom", f"{_ORDER} cas b32|b64|u32|s32|u64|s64", "dmbc",
         anchor=_SECTION + "atom", since=(1, 1)),
    _LSU("atom", f"{_ORDER} cas b16", "dmbc", anchor=_SECTION + "atom", since=(6, 3),
         min_sm=70),
    # Beyond the A100.
    _PARSED("atom", f"{_ORDER} exch {_HINT} b128", "dmb?e", anchor=_SECTION + "atom",
            since=(8, 3), min_sm=90),
    _PARSED("atom", f"{_ORDER} cas b128", "dmbc", anchor=_SECTION + "atom",
            since=(8, 3), min_sm=90),
    _PARSED("atom", f"{_ORDER} add noftz {_HINT} bf16|bf16x2", "dmb?e", anchor=_SECTION + "atom",
            since=(7, 8), min_sm=90),
    _PARSED("red", f"{_RED_ORDER} add noftz {_HINT} bf16|bf16x2", "mb?e",
            anchor=_SECTION + "red", since=(7, 8), min_sm=90),
    _PARSED("atom", f"?relaxed|acquire|release|acq_rel ?cta|gpu|sys ?global add|min|max ?noftz "
            f"{_HINT} v2|v4|v8 f16|f16x2|bf16|bf16x2|f32", "vmv?e", anchor=_SECTION + "atom",
            since=(8, 1), min_sm=90),
    _PARSED("red", f"?relaxed|release ?cta|gpu|sys ?global add|min|max ?noftz {_HINT} v2|v4|v8 "
            "f16|f16x2|bf16|bf16x2|f32", "mv?e", anchor=_SECTION + "red", since=(8, 1),
            min_sm=90),
    _PARSED("atom", f"?relaxed|acquire|release|acq_rel cluster ?global|shared|shared::cta|"
            f"shared::cluster add|min|max|and|or|xor|inc|dec|exch {_HINT} "
            "b32|b64|u32|s32|u64|s64|f32|f64", "dmb?e", anchor=_SECTION + "atom", since=(7, 8),
            min_sm=90),
    _PARSED("red", "async relaxed cluster ?global mbarrier::complete_tx::bytes "
            "?shared::cluster add|min|max|and|or|xor|inc|dec b32|u32|s32|u64", "mbm",
            anchor=_SECTION + "red-async", since=(8, 1), min_sm=90),
)  # fmt: skip
