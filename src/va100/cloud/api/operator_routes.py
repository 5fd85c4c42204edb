"""Routes of operators: nodes, tenants, promises, prices, payments, the fleet, the audit log."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from va100.cloud.api.access import ActorOf, SiteOf
from va100.cloud.api.schemas import (
    NodeState,
    NodeWish,
    Payment,
    PriceWish,
    Promise,
    Room,
    Seconds,
    TenantChange,
)
from va100.cloud.defragment import Move
from va100.cloud.ledger import CardAccount, Kind
from va100.cloud.records import AuditRecord, HomeRecord, NodeRecord, TenantRecord
from va100.cloud.service.moving import MovePlan
from va100.cloud.service.operators import CardView
from va100.errors import BadRequest

ROUTER = APIRouter(prefix="/operator", tags=["operators"])
Name = Annotated[str, Path(max_length=64)]


@ROUTER.post("/nodes", status_code=204)
def add_node(body: NodeWish, actor: ActorOf, site: SiteOf) -> None:
    """Let a machine take instances."""
    site.operators.add_node(actor, NodeRecord(**body.model_dump()))


@ROUTER.put("/nodes/{name}", status_code=204)
def set_node(name: Name, body: NodeState, actor: ActorOf, site: SiteOf) -> None:
    """Make a node ready, drain it, or say that it is down."""
    site.operators.set_node(actor, name, body.state)


@ROUTER.delete("/nodes/{name}", status_code=204)
def remove_node(name: Name, actor: ActorOf, site: SiteOf) -> None:
    """Take a machine out."""
    site.operators.remove_node(actor, name)


@ROUTER.get("/tenants")
def tenants(actor: ActorOf, site: SiteOf) -> list[TenantRecord]:
    """All tenants with their limits."""
    return site.operators.tenants(actor)


@ROUTER.patch("/tenants/{name}")
def set_tenant(name: Name, body: TenantChange, actor: ActorOf, site: SiteOf) -> TenantRecord:
    """Change a tenant's limits."""
    return site.operators.set_tenant(actor, name, body.model_dump(exclude_none=True))


@ROUTER.put("/guarantees")
def guarantee(body: Promise, actor: ActorOf, site: SiteOf) -> list[HomeRecord]:
    """Promise a tenant instances of a shape; all promised places after it."""
    return site.operators.guarantee(actor, body.tenant, body.gpu, body.count)


@ROUTER.put("/prices", status_code=204)
def set_price(body: PriceWish, actor: ActorOf, site: SiteOf) -> None:
    """Give an item a price from a moment on."""
    site.billing.set_price(actor, body.item, body.micro_per_h, body.from_s)


@ROUTER.post("/payments", status_code=204)
def pay(body: Payment, actor: ActorOf, site: SiteOf) -> None:
    """Enter a payment, credit or refund."""
    actor.require("operator")
    kinds = {kind.value: kind for kind in (Kind.TOP_UP, Kind.CREDIT, Kind.REFUND)}
    if body.kind not in kinds:
        raise BadRequest(f"{body.kind!r} is none of {', '.join(kinds)}", field="kind")
    site.billing.pay(actor, body.tenant, kinds[body.kind], body.amount_micro, body.reference)


@ROUTER.get("/fleet")
def fleet(actor: ActorOf, site: SiteOf) -> list[CardView]:
    """Every card with what is on it."""
    return site.operators.fleet(actor)


@ROUTER.get("/figures")
def figures(actor: ActorOf, site: SiteOf) -> dict[str, Any]:
    """The site in numbers."""
    actor.require("operator")
    return site.operators.figures()


@ROUTER.get("/defragmentation")
def defragmentation(
    actor: ActorOf, site: SiteOf, gpu: Annotated[str, Query(max_length=80)]
) -> dict[str, Any]:
    """The fewest moves after which a shape has a place, and those under way."""
    return _plan_view(site.operators.defragment(actor, gpu))


@ROUTER.post("/defragmentation", status_code=202)
def make_room(body: Room, actor: ActorOf, site: SiteOf) -> dict[str, Any]:
    """Begin these moves, with notice; again, it begins nothing new."""
    plan = site.operators.make_room(actor, body.gpu)
    site.wake.set()
    return _plan_view(plan)


def _plan_view(plan: MovePlan) -> dict[str, Any]:
    return {
        "possible": plan.moves is not None,
        "moves": [_move_view(move) for move in plan.moves or ()],
        "under_way": [_move_view(move) for move in plan.under_way],
    }


def _move_view(move: Move) -> dict[str, str]:
    return {"instance": move.lease, "from": str(move.source), "to": str(move.target)}


@ROUTER.get("/cards/{node}/{gpu}/account")
def card_account(
    node: Name,
    gpu: Annotated[int, Path(ge=0, le=15)],
    actor: ActorOf,
    site: SiteOf,
    from_s: Annotated[Seconds, Query()] = 0,
    to_s: Annotated[Seconds | None, Query()] = None,
) -> CardAccount:
    """What a card's slices were charged, what was idle, and the card's price for the time."""
    until_s = site.context.now_s() if to_s is None else to_s
    if from_s >= until_s:
        raise BadRequest("the time must end after it begins", field="to_s")
    return site.operators.card_account(actor, node, gpu, from_s, until_s)


@ROUTER.get("/audit")
def audit(
    actor: ActorOf,
    site: SiteOf,
    tenant: Annotated[str, Query(max_length=64)] = "",
    before_s: Annotated[Seconds | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[AuditRecord]:
    """Who did what, latest first."""
    return site.operators.audit(actor, tenant=tenant, before_s=before_s, limit=limit)
