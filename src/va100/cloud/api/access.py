"""Who asks: bearer keys, session cookies with CSRF tokens, and how often they may ask."""

from __future__ import annotations

import hmac
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Annotated, Final

from fastapi import Depends, Header, Request

from va100.cloud.service.context import Actor
from va100.cloud.site import Site
from va100.errors import NotPermitted, NotSignedIn, TooManyRequests

COOKIE: Final = "va100_session"
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class RateLimiter:
    """Token buckets in memory, one for each who asks; a worker counts for itself."""

    def __init__(self, clock: Callable[[], float], per_s: float, burst: float) -> None:
        self.clock = clock
        self.per_s = per_s
        self.burst = burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, name: str) -> None:
        """Take one token.

        Raises
        ------
        TooManyRequests
        """
        now_s = self.clock()
        with self._lock:
            left, at_s = self._buckets.pop(name, (self.burst, now_s))
            left = min(self.burst, left + max(0.0, now_s - at_s) * self.per_s)
            self._buckets[name] = (max(0.0, left - 1), now_s)
            while len(self._buckets) > 10_000:
                self._buckets.popitem(last=False)
        if left < 1:
            raise TooManyRequests(retry_after_s=int((1 - left) / self.per_s) + 1)


def site_of(request: Request) -> Site:
    """The site that an application serves."""
    found: Site = request.app.state.site
    return found


def address_of(request: Request) -> str:
    """Where a request comes from."""
    return request.client.host if request.client else ""


def actor_of(
    request: Request,
    authorization: Annotated[str | None, Header()] = None,
    x_tenant: Annotated[str | None, Header(max_length=64)] = None,
    x_csrf_token: Annotated[str | None, Header(max_length=128)] = None,
) -> Actor:
    """Who asks.

    A key comes as ``Authorization: Bearer``.  A session comes as a cookie; whatever changes
    something then needs its CSRF token, which other sites' pages cannot know.

    Raises
    ------
    NotSignedIn, NotPermitted, TooManyRequests
    """
    site = site_of(request)
    limiter: RateLimiter = request.app.state.limiter
    if authorization is not None:
        scheme, _, secret = authorization.partition(" ")
        if scheme.lower() != "bearer" or not secret:
            raise NotSignedIn("Authorization: Bearer KEY is expected")
        actor = site.accounts.of_key(secret.strip(), address=address_of(request))
        limiter.take(actor.key)
        return actor
    cookie = request.cookies.get(COOKIE)
    if not cookie:
        raise NotSignedIn("a key (Authorization: Bearer KEY) or a session is needed")
    tenant = x_tenant or request.cookies.get("va100_tenant") or ""
    actor, csrf = site.accounts.of_session(cookie, tenant, address=address_of(request))
    limiter.take(actor.person)
    if request.method not in _SAFE and not hmac.compare_digest(csrf, x_csrf_token or ""):
        raise NotPermitted("the CSRF token of your session is missing or wrong")
    return actor


def anyone(request: Request) -> str:
    """An address that may ask without being known, but not too often."""
    address = address_of(request)
    limiter: RateLimiter = request.app.state.anonymous_limiter
    limiter.take(address)
    return address


SiteOf = Annotated[Site, Depends(site_of)]
ActorOf = Annotated[Actor, Depends(actor_of)]
Anyone = Annotated[str, Depends(anyone)]
