"""Seconds a launch would take, and what holds it back.

The one place where occupancy, pipes, memory, latency and power meet.  A first estimate: the parts
overlap, though not perfectly, on top of a launch's floor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

from va100.errors import OutOfResources
from va100.perf import latency, memory, pipes
from va100.perf.clock import at_clock
from va100.perf.energy import EnergyEstimate
from va100.perf.kernel_energy import kernel_energy
from va100.perf.memory import Residency
from va100.perf.occupancy import Limiter, Occupancy, allocated_shared_bytes, occupancy
from va100.spec.model import ChipSpec, Operation
from va100.spec.rates import peak_flop_per_s
from va100.work import Counters, KernelResources, LaunchConfig, Pipe


class Bound(Enum):
    """What a launch waits for most; the value is spelled for people."""

    LAUNCH = "launch"
    DRAM = "DRAM bandwidth"
    L2 = "L2 bandwidth"
    L1 = "L1 bandwidth"
    SHARED = "shared memory"
    ATOMIC = "atomics"
    ISSUE = "issue slots"
    LATENCY = "latency"
    ALU = "ALU pipe"
    FMA = "FMA pipe"
    FP16 = "FP16 pipe"
    FP64 = "FP64 pipe"
    XU = "XU pipe"
    TENSOR = "tensor pipe"
    LSU = "LSU pipe"
    TEX = "TEX pipe"


PIPE_BOUNDS = {
    Pipe.ALU: Bound.ALU,
    Pipe.FMA: Bound.FMA,
    Pipe.FP16: Bound.FP16,
    Pipe.FP64: Bound.FP64,
    Pipe.XU: Bound.XU,
    Pipe.TENSOR: Bound.TENSOR,
    Pipe.LSU: Bound.LSU,
    Pipe.TEX: Bound.TEX,
}
"""Every pipe that can be a bottleneck of its own; control shares the issue slots."""


MEMORY_BOUNDS = frozenset({Bound.DRAM, Bound.L2, Bound.ATOMIC})
"""Parts outside the SMs, shared by all of them."""
ARITHMETIC_BOUNDS = frozenset({Bound.ISSUE, Bound.ALU, Bound.FMA, Bound.FP16, Bound.FP64})
"""Parts of an SM that its accesses to L1 and shared memory come on top of, not beside: convolutions
of shared tiles take the sum of both, within 14 %, and never the larger (autotune_convolution).
Queues of their own feed the other pipes: where conversions on XU take 65 ms, loads of 30 ms beside
them do not show (autotune_dedispersion)."""
OVERLAP_EXPONENT = 4.0
"""How well memory, SMs and waiting overlap: the norm their times are added in, where 1 would be one
after the other and infinity perfect overlap.  Where memory and multiply-adds take equally long, an
A100 reached 84 % of both (GPU-BENCHES, gpu-roofline), which is 2 to the power of -1/4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Seconds one resource alone would need."""

    bound: Bound
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEstimate:
    """A launch's predicted time and what it is made of."""

    duration_s: float
    floor_s: float
    bound_by: Bound
    occupancy: Occupancy
    wave_count: float
    """Rounds of resident CTAs the grid takes; the last one may be partial."""
    parts: tuple[Part, ...]
    """Longest first; the floor is not among them."""
    assumed: tuple[str, ...]
    """What was not counted and had to be taken for granted."""
    energy: EnergyEstimate
    """Joules, and the clock: the one asked for, or what the card's power limit leaves of it."""

    def fraction(self, bound: Bound) -> float:
        """How busy one resource is over the launch, 0 to 1; 0 when it takes no part."""
        seconds = sum(part.duration_s for part in self.parts if part.bound is bound)
        return seconds / self.duration_s if self.duration_s else 0.0


def estimate(  # noqa: PLR0913  a launch, its chip, and what it finds there
    counters: Counters,
    config: LaunchConfig,
    resources: KernelResources,
    chip: ChipSpec,
    *,
    residency: Residency = Residency.DRAM,
    clock_hz: float | None = None,
    kernel: str = "",
) -> KernelEstimate:
    """Predict how long one launch takes, and its energy.

    Parameters
    ----------
    residency : Residency
        Whether L2 already holds the launch's data.
    clock_hz : float, optional
        SM clock, boost without it.  The launch is taken to be one of many: where it would draw more
        than the card's limit, it runs at the fastest clock that does not.
    kernel : str
        Named in the error only.

    Raises
    ------
    OutOfResources
        The launch does not fit on an SM.
    ValueError
        The chip does not run at that clock.
    """
    fit = occupancy(config, resources, chip.sm)
    if fit.ctas_per_sm == 0:
        raise _misfit(kernel, fit, config, resources, chip)

    counters = _merged(counters, resources.merged_load_ratio)
    work = _Work(
        counters=counters,
        flow=memory.traffic(counters, chip),
        ctas=max(config.grid.size, 1),
        residency=residency,
        fit=fit,
        assumed=_assumed(counters, resources, fit),
    )
    wanted = float(chip.boost_clock_hz if clock_hz is None else clock_hz)
    return _within_limit(partial(_at, work, chip), wanted, chip)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What is to be timed, the same at every clock."""

    counters: Counters
    flow: memory.Traffic
    ctas: int
    residency: Residency
    fit: Occupancy
    assumed: tuple[str, ...]


def _merged(counters: Counters, ratio: float) -> Counters:
    """Leave out the loads that machine code has once where PTX has them several times.

    What they hit is L1, so nothing changes beyond it.
    """
    if ratio >= 1.0 or not counters.l2_sectors:
        return counters
    gone = (counters.global_requests - counters.global_store_requests) * (1 - ratio)
    loaded = counters.global_sectors - counters.global_store_sectors
    mix = dict(counters.warp_instructions)
    mix[Pipe.LSU] = max(mix.get(Pipe.LSU, 0.0) - gone, 0.0)
    return replace(
        counters,
        warp_instructions=mix,
        global_requests=counters.global_requests - gone,
        global_sectors=counters.global_store_sectors + loaded * ratio,
        l1_lines=counters.l1_lines * ratio,
        load_waits=counters.load_waits * ratio,
    )


def _within_limit(
    run: Callable[[float], KernelEstimate], wanted_hz: float, chip: ChipSpec
) -> KernelEstimate:
    """Lower the clock step by step until the power does not exceed the card's limit."""
    found = run(wanted_hz)
    limit_w, step_hz = float(chip.power_default_w), float(chip.clock_step_hz)
    if found.energy.power_w <= limit_w:
        return found
    slow, fast = 0, int((wanted_hz - chip.idle_clock_hz) / step_hz)
    while slow < fast:  # the most steps above the slowest clock that stay within
        middle = (slow + fast + 1) // 2
        if run(chip.idle_clock_hz + middle * step_hz).energy.power_w <= limit_w:
            slow = middle
        else:
            fast = middle - 1
    return run(chip.idle_clock_hz + slow * step_hz)


def _at(work: _Work, chip: ChipSpec, clock_hz: float) -> KernelEstimate:
    """Time and energy at one clock; the floor was measured at boost."""
    there = at_clock(chip, clock_hz)
    waves = work.ctas / (work.fit.ctas_per_sm * chip.sm_count)
    parts = sorted(
        (part for part in _parts(work, waves, there) if part.duration_s > 0),
        key=lambda part: -part.duration_s,
    )
    accesses = memory.access_cycles(work.flow) * _busiest(work.ctas, chip)
    together_s = _overlapped_s(parts, accesses / there.boost_clock_hz)
    floor_s = launch_floor_s(chip)
    duration_s = floor_s + together_s
    return KernelEstimate(
        duration_s=duration_s,
        floor_s=floor_s,
        bound_by=parts[0].bound if together_s > floor_s else Bound.LAUNCH,
        occupancy=work.fit,
        wave_count=waves,
        parts=tuple(parts),
        assumed=work.assumed,
        energy=kernel_energy(work.counters, work.flow, duration_s, chip, clock_hz),
    )


def launch_floor_s(chip: ChipSpec) -> float:
    """Time a launch takes before and after its CTAs.

    It was measured on a tiny kernel that reads L2 once, so one CTA's turn and that read are in it.
    """
    return chip.measured.graph_node_s - latency.shortest_cycles(chip) / chip.boost_clock_hz


def _parts(work: _Work, waves: float, chip: ChipSpec) -> list[Part]:
    """Time of every resource, as if it were the only one."""
    counters, flow, residency = work.counters, work.flow, work.residency
    clock_hz = float(chip.boost_clock_hz)
    busiest = _busiest(work.ctas, chip)
    path_cycles = latency.warp_cycles(counters, chip, residency)
    parts = [
        Part(bound=PIPE_BOUNDS[pipe], duration_s=_pipe_s(pipe, cycles * busiest, chip))
        for pipe, cycles in pipes.busy_cycles(counters, chip.sm).items()
    ]
    on_sm = {
        Bound.ISSUE: pipes.issue_cycles(counters, chip.sm) * busiest,
        Bound.L1: memory.l1_cycles(flow) * busiest,
        Bound.SHARED: memory.shared_cycles(flow) * busiest,
        Bound.LATENCY: path_cycles * -(-waves // 1),
    }
    parts += [Part(bound=bound, duration_s=cycles / clock_hz) for bound, cycles in on_sm.items()]
    active_sm_count = min(work.ctas, chip.sm_count)
    on_chip = {
        Bound.DRAM: memory.dram_s(flow, chip, residency),
        Bound.L2: memory.l2_s(flow, active_sm_count, chip, clock_hz, residency),
        Bound.ATOMIC: memory.atomic_s(counters, chip, clock_hz),
    }
    return parts + [Part(bound=bound, duration_s=seconds) for bound, seconds in on_chip.items()]


def _busiest(ctas: int, chip: ChipSpec) -> float:
    """Part of the grid that the SM with most CTAs runs."""
    return -(-ctas // chip.sm_count) / ctas


def _overlapped_s(parts: Iterable[Part], access_s: float) -> float:
    """Time of memory, of the SMs and of waiting together; of memory the slowest part counts."""
    slowest = dict.fromkeys(("memory", "arithmetic", "apart", "latency"), 0.0)
    for part in parts:
        group = _group(part.bound)
        slowest[group] = max(slowest[group], part.duration_s)
    on_sm_s = max(slowest["apart"], slowest["arithmetic"] + access_s)
    times = (slowest["memory"], on_sm_s, slowest["latency"])
    longest_s = max(times)
    if longest_s == 0.0:
        return 0.0
    relative = sum((time_s / longest_s) ** OVERLAP_EXPONENT for time_s in times)
    return longest_s * float(relative ** (1 / OVERLAP_EXPONENT))


def _group(bound: Bound) -> str:
    if bound is Bound.LATENCY:
        return "latency"
    if bound in MEMORY_BOUNDS:
        return "memory"
    return "arithmetic" if bound in ARITHMETIC_BOUNDS else "apart"


def _pipe_s(pipe: Pipe, cycles: float, chip: ChipSpec) -> float:
    """Cycles to seconds; the multiply-add pipe at the share of its peak that was measured."""
    reached = 1.0
    if pipe is Pipe.FMA:
        reached = chip.measured.fp32_flop_per_s / peak_flop_per_s(chip, Operation.FP32_FMA)
    return cycles / (chip.boost_clock_hz * reached)


def _assumed(counters: Counters, resources: KernelResources, fit: Occupancy) -> tuple[str, ...]:
    notes = []
    if resources.registers_estimated and fit.limiter is Limiter.REGISTERS:
        notes.append("registers estimated from values alive at once; ptxas was not asked")
    moved = counters.global_load_bytes + counters.global_store_bytes
    if counters.sampled_fraction == 0:
        if moved:
            notes.append("sectors were not counted; global accesses taken as coalesced")
        if counters.shared_requests:
            notes.append("bank conflicts were not counted; shared accesses taken as free of them")
    if 0 < counters.observed_cta_count == counters.cta_count:
        return tuple(notes)
    if moved and not counters.footprint_bytes:
        notes.append("footprints were not counted; no byte taken as used twice")
    elif max(counters.global_load_bytes, counters.global_store_bytes) > counters.footprint_bytes:
        notes.append("reuse taken as perfect; DRAM taken to see each byte of an array once")
    return tuple(notes)


def _misfit(
    kernel: str,
    fit: Occupancy,
    config: LaunchConfig,
    resources: KernelResources,
    chip: ChipSpec,
) -> OutOfResources:
    sm = chip.sm
    block_limit = min(resources.max_threads_per_block, sm.block_thread_count)
    shared_bytes = allocated_shared_bytes(config, resources, sm) - sm.shared_reserved_bytes
    registers = resources.registers_per_thread * config.block.size
    facts = {
        Limiter.BLOCK: ("threads a CTA", config.block.size, block_limit),
        Limiter.WARPS: ("warps a CTA", config.warps_per_cta, sm.resident_warp_count),
        Limiter.REGISTERS: ("registers a CTA", registers, sm.register_block_count),
        Limiter.SHARED: ("bytes of shared memory", shared_bytes, sm.shared_block_optin_bytes),
        Limiter.BARRIERS: ("barriers", resources.barrier_count, sm.block_barrier_count),
    }
    resource, required, limit = facts[fit.limiter]
    return OutOfResources(kernel=kernel, resource=resource, required=required, limit=limit)
