"""One pass of the scheduler: from what is and who waits to what to do now.

:func:`decide` is a function of its arguments alone: no clock, no chance, no database.  The
service hands it a fleet built from the store and carries the plan out; the simulator hands it
the same fleet again and again.  It advances the fleet to what the plan makes of it.

Why it cannot cycle: an instance displaces only those of a lower tier, and whoever was displaced
waits again with what it asked for, so each displacement raises the tier of what is on a card.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from va100.cloud import refusals
from va100.cloud.fleet import Card, Claim, Fleet
from va100.cloud.models import Lease, Market, Place, Reason, Request, Shape, Tenant, Tier, WhyNot
from va100.cloud.placement import Option, displacing, find_free, fits_now, own_home, unused_homes
from va100.cloud.policies import Policy


@dataclass(frozen=True, slots=True)
class Start:
    """Members of a request begin, each at its place and with its tier."""

    request: Request
    leases: tuple[Lease, ...]


@dataclass(frozen=True, slots=True)
class Notice:
    """An instance is told that its place will be taken, and when."""

    lease: str
    at_s: int
    claimed_by: str


@dataclass(slots=True)
class Plan:
    """What to do now, in this order."""

    ended: list[str] = field(default_factory=list)
    """Leases that reached their end."""
    evicted: list[str] = field(default_factory=list)
    """Leases whose notice is over."""
    resumed: list[str] = field(default_factory=list)
    """Lent leases that have their place again."""
    starts: list[Start] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    """Places kept for requests until those told to leave have left."""
    refusals: dict[str, WhyNot] = field(default_factory=dict)
    """Why each request that still waits does so."""


def decide(
    fleet: Fleet,
    pending: Iterable[Request],
    tenants: Mapping[str, Tenant],
    policy: Policy,
    now_s: int,
    returning: Iterable[str] = (),
) -> Plan:
    """Plan one pass and advance the fleet by it.

    Parameters
    ----------
    returning : iterable of str
        Lent leases whose tenant has work again.
    """
    return _Pass(fleet, tenants, policy, now_s).run(list(pending), sorted(returning))


class _Pass:
    """One pass, with what it has found out so far."""

    def __init__(
        self, fleet: Fleet, tenants: Mapping[str, Tenant], policy: Policy, now_s: int
    ) -> None:
        self.fleet = fleet
        self.tenants = tenants
        self.policy = policy
        self.now_s = now_s
        self.plan = Plan()
        self.hopeless: dict[tuple[Shape, int, Market, bool], WhyNot] = {}

    def run(self, pending: list[Request], returning: list[str]) -> Plan:
        self._end_leases()
        for name in returning:
            self._return_lent(name)
        waiting = {request.name: request for request in pending}
        for stale in [name for name in self.fleet.claims if self._is_stale(name, waiting)]:
            self.fleet.unclaim(stale)
        fresh = []
        for request in pending:
            claim = self.fleet.claims.get(request.name)
            if claim is not None and not self._is_there(claim):
                self.fleet.unclaim(request.name)
                claim = None
            if claim is None:
                fresh.append(request)
            else:
                self._start_claimed(request, claim)
        self._serve(self.policy.order.arranged(fresh, self.fleet.held, self.tenants))
        self.fleet.release_holds()
        return self.plan

    def _is_there(self, claim: Claim) -> bool:
        """Whether all cards of a claim still exist and take work."""
        cards = [card for place in claim.places for card in self.fleet.cards_of(place)]
        whole = len(cards) == sum(len(place.gpus) for place in claim.places)
        return whole and all(card.usable for card in cards)

    def _is_stale(self, claimant: str, waiting: Mapping[str, Request]) -> bool:
        return claimant not in waiting and claimant not in self.fleet.leases

    # ------------------------------------------------------------ what is over

    def _end_leases(self) -> None:
        for lease in self.fleet.due(self.now_s):
            self.fleet.remove(lease.name)
            self.fleet.unclaim(lease.name)
            is_over = lease.ends_s is not None and lease.ends_s <= self.now_s
            (self.plan.ended if is_over else self.plan.evicted).append(lease.name)

    def _return_lent(self, name: str) -> None:
        lease = self.fleet.leases.get(name)
        if lease is None or not lease.lent:
            return
        guests = [
            other
            for other in self.fleet.overlapping(lease.place, lease.shape.fit)
            if other.name != name and not other.lent
        ]
        guests += self._crowding(lease, guests)
        if not guests:
            self.fleet.unclaim(name)
            self.fleet.replace(replace(lease, lent=False))
            self.plan.resumed.append(name)
            return
        if name not in self.fleet.claims:
            self._claim(Claim(name, lease.tenant, lease.shape, (lease.place,), firm=True))
        for guest in guests:
            self._tell(guest, name)

    def _crowding(self, lease: Lease, guests: Sequence[Lease]) -> list[Lease]:
        """Guests beside a returning lease whose compute slices or media it needs."""
        names = {guest.name for guest in guests}
        found: list[Lease] = []
        for card in self.fleet.cards_of(lease.place):
            beside = [
                other
                for other in card.leases.values()
                if not (other.firm or other.lent or other.name in names)
            ]
            needs = lease.shape.fit
            compute = needs.compute + sum(
                other.shape.fit.compute
                for other in card.leases.values()
                if other.name not in names and not other.lent
            )
            for other in sorted(beside, key=lambda x: (x.tier, x.eighths)):
                if compute > 7 or (needs.media and other.shape.fit.media):
                    found.append(other)
                    compute -= other.shape.fit.compute
        return found

    # ------------------------------------------------------------ who waits

    def _start_claimed(self, request: Request, claim: Claim) -> None:
        """Begin a request whose places were kept, once nobody is on them."""
        if not fits_now(self.fleet, claim.shape, claim.places):
            cards = [card for place in claim.places for card in self.fleet.cards_of(place)]
            times = [x.notice_s for c in cards for x in c.leases.values() if x.notice_s is not None]
            until_s = max(times, default=self.now_s)
            self.plan.refusals[request.name] = refusals.coming(claim.places, until_s)
            return
        self.fleet.unclaim(request.name)
        self._begin(
            request, [Option(place, self._tier_at(request, place)) for place in claim.places]
        )

    def _tier_at(self, request: Request, place: Place) -> Tier:
        if request.market is Market.SPOT:  # moved, to a place that was kept for it
            return Tier.SPOT
        homes = {home.place for home in self.fleet.homes if home.tenant == request.tenant}
        return Tier.GUARANTEED if place in homes else Tier.STANDARD

    def _serve(self, ordered: Sequence[Request]) -> None:
        blocked: Request | None = None
        for request in ordered[: self.policy.depth]:
            if blocked is not None and not self.policy.backfill and not self._promised(request):
                self.plan.refusals[request.name] = refusals.behind(blocked)
                continue
            why = self._serve_one(request)
            if why is None:
                continue
            self.plan.refusals[request.name] = why
            if blocked is None and why.reason in _MAY_CHANGE:
                blocked = request
                self._keep_node(request)

    def _promised(self, request: Request) -> bool:
        """Whether all members have a promised place of their own."""
        if request.market is Market.SPOT:
            return False
        homes = unused_homes(self.fleet, request.tenant, request.shape)
        return sum(1 for _ in homes) >= request.members

    def _serve_one(self, request: Request) -> WhyNot | None:
        has_homes = (request.tenant, request.shape) in self.fleet.homes_of
        promised = has_homes and self._promised(request)
        key = (request.shape, request.members, request.market, request.nvlink)
        known = None if promised else self.hopeless.get(key)
        # What was refused already in this pass is possible, so only its tenant's limit is new.
        why = None if known is not None else refusals.impossible(self.fleet, request)
        if why is None and not promised:
            why = self._over_limit(request) or known
        if why is not None:
            return why
        options = self._options(request)
        if len(options) < request.members and request.market is Market.BORROW:
            options = self._options(request, borrowed=True)
        if len(options) < request.members:
            why = refusals.explain(self.fleet, request, self.policy.fitting, placed=len(options))
            if (request.tenant, request.shape) not in self.fleet.homes_of:
                self.hopeless[key] = why
            return why
        return self._take(request, options)

    def _options(self, request: Request, *, borrowed: bool = False) -> list[Option]:
        """Places for the members, as many as there are, each seeing those before it.

        A gang displaces others or borrows, never both: its places are kept until the last is
        free, and a kept place that is borrowed would stand in its owner's way.
        """
        options: list[Option] = []
        for number in range(request.members):
            option = self._option(request, borrowed=borrowed)
            if option is None:
                break
            options.append(option)
            places = (option.place,)
            trial = f"{request.name}\n{number}"
            firm = option.tier >= Tier.STANDARD
            self.fleet.claim(Claim(trial, request.tenant, request.shape, places, firm))
        for number in range(len(options)):
            self.fleet.unclaim(f"{request.name}\n{number}")
        return options

    def _take(self, request: Request, options: Sequence[Option]) -> WhyNot | None:
        """Begin, or keep the places and tell those who are in the way."""
        victims = [lease for option in options for lease in option.victims]
        if not victims:
            self._begin(request, options)
            return None
        places = tuple(option.place for option in options)
        self._claim(Claim(request.name, request.tenant, request.shape, places, firm=True))
        for lease in victims:
            self._tell(lease, request.name)
        return refusals.coming(places, max(self._deadline(lease) for lease in victims))

    def _option(self, request: Request, *, borrowed: bool) -> Option | None:
        """The best place for one member, by the highest tier it has a right to."""
        shape, nvlink = request.shape, request.nvlink
        fitting = self.policy.fitting
        if request.market is Market.SPOT:
            place = find_free(self.fleet, shape, Tier.SPOT, fitting, nvlink=nvlink)
            return None if place is None else Option(place, Tier.SPOT)
        option = own_home(self.fleet, request.tenant, shape)
        if option is not None and not (borrowed and option.victims):
            return option
        place = find_free(self.fleet, shape, Tier.STANDARD, fitting, nvlink=nvlink)
        if place is not None:
            return Option(place, Tier.STANDARD)
        if not borrowed:
            return displacing(self.fleet, shape, nvlink=nvlink)
        place = find_free(self.fleet, shape, Tier.BORROWED, fitting, nvlink=nvlink)
        return None if place is None else Option(place, Tier.BORROWED)

    def _over_limit(self, request: Request) -> WhyNot | None:
        tenant = self.tenants.get(request.tenant)
        limit = tenant.limit_eighths if tenant else None
        wanted = request.shape.eighths * request.members
        held = self.fleet.held[request.tenant]
        if limit is None or held + wanted <= limit:
            return None
        return refusals.over_limit(held, wanted, limit)

    # ------------------------------------------------------------ carrying out

    def _begin(self, request: Request, options: Sequence[Option]) -> None:
        leases = tuple(
            Lease(
                name=request.name if request.members == 1 else f"{request.name}.{number}",
                tenant=request.tenant,
                shape=request.shape,
                place=option.place,
                tier=option.tier,
                since_s=self.now_s,
                request=request.name,
            )
            for number, option in enumerate(options)
        )
        for lease in leases:
            self.fleet.add(lease)
        self.plan.starts.append(Start(request, leases))

    def _claim(self, claim: Claim) -> None:
        self.fleet.claim(claim)
        self.plan.claims.append(claim)

    def _deadline(self, lease: Lease) -> int:
        soon = self.now_s + self.policy.notice_s
        return soon if lease.notice_s is None else min(lease.notice_s, soon)

    def _tell(self, lease: Lease, claimant: str) -> None:
        """Give notice, once; whoever was told already keeps its time."""
        current = self.fleet.leases[lease.name]
        if current.notice_s is not None and current.claimed_by:
            return
        at_s = self._deadline(current)
        self.fleet.replace(replace(current, notice_s=at_s, claimed_by=claimant))
        self.plan.notices.append(Notice(lease.name, at_s, claimant))

    def _keep_node(self, request: Request) -> None:
        """Keep the node that will first have room for whoever has waited too long."""
        patience = self.policy.patience_s
        if patience is None or self.now_s - request.since_s < patience:
            return
        count = request.shape.cards
        find = functools.partial(self._soonest, count=count)
        best = self.fleet.best(request.shape.model, ("soonest", count), find)
        if best is not None:
            self.fleet.hold(best)

    def _soonest(self, node: str, count: int) -> tuple[tuple[float, int, str], list[Card]] | None:
        """So many cards of a node that are empty first: when that is, how many wait, which."""
        if self.fleet.nodes[node].gpu_count < count:
            return None
        cards = [(_empty_at(c), c.gpu, c) for c in self._usable(node) if _may_empty(c)]
        if len(cards) < count:
            return None
        chosen = sorted(cards)[:count]
        key = (chosen[-1][0], sum(bool(c.leases) for _, _, c in chosen), node)
        return key, [card for _, _, card in chosen]

    def _usable(self, node: str) -> list[Card]:
        count = self.fleet.nodes[node].gpu_count
        cards = (self.fleet.card(node, gpu) for gpu in range(count))
        return [card for card in cards if card.usable and not card.claims]


_MAY_CHANGE = frozenset({Reason.BUSY, Reason.FRAGMENTED, Reason.PROMISED, Reason.LINK})


def _may_empty(card: Card) -> bool:
    return not card.homes


def _empty_at(card: Card) -> float:
    return max(
        (float("inf") if x.ends_s is None else float(x.ends_s) for x in card.leases.values()),
        default=0.0,
    )
