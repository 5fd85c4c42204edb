"""Sites with a driver that plays instances, a clock that is told the time, and numbered tokens."""

from __future__ import annotations

import itertools

from tests.unit.cloud.fleets import SXM
from va100.cloud.drivers.base import Finished, Isolation, Phase, Reading, Status
from va100.cloud.policies import Policy
from va100.cloud.records import NodeRecord
from va100.cloud.service.options import SiteOptions
from va100.cloud.site import Setting, open_site
from va100.cloud.store.database import Database
from va100.errors import Conflict, NotFound, SetupError

PASSWORD = "correct horse battery"


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, at_s=1_800_000_000):
        self.at_s = at_s

    def __call__(self):
        return self.at_s

    def move(self, seconds):
        self.at_s += seconds


class Plain:
    """Passwords kept as they are: fast, and for tests alone."""

    def hash(self, password):
        return f"plain:{password}"

    def verify(self, encoded, password):
        return encoded == f"plain:{password}"


class PlayedDriver:
    """Instances that run because they were asked to, end when told, and can be broken."""

    def __init__(self, *, isolates=True):
        self.isolates = isolates
        self.live = {}
        self.paused = set()
        self.launched = []
        self.refuse = ""
        self.slow_stop = False
        self.busy = {}
        self.removed = []
        self.work = {}
        self.trouble = {}

    def isolation(self):
        return Isolation(isolates=self.isolates, how="played")

    def launch(self, assignment):
        if self.refuse:
            raise SetupError(self.refuse, remedy="none")
        key = (assignment.instance, assignment.generation)
        if key not in self.live:
            self.live[key] = "running"
            self.launched.append(assignment)

    def status(self, instance, generation):
        found = self.live.get((instance, generation))
        if found is None:
            return Status(phase=Phase.ABSENT)
        if found == "running":
            trouble = self.trouble.get(instance, "")
            return Status(phase=Phase.RUNNING, paused=instance in self.paused, trouble=trouble)
        return Status(phase=Phase.EXITED, exit_code=found)

    def running(self):
        return sorted(i for (i, _), state in self.live.items() if state == "running")

    def exit(self, instance, code):
        for key in self.live:
            if key[0] == instance and self.live[key] == "running":
                self.live[key] = code

    def lose(self, instance):
        self.live = {k: v for k, v in self.live.items() if k[0] != instance}

    def stop(self, instance, *, grace_s):
        if not self.slow_stop:
            self.exit(instance, 143)

    def pause(self, instance):
        self.paused.add(instance)

    def resume(self, instance):
        self.paused.discard(instance)

    def remove(self, instance):
        self.removed.append(instance)

    def execute(self, instance, command, *, timeout_s):
        if instance not in self.running():
            raise Conflict("nothing runs in it")
        return Finished(exit_code=0, output=" ".join(command).encode(), errors=b"")

    def logs(self, instance, *, offset, limit):
        return b"hello\n"[offset : offset + limit], min(6, offset + limit)

    def reading(self, instance):
        ratio = self.busy.get(instance, 0.0)
        return Reading(cpu_s=1.0, memory_bytes=1 << 20, busy_ratio=ratio)

    def gpu_work_ns(self, instance):
        return self.work.get(instance)

    def open_terminal(self, instance, *, columns, rows):
        return "00" * 8

    def terminal_output(self, instance, terminal, *, offset, limit):
        if terminal != "00" * 8:
            raise NotFound("terminal", terminal)
        return b"$ "[offset:], 2, False

    def terminal_input(self, instance, terminal, keys):
        pass

    def port_address(self, instance, port):
        return None


def numbered(first=1):
    """Tokens that differ, and are the same in every run."""
    counter = itertools.count(first)
    return lambda size: f"{next(counter):0{2 * size}x}"[-2 * size :]


NODES = (NodeRecord(name="node-1", model=SXM, gpu_count=2, islands=[[0, 1]], driver="played"),)


_TEMPLATE = []


def migrated(url):
    """A database with its tables, which are made once and copied."""
    database = Database(url)
    if not _TEMPLATE:
        made = Database("sqlite://")
        made.migrate()
        _TEMPLATE.append(made)
    if database.is_sqlite and database.revision()[0] is None:
        with _TEMPLATE[0].engine.connect() as source, database.engine.connect() as target:
            source.rollback()
            target.rollback()
            source.connection.dbapi_connection.backup(target.connection.dbapi_connection)
    return database


def make_site(*, url="sqlite://", driver=None, clock=None, nodes=NODES, token=None, **options):
    """A site on its own database."""
    options.setdefault("policy", Policy(notice_s=10, patience_s=None))
    setting = Setting(
        clock=clock or Clock(),
        token=token or numbered(),
        hasher=Plain(),
        options=SiteOptions(**options),
        nodes=nodes,
    )
    return open_site(migrated(url), {"played": driver or PlayedDriver()}, setting)


def join(site, name):
    """Register someone; who it is, in its own tenant."""
    email = f"{name}@example.com"
    site.accounts.register(email, PASSWORD, name)
    cookie = site.accounts.sign_in(email, PASSWORD).cookie
    return site.accounts.of_session(cookie)[0]


def settle(site, ticks=4):
    """Let the dispatcher do all that there is to do now."""
    for _ in range(ticks):
        assert site.dispatcher.tick()


def states(site, actor):
    """States of a tenant's instances by name."""
    return {one.name: one.state for one in site.instances.of_tenant(actor)}
