"""Every reachable state of a small site: one card, three tenants, all orders of what may happen.

States are explored breadth first.  In each, the rules of a fleet hold, a tenant within its promise
has its place or a dated notice for it, and left alone the site comes to rest.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest

from tests.unit.cloud.fleets import ask, assert_legal, hgx, home, mig
from va100.cloud.fleet import Fleet
from va100.cloud.guarantees import lay_out
from va100.cloud.models import Market, Tier
from va100.cloud.policies import Policy
from va100.cloud.scheduler import decide

POLICY = Policy(notice_s=1, patience_s=None)
NODES = [hgx(gpus=1)]
SITES = {
    "one promise": (
        {("ann", mig("3g.40gb")): 1},
        [
            ask("ann-own", "ann", mig("3g.40gb")),
            ask("bob-borrow", "bob", mig("3g.40gb"), market=Market.BORROW),
            ask("bob-spot", "bob", mig("2g.20gb"), market=Market.SPOT),
            ask("cyd-demand", "cyd", mig("4g.40gb")),
            ask("cyd-spot", "cyd", mig("7g.80gb"), market=Market.SPOT),
        ],
    ),
    "two promises": (
        {("ann", mig("3g.40gb")): 1, ("bob", mig("2g.20gb")): 1},
        [
            ask("ann-own", "ann", mig("3g.40gb")),
            ask("bob-own", "bob", mig("2g.20gb")),
            ask("ann-borrow", "ann", mig("2g.20gb"), market=Market.BORROW),
            ask("bob-borrow", "bob", mig("4g.40gb"), market=Market.BORROW),
            ask("cyd-demand", "cyd", mig("1g.10gb")),
        ],
    ),
    "media and wide slices": (
        {("ann", mig("1g.10gb+me")): 1, ("bob", mig("1g.20gb")): 1},
        [
            ask("ann-own", "ann", mig("1g.10gb+me")),
            ask("bob-own", "bob", mig("1g.20gb")),
            ask("cyd-media", "cyd", mig("1g.10gb+me"), market=Market.SPOT),
            ask("cyd-spot", "cyd", mig("4g.40gb"), market=Market.SPOT),
            ask("bob-borrow", "bob", mig("3g.40gb"), market=Market.BORROW),
        ],
    ),
}


def step(state, homes, asks, action=None):
    """The state after something happened and the scheduler ran; what was displaced, too."""
    leases, waiting, claims = state
    fleet = Fleet(NODES, leases, homes, claims)
    waiting = set(waiting)
    if action and action[0] == "ask":
        waiting.add(action[1])
    if action and action[0] == "end":
        fleet.remove(action[1])
        fleet.unclaim(action[1])
    now_s = 1 if action == ("tick",) else 0
    pending = [asks[name] for name in sorted(waiting)]
    plan = decide(fleet, pending, {}, POLICY, now_s)
    assert_legal(fleet)
    waiting -= {start.request.name for start in plan.starts}
    waiting |= set(plan.evicted)
    check_promises(fleet, homes, [asks[name] for name in sorted(waiting)], plan)
    # Time is kept relative, so that states recur.
    kept = frozenset(
        replace(x, since_s=0, notice_s=None if x.notice_s is None else x.notice_s - now_s)
        for x in fleet.leases.values()
    )
    return (kept, frozenset(waiting), frozenset(fleet.claims.values())), plan


def check_promises(fleet, homes, pending, plan):
    for request in pending:
        own = [one for one in homes if (one.tenant, one.shape) == (request.tenant, request.shape)]
        if request.name in plan.evicted or request.market is Market.SPOT:
            continue
        for one in own:
            there = [fleet.leases[name] for name in fleet.by_tenant[request.tenant]]
            used = any(lease.place == one.place for lease in there)
            claimed = any(one.place in claim.places for claim in fleet.claims.values())
            assert used or claimed, f"{request.name} waits though {one.place} was promised"


@pytest.mark.parametrize("site", SITES)
def test_every_reachable_state_keeps_its_promises(site):
    promises, requests = SITES[site]
    homes = lay_out(NODES, [], promises)
    assert homes == tuple(home(one.tenant, one.shape, one.place) for one in homes)
    asks = {request.name: request for request in requests}
    start = (frozenset(), frozenset(), frozenset())
    seen, queue = {start}, deque([start])
    while queue:
        state = queue.popleft()
        leases, waiting, _ = state
        there = {lease.name for lease in leases}
        actions = [("tick",), *(("end", name) for name in sorted(there))]
        actions += [("ask", name) for name in asks if name not in there | waiting]
        for action in actions:
            after, _ = step(state, homes, asks, action)
            if after not in seen:
                seen.add(after)
                queue.append(after)
    assert len(seen) > 50
    for state in seen:
        comes_to_rest(state, homes, asks)


def comes_to_rest(state, homes, asks):
    """With nobody acting, ticks lead to a state that stays, and displace only lower tiers."""
    passed = []
    while state not in passed:
        passed.append(state)
        tiers = {lease.name: lease.tier for lease in state[0]}
        state, plan = step(state, homes, asks, ("tick",))
        assert all(tiers[name] < Tier.STANDARD for name in plan.evicted)
    assert passed[-1] == state, "states repeat in a circle"
