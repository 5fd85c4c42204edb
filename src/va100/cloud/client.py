"""A client of the cloud's API, with the standard library alone.

::

    cloud = Client("http://127.0.0.1:8420", key="va100-…")
    instance = cloud.launch("a100-80g:1g.10gb", name="demo")
    cloud.wait(instance["name"], "running")
    print(cloud.execute("demo", ["nvidia-smi", "-L"])["output"])

Answers are the API's JSON.  Problems come as the errors that the service raised.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.client import HTTPException
from typing import Any, Final

from va100 import errors

_STATUSES: Final[Mapping[int, Callable[[str], errors.Va100Error]]] = {
    401: errors.NotSignedIn,
    402: errors.Conflict,
    403: errors.Conflict,
    404: errors.Conflict,
    409: errors.Conflict,
    413: errors.BadRequest,
    422: errors.BadRequest,
}
"""Errors of statuses: those whose words can be the service's own."""
_TRIES: Final = 4
_FIRST_LOOK_S: Final = 0.25
_LAST_LOOK_S: Final = 2.0
_MOST_RETURNS: Final = 60
"""How often a request is made that a lent GPU has to come back for."""


class Client:
    """The API of one site.

    Parameters
    ----------
    url : str
        Where the site is.
    key : str
        A bearer key; empty for what needs none.
    pause : callable
        How to wait some seconds.
    """

    def __init__(
        self, url: str, key: str = "", *, pause: Callable[[float], None] = time.sleep
    ) -> None:
        scheme = urllib.parse.urlsplit(url).scheme
        if scheme not in ("http", "https"):
            raise errors.BadRequest(f"{url!r} is no http:// or https:// address", field="url")
        self.url = url.rstrip("/")
        self.key = key
        self.pause = pause
        self.headers: dict[str, str] = {}
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Make one request; what it may repeat, it repeats when told to wait.

        Raises
        ------
        SetupError
            Nobody answers.
        NotSignedIn, BadRequest, Conflict, TooManyRequests
            The service refuses; the words are its own.
        """
        said = {name: str(value) for name, value in (query or {}).items() if value is not None}
        url = f"{self.url}/v1{path}" + (f"?{urllib.parse.urlencode(said)}" if said else "")
        sent = {"Accept": "application/json", **self.headers, **(headers or {})}
        if self.key:
            sent["Authorization"] = f"Bearer {self.key}"
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        request = urllib.request.Request(url, data, sent, method=method)  # noqa: S310 -- checked above
        repeatable = method == "GET" or "Idempotency-Key" in sent
        for left in reversed(range(_TRIES)):
            try:
                with self._opener.open(request, timeout=660) as answer:
                    text = answer.read()
                return json.loads(text) if text else None
            except urllib.error.HTTPError as error:
                wait_s = int(error.headers.get("Retry-After", 0) or 0)
                if error.code in (429, 503) and left and 0 < wait_s <= 30:
                    error.close()
                    self.pause(wait_s)
                    continue
                raise _of_answer(error) from error
            except (urllib.error.URLError, HTTPException, OSError) as error:
                if left and repeatable:
                    self.pause(0.5)
                    continue
                why = getattr(error, "reason", error)
                raise errors.SetupError(
                    f"{self.url} does not answer: {why}",
                    remedy="va100 cloud serve, or name another with --url",
                ) from error
        raise AssertionError

    # ------------------------------------------------------------ accounts

    def register(self, email: str, password: str, name: str = "", tenant: str = "") -> Any:
        """Make a person and a tenant."""
        body = {"email": email, "password": password, "name": name, "tenant": tenant}
        return self.call("POST", "/register", body)

    def sign_in(self, email: str, password: str, code: str = "") -> None:
        """Begin a session; later calls are made in it."""
        body = {"email": email, "password": password, "code": code}
        session = self.call("POST", "/sessions", body)
        self.headers["X-CSRF-Token"] = session["csrf_token"]

    # ------------------------------------------------------------ instances

    def launch(self, gpu: str, **wish: Any) -> Any:
        """Launch an instance, or a gang; sent again after a failure, it launches nothing new."""
        headers = {"Idempotency-Key": wish.pop("idempotency_key", uuid.uuid4().hex)}
        made = self.call("POST", "/instances", {"gpu": gpu, **wish}, headers=headers)
        return made if wish.get("count", 1) > 1 else made[0]

    def instances(self, *, deleted: bool = False) -> Iterator[Any]:
        """All instances of the tenant."""
        after: str | None = ""
        while after is not None:
            query = {"after": after, "limit": 100, "deleted": str(deleted).lower()}
            page = self.call("GET", "/instances", query=query)
            yield from page["items"]
            after = page["next"]

    def show(self, name: str) -> Any:
        """One instance."""
        return self.call("GET", f"/instances/{_quoted(name)}")

    def change(self, name: str, verb: str, body: Any = None) -> Any:
        """Stop, start, restart, renew, resize, lend or recall an instance."""
        return self.call("POST", f"/instances/{_quoted(name)}/{verb}", body)

    def delete(self, name: str) -> Any:
        """End an instance for good."""
        return self.call("DELETE", f"/instances/{_quoted(name)}")

    def wait(self, name: str, state: str, *, timeout_s: float = 120) -> Any:
        """Wait until an instance is in a state.

        Raises
        ------
        Conflict
            It came to rest in another, or time was up; with what it waits for.
        """
        waited_s, pause_s = 0.0, _FIRST_LOOK_S
        while True:
            found = self.show(name)
            if found["state"] == state:
                return found
            if found["state"] in ("failed", "exited", "deleted"):
                raise errors.Conflict(f"{name} is {found['state']}: {found['reason']}")
            if waited_s >= timeout_s:
                reason = found["reason"] or "no reason is known"
                raise errors.Conflict(f"{name} is {found['state']}: {reason}")
            self.pause(pause_s)
            waited_s += pause_s
            pause_s = min(_LAST_LOOK_S, 1.3 * pause_s)  # many wait at once when it takes long

    def execute(self, name: str, command: Sequence[str], *, timeout_s: float = 60) -> Any:
        """Run a command inside a running instance."""
        body = {"command": list(command), "timeout_s": timeout_s}
        return self._inside(name, "exec", body)

    def _inside(self, name: str, what: str, body: Any) -> Any:
        """Ask for something inside; an instance that lent its GPU has it again by then."""
        path = f"/instances/{_quoted(name)}/{what}"
        for _ in range(_MOST_RETURNS):
            try:
                return self.call("POST", path, body)
            except errors.BeingReturned as error:
                self.pause(error.retry_after_s)
        return self.call("POST", path, body)

    def logs(self, name: str, offset: int = 0) -> Any:
        """A piece of what an instance printed, and where to go on."""
        return self.call("GET", f"/instances/{_quoted(name)}/logs", query={"offset": offset})

    def open_terminal(self, name: str, columns: int, rows: int) -> str:
        """Start a shell on a terminal inside an instance."""
        body = {"columns": columns, "rows": rows}
        made = self._inside(name, "terminals", body)
        return str(made["terminal"])

    def read_terminal(self, name: str, terminal: str, offset: int) -> tuple[bytes, int, bool]:
        """What a terminal showed from an offset on, where to go on, whether it has ended."""
        path = f"/instances/{_quoted(name)}/terminals/{terminal}"
        piece = self.call("GET", path, query={"offset": offset})
        return base64.b64decode(piece["data"]), piece["next"], piece["ended"]

    def type(self, name: str, terminal: str, keys: bytes) -> None:
        """Type into a terminal."""
        path = f"/instances/{_quoted(name)}/terminals/{terminal}"
        self.call("POST", path, {"data": base64.b64encode(keys).decode()})


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")


def _of_answer(answer: urllib.error.HTTPError) -> errors.Va100Error:
    with answer:
        try:
            detail = json.loads(answer.read())["detail"]
        except (ValueError, KeyError, TypeError):
            detail = f"{answer.code} {answer.reason}"
    if answer.code == 409 and "Retry-After" in answer.headers:
        wait_s = int(answer.headers["Retry-After"] or 1)
        return errors.BeingReturned(name=str(detail).partition(" ")[0], retry_after_s=wait_s)
    if answer.code == 429:
        return errors.TooManyRequests(retry_after_s=int(answer.headers.get("Retry-After", 1) or 1))
    make = _STATUSES.get(answer.code)
    if make is not None:
        return make(str(detail))
    return errors.SetupError(
        f"the cloud failed: {detail}", remedy="try again; then ask its operator"
    )
