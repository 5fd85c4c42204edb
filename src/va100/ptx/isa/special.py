"""Special registers: names and types.  What they read is the engines' business."""

from __future__ import annotations

from typing import Final

from va100.ptx.types import PtxType

_U32, _U64 = PtxType.U32, PtxType.U64

_VECTORS: Final = ("tid", "ntid", "ctaid", "nctaid")
_CLUSTER_VECTORS: Final = ("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
_WORDS: Final = (
    "laneid", "warpid", "nwarpid", "smid", "nsmid",
    "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt",
    "clock", "clock_hi", "globaltimer_lo", "globaltimer_hi",
    "total_smem_size", "dynamic_smem_size",
    "reserved_smem_offset_begin", "reserved_smem_offset_end", "reserved_smem_offset_cap",
    "reserved_smem_offset_0", "reserved_smem_offset_1",
)  # fmt: skip
_LONG_WORDS: Final = ("gridid", "clock64", "globaltimer", "current_graph_exec")

SPECIAL_REGISTERS: Final[dict[str, PtxType]] = {
    **{f"%{name}.{axis}": _U32 for name in _VECTORS for axis in "xyzw"},
    **{f"%{name}": _U32 for name in _WORDS},
    **{f"%{name}": _U64 for name in _LONG_WORDS},
    **{f"%envreg{i}": PtxType.B32 for i in range(32)},
    **{f"%pm{i}": _U32 for i in range(8)},
    **{f"%pm{i}_64": _U64 for i in range(8)},
}
"""Name with ``%`` to type."""

PARSED_REGISTERS: Final[dict[str, PtxType]] = {
    "%perctamemoryoffset": _U64,
    "%perctamemorysize": _U32,
}
"""Registers of memory set aside for each CTA (PTX 9.4); kernels that read them are refused."""

LATER_REGISTERS: Final[dict[str, int]] = {
    **{f"%{name}.{axis}": 90 for name in _CLUSTER_VECTORS for axis in "xyzw"},
    "%is_explicit_cluster": 90,
    "%cluster_ctarank": 90,
    "%cluster_nctarank": 90,
    "%aggr_smem_size": 90,
}
"""Special registers that the A100 lacks, with the architecture that has them."""
