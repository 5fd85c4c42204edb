"""Seconds that a launch's traffic keeps each level of memory busy.

Traffic comes from counted sectors, requests and footprint; rates are what A100s were measured to
reach, not what datasheets print.  Hits in L1, and sectors that leave L2 and come back within one
launch, count where CTAs were observed (:mod:`va100.jit.observed`); elsewhere all reuse of global
memory is charged to L2, and DRAM gives and takes the footprint once.  What is left out: contention
of atomics on one address, address translation.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final

from va100.spec.model import ChipSpec, MeasuredSpec
from va100.work import Counters

SM_L2_BYTES_PER_CYCLE: Final = 64.0
"""What one SM can draw from L2: its half of a TPC's port.  Assumed; no document was read."""
L2_STORE_WEIGHT: Final = 1.75
"""Bytes of load that a stored byte keeps L2 busy for.  Fitted to kernels that scale an array within
L2 (GPU-BENCHES, gpu-small-kernels); the read rate is measured apart."""


SHARED_REQUEST_CYCLES: Final = 0.5
"""Cycles of an SM that a request of shared memory takes beyond its turns of the banks, all of them
on top of arithmetic, which does not go on meanwhile.  Fitted to a third of 593 convolutions of
shared tiles (autotune_convolution)."""
_VECTORS: Final = {"v2": 2, "v4": 4, "v8": 8, "x1": 1, "x2": 2, "x4": 4}
L1_LINE_CYCLES: Final = 0.8
"""Cycles of an SM for each line that a global access asks L1 for, likewise on top of arithmetic as
far as two lines a request.  Fitted to convolutions that read L1 and to conversions of bytes beside
loads of them (autotune_convolution, autotune_dedispersion)."""
_LINES_AT_ONCE: Final = 2.0
"""Lines of a request that keep arithmetic waiting; more than those only keep L1 busy.  Assumed from
L1's rate in wide loads, 126 bytes a cycle (GPU-BENCHES, gpu-cache)."""


class Residency(Enum):
    """Where a launch finds its data at its start."""

    DRAM = "DRAM"
    """L2 holds none of it, as after another large kernel; profilers flush to get this state."""
    L2 = "L2"
    """As when one kernel runs over the same data again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes that cross each level, over the whole grid."""

    dram_bytes: float
    held_bytes: float
    """What L2 would have to hold for DRAM to see nothing."""
    l2_bytes: float
    l1_wavefront_count: float
    """128-byte passes through L1's data stage by global accesses."""
    l1_line_count: float
    """Lines they ask for, two of a request at most."""
    shared_wavefront_count: float
    shared_request_count: float
    shared_turn_count: float
    """Requests of shared memory, each as often as its bank conflicts make it; a wide one is one."""
    store_fraction: float
    """Stored bytes over all bytes, 0 to 1."""


def traffic(counters: Counters, chip: ChipSpec) -> Traffic:
    """Turn counts into bytes at each level.

    Sectors that were not counted are taken as if accesses were coalesced; a footprint that was
    not counted, as if no byte were used twice.  DRAM is read the footprint once at most, and
    written it once at most: what is updated in place crosses both ways.  Where every CTA went
    through the caches' models, theirs is what DRAM sees; a sample of CTAs tells of L1 only.
    """
    sm = chip.sm
    requested_bytes = counters.global_load_bytes + counters.global_store_bytes
    sectors = counters.global_sectors or requested_bytes / sm.sector_bytes
    stored = counters.global_store_bytes / requested_bytes if requested_bytes else 0.0
    l1_bytes = (sectors + counters.local_sectors) * sm.sector_bytes
    l2_bytes = l1_bytes
    if counters.l2_sectors:
        l2_bytes = counters.l2_sectors * sm.sector_bytes
        stored = counters.l2_store_sectors / counters.l2_sectors
    footprint = counters.footprint_bytes or l2_bytes
    dram_bytes = min(l2_bytes * (1 - stored), footprint) + min(l2_bytes * stored, footprint)
    if 0 < counters.observed_cta_count == counters.cta_count:
        moved = counters.dram_read_sectors + counters.dram_write_sectors
        dram_bytes = moved * sm.sector_bytes
    lines = counters.l1_lines or l1_bytes / sm.l1_line_bytes
    return Traffic(
        dram_bytes=dram_bytes,
        held_bytes=min(l2_bytes, footprint),
        l2_bytes=l2_bytes,
        l1_wavefront_count=max(l1_bytes / sm.l1_line_bytes, counters.l1_lines * L1_LINE_CYCLES),
        shared_wavefront_count=max(counters.shared_wavefronts, counters.shared_requests),
        l1_line_count=min(lines, _LINES_AT_ONCE * counters.global_requests),
        shared_request_count=counters.shared_requests,
        shared_turn_count=_shared_turns(counters),
        store_fraction=stored,
    )


def dram_s(flow: Traffic, chip: ChipSpec, residency: Residency) -> float:
    """Time of DRAM; none when the data waits in L2."""
    if residency is Residency.L2 and flow.held_bytes <= chip.measured.l2_curve_footprint_bytes[0]:
        return 0.0
    rate = dram_bytes_per_s(flow.store_fraction, chip.measured)
    if residency is Residency.L2:
        rate = max(rate, l2_bytes_per_s(flow.held_bytes, chip.measured))
    return flow.dram_bytes / rate


def l2_s(
    flow: Traffic, active_sm_count: int, chip: ChipSpec, clock_hz: float, residency: Residency
) -> float:
    """Time of L2: a few SMs alone cannot draw it dry, and what fills both partitions is slower."""
    most = chip.measured.l2_bytes_per_s
    if residency is Residency.L2 and flow.held_bytes <= chip.l2_bytes:
        most = min(most, l2_bytes_per_s(flow.held_bytes, chip.measured))
    few = active_sm_count * SM_L2_BYTES_PER_CYCLE * clock_hz
    weight = 1 + (L2_STORE_WEIGHT - 1) * flow.store_fraction
    return flow.l2_bytes * weight / min(most, few)


def l1_cycles(flow: Traffic) -> float:
    """Cycles the data stage of one SM would need for the whole grid's global accesses."""
    return flow.l1_wavefront_count


def shared_cycles(flow: Traffic) -> float:
    """Cycles the banks of one SM would need for the whole grid; conflicts are in the count."""
    return flow.shared_wavefront_count


def access_cycles(flow: Traffic) -> float:
    """Cycles of one SM for all accesses of the grid, on top of arithmetic."""
    shared = flow.shared_turn_count + flow.shared_request_count * SHARED_REQUEST_CYCLES
    return flow.l1_line_count * L1_LINE_CYCLES + shared


def atomic_s(counters: Counters, chip: ChipSpec, clock_hz: float) -> float:
    """Time of L2's atomic units: one sector a cycle and slice, four sectors a request.

    Assumed; what contention on one address costs is not modelled.
    """
    sectors_per_request = chip.sm.l1_line_bytes / chip.sm.sector_bytes
    return counters.atomic_requests * sectors_per_request / (chip.l2_slice_count * clock_hz)


def dram_bytes_per_s(store_fraction: float, measured: MeasuredSpec) -> float:
    """Rate of a mix of reads and writes, straight between the three measured mixes."""
    half = 0.5
    if store_fraction <= half:
        return _between(
            measured.dram_read_bytes_per_s, measured.dram_scale_bytes_per_s, store_fraction / half
        )
    return _between(
        measured.dram_scale_bytes_per_s,
        measured.dram_write_bytes_per_s,
        (store_fraction - half) / half,
    )


def l2_bytes_per_s(footprint_bytes: float, measured: MeasuredSpec) -> float:
    """Rate of reading one footprint again and again, from inside L2 to far outside it."""
    sizes, rates = measured.l2_curve_footprint_bytes, measured.l2_curve_bytes_per_s
    if footprint_bytes <= sizes[0]:
        return rates[0]
    for left in range(len(sizes) - 1):
        if footprint_bytes <= sizes[left + 1]:
            place = (footprint_bytes - sizes[left]) / (sizes[left + 1] - sizes[left])
            return _between(rates[left], rates[left + 1], place)
    return rates[-1]


def _shared_turns(counters: Counters) -> float:
    passes = sum(count * _passes(opcode) for opcode, count in counters.opcode_instructions.items())
    requests = counters.shared_requests
    each = max(passes / requests, 1.0) if requests else 1.0
    return max(requests, counters.shared_wavefronts / each)


@lru_cache(maxsize=4096)
def _passes(opcode: str) -> float:
    """Passes of a shared access without conflicts: a lane's bytes over a bank's; 0 for others."""
    names = opcode.split(".")
    if names[0] == "ldmatrix":
        return float(_VECTORS.get(next((n for n in names if n in _VECTORS), ""), 1))
    if names[0] not in ("ld", "st") or not any(n.startswith("shared") for n in names):
        return 0.0
    bits = int(names[-1].lstrip("bsuf") or 32) if names[-1] != "pred" else 32
    lanes = next((_VECTORS[n] for n in names if n in _VECTORS), 1)
    return max(bits * lanes / 32, 1.0)


def _between(first: float, second: float, place: float) -> float:
    return first + (second - first) * place
