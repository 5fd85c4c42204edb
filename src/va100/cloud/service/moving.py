"""Defragmentation carried out: whoever is in the way is told, leaves, and goes on at its new place.

A move is two rows, written together: a claim that keeps the new place for the instance, and the
notice after which it leaves the old one.  From there on the dispatcher does what it always does,
so a move survives whoever is killed.  Only what may be displaced anyway is moved, and nobody ends
up on a place that another was promised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from va100.cloud.defragment import Move, moves_for
from va100.cloud.fleet import Claim, Fleet
from va100.cloud.models import Lease, Place, Shape
from va100.cloud.products import parse_shape
from va100.cloud.records import PLACED, ClaimRecord, InstanceRecord, State
from va100.cloud.service import snapshot
from va100.cloud.service.context import Context, record_event
from va100.cloud.store.database import Work

MARK: Final = "defragment"
"""What claims the old place of an instance that is being moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePlan:
    """Moves after which a shape has a place, and those that are under way already."""

    shape: Shape
    moves: tuple[Move, ...] | None
    """What is left to do; empty: nothing; none: no moves of what may be moved help."""
    under_way: tuple[Move, ...]


def plan_moves(context: Context, work: Work, gpu: str) -> MovePlan:
    """The fewest moves for a shape, as things will be when those under way are over."""
    site = snapshot.read(work)
    placed = work.all(InstanceRecord, state__in=list(PLACED))
    moving = {one.id for one in placed if one.claimed_by == MARK}
    claims = {claim.request: claim for claim in site.claims}
    under_way = tuple(
        Move(lease.name, lease.place, claims[lease.name].places[0])
        for lease in site.leases
        if lease.name in moving and lease.name in claims
    )
    targets = {move.lease: move.target for move in under_way}
    after = Fleet(
        site.nodes,
        [_moved(lease, targets) for lease in site.leases],
        site.homes,
        [claim for claim in site.claims if claim.request not in targets],
    )
    shape = parse_shape(gpu, after.models())
    fixed = frozenset(one.id for one in placed if not _may_move(one))
    moves = moves_for(after, shape, context.options.policy.fitting, fixed=fixed)
    return MovePlan(shape=shape, moves=moves, under_way=under_way)


def carry_out(context: Context, work: Work, gpu: str) -> MovePlan:
    """Begin the moves that are left for a shape; again, it begins nothing new."""
    work.serialise("fleet")
    plan = plan_moves(context, work, gpu)
    at_s = context.now_s() + context.options.policy.notice_s
    for move in plan.moves or ():
        found = work.get(InstanceRecord, id=move.lease)
        assert found is not None
        told = {"notice_s": at_s, "claimed_by": MARK}
        work.change(InstanceRecord, told, id=found.id, state=State.RUNNING, notice_s=None)
        shape = Shape(found.model, found.profile, found.cards)
        claim = Claim(found.id, found.tenant, shape, (move.target,), firm=True)
        work.add(snapshot.claim_record(claim))
        text = (
            f"it will be moved to {move.target} in {at_s - context.now_s()} s, to make room: "
            "save what you need; it starts again there"
        )
        record_event(context, work, found.tenant, found.id, "notice", text)
    return MovePlan(
        shape=plan.shape,
        moves=None if plan.moves is None else (),
        under_way=(*plan.under_way, *(plan.moves or ())),
    )


def target_of(work: Work, instance: InstanceRecord) -> str:
    """Where an instance that is being moved goes, for people; empty: it is not."""
    if instance.claimed_by != MARK:
        return ""
    claim = work.get(ClaimRecord, request=instance.id)
    return str(snapshot.claim_of(claim).places[0]) if claim else ""


def _moved(lease: Lease, targets: dict[str, Place]) -> Lease:
    target = targets.get(lease.name)
    return lease if target is None else replace(lease, place=target, notice_s=None, claimed_by="")


def _may_move(instance: InstanceRecord) -> bool:
    """Whether an instance would go on by itself, alone, and was not told to leave yet."""
    runs = instance.state == State.RUNNING and not instance.lent
    return runs and instance.recover and not instance.gang and instance.notice_s is None
