"""Routes of money: balance, payments, entries, invoices, usage, prices."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query

from va100.cloud.api.access import ActorOf, Anyone, SiteOf
from va100.cloud.api.schemas import (
    BalanceView,
    EntryPage,
    EntryView,
    InvoiceView,
    LineView,
    PriceWish,
    Seconds,
    TopUp,
    UsageView,
)
from va100.cloud.records import PriceRecord
from va100.errors import BadRequest

ROUTER = APIRouter(tags=["billing"])


@ROUTER.get("/balance")
def balance(actor: ActorOf, site: SiteOf) -> BalanceView:
    """What the tenant has left, up to this second."""
    return BalanceView(balance_micro=site.billing.balance(actor))


@ROUTER.post("/top-ups", status_code=201)
def top_up(
    body: TopUp,
    actor: ActorOf,
    site: SiteOf,
    idempotency_key: Annotated[str, Header(max_length=100)] = "",
) -> BalanceView:
    """Pay in; a reference or idempotency key pays once."""
    reference = body.reference or idempotency_key
    left = site.billing.top_up(actor, body.amount_micro, reference)
    return BalanceView(balance_micro=left)


@ROUTER.get("/entries")
def entries(
    actor: ActorOf,
    site: SiteOf,
    after: Annotated[int, Query(ge=0, le=2**60)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> EntryPage:
    """Lines of the tenant's ledger, oldest first."""
    found = site.billing.entries(actor, after=after, limit=limit + 1)
    items = [
        EntryView(**{name: getattr(one, name) for name in EntryView.model_fields})
        for one in found[:limit]
    ]
    return EntryPage(items=items, next=items[-1].number if len(found) > limit else None)


@ROUTER.get("/invoice")
def invoice(
    actor: ActorOf,
    site: SiteOf,
    from_s: Annotated[Seconds, Query()] = 0,
    to_s: Annotated[Seconds | None, Query()] = None,
) -> InvoiceView:
    """The tenant's charges and payments of a time; until now, unless told otherwise."""
    until_s = site.context.now_s() + 1 if to_s is None else to_s
    bill = site.billing.invoice(actor, from_s, until_s)
    return InvoiceView(
        from_s=bill.from_s,
        to_s=bill.to_s,
        opening_micro=bill.opening_micro,
        charged_micro=bill.charged_micro,
        paid_micro=bill.paid_micro,
        closing_micro=bill.closing_micro,
        lines=[
            LineView(
                instance=line.instance,
                kind=line.kind.value,
                item=line.item,
                eighths=line.eighths,
                seconds_s=line.seconds_s,
                amount_micro=line.amount_micro,
            )
            for line in bill.lines
        ],
    )


@ROUTER.get("/usage")
def usage(
    actor: ActorOf,
    site: SiteOf,
    from_s: Annotated[Seconds, Query()] = 0,
    to_s: Annotated[Seconds | None, Query()] = None,
) -> list[UsageView]:
    """What each instance had in a time, and how long its GPU was at work."""
    until_s = site.context.now_s() if to_s is None else to_s
    if from_s > until_s:
        raise BadRequest("the time must end after it begins", field="to_s")
    return [
        UsageView(**{name: getattr(one, name) for name in UsageView.model_fields})
        for one in site.billing.usage(actor, from_s, until_s)
    ]


@ROUTER.get("/prices")
def prices(site: SiteOf, address: Anyone) -> list[PriceWish]:
    """All prices, past and to come."""
    del address
    with site.context.database.work() as work:
        found = work.all(PriceRecord, order=("item", "from_s"))
    return [
        PriceWish(item=one.item, micro_per_h=one.micro_per_h, from_s=one.from_s) for one in found
    ]
