"""The scheduler's frozen view of the database: nodes, leases, promises, claims, who waits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from va100.cloud.fleet import Claim
from va100.cloud.models import Home, Lease, Market, Node, Place, Request, Shape, Tenant, Tier
from va100.cloud.records import (
    PLACED,
    ClaimRecord,
    HomeRecord,
    InstanceRecord,
    NodeRecord,
    State,
    TenantRecord,
)
from va100.cloud.service.instances import shape_of
from va100.cloud.store.database import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """All that one pass of the scheduler looks at."""

    nodes: tuple[Node, ...]
    leases: tuple[Lease, ...]
    homes: tuple[Home, ...]
    claims: tuple[Claim, ...]
    requests: tuple[Request, ...]
    tenants: dict[str, Tenant]
    returning: tuple[str, ...]
    instances: dict[str, list[InstanceRecord]]
    """Waiting instances of each request, in order."""


def read(work: Work, *, usable: Collection[str] | None = None) -> Site:
    """Read a site.

    Parameters
    ----------
    usable : collection of str
        Drivers whose nodes take new work; none given: all.
    """
    waiting: dict[str, list[InstanceRecord]] = defaultdict(list)
    for instance in work.all(InstanceRecord, state=State.PENDING, order=("since_s", "id")):
        waiting[instance.gang or instance.id].append(instance)
    complete = {
        name: members
        for name, members in waiting.items()
        if not members[0].gang or len(members) == _gang_size(work, members[0])
    }
    placed = work.all(InstanceRecord, state__in=list(PLACED))
    return Site(
        nodes=tuple(node_of(node, usable) for node in work.all(NodeRecord, order=("name",))),
        leases=tuple(lease_of(instance) for instance in placed),
        homes=tuple(home_of(home) for home in work.all(HomeRecord, order=("id",))),
        claims=tuple(claim_of(claim) for claim in work.all(ClaimRecord)),
        requests=tuple(request_of(name, members) for name, members in complete.items()),
        tenants={
            t.id: Tenant(name=t.id, limit_eighths=t.limit_eighths, weight=t.weight)
            for t in work.all(TenantRecord)
        },
        returning=tuple(i.id for i in placed if i.lent and i.recalled),
        instances=dict(complete),
    )


def _gang_size(work: Work, instance: InstanceRecord) -> int:
    """Members of a gang that are not at rest: all of them wait before any is placed."""
    return work.count(InstanceRecord, gang=instance.gang, state__in=[State.PENDING, *PLACED])


def request_of(name: str, members: list[InstanceRecord]) -> Request:
    """The scheduler's request of an instance or a gang."""
    first = members[0]
    return Request(
        name=name,
        tenant=first.tenant,
        shape=shape_of(first),
        market=Market(first.market),
        members=len(members),
        since_s=first.since_s,
        nvlink=first.nvlink,
    )


def node_of(record: NodeRecord, usable: Collection[str] | None = None) -> Node:
    """The scheduler's node of a record."""
    ready = record.state == "ready" and (usable is None or record.driver in usable)
    return Node(
        name=record.name,
        model=record.model,
        gpu_count=record.gpu_count,
        islands=tuple(tuple(island) for island in record.islands),
        usable=None if ready else frozenset(),
    )


def place_of(record: InstanceRecord) -> Place:
    """Where an instance sits."""
    return Place(record.node, tuple(record.gpus), record.profile, record.start)


def lease_of(record: InstanceRecord) -> Lease:
    """The scheduler's lease of an instance that has a place.

    One that is being stopped has no end that the scheduler could wait for or bring about: it is
    there until its driver says that it is not.
    """
    stopping = record.state == State.STOPPING
    return Lease(
        name=record.id,
        tenant=record.tenant,
        shape=shape_of(record),
        place=place_of(record),
        tier=Tier(record.tier),
        since_s=record.placed_s,
        request=record.gang or record.id,
        ends_s=None if stopping else record.ends_s,
        notice_s=None if stopping else record.notice_s,
        claimed_by=record.claimed_by,
        lendable=record.lendable,
        lent=record.lent and not stopping,
    )


def home_of(record: HomeRecord) -> Home:
    """The scheduler's home of a record."""
    return Home(
        tenant=record.tenant,
        shape=Shape(record.model, record.profile, record.cards),
        place=Place(record.node, tuple(record.gpus), record.profile, record.start),
    )


def home_record(home: Home, name: str) -> HomeRecord:
    """The record of a home."""
    return HomeRecord(
        id=name,
        tenant=home.tenant,
        model=home.shape.model,
        profile=home.shape.profile,
        cards=home.shape.cards,
        node=home.place.node,
        gpus=list(home.place.gpus),
        start=home.place.start,
    )


def claim_of(record: ClaimRecord) -> Claim:
    """The scheduler's claim of a record."""
    places = tuple(
        Place(node, tuple(gpus), record.profile, start) for node, gpus, start in record.places
    )
    shape = Shape(record.model, record.profile, record.cards)
    return Claim(record.request, record.tenant, shape, places, record.firm)


def claim_record(claim: Claim) -> ClaimRecord:
    """The record of a claim."""
    return ClaimRecord(
        request=claim.request,
        tenant=claim.tenant,
        model=claim.shape.model,
        profile=claim.shape.profile,
        cards=claim.shape.cards,
        places=[[place.node, list(place.gpus), place.start] for place in claim.places],
        firm=claim.firm,
    )
