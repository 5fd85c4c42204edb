"""Prices with the dates they hold from, in integer micro-dollars.

A slice costs its share of the card: as many eighths as it has memory slices.  No layout that MIG
allows holds more than eight, so the slices of a card never cost more than the card, and what they
leave is idle.  The default book is made from what clouds ask for A100s (:mod:`va100.spec.clouds`).
"""

from __future__ import annotations

import bisect
import itertools
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from va100.cloud.geometry import CHIPS, EIGHTHS
from va100.spec.clouds import INSTANCES

MICRO: Final = 1_000_000
"""Micro-dollars of a dollar."""
HOUR_S: Final = 3600
DENOMINATOR: Final = HOUR_S * EIGHTHS
"""Prices are per hour of a whole unit; quantities are eighths of it for seconds."""
DISK: Final = "disk"
"""The item of a gibibyte of disk; its eighths are eight a gibibyte."""
SPOT_RATIO: Final = 0.4
"""What of the price a spot instance saves, unless a site says otherwise."""


def card_item(model: str) -> str:
    """The item of a whole card of a model."""
    return f"gpu:{model}"


@dataclass(frozen=True, slots=True, order=True)
class Price:
    """What a unit of an item costs from a moment on."""

    item: str
    from_s: int
    micro_per_h: int
    """Micro-dollars an hour."""


class PriceBook:
    """Prices of all items over time."""

    def __init__(self, prices: Iterable[Price]) -> None:
        self._steps: dict[str, list[Price]] = {}
        for price in sorted(prices):
            if price.micro_per_h < 0:
                raise ValueError(f"{price.item}: a price cannot be negative")
            self._steps.setdefault(price.item, []).append(price)

    def items(self) -> list[str]:
        """Everything that has a price."""
        return sorted(self._steps)

    def at(self, item: str, at_s: int) -> int:
        """Micro-dollars an hour at a moment; 0 before the first price, and for strangers."""
        steps = self._steps.get(item, [])
        place = bisect.bisect_right(steps, at_s, key=lambda price: price.from_s)
        return steps[place - 1].micro_per_h if place else 0

    def pieces(self, item: str, from_s: int, to_s: int) -> Iterator[tuple[int, int]]:
        """Cut a time where the price changes: seconds and micro-dollars an hour of each piece."""
        changes = [p.from_s for p in self._steps.get(item, []) if from_s < p.from_s < to_s]
        edges = [from_s, *changes, to_s]
        for start, end in itertools.pairwise(edges):
            if end > start:
                yield end - start, self.at(item, start)

    def numerator(self, item: str, eighths: int, from_s: int, to_s: int) -> int:
        """What a time costs, in micro-dollars times :data:`DENOMINATOR`: exact, to be rounded."""
        return eighths * sum(seconds * rate for seconds, rate in self.pieces(item, from_s, to_s))


def default_prices(from_s: int = 0) -> tuple[Price, ...]:
    """Prices of every card: the median of what clouds ask on demand, and for disk."""
    cards = [Price(card_item(model), from_s, round(usd * MICRO)) for model, usd in _MEDIANS.items()]
    return (*cards, Price(DISK, from_s, _DISK_MICRO_PER_H))


_DISK_MICRO_PER_H: Final = 137
"""0.10 USD a gibibyte and month of 730 hours, the usual list price of block storage."""


def _medians() -> Mapping[str, float]:
    found: dict[str, float] = {}
    for model in CHIPS:
        asked = [
            price.price_usd_per_h / instance.gpu_count
            for instance in INSTANCES
            if instance.gpu_model == model
            for price in instance.prices
            if price.market == "on-demand"
        ]
        if asked:
            found[model] = statistics.median(asked)
    like = {  # no cloud of the list has the 40 GB PCIe card: as the 40 GB SXM one
        model: found[other]
        for model in CHIPS
        for other in CHIPS
        if model not in found
        and other in found
        and CHIPS[other].memory_bytes == CHIPS[model].memory_bytes
    }
    return MappingProxyType(found | like)


_MEDIANS: Final = _medians()


def dollars(micro: int) -> str:
    """Spell an amount: ``$12.34``, with as many digits as it needs below a cent."""
    sign = "-" if micro < 0 else ""
    whole, rest = divmod(abs(micro), MICRO)
    digits = f"{rest:06d}".rstrip("0")
    return f"{sign}${whole:,}.{digits.ljust(2, '0')}"
