"""Pages of operators: the fleet's map, figures, tenants, promises, nodes, the audit log."""

from __future__ import annotations

import urllib.parse
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from va100.cloud.api.access import site_of
from va100.cloud.web.render import PageRoute, Visitor, go, page
from va100.errors import BadRequest, Va100Error

ROUTER = APIRouter(route_class=PageRoute, prefix="/operator")
Field = Annotated[str, Form(max_length=200)]
Token = Annotated[str, Form(max_length=128)]


@ROUTER.get("")
def fleet(request: Request, room: Annotated[str, Query(max_length=80)] = "") -> Response:
    """The fleet, and what would have to move for a shape."""
    return _fleet(request, Visitor(request), room=room)


def _fleet(request: Request, visitor: Visitor, *, problem: str = "", room: str = "") -> Response:
    site = site_of(request)
    plan = None
    try:
        plan = site.operators.defragment(visitor.actor, room) if room else None
    except BadRequest as error:
        problem = str(error)
    cards = site.operators.fleet(visitor.actor)
    nodes: dict[str, list[Any]] = {}
    for card in cards:
        nodes.setdefault(card.node, []).append(card)
    tenants = site.operators.tenants(visitor.actor)
    return page(
        request, "fleet.html", visitor=visitor, problem=problem, nodes=nodes, room=room, plan=plan,
        called={part.key: part.instance for card in cards for part in card.parts},
        figures=site.operators.figures(), tenants=tenants,
        names={tenant.id: tenant.name for tenant in tenants},
        isolation={name: one.isolation() for name, one in site.drivers.items()},
    )  # fmt: skip


@ROUTER.get("/audit")
def audit(request: Request) -> Response:
    """Who did what."""
    visitor = Visitor(request)
    found = site_of(request).operators.audit(visitor.actor, limit=300)
    return page(request, "audit.html", visitor=visitor, entries=found)


@ROUTER.post("/nodes/{name}")
def set_node(request: Request, name: str, csrf: Token, state: Field) -> Response:
    """Make a node ready, or drain it."""
    visitor = Visitor(request)
    visitor.require_token(csrf)
    site_of(request).operators.set_node(visitor.actor, name, state)
    return go("/operator")


@ROUTER.post("/room")
def make_room(request: Request, csrf: Token, gpu: Field) -> Response:
    """Begin the moves after which a shape has a place."""
    visitor = Visitor(request)
    visitor.require_token(csrf)
    try:
        site_of(request).operators.make_room(visitor.actor, gpu)
    except Va100Error as error:
        return _fleet(request, visitor, problem=str(error))
    site_of(request).wake.set()
    return go(f"/operator?room={urllib.parse.quote(gpu)}#room")


@ROUTER.post("/guarantees")
def guarantee(
    request: Request,
    csrf: Token,
    tenant: Field,
    gpu: Field,
    count: Annotated[int, Form(ge=0, le=10_000)],
) -> Response:
    """Promise a tenant instances of a shape."""
    visitor = Visitor(request)
    visitor.require_token(csrf)
    try:
        site_of(request).operators.guarantee(visitor.actor, tenant, gpu, count)
    except Va100Error as error:
        return _fleet(request, visitor, problem=str(error))
    return go("/operator")


@ROUTER.post("/tenants/{name}")
def set_tenant(
    request: Request,
    name: str,
    csrf: Token,
    limit_eighths: Annotated[int, Form(ge=0, le=1 << 20)],
    trusted: Field = "",
    suspended: Field = "",
) -> Response:
    """Change a tenant's limits."""
    visitor = Visitor(request)
    visitor.require_token(csrf)
    values = {
        "limit_eighths": limit_eighths, "trusted": bool(trusted), "suspended": bool(suspended),
    }  # fmt: skip
    site_of(request).operators.set_tenant(visitor.actor, name, values)
    return go("/operator")
