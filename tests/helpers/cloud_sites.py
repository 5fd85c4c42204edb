"""A cloud that is served as people serve it: a process, an address, an account."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from va100.cloud.client import Client

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "correct horse battery"


@dataclass
class Served:
    """A served site, which can be killed and served again."""

    data: Path
    arguments: tuple[str, ...] = ()
    port: int = 0
    child: subprocess.Popen | None = None
    logs: list[Path] = field(default_factory=list)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def begin(self):
        """Serve, on the port of before if there was one."""
        log = self.data.parent / f"serve-{len(self.logs)}.log"
        self.logs.append(log)
        words = [sys.executable, "-m", "va100.cli", "cloud", "serve", "--data", str(self.data),
                 "--port", str(self.port), *self.arguments]  # fmt: skip
        with log.open("wb") as errors:
            self.child = subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment()
            )
        line = self.child.stdout.readline()
        if not line.startswith("va100 cloud on http://"):
            self.kill()
            raise AssertionError(log.read_text())
        self.port = int(line.split()[3].rpartition(":")[2])
        return self

    def kill(self):
        """Kill it as a power cut would."""
        self.child.kill()
        self._reap()

    def end(self):
        """Ask it to end; its exit status."""
        if self.child is None:
            return 0
        self.child.send_signal(signal.SIGTERM)
        return self._reap()

    def end_programs(self):
        """End what instances still run, once nobody serves them any more."""
        for path in self.data.glob("instances/*/run-*/running.json"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(json.loads(path.read_text())["shim"], signal.SIGTERM)

    def _reap(self):
        status = self.child.wait(timeout=60)
        self.child.stdout.close()
        self.child = None
        return status

    def log(self):
        return "".join(path.read_text(errors="replace") for path in self.logs)


def environment(**more):
    """The environment of this process, with the library's sources on the path."""
    paths = os.pathsep.join([str(ROOT / "src"), *(path for path in sys.path if path)])
    found = os.environ | {"PYTHONPATH": paths} | more
    found.pop("PYTHONDONTWRITEBYTECODE", None)  # compiling all modules is half of a start
    return found


def account(site, name="ann"):
    """Register someone; a client with a key."""
    person = Client(site.url)
    person.register(f"{name}@example.com", PASSWORD, name)
    person.sign_in(f"{name}@example.com", PASSWORD)
    scopes = person.call("GET", "/me")["scopes"]
    key = person.call("POST", "/keys", {"name": "test", "scopes": scopes})["secret"]
    return Client(site.url, key)


def end_instances(client):
    """Delete all instances and wait until they are gone, so that no program is left."""
    for one in client.instances():
        client.delete(one["id"])
    for _ in range(200):
        if not list(client.instances()):
            return
        client.pause(0.1)
    raise AssertionError("instances were left")
