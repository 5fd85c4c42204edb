"""Idle instances are warned, lent and stopped by what their GPUs do, and lent ones come back."""

from __future__ import annotations

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `cloud` is not installed")
pytest.importorskip("alembic", reason="the extra `cloud` is not installed")
pytest.importorskip("argon2", reason="the extra `cloud` is not installed")

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.cloud.sites import Clock, PlayedDriver, join, make_site, numbered, settle, states
from va100.cloud.service.idleness import GRACE_S, returns_within_s
from va100.cloud.service.instances import Wish
from va100.errors import BeingReturned

SECOND_NS = 1_000_000_000


class SlowDriver(PlayedDriver):
    """Programs take all the time to end that they are given."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock
        self.told = {}

    def stop(self, instance, *, grace_s):
        told = self.told.setdefault(instance, self.clock())
        if self.clock() >= told + grace_s:
            self.told.pop(instance)
            self.exit(instance, 143)


class House:
    """A site with one training instance that lends, and guests."""

    def __init__(self):
        self.clock = Clock()
        self.driver = SlowDriver(self.clock)
        self.site = make_site(clock=self.clock, driver=self.driver, welcome_micro=10**12)
        self.ann = join(self.site, "ann")
        self.bob = join(self.site, "bob")
        self.guests = 0
        self.train = self.launch(self.ann, "sxm80:2", name="train", lendable=True, idle_stop_s=0)
        self.driver.work[self.train.id] = SECOND_NS

    def launch(self, actor, gpu, **wish):
        made = self.site.instances.launch(actor, Wish(gpu=gpu, **wish))
        settle(self.site, 2)
        return made[0]

    def guest(self, gpu, market="spot"):
        self.guests += 1
        self.launch(self.bob, gpu, name=f"g{self.guests}", market=market)

    def shown(self):
        return self.site.instances.show(self.ann, "train")

    def pass_time(self, seconds, steps=None):
        for _ in range(steps or seconds):
            self.clock.move(seconds / (steps or seconds))
            settle(self.site, 1)

    def work(self):
        """The training computes from now on, while it is not paused."""
        if self.train.id not in self.driver.paused:
            self.driver.work[self.train.id] += SECOND_NS // 100


@pytest.fixture
def house():
    made = House()
    yield made
    made.site.context.database.close()


def test_what_was_lent_for_being_idle_runs_on_and_returns_by_itself(house):
    house.pass_time(62, steps=2)
    assert house.shown().lent
    assert house.driver.paused == set(), "its programs wait for data, say, and may go on to"
    house.guest("sxm80")
    assert states(house.site, house.bob) == {"g1": "running"}
    house.work()
    house.pass_time(1)
    assert house.shown().recalled
    assert house.driver.paused == {house.train.id}, "it computes on no GPU that another has"
    bound = returns_within_s(house.site.context.options)
    house.pass_time(bound - 1)
    assert not house.shown().lent
    assert house.driver.paused == set()
    kinds = [e.kind for e in house.site.instances.events(house.ann, "train")]
    assert [k for k in kinds if k in ("lent", "recalled", "returned")] == [
        "returned", "recalled", "lent",
    ]  # fmt: skip


def test_without_guests_it_has_its_place_at_once(house):
    house.pass_time(62, steps=2)
    house.work()
    house.pass_time(1)
    assert not house.shown().lent
    assert house.driver.paused == set()


@pytest.mark.parametrize("ask", ["execute", "terminal", "start"])
def test_an_owner_that_is_back_has_its_place_back(house, ask):
    house.site.instances.lend(house.ann, "train")
    settle(house.site, 2)
    assert house.driver.paused == {house.train.id}, "lent by hand, it is paused"
    house.guest("sxm80:1g.10gb")
    asks = {
        "execute": lambda: house.site.instances.execute(house.ann, "train", ["true"]),
        "terminal": lambda: house.site.instances.running(house.ann, "train", "instances:write"),
        "start": lambda: house.site.instances.start(house.ann, "train"),
    }
    if ask == "start":
        asks[ask]()
    else:
        with pytest.raises(BeingReturned, match="being returned"):
            asks[ask]()
    house.pass_time(returns_within_s(house.site.context.options))
    assert not house.shown().lent
    assert house.site.instances.execute(house.ann, "train", ["echo", "x"]).output == b"echo x"


def test_reading_its_log_does_not_call_it_back(house):
    house.pass_time(62, steps=2)
    house.site.instances.logs(house.ann, "train", offset=0, limit=10)
    assert not house.shown().recalled


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.integers(1, 70)),
        st.tuples(st.just("guest"), st.sampled_from(
            ["sxm80", "sxm80:1g.10gb", "sxm80:3g.40gb", "sxm80:4g.40gb"])),
        st.tuples(st.just("firm"), st.sampled_from(["sxm80", "sxm80:2g.20gb"])),
        st.tuples(st.just("drop"), st.integers(0, 5)),
        st.tuples(st.just("lend"), st.just(0)),
    ),
    min_size=2, max_size=8,
)  # fmt: skip


@given(steps=STEPS)
@settings(max_examples=12, deadline=None, derandomize=True)
def test_whatever_happened_it_is_back_within_the_bound(steps):
    """The bound that is documented, after any history, however long guests take to leave."""
    house = House()
    try:
        for kind, value in steps:
            take(house, kind, value)
        bound = returns_within_s(house.site.context.options)
        assert bound == house.site.context.options.policy.notice_s + GRACE_S + 5
        if house.shown().lent and house.shown().watched_ns is None:
            house.site.instances.recall(house.ann, "train")
        for _ in range(bound):
            house.work()
            house.pass_time(1)
        assert not house.shown().lent
        assert house.train.id not in house.driver.paused
        assert house.shown().generation == 1, "paused, not started anew"
    finally:
        house.site.context.database.close()


def take(house, kind, value):
    if kind == "pass":
        house.pass_time(value, steps=3)
    elif kind in ("guest", "firm"):
        house.guest(value, "spot" if kind == "guest" else "on-demand")
    elif kind == "drop":
        found = house.site.instances.of_tenant(house.bob)
        if found:
            house.site.instances.delete(house.bob, found[value % len(found)].id)
    elif kind == "lend" and not house.shown().lent:
        house.site.instances.lend(house.ann, "train")
        settle(house.site, 1)


class TestIdle:
    @pytest.fixture
    def site(self):
        self.clock, self.driver = Clock(), PlayedDriver()
        site = make_site(clock=self.clock, driver=self.driver, token=numbered())
        yield site
        site.context.database.close()

    def test_a_warning_says_why_and_when(self, site):
        ann = join(site, "ann")
        one = site.instances.launch(ann, Wish(gpu="sxm80", name="one", idle_stop_s=1000))[0]
        settle(site, 2)
        self.driver.busy[one.id] = 0.0
        self.clock.move(500)
        settle(site, 1)
        events = site.instances.events(ann, "one")
        assert events[0].text == "it will be stopped in 500 s: its GPU did nothing for 500 s"
        self.clock.move(500)
        settle(site, 2)
        assert states(site, ann) == {"one": "stopped"}

    def test_a_little_work_is_work(self, site):
        ann = join(site, "ann")
        one = site.instances.launch(ann, Wish(gpu="sxm80", name="one", idle_stop_s=60))[0]
        settle(site, 2)
        self.driver.busy[one.id] = 1e-6
        for _ in range(20):
            self.clock.move(11)
            settle(site, 1)
        assert states(site, ann) == {"one": "running"}

    def test_what_a_running_instance_ran_into_is_shown(self, site):
        ann = join(site, "ann")
        one = site.instances.launch(ann, Wish(gpu="sxm80", name="one"))[0]
        settle(site, 2)
        self.driver.trouble[one.id] = "disk full: delete something"
        settle(site, 2)
        shown = site.instances.show(ann, "one")
        assert (shown.reason, shown.reason_code) == ("disk full: delete something", "limit")
        assert [e.kind for e in site.instances.events(ann, "one")].count("limit") == 1
        self.driver.trouble[one.id] = ""
        settle(site, 2)
        assert site.instances.show(ann, "one").reason == ""
