"""Job traces: the CSV form that the simulator replays, and made ones.

One job a line, in any order, with a header.  Only ``submit_s`` and ``duration_s`` must be there;
names that public cluster traces use are understood, and ``columns`` maps any others::

    job,tenant,submit_s,duration_s,gpus,gpu,profile,market,members
    1,vision,0,3600,1,A100-SXM4-80GB,,on-demand,1
    2,chat,30,600,,,1g.10gb,spot,4
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol, TextIO

from va100.cloud.geometry import PROFILES, WHOLE
from va100.cloud.models import MOST_CARDS, Market, Shape
from va100.errors import BadRequest

ALIASES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "job": ("job", "job_id", "jobid", "job_name", "name", "pod"),
        "tenant": ("tenant", "user", "vc", "project", "group"),
        "submit_s": ("submit_s", "submit_time", "submitted_time", "submission_time",
                     "creation_time", "arrival_time"),
        "duration_s": ("duration_s", "duration", "run_time", "runtime"),
        "gpus": ("gpus", "num_gpus", "gpu_num", "num_gpu", "gpu_count"),
        "milli": ("gpu_milli",),
        "gpu": ("gpu", "model", "gpu_model"),
        "profile": ("profile", "mig"),
        "market": ("market", "qos"),
        "members": ("members", "inst_num", "replicas"),
    }
)  # fmt: skip
"""Columns, each with the names it has in traces."""
_MARKETS: Final = {market.value: market for market in Market} | {
    "ls": Market.ON_DEMAND,
    "guaranteed": Market.ON_DEMAND,
    "burstable": Market.BORROW,
    "be": Market.SPOT,
    "besteffort": Market.SPOT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job of a trace."""

    name: str
    tenant: str
    submit_s: int
    duration_s: int
    shape: Shape
    market: Market = Market.ON_DEMAND
    members: int = 1


def read_trace(
    file: TextIO | Iterable[str],
    model: str,
    *,
    name: str = "trace",
    columns: Mapping[str, str] | None = None,
) -> list[Job]:
    """Read jobs, earliest first.

    Parameters
    ----------
    model : str
        The card of jobs that name none, and of those that name one this fleet lacks.
    columns : mapping of str to str
        Our column to the trace's, where the name is none of :data:`ALIASES`.

    Raises
    ------
    BadRequest
        A line that is not a job; the message names it.
    """
    reader = csv.DictReader(file)
    found = _columns(reader.fieldnames or (), columns or {}, name)
    jobs = []
    for number, row in enumerate(reader, 2):
        try:
            job = _job(
                {ours: row.get(theirs) or "" for ours, theirs in found.items()}, model, number
            )
        except ValueError as error:
            raise BadRequest(f"{name}:{number}: {error}") from error
        if job is not None:
            jobs.append(job)
    return sorted(jobs, key=lambda job: (job.submit_s, job.name))


def _columns(header: Sequence[str], given: Mapping[str, str], name: str) -> dict[str, str]:
    plain = {word.strip().lower(): word for word in header}
    found = {}
    for ours, names in ALIASES.items():
        theirs = [given[ours].lower()] if ours in given else names
        there = [plain[word] for word in theirs if word in plain]
        if there:
            found[ours] = there[0]
        elif ours in given or ours in ("submit_s", "duration_s"):
            raise BadRequest(
                f"{name}: no column {' or '.join(theirs)} for {ours}; the header is "
                f"{', '.join(header) or 'empty'}"
            )
    return found


def _job(row: Mapping[str, str], model: str, number: int) -> Job | None:
    duration = _seconds(row["duration_s"], "duration_s")
    gpus = float(row.get("gpus") or 1)
    if duration <= 0 or gpus == 0:
        return None  # traces hold jobs that never ran, and jobs without GPUs
    members = int(row.get("members") or 1)
    shape, members = _shape(row, model, gpus, members)
    market = (row.get("market") or Market.ON_DEMAND.value).strip().lower()
    if market not in _MARKETS:
        raise ValueError(f"market {market!r} is none of {', '.join(_MARKETS)}")
    return Job(
        name=row.get("job") or f"job-{number}",
        tenant=row.get("tenant") or "all",
        submit_s=_seconds(row["submit_s"], "submit_s"),
        duration_s=duration,
        shape=shape,
        market=_MARKETS[market],
        members=members,
    )


def _seconds(text: str, column: str) -> int:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{column} is {text!r}, and should be seconds") from None
    if not math.isfinite(value):
        raise ValueError(f"{column} is {text!r}, and should be seconds")
    return math.ceil(value)


def _shape(row: Mapping[str, str], model: str, gpus: float, members: int) -> tuple[Shape, int]:
    """The shape of an instance, and how many: a job of more cards than a node has is a gang."""
    asked = (row.get("gpu") or model).strip()
    model = asked if asked in PROFILES else model
    profile = (row.get("profile") or WHOLE).strip()
    milli = float(row.get("milli") or 1000)
    share = min(gpus if gpus < 1 else 1.0, milli / 1000)
    if profile == WHOLE and share < 1:
        profile = slice_for(model, share)
    if profile != WHOLE:
        if profile not in {spec.name for spec in PROFILES[model]}:
            raise ValueError(f"{model} has no MIG profile {profile!r}")
        return Shape(model, profile), members * max(1, round(gpus)) if gpus >= 1 else members
    count = math.ceil(gpus)
    if count <= MOST_CARDS:
        return Shape(model, cards=count), members
    return Shape(model, cards=MOST_CARDS), members * math.ceil(count / MOST_CARDS)


def slice_for(model: str, share: float) -> str:
    """The smallest MIG profile with at least a share of a card; a whole card if none has it."""
    for spec in PROFILES[model]:
        if not spec.media_extensions and spec.compute_slice_count / 7 >= share - 1e-9:
            return spec.name
    return WHOLE


class Chance(Protocol):
    """A source of chance, such as ``random.Random``."""

    def random(self) -> float:
        """A number from 0 to 1."""
        ...


def made_trace(
    chance: Chance, *, jobs: int, days: float, model: str, tenants: int = 20
) -> Iterator[Job]:
    """Make a trace with what public ones share: many small short jobs, few large long ones.

    Sizes, the heavy tail of durations and the day's rhythm are like those reported of production
    clusters; no job of any trace is copied.
    """
    span_s = days * 86_400
    times: list[float] = []
    while len(times) < jobs:
        moment = chance.random()
        busy = 0.6 + 0.4 * math.sin(2 * math.pi * moment * days)
        if chance.random() < busy:
            times.append(moment * span_s)
    for number, submit in enumerate(sorted(times)):
        kind = _pick(chance, _KINDS)
        # An exponential of a uniform gives the tail that training jobs have: minutes to days.
        duration = kind[1] * math.exp(2.2 * (chance.random() + chance.random() - 1))
        shape = Shape(model, kind[2]) if kind[2] else Shape(model, cards=kind[3])
        yield Job(
            name=f"job-{number:06}",
            tenant=f"tenant-{int(chance.random() ** 2 * tenants):02}",
            submit_s=int(submit),
            duration_s=max(10, int(duration)),
            shape=shape,
            market=_pick(chance, _MARKET_MIX)[1],
            members=kind[4],
        )


_KINDS: Final[tuple[tuple[float, float, str, int, int], ...]] = (
    # weight, median seconds, MIG slice of an 80 GB card, cards, members
    (0.22, 900, "1g.10gb", 0, 1),
    (0.10, 2_700, "2g.20gb", 0, 1),
    (0.08, 5_400, "3g.40gb", 0, 1),
    (0.36, 3_600, "", 1, 1),
    (0.08, 10_800, "", 2, 1),
    (0.07, 21_600, "", 4, 1),
    (0.07, 43_200, "", 8, 1),
    (0.02, 64_800, "", 8, 4),
)
_MARKET_MIX: Final = ((0.6, Market.ON_DEMAND), (0.15, Market.BORROW), (0.25, Market.SPOT))


def _pick(chance: Chance, rows: Sequence[tuple[Any, ...]]) -> Any:
    left = chance.random() * sum(row[0] for row in rows)
    for row in rows:
        left -= row[0]
        if left < 0:
            return row
    return rows[-1]
