"""Streams of bytes through the memory: what reading, writing and scattered access take.

Shared by every operator that memory holds back.  A stream's bytes come from L2 as far as it held
them, the rest from DRAM; stores cost DRAM more than loads where both are mixed, and an access that
is not whole sectors moves them all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from va100.perf.kernel import Bound
from va100.perf.operators.chips import Chip
from va100.perf.operators.estimates import Demand
from va100.spec.model import Operation
from va100.units import US

LAUNCH_S: Final = 2.3 * US
"""A kernel's start and end, and the ramp of its first CTAs."""
MIXED_RATIO: Final = 0.93
"""Of the reading rate where a stream is written as much as read: DRAM turns around.  Fitted to
element-wise kernels (NEUSIGHT)."""
WARM_RATIO: Final = 0.75
"""Share of L2 that a stream finds its data in."""
OPERATION_RATIO: Final = 0.6
"""Of the peak by operations between loads and stores."""
SPECIAL_PER_CYCLE: Final = 16.0
SECTOR_BYTES: Final = 32.0
RANDOM_RATIO: Final = 0.55
"""Of the reading rate by sectors at random."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Work that goes through memory once."""

    read_bytes: float
    written_bytes: float
    operation_count: float = 0.0
    """Instructions: a multiply-add is one."""
    special_count: float = 0.0
    element_count: float = 0.0
    pass_ratio: float = 1.0
    """Times that the bytes are moved, in effect, by kernels that go over a row more than once."""
    random_bytes: float = 0.0
    """Read in sectors at random, beyond ``read_bytes``."""
    warm: bool = False
    """L2 holds what it held after a stream of the same data, as in a loop over one layer."""
    launch_count: int = 1

    @property
    def moved_bytes(self) -> float:
        """Read and written."""
        return self.read_bytes + self.written_bytes + self.random_bytes


def stream_demand(stream: Stream, chip: Chip) -> Demand:
    """What a stream asks of the chip."""
    moved = stream.moved_bytes
    missed = missed_ratio(moved, chip) if stream.warm else 1.0
    dram_s = missed * _dram_s(stream, chip)
    l2_s = moved / chip.l2_bytes_per_s
    fp32 = chip.peak_flop_per_s[Operation.FP32_FMA] / 2.0
    special_s = stream.special_count / (SPECIAL_PER_CYCLE * chip.sm_count * chip.clock_hz)
    math_s = stream.operation_count / (fp32 * OPERATION_RATIO) + special_s
    return Demand(
        operations={
            Operation.FP32_FMA: 2.0 * stream.operation_count,
            Operation.SPECIAL: stream.special_count,
        },
        sm_s=math_s,
        sm_bound=Bound.FMA if special_s < math_s / 2 else Bound.XU,
        memory_s=max(dram_s, l2_s),
        memory_bound=Bound.DRAM if dram_s >= l2_s else Bound.L2,
        fixed_s=LAUNCH_S * stream.launch_count,
        dram_bytes=missed * moved,
        l2_bytes=moved,
    )


def _dram_s(stream: Stream, chip: Chip) -> float:
    rate = chip.dram_reached_bytes_per_s
    even = stream.read_bytes + stream.written_bytes
    mixed = min(stream.read_bytes, stream.written_bytes) / even * 2.0 if even else 0.0
    even_s = even / (rate * (1.0 - (1.0 - MIXED_RATIO) * mixed))
    return even_s * stream.pass_ratio + stream.random_bytes / (rate * RANDOM_RATIO)


def missed_ratio(footprint_bytes: float, chip: Chip) -> float:
    """Share of a footprint that L2 does not hold when the same data come again."""
    room_bytes = WARM_RATIO * chip.l2_bytes
    if footprint_bytes <= room_bytes:
        held = (footprint_bytes / room_bytes) ** 6
        return float(held / (1.0 + held))
    return float(1.0 / (1.0 + (room_bytes / footprint_bytes) ** 6))
