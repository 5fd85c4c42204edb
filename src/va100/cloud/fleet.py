"""The fleet as the scheduler sees it: cards, what is on them, and where to look for room.

A :class:`Fleet` is built from frozen values and advanced by adding and taking away leases and
claims; it keeps an index of cards by state, so that ten thousand cards cost no more to search
than ten.  Which place is best is :mod:`va100.cloud.placement`'s matter.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from va100.cloud.geometry import EMPTY, FULL, Fit, capacity, merged, packed
from va100.cloud.models import Home, Lease, Node, Place, Shape

T = TypeVar("T")
State = tuple[int, int]
"""What is on a card, and what of it is firm: leases never displaced, and promises."""

FREE: Final[State] = (EMPTY, EMPTY)
_LONGEST_LOG: Final = 200_000


@dataclass(slots=True, eq=False)
class Card:
    """One card of one node, with whatever has to do with it."""

    number: int
    node: Node
    gpu: int
    usable: bool
    state: State = FREE
    leases: dict[str, Lease] = field(default_factory=dict)
    claims: dict[str, list[tuple[Fit, int]]] = field(default_factory=dict)
    """By request, what waits for its place here."""
    firm_claims: set[str] = field(default_factory=set)
    homes: list[Home] = field(default_factory=list)
    counted: tuple[bool, bool] = (False, False)
    """Whether the index counts it as free, and as free or promised but idle."""
    held: bool = False
    """Whether it is kept free for one who has waited long."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Places that a request, or a lent lease's tenant, waits for until those on them have gone."""

    request: str
    tenant: str
    shape: Shape
    places: tuple[Place, ...]
    firm: bool


class Fleet:
    """Cards, leases, promises and claims, and an index over them."""

    def __init__(
        self,
        nodes: Iterable[Node],
        leases: Iterable[Lease] = (),
        homes: Iterable[Home] = (),
        claims: Iterable[Claim] = (),
    ) -> None:
        self.nodes: dict[str, Node] = {node.name: node for node in nodes}
        self.cards: list[Card] = []
        self.leases: dict[str, Lease] = {}
        self.homes: tuple[Home, ...] = tuple(homes)
        self.claims: dict[str, Claim] = {}
        self._at: dict[tuple[str, int], Card] = {}
        self._buckets: dict[str, dict[State, set[int]]] = defaultdict(lambda: defaultdict(set))
        self._open: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._idle: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._open_count: dict[str, int] = {}
        self._idle_count: dict[str, int] = {}
        self._kept: list[Card] = []
        self._due: list[tuple[int, str]] = []
        self._told: set[str] = set()
        self.by_tenant: dict[str, set[str]] = defaultdict(set)
        self.held: Counter[str] = Counter()
        """Eighths of cards that each tenant has or has a claim to; lent ones are not its."""
        self.homes_of: dict[tuple[str, Shape], list[Home]] = defaultdict(list)
        self._most: dict[Shape, int] = {}
        self._nodes_of: dict[str, list[str]] = defaultdict(list)
        self._log: list[str] = []
        self._rankings: dict[tuple[str, object], _Ranking] = {}
        self._models: dict[str, tuple[int, int]] = {}
        for node in self.nodes.values():
            self._add_node(node)
        for home in self.homes:
            self.homes_of[home.tenant, home.shape].append(home)
            for card in self.cards_of(home.place):
                card.homes.append(home)
        for lease in leases:
            self._attach(lease)
        for claim in claims:
            self._attach_claim(claim)
        for card in self.cards:
            self._refresh(card)

    def _add_node(self, node: Node) -> None:
        self._nodes_of[node.model].append(node.name)
        self._open_count[node.name] = self._idle_count[node.name] = 0
        most, together = self._models.get(node.model, (0, 1))
        islands = [len(members) for members in node.islands]
        self._models[node.model] = (max(most, node.gpu_count), max([together, *islands]))
        self._open[node.model][0].add(node.name)
        self._idle[node.model][0].add(node.name)
        for gpu in range(node.gpu_count):
            usable = node.usable is None or gpu in node.usable
            card = Card(len(self.cards), node, gpu, usable, state=(FULL, FULL))
            self.cards.append(card)
            self._at[node.name, gpu] = card

    # ------------------------------------------------------------ looking

    def card(self, node: str, gpu: int) -> Card:
        """The card of a node by its index."""
        return self._at[node, gpu]

    def cards_of(self, place: Place) -> list[Card]:
        """Cards of a place; those of a node that is gone are left out."""
        return [self._at[place.node, g] for g in place.gpus if (place.node, g) in self._at]

    def buckets(self, model: str) -> Mapping[State, set[int]]:
        """Numbers of usable cards of a model, by state."""
        return self._buckets.get(model, {})

    def models(self) -> Mapping[str, tuple[int, int]]:
        """Models that some node has, with the most cards of a node and of an NVLink island."""
        return self._models

    def most(self, shape: Shape) -> int:
        """Instances of a shape that would fit if nothing were there; usable or not."""
        if shape not in self._most:
            each = capacity(EMPTY, shape.fit) if shape.is_slice else 1
            self._most[shape] = each * sum(
                node.gpu_count // shape.cards
                for node in self.nodes.values()
                if node.model == shape.model
            )
        return self._most[shape]

    def open_nodes(self, model: str, count: int, *, idle: bool) -> Iterator[str]:
        """Nodes with so many free cards or more, the fullest first.

        Parameters
        ----------
        idle : bool
            Count cards that are promised but idle, too.
        """
        index = (self._idle if idle else self._open)[model]
        for number in sorted(index):
            if number >= count:
                yield from sorted(index[number])

    def open_cards(self, node: str, *, idle: bool) -> list[Card]:
        """Free cards of a node."""
        found = self.nodes[node]
        cards = (self._at[node, gpu] for gpu in range(found.gpu_count))
        return [card for card in cards if _is_open(card, idle=idle)]

    def best(
        self, model: str, key: object, find: Callable[[str], tuple[Any, T] | None]
    ) -> T | None:
        """The best that any node of a model has; only nodes that have changed are asked again.

        Parameters
        ----------
        key : hashable
            What is asked.
        find : callable
            A node's best with its rank, the least of which is taken; it may look at this node's
            cards and at nothing else.  None: the node has nothing.
        """
        ranking = self._rankings.get((model, key))
        if ranking is None:
            ranking = self._rankings[model, key] = _Ranking(len(self._log))
            changed = self._nodes_of[model]
        else:
            names = dict.fromkeys(self._log[ranking.seen :])
            changed = [name for name in names if self.nodes[name].model == model]
        ranking.seen = len(self._log)
        for node in changed:
            ranking.put(node, find(node))
        found: T | None = ranking.best()
        if len(self._log) > _LONGEST_LOG:
            self._log.clear()
            self._rankings.clear()
        return found

    def open_summary(self, model: str, *, idle: bool) -> tuple[str, int, int]:
        """A node with most free cards of a model, how many it has, and how many there are."""
        index = (self._idle if idle else self._open)[model]
        filled = {number: nodes for number, nodes in index.items() if nodes}
        most = max(filled)
        return min(filled[most]), most, sum(n * len(nodes) for n, nodes in filled.items())

    def idle_count(self, node: str) -> int:
        """Free cards of a node, promised ones among them."""
        return self._idle_count[node]

    def overlapping(self, place: Place, needs: Fit) -> list[Lease]:
        """Leases that share a memory slice with a place."""
        wanted = ((1 << needs.memory) - 1) << place.start
        found = {
            lease.name: lease
            for card in self.cards_of(place)
            for lease in card.leases.values()
            if wanted & ((1 << lease.shape.fit.memory) - 1) << lease.place.start
        }
        return list(found.values())

    def leases_told(self) -> list[Lease]:
        """Leases that have notice."""
        return [self.leases[name] for name in self._told]

    def due(self, now_s: int) -> list[Lease]:
        """Leases whose end or notice has come; each is told once."""
        found: dict[str, Lease] = {}
        while self._due and self._due[0][0] <= now_s:
            lease = self.leases.get(heapq.heappop(self._due)[1])
            if lease is not None and any(
                at_s is not None and at_s <= now_s for at_s in (lease.ends_s, lease.notice_s)
            ):
                found[lease.name] = lease
        return list(found.values())

    # ------------------------------------------------------------ changing

    def add(self, lease: Lease) -> None:
        """Let a lease begin."""
        self._attach(lease)
        self._refresh_all(self.cards_of(lease.place))

    def remove(self, name: str) -> Lease:
        """Let a lease end."""
        lease = self.leases.pop(name)
        self._told.discard(name)
        self.by_tenant[lease.tenant].discard(name)
        if not lease.lent:
            self.held[lease.tenant] -= lease.eighths
        cards = self.cards_of(lease.place)
        for card in cards:
            del card.leases[name]
        self._refresh_all(cards)
        return lease

    def replace(self, lease: Lease) -> None:
        """Put a lease in the place of the one of its name."""
        self.remove(lease.name)
        self.add(lease)

    def claim(self, claim: Claim) -> None:
        """Keep places for a request until those on them have gone."""
        self._attach_claim(claim)
        for place in claim.places:
            self._refresh_all(self.cards_of(place))

    def unclaim(self, request: str) -> Claim | None:
        """Let go of a request's places; what it was, if there was one."""
        claim = self.claims.pop(request, None)
        if claim is None:
            return None
        self.held[claim.tenant] -= claim.shape.eighths * len(claim.places)
        for place in claim.places:
            cards = self.cards_of(place)
            for card in cards:
                card.claims.pop(request, None)
                card.firm_claims.discard(request)
            self._refresh_all(cards)
        return claim

    def hold(self, cards: Sequence[Card]) -> None:
        """Keep cards from new work until :meth:`release_holds`."""
        for card in cards:
            card.held = True
        self._kept.extend(cards)
        self._refresh_all(cards)

    def release_holds(self) -> None:
        """Open all held cards again."""
        kept, self._kept = self._kept, []
        for card in kept:
            card.held = False
        self._refresh_all(kept)

    def _attach(self, lease: Lease) -> None:
        self.leases[lease.name] = lease
        self.by_tenant[lease.tenant].add(lease.name)
        if not lease.lent:
            self.held[lease.tenant] += lease.eighths
        if lease.notice_s is not None:
            self._told.add(lease.name)
        for at_s in (lease.ends_s, lease.notice_s):
            if at_s is not None:
                heapq.heappush(self._due, (at_s, lease.name))
        for card in self.cards_of(lease.place):
            card.leases[lease.name] = lease

    def _attach_claim(self, claim: Claim) -> None:
        self.claims[claim.request] = claim
        self.held[claim.tenant] += claim.shape.eighths * len(claim.places)
        for place in claim.places:
            for card in self.cards_of(place):
                card.claims.setdefault(claim.request, []).append((claim.shape.fit, place.start))
                if claim.firm:
                    card.firm_claims.add(claim.request)

    def _refresh_all(self, cards: Iterable[Card]) -> None:
        for card in cards:
            self._refresh(card)

    def _refresh(self, card: Card) -> None:
        model, node = card.node.model, card.node.name
        self._log.append(node)
        members = self._buckets[model].get(card.state)
        if members is not None:
            members.discard(card.number)
            if not members:
                del self._buckets[model][card.state]
        card.state = state_of_card(card)
        if card.usable and not card.held:
            self._buckets[model][card.state].add(card.number)
        before_open, before_idle = card.counted
        card.counted = (_is_open(card, idle=False), _is_open(card, idle=True))
        for index, counts, before, after in (
            (self._open, self._open_count, before_open, card.counted[0]),
            (self._idle, self._idle_count, before_idle, card.counted[1]),
        ):
            if before != after:
                index[model][counts[node]].discard(node)
                counts[node] += after - before
                index[model][counts[node]].add(node)


class _Ranking:
    """What each node has, best first."""

    def __init__(self, seen: int) -> None:
        self.seen = seen
        """How much of the log of changes it knows."""
        self._values: dict[str, tuple[Any, Any]] = {}
        self._heap: list[tuple[Any, str]] = []

    def put(self, node: str, value: tuple[Any, Any] | None) -> None:
        """Say what a node has now."""
        if value is None:
            self._values.pop(node, None)
            return
        self._values[node] = value
        heapq.heappush(self._heap, (value[0], node))
        if len(self._heap) > 64 + 4 * len(self._values):  # most of it is out of date
            self._heap = [(one[0], name) for name, one in self._values.items()]
            heapq.heapify(self._heap)

    def best(self) -> Any:
        """What the best node has; none if none has anything."""
        while self._heap:
            rank, node = self._heap[0]
            value = self._values.get(node)
            if value is not None and value[0] == rank:
                return value[1]
            heapq.heappop(self._heap)
        return None


def _is_open(card: Card, *, idle: bool) -> bool:
    if not card.usable or card.held:
        return False
    return card.state[0] == EMPTY and (idle or card.state[1] == EMPTY)


def state_of_card(card: Card) -> State:
    """What is on a card, and what of it is firm."""
    there = [(x.shape.fit, x.place.start) for x in card.leases.values() if not x.lent]
    staying = [
        (x.shape.fit, x.place.start)
        for x in card.leases.values()
        if not x.lent and x.claimed_by not in card.claims
    ]
    coming = [part for parts in card.claims.values() for part in parts]
    mask, _, media = merged(there + coming)
    occupied = packed(mask, max(merged(there)[1], merged(staying + coming)[1]), media)
    firm = {(home.shape.fit, home.place.start) for home in card.homes}
    firm |= {(x.shape.fit, x.place.start) for x in card.leases.values() if x.firm}
    for request in card.firm_claims:
        firm |= set(card.claims[request])
    return occupied, packed(*merged(firm))
