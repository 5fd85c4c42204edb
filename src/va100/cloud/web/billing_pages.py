"""Pages of money: balance, what each day cost, lines, top-ups."""

from __future__ import annotations

import datetime
import math
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from va100.cloud.api.access import site_of
from va100.cloud.charts import bar_chart
from va100.cloud.prices import MICRO, dollars
from va100.cloud.web.render import PageRoute, Visitor, go, page
from va100.errors import BadRequest, Va100Error

ROUTER = APIRouter(route_class=PageRoute)
_DAYS = 30


@ROUTER.get("/billing")
def billing(request: Request) -> Response:
    """The tenant's money."""
    return _billing(request, Visitor(request))


def _billing(request: Request, visitor: Visitor, *, problem: str = "") -> Response:
    site = site_of(request)
    now_s = site.context.now_s()
    begin_s = (now_s // 86_400 - _DAYS + 1) * 86_400
    days = site.billing.by_day(visitor.actor, begin_s)
    bars = []
    for day_s in range(begin_s, now_s + 1, 86_400):
        day = datetime.datetime.fromtimestamp(day_s, datetime.UTC).strftime("%m-%d")
        spent = days.get(day_s, 0)
        bars.append((day, spent / MICRO, dollars(spent)))
    bill = site.billing.invoice(visitor.actor, begin_s, now_s + 1)
    names = {one.id: one.name for one in site.instances.of_tenant(visitor.actor, limit=1000,
                                                                  deleted=True)}  # fmt: skip
    return page(
        request, "billing.html", visitor=visitor, problem=problem, bill=bill, names=names,
        chart=bar_chart("What each of the last 30 days cost, in dollars", bars),
        usage=site.billing.usage(visitor.actor, begin_s, now_s),
        may_pay=site.context.options.self_top_up and "billing:write" in visitor.actor.scopes,
        once=site.context.token(8),
    )  # fmt: skip


@ROUTER.post("/billing/top-up")
def top_up(
    request: Request,
    csrf: Annotated[str, Form(max_length=128)],
    amount: Annotated[str, Form(max_length=20)],
    once: Annotated[str, Form(max_length=40)] = "",
) -> Response:
    """Pay in."""
    visitor = Visitor(request)
    visitor.require_token(csrf)
    try:
        site_of(request).billing.top_up(visitor.actor, _micro(amount), once)
    except Va100Error as error:
        return _billing(request, visitor, problem=str(error))
    return go("/billing")


def _micro(text: str) -> int:
    try:
        value = float(text)
    except ValueError as error:
        raise BadRequest(f"{text!r} is no amount", field="amount") from error
    if not math.isfinite(value) or abs(value) > 1e9:
        raise BadRequest(f"{text!r} is no amount", field="amount")
    return round(value * MICRO)
