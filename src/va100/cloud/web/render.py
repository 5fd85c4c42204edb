"""Pages from templates, and what every page knows: who asks, amounts, times, the path."""

from __future__ import annotations

import datetime
import hmac
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from va100.cloud.api.access import COOKIE, address_of, site_of
from va100.cloud.api.problems import STATUSES
from va100.cloud.prices import dollars
from va100.cloud.records import TenantRecord
from va100.cloud.service.context import Actor
from va100.errors import NotPermitted, NotSignedIn, TooManyRequests, Va100Error

PAGES: Final = Path(__file__).with_name("pages")
STATIC: Final = Path(__file__).with_name("static")
TENANT_COOKIE: Final = "va100_tenant"


def _when(at_s: int | None) -> str:
    if not at_s:
        return "-"
    return datetime.datetime.fromtimestamp(at_s, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _money(micro: int) -> str:
    """An amount as people read it: cents, or four places below a dollar; bills add up exactly."""
    if abs(micro) >= 1_000_000 or not micro:
        text = f"{abs(micro) / 1e6:,.2f}"
    else:
        text = f"{abs(micro) / 1e6:.4f}"
        text = text if float(text) else f"{abs(micro) / 1e6:.6f}"
    return f"-${text}" if micro < 0 else f"${text}"


def _share(eighths: int, item: str) -> str:
    """How much of an item is meant: GiB of disk, cards, or eighths of one."""
    if item == "disk":
        return f"{eighths / 8:g} GiB"
    if eighths % 8:
        return f"{eighths}/8"
    return "1 card" if eighths == 8 else f"{eighths // 8} cards"


def _item(item: str, kind: str = "") -> str:
    """A bill's item in words."""
    kind_of, _, model = item.partition(":")
    named = {"gpu": f"GPU {model}", "disk": "Disk"}.get(kind_of, item)
    return f"{named}, {kind}" if kind and kind not in (kind_of, "gpu", "disk") else named


def _gibibytes(count_bytes: int) -> str:
    return f"{count_bytes / 2**30:.1f} GiB"


_ENVIRONMENT: Final = Environment(
    loader=FileSystemLoader(PAGES), autoescape=True, undefined=StrictUndefined,
    trim_blocks=True, lstrip_blocks=True,
)  # fmt: skip
_ENVIRONMENT.filters.update(
    dollars=dollars, money=_money, when=_when, gibibytes=_gibibytes, share=_share, item=_item
)


class Visitor:
    """Who looks at a page: an actor, its CSRF token, its tenants."""

    def __init__(self, request: Request) -> None:
        site = site_of(request)
        cookie = request.cookies.get(COOKIE, "")
        if not cookie:
            raise NotSignedIn("sign in first")
        tenant = request.cookies.get(TENANT_COOKIE, "")
        self.actor: Actor
        try:
            self.actor, self.csrf = site.accounts.of_session(
                cookie, tenant, address=address_of(request)
            )
        except Va100Error:
            if not tenant:
                raise
            # A tenant that one does not belong to any more is no reason to be locked out.
            self.actor, self.csrf = site.accounts.of_session(cookie, address=address_of(request))
        request.app.state.limiter.take(self.actor.person)
        self.person = site.accounts.person(self.actor)
        self.tenants: list[tuple[TenantRecord, str]] = site.accounts.tenants(self.actor)

    @property
    def tenant(self) -> TenantRecord:
        """The tenant that pages are of."""
        return next(t for t, _ in self.tenants if t.id == self.actor.tenant)

    def require_token(self, token: str) -> None:
        """Refuse a form that another site's page sent.

        Raises
        ------
        NotPermitted
        """
        if not hmac.compare_digest(self.csrf, token):
            raise NotPermitted("this form is not of your session: load the page again")


def page(
    request: Request, name: str, /, *, visitor: Visitor | None = None, status: int = 200,
    **facts: Any,
) -> HTMLResponse:  # fmt: skip
    """Draw a page."""
    balance = None
    if visitor is not None and "billing:read" in visitor.actor.scopes:
        balance = site_of(request).billing.balance(visitor.actor)
    text = _ENVIRONMENT.get_template(name).render(
        path=request.url.path, visitor=visitor, balance=balance, **facts
    )
    return HTMLResponse(text, status)


def go(path: str) -> RedirectResponse:
    """Send a browser on, after a form has done its work."""
    return RedirectResponse(path, 303)


def local_path(text: str) -> str:
    """A path of this site, whatever an address said."""
    plain = text.startswith("/") and not text.startswith(("//", "/\\")) and "\n" not in text
    return text if plain and not urlsplit(text).netloc else "/instances"


def require_same_origin(request: Request) -> None:
    """Refuse a form that another site's page sent before anyone has signed in.

    Raises
    ------
    NotPermitted
    """
    origin = request.headers.get("origin")
    if origin and origin != "null" and urlsplit(origin).netloc != request.headers.get("host"):
        raise NotPermitted("this form was sent by another site's page")


class PageRoute(APIRoute):
    """A route whose errors are pages, and which sends strangers to sign in."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Draw errors."""
        handle = super().get_route_handler()

        async def drawn(request: Request) -> Response:
            try:
                return await handle(request)
            except NotSignedIn:
                return go(f"/sign-in?next={quote(request.url.path)}")
            except Va100Error as error:
                return error_page(request, error)

        return drawn


def error_page(request: Request, error: Va100Error) -> Response:
    """Tell what went wrong, and lead back."""
    status = next((STATUSES[c] for c in type(error).__mro__ if c in STATUSES), 500)
    response = page(request, "error.html", status=status, problem=str(error))
    if isinstance(error, TooManyRequests):
        response.headers["Retry-After"] = str(error.retry_after_s)
    return response
