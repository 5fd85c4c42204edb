"""Cycles that one warp needs when nothing competes with it.

Throughput bounds a full chip; a small grid, or one with few warps an SM, waits instead.  By
Little's law the two meet where enough requests are in flight, and that falls out of comparing
this path, taken once a wave, with the busy times of pipes and memory.
"""

from __future__ import annotations

from typing import Final

from va100.perf import memory, pipes
from va100.perf.memory import Residency
from va100.spec.model import ChipSpec
from va100.work import Counters, Pipe

OUTSTANDING_REQUESTS: Final = 8.0
"""Loads of one basic block that a warp has in flight at once, at most, where waits were not counted
by the text (:mod:`va100.ptx.waits`, which assumes as much).  Assumed."""
STAGES_IN_FLIGHT: Final = 2.0
"""Groups of asynchronous copies on their way while one is waited for.  Assumed: pipelines of three
stages are usual."""
INDEPENDENT_INSTRUCTIONS: Final = 2.0
"""Neighbouring instructions that do not wait for each other, on average.  Assumed."""
BARRIER_CYCLES: Final = 20.0
"""From the last arrival at a CTA's barrier to the next instruction.  Assumed."""
CTA_CYCLES: Final = 350.0
"""From the end of one CTA to the first instruction of the next in its place.  Fitted to stores of
one element a thread at two warps an SM, which wait for nothing else (GPU-BENCHES, gpu-stream)."""


def warp_cycles(counters: Counters, chip: ChipSpec, residency: Residency) -> float:
    """Cycles from a warp's first instruction to its successor's, alone on its SM."""
    if not counters.warp_count:
        return 0.0
    warps = counters.warp_count
    return (
        CTA_CYCLES
        + _arithmetic_cycles(counters, chip) / warps
        + _global_cycles(counters, warps, chip, residency)
        + counters.constant_waits / warps * _constant_cycles(counters, chip)
        + _shared_requests(counters) / warps * chip.measured.shared_latency_cycles
        + counters.barrier_instructions / warps * BARRIER_CYCLES
    )


def shortest_cycles(chip: ChipSpec) -> float:
    """Cycles of a CTA that does nothing but read L2 once."""
    return CTA_CYCLES + l2_cycles(chip)


def l2_cycles(chip: ChipSpec, footprint_bytes: float = 0.0) -> float:
    """Latency of L2: of the near partition for what it holds alone, else half of it is far."""
    near, far = chip.measured.l2_near_latency_cycles, chip.measured.l2_far_latency_cycles
    if 0 < footprint_bytes <= chip.l2_bytes / 2:
        return near
    return (near + far) / 2


def _constant_cycles(counters: Counters, chip: ChipSpec) -> float:
    """Latency of constant memory: of the level that holds all of the module's."""
    measured = chip.measured
    if counters.constant_bytes <= measured.constant_l1_bytes:
        return measured.constant_l1_latency_cycles
    return measured.constant_l2_latency_cycles


def _arithmetic_cycles(counters: Counters, chip: ChipSpec) -> float:
    measured = chip.measured
    latencies = {
        Pipe.FMA: measured.fma_latency_cycles,
        Pipe.FP64: measured.fp64_latency_cycles,
        Pipe.XU: measured.xu_latency_cycles,
    }
    waited = sum(
        count * latencies.get(pipe, measured.alu_latency_cycles)
        for pipe, count in pipes.issued(counters).items()
    )
    return waited / INDEPENDENT_INSTRUCTIONS


def _global_cycles(counters: Counters, warps: int, chip: ChipSpec, residency: Residency) -> float:
    """Cycles a warp waits for what it loads.

    Nothing waits for a store, so a request counts by the loaded part of its bytes; asynchronous
    copies are waited for by group.
    """
    moved_bytes = counters.global_load_bytes + counters.global_store_bytes
    loaded = counters.global_load_bytes / moved_bytes if moved_bytes else 1.0
    copies, groups = _asynchronous(counters)
    requests = max(counters.global_requests * loaded - copies, 0.0) / warps
    rounds = counters.load_waits / warps or _rounds_of_blocks(counters, requests)
    together = requests / rounds if rounds else 0.0
    rounds += min(groups, copies) / warps / STAGES_IN_FLIGHT
    return rounds * _load_cycles(counters, max(together, 1.0), chip, residency)


def _rounds_of_blocks(counters: Counters, requests: float) -> float:
    """Overlap the loads of one basic block; those of the next wait for a branch to be decided."""
    blocks = max(counters.branches / counters.warp_count, 1.0)
    return max(min(requests, blocks), requests / OUTSTANDING_REQUESTS)


def _load_cycles(
    counters: Counters, together: float, chip: ChipSpec, residency: Residency
) -> float:
    """Latency of so many loads waited for together: the slowest of them counts."""
    seen = counters.l1_load_sectors
    near = float((counters.l1_hit_sectors / seen) ** together) if seen else 0.0
    far = 1 - float((1 - _dram_share(counters, chip, residency)) ** together)
    in_l2 = l2_cycles(chip, counters.footprint_bytes)
    beyond = far * chip.measured.dram_latency_cycles + (1 - far) * in_l2
    return near * chip.measured.l1_latency_cycles + (1 - near) * beyond


def _dram_share(counters: Counters, chip: ChipSpec, residency: Residency) -> float:
    """Part of the loads that L1 misses which L2 misses too, 0 to 1, by bytes asked for."""
    footprint = counters.footprint_bytes
    if residency is Residency.L2 and 0 < footprint <= chip.l2_bytes:
        return 0.0
    asked_bytes = counters.global_load_bytes + counters.global_store_bytes
    if not asked_bytes:
        return 1.0
    return min(memory.traffic(counters, chip).dram_bytes / asked_bytes, 1.0)


def _asynchronous(counters: Counters) -> tuple[float, float]:
    """Asynchronous copies, and waits for groups of them."""
    copies = waits = 0.0
    for opcode, count in counters.opcode_instructions.items():
        if opcode.startswith("cp.async.wait"):
            waits += count
        elif opcode.startswith(("cp.async.ca.", "cp.async.cg.")):
            copies += count
    return copies, waits


def _shared_requests(counters: Counters) -> float:
    """Count the shared accesses that are waited for one after the other."""
    wavefronts = max(counters.shared_wavefronts, counters.shared_requests)
    return wavefronts / INDEPENDENT_INSTRUCTIONS / OUTSTANDING_REQUESTS
