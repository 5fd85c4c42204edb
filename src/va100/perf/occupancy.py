"""How many CTAs of a kernel one SM holds at once, and which resource says so.

The allocation rules are the chip's (granularities in :class:`va100.spec.model.SmSpec`); how long
anything takes is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from va100.spec.model import SmSpec
from va100.work import WARP_SIZE, KernelResources, LaunchConfig


class Limiter(Enum):
    """The resource that keeps one more CTA out; the value is spelled for people."""

    WARPS = "warps"
    CTAS = "CTA slots"
    REGISTERS = "registers"
    SHARED = "shared memory"
    BARRIERS = "barriers"
    BLOCK = "block size"


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """CTAs one SM holds; zero when the launch does not fit."""

    ctas_per_sm: int
    warps_per_sm: int
    fraction: float
    """Resident warps over the most an SM takes, 0 to 1."""
    limiter: Limiter
    carveout_bytes: int
    """The part of L1 that the driver gives to shared memory."""
    limits: Mapping[Limiter, int]
    """CTAs each resource alone would let in."""


def occupancy(
    config: LaunchConfig,
    resources: KernelResources,
    sm: SmSpec,
    *,
    carveout_bytes: int | None = None,
) -> Occupancy:
    """Count the CTAs of a launch that one SM holds.

    Parameters
    ----------
    carveout_bytes : int, optional
        Shared memory the SM is set up for; the smallest that costs no CTA when left out.
    """
    warps = config.warps_per_cta
    shared_bytes = allocated_shared_bytes(config, resources, sm)
    limits = {
        Limiter.BLOCK: _limit_of_block(config, resources, sm),
        Limiter.WARPS: sm.resident_warp_count // warps,
        Limiter.CTAS: sm.resident_block_count,
        Limiter.REGISTERS: _limit_of_registers(warps, resources, sm),
        Limiter.BARRIERS: _limit_of_barriers(resources, sm),
    }
    wanted = max(min(limits.values()), 1)
    carveout = carveout_bytes
    if carveout is None:
        carveout = _smallest_carveout(wanted * shared_bytes, sm)
    fits = shared_bytes - sm.shared_reserved_bytes <= sm.shared_block_optin_bytes
    limits[Limiter.SHARED] = carveout // shared_bytes if fits else 0
    ctas = min(limits.values())
    return Occupancy(
        ctas_per_sm=ctas,
        warps_per_sm=ctas * warps,
        fraction=ctas * warps / sm.resident_warp_count,
        limiter=next(limiter for limiter in Limiter if limits[limiter] == ctas),
        carveout_bytes=carveout,
        limits=limits,
    )


def allocated_registers(registers_per_thread: int, sm: SmSpec) -> int:
    """Round up to the registers one warp is given."""
    return _rounded_up(registers_per_thread * WARP_SIZE, sm.register_allocation_count)


def allocated_shared_bytes(config: LaunchConfig, resources: KernelResources, sm: SmSpec) -> int:
    """Round up to the shared memory one CTA is given, the system's reserve included."""
    asked = resources.static_shared_bytes + config.dynamic_shared_bytes
    return _rounded_up(asked + sm.shared_reserved_bytes, sm.shared_allocation_bytes)


def _limit_of_block(config: LaunchConfig, resources: KernelResources, sm: SmSpec) -> int:
    """Refuse a block that is too large; otherwise the slots are the only limit."""
    most = min(resources.max_threads_per_block, sm.block_thread_count)
    return sm.resident_block_count if config.block.size <= most else 0


def _limit_of_registers(warps: int, resources: KernelResources, sm: SmSpec) -> int:
    """What registers let in; an estimate of them lets one CTA in."""
    limit = _ctas_with_registers(warps, resources.registers_per_thread, sm)
    return max(limit, 1) if resources.registers_estimated else limit


def _ctas_with_registers(warps: int, registers_per_thread: int, sm: SmSpec) -> int:
    """Split registers evenly among the sub-partitions, and a CTA's warps too."""
    if registers_per_thread > sm.register_thread_count:
        return 0
    per_warp = allocated_registers(max(registers_per_thread, 1), sm)
    if per_warp * _rounded_up(warps, sm.warp_allocation_count) > sm.register_block_count:
        return 0
    warps_per_scheduler = sm.register_count // sm.scheduler_count // per_warp
    return warps_per_scheduler * sm.scheduler_count // warps


def _limit_of_barriers(resources: KernelResources, sm: SmSpec) -> int:
    """Refuse only what one CTA has too many of: named barriers are its own."""
    return sm.resident_block_count if resources.barrier_count <= sm.block_barrier_count else 0


def _smallest_carveout(wanted_bytes: int, sm: SmSpec) -> int:
    for size_bytes in sm.shared_carveout_bytes:
        if size_bytes >= wanted_bytes:
            return size_bytes
    return sm.shared_carveout_bytes[-1]


def _rounded_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
