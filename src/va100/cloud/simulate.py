"""A trace replayed through the scheduler itself, faster than it happened.

The loop knows when jobs come and how long they run; all else, :func:`va100.cloud.scheduler.decide`
does, as in service.  Time is simulated and chance is in the trace, so a replay always comes out
the same.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from va100.cloud.defragment import fragmentation
from va100.cloud.fleet import Fleet
from va100.cloud.geometry import EIGHTHS
from va100.cloud.guarantees import Guarantees, lay_out
from va100.cloud.ledger import Meter, charge_micro, discount_micro
from va100.cloud.models import Lease, Market, Node, Reason, Request, Tenant, Tier
from va100.cloud.policies import Policy
from va100.cloud.prices import PriceBook, card_item
from va100.cloud.scheduler import Plan, decide
from va100.cloud.traces import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What a replay runs on."""

    nodes: tuple[Node, ...]
    policy: Policy
    book: PriceBook
    tenants: Mapping[str, Tenant] = field(default_factory=dict)
    guarantees: Guarantees = field(default_factory=dict)
    spot_discount_per_mille: int = 400
    checkpoint_s: int = 600
    """How much work a displaced job loses at most: the time between its checkpoints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a trace."""

    jobs_count: int
    finished_count: int
    impossible_count: int
    """Jobs that this fleet could not run even if it were empty."""
    simulated_s: int
    utilisation_ratio: float
    """Card time that jobs had, of all card time until the last job was submitted."""
    wait_median_s: float
    wait_mean_s: float
    wait_p99_s: float
    wait_mean_by_market: Mapping[str, float]
    displaced_count: int
    lost_s: int
    """Card time that was repeated after a displacement, in card seconds."""
    fragmentation_ratio: float
    """Time average of :func:`~va100.cloud.defragment.fragmentation`."""
    charged_micro: int
    discount_micro: int
    passes_count: int
    samples: tuple[tuple[int, float, int, float], ...]
    """Over time: seconds, utilisation, jobs that wait, fragmentation."""


@dataclass(slots=True)
class _Running:
    """A job that has places: when it began, and what it has left to do."""

    job: Job
    began_s: int
    left_s: int
    leases: tuple[Lease, ...]
    run: int


class Replay:
    """One replay; :meth:`run` goes through it."""

    def __init__(self, site: Site, jobs: Sequence[Job]) -> None:
        self.site = site
        self.jobs = {job.name: job for job in jobs}
        self.order = sorted(jobs, key=lambda job: (job.submit_s, job.name))
        homes = lay_out(site.nodes, (), site.guarantees) if site.guarantees else ()
        self.fleet = Fleet(site.nodes, (), homes)
        self.pending: dict[str, Request] = {}
        self.running: dict[str, _Running] = {}
        self.left: dict[str, int] = {}
        self.finishing: list[tuple[int, str, int]] = []
        self.waits: dict[str, list[int]] = {market.value: [] for market in Market}
        self.started: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.runs = 0
        self.held = 0
        self.area = 0
        self.broken_area = 0.0
        self.charged = self.discounted = self.lost_s = 0
        self.samples: list[tuple[int, float, int, float]] = []
        self.total = EIGHTHS * sum(node.gpu_count for node in site.nodes)
        self.models = sorted({node.model for node in site.nodes})
        self.broken = 0.0
        self.offered = (0, 0)

    def run(self, *, samples: int = 200) -> Outcome:
        """Replay until the last job has ended."""
        if not self.order:
            raise ValueError("a trace without jobs")
        begin = now_s = self.order[0].submit_s
        every = max(1, (self.order[-1].submit_s - begin) // samples)
        place, next_sample, wake = 0, begin, None
        while place < len(self.order) or self.finishing or wake is not None:
            upcoming = [wake] if wake is not None else []
            if place < len(self.order):
                upcoming.append(self.order[place].submit_s)
            if self.finishing:
                upcoming.append(self.finishing[0][0])
            then = min(upcoming)
            while next_sample <= then:
                self._sample(next_sample)
                next_sample += every
            self._pass_time(then - now_s)
            now_s = then
            freed = self._finish(now_s)
            came = place
            while place < len(self.order) and self.order[place].submit_s <= now_s:
                self._submit(self.order[place])
                place += 1
            if came < place == len(self.order):
                self.offered = (now_s - begin, self.area)
            wake = self._decide(now_s) if freed or place > came or wake == now_s else wake
        return self._outcome(now_s - begin)

    # ------------------------------------------------------------ events

    def _submit(self, job: Job) -> None:
        self.left[job.name] = job.duration_s
        self.pending[job.name] = _request(job, job.submit_s, job.duration_s)

    def _finish(self, now_s: int) -> bool:
        freed = False
        while self.finishing and self.finishing[0][0] <= now_s:
            _, name, run = heapq.heappop(self.finishing)
            running = self.running.get(name)
            if running is not None and running.run == run:
                del self.running[name]
                self._release(running, now_s)
                self.counts["finished"] += 1
                freed = True
        return freed

    def _release(self, running: _Running, now_s: int) -> None:
        for lease in running.leases:
            if lease.name in self.fleet.leases:
                self.fleet.remove(lease.name)
            self.held -= lease.eighths
            self._charge(lease, now_s)

    def _charge(self, lease: Lease, now_s: int) -> None:
        off = self.site.spot_discount_per_mille if lease.tier is Tier.SPOT else 0
        meter = Meter(
            name=lease.name,
            tenant=lease.tenant,
            instance=lease.name,
            item=card_item(lease.shape.model),
            eighths=lease.eighths,
            from_s=lease.since_s,
            to_s=now_s,
            discount_per_mille=off,
        )
        self.charged += charge_micro(meter, self.site.book, lease.since_s, now_s)
        self.discounted += discount_micro(meter, self.site.book, lease.since_s, now_s)

    def _decide(self, now_s: int) -> int | None:
        """One pass; when the next is due because a notice ends."""
        plan = decide(self.fleet, self.pending.values(), self.site.tenants, self.site.policy, now_s)
        self.counts["passes"] += 1
        for name in plan.evicted:
            self._displace(name, now_s)
        for start in plan.starts:
            self._start(start.request.name, start.leases, now_s)
        for name, why in plan.refusals.items():
            if why.reason in _NEVER:
                del self.pending[name]
                self.counts["impossible"] += 1
        self.broken = sum(fragmentation(self.fleet, m) for m in self.models) / len(self.models)
        return self._next_notice(plan, now_s)

    def _next_notice(self, plan: Plan, now_s: int) -> int | None:
        times = [lease.notice_s for lease in self.fleet.leases_told() if lease.notice_s is not None]
        if plan.evicted and self.pending:
            times.append(now_s + 1)
        return min((at_s for at_s in times if at_s > now_s), default=None)

    def _start(self, name: str, leases: tuple[Lease, ...], now_s: int) -> None:
        job = self.jobs[name]
        request = self.pending.pop(name)
        if name not in self.started:
            self.started.add(name)
            self.waits[job.market.value].append(now_s - request.since_s)
        self.runs += 1
        self.running[name] = _Running(job, now_s, self.left[name], leases, self.runs)
        self.held += sum(lease.eighths for lease in leases)
        heapq.heappush(self.finishing, (now_s + self.left[name], name, self.runs))

    def _displace(self, lease_name: str, now_s: int) -> None:
        """A displaced job waits again, all of its gang, from its last checkpoint."""
        name = lease_name.rpartition(".")[0] if lease_name not in self.running else lease_name
        running = self.running.pop(name, None)
        if running is None:
            return
        self._release(running, now_s)
        done = now_s - running.began_s
        kept = done // self.site.checkpoint_s * self.site.checkpoint_s
        self.left[name] = running.left_s - kept
        eighths = running.job.shape.eighths * running.job.members
        self.lost_s += (done - kept) * eighths // EIGHTHS
        self.counts["displaced"] += 1
        self.pending[name] = _request(running.job, now_s, self.left[name])

    # ------------------------------------------------------------ figures

    def _pass_time(self, seconds: int) -> None:
        self.area += self.held * seconds
        self.broken_area += self.broken * seconds

    def _sample(self, at_s: int) -> None:
        self.samples.append((at_s, self.held / self.total, len(self.pending), self.broken))

    def _outcome(self, span_s: int) -> Outcome:
        offered_s, area = self.offered
        every = sorted(wait for waits in self.waits.values() for wait in waits)
        return Outcome(
            jobs_count=len(self.order),
            finished_count=self.counts["finished"],
            impossible_count=self.counts["impossible"],
            simulated_s=span_s,
            utilisation_ratio=area / (self.total * offered_s) if offered_s else 0.0,
            wait_median_s=_quantile(every, 0.5),
            wait_mean_s=_mean(every),
            wait_p99_s=_quantile(every, 0.99),
            wait_mean_by_market={name: _mean(waits) for name, waits in self.waits.items()},
            displaced_count=self.counts["displaced"],
            lost_s=self.lost_s,
            fragmentation_ratio=self.broken_area / span_s if span_s else 0.0,
            charged_micro=self.charged,
            discount_micro=self.discounted,
            passes_count=self.counts["passes"],
            samples=tuple(self.samples),
        )


_NEVER = frozenset({Reason.NO_SUCH_GPU, Reason.TOO_LARGE})


def replay(site: Site, jobs: Sequence[Job]) -> Outcome:
    """Replay a trace on a site."""
    return Replay(site, jobs).run()


def _request(job: Job, since_s: int, left_s: int) -> Request:
    return Request(
        name=job.name,
        tenant=job.tenant,
        shape=job.shape,
        market=job.market,
        members=job.members,
        since_s=since_s,
        expected_s=left_s,
    )


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0


def _quantile(ordered: Sequence[float], share: float) -> float:
    return float(ordered[min(len(ordered) - 1, int(share * len(ordered)))]) if ordered else 0.0
