"""Factors that fit the model of time to one machine: four, each on a part of the model.

Where the factors come from (a person's measurements) and where they are kept is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

from va100.spec.model import ChipSpec

LEAST, MOST = 0.25, 4.0
"""A factor beyond these says that something else is wrong."""
_STIFFNESS: Final = 0.002
"""What a factor costs by its distance from 1, so that those that nothing tells of stay there."""
_STEPS: Final = (0.2, 0.05, 0.0125, 0.003)
_ROUNDS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Times as fast as the model has it, each between :data:`LEAST` and :data:`MOST`."""

    dram: float = 1.0
    l2: float = 1.0
    sm: float = 1.0
    """Clock of SMs that is really kept."""
    launch: float = 1.0

    def applied(self, chip: ChipSpec) -> ChipSpec:
        """A chip with these rates; its name, limits and boost clock stay."""
        measured = chip.measured
        return replace(
            chip,
            sm=chip.sm,
            boost_clock_hz=round(chip.boost_clock_hz * self.sm),
            measured=replace(
                measured,
                dram_read_bytes_per_s=measured.dram_read_bytes_per_s * self.dram,
                dram_write_bytes_per_s=measured.dram_write_bytes_per_s * self.dram,
                dram_scale_bytes_per_s=measured.dram_scale_bytes_per_s * self.dram,
                l2_bytes_per_s=measured.l2_bytes_per_s * self.l2,
                l2_curve_bytes_per_s=tuple(r * self.l2 for r in measured.l2_curve_bytes_per_s),
                fp32_flop_per_s=measured.fp32_flop_per_s * self.sm,
                l1_bytes_per_s=measured.l1_bytes_per_s * self.sm,
                graph_node_s=measured.graph_node_s / self.launch,
                stream_launch_s=measured.stream_launch_s / self.launch,
            ),
        )


Predict = Callable[[Calibration], float]
"""Seconds that one measured launch takes under a calibration."""


def calibrated(launches: Sequence[tuple[Predict, float]]) -> Calibration:
    """Find the factors that bring predictions nearest to measured times.

    Parameters
    ----------
    launches : sequence of (prediction, seconds measured)

    Returns
    -------
    Calibration
        Least mean of absolute logarithms of predicted over measured, found by steps along each
        factor; the same for the same launches.
    """
    best = Calibration()
    cost = _cost(best, launches)
    for step in _STEPS:
        for _ in range(_ROUNDS):
            found = min(
                ((_cost(other, launches), other) for other in _neighbours(best, step)),
                key=lambda pair: pair[0],
            )
            if found[0] >= cost - 1e-12:
                break
            cost, best = found
    return best


def left_out_errors(launches: Sequence[tuple[Predict, float]]) -> list[float]:
    """Relative error of each launch under the factors that all others give."""
    errors = []
    for index, (predict, measured_s) in enumerate(launches):
        others = [pair for number, pair in enumerate(launches) if number != index]
        errors.append(predict(calibrated(others)) / measured_s - 1)
    return errors


def _neighbours(at: Calibration, step: float) -> list[Calibration]:
    found = []
    for entry in fields(Calibration):
        for factor in (math.exp(step), math.exp(-step)):
            value = getattr(at, entry.name) * factor
            if LEAST <= value <= MOST:
                found.append(replace(at, **{entry.name: value}))
    return found


def _cost(at: Calibration, launches: Sequence[tuple[Predict, float]]) -> float:
    errors = [abs(math.log(predict(at) / measured_s)) for predict, measured_s in launches]
    pull = sum(abs(math.log(getattr(at, entry.name))) for entry in fields(Calibration))
    return sum(errors) / max(len(errors), 1) + _STIFFNESS * pull
