"""Money: entries, meters, balances, invoices, usage; what is charged is the ledger's matter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from va100.cloud import ledger
from va100.cloud.geometry import EIGHTHS
from va100.cloud.ledger import Entry, Invoice, Kind, Meter
from va100.cloud.models import Shape
from va100.cloud.prices import DISK, MICRO, Price, PriceBook, card_item, dollars
from va100.cloud.records import (
    EntryRecord,
    InstanceRecord,
    MeterRecord,
    PriceRecord,
    SampleRecord,
    TenantRecord,
)
from va100.cloud.service.context import Actor, Context, record_audit
from va100.cloud.store.database import Work
from va100.errors import BadRequest, NotFound, NotPermitted, PaymentRequired

MOST_TOP_UP: Final = 10_000 * MICRO


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What an instance had, and how much of it its GPU was at work: two different figures."""

    instance: str
    name: str
    item: str
    eighths: int
    allocated_s: int
    busy_s: float
    charged_micro: int
    discount_micro: int


class Billing:
    """Operations on money."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def balance(self, actor: Actor) -> int:
        """What the tenant has left, up to this second, in micro-dollars."""
        actor.require("billing:read")
        now_s = self.context.now_s()
        with self.context.database.work() as work:
            return balance_micro(work, actor.tenant) - self._unposted(work, actor.tenant, now_s)

    def _unposted(self, work: Work, tenant: str, now_s: int) -> int:
        book = price_book(work)
        return -sum(
            entry.amount_micro
            for record in work.all(MeterRecord, tenant=tenant, to_s=None)
            for entry in ledger.entries_of(meter_of(record), book, record.through_s, now_s)
        )

    def top_up(self, actor: Actor, amount_micro: int, reference: str) -> int:
        """Pay in; the balance after it.  A reference pays once, however often it is sent."""
        actor.require("billing:write")
        if not (self.context.options.self_top_up or actor.operator):
            raise NotPermitted("on this site an operator tops up")
        if not 0 < amount_micro <= MOST_TOP_UP:
            raise BadRequest(f"above $0 and at most {dollars(MOST_TOP_UP)}", field="amount")
        self.pay(actor, actor.tenant, Kind.TOP_UP, amount_micro, reference)
        return self.balance(actor)

    def pay(self, actor: Actor, tenant: str, kind: Kind, amount_micro: int, reference: str) -> None:
        """Enter a payment, credit or refund; a reference counts once a tenant."""
        name = reference or self.context.token(10)
        entry = Entry(
            tenant=tenant,
            kind=kind,
            amount_micro=amount_micro,
            at_s=self.context.now_s(),
            meter=f"{kind.value}:{tenant}:{name}"[:200],
            text=reference[:100],
        )
        with self.context.database.work() as work:
            if not work.count(TenantRecord, id=tenant):
                raise NotFound("tenant", tenant)
            if work.count(EntryRecord, meter=entry.meter):
                return
            post(work, [entry])
            detail = f"{kind.value} {amount_micro}"
            record_audit(self.context, work, actor, "pay", tenant, detail)

    def entries(self, actor: Actor, *, after: int = 0, limit: int = 100) -> list[EntryRecord]:
        """Lines of the tenant's ledger, oldest first, after a line's number."""
        actor.require("billing:read")
        with self.context.database.work() as work:
            return work.all(
                EntryRecord,
                tenant=actor.tenant,
                number__gt=after,
                order=("number",),
                limit=limit,
            )

    def invoice(self, actor: Actor, from_s: int, to_s: int) -> Invoice:
        """The tenant's charges of a time, up to this second."""
        actor.require("billing:read")
        if from_s >= to_s:
            raise BadRequest("the time must end after it begins", field="to_s")
        self.post_meters(tenant=actor.tenant)
        with self.context.database.work() as work:
            lines = work.all(EntryRecord, tenant=actor.tenant, at_s__le=to_s, order=("number",))
        return ledger.invoice(actor.tenant, [entry_of(line) for line in lines], from_s, to_s)

    def by_day(self, actor: Actor, from_s: int) -> dict[int, int]:
        """Micro-dollars of each day, by its first second."""
        actor.require("billing:read")
        self.post_meters(tenant=actor.tenant)
        with self.context.database.work() as work:
            lines = work.all(EntryRecord, tenant=actor.tenant, at_s__ge=from_s)
        return dict(ledger.spent_by_day(entry_of(line) for line in lines))

    def usage(self, actor: Actor, from_s: int, to_s: int) -> list[Usage]:
        """What each instance had in a time, and what of it its GPU was at work."""
        actor.require("billing:read")
        with self.context.database.work() as work:
            book = price_book(work)
            names = {i.id: i.name for i in work.all(InstanceRecord, tenant=actor.tenant)}
            found = []
            for record in work.all(MeterRecord, tenant=actor.tenant, from_s__lt=to_s):
                if record.to_s is not None and record.to_s <= from_s:
                    continue
                meter = meter_of(record)
                start = max(from_s, record.from_s)
                end = min(to_s, record.to_s or to_s, self.context.now_s())
                samples = work.all(
                    SampleRecord, instance=record.instance, at_s__gt=start, at_s__le=end
                )
                ratio = sum(s.busy_ratio for s in samples) / len(samples) if samples else 0.0
                found.append(
                    Usage(
                        instance=record.instance,
                        name=names.get(record.instance, record.instance),
                        item=record.item,
                        eighths=record.eighths,
                        allocated_s=max(0, end - start),
                        busy_s=ratio * max(0, end - start) if record.item != DISK else 0.0,
                        charged_micro=ledger.charge_micro(meter, book, start, end),
                        discount_micro=ledger.discount_micro(meter, book, start, end),
                    )
                )
        return found

    # ------------------------------------------------------------ for the site

    def post_meters(self, *, tenant: str = "", every_s: int = 0) -> int:
        """Enter what running meters have cost since they were last read; how many lines."""
        now_s = self.context.now_s()
        conditions: dict[str, Any] = {"tenant": tenant} if tenant else {}
        with self.context.database.work() as work:
            book = price_book(work)
            entries: list[Entry] = []
            for record in work.all(
                MeterRecord, to_s=None, through_s__le=now_s - max(1, every_s), **conditions
            ):
                entries += ledger.entries_of(meter_of(record), book, record.through_s, now_s)
                work.change(MeterRecord, {"through_s": now_s}, id=record.id)
            post(work, entries)
        return len(entries)

    def set_price(self, actor: Actor, item: str, micro_per_h: int, from_s: int | None) -> None:
        """Give an item a price from a moment on, which must not have passed."""
        actor.require("operator")
        now_s = self.context.now_s()
        if from_s is not None and from_s < now_s:
            raise BadRequest("a price cannot hold from a time that has passed", field="from_s")
        if micro_per_h < 0:
            raise BadRequest("0 or more", field="micro_per_h")
        begins_s = now_s + 1 if from_s is None else from_s
        with self.context.database.work() as work:
            if item not in {price.item for price in work.all(PriceRecord)}:
                raise NotFound("item", item)
            work.remove(PriceRecord, item=item, from_s=begins_s)
            work.add(PriceRecord(item=item, from_s=begins_s, micro_per_h=micro_per_h))
            record_audit(self.context, work, actor, "set-price", item, str(micro_per_h))


def price_book(work: Work) -> PriceBook:
    """The site's prices."""
    return PriceBook(
        Price(price.item, price.from_s, price.micro_per_h) for price in work.all(PriceRecord)
    )


def balance_micro(work: Work, tenant: str) -> int:
    """Sum of a tenant's ledger."""
    return work.total(EntryRecord, "amount_micro", tenant=tenant)


def post(work: Work, entries: Iterable[Entry]) -> None:
    """Add lines to the ledger, each sealed to the one before it."""
    entries = list(entries)
    if not entries:
        return
    work.serialise("ledger")
    number = work.highest(EntryRecord, "number")
    last = work.get(EntryRecord, number=number)
    seal = last.seal if last else ""
    for entry in entries:
        number += 1
        seal = ledger.seal(seal, entry)
        work.add(
            EntryRecord(
                number=number,
                tenant=entry.tenant,
                kind=entry.kind.value,
                amount_micro=entry.amount_micro,
                at_s=entry.at_s,
                meter=entry.meter,
                instance=entry.instance,
                item=entry.item,
                eighths=entry.eighths,
                from_s=entry.from_s,
                to_s=entry.to_s,
                text=entry.text,
                seal=seal,
            )
        )


def broken_seal(records: Sequence[EntryRecord]) -> int | None:
    """Number of the first line that was changed or follows a gap; none if all are as written."""
    seal = ""
    for place, record in enumerate(records, 1):
        seal = ledger.seal(seal, entry_of(record))
        if record.seal != seal or record.number != place:
            return record.number
    return None


def open_meter(context: Context, work: Work, instance: InstanceRecord, shape: Shape) -> None:
    """Begin to charge for an instance's place."""
    off = context.options.spot_discount_per_mille if instance.tier == 0 else 0
    _open(context, work, instance, card_item(shape.model), shape.eighths, Kind.GPU, off)


def open_disk_meter(context: Context, work: Work, instance: InstanceRecord) -> None:
    """Begin to charge for an instance's disk, once."""
    if not work.count(MeterRecord, instance=instance.id, kind=Kind.DISK.value, to_s=None):
        _open(context, work, instance, DISK, instance.disk_gib * EIGHTHS, Kind.DISK, 0)


def _open(  # noqa: PLR0913, PLR0917 -- a meter's facts
    context: Context,
    work: Work,
    instance: InstanceRecord,
    item: str,
    eighths: int,
    kind: Kind,
    off: int,
) -> None:
    now_s = context.now_s()
    work.add(
        MeterRecord(
            id=f"m-{context.token(8)}",
            tenant=instance.tenant,
            instance=instance.id,
            item=item,
            eighths=eighths,
            kind=kind.value,
            from_s=now_s,
            through_s=now_s,
            discount_per_mille=off,
            node=instance.node if kind is Kind.GPU else "",
            gpus=list(instance.gpus) if kind is Kind.GPU else [],
        )
    )


def close_meters(context: Context, work: Work, instance: str, *kinds: Kind) -> None:
    """End charges for an instance and enter what they came to."""
    now_s = context.now_s()
    book = price_book(work)
    for record in work.all(
        MeterRecord, instance=instance, to_s=None, kind__in=[kind.value for kind in kinds]
    ):
        closed = {"to_s": now_s, "through_s": now_s}
        if work.change(MeterRecord, closed, id=record.id, to_s=None):
            post(work, ledger.entries_of(meter_of(record), book, record.through_s, now_s))


def require_money(context: Context, work: Work, tenant: TenantRecord, per_h_micro: int) -> None:
    """Refuse an instance that the tenant could not pay for ten minutes.

    Raises
    ------
    PaymentRequired
    """
    left = balance_micro(work, tenant.id) + tenant.credit_limit_micro
    running = sum(
        ledger.charge_micro(meter_of(record), price_book(work), record.through_s, context.now_s())
        for record in work.all(MeterRecord, tenant=tenant.id, to_s=None)
    )
    needed = per_h_micro // 6
    if left - running < needed:
        raise PaymentRequired(needed_micro=needed, left_micro=left - running)


def meter_of(record: MeterRecord) -> Meter:
    """The ledger's meter of a record."""
    return Meter(
        name=record.id,
        tenant=record.tenant,
        instance=record.instance,
        item=record.item,
        eighths=record.eighths,
        kind=Kind(record.kind),
        from_s=record.from_s,
        to_s=record.to_s,
        discount_per_mille=record.discount_per_mille,
    )


def entry_of(record: EntryRecord) -> Entry:
    """The ledger's entry of a record."""
    return Entry(
        tenant=record.tenant,
        kind=Kind(record.kind),
        amount_micro=record.amount_micro,
        at_s=record.at_s,
        meter=record.meter,
        instance=record.instance,
        item=record.item,
        eighths=record.eighths,
        from_s=record.from_s,
        to_s=record.to_s,
        text=record.text,
    )
