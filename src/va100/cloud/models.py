"""Words of the cloud's pure half: shapes, places, tiers, leases, requests, refusals.

Everything here is a frozen value that the scheduler, the simulator, the ledger and the store
pass to each other.  Nothing here decides anything, and nothing here knows a database or a clock:
times are whole seconds since an epoch that the caller chooses.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from va100.cloud.geometry import WHOLE, Fit, fit

MOST_CARDS: Final = 8
"""Cards of one instance."""


class Tier(enum.IntEnum):
    """What right a lease has to its place; it gives way to higher ones only."""

    SPOT = 0
    """Cheap, on whatever is free; displaced with notice by anyone."""
    BORROWED = 1
    """At the usual price on what another's guarantee leaves idle; displaced by its owner."""
    STANDARD = 2
    """On what nobody was promised; never displaced."""
    GUARANTEED = 3
    """On the tenant's own promised place; never displaced."""


class Market(enum.Enum):
    """What a request asks for; the scheduler turns it into a tier."""

    ON_DEMAND = "on-demand"
    """Guaranteed or standard: an instance that is never displaced."""
    BORROW = "borrow"
    """As on-demand, and on another's idle guarantee when nothing else is free."""
    SPOT = "spot"


@dataclass(frozen=True, slots=True, order=True)
class Shape:
    """What one instance gets: whole cards of a model, or one GPU instance of a MIG profile."""

    model: str
    """A chip's name in the specs: ``A100-SXM4-80GB``."""
    profile: str = WHOLE
    """A MIG profile's name, or :data:`WHOLE`."""
    cards: int = 1

    @property
    def is_slice(self) -> bool:
        """Whether it is less than a card."""
        return self.profile != WHOLE

    @property
    def fit(self) -> Fit:
        """What it needs of each of its cards."""
        return fit(self.model, self.profile)

    @property
    def eighths(self) -> int:
        """Memory slices that it takes, those of all its cards together."""
        return self.fit.memory * self.cards

    def __str__(self) -> str:
        if self.is_slice:
            return f"{self.model}:{self.profile}"
        return self.model if self.cards == 1 else f"{self.model}:{self.cards}"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where an instance sits: cards of one node, or memory slices of one card of it."""

    node: str
    gpus: tuple[int, ...]
    profile: str = WHOLE
    start: int = 0
    """First memory slice; 0 for whole cards."""

    def __str__(self) -> str:
        gpus = ", ".join(str(gpu) for gpu in self.gpus)
        where = f"{self.node}, GPU {gpus}"
        return where if self.profile == WHOLE else f"{where}, {self.profile}@{self.start}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One machine with cards of one model."""

    name: str
    model: str
    gpu_count: int
    islands: tuple[tuple[int, ...], ...] = ()
    """Sets of cards that reach each other by NVLink; cards in none have PCIe only."""
    usable: frozenset[int] | None = None
    """Cards that may get new work; none given: all.  A draining node has an empty set."""

    def island(self, gpu: int) -> int:
        """Number of a card's island; its own negative number where it has none."""
        for number, members in enumerate(self.islands):
            if gpu in members:
                return number
        return -1 - gpu


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An instance, or a gang of them, that waits for a place."""

    name: str
    tenant: str
    shape: Shape
    market: Market = Market.ON_DEMAND
    members: int = 1
    """Instances that start together or not at all."""
    since_s: int = 0
    priority: int = 0
    """Among requests of one tenant only; a higher one first."""
    expected_s: int | None = None
    """How long it says that it will run."""
    nvlink: bool = False
    """Whether its cards must all reach each other by NVLink."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A running or starting instance's right to a place."""

    name: str
    tenant: str
    shape: Shape
    place: Place
    tier: Tier
    since_s: int
    request: str = ""
    """The request, hence the gang, that it came from."""
    ends_s: int | None = None
    """When it ends at the latest."""
    notice_s: int | None = None
    """When it will be taken away, once its tenant has been told so."""
    claimed_by: str = ""
    """The request or lender that waits for its place."""
    lendable: bool = False
    """Whether others may have its place while it does nothing."""
    lent: bool = False
    """Whether it is suspended, its place open to spot instances."""

    @property
    def eighths(self) -> int:
        """Memory slices that it holds."""
        return self.shape.eighths

    @property
    def firm(self) -> bool:
        """Whether nobody may displace it."""
        return self.tier >= Tier.STANDARD


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A tenant's rights as the scheduler sees them."""

    name: str
    limit_eighths: int | None = None
    """Most that it may hold at once, all models together; none: no limit."""
    weight: int = 1
    """Its share of what is contended, for policies that share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A place that a tenant was promised: others have it only until its owner asks."""

    tenant: str
    shape: Shape
    place: Place


class Reason(enum.Enum):
    """Why a request gets no place now; the codes are part of the API."""

    NO_SUCH_GPU = "no-such-gpu"
    TOO_LARGE = "too-large"
    QUOTA = "quota-exceeded"
    PROMISED = "promised-to-others"
    FRAGMENTED = "fragmented"
    BUSY = "busy"
    LINK = "no-nvlink"
    COMING = "place-is-being-freed"
    BEHIND = "behind-others"


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """A refusal for people and programs: the reason, a sentence, and when it may change."""

    reason: Reason
    text: str
    best: Shape | None = None
    """The largest of the same model that would get a place now."""
    place: Place | None = None
    """Where that one would go."""
    until_s: int | None = None
    """When a place is known to come free."""
