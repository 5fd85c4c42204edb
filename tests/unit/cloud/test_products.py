"""What can be rented, by the names that people give it."""

from __future__ import annotations

import pytest

from tests.unit.cloud.fleets import PCIE, SXM, card, mig
from va100.cloud.geometry import PROFILES
from va100.cloud.prices import PriceBook, default_prices
from va100.cloud.products import parse_shape, products
from va100.errors import BadRequest

BOTH = {SXM, PCIE}


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("sxm80", card()),
        ("a100-80g:1g.10gb", mig("1g.10gb")),
        ("A100-SXM4-80GB:4", card(4)),
        ("pcie80:1", card(model=PCIE)),
        ("a100-80g", card()),
        ("a100:1G.10GB", mig("1g.10gb")),
        (" sxm80 : 2 ", card(2)),
    ],
)
def test_names(text, shape):
    assert parse_shape(text, BOTH) == shape
    assert parse_shape(str(shape), BOTH) == shape, "what is printed can be typed"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sxm80:0.5", "take the slice sxm80:4g.40gb"),
        ("sxm80:.1", "take the slice sxm80:1g.10gb"),
        ("sxm80:9", "1 to 8 cards"),
        ("sxm80:0", "1 to 8 cards"),
        ("sxm80:1g.5gb", "it has 1g.10gb"),
        ("h100", "not offered here"),
        ("", "not offered here"),
        ("sxm40", "not offered here"),
    ],
)
def test_what_is_no_product(text, problem):
    with pytest.raises(BadRequest, match=problem):
        parse_shape(text, BOTH)


def test_a_site_without_gpus():
    with pytest.raises(BadRequest, match="no GPUs yet"):
        parse_shape("sxm80", set())


def test_every_card_and_slice_is_a_product_with_its_share_of_the_price():
    book = PriceBook(default_prices())
    found = {one.shape: one for one in products([SXM], book, 10, 400)}
    assert len(found) == 8 + len(PROFILES[SXM])
    whole = found[card()].per_h_micro
    for shape, one in found.items():
        assert one.per_h_micro == whole * shape.eighths // 8
        assert one.spot_per_h_micro == one.per_h_micro - one.per_h_micro * 400 // 1000
    assert found[mig("1g.10gb")].sm_count == 14
    assert found[card(8)].sm_count == 8 * 108
