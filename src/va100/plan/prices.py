"""What a GPU costs an hour: the user's price first, else a dated copy of a price list."""

from __future__ import annotations

from dataclasses import dataclass

from va100.plan.machine import Machine
from va100.spec.clouds import INSTANCES
from va100.spec.model import CloudInstanceSpec, PriceSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars of one GPU (or slice's share of one) an hour, and who says so."""

    usd_per_gpu_h: float
    source: str
    date: str
    market: str


def given_price(usd_per_gpu_h: float) -> Price:
    """The user's own."""
    return Price(usd_per_gpu_h=usd_per_gpu_h, source="given", date="", market="given")


def listed_prices(machine: Machine, market: str = "on-demand") -> tuple[Price, ...]:
    """Dated prices of instances with this GPU, cheapest first; an instance has its own only."""
    found = [
        _price(instance, price)
        for instance in INSTANCES
        for price in instance.prices
        if price.market == market and _carries(instance, machine) and "before" not in price.date
    ]
    return tuple(sorted(found, key=lambda price: (price.usd_per_gpu_h, price.source)))


def price_of(
    machine: Machine, given_usd_per_gpu_h: float | None, market: str = "on-demand"
) -> Price | None:
    """The user's price, else the middle of the dated lists; ``None`` without any."""
    if given_usd_per_gpu_h is not None:
        return given_price(given_usd_per_gpu_h)
    prices = listed_prices(machine, market)
    if not prices:
        return None
    share = _slice_share(machine)
    middle = prices[len(prices) // 2]
    return Price(
        usd_per_gpu_h=middle.usd_per_gpu_h * share,
        source=middle.source,
        date=middle.date,
        market=middle.market,
    )


def _slice_share(machine: Machine) -> float:
    return int(machine.slice_name[0]) / 7 if machine.is_slice else 1.0


def _carries(instance: CloudInstanceSpec, machine: Machine) -> bool:
    if machine.provider:
        return f"{instance.provider}:{instance.name}".lower() == machine.name
    return instance.gpu_model.lower() == machine.chip.partition(":")[0]


def _price(instance: CloudInstanceSpec, price: PriceSpec) -> Price:
    return Price(
        usd_per_gpu_h=price.price_usd_per_h / instance.gpu_count,
        source=f"{instance.provider} {instance.name}, {price.region}",
        date=price.date,
        market=price.market,
    )
