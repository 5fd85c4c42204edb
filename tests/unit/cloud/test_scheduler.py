"""One pass of the scheduler: rights, displacement, gangs, lending, refusals; then any history."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.cloud.fleets import (
    PCIE,
    SXM,
    ask,
    assert_legal,
    at,
    bridged,
    card,
    hgx,
    home,
    lease,
    mig,
)
from va100.cloud.fleet import Fleet
from va100.cloud.guarantees import lay_out
from va100.cloud.models import Market, Place, Reason, Tenant, Tier
from va100.cloud.policies import FITTINGS, ORDERS, Policy
from va100.cloud.scheduler import decide
from va100.errors import NoPlacement

QUICK = Policy(notice_s=10, patience_s=None)


def pass_over(fleet, *pending, now_s=0, policy=QUICK, tenants=None, returning=()):
    return decide(fleet, pending, tenants or {}, policy, now_s, returning)


def places(plan):
    return [lease.place for start in plan.starts for lease in start.leases]


class TestStart:
    def test_four_services_share_one_card(self):
        fleet = Fleet([hgx(gpus=1)])
        plan = pass_over(fleet, *(ask(f"i{n}", shape=mig("1g.10gb")) for n in range(4)))
        assert len(plan.starts) == 4
        assert {place.node for place in places(plan)} == {"node-1"}
        assert_legal(fleet)

    def test_a_three_leaves_the_place_of_a_four(self):
        fleet = Fleet([hgx(gpus=1)])
        plan = pass_over(
            fleet, ask("a", shape=mig("3g.40gb")), ask("b", shape=mig("4g.40gb"), since_s=1)
        )
        assert [place.start for place in places(plan)] == [4, 0]

    def test_slices_fill_a_used_card_before_an_empty_one(self):
        fleet = Fleet([hgx(gpus=2)])
        plan = pass_over(fleet, *(ask(f"i{n}", shape=mig("2g.20gb")) for n in range(3)))
        assert {place.gpus for place in places(plan)} == {(0,)}

    def test_spreading_takes_the_emptiest(self):
        policy = Policy(fitting=FITTINGS["spread"])
        fleet = Fleet([hgx(gpus=2)])
        plan = pass_over(
            fleet, *(ask(f"i{n}", shape=mig("2g.20gb")) for n in range(2)), policy=policy
        )
        assert {place.gpus for place in places(plan)} == {(0,), (1,)}

    def test_cards_that_reach_each_other_are_taken_together(self):
        fleet = Fleet([bridged()], [lease("x", card(model=PCIE), at("pcie-1", 0))])
        plan = pass_over(fleet, ask("pair", shape=card(2, PCIE)))
        assert places(plan) == [Place("pcie-1", (2, 3))]

    def test_one_card_breaks_no_pair(self):
        fleet = Fleet([bridged()], [lease("x", card(model=PCIE), at("pcie-1", 2))])
        plan = pass_over(fleet, ask("one", shape=card(model=PCIE)))
        assert places(plan) == [Place("pcie-1", (3,))]

    def test_a_gang_starts_together_or_not_at_all(self):
        fleet = Fleet([hgx("a", 4), hgx("b", 4)])
        fleet.add(lease("x", card(), at("a", 0)))
        plan = pass_over(fleet, ask("gang", shape=card(4), members=2))
        assert plan.starts == []
        assert plan.refusals["gang"].reason is Reason.BUSY
        assert "only 1 of 2" in plan.refusals["gang"].text
        fleet.remove("x")
        plan = pass_over(fleet, ask("gang", shape=card(4), members=2))
        assert [one.name for one in plan.starts[0].leases] == ["gang.0", "gang.1"]

    def test_a_draining_node_gets_nothing(self):
        node = replace(hgx("old", 8), usable=frozenset())
        plan = pass_over(Fleet([node, hgx("new", 8)]), ask("one"))
        assert places(plan) == [Place("new", (0,))]


class TestRights:
    def promised(self, *leases):
        return Fleet([hgx(gpus=2)], leases, [home("owner", card(), at("node-1", 0))])

    def test_on_demand_keeps_off_promises(self):
        fleet = self.promised()
        plan = pass_over(fleet, ask("a"), ask("b", since_s=1))
        assert places(plan) == [Place("node-1", (1,))]
        assert plan.refusals["b"].reason is Reason.PROMISED
        assert plan.refusals["b"].place is None

    def test_borrowers_and_spot_take_idle_promises(self):
        for market, tier in ((Market.BORROW, Tier.BORROWED), (Market.SPOT, Tier.SPOT)):
            fleet = self.promised(lease("x", card(), at("node-1", 1)))
            plan = pass_over(fleet, ask("guest", market=market))
            assert [one.tier for one in plan.starts[0].leases] == [tier]

    def test_the_owner_gets_its_place_back_within_the_notice(self):
        guest = lease("guest", card(), at("node-1", 0), tenant="bob", tier=Tier.BORROWED)
        fleet = self.promised(guest, lease("x", card(), at("node-1", 1), tenant="bob"))
        request = ask("mine", "owner")
        plan = pass_over(fleet, request, now_s=100)
        assert [(n.lease, n.at_s, n.claimed_by) for n in plan.notices] == [("guest", 110, "mine")]
        assert plan.refusals["mine"].reason is Reason.COMING
        assert pass_over(fleet, request, now_s=109).starts == []
        plan = pass_over(fleet, request, now_s=110)
        assert plan.evicted == ["guest"]
        assert [one.tier for one in plan.starts[0].leases] == [Tier.GUARANTEED]
        assert_legal(fleet)

    def test_a_place_freed_early_is_taken_early(self):
        guest = lease("guest", card(), at("node-1", 0), tenant="bob", tier=Tier.SPOT)
        fleet = self.promised(guest)
        pass_over(fleet, ask("mine", "owner"), now_s=100)
        fleet.remove("guest")
        assert len(pass_over(fleet, ask("mine", "owner"), now_s=101).starts) == 1

    def test_a_place_that_went_away_is_looked_for_anew(self):
        guest = lease("guest", card(), at("node-1", 0), tenant="bob", tier=Tier.SPOT)
        fleet = Fleet([hgx(gpus=1)], [guest])
        plan = pass_over(fleet, ask("mine"), now_s=0)
        gone = replace(hgx(gpus=1), usable=frozenset())
        fleet = Fleet([gone, hgx("other", 1)], fleet.leases.values(), (), plan.claims)
        plan = pass_over(fleet, ask("mine"), now_s=1)
        assert places(plan) == [Place("other", (0,))]

    def test_standard_displaces_spot_but_never_borrowers(self):
        spot = lease("spot", card(), at("node-1", 1), tenant="bob", tier=Tier.SPOT)
        borrower = lease("borrower", card(), at("node-1", 0), tenant="bob", tier=Tier.BORROWED)
        plan = pass_over(self.promised(spot, borrower), ask("mine"))
        assert [notice.lease for notice in plan.notices] == ["spot"]

    def test_fewest_are_displaced(self):
        guests = [
            lease(f"g{n}", mig("1g.10gb"), at("node-1", 0, "1g.10gb", n), tier=Tier.SPOT)
            for n in range(3)
        ]
        single = lease("single", mig("2g.20gb"), at("node-1", 1, "2g.20gb", 0), tier=Tier.SPOT)
        fleet = Fleet([hgx(gpus=2)], [*guests, single])
        plan = pass_over(fleet, ask("whole"))
        assert [notice.lease for notice in plan.notices] == ["single"]

    def test_spot_waits_for_nobody(self):
        spot = lease("spot", card(), at("node-1", 0), tier=Tier.SPOT)
        plan = pass_over(Fleet([hgx(gpus=1)], [spot]), ask("other", market=Market.SPOT))
        assert plan.notices == []

    def test_a_guarantee_outweighs_a_limit_used_up_by_spot(self):
        spot = lease("spot", card(), at("node-1", 1), tenant="owner", tier=Tier.SPOT)
        tenants = {"owner": Tenant(name="owner", limit_eighths=8)}
        plan = pass_over(self.promised(spot), ask("mine", "owner"), tenants=tenants)
        assert len(plan.starts) == 1


class TestLimits:
    def test_a_limit_counts_what_waits_for_its_place(self):
        tenants = {"ann": Tenant(name="ann", limit_eighths=8)}
        fleet = Fleet([hgx(gpus=2)])
        plan = pass_over(fleet, ask("a"), ask("b", shape=mig("1g.10gb")), tenants=tenants)
        assert [start.request.name for start in plan.starts] == ["a"]
        assert plan.refusals["b"].reason is Reason.QUOTA


class TestLending:
    def lent(self, *more):
        owner = lease("train", card(), at("node-1", 0), tenant="lab", lendable=True, lent=True)
        return Fleet([hgx(gpus=1)], [owner, *more])

    def test_only_what_can_be_displaced_goes_there(self):
        assert pass_over(self.lent(), ask("a")).starts == []
        fleet = self.lent()
        plan = pass_over(fleet, ask("s", shape=mig("3g.40gb"), market=Market.SPOT))
        assert len(plan.starts) == 1
        assert_legal(fleet)

    def test_the_lender_returns_within_the_notice(self):
        fleet = self.lent()
        pass_over(fleet, ask("s", market=Market.SPOT))
        plan = pass_over(fleet, now_s=50, returning=["train"])
        assert [(n.lease, n.at_s) for n in plan.notices] == [("s", 60)]
        assert pass_over(fleet, ask("t", market=Market.SPOT), now_s=55).starts == []
        plan = pass_over(fleet, now_s=60, returning=["train"])
        assert plan.evicted == ["s"]
        assert plan.resumed == ["train"]
        assert_legal(fleet)

    def test_an_empty_place_is_returned_at_once(self):
        fleet = self.lent()
        assert pass_over(fleet, returning=["train"]).resumed == ["train"]


class TestWhyNot:
    def test_an_unknown_card(self):
        plan = pass_over(Fleet([hgx()]), ask("a", shape=card(model=PCIE)))
        assert plan.refusals["a"].reason is Reason.NO_SUCH_GPU
        assert SXM in plan.refusals["a"].text

    def test_more_cards_than_a_node_has(self):
        plan = pass_over(Fleet([hgx(gpus=4)]), ask("a", shape=card(8)))
        assert plan.refusals["a"].reason is Reason.TOO_LARGE

    def test_fragmented_names_the_best_free_slice_and_its_place(self):
        leases = [
            lease("a", mig("4g.40gb"), at("node-3", 5, "4g.40gb", 0)),
            lease("b", mig("1g.10gb"), at("node-3", 5, "1g.10gb", 4)),
            *(lease(f"c{g}", card(), at("node-3", g)) for g in (0, 1, 2, 3, 4, 6, 7)),
        ]
        fleet = Fleet([hgx("node-3")], leases)
        why = pass_over(fleet, ask("x", shape=mig("2g.20gb"))).refusals["x"]
        assert why.reason is Reason.FRAGMENTED
        assert why.text.endswith("best free slice is 1g.20gb on node-3, GPU 5")
        assert (why.best, why.place) == (mig("1g.20gb"), at("node-3", 5, "1g.20gb", 6))
        assert len(pass_over(fleet, ask("y", shape=why.best)).starts) == 1

    def test_a_gang_larger_than_the_fleet(self):
        plan = pass_over(Fleet([hgx(gpus=4)]), ask("a", shape=mig("2g.20gb"), members=13))
        assert plan.refusals["a"].reason is Reason.TOO_LARGE
        assert "holds 12" in plan.refusals["a"].text

    def test_cards_without_a_link(self):
        leases = [lease(f"x{gpu}", card(model=PCIE), at("pcie-1", gpu)) for gpu in (0, 2)]
        request = ask("pair", shape=card(2, PCIE), nvlink=True)
        plan = pass_over(Fleet([bridged()], leases), request)
        assert plan.refusals["pair"].reason is Reason.LINK
        plan = pass_over(Fleet([bridged()], leases), replace(request, nvlink=False))
        assert len(plan.starts) == 1

    def test_cards_on_several_nodes_are_not_one_instance(self):
        leases = [lease(f"x{n}", card(), at(n, 0)) for n in "ab"]
        plan = pass_over(Fleet([hgx("a", 4), hgx("b", 4)], leases), ask("x", shape=card(4)))
        assert plan.refusals["x"].reason is Reason.FRAGMENTED
        assert "at most 3 on one node (a)" in plan.refusals["x"].text


class TestPatience:
    def test_small_ones_do_not_starve_a_large_one(self):
        busy = [replace(lease(f"x{g}", card(), at("node-1", g)), ends_s=1000 + g) for g in range(3)]
        large, small = ask("large", shape=card(4)), ask("small", "bob", since_s=10)
        patient = replace(QUICK, patience_s=60)
        assert len(pass_over(Fleet([hgx(gpus=4)], busy), large, small, now_s=50).starts) == 1
        fleet = Fleet([hgx(gpus=4)], busy)
        assert pass_over(fleet, large, small, now_s=100, policy=patient).starts == []
        plan = pass_over(fleet, large, small, now_s=1003, policy=patient)
        assert [start.request.name for start in plan.starts] == ["large"]

    def test_without_backfill_nobody_overtakes(self):
        fleet = Fleet([hgx(gpus=2)], [lease("x", card(), at("node-1", 0))])
        plan = pass_over(
            fleet, ask("a", shape=card(2)), ask("b", since_s=1),
            policy=Policy(backfill=False),
        )  # fmt: skip
        assert plan.refusals["b"].reason is Reason.BEHIND


class TestGuarantees:
    def test_a_promise_that_cannot_be_kept_is_refused(self):
        with pytest.raises(NoPlacement, match="cannot all be kept"):
            lay_out([hgx(gpus=1)], [], {("a", mig("4g.40gb")): 2})

    def test_an_arrangement_is_searched_for(self):
        promises = {
            ("a", mig("2g.20gb")): 2,
            ("b", mig("3g.40gb")): 1,
            ("c", mig("4g.40gb")): 1,
            ("d", mig("3g.40gb")): 1,
        }
        homes = lay_out([hgx(gpus=3)], [], promises)
        assert len(homes) == 5
        assert_legal(Fleet([hgx(gpus=3)], [], homes))

    def test_what_tenants_sit_on_is_kept(self):
        place = at("node-1", 1)
        sitting = lease("x", card(), place, tenant="a", tier=Tier.GUARANTEED)
        before = [home("a", card(), at("node-1", 0)), home("a", card(), place)]
        homes = lay_out([hgx(gpus=2)], [sitting], {("a", card()): 1}, before)
        assert [one.place for one in homes] == [place]

    def test_standard_leases_are_in_the_way(self):
        with pytest.raises(NoPlacement):
            lay_out(
                [hgx(gpus=1)],
                [lease("x", mig("1g.10gb"), at("node-1", 0, "1g.10gb", 0))],
                {("a", card()): 1},
            )


SHAPES = [
    card(),
    card(2),
    *(
        mig(name)
        for name in ("1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
    ),
]
PROMISES = [
    {},
    {("ann", card()): 1},
    {("ann", mig("3g.40gb")): 1, ("bob", mig("2g.20gb")): 1, ("cyd", mig("1g.10gb")): 2},
    {("ann", card(2)): 1, ("bob", mig("4g.40gb")): 1, ("bob", mig("1g.10gb+me")): 1},
]
EVENTS = st.one_of(
    st.tuples(
        st.just("ask"),
        st.sampled_from(["ann", "bob", "cyd"]),
        st.sampled_from(SHAPES),
        st.sampled_from(list(Market)),
        st.integers(1, 2),
    ),
    st.tuples(st.just("end"), st.integers(0, 50)),
    st.tuples(st.just("lend"), st.integers(0, 50)),
    st.tuples(st.just("return"), st.integers(0, 50)),
    st.tuples(st.just("wait"), st.integers(1, 15)),
)


class Site:
    """A site in a test: a fleet, who waits, and what was promised when."""

    def __init__(self, promises, policy):
        nodes = [hgx("a", 3), hgx("b", 2)]
        self.fleet = Fleet(nodes, [], lay_out(nodes, [], promises))
        self.policy = policy
        self.pending = {}
        self.returning = {}
        self.owed = {}
        self.displaced = []
        self.now_s = 0
        self.count = 0

    def apply(self, event):
        kind, *facts = event
        names = sorted(self.fleet.leases)
        if kind == "ask":
            self.count += 1
            tenant, shape, market, members = facts
            request = ask(
                f"r{self.count:03}",
                tenant,
                shape,
                market=market,
                members=members,
                since_s=self.now_s,
            )
            self.pending[request.name] = request
        elif kind == "end" and names:
            name = names[facts[0] % len(names)]
            self.fleet.remove(name)
            self.fleet.unclaim(name)
            self.returning.pop(name, None)
        elif kind == "lend":
            firm = [n for n in names if self.fleet.leases[n].firm and not self.fleet.leases[n].lent]
            if firm:
                one = self.fleet.leases[firm[facts[0] % len(firm)]]
                self.fleet.replace(replace(one, lent=True))
        elif kind == "return":
            lent = [n for n in names if self.fleet.leases[n].lent]
            if lent:
                self.returning.setdefault(lent[facts[0] % len(lent)], self.now_s)
        elif kind == "wait":
            self.now_s += facts[0]
        self.run()

    def run(self):
        before = dict(self.fleet.leases)
        promised = {name for name, request in self.pending.items() if self.has_homes(request)}
        plan = decide(
            self.fleet, self.pending.values(), {}, self.policy, self.now_s, self.returning
        )
        assert_legal(self.fleet)
        for notice in plan.notices:
            victim = before.get(notice.lease) or self.fleet.leases[notice.lease]
            assert not victim.firm
            assert notice.at_s - self.now_s <= self.policy.notice_s
            claimant = self.pending.get(notice.claimed_by)
            if claimant is not None:
                claim = self.fleet.claims[claimant.name]
                assert claim.firm
                assert claimant.market is not Market.SPOT
                self.displaced.append((victim.name, notice.claimed_by))
        for start in plan.starts:
            request = self.pending.pop(start.request.name)
            assert len(start.leases) == request.members
            self.owed.pop(request.name, None)
        for name in plan.resumed:
            assert self.now_s - self.returning.pop(name) <= self.policy.notice_s + 15
        assert not {n for n in plan.evicted if before[n].firm}
        for name in promised:
            if name in self.pending:
                assert plan.refusals[name].reason is Reason.COMING, plan.refusals[name]
                self.owed.setdefault(name, self.now_s)
        for since in self.owed.values():
            assert self.now_s - since <= self.policy.notice_s + 15

    def has_homes(self, request):
        """Whether a request is within what its tenant was promised and does not use."""
        if request.market is Market.SPOT or request.members > 1:
            return False
        rivals = [
            other for other in self.pending.values()
            if (other.tenant, other.shape) == (request.tenant, request.shape)
            and other.market is not Market.SPOT
        ]  # fmt: skip
        taken = [self.fleet.leases[name].place for name in self.fleet.by_tenant[request.tenant]]
        homes = [
            one for one in self.fleet.homes
            if (one.tenant, one.shape) == (request.tenant, request.shape)
            and one.place not in taken
        ]  # fmt: skip
        return len(homes) >= sum(other.members for other in rivals)


@given(
    promises=st.sampled_from(PROMISES),
    events=st.lists(EVENTS, max_size=40),
    order=st.sampled_from(sorted(ORDERS)),
    fitting=st.sampled_from(sorted(FITTINGS)),
    backfill=st.booleans(),
)
def test_any_history_keeps_the_rules(promises, events, order, fitting, backfill):
    policy = Policy(
        order=ORDERS[order],
        fitting=FITTINGS[fitting],
        notice_s=10,
        backfill=backfill,
        patience_s=20,
    )
    site = Site(promises, policy)
    for event in events:
        site.apply(event)


@given(promises=st.sampled_from(PROMISES), events=st.lists(EVENTS, max_size=25))
@settings(max_examples=40)
def test_left_alone_a_site_comes_to_rest(promises, events):
    """Whoever is displaced asks again, and still the displacing ends: there is no cycle."""
    site = Site(promises, QUICK)
    for event in events:
        site.apply(event)
    quiet = 0
    displacements = 0
    for _ in range(200):
        site.now_s += 11
        before = dict(site.fleet.leases)
        plan = decide(site.fleet, site.pending.values(), {}, QUICK, site.now_s, ())
        for start in plan.starts:
            site.pending.pop(start.request.name)
        for name in plan.evicted:
            displacements += 1
            gone = before[name]
            market = Market.SPOT if gone.tier is Tier.SPOT else Market.BORROW
            site.count += 1
            again = ask(
                f"r{site.count:03}", gone.tenant, gone.shape, market=market, since_s=site.now_s
            )
            site.pending[again.name] = again
        quiet = 0 if plan.starts or plan.notices or plan.evicted else quiet + 1
        if quiet == 3:
            break
    assert quiet == 3, f"{displacements} displacements and no rest"
