"""The application: routes under ``/v1``, the console, health and metrics, and what guards them."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response

from va100.cloud.api import (
    account_routes,
    billing_routes,
    instance_routes,
    operator_routes,
)
from va100.cloud.api.access import RateLimiter, SiteOf
from va100.cloud.api.exposition import exposition
from va100.cloud.api.problems import MEDIA_TYPE, add_handlers, problem
from va100.cloud.api.schemas import ProblemView
from va100.cloud.site import Site

LOG: Final = logging.getLogger("va100.cloud.api")
MOST_BODY_BYTES: Final = 1 << 20
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Content-Security-Policy": "default-src 'self'; style-src 'self'; script-src 'self'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
}
_PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": ProblemView, "description": text, "content": {MEDIA_TYPE: {}}}
    for status, text in (
        (401, "nobody known asks"),
        (402, "the tenant's money is not enough"),
        (403, "not permitted, or beyond a quota"),
        (404, "nothing of that name"),
        (409, "the state of things does not allow it"),
        (422, "the request means nothing"),
        (429, "too many requests; `Retry-After` tells when to try again"),
        (503, "not available now"),
    )
}


def create_app(
    site: Site,
    *,
    version: str,
    per_s: float = 50,
    burst: float = 200,
    dispatch: bool = True,
) -> FastAPI:
    """Make an application that serves a site.

    Parameters
    ----------
    per_s, burst : float
        Requests that one key, person or address may make: for long, and at once.
    dispatch : bool
        Whether this worker may run the dispatcher.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if dispatch:
            site.begin()
        yield
        site.end()

    app = FastAPI(
        title="va100 cloud",
        version=version,
        summary="A cloud of virtual A100s",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        responses=_PROBLEMS,
    )
    app.state.site = site
    app.state.limiter = RateLimiter(time.monotonic, per_s, burst)
    app.state.anonymous_limiter = RateLimiter(time.monotonic, per_s, burst)
    for module in (account_routes, instance_routes, billing_routes, operator_routes):
        app.include_router(module.ROUTER, prefix="/v1")
    _add_status_routes(app)
    add_handlers(app)
    _add_guards(app)
    return app


def _add_status_routes(app: FastAPI) -> None:
    @app.get("/healthz", include_in_schema=False)
    def healthz() -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    @app.get("/readyz", include_in_schema=False)
    def readyz(site: SiteOf) -> Response:
        current, newest = site.context.database.revision()
        if current != newest:
            return problem(503, f"the tables are at {current}, not {newest}")
        return PlainTextResponse("ok\n")

    @app.get("/metrics", include_in_schema=False)
    def metrics(site: SiteOf) -> PlainTextResponse:
        return PlainTextResponse(
            exposition(site), media_type="text/plain; version=0.0.4; charset=utf-8"
        )


def _add_guards(app: FastAPI) -> None:
    @app.middleware("http")
    async def guard(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
        begun_s = time.perf_counter()
        name = uuid.uuid4().hex[:16]
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BODY_BYTES:
            response: Response = problem(413, f"at most {MOST_BODY_BYTES} bytes")
        else:
            response = await call(request)
        for key, value in _HEADERS.items():
            response.headers.setdefault(key, value)
        if request.url.scheme == "https":
            response.headers["Strict-Transport-Security"] = "max-age=31536000"
        if request.url.path.startswith("/v1/"):
            response.headers.setdefault("Cache-Control", "no-store")
        response.headers["X-Request-Id"] = name
        LOG.info(
            "request",
            extra={
                "request": name,
                "method": request.method,
                "path": request.url.path,
                "status": response.status_code,
                "ms": round(1000 * (time.perf_counter() - begun_s), 1),
            },
        )
        return response
