"""What the cloud remembers, one frozen record a table row.

Records are plain values: :mod:`va100.cloud.store` keeps them, :mod:`va100.cloud.service` decides
with them, the edge shows them.  Times are whole seconds since 1970, money is micro-dollars.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final


class State:
    """States of an instance."""

    PENDING: Final = "pending"
    """Waits for a place."""
    STARTING: Final = "starting"
    RUNNING: Final = "running"
    STOPPING: Final = "stopping"
    """Its place is free once the driver says that it is gone."""
    STOPPED: Final = "stopped"
    """Keeps its disk, has no place."""
    EXITED: Final = "exited"
    """Its program ended by itself; keeps its disk, has no place."""
    FAILED: Final = "failed"
    """It could not be started."""
    DELETED: Final = "deleted"


PLACED: Final = frozenset({State.STARTING, State.RUNNING, State.STOPPING})
"""States in which an instance has a place."""
ALIVE: Final = frozenset({State.PENDING, *PLACED})
RESTING: Final = frozenset({State.STOPPED, State.EXITED, State.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRecord:
    """An account that owns instances and pays."""

    id: str
    name: str
    created_s: int
    limit_eighths: int = 64
    most_instances: int = 32
    most_disk_gib: int = 1024
    weight: int = 1
    credit_limit_micro: int = 0
    """How far below zero its balance may go."""
    trusted: bool = False
    """Whether its programs may run where nothing isolates them."""
    suspended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonRecord:
    """Someone who signs in."""

    id: str
    email: str
    name: str
    password: str
    """Argon2's encoded hash."""
    created_s: int
    operator: bool = False
    totp: str = ""
    """Secret of the second factor; empty: none, or not confirmed."""
    totp_pending: str = ""
    totp_step: int = 0
    """Step of the last code that was used, which is not good again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRecord:
    """A person's role in a tenant."""

    tenant: str
    person: str
    role: str
    since_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """A bearer key; the key itself is not kept."""

    id: str
    tenant: str
    person: str
    name: str
    digest: str
    scopes: str
    """Separated by blanks."""
    created_s: int
    expires_s: int | None = None
    used_s: int | None = None
    revoked_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A browser's session; the cookie itself is not kept."""

    digest: str
    person: str
    csrf: str
    created_s: int
    expires_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """Failed sign-ins, by address or account, and buckets of request rates."""

    id: str
    count: float
    since_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """A machine with cards."""

    name: str
    model: str
    gpu_count: int
    islands: list[list[int]]
    driver: str
    state: str = "ready"
    """``ready``, ``draining`` or ``down``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRecord:
    """An instance: what was asked, and how it stands."""

    id: str
    tenant: str
    person: str
    name: str
    template: str
    model: str
    profile: str
    cards: int
    market: str
    disk_gib: int
    environment: dict[str, str]
    ports: list[int]
    ssh_key: str
    command: list[str]
    created_s: int
    state: str = State.PENDING
    then: str = ""
    """The state after ``stopping``."""
    since_s: int = 0
    """When it began to wait for a place."""
    gang: str = ""
    """Instances of a gang start together; empty: it is alone."""
    gang_count: int = 1
    nvlink: bool = False
    reason: str = ""
    """Why it waits, or how it ended, for people."""
    reason_code: str = ""
    node: str = ""
    gpus: list[int] = field(default_factory=list)
    start: int = 0
    tier: int = 0
    placed_s: int = 0
    started_s: int | None = None
    stopped_s: int | None = None
    lease_s: int = 86_400
    """How long it may run before it has to be renewed."""
    ends_s: int | None = None
    idle_stop_s: int | None = None
    """After how long without GPU work it is stopped; none: never."""
    busy_s: int | None = None
    """When its GPU last did something."""
    warned_s: int | None = None
    """When its tenant was last told that it will be stopped."""
    notice_s: int | None = None
    claimed_by: str = ""
    lendable: bool = False
    lent: bool = False
    recalled: bool = False
    """Whether a lent one wants its place back."""
    watched_ns: int | None = None
    """GPU time that a lent one had used, whose programs run on; none: it is paused."""
    recover: bool = True
    """Whether it waits again after a displacement."""
    exit_code: int | None = None
    generation: int = 0
    """How often it was started."""
    tries: int = 0
    """Failed starts in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRecord:
    """Places kept for a gang, an instance, or a lender."""

    request: str
    tenant: str
    model: str
    profile: str
    cards: int
    places: list[list[Any]]
    """Each: node, cards, first memory slice."""
    firm: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteeRecord:
    """How many instances of a shape a tenant is promised."""

    tenant: str
    model: str
    profile: str
    cards: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeRecord:
    """A promised place."""

    id: str
    tenant: str
    model: str
    profile: str
    cards: int
    node: str
    gpus: list[int]
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterRecord:
    """A quantity that is paid by the second."""

    id: str
    tenant: str
    instance: str
    item: str
    eighths: int
    kind: str
    from_s: int
    to_s: int | None = None
    discount_per_mille: int = 0
    through_s: int = 0
    """Up to when entries have been made."""
    node: str = ""
    gpus: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRecord:
    """A line of the ledger; lines are only ever added."""

    number: int
    tenant: str
    kind: str
    amount_micro: int
    at_s: int
    meter: str
    instance: str
    item: str
    eighths: int
    from_s: int
    to_s: int
    text: str
    seal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRecord:
    """A price and the date it holds from."""

    item: str
    from_s: int
    micro_per_h: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRecord:
    """What was answered to a request with an idempotency key."""

    id: str
    digest: str
    """Of the request."""
    status: int
    body: str
    created_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """Who did what."""

    id: str
    at_s: int
    tenant: str
    person: str
    action: str
    subject: str
    detail: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """What happened to an instance."""

    id: str
    at_s: int
    tenant: str
    instance: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRecord:
    """An instance's use at a moment."""

    id: str
    instance: str
    at_s: int
    busy_ratio: float
    memory_bytes: int
    cpu_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRecord:
    """Who schedules, and until when."""

    name: str
    owner: str
    until_s: float
    term: int
    """Grows with every change of owner."""
