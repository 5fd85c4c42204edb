"""Why a request gets no place now, in a sentence that says what would.

Each refusal names what is short and the largest thing of the same model that is free, so that
whoever asked can take it, wait, or ask an operator.
"""

from __future__ import annotations

from collections.abc import Sequence

from va100.cloud.fleet import Fleet
from va100.cloud.geometry import EIGHTHS, PROFILES, free_memory
from va100.cloud.models import (
    MOST_CARDS,
    Market,
    Place,
    Reason,
    Request,
    Shape,
    Tier,
    WhyNot,
)
from va100.cloud.placement import Fitting, find_free


def impossible(fleet: Fleet, request: Request) -> WhyNot | None:
    """Refuse what this fleet could not give even if it were empty."""
    shape = request.shape
    if shape.model not in fleet.models():
        offered = ", ".join(sorted(fleet.models())) or "none"
        return WhyNot(
            reason=Reason.NO_SUCH_GPU, text=f"no {shape.model} in this fleet, which has: {offered}"
        )
    largest, together = fleet.models()[shape.model]
    if shape.cards > min(largest, MOST_CARDS):
        return WhyNot(
            reason=Reason.TOO_LARGE,
            text=f"{shape.cards} cards in one instance: no node has more than {largest} "
            f"{shape.model}",
        )
    if request.members > fleet.most(shape):
        return WhyNot(
            reason=Reason.TOO_LARGE,
            text=f"{request.members} instances of {shape} at once: this fleet holds "
            f"{fleet.most(shape)} when it is empty",
        )
    if request.nvlink and shape.cards > together:
        return WhyNot(
            reason=Reason.LINK,
            text=f"no {shape.cards} {shape.model} of a node reach each other by NVLink; "
            f"at most {together} do",
        )
    return None


def explain(fleet: Fleet, request: Request, fitting: Fitting, *, placed: int) -> WhyNot:
    """Say why a possible request has no place now, and what would have one."""
    shape = request.shape
    tier = Tier.SPOT if request.market is Market.SPOT else Tier.STANDARD
    best = largest_free(fleet, shape.model, tier, fitting)
    instead = _instead(best, shape)
    if placed:
        return _with(
            Reason.BUSY,
            f"only {placed} of {request.members} instances of {shape} have a place, and a gang "
            f"starts together{instead}",
            best,
        )
    if tier is Tier.STANDARD:
        place = find_free(fleet, shape, Tier.SPOT, fitting, nvlink=request.nvlink)
        if place is not None:
            return _with(
                Reason.PROMISED,
                f"free, but promised to others: {place}; ask for it as spot or borrowed{instead}",
                best,
            )
    if shape.cards > 1:
        return _no_cards(fleet, request, tier, best)
    free = sum(
        free_memory(state[0]) * len(cards) for state, cards in fleet.buckets(shape.model).items()
    )
    total = EIGHTHS * sum(
        node.gpu_count for node in fleet.nodes.values() if node.model == shape.model
    )
    needed = shape.fit.memory
    if free >= needed:
        return _with(
            Reason.FRAGMENTED,
            f"fragmented: {free} of {total} eighths of {shape.model} are free, but {shape} fits "
            f"no card"
            f"{instead}",
            best,
        )
    return _with(
        Reason.BUSY,
        f"busy: {free} of {total} eighths of {shape.model} are free, {shape} needs {needed}",
        best,
    )


def largest_free(
    fleet: Fleet, model: str, tier: Tier, fitting: Fitting
) -> tuple[Shape, Place] | None:
    """The largest card or slice of a model that would get a place now."""
    slices = sorted(
        PROFILES[model],
        key=lambda spec: (spec.memory_slice_count, spec.compute_slice_count),
        reverse=True,
    )
    for shape in (Shape(model), *(Shape(model, spec.name) for spec in slices)):
        place = find_free(fleet, shape, tier, fitting)
        if place is not None:
            return shape, place
    return None


def over_limit(held: int, wanted: int, limit: int) -> WhyNot:
    """Refuse what would go over a tenant's limit."""
    return WhyNot(
        reason=Reason.QUOTA,
        text=f"quota: {held} eighths of a card in use and {wanted} asked for, the limit is {limit}",
    )


def coming(places: Sequence[Place], until_s: int) -> WhyNot:
    """Say that a place is being freed."""
    where = "; ".join(str(place) for place in places)
    return WhyNot(
        reason=Reason.COMING,
        text=f"being freed: {where}",
        place=places[0],
        until_s=until_s,
    )


def behind(first: Request) -> WhyNot:
    """Say that others come first."""
    return WhyNot(reason=Reason.BEHIND, text=f"others wait before it, the first for {first.shape}")


def _no_cards(
    fleet: Fleet, request: Request, tier: Tier, best: tuple[Shape, Place] | None
) -> WhyNot:
    shape = request.shape
    idle = tier is Tier.SPOT
    node, most, total = fleet.open_summary(shape.model, idle=idle)
    if request.nvlink and most >= shape.cards:
        text = f"free cards do not reach each other by NVLink: {most} on {node}"
        return _with(Reason.LINK, text, best)
    if total >= shape.cards:
        text = (
            f"fragmented: {total} {shape.model} are free, but at most {most} on one node "
            f"({node}), and {shape.cards} are needed"
        )
        return _with(Reason.FRAGMENTED, text, best)
    return _with(
        Reason.BUSY,
        f"busy: {total} {shape.model} are free, {shape.cards} are needed{_instead(best, shape)}",
        best,
    )


def _instead(best: tuple[Shape, Place] | None, shape: Shape) -> str:
    if best is None:
        return f"; nothing of {shape.model} is free"
    found, place = best
    kind = f"slice is {found.profile}" if found.is_slice else "is a whole card"
    return f"; best free {kind} on {place.node}, GPU {place.gpus[0]}"


def _with(reason: Reason, text: str, best: tuple[Shape, Place] | None) -> WhyNot:
    shape, place = best or (None, None)
    return WhyNot(reason=reason, text=text, best=shape, place=place)
