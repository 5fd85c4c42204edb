"""Instances from launch to bill, with a driver that plays them and a clock told the time."""

from __future__ import annotations

import contextlib

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `cloud` is not installed")
pytest.importorskip("alembic", reason="the extra `cloud` is not installed")
pytest.importorskip("argon2", reason="the extra `cloud` is not installed")

from tests.unit.cloud.fleets import SXM
from tests.unit.cloud.sites import (
    Clock,
    PlayedDriver,
    join,
    make_site,
    numbered,
    settle,
    states,
)
from va100.cloud.prices import MICRO
from va100.cloud.records import EntryRecord, InstanceRecord, MeterRecord
from va100.cloud.service.checkup import check_site
from va100.cloud.service.dispatcher import NotLeading
from va100.cloud.service.instances import Wish
from va100.errors import (
    BadRequest,
    Conflict,
    NoPlacement,
    NotFound,
    NotPermitted,
    PaymentRequired,
    QuotaExceeded,
)

SLICE = "sxm80:1g.10gb"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def driver():
    return PlayedDriver()


@pytest.fixture
def site(clock, driver):
    site = make_site(clock=clock, driver=driver)
    yield site
    site.context.database.close()


@pytest.fixture
def ann(site):
    return join(site, "ann")


def launch(site, actor, gpu=SLICE, name="one", **more):
    made = site.instances.launch(actor, Wish(gpu=gpu, name=name, **more))
    settle(site, 1)
    return made[0] if len(made) == 1 else made


class TestLife:
    def test_a_launched_instance_runs_on_its_place(self, site, ann, driver):
        one = launch(site, ann)
        shown = site.instances.show(ann, "one")
        assert (shown.state, shown.node, shown.generation) == ("running", "node-1", 1)
        assert driver.launched[0].place.profile == "1g.10gb"
        assert driver.running() == [one.id]

    def test_stop_frees_the_place_and_start_takes_one_again(self, site, ann, driver):
        launch(site, ann)
        site.instances.stop(ann, "one")
        settle(site)
        assert states(site, ann) == {"one": "stopped"}
        assert driver.running() == []
        site.instances.start(ann, "one")
        settle(site)
        assert site.instances.show(ann, "one").generation == 2

    def test_a_place_is_free_only_when_the_driver_says_so(self, site, ann, driver):
        launch(site, ann, gpu="sxm80:2")
        driver.slow_stop = True
        site.instances.stop(ann, "one")
        launch(site, ann, gpu="sxm80:2", name="two")
        settle(site)
        assert states(site, ann) == {"one": "stopping", "two": "pending"}
        driver.slow_stop = False
        settle(site)
        assert states(site, ann) == {"one": "stopped", "two": "running"}

    def test_delete_takes_the_disk_and_ends_all_charges(self, site, ann, driver, clock):
        one = launch(site, ann)
        site.instances.delete(ann, "one")
        settle(site)
        assert driver.removed == [one.id]
        assert states(site, ann) == {}
        balance = site.billing.balance(ann)
        clock.move(10_000)
        settle(site)
        assert site.billing.balance(ann) == balance

    def test_restart_keeps_the_instance(self, site, ann):
        launch(site, ann)
        site.instances.restart(ann, "one")
        settle(site)
        assert site.instances.show(ann, "one").generation == 2

    def test_a_shutdown_from_inside_frees_the_gpu_and_stops_its_charge(
        self, site, ann, driver, clock
    ):
        one = launch(site, ann)
        driver.exit(one.id, 3)
        settle(site)
        shown = site.instances.show(ann, "one")
        assert (shown.state, shown.exit_code) == ("exited", 3)
        with site.context.database.work() as work:
            assert work.count(MeterRecord, kind="gpu", to_s=None) == 0

    def test_a_lost_instance_goes_on_elsewhere(self, site, ann, driver):
        one = launch(site, ann)
        driver.lose(one.id)
        settle(site)
        assert site.instances.show(ann, "one").generation == 2
        assert "lost" in [event.kind for event in site.instances.events(ann, "one")]

    def test_a_failed_start_leaves_no_residue(self, site, ann, driver):
        driver.refuse = "no such image"
        launch(site, ann)
        settle(site, 8)
        shown = site.instances.show(ann, "one")
        assert (shown.state, shown.tries) == ("failed", 3)
        assert "no such image" in shown.reason
        assert site.instances.quota(ann)["eighths_used"] == 0
        driver.refuse = ""
        launch(site, ann, gpu="sxm80:2", name="two")
        assert states(site, ann)["two"] == "running"

    def test_resize_holds_from_the_next_start(self, site, ann):
        launch(site, ann)
        with pytest.raises(Conflict, match="stop it first"):
            site.instances.resize(ann, "one", "sxm80:2g.20gb")
        site.instances.stop(ann, "one")
        settle(site)
        site.instances.resize(ann, "one", "sxm80:2g.20gb")
        site.instances.start(ann, "one")
        settle(site)
        assert site.instances.show(ann, "one").profile == "2g.20gb"

    def test_a_gang_starts_together(self, site, ann):
        made = launch(site, ann, gpu="sxm80", count=2)
        assert {one.name for one in made} == {"one-0", "one-1"}
        assert set(states(site, ann).values()) == {"running"}

    def test_why_it_waits_is_told(self, site, ann):
        launch(site, ann, gpu="sxm80:2")
        launch(site, ann, gpu=SLICE, name="two")
        assert site.instances.show(ann, "two").reason_code == "busy"


class TestLease:
    def test_a_lease_ends_a_forgotten_instance_after_a_warning(self, site, ann, clock, driver):
        one = launch(site, ann, lease_s=1000, idle_stop_s=0)
        clock.move(500)
        settle(site)
        assert states(site, ann) == {"one": "running"}
        kinds = [event.kind for event in site.instances.events(ann, one.id)]
        assert "warning" in kinds
        clock.move(500)
        settle(site)
        assert states(site, ann) == {"one": "stopped"}
        assert driver.running() == []

    def test_a_renewed_lease_goes_on(self, site, ann, clock):
        launch(site, ann, lease_s=1000, idle_stop_s=0)
        clock.move(900)
        site.instances.renew(ann, "one")
        clock.move(900)
        settle(site)
        assert states(site, ann) == {"one": "running"}

    def test_idle_is_judged_by_the_gpu(self, site, ann, clock, driver):
        busy, idle = launch(site, ann, name="busy"), launch(site, ann, name="idle")
        driver.busy = {busy.id: 0.9, idle.id: 0.0}
        for _ in range(40):
            clock.move(100)
            settle(site, 1)
        assert states(site, ann) == {"busy": "running", "idle": "stopped"}
        kinds = [event.kind for event in site.instances.events(ann, "idle")]
        assert kinds.index("warning") > kinds.index("idle"), "latest first: it was told before"


class TestDisplacement:
    def promised(self, site, ann):
        owner = join(site, "owner")
        site.operators.guarantee(ann, owner.tenant, "sxm80", 1)
        return owner

    def test_the_owner_gets_its_promise_and_the_guest_its_notice(self, site, ann, clock):
        owner = self.promised(site, ann)
        launch(site, ann, gpu="sxm80", name="firm")
        launch(site, ann, gpu="sxm80", name="guest", market="borrow")
        launch(site, owner, gpu="sxm80", name="mine")
        assert site.instances.show(ann, "guest").notice_s == clock() + 10
        assert site.instances.show(owner, "mine").reason_code == "place-is-being-freed"
        clock.move(10)
        settle(site)
        assert states(site, owner) == {"mine": "running"}
        assert states(site, ann) == {"firm": "running", "guest": "pending"}
        kinds = [event.kind for event in site.instances.events(ann, "guest")]
        assert kinds.index("displaced") < kinds.index("notice"), "latest first"

    def test_a_displaced_spot_instance_recovers(self, site, ann, clock):
        launch(site, ann, gpu="sxm80:2", name="spot", market="spot")
        launch(site, ann, gpu="sxm80", name="firm")
        clock.move(10)
        settle(site)
        assert states(site, ann) == {"spot": "pending", "firm": "running"}
        site.instances.delete(ann, "firm")
        settle(site)
        assert states(site, ann) == {"spot": "running"}

    def test_a_gang_that_loses_one_waits_together(self, site, ann, clock):
        launch(site, ann, gpu="sxm80", name="spot", market="spot", count=2)
        launch(site, ann, gpu="sxm80", name="firm")
        clock.move(10)
        settle(site)
        assert states(site, ann) == {
            "spot-0": "pending", "spot-1": "pending", "firm": "running",
        }  # fmt: skip

    def test_displaced_while_it_starts_it_recovers(self, site, ann, clock, driver):
        site.instances.launch(ann, Wish(gpu="sxm80:2", name="spot", market="spot"))
        site.dispatcher._lead()
        site.dispatcher._plan()
        assert states(site, ann) == {"spot": "starting"}
        site.instances.launch(ann, Wish(gpu="sxm80", name="firm"))
        site.dispatcher._plan()
        clock.move(10)
        settle(site)
        assert states(site, ann) == {"spot": "pending", "firm": "running"}

    def test_a_promise_that_cannot_be_kept_changes_nothing(self, site, ann):
        owner = self.promised(site, ann)
        with pytest.raises(NoPlacement):
            site.operators.guarantee(ann, owner.tenant, "sxm80:2g.20gb", 4)
        launch(site, owner, gpu="sxm80", name="mine")
        assert site.instances.show(owner, "mine").tier == 3


class TestLending:
    def test_idle_training_is_lent_and_returned(self, site, ann, clock, driver):
        """Inference lands on it, training returns within the notice, the bill follows."""
        train = launch(site, ann, gpu="sxm80:2", name="train", lendable=True, idle_stop_s=0)
        driver.busy = {train.id: 0.0}
        clock.move(60)
        settle(site)
        assert site.instances.show(ann, "train").lent
        assert train.id in driver.paused
        launch(site, ann, gpu="sxm80:3g.40gb", name="infer", market="spot")
        assert states(site, ann)["infer"] == "running"
        before = {u.name: u.allocated_s for u in usage(site, ann)}
        clock.move(100)
        settle(site)
        after = {u.name: u.allocated_s for u in usage(site, ann)}
        assert (after["train"], after["infer"]) == (before["train"], 100)
        site.instances.recall(ann, "train")
        settle(site)
        assert site.instances.show(ann, "infer").notice_s == clock() + 10
        clock.move(10)
        settle(site)
        assert not site.instances.show(ann, "train").lent
        assert train.id not in driver.paused
        assert states(site, ann) == {"train": "running", "infer": "pending"}


def usage(site, actor):
    found = site.billing.usage(actor, 0, site.context.now_s())
    return [one for one in found if one.item.startswith("gpu:")]


class TestMoney:
    def test_slices_and_idle_come_to_the_cards_price(self, site, ann, clock):
        begun = clock()
        for number, gpu in enumerate(("sxm80:3g.40gb", SLICE, "sxm80:2g.20gb")):
            launch(site, ann, gpu=gpu, name=f"i{number}", idle_stop_s=0)
            clock.move(777)
        site.instances.stop(ann, "i0")
        settle(site)
        clock.move(1234)
        for gpu in (0, 1):
            account = site.operators.card_account(ann, "node-1", gpu, begun, clock())
            rate = 4_582_524 * (clock() - begun) // 3600
            assert abs(account.charged_micro + account.idle_micro - rate) < MICRO // 100

    def test_two_whole_cards_are_both_charged(self, site, ann, clock):
        launch(site, ann, gpu="sxm80:2", idle_stop_s=0)
        clock.move(3600)
        spent = 25 * MICRO - site.billing.balance(ann)
        assert abs(spent - 2 * 4_582_524) < 2000, "and a little for the disk"
        account = site.operators.card_account(ann, "node-1", 1, clock() - 3600, clock())
        assert account.idle_micro == 0

    def test_stopped_costs_its_disk(self, site, ann, clock):
        launch(site, ann, disk_gib=100)
        site.instances.stop(ann, "one")
        settle(site)
        before = site.billing.balance(ann)
        clock.move(3600)
        assert before - site.billing.balance(ann) == 137 * 100

    def test_spot_costs_less(self, site, ann, clock):
        launch(site, ann, market="spot", idle_stop_s=0)
        clock.move(3600)
        line = usage(site, ann)[0]
        assert line.discount_micro == line.charged_micro * 400 // 1000

    def test_without_money_nothing_is_launched(self, clock):
        site = make_site(clock=clock, welcome_micro=1000)
        ann = join(site, "ann")
        with pytest.raises(PaymentRequired, match="not enough"):
            site.instances.launch(ann, Wish(gpu=SLICE))
        site.billing.top_up(ann, MICRO, "card-1")
        site.billing.top_up(ann, MICRO, "card-1")
        assert site.billing.balance(ann) == MICRO + 1000, "a reference pays once"
        site.instances.launch(ann, Wish(gpu=SLICE))
        site.context.database.close()

    def test_used_up_money_stops_instances(self, site, ann, clock):
        launch(site, ann, gpu="sxm80:2", idle_stop_s=0)
        clock.move(4 * 3600)
        settle(site)
        assert states(site, ann) == {"one": "stopped"}
        assert site.instances.show(ann, "one").reason_code == "no-money"

    def test_a_new_price_holds_from_its_date(self, site, ann, clock):
        launch(site, ann, gpu="sxm80", idle_stop_s=0)
        site.billing.set_price(ann, f"gpu:{SXM}", 3_600_000, clock() + 100)
        clock.move(200)
        expected = 4_582_524 * 100 // 3600 + 100 * 1000
        assert abs(usage(site, ann)[0].charged_micro - expected) <= 1
        with pytest.raises(BadRequest, match="has passed"):
            site.billing.set_price(ann, f"gpu:{SXM}", 1, clock() - 1)

    def test_the_ledger_tells_when_a_line_was_changed(self, site, ann, clock):
        launch(site, ann)
        clock.move(100)
        settle(site)
        found = {c: g for c, g, _ in check_site(site.context.database, clock())}
        assert all(found.values()), found
        with site.context.database.work() as work:
            work.change(EntryRecord, {"amount_micro": 10**9}, number=1)
        found = {c: g for c, g, _ in check_site(site.context.database, clock())}
        assert not found["ledger"]


class TestLimits:
    @pytest.mark.parametrize(
        ("wish", "field"),
        [
            ({"gpu": "sxm80:0.5"}, "take the slice sxm80:4g.40gb"),
            ({"gpu": "h100"}, "not offered"),
            ({"gpu": "sxm80:9"}, "1 to 8 cards"),
            ({"gpu": "sxm80:9g.1gb"}, "no MIG profile"),
            ({"template": "none"}, "template"),
            ({"name": "no spaces"}, "name"),
            ({"name": "$(reboot)"}, "name"),
            ({"market": "free"}, "market"),
            ({"count": 0}, "count"),
            ({"environment": {"A B": "1"}}, "environment"),
            ({"environment": {"LD_PRELOAD": "x"}}, "set by the cloud"),
            ({"environment": {"CUDA_VISIBLE_DEVICES": "0,1"}}, "set by the cloud"),
            ({"environment": {"A": "\0"}}, "NUL"),
            ({"ports": [0]}, "ports"),
            ({"ssh_key": "ssh-rsa $(x)"}, "ssh_key"),
            ({"ssh_key": "ssh-ed25519 " + "A" * 68 + "\nmore"}, "ssh_key"),
            ({"lease_s": 1}, "lease_s"),
            ({"disk_gib": 0}, "disk_gib"),
            ({"command": ["a\0b"]}, "command"),
        ],
    )
    def test_what_means_nothing_is_refused(self, site, ann, wish, field):
        with pytest.raises(BadRequest, match=field):
            site.instances.launch(ann, Wish(**({"gpu": SLICE} | wish)))

    def test_quotas(self, site, ann):
        site.operators.set_tenant(ann, ann.tenant, {"most_instances": 1, "most_disk_gib": 50})
        with pytest.raises(QuotaExceeded, match="disk"):
            launch(site, ann, disk_gib=51)
        launch(site, ann)
        with pytest.raises(QuotaExceeded, match="instances"):
            launch(site, ann, name="two")
        site.operators.set_tenant(ann, ann.tenant, {"limit_eighths": 7, "most_instances": 9})
        with pytest.raises(QuotaExceeded, match="eighths"):
            launch(site, ann, gpu="sxm80", name="three")

    def test_a_suspended_tenant_launches_nothing(self, site, ann):
        site.operators.set_tenant(ann, ann.tenant, {"suspended": True})
        with pytest.raises(NotPermitted, match="suspended"):
            launch(site, ann)

    def test_a_host_without_isolation_takes_trusted_tenants_only(self, clock):
        site = make_site(clock=clock, driver=PlayedDriver(isolates=False))
        ann = join(site, "ann")
        with pytest.raises(NotPermitted, match="cannot keep tenants apart"):
            launch(site, ann)
        site.operators.set_tenant(ann, ann.tenant, {"trusted": True})
        launch(site, ann)
        assert states(site, ann) == {"one": "running"}
        site.context.database.close()

    def test_a_word_launches_once(self, site, ann):
        wish = Wish(gpu=SLICE, name="one")
        first = site.instances.launch(ann, wish, once="k")
        assert site.instances.launch(ann, wish, once="k") == first
        with pytest.raises(Conflict, match="another request"):
            site.instances.launch(ann, Wish(gpu=SLICE, name="two"), once="k")

    def test_names_are_a_tenants_own(self, site, ann):
        bob = join(site, "bob")
        launch(site, ann)
        with pytest.raises(Conflict, match="named one"):
            launch(site, ann)
        launch(site, bob)
        with pytest.raises(NotFound):
            site.instances.show(bob, site.instances.show(ann, "one").id)


class TestWorkers:
    def test_one_worker_leads_until_it_is_silent(self, tmp_path, clock, driver):
        url = f"sqlite:///{tmp_path}/cloud.db"
        one = make_site(url=url, clock=clock, driver=driver)
        two = make_site(url=url, clock=clock, driver=driver, token=numbered(10**9))
        assert one.dispatcher.tick()
        assert not two.dispatcher.tick()
        clock.move(16)
        assert two.dispatcher.tick()
        assert not one.dispatcher.tick()
        two.dispatcher.resign()
        assert one.dispatcher.tick()
        one.context.database.close()
        two.context.database.close()

    def test_one_that_was_replaced_changes_nothing(self, tmp_path, clock, driver):
        url = f"sqlite:///{tmp_path}/cloud.db"
        one = make_site(url=url, clock=clock, driver=driver)
        two = make_site(url=url, clock=clock, driver=driver, token=numbered(10**9))
        ann = join(one, "ann")
        one.dispatcher._lead()
        clock.move(16)
        two.dispatcher._lead()
        one.instances.launch(ann, Wish(gpu=SLICE, name="one"))
        with pytest.raises(NotLeading):
            one.dispatcher._plan()
        assert states(one, ann) == {"one": "pending"}
        one.context.database.close()
        two.context.database.close()

    @pytest.mark.parametrize("die_at", range(1, 14))
    def test_killed_between_any_two_transactions_nothing_is_lost(
        self, tmp_path, clock, driver, die_at
    ):
        """The dispatcher's transactions fail from some point on; another worker goes on."""
        url = f"sqlite:///{tmp_path}/cloud.db"
        one = make_site(url=url, clock=clock, driver=driver)
        ann = join(one, "ann")
        for number in range(3):
            one.instances.launch(ann, Wish(gpu="sxm80:2g.20gb", name=f"i{number}"))
        one.instances.launch(ann, Wish(gpu="sxm80", name="gang", count=1))
        counted = count_transactions(one, die_at)
        with contextlib.suppress(Died):
            one.dispatcher.tick()
        counted.clear()
        two = make_site(url=url, clock=clock, driver=driver, token=numbered(10**9))
        clock.move(16)
        settle(two, 3)
        assert set(states(two, ann).values()) == {"running"}
        assert len(driver.launched) == len(driver.running()) == 4
        found = check_site(two.context.database, clock())
        assert all(good for _, good, _ in found), found
        one.context.database.close()
        two.context.database.close()


class Died(BaseException):
    """A worker's end."""


def count_transactions(site, die_at):
    """Let a site's dispatcher die as it begins a transaction."""
    work, left = site.dispatcher._work, [die_at]

    def counted():
        if left:
            left[0] -= 1
            if left[0] == 0:
                raise Died
        return work()

    site.dispatcher._work = counted
    return left


def test_defragmentation_is_planned(site, ann):
    for number in range(2):
        launch(site, ann, gpu="sxm80:4g.40gb", name=f"f{number}")
    launch(site, ann, gpu="sxm80:1g.10gb", name="s0", market="spot")
    plan = site.operators.defragment(ann, "sxm80:1g.10gb")
    assert (plan.moves, plan.under_way) == ((), ())


def test_the_fleet_is_drawn(site, ann):
    launch(site, ann, gpu="sxm80:3g.40gb")
    cards = site.operators.fleet(ann)
    assert [(len(card.parts), card.state) for card in cards] == [(1, "ready"), (0, "ready")]
    assert (cards[0].parts[0].start, cards[0].parts[0].width) == (4, 4)
    figures = site.operators.figures()
    assert figures["eighths_used"] == 4
    assert figures["instances"]["running"] == 1


def test_a_node_is_drained_before_it_is_removed(site, ann):
    launch(site, ann)
    site.operators.set_node(ann, "node-1", "draining")
    launch(site, ann, name="two")
    assert states(site, ann) == {"one": "running", "two": "pending"}
    with pytest.raises(Conflict, match="drain"):
        site.operators.remove_node(ann, "node-1")
    for name in ("one", "two"):
        site.instances.delete(ann, name)
    settle(site)
    site.operators.remove_node(ann, "node-1")


def test_operators_things_are_operators_alone(site, ann):
    bob = join(site, "bob")
    for call in (
        lambda: site.operators.fleet(bob),
        lambda: site.operators.tenants(bob),
        lambda: site.operators.set_node(bob, "node-1", "down"),
        lambda: site.operators.guarantee(bob, bob.tenant, "sxm80", 1),
        lambda: site.operators.audit(bob, tenant=ann.tenant),
        lambda: site.billing.set_price(bob, f"gpu:{SXM}", 1, None),
    ):
        with pytest.raises(NotPermitted):
            call()


def test_nothing_of_an_instance_is_kept_twice(site, ann):
    launch(site, ann)
    with site.context.database.work() as work:
        assert work.count(InstanceRecord) == 1
        assert work.count(MeterRecord, to_s=None) == 2, "its GPU and its disk"
