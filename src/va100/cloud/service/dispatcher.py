"""The dispatcher: one elected worker that makes what is wanted so.

Each tick looks at how instances stand, ends what is over, plans with the scheduler and asks drivers
to start and stop.  All that it knows is in the database, and each step may be done again, so it
can be killed between any two.  A place is free only once the driver says that nothing is there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from va100.cloud.drivers.base import Assignment, Driver, Phase, Reading, Status
from va100.cloud.fleet import Fleet
from va100.cloud.geometry import CHIPS, EIGHTHS
from va100.cloud.ledger import Kind
from va100.cloud.models import Place, Shape, Tier
from va100.cloud.records import (
    PLACED,
    ClaimRecord,
    InstanceRecord,
    LockRecord,
    NodeRecord,
    ReplyRecord,
    SampleRecord,
    State,
    TenantRecord,
)
from va100.cloud.scheduler import Plan, decide
from va100.cloud.service import snapshot
from va100.cloud.service.billing import (
    Billing,
    balance_micro,
    close_meters,
    open_disk_meter,
    open_meter,
)
from va100.cloud.service.context import Context, record_event
from va100.cloud.service.idleness import (
    GRACE_S,
    ask_back,
    is_paused,
    lend_idle,
    warned_left_s,
)
from va100.cloud.service.instances import no_place, shape_of, waiting_again
from va100.cloud.service.moving import target_of
from va100.cloud.store.database import Work
from va100.cloud.templates import Template
from va100.errors import Va100Error

LOG: Final = logging.getLogger("va100.cloud.dispatcher")
_LOCK: Final = "dispatcher"
_LOCK_S: Final = 15
_LAUNCHING_S: Final = 3.0
_PROGRAMS_BYTES: Final = 2 << 30
"""Memory for programs themselves, for an eighth of a card."""


class NotLeading(Exception):
    """Another worker leads now."""


class Dispatcher:
    """Makes what is wanted so, while this worker is the elected one."""

    def __init__(
        self,
        context: Context,
        drivers: Mapping[str, Driver],
        templates: Mapping[str, Template],
        owner: str,
    ) -> None:
        self.context = context
        self.drivers = drivers
        self.templates = templates
        self.owner = owner
        self.billing = Billing(context)
        self.term = 0
        self.sampled_s = 0.0

    def tick(self) -> bool:
        """Do what there is to do, if this worker leads; whether it does."""
        if not self._lead():
            return False
        try:
            self._observe()
            self._enforce()
            self._watch_lent()
            self._plan()
            self._observe()
            self._sample()
            self.billing.post_meters(every_s=self.context.options.meter_s)
        except NotLeading:
            LOG.warning("another worker leads now")
            return False
        return True

    def resign(self) -> None:
        """Let another worker lead at once."""
        with self.context.database.work() as work:
            work.change(LockRecord, {"until_s": 0.0}, name=_LOCK, owner=self.owner)

    # ------------------------------------------------------------ who leads

    def _lead(self) -> bool:
        now_s = self.context.clock()
        with self.context.database.work() as work:
            lock = work.get(LockRecord, name=_LOCK)
            if lock is None:
                work.add(LockRecord(name=_LOCK, owner=self.owner, until_s=now_s + _LOCK_S, term=1))
                self.term = 1
                return True
            if lock.owner != self.owner and lock.until_s > now_s:
                return False
            term = lock.term + (lock.owner != self.owner)
            values = {"owner": self.owner, "until_s": now_s + _LOCK_S, "term": term}
            changed = work.change(LockRecord, values, name=_LOCK, term=lock.term)
            self.term = term
            return bool(changed)

    @contextmanager
    def _work(self) -> Iterator[Work]:
        """A transaction of the elected worker; one that was replaced changes nothing."""
        with self.context.database.work() as work:
            lock = work.get(LockRecord, name=_LOCK)
            if lock is None or (lock.owner, lock.term) != (self.owner, self.term):
                raise NotLeading
            if lock.until_s - self.context.clock() < _LOCK_S / 2:  # a tick may take long
                renewed = {"until_s": self.context.clock() + _LOCK_S}
                work.change(LockRecord, renewed, name=_LOCK, term=self.term)
            yield work

    # ------------------------------------------------------------ how instances stand

    def _observe(self) -> None:
        with self._work() as work:
            placed = work.all(InstanceRecord, state__in=list(PLACED))
            drivers = {node.name: node.driver for node in work.all(NodeRecord)}
            trusted = {t.id for t in work.all(TenantRecord, trusted=True)}
        begun = self.context.clock()
        # Lenders are paused, and those who leave are told, before anyone new begins.
        for instance in sorted(placed, key=lambda one: (one.state == State.STARTING, one.id)):
            if instance.state == State.STARTING and self.context.clock() - begun > _LAUNCHING_S:
                break  # the rest of them in the next tick: others should not wait for it
            driver = self.drivers.get(drivers.get(instance.node, ""))
            if driver is None and instance.state != State.STOPPING:
                continue  # its node is another site's, or is gone: an operator deletes it
            try:
                if driver is None:
                    self._ended(instance)
                else:
                    self._attend(instance, driver, trusted=instance.tenant in trusted)
            except (Va100Error, OSError) as error:
                LOG.exception("instance %s: %s", instance.id, error)

    def _attend(self, instance: InstanceRecord, driver: Driver, *, trusted: bool) -> None:
        status = driver.status(instance.id, instance.generation)
        gone = status.phase in (Phase.ABSENT, Phase.EXITED)
        if instance.state == State.STOPPING:
            if gone:
                self._finish_stop(instance, driver)
            else:
                driver.stop(instance.id, grace_s=GRACE_S)
        elif instance.state == State.STARTING:
            was_there = status.phase is not Phase.ABSENT
            if not was_there:
                self._launch(instance, driver, trusted=trusted)
                status = driver.status(instance.id, instance.generation)
            if status.phase in (Phase.RUNNING, Phase.EXITED):
                self._now_runs(instance)
            elif was_there and self._is_slow(instance):
                self._failed_start(instance, "it did not start in time")
        elif gone:
            self._gone(instance, status)
        elif is_paused(instance) != status.paused:
            (driver.resume if status.paused else driver.pause)(instance.id)
        elif status.trouble != instance.reason:
            self._note_trouble(instance, status.trouble)

    def _note_trouble(self, instance: InstanceRecord, trouble: str) -> None:
        """Show a running instance's tenant what it ran into, and that it is over."""
        code = "limit" if trouble else ""
        with self._work() as work:
            values = {"reason": trouble[:500], "reason_code": code}
            running = work.change(InstanceRecord, values, id=instance.id, state=State.RUNNING)
            if running and trouble:
                self._tell(work, instance, "limit", trouble[:500])

    def _is_slow(self, instance: InstanceRecord) -> bool:
        since_s = self.context.now_s() - instance.placed_s
        return since_s > self.context.options.start_timeout_s

    def _launch(self, instance: InstanceRecord, driver: Driver, *, trusted: bool) -> None:
        template = self.templates.get(instance.template)
        try:
            driver.launch(
                Assignment(
                    instance=instance.id,
                    generation=instance.generation,
                    tenant=instance.tenant,
                    name=instance.name,
                    shape=shape_of(instance),
                    place=snapshot.place_of(instance),
                    command=tuple(instance.command),
                    environment=instance.environment,
                    files=template.files if template else {},
                    image=template.image if template else "",
                    ports=tuple(instance.ports),
                    disk_bytes=instance.disk_gib << 30,
                    memory_bytes=self._memory_bytes(shape_of(instance)),
                    ssh_key=instance.ssh_key,
                    trusted=trusted,
                )
            )
        except (Va100Error, OSError) as error:
            self._failed_start(instance, str(error))
            return
        with self._work() as work:  # from now on it can be slow
            values = {"placed_s": self.context.now_s()}
            work.change(InstanceRecord, values, id=instance.id, state=State.STARTING)

    def _memory_bytes(self, shape: Shape) -> int:
        """Of the host; what a virtual card holds is there, too."""
        each = self.context.options.memory_per_eighth_bytes
        if each is None:
            each = CHIPS[shape.model].memory_bytes // EIGHTHS + _PROGRAMS_BYTES
        return each * shape.eighths

    def _failed_start(self, instance: InstanceRecord, problem: str) -> None:
        """A start that came to nothing: the place is let go, and tried anew a few times."""
        tries = instance.tries + 1
        given_up = tries >= self.context.options.most_tries
        with self._work() as work:
            changed = work.change(
                InstanceRecord,
                {
                    "state": State.STOPPING,
                    "then": State.FAILED if given_up else State.PENDING,
                    "tries": tries,
                    "reason": problem[:500],
                    "reason_code": "start-failed",
                },
                id=instance.id,
                state=State.STARTING,
                generation=instance.generation,
            )
            if changed:
                self._tell(work, instance, "start-failed", problem[:500])

    def _now_runs(self, instance: InstanceRecord) -> None:
        now_s = self.context.now_s()
        with self._work() as work:
            changed = work.change(
                InstanceRecord,
                {
                    "state": State.RUNNING,
                    "started_s": now_s,
                    "busy_s": now_s,
                    "ends_s": now_s + instance.lease_s,
                    "warned_s": None,
                    "tries": 0,
                    "reason": "",
                    "reason_code": "",
                },
                id=instance.id,
                state=State.STARTING,
                generation=instance.generation,
            )
            if changed:
                open_meter(self.context, work, instance, shape_of(instance))
                self._tell(work, instance, "running", f"on {snapshot.place_of(instance)}")

    def _gone(self, instance: InstanceRecord, status: Status) -> None:
        """What ran is not there: it ended by itself, or was lost with its host."""
        if status.phase is Phase.EXITED:
            code = status.exit_code
            text = f"its program ended with status {code}; the GPU is free and not charged any more"
            text += f" ({status.trouble})" if status.trouble else ""
            self._leave(instance, State.EXITED, "exited", text, exit_code=code)
            return
        then = State.PENDING if instance.recover else State.FAILED
        self._leave(instance, then, "lost", "it was lost with its host")

    def _leave(
        self,
        instance: InstanceRecord,
        then: str,
        kind: str,
        text: str,
        *,
        exit_code: int | None = None,
    ) -> None:
        """Begin to end a running instance, and its gang, if that goes on elsewhere."""
        with self._work() as work:
            ended = {"state": State.STOPPING, "then": then, "exit_code": exit_code, "reason": text}
            if not work.change(
                InstanceRecord,
                {**ended, "reason_code": kind},
                id=instance.id,
                state__in=[State.STARTING, State.RUNNING],
                generation=instance.generation,
            ):
                return
            close_meters(self.context, work, instance.id, Kind.GPU)
            self._tell(work, instance, kind, text)
            if instance.gang and then == State.PENDING:
                self._leave_with(work, instance, kind)

    def _leave_with(self, work: Work, instance: InstanceRecord, kind: str) -> None:
        """End the rest of a gang, so that it goes on together."""
        mates = work.all(
            InstanceRecord,
            gang=instance.gang,
            id__not=instance.id,
            state__in=[State.STARTING, State.RUNNING],
        )
        values: dict[str, Any] = {
            "state": State.STOPPING,
            "then": State.PENDING,
            "reason": f"with {instance.name}, whose gang it is of",
            "reason_code": kind,
        }
        for mate in mates:
            work.change(InstanceRecord, values, id=mate.id)
            close_meters(self.context, work, mate.id, Kind.GPU)
            self._tell(work, mate, kind, values["reason"])

    def _finish_stop(self, instance: InstanceRecord, driver: Driver) -> None:
        if instance.then == State.DELETED:
            driver.remove(instance.id)
        self._ended(instance)

    def _ended(self, instance: InstanceRecord) -> None:
        """Nothing is there any more: the place is free."""
        now_s = self.context.now_s()
        with self._work() as work:
            current = work.get(InstanceRecord, id=instance.id)
            if current is None or current.state != State.STOPPING:
                return
            close_meters(self.context, work, instance.id, Kind.GPU)
            if current.then == State.PENDING:
                again = waiting_again(now_s) | {"tries": current.tries}
                again |= {"reason": current.reason, "reason_code": current.reason_code}
                work.change(InstanceRecord, again, id=instance.id)
                return
            values = no_place() | {"state": current.then, "then": "", "stopped_s": now_s}
            work.change(InstanceRecord, values, id=instance.id)
            work.remove(ClaimRecord, request=instance.id)
            if current.then == State.DELETED:
                close_meters(self.context, work, instance.id, Kind.DISK)
                work.remove(SampleRecord, instance=instance.id)
            self._tell(work, current, current.then, current.reason)

    def _tell(self, work: Work, instance: InstanceRecord, kind: str, text: str) -> None:
        record_event(self.context, work, instance.tenant, instance.id, kind, text)
        LOG.info("instance %s %s: %s", instance.id, kind, text)

    # ------------------------------------------------------------ what is over

    def _enforce(self) -> None:
        """End what has no right to go on, and say so before."""
        now_s = self.context.now_s()
        with self._work() as work:
            running = work.all(InstanceRecord, state__in=[State.STARTING, State.RUNNING])
            broke = {
                tenant.id
                for tenant in work.all(TenantRecord, id__in=[i.tenant for i in running])
                if balance_micro(work, tenant.id) <= -tenant.credit_limit_micro
            }
            work.remove(ReplyRecord, created_s__lt=now_s - 86_400)
        for instance in running:
            if instance.notice_s is not None and instance.notice_s <= now_s:
                then = State.PENDING if instance.recover else State.STOPPED
                with self._work() as work:
                    target = target_of(work, instance)
                if target:
                    self._leave(instance, then, "moved", f"it goes on at {target}")
                else:
                    why = "its place went to one with more right"
                    self._leave(instance, then, "displaced", why)
            elif instance.ends_s is not None and instance.ends_s <= now_s:
                self._leave(instance, State.STOPPED, "lease-over", "its lease is over")
            elif instance.tenant in broke and instance.state == State.RUNNING:
                self._leave(instance, State.STOPPED, "no-money", "the tenant's money is used up")
            elif not instance.lent:
                self._mind_idleness(instance, now_s)

    def _mind_idleness(self, instance: InstanceRecord, now_s: int) -> None:
        options = self.context.options
        idle_s = now_s - instance.busy_s if instance.busy_s is not None else 0
        limit_s = instance.idle_stop_s
        if limit_s is not None and idle_s >= limit_s:
            text = f"its GPU did nothing for {idle_s} s"
            self._leave(instance, State.STOPPED, "idle", text)
        elif instance.lendable and not instance.gang and idle_s >= options.lend_after_s:
            if instance.tier >= Tier.STANDARD and instance.state == State.RUNNING:
                work_ns = self._work_ns(instance)
                with self._work() as work:
                    lend_idle(self.context, work, instance, idle_s, work_ns)
        elif instance.warned_s is None:
            left = warned_left_s(options, instance, idle_s, now_s)
            if left is not None:
                text = f"it will be stopped in {left[0]} s: {left[1]}"
                with self._work() as work:
                    work.change(InstanceRecord, {"warned_s": now_s}, id=instance.id)
                    self._tell(work, instance, "warning", text)

    def _work_ns(self, instance: InstanceRecord) -> int | None:
        """GPU time that an instance has used, as its driver tells."""
        with self._work() as work:
            node = work.get(NodeRecord, name=instance.node)
        driver = self.drivers.get(node.driver) if node else None
        return driver.gpu_work_ns(instance.id) if driver else None

    def _watch_lent(self) -> None:
        """Recall the place of those whose programs have GPU work again."""
        with self._work() as work:
            watched = work.all(
                InstanceRecord, state=State.RUNNING, lent=True, recalled=False,
                watched_ns__not=None,
            )  # fmt: skip
        for instance in watched:
            work_ns = self._work_ns(instance)
            if work_ns is None or work_ns > (instance.watched_ns or 0):
                with self._work() as work:
                    ask_back(self.context, work, instance, "it has GPU work again")

    # ------------------------------------------------------------ the scheduler

    def _plan(self) -> None:
        now_s = self.context.now_s()
        with self._work() as work:
            work.serialise("fleet")
            self._close_lent_meters(work)
            site = snapshot.read(work, usable=set(self.drivers))
            if not site.requests and not site.returning and not site.claims:
                return
            fleet = Fleet(site.nodes, site.leases, site.homes, site.claims)
            plan = decide(
                fleet, site.requests, site.tenants, self.context.options.policy, now_s,
                site.returning,
            )  # fmt: skip
            self._apply(work, plan, fleet, site.instances)

    def _close_lent_meters(self, work: Work) -> None:
        for instance in work.all(InstanceRecord, lent=True, state=State.RUNNING):
            close_meters(self.context, work, instance.id, Kind.GPU)

    def _apply(
        self, work: Work, plan: Plan, fleet: Fleet, instances: Mapping[str, list[InstanceRecord]]
    ) -> None:
        now_s = self.context.now_s()
        for start in plan.starts:
            for instance, lease in zip(instances[start.request.name], start.leases, strict=True):
                placed = instance_at(instance, lease.place, int(lease.tier), now_s)
                work.change(InstanceRecord, placed, id=instance.id, state=State.PENDING)
                open_disk_meter(self.context, work, instance)
                self._tell(work, instance, "placed", f"{lease.place}, {lease.tier.name.lower()}")
        for notice in plan.notices:
            told: dict[str, Any] = {"notice_s": notice.at_s, "claimed_by": notice.claimed_by}
            work.change(InstanceRecord, told, id=notice.lease)
            for instance in work.all(InstanceRecord, id=notice.lease):
                text = f"its place will be taken in {notice.at_s - now_s} s: save what you need"
                self._tell(work, instance, "notice", text)
        for name in plan.resumed:
            values = {"lent": False, "recalled": False, "watched_ns": None, "busy_s": now_s,
                      "notice_s": None}  # fmt: skip
            work.change(InstanceRecord, values, id=name)
            for instance in work.all(InstanceRecord, id=name):
                open_meter(self.context, work, instance, shape_of(instance))
                self._tell(work, instance, "returned", "it has its place again")
        for name, why in plan.refusals.items():
            for instance in instances.get(name, []):
                if (instance.reason, instance.reason_code) != (why.text, why.reason.value):
                    waits = {"reason": why.text, "reason_code": why.reason.value}
                    work.change(InstanceRecord, waits, id=instance.id, state=State.PENDING)
        work.remove(ClaimRecord)
        work.add(*(snapshot.claim_record(claim) for claim in fleet.claims.values()))

    # ------------------------------------------------------------ figures

    def _sample(self) -> None:
        """Take running instances' figures now and then; a GPU at work is not idle."""
        options = self.context.options
        now = self.context.clock()
        if now - self.sampled_s < options.sample_s:
            return
        self.sampled_s = now
        with self._work() as work:
            running = work.all(InstanceRecord, state=State.RUNNING, lent=False)
            drivers = {node.name: node.driver for node in work.all(NodeRecord)}
        readings = []
        for instance in running:
            driver = self.drivers.get(drivers.get(instance.node, ""))
            reading = driver.reading(instance.id) if driver else None
            # What is not known is not idle.
            readings.append((instance, reading or Reading(cpu_s=0.0, memory_bytes=0)))
        with self._work() as work:
            for instance, reading in readings:
                ratio = 0.0 if reading.busy_ratio is None else reading.busy_ratio
                work.add(
                    SampleRecord(
                        id=f"s-{self.context.token(8)}",
                        instance=instance.id,
                        at_s=int(now),
                        busy_ratio=ratio,
                        memory_bytes=reading.gpu_memory_bytes or reading.memory_bytes,
                        cpu_s=reading.cpu_s,
                    )
                )
                if ratio > 0 or reading.busy_ratio is None:
                    busy: dict[str, Any] = {"busy_s": int(now)}
                    if instance.warned_s is not None and not self._ends_soon(instance, now):
                        busy["warned_s"] = None
                    work.change(InstanceRecord, busy, id=instance.id, state=State.RUNNING)
            work.remove(SampleRecord, at_s__lt=int(now) - options.keep_samples_s)

    def _ends_soon(self, instance: InstanceRecord, now: float) -> bool:
        return instance.ends_s is not None and instance.ends_s - now <= self.context.options.warn_s


def instance_at(instance: InstanceRecord, place: Place, tier: int, now_s: int) -> dict[str, Any]:
    """What changes when an instance gets a place."""
    return {
        "state": State.STARTING,
        "node": place.node,
        "gpus": list(place.gpus),
        "start": place.start,
        "tier": tier,
        "placed_s": now_s,
        "generation": instance.generation + 1,
        "notice_s": None,
        "claimed_by": "",
        "lent": False,
        "recalled": False,
        "watched_ns": None,
        "reason": "",
        "reason_code": "",
    }
