"""Idle instances: warned, lent and stopped; and lent ones whose owner has work again.

Idle is judged by the GPU alone: by how long the instance's own node was at work.  One that was
lent for being idle runs on without its GPU's place, and its next GPU work recalls the place; one
that its owner lent is paused, and comes back when the owner asks for anything inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from va100.cloud.ledger import Kind
from va100.cloud.records import InstanceRecord, State
from va100.cloud.service.billing import close_meters
from va100.cloud.service.context import Context, record_event
from va100.cloud.service.options import SiteOptions
from va100.cloud.store.database import Work

GRACE_S: Final = 5.0
"""What programs are given to end when they are told to."""
_LOOKS_S: Final = 5
"""For looks of the dispatcher, which are half a second apart and may take longer under load."""

Tell = Callable[[Work, InstanceRecord, str, str], None]


def returns_within_s(options: SiteOptions) -> int:
    """Bound of the time from a lent instance's work until it has its GPU again."""
    return options.policy.notice_s + int(GRACE_S) + _LOOKS_S


def is_paused(instance: InstanceRecord) -> bool:
    """Whether an instance's programs have to stand still."""
    return instance.lent and (instance.watched_ns is None or instance.recalled)


def lend_idle(
    context: Context, work: Work, instance: InstanceRecord, idle_s: int, work_ns: int | None
) -> None:
    """Open an idle instance's place to spot instances.

    Parameters
    ----------
    work_ns : int or None
        GPU time that it has used; more than that, and it has work again.  None: nobody can tell,
        so it is paused.
    """
    values: dict[str, Any] = {"lent": True, "watched_ns": work_ns}
    if not work.change(InstanceRecord, values, id=instance.id, lent=False, state=State.RUNNING):
        return
    close_meters(context, work, instance.id, Kind.GPU)
    back = (
        "it is paused until you ask for it"
        if work_ns is None
        else f"its next GPU work has it back within {returns_within_s(context.options)} s"
    )
    text = f"its GPU did nothing for {idle_s} s: {back}"
    record_event(context, work, instance.tenant, instance.id, "lent", text)


def ask_back(context: Context, work: Work, instance: InstanceRecord, why: str) -> None:
    """Recall a lent place, once."""
    values = {"recalled": True}
    changed = work.change(InstanceRecord, values, id=instance.id, lent=True, recalled=False)
    if changed:
        text = f"{why}: its GPU is back within {returns_within_s(context.options)} s"
        record_event(context, work, instance.tenant, instance.id, "recalled", text)


def warned_left_s(
    options: SiteOptions, instance: InstanceRecord, idle_s: int, now_s: int
) -> tuple[int, str] | None:
    """Seconds until an instance is stopped and why, if that is soon enough to say so."""
    found = []
    if instance.idle_stop_s is not None:
        left_s = instance.idle_stop_s - idle_s
        if left_s <= min(options.warn_s, instance.idle_stop_s // 2):
            found.append((left_s, f"its GPU did nothing for {idle_s} s"))
    if instance.ends_s is not None:
        left_s = instance.ends_s - now_s
        if left_s <= min(options.warn_s, instance.lease_s // 2):
            found.append((left_s, "its lease is over then, unless it is renewed"))
    return min(found, default=None)
