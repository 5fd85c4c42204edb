"""The mix against every mix there is, on portfolios small enough to try all."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from va100.errors import PlanError
from va100.plan.machine import find_machine
from va100.plan.mig_layouts import layouts
from va100.plan.portfolio import GpuType, Job, Portfolio, read_portfolio
from va100.spec.a100 import A100_SXM4_40GB, A100_SXM4_80GB

A100 = find_machine("a100-sxm4-80gb")
L4 = find_machine("l4")


def gpu(machine, **changes):
    values = {
        "name": machine.name, "machine": machine, "inventory": 0, "own_usd_per_h": 0.1,
        "rent_usd_per_h": None, "buy_usd_per_h": None, "slices": False, "most": 4, **changes,
    }  # fmt: skip
    return GpuType(**values)


def job(name, demand, rates, **changes):
    values = {
        "name": name, "demand_per_s": {"all day": demand}, "per_day": 0.0, "weight": 1.0,
        "rates_per_s": rates, **changes,
    }  # fmt: skip
    return Job(**values)


def portfolio(types, jobs, budget=None, slots=None):
    return Portfolio(
        slots_h=slots or {"all day": 24.0}, types=types, jobs=jobs, budget_usd_per_day=budget
    )


@pytest.fixture
def solve():
    pytest.importorskip("highspy", reason="needs the extra va100[plan]")
    from va100.plan.mix import solve_mix

    return solve_mix


class TestLayouts:
    @pytest.mark.parametrize("chip", [A100_SXM4_40GB, A100_SXM4_80GB])
    def test_none_holds_more_than_a_card(self, chip):
        found = layouts(chip)
        assert len(found) == len(set(found))
        for layout in found:
            assert sum(int(name[0]) * count for name, count in layout) <= 7

    def test_four_wide_slices_leave_no_memory_for_narrow_ones(self):
        # k8s-test-infra 886: 4 x 1g.10gb + 3 x 1g.5gb has compute slices enough, but no memory.
        found = [dict(layout) for layout in layouts(A100_SXM4_40GB)]
        assert {"1g.10gb": 4} in found
        assert not any(layout.get("1g.10gb") == 4 and layout.get("1g.5gb") for layout in found)
        assert {"3g.20gb": 1, "4g.20gb": 1} in found
        assert {"1g.5gb": 7} in found


class TestSolve:
    @settings(max_examples=25)
    @given(
        st.lists(st.tuples(st.integers(1, 60), st.integers(1, 20), st.integers(1, 9)),
                 min_size=1, max_size=2),
        st.floats(0.5, 3), st.floats(0.2, 1),
    )  # fmt: skip
    def test_finds_the_cheapest_of_all(self, wanted, dear, cheap):
        pytest.importorskip("highspy", reason="needs the extra va100[plan]")
        from va100.plan.mix import solve_mix

        types = (gpu(A100, rent_usd_per_h=dear), gpu(L4, rent_usd_per_h=cheap))
        jobs = tuple(
            job(f"j{i}", float(demand), {A100.name: float(fast), L4.name: float(slow)})
            for i, (demand, fast, slow) in enumerate(wanted)
        )
        costs = []
        ranges = [range(5)] * (2 * len(jobs))
        for counts in itertools.product(*ranges):
            big, small = counts[::2], counts[1::2]
            if sum(big) > 4 or sum(small) > 4:
                continue
            enough = all(
                b * fast + s * slow >= demand
                for b, s, (demand, fast, slow) in zip(big, small, wanted, strict=True)
            )
            if enough:
                costs.append(24 * (dear * sum(big) + cheap * sum(small)))
        found = solve_mix(portfolio(types, jobs))
        assert found.feasible == bool(costs)
        if costs:
            assert found.usd_per_day == pytest.approx(min(costs))

    def test_slices_are_packed_by_legal_layouts(self, solve):
        types = (gpu(A100, inventory=2, slices=True),)
        small = job("small", 14.0, {f"{A100.name}:1g.10gb": 1.0})
        found = solve(portfolio(types, (small,)))
        assert found.supplies[0].owned == 2
        too_many = job("small", 15.0, {f"{A100.name}:1g.10gb": 1.0})
        assert not solve(portfolio(types, (too_many,))).feasible

    def test_a_card_that_serves_by_day_trains_by_night(self, solve):
        slots = {"day": 12.0, "night": 12.0}
        serve = job("serve", 0.0, {A100.name: 1.0}, demand_per_s={"day": 4.0, "night": 1.0})
        train = job("train", 0.0, {A100.name: 1.0}, demand_per_s={}, per_day=3 * 12 * 3600.0)
        types = (gpu(A100, inventory=4),)
        found = solve(portfolio(types, (serve, train), slots=slots))
        assert found.feasible
        night = [a for a in found.assignments if a.slot == "night" and a.job == "train"]
        assert sum(a.count for a in night) == 3
        flat = solve(portfolio(types, (job("serve", 4.0, {A100.name: 1.0}),
                                       job("train", 1.5, {A100.name: 1.0}))))  # fmt: skip
        assert not flat.feasible

    def test_boards_take_whole_groups(self, solve):
        types = (gpu(A100, inventory=6),)
        found = solve(portfolio(types, (job("wide", 1.0, {f"4x-{A100.name}": 1.0}),)))
        assert found.supplies[0].owned == 4
        assert not solve(portfolio(types, (job("wide", 2.0, {f"4x-{A100.name}": 1.0}),))).feasible

    def test_a_budget_buys_the_weightiest_work(self, solve):
        types = (gpu(A100, rent_usd_per_h=1.0, own_usd_per_h=0.0),)
        jobs = (job("dear", 1.0, {A100.name: 1.0}, weight=5.0), job("plain", 1.0, {A100.name: 1.0}))
        found = solve(portfolio(types, jobs, budget=24.0))
        assert found.served_share == {"dear": 1.0, "plain": 0.0}
        assert found.usd_per_day <= 24.0

    def test_the_same_again_is_the_same(self, solve):
        types = (gpu(A100, inventory=3, slices=True, rent_usd_per_h=2.0),)
        jobs = (job("a", 9.0, {A100.name: 3.0, f"{A100.name}:2g.20gb": 0.8}),)
        assert solve(portfolio(types, jobs)) == solve(portfolio(types, jobs))


class TestFiles:
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("jobs: [a]\n", "no types"),
            ("types: {a100-sxm4-80gb: }\n", "no jobs"),
            ("types:\n  b300:\n    inventory: 1\njobs:\n  - name: a\n", "no machine"),
            ("types:\n  a100-sxm4-80gb:\n    stock: 1\njobs:\n  - name: a\n", "unknown stock"),
            (
                "types:\n  a100-sxm4-80gb:\n    inventory: 1\njobs:\n  - demand: 1\n",
                "without a name",
            ),
            ("types:\n  a100-sxm4-80gb:\n    inventory: 1\njobs:\n  - name: a\n", "wants nothing"),
            (
                "slots: {day: 10}\ntypes:\n  l4:\n    inventory: 1\njobs:\n  - name: a\n",
                "slots have 10 hours",
            ),
            (
                "types:\n  a100-sxm4-80gb:\n    inventory: -1\njobs:\n  - name: a\n    demand: 1\n",
                "inventory is -1",
            ),
        ],
    )
    def test_say_what_is_wrong(self, text, said, tmp_path):
        path = tmp_path / "p.yaml"
        path.write_text(text)
        with pytest.raises(PlanError, match=said):
            read_portfolio(path)
