"""Money: exact sums for any history, and entries that cannot be changed unseen."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cloud.fleets import SXM, ask, hgx, mig
from va100.cloud.fleet import Fleet
from va100.cloud.geometry import EIGHTHS
from va100.cloud.ledger import (
    Entry,
    Kind,
    Meter,
    balance_micro,
    card_account,
    charge_micro,
    discount_micro,
    entries_of,
    invoice,
    seal,
    spent_by_day,
)
from va100.cloud.models import Shape
from va100.cloud.policies import Policy
from va100.cloud.prices import DISK, MICRO, Price, PriceBook, card_item, default_prices, dollars
from va100.cloud.scheduler import decide

CENT = MICRO // 100
BOOK = PriceBook([Price(card_item(SXM), 0, 1_999_999), Price(card_item(SXM), 5_000, 2_345_671)])


def meter(name="m", eighths=1, from_s=0, to_s=None, **more):
    return Meter(name=name, tenant="ann", instance="i", item=card_item(SXM), eighths=eighths,
                 from_s=from_s, to_s=to_s, **more)  # fmt: skip


def test_an_hour_of_a_card_costs_its_price():
    book = PriceBook([Price(card_item(SXM), 0, 4 * MICRO)])
    assert charge_micro(meter(eighths=8), book, 0, 3600) == 4 * MICRO
    assert charge_micro(meter(eighths=1), book, 0, 3600) == MICRO // 2


def test_a_new_price_holds_from_its_date():
    book = PriceBook([Price(card_item(SXM), 0, 3600), Price(card_item(SXM), 100, 7200)])
    assert charge_micro(meter(eighths=8), book, 0, 200) == 100 + 200
    assert book.at(card_item(SXM), 99) == 3600
    assert book.at(card_item(SXM), 100) == 7200


@given(
    eighths=st.integers(1, 64),
    from_s=st.integers(0, 9_000),
    length=st.integers(0, 20_000),
    cuts=st.lists(st.integers(0, 30_000), max_size=12),
    off=st.integers(0, 1000),
)
def test_however_often_a_meter_is_read_it_costs_the_same(eighths, from_s, length, cuts, off):
    one = meter(eighths=eighths, from_s=from_s, to_s=from_s + length, discount_per_mille=off)
    edges = sorted({0, 40_000, *cuts})
    for cost in (charge_micro, discount_micro):
        parts = [cost(one, BOOK, a, b) for a, b in itertools.pairwise(edges)]
        assert sum(parts) == cost(one, BOOK, 0, 40_000)
        assert min(parts) >= 0
    assert discount_micro(one, BOOK, 0, 40_000) <= charge_micro(one, BOOK, 0, 40_000)


@given(st.data())
def test_slices_and_idle_add_up_to_the_card_for_any_history(data):
    """Launches, ends and resizes in any order: sum(slices) + idle = price x time to the cent."""
    fleet, now_s, meters = Fleet([hgx(gpus=1)]), 0, {}
    profiles = ["", "1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"]
    for count in range(data.draw(st.integers(0, 25))):
        now_s += data.draw(st.integers(0, 700))
        running = sorted(name for name, one in meters.items() if one.to_s is None)
        if running and data.draw(st.booleans()):
            name = data.draw(st.sampled_from(running))
            fleet.remove(name)
            meters[name] = replace(meters[name], to_s=now_s)
        profile = data.draw(st.sampled_from(profiles))
        request = ask(f"i{count}", shape=Shape(SXM, profile) if profile else Shape(SXM))
        for start in decide(fleet, [request], {}, Policy(patience_s=None), now_s).starts:
            for lease in start.leases:
                meters[lease.name] = meter(lease.name, lease.eighths, now_s)
    end_s = now_s + data.draw(st.integers(1, 5_000))
    account = card_account(SXM, list(meters.values()), BOOK, 0, end_s)
    price = sum(seconds * rate for seconds, rate in BOOK.pieces(card_item(SXM), 0, end_s)) // 3600
    assert account.full_micro == price
    assert account.idle_micro >= 0
    assert abs(account.charged_micro + account.idle_micro - price) < CENT
    assert 0 <= account.rounding_micro <= len(meters) + 1


def test_no_layout_costs_more_than_its_card():
    for profile, count in (("1g.10gb", 7), ("1g.20gb", 4), ("2g.20gb", 3), ("3g.40gb", 2)):
        assert mig(profile).eighths * count <= EIGHTHS


def test_entries_of_spot_tell_the_discount_apart():
    charge, discount = entries_of(meter(eighths=8, discount_per_mille=400), BOOK, 0, 3600)
    assert (charge.kind, discount.kind) == (Kind.GPU, Kind.DISCOUNT)
    assert discount.amount_micro == -charge.amount_micro * 400 // 1000
    assert entries_of(meter(from_s=100), BOOK, 0, 100) == ()


def entry(amount, at_s, kind=Kind.GPU, tenant="ann", **more):
    return Entry(tenant=tenant, kind=kind, amount_micro=amount, at_s=at_s, **more)


def test_an_invoice_carries_the_balance_over():
    entries = [
        entry(10 * MICRO, 5, Kind.TOP_UP),
        entry(-MICRO, 20, instance="a", from_s=10, to_s=20),
        entry(-MICRO, 30, instance="a", from_s=20, to_s=30),
        entry(5 * MICRO, 40, Kind.TOP_UP),
        entry(-7, 40, tenant="bob"),
    ]
    bill = invoice("ann", entries, 10, 50)
    assert (bill.opening_micro, bill.charged_micro, bill.paid_micro) == (
        10 * MICRO, -2 * MICRO, 5 * MICRO,
    )  # fmt: skip
    assert bill.closing_micro == balance_micro(e for e in entries if e.tenant == "ann")
    assert [(line.seconds_s, line.amount_micro) for line in bill.lines] == [(20, -2 * MICRO)]


def test_a_changed_line_breaks_the_chain():
    first, second = entry(1, 1), entry(2, 2)
    chain = seal(seal("", first), second)
    assert seal(seal("", replace(first, amount_micro=3)), second) != chain
    assert seal("", second) != chain


def test_days_are_summed():
    entries = [entry(-3, 86_399), entry(-4, 86_400), entry(9, 86_401, Kind.TOP_UP)]
    assert spent_by_day(entries) == {0: 3, 86_400: 4}


def test_amounts_are_spelled():
    assert dollars(1_230_000) == "$1.23"
    assert dollars(-1) == "-$0.000001"
    assert dollars(1_234_567_890_000) == "$1,234,567.89"


def test_every_card_and_disk_have_a_default_price():
    book = PriceBook(default_prices())
    assert all(book.at(item, 0) > 0 for item in book.items())
    assert DISK in book.items()
