"""What special registers read.

Time is virtual: each step a warp has taken is four cycles of 1410 MHz, what an A100 takes for an
instruction that needs the one before.  A run repeats exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from va100.reference.lanes import LANE, U32, U64, Lanes, full

if TYPE_CHECKING:
    from va100.reference.issue import Issue

CYCLES: Final = 4
"""Cycles a step of a warp takes."""
MAX_WARPS: Final = 64
"""Warps an SM of the A100 holds: ``%nwarpid``."""
_ALL: Final = np.uint64(0xFFFFFFFF)
_ONE: Final = np.uint64(1)


def read(issue: Issue, name: str) -> Lanes:
    """The value of a special register in every lane.

    Raises
    ------
    IllegalInstruction
        The A100 or this engine has no such register.
    """
    family, _, axis = name.partition(".")
    if family in VECTORS:
        return VECTORS[family](issue, "xyzw".index(axis))
    reader = SCALARS.get(name)
    if reader is not None:
        return reader(issue)
    if name.startswith(ZEROES):
        return full(0, U64 if name.endswith("_64") else U32)
    raise issue.broken(f"register {name} is not known")


def _tid(issue: Issue, axis: int) -> Lanes:
    if axis == 3:
        return full(0, U32)
    return issue.warp.cta.coordinates[issue.warp.index][axis]


def _ntid(issue: Issue, axis: int) -> Lanes:
    return full((*issue.warp.cta.launch.config.block, 1)[axis], U32)


def _ctaid(issue: Issue, axis: int) -> Lanes:
    return full((*issue.warp.cta.index, 0)[axis], U32)


def _nctaid(issue: Issue, axis: int) -> Lanes:
    return full((*issue.warp.cta.launch.config.grid, 1)[axis], U32)


VECTORS: Final[Mapping[str, Callable[[Issue, int], Lanes]]] = {
    "%tid": _tid,
    "%ntid": _ntid,
    "%ctaid": _ctaid,
    "%nctaid": _nctaid,
}
"""Name to reader of one axis."""


def _laneid(issue: Issue) -> Lanes:
    del issue
    return LANE


def _warpid(issue: Issue) -> Lanes:
    return full(issue.warp.index, U32)


def _nwarpid(issue: Issue) -> Lanes:
    del issue
    return full(MAX_WARPS, U32)


def _smid(issue: Issue) -> Lanes:
    cta = issue.warp.cta
    return full(cta.linear_index % cta.launch.sm_count, U32)


def _nsmid(issue: Issue) -> Lanes:
    return full(issue.warp.cta.launch.sm_count, U32)


def _gridid(issue: Issue) -> Lanes:
    return full(issue.warp.cta.launch.grid_id, U64)


def _mask(wide: Lanes) -> Lanes:
    return (wide & _ALL).astype(np.uint32)


def _lanemask_eq(issue: Issue) -> Lanes:
    del issue
    return _mask(_ONE << LANE.astype(np.uint64))


def _lanemask_lt(issue: Issue) -> Lanes:
    del issue
    return _mask((_ONE << LANE.astype(np.uint64)) - _ONE)


def _lanemask_le(issue: Issue) -> Lanes:
    return _lanemask_lt(issue) | _lanemask_eq(issue)


def _lanemask_gt(issue: Issue) -> Lanes:
    return ~_lanemask_le(issue)


def _lanemask_ge(issue: Issue) -> Lanes:
    return ~_lanemask_lt(issue)


def cycles(issue: Issue) -> int:
    """Virtual time of the warp."""
    return CYCLES * (issue.warp.steps + issue.warp.slept)


def nanoseconds(issue: Issue) -> int:
    """Virtual time since the first launch, of which each may take a second."""
    return (issue.warp.cta.launch.grid_id << 30) + cycles(issue) * 100 // 141


def _clock(issue: Issue) -> Lanes:
    return full(cycles(issue), U32)


def _clock_hi(issue: Issue) -> Lanes:
    return full(cycles(issue) >> 32, U32)


def _clock64(issue: Issue) -> Lanes:
    return full(cycles(issue), U64)


def _timer(issue: Issue) -> Lanes:
    return full(nanoseconds(issue), U64)


def _timer_lo(issue: Issue) -> Lanes:
    return full(nanoseconds(issue), U32)


def _timer_hi(issue: Issue) -> Lanes:
    return full(nanoseconds(issue) >> 32, U32)


def _shared_bytes(issue: Issue) -> Lanes:
    """What the kernel has; the reserved region begins behind it."""
    launch = issue.warp.cta.launch
    return full(launch.shared_bytes - launch.code.reserved_shared_bytes, U32)


def _reserved_end(issue: Issue) -> Lanes:
    return full(issue.warp.cta.launch.shared_bytes, U32)


def _dynamic_bytes(issue: Issue) -> Lanes:
    return full(issue.warp.cta.launch.config.dynamic_shared_bytes, U32)


def _envreg1(issue: Issue) -> Lanes:
    return full(issue.warp.cta.launch.workspace_address >> 32, U32)


def _envreg2(issue: Issue) -> Lanes:
    return full(issue.warp.cta.launch.workspace_address, U32)


SCALARS: Final[Mapping[str, Callable[[Issue], Lanes]]] = {
    "%laneid": _laneid,
    "%warpid": _warpid,
    "%nwarpid": _nwarpid,
    "%smid": _smid,
    "%nsmid": _nsmid,
    "%gridid": _gridid,
    "%lanemask_eq": _lanemask_eq,
    "%lanemask_lt": _lanemask_lt,
    "%lanemask_le": _lanemask_le,
    "%lanemask_gt": _lanemask_gt,
    "%lanemask_ge": _lanemask_ge,
    "%clock": _clock,
    "%clock_hi": _clock_hi,
    "%clock64": _clock64,
    "%globaltimer": _timer,
    "%globaltimer_lo": _timer_lo,
    "%globaltimer_hi": _timer_hi,
    "%total_smem_size": _shared_bytes,
    "%reserved_smem_offset_begin": _shared_bytes,
    "%reserved_smem_offset_0": _shared_bytes,
    "%reserved_smem_offset_1": _shared_bytes,
    "%reserved_smem_offset_end": _reserved_end,
    "%reserved_smem_offset_cap": _reserved_end,
    "%dynamic_smem_size": _dynamic_bytes,
    "%envreg1": _envreg1,
    "%envreg2": _envreg2,
}
"""Name to reader."""

ZEROES: Final = ("%pm", "%envreg", "%current_graph_exec")
"""Beginnings of the names that read as zero: nothing sets them here."""
