"""Replays: small ones by hand, larger ones by what must be kept."""

from __future__ import annotations

import random

import pytest

from tests.unit.cloud.fleets import SXM, card, hgx, mig
from va100.cloud.models import Market
from va100.cloud.policies import ORDERS, Policy
from va100.cloud.prices import Price, PriceBook, card_item
from va100.cloud.simulate import Replay, Site, replay
from va100.cloud.traces import Job, made_trace

BOOK = PriceBook([Price(card_item(SXM), 0, 8 * 3600)])
"""One micro-dollar a second and eighth of a card."""


ONE_CARD = (hgx(gpus=1),)


def site(nodes=ONE_CARD, **more):
    policy = more.pop("policy", Policy(notice_s=10, patience_s=None))
    return Site(nodes=nodes, policy=policy, book=BOOK, **more)


def job(name, submit_s, duration_s, shape=None, **more):
    return Job(name=name, tenant=more.pop("tenant", "ann"), submit_s=submit_s,
               duration_s=duration_s, shape=shape or card(), **more)  # fmt: skip


def test_two_jobs_on_one_card_run_one_after_the_other():
    outcome = replay(site(), [job("a", 0, 100), job("b", 10, 50)])
    assert outcome.finished_count == 2
    assert outcome.simulated_s == 150
    assert outcome.wait_mean_s == (0 + 90) / 2
    assert outcome.charged_micro == 150 * 8


def test_slices_run_beside_each_other():
    jobs = [job(f"s{n}", 0, 100, mig("1g.10gb")) for n in range(7)]
    outcome = replay(site(), jobs)
    assert (outcome.simulated_s, outcome.wait_p99_s) == (100, 0)
    assert outcome.charged_micro == 700


def test_a_displaced_job_goes_on_from_its_checkpoint():
    jobs = [
        job("guest", 0, 1000, market=Market.SPOT),
        job("owner", 650, 100),
    ]
    outcome = replay(site(spot_discount_per_mille=500), jobs)
    # Told at 650, gone at 660 with 600 s kept; owner until 760; guest's last 400 s until 1160.
    assert outcome.simulated_s == 1160
    assert (outcome.displaced_count, outcome.lost_s) == (1, 60)
    assert outcome.charged_micro == (660 + 100 + 400) * 8
    assert outcome.discount_micro == (660 + 400) * 4


def test_all_of_a_gang_waits_again_when_one_is_displaced():
    nodes = (hgx("a", 1), hgx("b", 1))
    jobs = [job("gang", 0, 1000, members=2, market=Market.SPOT), job("one", 100, 50)]
    outcome = replay(site(nodes), jobs)
    # Both members leave at 110 with nothing kept, and start again when both cards are free.
    assert outcome.simulated_s == 110 + 50 + 1000
    assert outcome.lost_s == 2 * 110


def test_what_the_fleet_could_never_run_is_told_apart():
    outcome = replay(site(), [job("big", 0, 10, card(8)), job("a", 0, 10)])
    assert (outcome.impossible_count, outcome.finished_count) == (1, 1)


def test_promises_are_kept_in_a_replay():
    promised = site(guarantees={("owner", card()): 1})
    jobs = [job("guest", 0, 10_000, market=Market.BORROW), job("own", 100, 50, tenant="owner")]
    outcome = replay(promised, jobs)
    assert outcome.wait_mean_by_market["on-demand"] == 10


@pytest.mark.parametrize("order", ORDERS)
def test_every_job_finishes_and_pays_for_what_it_had(order):
    nodes = tuple(hgx(f"n{n}", 8) for n in range(3))
    jobs = list(made_trace(random.Random(7), jobs=150, days=2, model=SXM, tenants=5))
    run = Replay(site(nodes, policy=Policy(order=ORDERS[order], notice_s=10)), jobs)
    outcome = run.run()
    assert outcome.finished_count + outcome.impossible_count == len(jobs)
    assert run.fleet.leases == {}
    assert run.held == 0
    possible = [one for one in jobs if one.shape.is_slice or one.members * one.shape.cards <= 24]
    least = sum(one.duration_s * one.shape.eighths * one.members for one in possible)
    assert outcome.charged_micro >= least - len(jobs)
    assert outcome.charged_micro <= least + 8 * (outcome.lost_s + outcome.displaced_count)
    assert 0 < outcome.utilisation_ratio <= 1
    assert 0 <= outcome.fragmentation_ratio <= 1


def test_a_replay_comes_out_the_same():
    jobs = list(made_trace(random.Random(3), jobs=60, days=1, model=SXM))
    assert replay(site(), jobs) == replay(site(), list(reversed(jobs)))


def test_a_trace_without_jobs_is_refused():
    with pytest.raises(ValueError, match="without jobs"):
        replay(site(), [])
