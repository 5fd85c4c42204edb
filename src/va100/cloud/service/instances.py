"""Instances as their tenants handle them: launch, list, stop, start, resize, renew, delete.

Operations change what is wanted; :mod:`va100.cloud.service.dispatcher` makes it so.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from va100.cloud.drivers.base import Driver, Finished
from va100.cloud.geometry import EIGHTHS
from va100.cloud.models import Market, Shape, Tier
from va100.cloud.prices import DENOMINATOR, DISK, HOUR_S
from va100.cloud.products import Product, parse_shape, per_h_micro, products
from va100.cloud.records import (
    ALIVE,
    PLACED,
    RESTING,
    EventRecord,
    InstanceRecord,
    NodeRecord,
    ReplyRecord,
    SampleRecord,
    State,
    TenantRecord,
)
from va100.cloud.service.billing import balance_micro, price_book, require_money
from va100.cloud.service.context import Actor, Context, record_audit, record_event
from va100.cloud.service.idleness import ask_back, is_paused
from va100.cloud.store.database import Work
from va100.cloud.templates import Template
from va100.errors import BadRequest, BeingReturned, Conflict, NotFound, NotPermitted, QuotaExceeded

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,46}[a-z0-9])?")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_SSH_KEY: Final = re.compile(
    r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)|sk-ssh-ed25519@openssh\.com) "
    r"[A-Za-z0-9+/]{40,4000}={0,3}(?: [\x20-\x7e]{0,100})?"
)
_RESERVED: Final = re.compile(r"(?:CUDA_VISIBLE_DEVICES|NVIDIA_.*|VA100_.*|LD_.*|PYTHONHOME)")
_MOST_VARIABLES: Final = 64
_MOST_VALUE: Final = 4096
_MOST_PORTS: Final = 8
MOST_GANG: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a tenant asks for."""

    gpu: str
    template: str = "cuda"
    name: str = ""
    market: str = Market.ON_DEMAND.value
    count: int = 1
    """More than one: a gang, which starts together."""
    nvlink: bool = False
    disk_gib: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    ports: Sequence[int] = ()
    ssh_key: str = ""
    command: Sequence[str] = ()
    lease_s: int | None = None
    idle_stop_s: int | None = None
    """0: never stop it for being idle; none: as the site does."""
    lendable: bool = False
    recover: bool = True


class Instances:
    """Operations on instances."""

    def __init__(
        self,
        context: Context,
        templates: Mapping[str, Template],
        drivers: Mapping[str, Driver],
        wake: Callable[[], None],
    ) -> None:
        self.context = context
        self.templates = templates
        self.drivers = drivers
        self.wake = wake
        """Tells the dispatcher that there is something to do."""

    # ------------------------------------------------------------ what there is

    def offers(self) -> list[Product]:
        """Everything that can be rented here, with the prices of now."""
        with self.context.database.work() as work:
            most: dict[str, int] = {}
            for node in work.all(NodeRecord, state__not="down"):
                most[node.model] = max(most.get(node.model, 0), node.gpu_count)
            off = self.context.options.spot_discount_per_mille
            found = products(most, price_book(work), self.context.now_s(), off)
        return [one for one in found if one.shape.cards <= most[one.shape.model]]

    def of_tenant(
        self, actor: Actor, *, after: str = "", limit: int = 50, deleted: bool = False
    ) -> list[InstanceRecord]:
        """The tenant's instances, by identifier; those after one."""
        actor.require("instances:read")
        conditions: dict[str, Any] = {} if deleted else {"state__not": State.DELETED}
        with self.context.database.work() as work:
            return work.all(
                InstanceRecord,
                tenant=actor.tenant,
                id__gt=after,
                order=("id",),
                limit=limit,
                **conditions,
            )

    def show(self, actor: Actor, name: str) -> InstanceRecord:
        """One instance by its identifier, or by its name among those that are there.

        Raises
        ------
        NotFound
            The tenant has none of that name, whoever else may.
        """
        actor.require("instances:read")
        with self.context.database.work() as work:
            return self._find(work, actor, name)

    def _find(self, work: Work, actor: Actor, name: str) -> InstanceRecord:
        found = work.get(InstanceRecord, id=name, tenant=actor.tenant) or work.get(
            InstanceRecord, name=name, tenant=actor.tenant, state__not=State.DELETED
        )
        if found is None:
            raise NotFound("instance", name)
        return found

    def events(self, actor: Actor, name: str, *, limit: int = 100) -> list[EventRecord]:
        """What happened to an instance, latest first."""
        found = self.show(actor, name)
        with self.context.database.work() as work:
            return work.all(EventRecord, instance=found.id, order=("-at_s", "-id"), limit=limit)

    def samples(self, actor: Actor, name: str, *, since_s: int) -> list[SampleRecord]:
        """An instance's figures since a moment."""
        found = self.show(actor, name)
        with self.context.database.work() as work:
            return work.all(
                SampleRecord, instance=found.id, at_s__gt=since_s, order=("at_s",), limit=2000
            )

    def quota(self, actor: Actor) -> dict[str, int]:
        """What the tenant has of what it may have."""
        actor.require("instances:read")
        with self.context.database.work() as work:
            tenant = work.get(TenantRecord, id=actor.tenant)
            assert tenant is not None
            there = work.all(InstanceRecord, tenant=actor.tenant, state__not=State.DELETED)
        return {
            "eighths_used": sum(shape_of(i).eighths for i in there if i.state in PLACED),
            "eighths_limit": tenant.limit_eighths,
            "instances_used": len(there),
            "instances_limit": tenant.most_instances,
            "disk_gib_used": sum(i.disk_gib for i in there),
            "disk_gib_limit": tenant.most_disk_gib,
        }

    # ------------------------------------------------------------ launch

    def launch(self, actor: Actor, wish: Wish, *, once: str = "") -> list[InstanceRecord]:
        """Ask for an instance, or a gang; they wait for a place.

        Parameters
        ----------
        once : str
            The same wish with the same word, sent again within a day, launches nothing new.

        Raises
        ------
        BadRequest, QuotaExceeded, PaymentRequired, NotPermitted
        """
        actor.require("instances:write")
        template = self.templates.get(wish.template)
        if template is None:
            known = ", ".join(sorted(self.templates))
            raise BadRequest(f"{wish.template!r} is none of {known}", field="template")
        _require_legal(wish)
        with self.context.database.work() as work:
            work.serialise(f"tenant {actor.tenant}")
            before = self._before(work, actor, wish, once)
            if before:
                return before
            tenant = work.get(TenantRecord, id=actor.tenant)
            assert tenant is not None
            if tenant.suspended:
                raise NotPermitted("this tenant is suspended: ask an operator")
            nodes = work.all(NodeRecord, state__not="down")
            shape = parse_shape(wish.gpu, {node.model for node in nodes})
            self._require_isolation(tenant, [n for n in nodes if n.model == shape.model])
            disk_gib = template.disk_gib if wish.disk_gib is None else wish.disk_gib
            self._require_quota(work, tenant, shape, wish, disk_gib)
            now_s = self.context.now_s()
            book = price_book(work)
            hourly = per_h_micro(shape, book, now_s) * wish.count
            hourly += book.at(DISK, now_s) * disk_gib * EIGHTHS * HOUR_S // DENOMINATOR
            require_money(self.context, work, tenant, hourly)
            made = self._records(actor, wish, template, shape, disk_gib)
            self._require_free_names(work, actor, [one.name for one in made])
            work.add(*made)
            if once:
                work.add(self._reply(actor, wish, once, made))
            for one in made:
                record_audit(self.context, work, actor, "launch", one.id, str(shape))
                record_event(
                    self.context, work, actor.tenant, one.id, "asked", f"{shape}, {wish.market}"
                )
        self.wake()
        return made

    def _before(self, work: Work, actor: Actor, wish: Wish, once: str) -> list[InstanceRecord]:
        """What the same wish launched before."""
        reply = work.get(ReplyRecord, id=f"{actor.tenant}:{once}") if once else None
        if reply is None:
            return []
        if reply.digest != _digest(wish):
            raise Conflict("this idempotency key was used for another request")
        return work.all(InstanceRecord, id__in=json.loads(reply.body), order=("id",))

    def _reply(
        self, actor: Actor, wish: Wish, once: str, made: Sequence[InstanceRecord]
    ) -> ReplyRecord:
        return ReplyRecord(
            id=f"{actor.tenant}:{once}",
            digest=_digest(wish),
            status=201,
            body=json.dumps([one.id for one in made]),
            created_s=self.context.now_s(),
        )

    def _require_isolation(self, tenant: TenantRecord, nodes: Sequence[NodeRecord]) -> None:
        if tenant.trusted:
            return
        for node in nodes:
            driver = self.drivers.get(node.driver)
            if driver is not None and driver.isolation().isolates:
                return
        kinds = {n.driver: self.drivers[n.driver].isolation().how for n in nodes
                 if n.driver in self.drivers}  # fmt: skip
        why = "; ".join(f"{name}: {how}" for name, how in kinds.items())
        raise NotPermitted(
            "this host cannot keep tenants apart, so it runs programs of trusted tenants only "
            f"({why}); an operator can trust this tenant"
        )

    def _require_quota(
        self, work: Work, tenant: TenantRecord, shape: Shape, wish: Wish, disk_gib: int
    ) -> None:
        there = work.all(InstanceRecord, tenant=tenant.id, state__not=State.DELETED)
        for resource, used, more, limit in (
            ("instances", len(there), wish.count, tenant.most_instances),
            ("GiB of disk", sum(i.disk_gib for i in there), disk_gib * wish.count,
             tenant.most_disk_gib),
            ("eighths of a card", 0, shape.eighths * wish.count, tenant.limit_eighths),
        ):  # fmt: skip
            if used + more > limit:
                raise QuotaExceeded(resource=resource, requested=used + more, limit=limit)

    def _require_free_names(self, work: Work, actor: Actor, names: Sequence[str]) -> None:
        taken = work.all(
            InstanceRecord, tenant=actor.tenant, name__in=list(names), state__not=State.DELETED
        )
        if taken:
            raise Conflict(f"an instance named {taken[0].name} is there already")

    def _records(
        self, actor: Actor, wish: Wish, template: Template, shape: Shape, disk_gib: int
    ) -> list[InstanceRecord]:
        options = self.context.options
        now_s = self.context.now_s()
        base = wish.name or f"{template.name}-{self.context.token(3)}"
        gang = f"g-{self.context.token(6)}" if wish.count > 1 else ""
        idle_s = options.idle_stop_s if wish.idle_stop_s is None else wish.idle_stop_s
        return [
            InstanceRecord(
                # Identifiers grow with time, so that lists go on where they ended.
                id=f"i-{now_s:08x}{self.context.token(5)}",
                tenant=actor.tenant,
                person=actor.person,
                name=base if wish.count == 1 else f"{base}-{number}",
                template=template.name,
                model=shape.model,
                profile=shape.profile,
                cards=shape.cards,
                market=wish.market,
                disk_gib=disk_gib,
                environment={**template.environment, **wish.environment},
                ports=sorted({*template.ports, *wish.ports}),
                ssh_key=wish.ssh_key.strip(),
                command=list(wish.command or template.command),
                created_s=now_s,
                since_s=now_s,
                gang=gang,
                gang_count=wish.count,
                nvlink=wish.nvlink,
                lease_s=wish.lease_s or options.lease_s,
                idle_stop_s=idle_s or None,
                lendable=wish.lendable,
                recover=wish.recover,
            )
            for number in range(wish.count)
        ]

    # ------------------------------------------------------------ life

    def stop(self, actor: Actor, name: str) -> InstanceRecord:
        """Free an instance's place; its disk stays, and is what it costs."""
        return self._end(actor, name, State.STOPPED, "stop")

    def delete(self, actor: Actor, name: str) -> InstanceRecord:
        """End an instance for good, its disk with it."""
        return self._end(actor, name, State.DELETED, "delete")

    def _end(self, actor: Actor, name: str, then: str, action: str) -> InstanceRecord:
        actor.require("instances:write")
        with self.context.database.work() as work:
            found = self._find(work, actor, name)
            if found.state in {then, State.DELETED}:
                return found
            for one in self._gang(work, found):
                values = _ending(one, then)
                if values is not None:
                    work.change(InstanceRecord, values, id=one.id, state=one.state)
                    record_event(self.context, work, one.tenant, one.id, action, "by its tenant")
            record_audit(self.context, work, actor, action, found.id)
            found = self._find(work, actor, found.id)
        self.wake()
        return found

    def _gang(self, work: Work, instance: InstanceRecord) -> list[InstanceRecord]:
        """An instance with those that start and stop with it."""
        if not instance.gang:
            return [instance]
        return work.all(InstanceRecord, gang=instance.gang, tenant=instance.tenant, order=("id",))

    def start(self, actor: Actor, name: str) -> InstanceRecord:
        """Let a resting instance wait for a place again."""
        actor.require("instances:write")
        with self.context.database.work() as work:
            found = self._find(work, actor, name)
            if found.state in {State.PENDING, State.STARTING, State.RUNNING}:
                if found.lent:
                    ask_back(self.context, work, found, "its owner started it")
                return found
            if found.state == State.STOPPING and found.then in RESTING:
                work.change(InstanceRecord, {"then": State.PENDING}, id=found.id)
            elif found.state not in RESTING:
                raise Conflict(f"{found.name} is {found.state}")
            else:
                self._begin_again(work, actor, found)
            record_audit(self.context, work, actor, "start", found.id)
            found = self._find(work, actor, found.id)
        self.wake()
        return found

    def _begin_again(self, work: Work, actor: Actor, found: InstanceRecord) -> None:
        tenant = work.get(TenantRecord, id=actor.tenant)
        assert tenant is not None
        gang = self._gang(work, found)
        hourly = per_h_micro(shape_of(found), price_book(work), self.context.now_s())
        require_money(self.context, work, tenant, hourly * len(gang))
        for one in gang:
            work.change(
                InstanceRecord, waiting_again(self.context.now_s()), id=one.id,
                state__in=list(RESTING),
            )  # fmt: skip
            record_event(self.context, work, one.tenant, one.id, "start", "by its tenant")

    def restart(self, actor: Actor, name: str) -> InstanceRecord:
        """Stop an instance and let it wait for a place again."""
        actor.require("instances:write")
        found = self.show(actor, name)
        if found.state in RESTING:
            return self.start(actor, found.id)
        return self._end(actor, found.id, State.PENDING, "restart")

    def resize(self, actor: Actor, name: str, gpu: str) -> InstanceRecord:
        """Give a resting instance another shape, for its next start."""
        actor.require("instances:write")
        with self.context.database.work() as work:
            found = self._find(work, actor, name)
            if found.state not in RESTING or found.gang:
                raise Conflict("stop it first" if not found.gang else "a gang keeps its shape")
            models = {node.model for node in work.all(NodeRecord, state__not="down")}
            shape = parse_shape(gpu, models)
            tenant = work.get(TenantRecord, id=actor.tenant)
            if tenant is not None and shape.eighths > tenant.limit_eighths:
                raise QuotaExceeded(
                    resource="eighths of a card", requested=shape.eighths,
                    limit=tenant.limit_eighths,
                )  # fmt: skip
            values = {"model": shape.model, "profile": shape.profile, "cards": shape.cards}
            work.change(InstanceRecord, values, id=found.id)
            record_audit(self.context, work, actor, "resize", found.id, str(shape))
            return self._find(work, actor, found.id)

    def renew(self, actor: Actor, name: str, lease_s: int | None = None) -> InstanceRecord:
        """Let a lease last from now for its time again, or for another."""
        actor.require("instances:write")
        _require_lease(lease_s, self.context.options.most_lease_s)
        with self.context.database.work() as work:
            found = self._find(work, actor, name)
            if found.state not in ALIVE:
                raise Conflict(f"{found.name} is {found.state}: start it")
            lasts = lease_s or found.lease_s
            values: dict[str, Any] = {"lease_s": lasts, "warned_s": None}
            if found.ends_s is not None:
                values["ends_s"] = self.context.now_s() + lasts
            work.change(InstanceRecord, values, id=found.id)
            record_audit(self.context, work, actor, "renew", found.id, str(lasts))
            return self._find(work, actor, found.id)

    def lend(self, actor: Actor, name: str) -> InstanceRecord:
        """Pause an instance and let others have its place until it is recalled."""
        actor.require("instances:write")
        with self.context.database.work() as work:
            found = self._find(work, actor, name)
            firm = found.tier >= Tier.STANDARD and not found.gang
            if found.state != State.RUNNING or not firm:
                raise Conflict("only a running instance that cannot be displaced can lend")
            values = {"lendable": True, "lent": True, "watched_ns": None}
            work.change(InstanceRecord, values, id=found.id, lent=False)
            record_audit(self.context, work, actor, "lend", found.id)
        self.wake()
        return self.show(actor, found.id)

    def recall(self, actor: Actor, name: str) -> InstanceRecord:
        """Ask for a lent place back; it is there within the site's notice."""
        actor.require("instances:write")
        with self.context.database.work() as work:
            found = self._find(work, actor, name)
            if not found.lent:
                raise Conflict(f"{found.name} has lent nothing")
            ask_back(self.context, work, found, "its owner asked")
            record_audit(self.context, work, actor, "recall", found.id)
        self.wake()
        return self.show(actor, found.id)

    # ------------------------------------------------------------ inside

    def running(self, actor: Actor, name: str, scope: str) -> tuple[InstanceRecord, Driver]:
        """An instance and the driver that it is under, for what goes on inside.

        Raises
        ------
        Conflict
            It has no driver now, since it has no place.
        BeingReturned
            It was lent; that it is asked for recalls its GPU.
        """
        actor.require(scope)
        found = self.show(actor, name)
        if found.lent and scope == "instances:write":
            self._ask_back(found)
        with self.context.database.work() as work:
            node = work.get(NodeRecord, name=found.node) if found.node else None
        if node is None or node.driver not in self.drivers:
            raise Conflict(f"{found.name} is {found.state}, so nothing runs in it")
        return found, self.drivers[node.driver]

    def _ask_back(self, instance: InstanceRecord) -> None:
        with self.context.database.work() as work:
            ask_back(self.context, work, instance, "its owner is back")
        self.wake()
        if is_paused(replace(instance, recalled=True)):
            raise BeingReturned(name=instance.name, retry_after_s=2)

    def execute(
        self, actor: Actor, name: str, command: Sequence[str], *, timeout_s: float = 60
    ) -> Finished:
        """Run a command inside a running instance."""
        found, driver = self.running(actor, name, "instances:write")
        if not command or any("\0" in word for word in command):
            raise BadRequest("a list of words, the program first", field="command")
        if found.state != State.RUNNING:
            raise Conflict(f"{found.name} is {found.state}")
        with self.context.database.work() as work:
            record_audit(self.context, work, actor, "exec", found.id, command[0][:200])
        return driver.execute(found.id, command, timeout_s=timeout_s)

    def logs(self, actor: Actor, name: str, *, offset: int, limit: int) -> tuple[bytes, int]:
        """What an instance printed from an offset on, and where to go on from."""
        found, driver = self.running(actor, name, "instances:read")
        return driver.logs(found.id, offset=offset, limit=limit)

    def balance_allows(self, work: Work, tenant: TenantRecord) -> bool:
        """Whether a tenant has not used up its money and credit."""
        return balance_micro(work, tenant.id) > -tenant.credit_limit_micro


def _digest(wish: Wish) -> str:
    return hashlib.sha256(json.dumps(asdict(wish), sort_keys=True).encode()).hexdigest()


def shape_of(instance: InstanceRecord) -> Shape:
    """An instance's shape."""
    return Shape(instance.model, instance.profile, instance.cards)


def waiting_again(now_s: int) -> dict[str, Any]:
    """What changes when an instance waits for a place again."""
    return no_place() | {
        "state": State.PENDING,
        "then": "",
        "since_s": now_s,
        "reason": "",
        "reason_code": "",
        "exit_code": None,
        "tries": 0,
        "stopped_s": None,
    }


def no_place() -> dict[str, Any]:
    """What changes when an instance has no place any more."""
    return {
        "tier": 0,
        "placed_s": 0,
        "started_s": None,
        "ends_s": None,
        "warned_s": None,
        "notice_s": None,
        "claimed_by": "",
        "lent": False,
        "recalled": False,
        "watched_ns": None,
        "busy_s": None,
        "gpus": [],
    }


def _ending(instance: InstanceRecord, then: str) -> dict[str, Any] | None:
    """What to change so that an instance ends in a state; none if it is on the way."""
    if instance.state == State.DELETED:
        return None
    if instance.state == State.STOPPING:
        return {"then": then}
    if instance.state in PLACED or then == State.DELETED:
        return {"state": State.STOPPING, "then": then}
    if instance.state == State.PENDING and then != State.PENDING:
        return {"state": then, "reason": "", "reason_code": ""}
    return None


def _require_legal(wish: Wish) -> None:
    if wish.name and not _NAME.fullmatch(wish.name):
        raise BadRequest("1 to 48 small letters, digits and dashes", field="name")
    if wish.market not in {market.value for market in Market}:
        known = ", ".join(market.value for market in Market)
        raise BadRequest(f"{wish.market!r} is none of {known}", field="market")
    if not 1 <= wish.count <= MOST_GANG:
        raise BadRequest(f"1 to {MOST_GANG} instances together", field="count")
    if wish.disk_gib is not None and not 1 <= wish.disk_gib <= 4096:
        raise BadRequest("1 to 4096 GiB", field="disk_gib")
    if wish.ssh_key and not _SSH_KEY.fullmatch(wish.ssh_key.strip()):
        raise BadRequest("a line of an OpenSSH .pub file", field="ssh_key")
    if any("\0" in word or len(word) > _MOST_VALUE for word in wish.command):
        raise BadRequest("words without NUL, at most 4096 characters each", field="command")
    if len(wish.command) > 256:
        raise BadRequest("at most 256 words", field="command")
    if wish.idle_stop_s is not None and wish.idle_stop_s < 0:
        raise BadRequest("0 or more seconds", field="idle_stop_s")
    _require_ports(wish.ports)
    _require_variables(wish.environment)
    _require_lease(wish.lease_s, 30 * 86_400)


def _require_ports(ports: Sequence[int]) -> None:
    if len(ports) > _MOST_PORTS or any(not 1 <= port <= 65_535 for port in ports):
        raise BadRequest(f"at most {_MOST_PORTS}, each from 1 to 65535", field="ports")


def _require_variables(environment: Mapping[str, str]) -> None:
    if len(environment) > _MOST_VARIABLES:
        raise BadRequest(f"at most {_MOST_VARIABLES} variables", field="environment")
    for name, value in environment.items():
        if not _VARIABLE.fullmatch(name):
            raise BadRequest(f"{name[:40]!r} is no variable's name", field="environment")
        if _RESERVED.fullmatch(name):
            raise BadRequest(f"{name} is set by the cloud", field="environment")
        if "\0" in value or len(value) > _MOST_VALUE:
            raise BadRequest(f"{name}: at most {_MOST_VALUE} characters, no NUL",
                             field="environment")  # fmt: skip


def _require_lease(lease_s: int | None, most_s: int) -> None:
    if lease_s is not None and not 60 <= lease_s <= most_s:
        raise BadRequest(f"60 to {most_s} seconds", field="lease_s")
