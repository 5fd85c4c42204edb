"""Metering and money: what a meter costs, entries that are only ever added, invoices, idle cards.

A charge for part of a meter's time is the difference of two sums from its start, each rounded
down, so that however often a meter is read its charges add up to the same, to the micro-dollar.
Nothing here knows a database; :mod:`va100.cloud.store` keeps the entries.
"""

from __future__ import annotations

import enum
import hashlib
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from va100.cloud.geometry import EIGHTHS
from va100.cloud.prices import DENOMINATOR, PriceBook, card_item


class Kind(enum.Enum):
    """What an entry is for."""

    GPU = "gpu"
    DISK = "disk"
    DISCOUNT = "discount"
    TOP_UP = "top-up"
    CREDIT = "credit"
    REFUND = "refund"


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """A quantity of an item that a tenant had for a time."""

    name: str
    tenant: str
    instance: str
    item: str
    eighths: int
    """Of the item's unit: 8 for a card, 1 for a slice of one, 8 a gibibyte of disk."""
    kind: Kind = Kind.GPU
    from_s: int
    to_s: int | None = None
    """None: it still runs."""
    discount_per_mille: int = 0
    """Of the price, taken off in an entry of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the ledger; charges are negative, payments positive."""

    tenant: str
    kind: Kind
    amount_micro: int
    at_s: int
    meter: str = ""
    instance: str = ""
    item: str = ""
    eighths: int = 0
    from_s: int = 0
    to_s: int = 0
    text: str = ""


def charge_micro(meter: Meter, book: PriceBook, from_s: int, to_s: int) -> int:
    """What a part of a meter's time costs at list price."""
    start = max(meter.from_s, from_s)
    end = to_s if meter.to_s is None else min(meter.to_s, to_s)
    if end <= start:
        return 0
    until = book.numerator(meter.item, meter.eighths, meter.from_s, end) // DENOMINATOR
    before = book.numerator(meter.item, meter.eighths, meter.from_s, start) // DENOMINATOR
    return until - before


def discount_micro(meter: Meter, book: PriceBook, from_s: int, to_s: int) -> int:
    """What is taken off for a part of a meter's time."""

    def off(until_s: int) -> int:
        full = charge_micro(meter, book, meter.from_s, until_s)
        return full * meter.discount_per_mille // 1000

    start = max(meter.from_s, from_s)
    end = to_s if meter.to_s is None else min(meter.to_s, to_s)
    return off(end) - off(start) if end > start else 0


def entries_of(meter: Meter, book: PriceBook, from_s: int, to_s: int) -> tuple[Entry, ...]:
    """Entries for a part of a meter's time: the charge, and the discount if there is one."""
    start = max(meter.from_s, from_s)
    end = to_s if meter.to_s is None else min(meter.to_s, to_s)
    if end <= start:
        return ()
    amounts = [
        (meter.kind, -charge_micro(meter, book, start, end)),
        (Kind.DISCOUNT, discount_micro(meter, book, start, end)),
    ]
    return tuple(
        Entry(
            tenant=meter.tenant,
            kind=kind,
            amount_micro=amount,
            at_s=end,
            meter=meter.name,
            instance=meter.instance,
            item=meter.item,
            eighths=meter.eighths,
            from_s=start,
            to_s=end,
        )
        for kind, amount in amounts
        if kind is not Kind.DISCOUNT or meter.discount_per_mille
    )


def balance_micro(entries: Iterable[Entry]) -> int:
    """What a tenant has left; negative: it owes."""
    return sum(entry.amount_micro for entry in entries)


def seal(previous: str, entry: Entry) -> str:
    """Chain an entry to the one before it, so that a changed or missing line shows."""
    fields = (
        previous,
        entry.tenant,
        entry.kind.value,
        entry.amount_micro,
        entry.at_s,
        entry.meter,
        entry.instance,
        entry.item,
        entry.eighths,
        entry.from_s,
        entry.to_s,
        entry.text,
    )
    return hashlib.sha256("\x1f".join(str(field) for field in fields).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of an invoice: all of an instance's entries of a kind and item."""

    instance: str
    kind: Kind
    item: str
    eighths: int
    seconds_s: int
    amount_micro: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoice:
    """A tenant's charges in a period; what was paid is told apart."""

    tenant: str
    from_s: int
    to_s: int
    lines: tuple[Line, ...]
    charged_micro: int
    paid_micro: int
    opening_micro: int
    closing_micro: int


def invoice(tenant: str, entries: Sequence[Entry], from_s: int, to_s: int) -> Invoice:
    """Sum up a tenant's entries whose time ends in a period."""
    own = [entry for entry in entries if entry.tenant == tenant and entry.at_s <= to_s]
    before = [entry for entry in own if entry.at_s <= from_s]
    within = [entry for entry in own if entry.at_s > from_s]
    sums: dict[tuple[str, Kind, str, int], list[int]] = defaultdict(lambda: [0, 0])
    paid = 0
    for entry in within:
        if entry.kind in _PAYMENTS:
            paid += entry.amount_micro
            continue
        found = sums[entry.instance, entry.kind, entry.item, entry.eighths]
        found[0] += entry.to_s - entry.from_s
        found[1] += entry.amount_micro
    lines = tuple(
        Line(
            instance=instance,
            kind=kind,
            item=item,
            eighths=eighths,
            seconds_s=seconds,
            amount_micro=amount,
        )
        for (instance, kind, item, eighths), (seconds, amount) in sorted(
            sums.items(), key=lambda entry: (entry[0][0], entry[0][1].value, entry[0][2:])
        )
    )
    opening = balance_micro(before)
    charged = sum(line.amount_micro for line in lines)
    return Invoice(
        tenant=tenant,
        from_s=from_s,
        to_s=to_s,
        lines=lines,
        charged_micro=charged,
        paid_micro=paid,
        opening_micro=opening,
        closing_micro=opening + charged + paid,
    )


_PAYMENTS = frozenset({Kind.TOP_UP, Kind.CREDIT, Kind.REFUND})


@dataclass(frozen=True, slots=True, kw_only=True)
class CardAccount:
    """What one card earned in a time and what it could have: they differ by its idle eighths."""

    full_micro: int
    """The card's price times the time."""
    charged_micro: int
    """Charges at list price, before discounts."""
    idle_micro: int
    """Eighths that nobody had."""
    rounding_micro: int
    """What rounding down charges left over: full - charged - idle."""


def card_account(
    model: str, meters: Sequence[Meter], book: PriceBook, from_s: int, to_s: int
) -> CardAccount:
    """Account for one card: its meters' charges and its idle eighths, each found by itself.

    Parameters
    ----------
    meters : sequence of Meter
        With the eighths that they have of this card.
    """
    item = card_item(model)
    changes: dict[int, int] = defaultdict(int)
    for meter in meters:
        start = max(meter.from_s, from_s)
        end = min(to_s, to_s if meter.to_s is None else meter.to_s)
        if end > start:
            changes[start] += meter.eighths
            changes[end] -= meter.eighths
    edges = sorted({from_s, to_s, *changes})
    held = idle = 0
    for start, end in itertools.pairwise(edges):
        held += changes[start]
        idle += book.numerator(item, EIGHTHS - held, start, end)
    full = book.numerator(item, EIGHTHS, from_s, to_s) // DENOMINATOR
    charged = sum(charge_micro(meter, book, from_s, to_s) for meter in meters)
    return CardAccount(
        full_micro=full,
        charged_micro=charged,
        idle_micro=idle // DENOMINATOR,
        rounding_micro=full - charged - idle // DENOMINATOR,
    )


def spent_by_day(entries: Iterable[Entry]) -> Mapping[int, int]:
    """Micro-dollars charged on each day, by the day's first second; discounts taken off."""
    days: dict[int, int] = defaultdict(int)
    for entry in entries:
        if entry.kind not in _PAYMENTS:
            days[entry.at_s // 86_400 * 86_400] -= entry.amount_micro
    return dict(sorted(days.items()))
