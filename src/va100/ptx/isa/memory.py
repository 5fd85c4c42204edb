"""Loads, stores, prefetches and cache policies: the rows."""

from __future__ import annotations

from functools import partial
from typing import Final

from va100.ptx.isa.form import Family, Form, Support
from va100.ptx.isa.rows import MEMORY_TYPES, form
from va100.work import Pipe

_LSU: Final = partial(form, family=Family.MEMORY, pipe=Pipe.LSU)
_PARSED: Final = partial(_LSU, support=Support.PARSED)
_SECTION: Final = "data-movement-and-conversion-instructions-"

_LOAD_SPACES: Final = "const|global|local|param|param::entry|param::func|shared|shared::cta"
_STORE_SPACES: Final = "global|local|param|param::func|shared|shared::cta"
_L1: Final = "?L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"
_L2: Final = "L2::evict_first|L2::evict_last|L2::evict_normal"
_HINT: Final = "?L2::cache_hint"
_PREFETCH: Final = "?L2::64B|L2::128B|L2::256B"
_VECTOR: Final = "?v2|v4"
_SCOPES: Final = "cta|gpu|sys"
_TYPES: Final = MEMORY_TYPES

FORMS: Final[tuple[Form, ...]] = (
    _LSU("ld", f"?weak ?{_LOAD_SPACES} ?ca|cg|cs|lu|cv {_HINT} {_PREFETCH} {_VECTOR} {_TYPES}",
         "vm?e", anchor=_SECTION + "ld"),
    _LSU("ld", f"?weak ?{_LOAD_SPACES} {_L1} {_HINT} {_PREFETCH} {_VECTOR} {_TYPES}",
         "vm?e", anchor=_SECTION + "ld", since=(7, 4)),
    _LSU("ld", f"volatile ?{_LOAD_SPACES} {_PREFETCH} {_VECTOR} {_TYPES}", "vm",
         anchor=_SECTION + "ld", since=(1, 1)),
    _LSU("ld", f"relaxed|acquire {_SCOPES} ?{_LOAD_SPACES} {_L1} {_HINT} {_PREFETCH} "
         f"{_VECTOR} {_TYPES}", "vm?e", anchor=_SECTION + "ld", since=(6, 0), min_sm=70),
    _LSU("ld", f"mmio relaxed sys ?global {_TYPES}", "vm", anchor=_SECTION + "ld", since=(8, 2),
         min_sm=70),
    _LSU("ld", f"global ?ca|cg|cs nc {_HINT} {_PREFETCH} {_VECTOR} {_TYPES}", "vm?e",
         anchor=_SECTION + "ld-global-nc", since=(3, 1), min_sm=32),
    _LSU("ld", f"global nc {_L1} {_HINT} {_PREFETCH} {_VECTOR} {_TYPES}", "vm?e",
         anchor=_SECTION + "ld-global-nc", since=(7, 4), min_sm=70),
    _LSU("ldu", f"?global {_VECTOR} {_TYPES}", "vm", anchor=_SECTION + "ldu", since=(2, 0)),
    _LSU("st", f"?weak ?{_STORE_SPACES} ?wb|cg|cs|wt {_HINT} {_VECTOR} {_TYPES}", "mv?e",
         anchor=_SECTION + "st"),
    _LSU("st", f"?weak ?{_STORE_SPACES} {_L1} {_HINT} {_VECTOR} {_TYPES}", "mv?e",
         anchor=_SECTION + "st", since=(7, 4)),
    _LSU("st", f"volatile ?{_STORE_SPACES} {_VECTOR} {_TYPES}", "mv", anchor=_SECTION + "st",
         since=(1, 1)),
    _LSU("st", f"relaxed|release {_SCOPES} ?{_STORE_SPACES} {_L1} {_HINT} {_VECTOR} "
         f"{_TYPES}", "mv?e", anchor=_SECTION + "st", since=(6, 0), min_sm=70),
    _LSU("st", f"mmio relaxed sys ?global {_TYPES}", "mv", anchor=_SECTION + "st", since=(8, 2),
         min_sm=70),
    _LSU("prefetch", "?global|local L1|L2", "m", anchor=_SECTION + "prefetch-prefetchu",
         since=(2, 0)),
    _LSU("prefetch", "?global L2::evict_last|L2::evict_normal", "m",
         anchor=_SECTION + "prefetch-prefetchu", since=(7, 4), min_sm=80),
    _LSU("prefetchu", "L1", "m", anchor=_SECTION + "prefetch-prefetchu", since=(2, 0)),
    _LSU("applypriority", "?global L2::evict_normal", "mi", anchor=_SECTION + "applypriority",
         since=(7, 4), min_sm=80),
    _LSU("discard", "?global L2", "mi", anchor=_SECTION + "discard", since=(7, 4), min_sm=80),
    _LSU("createpolicy", "range ?global L2::evict_last|L2::evict_normal|L2::evict_first|"
            "L2::evict_unchanged ?L2::evict_first|L2::evict_unchanged b64", "dmab",
            anchor=_SECTION + "createpolicy", since=(7, 4), min_sm=80),
    _LSU("createpolicy", "fractional L2::evict_last|L2::evict_normal|L2::evict_first|"
            "L2::evict_unchanged ?L2::evict_first|L2::evict_unchanged b64", "d?a",
            anchor=_SECTION + "createpolicy", since=(7, 4), min_sm=80),
    _LSU("createpolicy", "cvt L2 b64", "da", anchor=_SECTION + "createpolicy", since=(7, 4),
            min_sm=80),
    _LSU("ld", "mmio acquire sys ?global b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64",
            "vm", anchor=_SECTION + "ld", since=(9, 3), min_sm=75),
    _LSU("st", "mmio release sys ?global b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64",
            "mv", anchor=_SECTION + "st", since=(9, 3), min_sm=75),
    _LSU("ld", f"?weak ?{_LOAD_SPACES} {_L1} {_HINT} {_PREFETCH} b128", "vm?e",
            anchor=_SECTION + "ld", since=(8, 3), min_sm=70),
    _LSU("ld", f"?weak ?{_LOAD_SPACES} ca|cg|cs|lu|cv {_HINT} {_PREFETCH} b128", "vm?e",
            anchor=_SECTION + "ld", since=(8, 3), min_sm=70),
    _LSU("ld", f"volatile ?{_LOAD_SPACES} {_PREFETCH} b128", "vm", anchor=_SECTION + "ld",
            since=(8, 3), min_sm=70),
    _LSU("ld", "mmio relaxed sys ?global b128", "vm", anchor=_SECTION + "ld", since=(8, 3),
            min_sm=70),
    _LSU("ld", f"relaxed|acquire {_SCOPES} ?{_LOAD_SPACES} {_L1} {_HINT} {_PREFETCH} b128", "vm?e",
            anchor=_SECTION + "ld", since=(8, 3), min_sm=70),
    _LSU("ld", f"global nc {_L1} {_HINT} {_PREFETCH} b128", "vm?e",
            anchor=_SECTION + "ld-global-nc", since=(8, 3), min_sm=70),
    _LSU("ld", f"global ca|cg|cs nc {_HINT} {_PREFETCH} b128", "vm?e",
            anchor=_SECTION + "ld-global-nc", since=(8, 3), min_sm=70),
    _LSU("ldu", "?global b128", "vm", anchor=_SECTION + "ldu", since=(8, 3), min_sm=70),
    _LSU("st", f"?weak ?{_STORE_SPACES} wb|cg|cs|wt {_HINT} b128", "mv?e",
            anchor=_SECTION + "st", since=(8, 3), min_sm=70),
    _LSU("st", f"volatile ?{_STORE_SPACES} b128", "mv", anchor=_SECTION + "st", since=(8, 3),
            min_sm=70),
    _LSU("st", f"?weak ?{_STORE_SPACES} {_L1} {_HINT} b128", "mv?e",
            anchor=_SECTION + "st", since=(8, 3), min_sm=70),
    _LSU("st", "mmio relaxed sys ?global b128", "mv", anchor=_SECTION + "st", since=(8, 3),
            min_sm=70),
    _LSU("st", f"relaxed|release {_SCOPES} ?{_STORE_SPACES} {_L1} {_HINT} b128", "mv?e",
            anchor=_SECTION + "st", since=(8, 3), min_sm=70),
    # Beyond the A100.
    _PARSED("ld", f"?weak|volatile shared::cluster {_VECTOR} {_TYPES}", "vm",
            anchor=_SECTION + "ld", since=(7, 8), min_sm=90),
    _PARSED("ld", f"relaxed|acquire cluster ?{_LOAD_SPACES}|shared::cluster {_VECTOR} {_TYPES}",
            "vm", anchor=_SECTION + "ld", since=(7, 8), min_sm=90),
    _PARSED("ld", f"?weak ?global ?nc {_L1} ?{_L2} {_HINT} {_PREFETCH} v8 {_TYPES}", "vm?e",
            anchor=_SECTION + "ld", since=(8, 8), min_sm=100),
    _PARSED("ld", f"?weak ?global ?nc {_L1} {_L2} {_HINT} {_PREFETCH} v4 b64|u64|s64|f64",
            "vm?e", anchor=_SECTION + "ld", since=(8, 8), min_sm=100),
    _PARSED("ld", f"?global proxy::readonly {_TYPES}", "vm", anchor=_SECTION + "ld",
            since=(9, 4), min_sm=90),
    _PARSED("prefetch", "?global|local L1|L2 valid_addr", "m",
            anchor=_SECTION + "prefetch-prefetchu", since=(9, 4), min_sm=90),
    _PARSED("st", f"?weak|volatile shared::cluster {_VECTOR} {_TYPES}", "mv",
            anchor=_SECTION + "st", since=(7, 8), min_sm=90),
    _PARSED("st", f"relaxed|release cluster ?{_STORE_SPACES}|shared::cluster {_VECTOR} {_TYPES}",
            "mv", anchor=_SECTION + "st", since=(7, 8), min_sm=90),
    _PARSED("st", f"?weak ?global {_L1} ?{_L2} {_HINT} v8 {_TYPES}", "mv?e",
            anchor=_SECTION + "st", since=(8, 8), min_sm=100),
    _PARSED("st", f"?weak ?global {_L1} {_L2} {_HINT} v4 b64|u64|s64|f64", "mv?e",
            anchor=_SECTION + "st", since=(8, 8), min_sm=100),
    _PARSED("st", "async ?weak mbarrier::complete_tx::bytes ?shared::cluster ?v2|v4 "
            "b32|b64|u32|u64|s32|s64|f32|f64", "mvm", anchor=_SECTION + "st-async", since=(8, 1),
            min_sm=90),
    _PARSED("st", "bulk ?weak ?shared::cta", "mai", anchor=_SECTION + "st-bulk", since=(8, 6),
            min_sm=100),
    _PARSED("multimem", "ld_reduce ?weak|relaxed|acquire ?cta|cluster|gpu|sys ?global "
            "add|min|max|and|or|xor ?acc::f32|acc::f16 ?v2|v4|v8 "
            "b32|b64|u32|u64|s32|s64|f16|f16x2|bf16|bf16x2|f32|f64", "vm",
            anchor=_SECTION + "multimem", since=(8, 1), min_sm=90),
    _PARSED("multimem", "st|red ?weak|relaxed|release ?cta|cluster|gpu|sys ?global "
            "?add|min|max|and|or|xor ?v2|v4|v8 "
            "b32|b64|u32|u64|s32|s64|f16|f16x2|bf16|bf16x2|f32|f64", "mv",
            anchor=_SECTION + "multimem", since=(8, 1), min_sm=90),
)  # fmt: skip
