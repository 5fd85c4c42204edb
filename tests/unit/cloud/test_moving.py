"""Moves that make room: told before, idempotent, safe at any crash, and never of what stays."""

from __future__ import annotations

import contextlib

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `cloud` is not installed")
pytest.importorskip("alembic", reason="the extra `cloud` is not installed")
pytest.importorskip("argon2", reason="the extra `cloud` is not installed")

from tests.unit.cloud.sites import Clock, PlayedDriver, join, make_site, numbered, settle, states
from tests.unit.cloud.test_service import Died, count_transactions
from va100.cloud.policies import Policy, Spread
from va100.cloud.records import ClaimRecord
from va100.cloud.service.checkup import check_site
from va100.cloud.service.instances import Wish
from va100.errors import NoPlacement, NotPermitted

SLICE = "sxm80:1g.10gb"


class House:
    """A node of two cards with a slice on each, so that neither is whole."""

    def __init__(self, url="sqlite://", **wish):
        self.clock, self.driver = Clock(), PlayedDriver()
        self.policy = Policy(notice_s=10, patience_s=None, fitting=Spread())
        self.site = make_site(url=url, clock=self.clock, driver=self.driver, policy=self.policy)
        self.ann = join(self.site, "ann")
        self.bob = join(self.site, "bob")
        for number in range(2):
            made = {"market": "spot"} | wish
            self.site.instances.launch(self.bob, Wish(gpu=SLICE, name=f"s{number}", **made))
        settle(self.site, 2)

    def places(self):
        found = self.site.instances.of_tenant(self.bob)
        return {one.name: tuple(one.gpus) for one in found}


@pytest.fixture
def house():
    made = House()
    yield made
    made.site.context.database.close()


def test_a_move_is_told_made_once_and_makes_room(house):
    assert house.places() == {"s0": (0,), "s1": (1,)}
    plan = house.site.operators.defragment(house.ann, "sxm80")
    assert len(plan.moves) == 1
    assert house.site.instances.show(house.bob, "s0").notice_s is None, "planning moves nothing"
    begun = house.site.operators.make_room(house.ann, "sxm80")
    again = house.site.operators.make_room(house.ann, "sxm80")
    assert again.under_way == begun.under_way == plan.moves
    moved = next(n for n in ("s0", "s1")
                 if house.site.instances.show(house.bob, n).notice_s is not None)  # fmt: skip
    events = house.site.instances.events(house.bob, moved)
    assert "it will be moved to node-1" in events[0].text
    settle(house.site, 2)
    assert states(house.site, house.bob) == {"s0": "running", "s1": "running"}, "not before"
    house.clock.move(10)
    settle(house.site, 4)
    assert states(house.site, house.bob) == {"s0": "running", "s1": "running"}
    assert len(set(house.places().values())) == 1, "both on one card"
    shown = house.site.instances.show(house.bob, moved)
    assert (shown.tier, shown.generation) == (0, 2), "still spot, started anew"
    assert "moved" in [e.kind for e in house.site.instances.events(house.bob, moved)]
    assert house.site.operators.defragment(house.ann, "sxm80").moves == ()
    house.site.instances.launch(house.ann, Wish(gpu="sxm80", name="whole"))
    settle(house.site, 2)
    assert states(house.site, house.ann) == {"whole": "running"}
    with house.site.context.database.work() as work:
        assert work.count(ClaimRecord) == 0


@pytest.mark.parametrize(
    "wish", [{"market": "on-demand"}, {"recover": False}, {"market": "spot", "count": 2}],
    ids=["firm", "not to be started again", "gang"],
)  # fmt: skip
def test_what_stays_is_never_moved(wish):
    house = House(**wish)
    if wish.get("count"):
        house.site.instances.launch(house.bob, Wish(gpu="sxm80:7g.80gb", name="x", market="spot"))
    assert house.site.operators.defragment(house.ann, "sxm80:2").moves is None
    with pytest.raises(NoPlacement, match="no moves of what may be moved"):
        house.site.operators.make_room(house.ann, "sxm80:2")
    house.site.context.database.close()


def test_nobody_takes_the_kept_place(house):
    house.site.operators.make_room(house.ann, "sxm80")
    for number in range(14):
        wish = Wish(gpu=SLICE, name=f"x{number}", market="spot", idle_stop_s=0)
        house.site.instances.launch(house.ann, wish)
    house.clock.move(10)
    settle(house.site, 4)
    assert states(house.site, house.bob) == {"s0": "running", "s1": "running"}


def test_one_that_ends_meanwhile_leaves_nothing_behind(house):
    house.site.operators.make_room(house.ann, "sxm80")
    for name in ("s0", "s1"):
        house.site.instances.delete(house.bob, name)
    settle(house.site, 3)
    with house.site.context.database.work() as work:
        assert work.count(ClaimRecord) == 0
    assert house.site.operators.defragment(house.ann, "sxm80:2").moves == ()


def test_it_is_operators_alone(house):
    with pytest.raises(NotPermitted):
        house.site.operators.make_room(house.bob, "sxm80")


@pytest.mark.parametrize("die_at", range(1, 16, 2))
def test_killed_at_any_transaction_the_move_is_finished(tmp_path, die_at):
    url = f"sqlite:///{tmp_path}/cloud.db"
    house = House(url)
    house.site.operators.make_room(house.ann, "sxm80")
    house.clock.move(10)
    left = count_transactions(house.site, die_at)
    with contextlib.suppress(Died):
        for _ in range(3):
            house.site.dispatcher.tick()
    left.clear()
    other = make_site(url=url, clock=house.clock, driver=house.driver, policy=house.policy,
                      token=numbered(10**9))  # fmt: skip
    house.clock.move(16)
    settle(other, 4)
    assert states(other, house.bob) == {"s0": "running", "s1": "running"}
    assert len(set(house.places().values())) == 1
    assert len(house.driver.running()) == 2, "nothing runs twice"
    found = check_site(other.context.database, house.clock())
    assert all(good for _, good, _ in found), found
    for site in (house.site, other):
        site.context.database.close()
