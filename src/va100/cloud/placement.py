"""Where an instance goes: MIG geometry, NVLink locality, promises, and whom it would displace.

A search is exact: if any place fits the rules it is found, and the fitting says which of several
is taken.  The rules, in one place:

- nothing overlaps what is on a card, save a lent lease, which is suspended;
- what is never displaced (standard, guaranteed) also keeps off others' promises;
- a guaranteed instance goes to its tenant's own promised place;
- whoever is displaced has a lower tier than whom it makes room for.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from va100.cloud.fleet import FREE, Card, Fleet, State
from va100.cloud.geometry import EMPTY, Fit, added, free_memory, merged, packed, room, starts
from va100.cloud.models import Home, Lease, Place, Shape, Tier


class Fitting(Protocol):
    """How to choose among cards that all fit; the least score is taken."""

    def score(self, *, lost: int, free: int, idle_cards: int) -> tuple[int, ...]:
        """Rate one card.

        Parameters
        ----------
        lost : int
            Room for future GPU instances that the placement costs, in memory slices.
        free : int
            Memory slices that are free on the card.
        idle_cards : int
            Free cards of its node; 0 when nodes are not told apart yet.
        """
        ...


@dataclass(frozen=True, slots=True)
class Option:
    """A place, and the leases that would have to leave it first."""

    place: Place
    tier: Tier
    victims: tuple[Lease, ...] = ()


def find_free(
    fleet: Fleet, shape: Shape, tier: Tier, fitting: Fitting, *, nvlink: bool = False
) -> Place | None:
    """Find a place that is free for a tier below guaranteed; none if there is none."""
    if shape.is_slice:
        return _free_slice(fleet, shape, tier, fitting)
    for idle in (False, True) if tier < Tier.STANDARD else (False,):
        place = _free_cards(fleet, shape, idle=idle, nvlink=nvlink)
        if place is not None:
            return place
    return None


def own_home(fleet: Fleet, tenant: str, shape: Shape) -> Option | None:
    """Find a promised place that its tenant does not use yet, the one with least to displace."""
    options = [
        Option(home.place, Tier.GUARANTEED, victims)
        for home in unused_homes(fleet, tenant, shape)
        if (victims := _home_victims(fleet, home)) is not None
    ]
    return min(options, key=_disruption, default=None)


def unused_homes(fleet: Fleet, tenant: str, shape: Shape) -> Iterator[Home]:
    """Promised places of a shape that their tenant neither has nor waits for."""
    homes = fleet.homes_of.get((tenant, shape))
    if not homes:
        return
    taken = {fleet.leases[name].place for name in fleet.by_tenant[tenant]}
    for home in homes:
        cards = fleet.cards_of(home.place)
        there = len(cards) == len(home.place.gpus) and all(card.usable for card in cards)
        if there and home.place not in taken and not _is_claimed(cards, home):
            yield home


def _is_claimed(cards: Iterable[Card], home: Home) -> bool:
    part = (home.shape.fit, home.place.start)
    return any(part in card.claims[request] for card in cards for request in card.firm_claims)


def displacing(fleet: Fleet, shape: Shape, *, nvlink: bool = False) -> Option | None:
    """Find a standard place whose spot instances can be told to leave, fewest first."""
    find = _displaced_slice if shape.is_slice else functools.partial(_displaced_on, nvlink=nvlink)

    def ranked(node: str) -> tuple[tuple[int, int, int, Place], Option] | None:
        option = find(fleet, node, shape)
        return (_disruption(option), option) if option is not None and option.victims else None

    return fleet.best(shape.model, ("displaced", shape, nvlink), ranked)


def _disruption(option: Option) -> tuple[int, int, int, Place]:
    highest = max((int(lease.tier) for lease in option.victims), default=-1)
    shares = sum(lease.eighths for lease in option.victims)
    return highest, len(option.victims), shares, option.place


# ---------------------------------------------------------------- slices


def _free_slice(fleet: Fleet, shape: Shape, tier: Tier, fitting: Fitting) -> Place | None:
    best: tuple[tuple[int, ...], int, int, State] | None = None
    for state, members in fleet.buckets(shape.model).items():
        found = _start_in(state, shape, tier)
        if found is None:
            continue
        avoid, lost, start = found
        score = (avoid, *fitting.score(lost=lost, free=free_memory(state[0]), idle_cards=0))
        if best is None or score <= best[0]:
            key = (score, min(members), start, state)
            best = key if best is None else min(best, key)
    if best is None:
        return None
    _, _, start, state = best
    card = _card_in(fleet, shape.model, state, fitting)
    return Place(card.node.name, (card.gpu,), shape.profile, start)


def _start_in(state: State, shape: Shape, tier: Tier) -> tuple[int, int, int] | None:
    """How much of promises it takes, the room it costs, and the start; the best of a state."""
    occupied, firm = state
    needs = shape.fit
    found: list[tuple[int, int, int]] = []
    before = room(occupied, shape.model)
    for start, after in starts(occupied, needs):
        keeps_off = added(firm, needs, start) is not None
        if keeps_off or tier < Tier.STANDARD:
            found.append((int(not keeps_off), before - room(after, shape.model), start))
    return min(found, default=None)


def _card_in(fleet: Fleet, model: str, state: State, fitting: Fitting) -> Card:
    """The card of a bucket to take: by its node, then by number."""
    members = fleet.buckets(model)[state]
    if state == FREE and fitting.score(lost=0, free=0, idle_cards=1) > fitting.score(
        lost=0, free=0, idle_cards=0
    ):
        return fleet.open_cards(next(fleet.open_nodes(model, 1, idle=False)), idle=False)[0]
    return min(
        (fleet.cards[number] for number in members),
        key=lambda card: (
            fitting.score(lost=0, free=0, idle_cards=fleet.idle_count(card.node.name)),
            card.number,
        ),
    )


# ---------------------------------------------------------------- whole cards


def _free_cards(fleet: Fleet, shape: Shape, *, idle: bool, nvlink: bool) -> Place | None:
    scattered: Place | None = None
    for node in fleet.open_nodes(shape.model, shape.cards, idle=idle):
        cards = fleet.open_cards(node, idle=idle)
        chosen, islands = choose_cards(cards, shape.cards)
        if islands == 1:
            return Place(node, chosen)
        if scattered is None:
            scattered = Place(node, chosen)
    return None if nvlink else scattered


def choose_cards(cards: Sequence[Card], count: int) -> tuple[tuple[int, ...], int]:
    """Take cards that reach each other: from the smallest island that suffices, else from few.

    Returns
    -------
    gpus : tuple of int
    islands : int
        How many NVLink islands they are spread over.
    """
    islands: dict[int, list[int]] = {}
    for card in cards:
        islands.setdefault(card.node.island(card.gpu), []).append(card.gpu)
    enough = [members for members in islands.values() if len(members) >= count]
    if enough:
        return tuple(sorted(min(enough, key=len)[:count])), 1
    chosen: list[int] = []
    used = 0
    for members in sorted(islands.values(), key=len, reverse=True):
        if len(chosen) < count:
            chosen += members[: count - len(chosen)]
            used += 1
    return tuple(sorted(chosen)), used


# ---------------------------------------------------------------- displacing


def _home_victims(fleet: Fleet, home: Home) -> tuple[Lease, ...] | None:
    """Who has to leave a promised place; none if someone there cannot be displaced."""
    victims: dict[str, Lease] = {}
    for card in fleet.cards_of(home.place):
        found = _victims_on(card, home.shape.fit, home.place.start, below=Tier.STANDARD)
        if found is None:
            return None
        victims |= {lease.name: lease for lease in found}
    return tuple(victims.values())


def fits_now(fleet: Fleet, shape: Shape, places: Sequence[Place]) -> bool:
    """Whether what is on cards at this moment leaves room for places of a shape, all together.

    Claims are left out: what is asked is whether one's own can be taken up.
    """
    states: dict[int, int | None] = {}
    for place in places:
        for card in fleet.cards_of(place):
            before = states.get(card.number, _present(card))
            states[card.number] = None if before is None else added(before, shape.fit, place.start)
    return all(state is not None for state in states.values())


def _present(card: Card) -> int:
    return packed(*merged(_parts(card.leases.values())))


def _victims_on(card: Card, needs: Fit, start: int, *, below: Tier) -> list[Lease] | None:
    """Fewest leases below a tier without which a GPU instance fits a card.

    What other requests wait for counts as there.  Those who leave for them are named, too, if
    there is no room before they have left.
    """
    coming = [part for parts in card.claims.values() for part in parts]
    leaving = [lease for lease in card.leases.values() if lease.claimed_by in card.claims]
    there = [x for x in card.leases.values() if not x.lent and x not in leaving]
    mask = ((1 << needs.memory) - 1) << start
    must = [lease for lease in there if mask & _mask(lease)]
    if any(lease.tier >= below for lease in must) or mask & merged(coming)[0]:
        return None
    rest = [lease for lease in there if lease not in must]
    spare = sorted((x for x in rest if x.tier < below), key=lambda x: (x.tier, x.eighths))
    for count in range(len(spare) + 1):
        for more in itertools.combinations(spare, count):
            kept = [x for x in rest if x not in more]
            if added(packed(*merged(coming + _parts(kept))), needs, start) is not None:
                crowded = added(packed(*merged(_parts([*kept, *leaving]))), needs, start) is None
                return [*must, *more, *(leaving if crowded else ())]
    return None


def _parts(leases: Iterable[Lease]) -> list[tuple[Fit, int]]:
    return [(lease.shape.fit, lease.place.start) for lease in leases if not lease.lent]


def _mask(lease: Lease) -> int:
    return ((1 << lease.shape.fit.memory) - 1) << lease.place.start


def _displaced_slice(fleet: Fleet, node: str, shape: Shape) -> Option | None:
    """The place on a node with least to displace."""
    options = []
    for gpu in range(fleet.nodes[node].gpu_count):
        card = fleet.card(node, gpu)
        if not card.usable or card.held or all(x.firm for x in card.leases.values()):
            continue
        for start in shape.fit.starts:
            if added(card.state[1], shape.fit, start) is None:
                continue
            victims = _victims_on(card, shape.fit, start, below=Tier.BORROWED)
            if victims:
                place = Place(node, (gpu,), shape.profile, start)
                options.append(Option(place, Tier.STANDARD, tuple(victims)))
    return min(options, key=_disruption, default=None)


def _displaced_on(fleet: Fleet, node: str, shape: Shape, *, nvlink: bool) -> Option | None:
    """Cards of a node with least to displace."""
    all_cards = (fleet.card(node, gpu) for gpu in range(fleet.nodes[node].gpu_count))
    costs = {
        card.gpu: victims
        for card in all_cards
        if card.usable
        and not card.held
        and card.state[1] == EMPTY
        and (victims := _victims_on(card, shape.fit, 0, below=Tier.BORROWED)) is not None
    }
    return _cheapest(fleet, node, costs, shape, nvlink=nvlink)


def _cheapest(
    fleet: Fleet, node: str, costs: dict[int, list[Lease]], shape: Shape, *, nvlink: bool
) -> Option | None:
    """Cards of a node with fewest to displace, on one island where there is one."""
    islands: dict[int, list[int]] = {}
    for gpu in sorted(costs, key=lambda gpu: (len(costs[gpu]), gpu)):
        islands.setdefault(fleet.nodes[node].island(gpu), []).append(gpu)
    groups = [members for members in islands.values() if len(members) >= shape.cards]
    if not groups and not nvlink:
        groups = [sorted(costs, key=lambda gpu: (len(costs[gpu]), gpu))]
    options = []
    for members in groups:
        gpus = tuple(sorted(members[: shape.cards]))
        if len(gpus) == shape.cards:
            victims = {lease.name: lease for gpu in gpus for lease in costs[gpu]}
            options.append(Option(Place(node, gpus), Tier.STANDARD, tuple(victims.values())))
    return min(options, key=_disruption, default=None)
