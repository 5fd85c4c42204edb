"""Ports of instances, through the console: what listens inside, for whoever is signed in.

What comes from inside is a tenant's own page, so it is shown in a sandbox that cannot act as the
console.
"""

from __future__ import annotations

import http.client
import socket
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from va100.cloud.api.access import site_of
from va100.cloud.records import State
from va100.cloud.web.render import PageRoute, Visitor
from va100.errors import Conflict, NotFound, SetupError

ROUTER = APIRouter(route_class=PageRoute)
_MOST_BYTES: Final = 64 << 20
_DROPPED: Final = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "host",
     "content-length", "proxy-authorization", "proxy-authenticate", "cookie", "authorization",
     "set-cookie", "content-security-policy", "x-csrf-token"}
)  # fmt: skip


@ROUTER.api_route("/instances/{name}/ports/{port}/{path:path}",
                  methods=["GET", "POST", "PUT", "DELETE", "PATCH"])  # fmt: skip
async def through(request: Request, name: str, port: int, path: str) -> Response:
    """Pass a request on to a port inside an instance, and its answer back."""
    body = await request.body()
    return await run_in_threadpool(_pass_on, request, name, port, path, body)


def _pass_on(request: Request, name: str, port: int, path: str, body: bytes) -> Response:
    visitor = Visitor(request)
    if request.method != "GET" and request.headers.get("origin", "null") != "null":
        visitor.require_token(request.headers.get("x-csrf-token", ""))
    record, driver = site_of(request).instances.running(visitor.actor, name, "instances:write")
    if port not in record.ports:
        raise NotFound("port", f"{port} of {record.name}")
    if record.state != State.RUNNING:
        raise Conflict(f"{record.name} is {record.state}")
    address = driver.port_address(record.id, port)
    if address is None:
        raise Conflict(f"{record.name} has no way to port {port}")
    headers = {k: v for k, v in request.headers.items() if k.lower() not in _DROPPED}
    target = f"/{path}" + (f"?{request.url.query}" if request.url.query else "")
    try:
        status, given, text = _ask(address, request.method, target, headers, body)
    except (OSError, http.client.HTTPException) as error:
        raise SetupError(f"nothing answers on port {port}: {error}",
                         remedy="see the instance's log, and try again") from error  # fmt: skip
    kept = {k: v for k, v in given if k.lower() not in _DROPPED}
    kept["Content-Security-Policy"] = "sandbox allow-scripts allow-forms allow-downloads"
    return Response(text, status, headers=kept)


class _Inside(http.client.HTTPConnection):
    """A connection to a socket of this host."""

    def __init__(self, address: Path) -> None:
        super().__init__("localhost", timeout=60)
        self.address = address

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock: Any = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(str(self.address))


def _ask(
    address: Path, method: str, target: str, headers: dict[str, str], body: bytes
) -> tuple[int, list[tuple[str, str]], bytes]:
    connection = _Inside(address)
    try:
        connection.request(method, target, body or None, headers)
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read(_MOST_BYTES)
    finally:
        connection.close()
