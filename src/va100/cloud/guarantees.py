"""Promises: which place each tenant's guarantee is kept on.

A guarantee counts instances of a shape ("two whole cards and four 1g.10gb").  It is kept by
reserving a place for each: what is never displaced stays off it, and whoever else is there leaves
when its tenant asks.  So a promise is kept at any time and by construction, MIG geometry and
NVLink included; promises that no arrangement keeps are refused when they are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from va100.cloud.fleet import Fleet
from va100.cloud.geometry import EMPTY, added
from va100.cloud.models import Home, Lease, Node, Place, Shape
from va100.cloud.placement import choose_cards
from va100.errors import NoPlacement

Guarantees = Mapping[tuple[str, Shape], int]
"""How many instances of a shape each tenant is promised."""

_MOST_STEPS = 20_000


def lay_out(
    nodes: Iterable[Node],
    leases: Iterable[Lease],
    guarantees: Guarantees,
    before: Iterable[Home] = (),
) -> tuple[Home, ...]:
    """Choose a place for everything promised, around what is never displaced.

    Parameters
    ----------
    before : iterable of Home
        Earlier choices, kept where they are still right.

    Raises
    ------
    NoPlacement
        No arrangement was found that keeps all promises.
    """
    firm = [lease for lease in leases if lease.firm]
    homes: list[Home] = []
    missing = dict(guarantees)
    for home in _kept(firm, list(before), guarantees):
        homes.append(home)
        missing[home.tenant, home.shape] -= 1
    wanted = [(tenant, shape) for (tenant, shape), count in missing.items() for _ in range(count)]
    wanted.sort(key=lambda entry: (-entry[1].eighths, -entry[1].fit.compute, entry))
    open_fleet = _Room(nodes, firm, homes)
    found = open_fleet.place(wanted)
    if found is None:
        raise NoPlacement(_problem(wanted, open_fleet))
    return (*homes, *found)


def _kept(firm: Sequence[Lease], before: Sequence[Home], guarantees: Guarantees) -> list[Home]:
    """Homes to keep: those their tenants are on first, then the earlier ones that are left."""
    left = dict(guarantees)
    there = {(lease.tenant, lease.shape, lease.place) for lease in firm}
    keyed = sorted(before, key=lambda home: (home.tenant, home.shape, home.place) not in there)
    kept = []
    for home in keyed:
        if left.get((home.tenant, home.shape), 0) > 0:
            left[home.tenant, home.shape] -= 1
            kept.append(home)
    return kept


class _Room:
    """Cards as promises see them: only what is never displaced is on them."""

    def __init__(self, nodes: Iterable[Node], firm: Sequence[Lease], homes: Sequence[Home]) -> None:
        self.fleet = Fleet(nodes, firm, homes)
        self.states = {card.number: card.state[1] for card in self.fleet.cards if card.usable}
        self.steps = 0

    def place(self, wanted: Sequence[tuple[str, Shape]]) -> tuple[Home, ...] | None:
        """Try places for the first, then for the rest, largest first, and go back if need be."""
        if not wanted:
            return ()
        self.steps += 1
        if self.steps > _MOST_STEPS:
            return None
        (tenant, shape), rest = wanted[0], wanted[1:]
        tried: set[object] = set()
        for place in self._places(shape):
            likeness = self._likeness(place)
            if likeness in tried:
                continue
            tried.add(likeness)
            before = self._occupy(shape, place)
            others = self.place(rest)
            if others is not None:
                return (Home(tenant=tenant, shape=shape, place=place), *others)
            self.states.update(before)
        return None

    def _likeness(self, place: Place) -> object:
        """Places of equal likeness lead to the same, so one of them is enough to try."""
        cards = self.fleet.cards_of(place)
        if place.profile:
            return self.states[cards[0].number], place.start
        node = self.fleet.nodes[place.node]
        numbers = (self.fleet.card(place.node, gpu).number for gpu in range(node.gpu_count))
        return tuple(self.states.get(number, -1) for number in numbers)

    def _places(self, shape: Shape) -> list[Place]:
        if shape.is_slice:
            cards = [
                card
                for card in self.fleet.cards
                if card.node.model == shape.model and card.number in self.states
            ]
            cards.sort(key=lambda card: (-self.states[card.number].bit_count(), card.number))
            return [
                Place(card.node.name, (card.gpu,), shape.profile, start)
                for card in cards
                for start in reversed(shape.fit.starts)
                if added(self.states[card.number], shape.fit, start) is not None
            ]
        places = []
        for node in self.fleet.nodes.values():
            if node.model != shape.model:
                continue
            cards = [self.fleet.card(node.name, gpu) for gpu in range(node.gpu_count)]
            empty = [card for card in cards if self.states.get(card.number) == EMPTY]
            if len(empty) >= shape.cards:
                gpus, islands = choose_cards(empty, shape.cards)
                places.append((islands, len(empty), Place(node.name, gpus)))
        return [place for _, _, place in sorted(places)]

    def _occupy(self, shape: Shape, place: Place) -> dict[int, int]:
        before = {}
        for card in self.fleet.cards_of(place):
            before[card.number] = self.states[card.number]
            after = added(before[card.number], shape.fit, place.start)
            assert after is not None
            self.states[card.number] = after
        return before


def _problem(wanted: Sequence[tuple[str, Shape]], room: _Room) -> str:
    counts: dict[str, int] = {}
    for tenant, shape in wanted:
        name = f"{shape} for {tenant}"
        counts[name] = counts.get(name, 0) + 1
    asked = ", ".join(f"{count} x {name}" for name, count in counts.items())
    how = (
        "no arrangement was found in the time given to the search"
        if room.steps > _MOST_STEPS
        else "no arrangement has room"
    )
    return f"these promises cannot all be kept: {asked}; {how} beside what is never displaced"
