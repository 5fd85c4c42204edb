"""Money against sums made by hand, and the three public questions that a cost model must answer."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.errors import PlanError
from va100.plan.cost import (
    HOURS_PER_YEAR,
    ApiPrices,
    Owning,
    Renting,
    compare_offers,
    gpus_within_power,
    own_cost,
    own_usd_per_million,
    sensitivity,
)
from va100.plan.machine import find_machine
from va100.plan.prices import Price, listed_prices, price_of

OFFER = Price(usd_per_gpu_h=2.0, source="here", date="2026-01", market="on-demand")


class TestOwning:
    def test_a_year_adds_up(self):
        owning = Owning(
            capex_usd=12_000, life_years=4, resale_share=0.25, capital_rate=0.08, utilization=0.5,
            usd_per_kwh=0.10, pue=1.5, busy_w=400, idle_w=100, host_w=250,
            space_usd_per_kw_month=100, staff_usd_per_year=500, maintenance_share=0.05,
        )  # fmt: skip
        cost = own_cost(owning)
        kwh = (0.5 * 400 + 0.5 * 100 + 250) * HOURS_PER_YEAR / 1000
        assert cost.depreciation_usd == pytest.approx(9000 / 4)
        assert cost.capital_usd == pytest.approx(12_000 * 1.25 / 2 * 0.08)
        assert cost.energy_usd == pytest.approx(kwh * 0.10)
        assert cost.cooling_usd == pytest.approx(kwh * 0.05)
        assert cost.space_usd == pytest.approx(0.65 * 100 * 12)
        assert cost.kwh_per_year == pytest.approx(kwh * 1.5)
        parts = (2250, 600, kwh * 0.1, kwh * 0.05, 780, 500, 600)
        assert cost.year_usd == pytest.approx(sum(parts))
        assert cost.usd_per_used_h == pytest.approx(cost.usd_per_gpu_h * 2)

    @given(st.floats(0.05, 0.99))
    def test_more_use_makes_an_hour_of_work_cheaper(self, use):
        less, more = (own_cost(Owning(utilization=u)) for u in (use, use + 0.01))
        assert more.usd_per_used_h < less.usd_per_used_h
        assert more.energy_usd > less.energy_usd

    @pytest.mark.parametrize(
        "wrong", [{"pue": 0.9}, {"utilization": 1.2}, {"capex_usd": -1}, {"life_years": 0}]
    )
    def test_refuses_what_no_owner_has(self, wrong):
        with pytest.raises(PlanError):
            own_cost(Owning(**wrong))

    def test_sensitivity_is_strongest_first_and_encloses(self):
        owning = Owning()
        base = own_cost(owning).usd_per_used_h
        found = sensitivity(owning)
        swings = [abs(high - low) for low, high in found.values()]
        assert swings == sorted(swings, reverse=True)
        assert all(min(ends) <= base <= max(ends) for ends in found.values())


class TestBreakEven:
    def test_at_the_break_even_use_both_cost_the_same(self):
        (one,) = compare_offers(Owning(), (OFFER,), 0.0, 0.0)
        at = own_cost(Owning(utilization=one.break_even_utilization))
        assert at.usd_per_used_h == pytest.approx(2.0, rel=1e-6)

    def test_never_when_renting_is_cheaper_even_at_full_use(self):
        cheap = dataclasses.replace(OFFER, usd_per_gpu_h=0.3)
        (one,) = compare_offers(Owning(), (cheap,), 0.0, 0.0)
        assert one.break_even_utilization is None

    def test_spot_pays_for_what_interruptions_lose(self):
        renting = Renting(
            usd_per_gpu_h=1.0, market="spot", interruptions_per_day=8, lost_h_per_interruption=0.3
        )
        assert renting.usd_per_used_h == pytest.approx(1 / (1 - 0.1))

    def test_reserved_is_paid_unused_too(self):
        found = compare_offers(Owning(utilization=0.5), (OFFER,), 0.0, 0.4)
        by_market = {one.market: one for one in found}
        assert by_market["reserved"].usd_per_used_h == pytest.approx(2.0 * 0.6 / 0.5)


class TestPrices:
    def test_the_users_price_comes_first(self):
        node = find_machine("hgx-a100-8x80gb")
        assert price_of(node, 1.25).usd_per_gpu_h == 1.25
        assert price_of(node, None).date

    def test_every_listed_price_has_its_date_and_superseded_ones_are_left_out(self):
        prices = listed_prices(find_machine("hgx-a100-8x40gb"))
        assert prices
        assert all(price.date and "before" not in price.date for price in prices)

    def test_an_instance_has_its_own_price(self):
        price = price_of(find_machine("p4d.24xlarge"), None)
        assert price.usd_per_gpu_h == pytest.approx(21.957642 / 8)

    def test_a_slice_has_its_share(self):
        whole = price_of(find_machine("a100-sxm4-80gb"), None).usd_per_gpu_h
        part = price_of(find_machine("a100-sxm4-80gb:3g.40gb"), None).usd_per_gpu_h
        assert part == pytest.approx(whole * 3 / 7)


class TestQuestions:
    def test_a_power_budget_counts_the_buildings_losses(self):
        # ai-dynamo's planner was asked for power budget, price of energy, PUE and idle power.
        owning = Owning(busy_w=400, host_w=100, pue=1.25)
        assert gpus_within_power(owning, 10.0) == 16

    def test_own_against_an_interface_with_cached_tokens(self):
        api = ApiPrices(
            input_usd=0.5, output_usd=1.5, cached_usd=0.05, cached_share=0.8, prompt=2000,
            output=500,
        )  # fmt: skip
        assert api.usd_per_million_output == pytest.approx(4 * (0.2 * 0.5 + 0.8 * 0.05) + 1.5)
        own = own_usd_per_million(own_cost(Owning()), 1, 2000.0)
        assert own == pytest.approx(own_cost(Owning()).usd_per_used_h / 3600 / 2000 * 1e6)
