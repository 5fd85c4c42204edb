"""What whoever runs a site chooses; nothing here needs the cloud's own packages."""

from __future__ import annotations

from dataclasses import dataclass, field

from va100.cloud.policies import Policy
from va100.cloud.prices import MICRO


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteOptions:
    """What whoever runs a site chooses."""

    policy: Policy = field(default_factory=lambda: Policy(notice_s=30))
    open_registration: bool = True
    welcome_micro: int = 25 * MICRO
    """Credit that a new tenant begins with."""
    self_top_up: bool = True
    """Whether tenants may top up by themselves: play money, on a virtual cloud."""
    spot_discount_per_mille: int = 400
    lease_s: int = 24 * 3600
    most_lease_s: int = 30 * 24 * 3600
    warn_s: int = 600
    """How long before a lease ends, or an idle instance is stopped, its tenant is told."""
    idle_stop_s: int = 3600
    lend_after_s: int = 60
    """After how long without GPU work a lendable instance's place is lent."""
    meter_s: int = 60
    """How often running meters are entered into the ledger."""
    sample_s: int = 10
    keep_samples_s: int = 7 * 86_400
    session_s: int = 14 * 86_400
    memory_per_eighth_bytes: int | None = None
    """Of the host, for an eighth of a card; none: what the card's own eighth has, and 2 GiB."""
    start_timeout_s: int = 60
    most_tries: int = 3
