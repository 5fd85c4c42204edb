"""What an operator's estimate says, and how demands on a chip become seconds and joules.

The one place where SM time, memory time and power meet.  Operators say what they ask of the chip
(:class:`Demand`); here the parts overlap, the power limit lowers the clock if it must, and the band
that was measured for the family is put around the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from va100.perf import energy
from va100.perf.kernel import Bound
from va100.perf.operators.bands import Family, band_s
from va100.perf.operators.chips import Basis, Chip
from va100.spec.model import MmaKind, Operation

CLOCK_STEP_HZ: Final = 15e6
MIN_CLOCK_HZ: Final = 210e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What an operator asks of the chip."""

    operations: Mapping[MmaKind | Operation, float]
    """Count by class as the energy model has it."""
    sm_s: float
    """Time of the busiest SM at the boost clock."""
    sm_bound: Bound
    """What holds the SM back."""
    memory_s: float
    """Time of the memory, whatever the SM clock."""
    memory_bound: Bound = Bound.DRAM
    fixed_s: float = 0.0
    """Launches, and what nothing overlaps with."""
    dram_bytes: float
    l2_bytes: float
    exponent: float = 4.0
    """Norm in which SM and memory time are added: 1 is one after the other."""

    @property
    def traffic(self) -> Mapping[energy.Level, float]:
        """Bytes by level."""
        return {energy.Level.DRAM: self.dram_bytes, energy.Level.L2: self.l2_bytes}

    def duration_s(self, slowdown: float = 1.0) -> float:
        """Time at a clock ``slowdown`` times below boost."""
        return self.fixed_s + together_s(self.sm_s * slowdown, self.memory_s, self.exponent)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorEstimate:
    """Predicted time and energy of an operator, with what they rest on."""

    time_s: float
    energy_j: float
    bound: str
    """What it waits for most, spelled as :class:`va100.perf.kernel.Bound` does."""
    band: tuple[float, float]
    """Least and most seconds, nine times of ten; an order of magnitude where none were measured."""
    basis: Basis
    chip: str
    clock_hz: float
    """SM clock that the power limit allows."""
    power_w: float
    flop_count: float
    dram_bytes: float
    sm_s: float
    memory_s: float
    fixed_s: float
    notes: tuple[str, ...]
    """What a reader should know of this figure."""

    @property
    def flop_per_s(self) -> float:
        """Operations a second reached."""
        return self.flop_count / self.time_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A demand after the power limit: what every estimate is filled from."""

    time_s: float
    energy_j: float
    power_w: float
    clock_hz: float
    bound: Bound
    sm_s: float


def settle(demand: Demand, chip: Chip) -> Settled:
    """Time and energy of a demand at the highest clock that keeps within the power limit."""
    card = card_of(chip)
    work = energy.work_of(demand.operations, demand.traffic)
    if chip.energy_ratio != 1.0:
        work = work._replace(operation_j=work.operation_j * chip.energy_ratio)
    slowdown = _slowdown(demand, work, card)
    time_s = demand.duration_s(slowdown)
    clock_hz = card.boost_hz / slowdown
    energy_j = energy.work_energy_j(work, time_s, card, clock_hz)
    return Settled(
        time_s=time_s,
        energy_j=energy_j,
        power_w=energy_j / time_s,
        clock_hz=clock_hz,
        bound=_bound(demand, slowdown),
        sm_s=demand.sm_s * slowdown,
    )


def filled(
    demand: Demand, chip: Chip, family: Family, flop_count: float, notes: tuple[str, ...] = ()
) -> dict[str, object]:
    """Fields that every estimate has, for its constructor."""
    found = settle(demand, chip)
    basis = chip.basis if family.measured else max(chip.basis, Basis.MODEL, key=_worse)
    if found.clock_hz < chip.clock_hz:
        notes = (*notes, f"power limit lowers the clock to {found.clock_hz / 1e6:.0f} MHz")
    return {
        "time_s": found.time_s,
        "energy_j": found.energy_j,
        "bound": found.bound.value,
        "band": band_s(found.time_s, family, chip.least_error_ratio),
        "basis": basis,
        "chip": chip.name,
        "clock_hz": found.clock_hz,
        "power_w": found.power_w,
        "flop_count": flop_count,
        "dram_bytes": demand.dram_bytes,
        "sm_s": found.sm_s,
        "memory_s": demand.memory_s,
        "fixed_s": demand.fixed_s,
        "notes": notes,
    }


@lru_cache(maxsize=256)
def card_of(chip: Chip) -> energy.Card:
    """Power facts of a chip or slice."""
    return energy.Card(
        idle_w=chip.idle_w,
        limit_w=chip.power_limit_w,
        boost_hz=chip.clock_hz,
        min_hz=MIN_CLOCK_HZ,
        step_hz=CLOCK_STEP_HZ,
    )


def together_s(first_s: float, second_s: float, exponent: float) -> float:
    """Time of two overlapping parts, in a norm."""
    longer, shorter = max(first_s, second_s), min(first_s, second_s)
    if shorter <= 0.0:
        return longer
    return float(longer * (1.0 + (shorter / longer) ** exponent) ** (1.0 / exponent))


def _slowdown(demand: Demand, work: energy.Work, card: energy.Card) -> float:
    """Boost clock over the highest clock within the limit; 1 where boost is."""

    def exceeds(clock_hz: float) -> bool:
        time_s = demand.duration_s(card.boost_hz / clock_hz)
        return energy.work_energy_j(work, time_s, card, clock_hz) > card.limit_w * time_s

    if not exceeds(card.boost_hz):
        return 1.0
    low, high = 0, int((card.boost_hz - card.min_hz) / card.step_hz)
    while low < high:
        middle = (low + high) // 2
        if exceeds(card.boost_hz - middle * card.step_hz):
            low = middle + 1
        else:
            high = middle
    return card.boost_hz / (card.boost_hz - low * card.step_hz)


def _bound(demand: Demand, slowdown: float) -> Bound:
    sm_s = demand.sm_s * slowdown
    if max(sm_s, demand.memory_s) < demand.fixed_s:
        return Bound.LAUNCH
    return demand.sm_bound if sm_s >= demand.memory_s else demand.memory_bound


def _worse(basis: Basis) -> int:
    return list(Basis).index(basis)
