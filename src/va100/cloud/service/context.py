"""What every operation needs: the database, a clock, chance, and who asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from va100.cloud.records import AuditRecord, EventRecord
from va100.cloud.service.options import SiteOptions
from va100.cloud.store.database import Database, Work
from va100.errors import NotPermitted

SCOPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "instances:read": "see instances, their logs and figures",
        "instances:write": "launch, stop and delete instances, run commands in them",
        "billing:read": "see prices, usage, entries and invoices",
        "billing:write": "top up",
        "members:read": "see who belongs to the tenant",
        "members:write": "add people, change their roles",
        "keys:write": "make and revoke keys",
        "operator": "see and change all of the site",
    }
)
"""What a key or session may do."""
_SEE: Final = ("instances:read", "billing:read", "members:read")
_WORK: Final = (*_SEE, "instances:write", "keys:write")
ROLES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "viewer": frozenset(_SEE),
        "billing": frozenset((*_SEE, "billing:write")),
        "developer": frozenset(_WORK),
        "admin": frozenset((*_WORK, "billing:write", "members:write")),
        "owner": frozenset((*_WORK, "billing:write", "members:write")),
    }
)
"""Scopes of each role in a tenant."""


@dataclass(frozen=True, slots=True)
class Context:
    """What every operation needs."""

    database: Database
    clock: Callable[[], float]
    """Seconds since 1970."""
    token: Callable[[int], str]
    """So many random bytes, spelled in hexadecimal digits."""
    options: SiteOptions

    def now_s(self) -> int:
        """Whole seconds since 1970."""
        return int(self.clock())


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who asks: a person, for a tenant, with what it may do."""

    person: str
    tenant: str
    scopes: frozenset[str]
    key: str = ""
    """The key it came by; empty for a session."""
    address: str = ""

    @property
    def operator(self) -> bool:
        """Whether it runs the site."""
        return "operator" in self.scopes

    def require(self, scope: str) -> None:
        """Refuse whoever lacks a scope.

        Raises
        ------
        NotPermitted
        """
        if scope not in self.scopes:
            raise NotPermitted(f"this needs the scope {scope}: {SCOPES[scope]}")


def record_audit(
    context: Context, work: Work, actor: Actor, action: str, subject: str = "", detail: str = ""
) -> None:
    """Remember who did what, in the transaction that does it."""
    work.add(
        AuditRecord(
            id=f"a-{int(context.clock() * 1e6):014x}{context.token(4)}",
            at_s=context.now_s(),
            tenant=actor.tenant,
            person=actor.person,
            action=action,
            subject=subject,
            detail=detail,
            address=actor.address,
        )
    )


def record_event(
    context: Context, work: Work, tenant: str, instance: str, kind: str, text: str
) -> None:
    """Remember what happened to an instance, for its tenant."""
    work.add(
        EventRecord(
            id=f"e-{int(context.clock() * 1e6):014x}{context.token(4)}",
            at_s=context.now_s(),
            tenant=tenant,
            instance=instance,
            kind=kind,
            text=text,
        )
    )
