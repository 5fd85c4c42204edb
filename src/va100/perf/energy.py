"""Joules: energy of operations and bytes, and what a card burns besides, at any clock.

One model for a counted kernel and for a predicted operator.  Power is a constant part, and a part
that every operation and every byte adds; the second is reckoned at the boost clock and falls with
the square of the voltage, which falls with the clock.  What is not here: temperature (leakage is in
the constant part), the board's regulators, the host, and how many bits toggle, which moves the
dynamic part by a quarter either way.

Fitted (``docs/operators.md`` says how): the voltage curve to a burn of multiply-adds at ten locked
clocks of a PCIe 40 GB card; joules a flop in FP32 and joules a byte of DRAM to an intensity sweep
on an SXM4 40 GB card; of tensor cores to the clocks that cards of 250, 300 and 400 W keep.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from va100.spec.model import ChipSpec, MmaKind, Operation

PICO: Final = 1e-12

FLOP_J: Final[Mapping[MmaKind | Operation, float]] = MappingProxyType(
    {
        MmaKind.FP16: 1.05 * PICO,
        MmaKind.BF16: 1.05 * PICO,
        MmaKind.TF32: 2.1 * PICO,
        MmaKind.FP8: 0.53 * PICO,
        MmaKind.INT8: 0.53 * PICO,
        MmaKind.INT4: 0.27 * PICO,
        MmaKind.B1: 0.07 * PICO,
        MmaKind.FP64: 23.0 * PICO,
        Operation.FP16_FMA: 3.6 * PICO,
        Operation.BF16_FMA: 7.2 * PICO,
        Operation.FP32_FMA: 14.3 * PICO,
        Operation.FP64_FMA: 28.6 * PICO,
        Operation.INT32_MUL: 14.3 * PICO,
        Operation.SPECIAL: 23.0 * PICO,
    }
)
"""Joules of one operation at the boost clock on operands that differ, a multiply-add counted as
two; issue, registers and shared memory are in it.  FP16, BF16 and FP32 are fitted; formats of other
widths are scaled from those by bits, FP64 from the clock that HPL keeps: assumed."""
CONSTANT_RATIO: Final = 0.444
"""Of that where operands hardly change, as in most burn-in kernels: fitted to two of them."""
OTHER_OPERATION_J: Final = 14.3 * PICO
"""Of a class that the table leaves out: as an FP32 operation.  Assumed."""
SPARSE_FLOP_RATIO: Final = 0.6
"""Energy of a 2:4 sparse product over the dense one it stands for: half the multiplies, all of the
operands.  Assumed."""


class Level(Enum):
    """Where bytes cross."""

    DRAM = "DRAM"
    L2 = "L2"
    """From L2 to the SMs, and back."""
    SHARED = "shared"
    """Shared memory or L1."""


BYTE_J: Final[Mapping[Level, float]] = MappingProxyType(
    {Level.DRAM: 105.0 * PICO, Level.L2: 30.0 * PICO, Level.SHARED: 3.0 * PICO}
)
"""Joules of a byte at the boost clock.  The sum of DRAM and L2 is fitted, the split assumed, and
shared memory's, beyond what operations carry, assumed."""

FLAT_RATIO: Final = 1005 / 1410
"""Share of the boost clock below which the voltage no longer falls."""
VOLTAGE_LINEAR: Final = 0.227
VOLTAGE_SQUARE: Final = 0.660
"""Square of the voltage from there to boost: 1 + linear x + square x*x, x running from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What the energy model needs to know of a card."""

    idle_w: float
    """At no work, clocks up."""
    limit_w: float
    boost_hz: float
    min_hz: float
    step_hz: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyEstimate:
    """Joules of some work, and what they are made of."""

    energy_j: float
    power_w: float
    """Average while the work lasts."""
    static_j: float
    operation_j: float
    memory_j: float
    clock_hz: float


class Work(NamedTuple):
    """Joules that work adds at the boost clock, by what becomes of them at a lower one."""

    operation_j: float
    on_chip_j: float
    """Of bytes on the chip; falls with the voltage, as operations' does."""
    dram_j: float
    """Does not follow the SM clock."""


def card_of(chip: ChipSpec) -> Card:
    """Power facts of a chip."""
    return Card(
        idle_w=chip.measured.idle_w,
        limit_w=float(chip.power_default_w),
        boost_hz=float(chip.boost_clock_hz),
        min_hz=float(chip.idle_clock_hz),
        step_hz=float(chip.clock_step_hz),
    )


def estimate_energy(
    operations: Mapping[MmaKind | Operation, float],
    traffic: Mapping[Level, float],
    duration_s: float,
    card: Card,
    clock_hz: float | None = None,
) -> EnergyEstimate:
    """Predict the joules of work that takes ``duration_s`` at ``clock_hz``.

    Parameters
    ----------
    operations : mapping
        Count by class, a multiply-add counted as two; a sparse product as the dense one it stands
        for, times :data:`SPARSE_FLOP_RATIO`.
    traffic : mapping
        Bytes that cross each level, in either direction.
    clock_hz : float, optional
        SM clock, at most the boost clock, which is taken without it.
    """
    clock = card.boost_hz if clock_hz is None else clock_hz
    work = work_of(operations, traffic)
    scale = voltage_squared(clock / card.boost_hz)
    total_j = work_energy_j(work, duration_s, card, clock)
    return EnergyEstimate(
        energy_j=total_j,
        power_w=total_j / duration_s if duration_s else card.idle_w,
        static_j=card.idle_w * duration_s,
        operation_j=scale * work.operation_j,
        memory_j=work.dram_j + scale * work.on_chip_j,
        clock_hz=clock,
    )


def work_of(
    operations: Mapping[MmaKind | Operation, float], traffic: Mapping[Level, float]
) -> Work:
    """Joules that work adds at the boost clock."""
    dram_j = traffic.get(Level.DRAM, 0.0) * BYTE_J[Level.DRAM]
    all_j = sum(count_bytes * BYTE_J[level] for level, count_bytes in traffic.items())
    return Work(operation_energy_j(operations), all_j - dram_j, dram_j)


def work_energy_j(work: Work, duration_s: float, card: Card, clock_hz: float) -> float:
    """Joules of work that takes so long at a clock, with what the card burns meanwhile."""
    scale = voltage_squared(clock_hz / card.boost_hz)
    clocked_j = scale * (work.operation_j + work.on_chip_j)
    return card.idle_w * duration_s + clocked_j + work.dram_j


def operation_energy_j(operations: Mapping[MmaKind | Operation, float]) -> float:
    """Joules of operations alone, at the boost clock."""
    return sum(count * FLOP_J.get(unit, OTHER_OPERATION_J) for unit, count in operations.items())


def voltage_squared(clock_ratio: float) -> float:
    """Square of the voltage at a share of the boost clock, over that at boost.

    Parameters
    ----------
    clock_ratio : float
        SM clock over boost clock, 0 to 1.
    """
    reach = max(clock_ratio - FLAT_RATIO, 0.0) / (1.0 - FLAT_RATIO)
    full = 1.0 + VOLTAGE_LINEAR + VOLTAGE_SQUARE
    return (1.0 + VOLTAGE_LINEAR * reach + VOLTAGE_SQUARE * reach * reach) / full


def power_w(dynamic_w: float, clock_ratio: float, card: Card) -> float:
    """Power at a clock, of work that adds ``dynamic_w`` at boost and slows with the clock."""
    return card.idle_w + dynamic_w * clock_ratio * voltage_squared(clock_ratio)
