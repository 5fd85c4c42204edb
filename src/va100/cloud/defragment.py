"""Defragmentation: which leases to move so that a request fits, as few as possible.

Only what can be displaced, or says that it may be moved, is moved.  The plan is exact for the
number of moves it tries: for each place of the request, those in the way, each with a new place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from va100.cloud.fleet import Card, Claim, Fleet
from va100.cloud.geometry import EIGHTHS, added, free_memory, largest, merged, packed
from va100.cloud.models import Lease, Place, Shape, Tier
from va100.cloud.placement import Fitting, choose_cards, find_free

MOST_MOVES = 8


@dataclass(frozen=True, slots=True)
class Move:
    """One lease goes from one place to another of the same shape."""

    lease: str
    source: Place
    target: Place


def moves_for(
    fleet: Fleet,
    shape: Shape,
    fitting: Fitting,
    movable: frozenset[str] = frozenset(),
    *,
    fixed: frozenset[str] = frozenset(),
) -> tuple[Move, ...] | None:
    """Find the fewest moves after which a standard instance of a shape has a place.

    Parameters
    ----------
    movable : frozenset of str
        Leases that may be moved although nobody may displace them, such as stopped ones.
    fixed : frozenset of str
        Leases that stay although they could be displaced.

    Returns
    -------
    tuple of Move, or None
        Empty if it has a place already; none if no moves of :data:`MOST_MOVES` or fewer help.
    """
    if find_free(fleet, shape, Tier.STANDARD, fitting) is not None:
        return ()
    firm = frozenset(lease.name for lease in fleet.leases.values() if lease.firm)
    movable = frozenset(fleet.leases) - (firm - movable) - fixed
    best: tuple[Move, ...] | None = None
    for place, leases in sorted(
        _places_with_movable(fleet, shape, movable), key=lambda entry: (len(entry[1]), entry[0])
    ):
        if len(leases) > MOST_MOVES or (best is not None and len(leases) >= len(best)):
            break
        moves = _moved_off(fleet, place, leases, fitting)
        if moves is not None:
            best = moves
    return best


def fragmentation(fleet: Fleet, model: str) -> float:
    """Share of a model's free memory slices that no whole card can be made of, 0 to 1.

    0 when all that is free is whole cards, 1 when nothing of it is; 0 when nothing is free.
    """
    free = whole = 0
    for state, members in fleet.buckets(model).items():
        slices = free_memory(state[0])
        free += slices * len(members)
        whole += EIGHTHS * len(members) if slices == EIGHTHS else 0
    return 1 - whole / free if free else 0.0


def stranded_eighths(fleet: Fleet, model: str) -> int:
    """Free memory slices of cards on which no profile fits any more."""
    return sum(
        free_memory(state[0]) * len(members)
        for state, members in fleet.buckets(model).items()
        if largest(state[0], model) is None
    )


def _may_move(lease: Lease, movable: frozenset[str]) -> bool:
    return not lease.lent and not lease.claimed_by and lease.name in movable


def _places_with_movable(
    fleet: Fleet, shape: Shape, movable: frozenset[str]
) -> Iterator[tuple[Place, tuple[Lease, ...]]]:
    """Places of a shape on which all that is in the way can be moved."""
    if not shape.is_slice:
        yield from _card_places(fleet, shape, movable)
        return
    for card in fleet.cards:
        if card.node.model != shape.model or not card.usable or card.claims:
            continue
        for start in shape.fit.starts:
            leases = _in_the_way(card, shape, start, movable)
            if leases is not None:
                yield Place(card.node.name, (card.gpu,), shape.profile, start), leases


def _card_places(
    fleet: Fleet, shape: Shape, movable: frozenset[str]
) -> Iterator[tuple[Place, tuple[Lease, ...]]]:
    for node in fleet.nodes.values():
        if node.model != shape.model:
            continue
        cards: list[tuple[int, Card]] = []
        for gpu in range(node.gpu_count):
            card = fleet.card(node.name, gpu)
            leases = tuple(card.leases.values())
            whole = all(len(lease.place.gpus) == 1 for lease in leases)
            free = card.usable and not (card.claims or card.homes) and whole
            if free and all(_may_move(lease, movable) for lease in leases):
                cards.append((len(leases), card))
        cards.sort(key=lambda entry: (entry[0], entry[1].gpu))
        if len(cards) >= shape.cards:
            few = cards[shape.cards - 1][0]
            near = [card for count, card in cards if count <= few]
            gpus, _ = choose_cards(near, shape.cards)
            chosen = [fleet.card(node.name, gpu) for gpu in gpus]
            yield (
                Place(node.name, gpus),
                tuple(lease for card in chosen for lease in card.leases.values()),
            )


def _in_the_way(
    card: Card, shape: Shape, start: int, movable: frozenset[str]
) -> tuple[Lease, ...] | None:
    """Fewest leases of a card to move for a slice at a start, firm promises respected."""
    promised = packed(*merged((home.shape.fit, home.place.start) for home in card.homes))
    if added(promised, shape.fit, start) is None:
        return None
    mask = ((1 << shape.fit.memory) - 1) << start
    leases = sorted(card.leases.values(), key=lambda lease: lease.eighths)
    must = [x for x in leases if mask & ((1 << x.shape.fit.memory) - 1) << x.place.start]
    rest = [x for x in leases if x not in must and not x.lent]
    for count in range(len(rest) + 1):
        moved = must + [x for x in rest if _may_move(x, movable)][:count]
        kept = [(x.shape.fit, x.place.start) for x in rest if x not in moved]
        fits = added(packed(*merged(kept)), shape.fit, start) is not None
        if fits and all(_may_move(lease, movable) for lease in moved):
            return tuple(moved)
    return None


def _moved_off(
    fleet: Fleet, place: Place, leases: Sequence[Lease], fitting: Fitting
) -> tuple[Move, ...] | None:
    """Give each lease another place, largest first; none if one has none."""
    moves: list[Move] = []
    done: list[tuple[Lease, Lease]] = []
    shape = Shape(leases[0].shape.model, place.profile, len(place.gpus)) if leases else None
    if shape is None:
        return ()
    fleet.claim(Claim("defragment", "", shape, (place,), firm=True))
    for lease in sorted(leases, key=lambda lease: (-lease.eighths, lease.name)):
        # Not on what others were promised, even for those who could be there.
        target = find_free(fleet, lease.shape, max(lease.tier, Tier.STANDARD), fitting)
        if target is None:
            break
        moves.append(Move(lease.name, lease.place, target))
        moved = replace(lease, place=target)
        fleet.replace(moved)
        done.append((lease, moved))
    for lease, _ in reversed(done):
        fleet.replace(lease)
    fleet.unclaim("defragment")
    return tuple(moves) if len(moves) == len(leases) else None
