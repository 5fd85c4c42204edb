"""What operators do: nodes, promises, tenants' limits, payments, the fleet's map, the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from va100.cloud import ledger
from va100.cloud.defragment import fragmentation, stranded_eighths
from va100.cloud.fleet import Fleet
from va100.cloud.geometry import CHIPS, EIGHTHS
from va100.cloud.guarantees import lay_out
from va100.cloud.ledger import CardAccount
from va100.cloud.models import Shape
from va100.cloud.products import parse_shape
from va100.cloud.records import (
    ALIVE,
    AuditRecord,
    ClaimRecord,
    GuaranteeRecord,
    HomeRecord,
    InstanceRecord,
    MeterRecord,
    NodeRecord,
    State,
    TenantRecord,
)
from va100.cloud.service import snapshot
from va100.cloud.service.billing import meter_of, price_book
from va100.cloud.service.context import Actor, Context, record_audit
from va100.cloud.service.moving import MovePlan, carry_out, plan_moves
from va100.cloud.store.database import Work
from va100.errors import BadRequest, Conflict, NoPlacement, NotFound

_LIMITS: Final[Mapping[str, tuple[int, int]]] = {
    "limit_eighths": (0, 1 << 20),
    "most_instances": (0, 1 << 20),
    "most_disk_gib": (0, 1 << 20),
    "weight": (1, 1000),
    "credit_limit_micro": (0, 10**15),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Memory slices of a card that an instance has, or nobody."""

    start: int
    width: int
    instance: str
    key: str
    """Its identifier; names are a tenant's own."""
    tenant: str
    profile: str
    tier: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CardView:
    """One card as the fleet map draws it."""

    node: str
    gpu: int
    model: str
    state: str
    parts: tuple[Part, ...]
    promised: tuple[str, ...]


class Operators:
    """Operations on the site."""

    def __init__(self, context: Context) -> None:
        self.context = context

    # ------------------------------------------------------------ nodes

    def add_node(self, actor: Actor, node: NodeRecord) -> None:
        """Let a machine take instances."""
        actor.require("operator")
        if node.model not in CHIPS:
            raise BadRequest(f"{node.model!r} is none of {', '.join(CHIPS)}", field="model")
        if not 1 <= node.gpu_count <= 16:
            raise BadRequest("1 to 16 cards", field="gpu_count")
        members = [gpu for island in node.islands for gpu in island]
        if len(members) != len(set(members)) or not set(members) <= set(range(node.gpu_count)):
            raise BadRequest("each card of the node in at most one", field="islands")
        with self.context.database.work() as work:
            work.add(node)
            record_audit(self.context, work, actor, "add-node", node.name, node.model)

    def set_node(self, actor: Actor, name: str, state: str) -> None:
        """Make a node ready, drain it, or say that it is down."""
        actor.require("operator")
        if state not in ("ready", "draining", "down"):
            raise BadRequest(f"{state!r} is none of ready, draining, down", field="state")
        with self.context.database.work() as work:
            if not work.change(NodeRecord, {"state": state}, name=name):
                raise NotFound("node", name)
            record_audit(self.context, work, actor, "set-node", name, state)

    def remove_node(self, actor: Actor, name: str) -> None:
        """Take a machine out; nothing may be on it, and nothing promised."""
        actor.require("operator")
        with self.context.database.work() as work:
            if work.count(InstanceRecord, node=name, state__in=list(ALIVE)):
                raise Conflict(f"{name} has instances: drain it first")
            if work.count(HomeRecord, node=name):
                raise Conflict(f"{name} has promised places: change guarantees first")
            if not work.remove(NodeRecord, name=name):
                raise NotFound("node", name)
            record_audit(self.context, work, actor, "remove-node", name)

    # ------------------------------------------------------------ tenants

    def tenants(self, actor: Actor) -> list[TenantRecord]:
        """All tenants."""
        actor.require("operator")
        with self.context.database.work() as work:
            return work.all(TenantRecord, order=("name",))

    def set_tenant(self, actor: Actor, tenant: str, values: Mapping[str, Any]) -> TenantRecord:
        """Change a tenant's limits, whether it is trusted, whether it is suspended."""
        actor.require("operator")
        for name, value in values.items():
            if name in ("trusted", "suspended"):
                continue
            if name not in _LIMITS:
                raise BadRequest(f"no such limit; there are {', '.join(_LIMITS)}", field=name)
            least, most = _LIMITS[name]
            if not least <= value <= most:
                raise BadRequest(f"{least} to {most}", field=name)
        with self.context.database.work() as work:
            found = self._tenant(work, tenant)
            if values:
                work.change(TenantRecord, values, id=found.id)
            record_audit(self.context, work, actor, "set-tenant", found.id, str(dict(values)))
            return self._tenant(work, found.id)

    def _tenant(self, work: Work, name: str) -> TenantRecord:
        found = work.get(TenantRecord, id=name) or work.get(TenantRecord, name=name)
        if found is None:
            raise NotFound("tenant", name)
        return found

    def guarantee(self, actor: Actor, tenant: str, gpu: str, count: int) -> list[HomeRecord]:
        """Promise a tenant so many instances of a shape; all homes after it.

        Raises
        ------
        NoPlacement
            Not all promises could be kept; none has changed.
        """
        actor.require("operator")
        if count < 0:
            raise BadRequest("0 or more", field="count")
        with self.context.database.work() as work:
            work.serialise("fleet")
            found = self._tenant(work, tenant)
            site = snapshot.read(work)
            shape = parse_shape(gpu, {node.model for node in site.nodes})
            promises = {
                (g.tenant, Shape(g.model, g.profile, g.cards)): g.count
                for g in work.all(GuaranteeRecord)
            }
            promises[found.id, shape] = count
            promises = {key: number for key, number in promises.items() if number}
            homes = lay_out(site.nodes, site.leases, promises, site.homes)
            work.remove(GuaranteeRecord)
            work.remove(HomeRecord)
            work.remove(ClaimRecord)
            work.add(
                *(
                    GuaranteeRecord(
                        tenant=name, model=s.model, profile=s.profile, cards=s.cards, count=number
                    )
                    for (name, s), number in promises.items()
                )
            )
            made = [
                snapshot.home_record(home, f"h-{number:05}") for number, home in enumerate(homes)
            ]
            work.add(*made)
            record_audit(self.context, work, actor, "guarantee", found.id, f"{count} x {shape}")
        return made

    # ------------------------------------------------------------ the fleet

    def fleet(self, actor: Actor) -> list[CardView]:
        """Every card with what is on it."""
        actor.require("operator")
        with self.context.database.work() as work:
            site = snapshot.read(work)
            states = {i.id: i for i in work.all(InstanceRecord, state__in=list(ALIVE))}
            nodes = {node.name: node.state for node in work.all(NodeRecord)}
        fleet = Fleet(site.nodes, site.leases, site.homes, site.claims)
        return [
            CardView(
                node=card.node.name,
                gpu=card.gpu,
                model=card.node.model,
                state=nodes[card.node.name],
                parts=tuple(
                    Part(
                        start=lease.place.start,
                        width=lease.shape.fit.memory,
                        instance=states[lease.name].name,
                        key=lease.name,
                        tenant=lease.tenant,
                        profile=lease.shape.profile or "whole card",
                        tier=lease.tier.name.lower(),
                        state="lent" if lease.lent else states[lease.name].state,
                    )
                    for lease in sorted(card.leases.values(), key=lambda x: x.place.start)
                ),
                promised=tuple(f"{home.shape} for {home.tenant}" for home in card.homes),
            )
            for card in fleet.cards
        ]

    def figures(self) -> dict[str, Any]:
        """The site in numbers: cards, use, fragmentation, who waits, what an hour earns."""
        with self.context.database.work() as work:
            site = snapshot.read(work)
            book = price_book(work)
            meters = [meter_of(m) for m in work.all(MeterRecord, to_s=None)]
            states = {
                state: work.count(InstanceRecord, state=state)
                for state in (*sorted(ALIVE), State.STOPPED, State.EXITED, State.FAILED)
            }
        fleet = Fleet(site.nodes, site.leases, site.homes, site.claims)
        now_s = self.context.now_s()
        total = EIGHTHS * len(fleet.cards)
        used = sum(lease.eighths for lease in site.leases if not lease.lent)
        models = sorted(fleet.models())
        earned = sum(
            ledger.charge_micro(m, book, max(m.from_s, now_s - 3600), now_s) for m in meters
        )
        return {
            "cards": len(fleet.cards),
            "eighths_total": total,
            "eighths_used": used,
            "utilisation_ratio": used / total if total else 0.0,
            "fragmentation_ratio": {model: fragmentation(fleet, model) for model in models},
            "stranded_eighths": {model: stranded_eighths(fleet, model) for model in models},
            "waiting": len(site.requests),
            "instances": states,
            "last_hour_micro": earned,
            # What cards draw is not simulated here: from idle to the limit, by their use.
            "power_w": sum(
                50.0 + (CHIPS[c.node.model].power_default_w - 50.0) * _share(c.state[0])
                for c in fleet.cards
            ),
        }

    def defragment(self, actor: Actor, gpu: str) -> MovePlan:
        """The fewest moves after which a shape has a place."""
        actor.require("operator")
        with self.context.database.work() as work:
            return plan_moves(self.context, work, gpu)

    def make_room(self, actor: Actor, gpu: str) -> MovePlan:
        """Begin those moves, with notice; asked for again, it begins nothing new.

        Raises
        ------
        NoPlacement
            No moves of what may be moved help.
        """
        actor.require("operator")
        with self.context.database.work() as work:
            plan = carry_out(self.context, work, gpu)
            if plan.moves is None:
                raise NoPlacement(f"no moves of what may be moved make room for {plan.shape}")
            record_audit(self.context, work, actor, "make-room", "", str(plan.shape))
        return plan

    def card_account(
        self, actor: Actor, node: str, gpu: int, from_s: int, to_s: int
    ) -> CardAccount:
        """What a card's instances were charged, what was idle, and what it comes to."""
        actor.require("operator")
        with self.context.database.work() as work:
            found = work.get(NodeRecord, name=node)
            if found is None or not 0 <= gpu < found.gpu_count:
                raise NotFound("card", f"{node} GPU {gpu}")
            meters = [
                meter_of(m)
                for m in work.all(MeterRecord, node=node, from_s__lt=to_s)
                if gpu in m.gpus
            ]
            book = price_book(work)
        # A meter of several cards counts with its share of this one.
        own = [_share_of(meter) for meter in meters]
        return ledger.card_account(found.model, own, book, from_s, to_s)

    def audit(
        self, actor: Actor, *, tenant: str = "", before_s: int | None = None, limit: int = 100
    ) -> list[AuditRecord]:
        """Who did what, latest first; a tenant's own, or for operators anyone's."""
        if tenant != actor.tenant:
            actor.require("operator")
        else:
            actor.require("members:read")
        conditions: dict[str, Any] = {"tenant": tenant} if tenant else {}
        if before_s is not None:
            conditions["at_s__lt"] = before_s
        with self.context.database.work() as work:
            return work.all(AuditRecord, order=("-at_s", "-id"), limit=limit, **conditions)


def _share(state: int) -> float:
    return (state & 255).bit_count() / EIGHTHS


def _share_of(meter: ledger.Meter) -> ledger.Meter:
    if meter.eighths <= EIGHTHS:
        return meter
    return ledger.Meter(
        name=meter.name,
        tenant=meter.tenant,
        instance=meter.instance,
        item=meter.item,
        eighths=EIGHTHS,
        kind=meter.kind,
        from_s=meter.from_s,
        to_s=meter.to_s,
    )
