"""Errors as HTTP problems (RFC 9457): one literal map from class to status, and the documents."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import HTTPException, RequestValidationError
from fastapi.responses import JSONResponse, Response

from va100 import errors

LOG: Final = logging.getLogger("va100.cloud.api")
MEDIA_TYPE: Final = "application/problem+json"
STATUSES: Final[Mapping[type[errors.Va100Error], int]] = MappingProxyType(
    {
        errors.NotSignedIn: 401,
        errors.PaymentRequired: 402,
        errors.NotPermitted: 403,
        errors.NotFound: 404,
        errors.Conflict: 409,
        errors.BeingReturned: 409,
        errors.NoPlacement: 409,
        errors.BadRequest: 422,
        errors.QuotaExceeded: 403,
        errors.TooManyRequests: 429,
        errors.SetupError: 503,
    }
)
"""Status of each error that the cloud raises; whatever else comes out is a fault of ours."""
_TITLES: Final[Mapping[int, str]] = MappingProxyType(
    {
        400: "Bad request",
        401: "Not signed in",
        402: "Payment required",
        403: "Not permitted",
        404: "Not found",
        405: "Method not allowed",
        409: "Conflict",
        413: "Too large",
        415: "Unsupported media type",
        422: "Bad request",
        429: "Too many requests",
        500: "Internal error",
        502: "Bad gateway",
        503: "Not available",
    }
)


def problem(
    status: int, detail: str, *, kind: str = "", headers: Mapping[str, str] | None = None,
    **facts: Any,
) -> JSONResponse:  # fmt: skip
    """A problem document."""
    body = {
        "type": f"urn:va100:problem:{kind}" if kind else "about:blank",
        "title": _TITLES.get(status, "Problem"),
        "status": status,
        "detail": detail,
        **facts,
    }
    return JSONResponse(body, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def of_error(error: errors.Va100Error) -> JSONResponse:
    """The problem document of an error."""
    status = next((STATUSES[c] for c in type(error).__mro__ if c in STATUSES), 500)
    headers = {}
    if isinstance(error, errors.TooManyRequests | errors.BeingReturned):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, errors.SetupError):
        headers["Retry-After"] = "30"
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    facts = {"field": error.field} if isinstance(error, errors.BadRequest) and error.field else {}
    return problem(status, str(error), kind=type(error).__name__, headers=headers, **facts)


def add_handlers(app: FastAPI) -> None:
    """Let an application answer every error with a problem document."""

    @app.exception_handler(errors.Va100Error)
    def _ours(_: Request, error: errors.Va100Error) -> Response:
        return of_error(error)

    @app.exception_handler(RequestValidationError)
    def _invalid(_: Request, error: RequestValidationError) -> Response:
        found = [
            {"field": ".".join(str(part) for part in one["loc"]), "problem": one["msg"]}
            for one in error.errors()
        ]
        first = f"{found[0]['field']}: {found[0]['problem']}" if found else "invalid"
        return problem(422, first, kind="Invalid", errors=found)

    @app.exception_handler(HTTPException)
    def _http(_: Request, error: HTTPException) -> Response:
        return problem(error.status_code, str(error.detail), headers=error.headers)

    @app.exception_handler(404)
    def _missing(_: Request, error: Exception) -> Response:
        del error
        return problem(404, "no such path")

    @app.exception_handler(405)
    def _method(_: Request, error: Exception) -> Response:
        headers = getattr(error, "headers", None)
        return problem(405, "this path does not take this method", headers=headers)

    @app.exception_handler(Exception)
    def _unforeseen(request: Request, error: Exception) -> Response:
        LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return problem(500, "something went wrong here; it has been written down", kind="Internal")
