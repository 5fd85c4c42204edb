"""What a GPU-hour costs its owner, beside what clouds ask: break-even and what matters most.

Every default is an assumption that an option replaces; prices of clouds are dated copies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Final

from va100.errors import PlanError
from va100.plan.machine import Machine
from va100.plan.prices import Price, listed_prices

HOURS_PER_YEAR: Final = 8766.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Owning:
    """What owning GPUs is reckoned with, per GPU.

    Attributes
    ----------
    capex_usd : float
        Server, GPU and network, a GPU's share.
    life_years, resale_share : float
        Kept so long, then sold for this share of the price.
    capital_rate : float
        Yearly cost of money.
    utilization : float
        Share of its hours that a GPU works.
    usd_per_kwh, pue : float
        Price of energy, and the building's draw over the machines'.
    busy_w, idle_w, host_w : float
        A GPU at work and at rest, and its share of the host.
    space_usd_per_kw_month : float
        Racks and cooling plant, by the power they are built for.
    staff_usd_per_year, maintenance_share : float
        People a year; contracts a year over the price.
    """

    capex_usd: float = 20_000.0
    life_years: float = 4.0
    resale_share: float = 0.15
    capital_rate: float = 0.06
    utilization: float = 0.7
    usd_per_kwh: float = 0.12
    pue: float = 1.3
    busy_w: float = 330.0
    idle_w: float = 55.0
    host_w: float = 250.0
    space_usd_per_kw_month: float = 120.0
    staff_usd_per_year: float = 800.0
    maintenance_share: float = 0.05


DEFAULTS: Final[Mapping[str, float]] = MappingProxyType(asdict(Owning()))
_POSITIVE: Final = ("life_years", "utilization", "pue", "usd_per_kwh", "busy_w")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCost:
    """Dollars a year of one GPU, by what they are for."""

    depreciation_usd: float
    capital_usd: float
    energy_usd: float
    cooling_usd: float
    space_usd: float
    staff_usd: float
    maintenance_usd: float
    usd_per_gpu_h: float
    """An hour that the GPU exists."""
    usd_per_used_h: float
    """An hour that it works."""
    kwh_per_year: float

    @property
    def year_usd(self) -> float:
        """All of it."""
        return self.usd_per_gpu_h * HOURS_PER_YEAR


def check_owning(owning: Owning) -> None:
    """Refuse numbers that no owner has.

    Raises
    ------
    PlanError
        The first that is wrong.
    """
    for entry in fields(owning):
        value = getattr(owning, entry.name)
        if value < 0 or (entry.name in _POSITIVE and not value):
            raise PlanError(f"{entry.name} is {value}", hint="give a number above 0")
    if owning.utilization > 1 or owning.resale_share > 1:
        raise PlanError("a share is above 1", hint="utilization and resale are shares, 0 to 1")
    if owning.pue < 1:
        raise PlanError(f"pue is {owning.pue}", hint="a building draws at least what is in it")


def own_cost(owning: Owning) -> OwnCost:
    """Reckon a year of one GPU."""
    check_owning(owning)
    mean_w = owning.utilization * owning.busy_w + (1 - owning.utilization) * owning.idle_w
    mean_w += owning.host_w
    kwh = mean_w * HOURS_PER_YEAR / 1000
    depreciation = owning.capex_usd * (1 - owning.resale_share) / owning.life_years
    held = owning.capex_usd * (1 + owning.resale_share) / 2
    energy = kwh * owning.usd_per_kwh
    built_kw = (owning.busy_w + owning.host_w) / 1000
    parts = {
        "depreciation_usd": depreciation,
        "capital_usd": held * owning.capital_rate,
        "energy_usd": energy,
        "cooling_usd": energy * (owning.pue - 1),
        "space_usd": built_kw * owning.space_usd_per_kw_month * 12,
        "staff_usd": owning.staff_usd_per_year,
        "maintenance_usd": owning.capex_usd * owning.maintenance_share,
    }
    hour = sum(parts.values()) / HOURS_PER_YEAR
    return OwnCost(
        **parts,
        usd_per_gpu_h=hour,
        usd_per_used_h=hour / owning.utilization,
        kwh_per_year=kwh * owning.pue,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Renting:
    """How a cloud's price becomes an hour of work."""

    usd_per_gpu_h: float
    market: str
    interruptions_per_day: float = 0.0
    lost_h_per_interruption: float = 0.3
    """Work since the last checkpoint, and the restart."""
    discount_share: float = 0.0

    @property
    def usd_per_used_h(self) -> float:
        """Dollars of an hour that is not lost."""
        lost = self.interruptions_per_day * self.lost_h_per_interruption / 24
        return self.usd_per_gpu_h * (1 - self.discount_share) / max(1 - lost, 0.01)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One offer beside owning."""

    source: str
    date: str
    market: str
    usd_per_gpu_h: float
    usd_per_used_h: float
    break_even_utilization: float | None
    """Use above which owning costs less; ``None`` when it never does."""
    break_even_months: float | None
    """Months of this use after which money spent on owning is less than on renting."""


def compare_offers(
    owning: Owning, offers: tuple[Price, ...], spot_interruptions_per_day: float, reserved: float
) -> tuple[Comparison, ...]:
    """Offers beside owning, cheapest hour of work first; each on-demand one reserved as well."""
    found = []
    for offer in offers:
        spot = offer.market == "spot"
        renting = Renting(
            usd_per_gpu_h=offer.usd_per_gpu_h,
            market=offer.market,
            interruptions_per_day=spot_interruptions_per_day if spot else 0.0,
        )
        found.append(_comparison(owning, offer, renting, offer.market))
        if offer.market == "on-demand" and reserved:
            cheaper = replace(renting, discount_share=reserved)
            found.append(_comparison(owning, offer, cheaper, "reserved"))
    return tuple(sorted(found, key=lambda one: (one.usd_per_used_h, one.source, one.market)))


def _comparison(owning: Owning, offer: Price, renting: Renting, market: str) -> Comparison:
    rent = renting.usd_per_used_h
    if market == "reserved":
        # Paid whether used or not.
        rent = rent / owning.utilization
    return Comparison(
        source=offer.source,
        date=offer.date,
        market=market,
        usd_per_gpu_h=renting.usd_per_gpu_h * (1 - renting.discount_share),
        usd_per_used_h=rent,
        break_even_utilization=_break_even_utilization(owning, renting, market),
        break_even_months=_break_even_months(owning, rent),
    )


def _break_even_utilization(owning: Owning, renting: Renting, market: str) -> float | None:
    """Bisect for the use at which an hour of work costs the same."""

    def cheaper(utilization: float) -> bool:
        own = own_cost(replace(owning, utilization=utilization)).usd_per_used_h
        rent = renting.usd_per_used_h
        return own < (rent / utilization if market == "reserved" else rent)

    if not cheaper(1.0):
        return None
    low, high = 1e-4, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if cheaper(middle) else (middle, high)
    return high


def _break_even_months(owning: Owning, rent_usd_per_used_h: float) -> float | None:
    """The price at once, then running costs, against rent as it comes; resale is not counted."""
    cost = own_cost(owning)
    running = cost.year_usd - cost.depreciation_usd - cost.capital_usd
    rent = rent_usd_per_used_h * owning.utilization * HOURS_PER_YEAR
    if rent <= running:
        return None
    return owning.capex_usd / (rent - running) * 12


def sensitivity(owning: Owning, change: float = 0.2) -> dict[str, tuple[float, float]]:
    """Dollars of an hour of work with each input this share lower and higher, strongest first."""
    found = {}
    for name in DEFAULTS:
        value = getattr(owning, name)
        ends = []
        for factor in (1 - change, 1 + change):
            limit = 1.0 if name in ("utilization", "resale_share") else float("inf")
            least = 1.0 if name == "pue" else 0.0
            changed = replace(owning, **{name: max(min(value * factor, limit), least)})
            ends.append(own_cost(changed).usd_per_used_h)
        found[name] = (ends[0], ends[1])
    order = sorted(found, key=lambda name: (-abs(found[name][1] - found[name][0]), name))
    return {name: found[name] for name in order}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPrices:
    """What an interface asks for a million tokens, and how a request is made up."""

    input_usd: float
    output_usd: float
    cached_usd: float
    cached_share: float
    """Of the prompt's tokens."""
    prompt: int
    output: int

    @property
    def usd_per_million_output(self) -> float:
        """Dollars of a million answered tokens with their prompts."""
        ratio = self.prompt / self.output
        fresh = ratio * (1 - self.cached_share) * self.input_usd
        return fresh + ratio * self.cached_share * self.cached_usd + self.output_usd


def own_usd_per_million(cost: OwnCost, gpus: int, output_tokens_per_s: float) -> float:
    """Dollars of a million answered tokens on one's own GPUs at work."""
    return cost.usd_per_used_h * gpus / 3600 / output_tokens_per_s * 1e6


def gpus_within_power(owning: Owning, budget_kw: float) -> int:
    """GPUs that a power budget feeds, all at work, the building's losses included."""
    each_w = (owning.busy_w + owning.host_w) * owning.pue
    return int(budget_kw * 1000 // each_w)


def cost_document(
    machine: Machine,
    owning: Owning,
    offers: tuple[Price, ...],
    terms: tuple[float, float],
) -> dict[str, Any]:
    """Everything of ``plan cost``, in dollars, kilowatt-hours and shares."""
    spot, reserved = terms
    cost = own_cost(owning)
    assumed = [name for name, value in DEFAULTS.items() if getattr(owning, name) == value]
    return {
        "machine": machine.name,
        "own": {**asdict(cost), "year_usd": cost.year_usd},
        "inputs": asdict(owning),
        "assumed": assumed,
        "offers": [asdict(one) for one in compare_offers(owning, offers, spot, reserved)],
        "sensitivity_usd_per_used_h": {
            name: list(ends) for name, ends in sensitivity(owning).items()
        },
        "basis": "arithmetic on the inputs; offers are dated copies of price lists, not quotes",
    }


def offers_of(machine: Machine, given_usd_per_gpu_h: float | None) -> tuple[Price, ...]:
    """The user's price first, then dated ones on demand and spot."""
    own: tuple[Price, ...] = ()
    if given_usd_per_gpu_h is not None:
        own = (
            Price(usd_per_gpu_h=given_usd_per_gpu_h, source="given", date="", market="on-demand"),
        )
    return (*own, *listed_prices(machine), *listed_prices(machine, "spot"))
