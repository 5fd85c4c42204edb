"""From values to places on a chart."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Linear:
    """Even steps."""

    first: float
    last: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Where a value lies, kept inside."""
        share = (value - self.first) / (self.last - self.first)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class Logarithmic:
    """Even ratios; both ends are powers of ten."""

    first_power: int
    last_power: int
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Where a value above 0 lies, kept inside."""
        share = (math.log10(value) - self.first_power) / (self.last_power - self.first_power)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    @property
    def powers(self) -> range:
        """Powers of ten on it."""
        return range(self.first_power, self.last_power + 1)


def powers_around(least: float, most: float) -> tuple[int, int]:
    """Powers of ten that hold a range."""
    first = math.floor(math.log10(least))
    return first, max(math.ceil(math.log10(most)), first + 1)
