"""What is right and wrong with a site: its tables, its ledger, its places, who schedules."""

from __future__ import annotations

from va100.cloud.fleet import Fleet
from va100.cloud.geometry import added
from va100.cloud.records import (
    EntryRecord,
    InstanceRecord,
    LockRecord,
    MeterRecord,
    NodeRecord,
    PersonRecord,
    State,
)
from va100.cloud.service import snapshot
from va100.cloud.service.billing import broken_seal
from va100.cloud.store.database import Database, Work

Finding = tuple[str, bool, str]
"""What was checked, whether it is well, and what was found."""


def check_site(database: Database, now_s: float) -> list[Finding]:
    """Check a site's database; nothing is changed."""
    current, newest = database.revision()
    findings: list[Finding] = [
        ("migrations", current == newest, f"tables at {current}, program at {newest}")
    ]
    if current != newest:
        return findings
    with database.work() as work:
        findings += [
            _dispatcher(work, now_s),
            _ledger(work),
            _meters(work),
            _places(work),
            _operator(work),
            _nodes(work),
        ]
    return findings


def _dispatcher(work: Work, now_s: float) -> Finding:
    lock = work.get(LockRecord, name="dispatcher")
    if lock is None:
        return "dispatcher", False, "none has ever run: va100 cloud serve"
    alive = lock.until_s > now_s
    ago = f"the last one ended {now_s - lock.until_s:.0f} s ago" if not alive else "leads"
    return "dispatcher", alive, f"{ago} (term {lock.term})"


def _ledger(work: Work) -> Finding:
    lines = work.all(EntryRecord, order=("number",))
    broken = broken_seal(lines)
    if broken is not None:
        return "ledger", False, f"line {broken} was changed, or one before it is missing"
    return "ledger", True, f"{len(lines)} lines, all as they were written"


def _meters(work: Work) -> Finding:
    running = {i.id for i in work.all(InstanceRecord, state=State.RUNNING, lent=False)}
    metered = [m.instance for m in work.all(MeterRecord, to_s=None, kind="gpu")]
    free = sorted(running - set(metered))
    wrong = sorted(set(metered) - running)
    twice = len(metered) != len(set(metered))
    if free or wrong or twice:
        return "meters", False, f"running unmetered: {free}; metered not running: {wrong}"
    return "meters", True, f"{len(running)} running, each with one meter"


def _places(work: Work) -> Finding:
    site = snapshot.read(work)
    fleet = Fleet(site.nodes, site.leases, site.homes, site.claims)
    for card in fleet.cards:
        state = 0
        for lease in card.leases.values():
            if lease.lent:
                continue
            after = added(state, lease.shape.fit, lease.place.start)
            if after is None:
                return "places", False, f"{card.node.name} GPU {card.gpu} is given out twice"
            state = after
    return "places", True, f"{len(site.leases)} leases on {len(fleet.cards)} cards, none twice"


def _operator(work: Work) -> Finding:
    operators = work.all(PersonRecord, operator=True)
    bare = [person.email for person in operators if not person.totp]
    if not operators:
        return "operators", True, "nobody has registered yet; the first one will be the operator"
    if bare:
        return "operators", True, f"without a second factor: {', '.join(bare)}"
    return "operators", True, f"{len(operators)}, all with a second factor"


def _nodes(work: Work) -> Finding:
    nodes = work.all(NodeRecord)
    ready = [node for node in nodes if node.state == "ready"]
    return "nodes", bool(ready), f"{len(ready)} of {len(nodes)} ready"
