"""Policies: who is served first, and which of several cards is taken.

Each is a small class without state; a :class:`Policy` joins one of either kind with the times that
a site promises.  None of them can break a guarantee: they order and choose, and the rules of
:mod:`va100.cloud.placement` and :mod:`va100.cloud.scheduler` hold under all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol

from va100.cloud.models import Request, Tenant
from va100.cloud.placement import Fitting


class Order(Protocol):
    """Who is served first."""

    def arranged(
        self, pending: Iterable[Request], held: Mapping[str, int], tenants: Mapping[str, Tenant]
    ) -> Sequence[Request]:
        """Order requests.

        Parameters
        ----------
        held : mapping of str to int
            Eighths of cards that each tenant has.
        """
        ...


class FirstCome:
    """Who asked first; a tenant's own priorities before that."""

    def arranged(
        self, pending: Iterable[Request], held: Mapping[str, int], tenants: Mapping[str, Tenant]
    ) -> Sequence[Request]:
        """Order requests by age."""
        del held, tenants
        return sorted(pending, key=_age)


class FairShare:
    """Whoever has least for its weight, counting what it would get by its earlier requests."""

    def arranged(
        self, pending: Iterable[Request], held: Mapping[str, int], tenants: Mapping[str, Tenant]
    ) -> Sequence[Request]:
        """Order requests by share, then age."""
        counted = Counter(held)
        keyed: list[tuple[float, tuple[int, int, str], Request]] = []
        for request in sorted(pending, key=_age):
            tenant = tenants.get(request.tenant)
            weight = tenant.weight if tenant else 1
            keyed.append((counted[request.tenant] / weight, _age(request), request))
            counted[request.tenant] += request.shape.eighths * request.members
        return [request for _, _, request in sorted(keyed, key=lambda entry: entry[:2])]


class ShortestFirst:
    """Who says it will need least card time; those who do not say come last."""

    def arranged(
        self, pending: Iterable[Request], held: Mapping[str, int], tenants: Mapping[str, Tenant]
    ) -> Sequence[Request]:
        """Order requests by card time, then age."""
        del held, tenants
        return sorted(pending, key=lambda request: (_card_time(request), _age(request)))


class LargestFirst:
    """Large gangs first, since small ones fill what they leave."""

    def arranged(
        self, pending: Iterable[Request], held: Mapping[str, int], tenants: Mapping[str, Tenant]
    ) -> Sequence[Request]:
        """Order requests by size, then age."""
        del held, tenants
        return sorted(pending, key=lambda r: (-r.shape.eighths * r.members, _age(r)))


def _age(request: Request) -> tuple[int, int, str]:
    return -request.priority, request.since_s, request.name


def _card_time(request: Request) -> float:
    if request.expected_s is None:
        return float("inf")
    return float(request.expected_s * request.shape.eighths * request.members)


class Tight:
    """Keep the most room for what may come: whole cards and whole nodes stay free."""

    def score(self, *, lost: int, free: int, idle_cards: int) -> tuple[int, ...]:
        """Rate a card by the room it loses, then by how full it is."""
        return lost, free, idle_cards


class Lowest:
    """The first that fits, by number."""

    def score(self, *, lost: int, free: int, idle_cards: int) -> tuple[int, ...]:
        """Rate all cards alike."""
        del lost, free, idle_cards
        return ()


class Spread:
    """The emptiest, so that neighbours disturb each other least."""

    def score(self, *, lost: int, free: int, idle_cards: int) -> tuple[int, ...]:
        """Rate a card by how empty it and its node are."""
        return -free, lost, -idle_cards


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a site schedules."""

    order: Order = field(default_factory=FirstCome)
    fitting: Fitting = field(default_factory=Tight)
    notice_s: int = 30
    """What a displaced instance is given to save its work; promises are kept within it."""
    backfill: bool = True
    """Whether requests may overtake one that has no place yet."""
    patience_s: int | None = 3600
    """After how long the first that waits has a node kept free for it; none: never."""
    depth: int | None = None
    """Most requests looked at in one pass; none: all."""


ORDERS: Final[Mapping[str, Order]] = MappingProxyType(
    {
        "first-come": FirstCome(),
        "fair-share": FairShare(),
        "shortest-first": ShortestFirst(),
        "largest-first": LargestFirst(),
    }
)
FITTINGS: Final[Mapping[str, Fitting]] = MappingProxyType(
    {"tight": Tight(), "lowest": Lowest(), "spread": Spread()}
)
