"""The store on SQLite and, where there is one to start, PostgreSQL: the same rules on both."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `cloud` is not installed")
pytest.importorskip("alembic", reason="the extra `cloud` is not installed")
pytest.importorskip("argon2", reason="the extra `cloud` is not installed")
pytest.importorskip("psycopg", reason="the extra `cloud` is not installed")

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from tests.unit.cloud.fleets import SXM
from tests.unit.cloud.sites import Clock, PlayedDriver, join, make_site, numbered, settle
from va100.cloud.ledger import Entry, Kind
from va100.cloud.prices import MICRO
from va100.cloud.records import EntryRecord, InstanceRecord, NodeRecord, TenantRecord
from va100.cloud.service.billing import post
from va100.cloud.service.checkup import check_site
from va100.cloud.service.instances import Wish
from va100.cloud.store.database import Database
from va100.cloud.store.tables import METADATA
from va100.errors import Conflict, SetupError


@pytest.fixture(scope="module")
def postgres():
    """A PostgreSQL of the tests' own, on a port of the loopback; none where there is no program."""
    initdb = shutil.which("initdb") or next(
        (str(p) for p in Path("/usr/lib/postgresql").glob("*/bin/initdb")), None
    )
    if initdb is None:
        yield None
        return
    folder = tempfile.mkdtemp()
    as_other = {"user": "nobody"} if os.getuid() == 0 else {}
    if as_other:
        shutil.chown(folder, "nobody")
    data = f"{folder}/data"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    subprocess.run([initdb, "-D", data, "-A", "trust", "-U", "va100", "--no-sync"], check=True,
                   **quiet, **as_other)  # fmt: skip
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [str(Path(initdb).with_name("postgres")), "-D", data, "-p", str(port), "-k", folder,
         "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"],
        **quiet, **as_other,
    )  # fmt: skip
    url = f"postgresql+psycopg://va100@127.0.0.1:{port}/postgres"
    try:
        wait_for(url)
        yield url
    finally:
        server.send_signal(signal.SIGINT)  # do not wait for connections
        server.wait(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)


def wait_for(url):
    """Wait until a database answers."""
    for _ in range(400):
        try:
            Database(url).close()
        except SetupError:
            subprocess.run(["sleep", "0.1"], check=True)
        else:
            return
    raise AssertionError(f"{url} does not answer")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/cloud.db"
        return
    found = request.getfixturevalue("postgres")
    if found is None:
        pytest.skip("no PostgreSQL to start: no initdb")
    yield found
    database = Database(found)
    with database.engine.begin() as connection:
        connection.exec_driver_sql("drop schema public cascade; create schema public")
    database.close()


@pytest.fixture
def database(url):
    made = Database(url)
    made.migrate()
    yield made
    made.close()


def test_the_migrations_make_the_tables_that_records_have(database):
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, METADATA) == []
    assert database.revision()[0] == database.revision()[1]
    database.migrate()


def tenant(name, **more):
    return TenantRecord(id=name, name=name, created_s=1, **more)


def test_records_come_back_as_they_were(database):
    one = InstanceRecord(
        id="i", tenant="t", person="p", name="n", template="x", model="m", profile="", cards=2,
        market="spot", disk_gib=5, environment={"A": "é\n"}, ports=[1, 2], ssh_key="",
        command=["sh", "-c", "x"], created_s=2**40, gpus=[3, 4], exit_code=None, lent=True,
    )  # fmt: skip
    with database.work() as work:
        work.add(one)
    with database.work() as work:
        assert work.get(InstanceRecord, id="i") == one
        assert work.get(InstanceRecord, id="j") is None


def test_conditions(database):
    with database.work() as work:
        work.add(*(tenant(f"t{n}", weight=n) for n in range(1, 6)))
        names = [t.id for t in work.all(TenantRecord, weight__ge=2, weight__lt=5, order=("-id",))]
        assert names == ["t4", "t3", "t2"]
        assert [t.id for t in work.all(TenantRecord, id__in=["t1", "t9"])] == ["t1"]
        assert work.count(TenantRecord, id__not="t1") == 4
        assert work.total(TenantRecord, "weight") == 15
        assert work.change(TenantRecord, {"weight": 9}, id="t1", weight=1) == 1
        assert work.change(TenantRecord, {"weight": 8}, id="t1", weight=1) == 0
        assert work.remove(TenantRecord, weight__gt=4) == 2


def test_what_is_unique_is_there_once(database):
    with database.work() as work:
        work.add(tenant("a"))
    with pytest.raises(Conflict), database.work() as work:
        work.add(TenantRecord(id="b", name="a", created_s=1))


def test_an_exception_undoes_all(database):
    def fail():
        with database.work() as work:
            work.add(tenant("a"))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with database.work() as work:
        assert work.count(TenantRecord) == 0


def test_a_charge_is_entered_once(database):
    entry = Entry(tenant="t", kind=Kind.GPU, amount_micro=-5, at_s=10, meter="m", from_s=0, to_s=10)
    with database.work() as work:
        post(work, [entry])
    with pytest.raises(Conflict), database.work() as work:
        post(work, [entry])
    with database.work() as work:
        assert work.count(EntryRecord) == 1


def test_many_at_once_lose_nothing(url, full):
    """Launches from several threads while another dispatches: each has one place and one meter."""
    clock, driver = Clock(), PlayedDriver()
    people = 50 if full else 4
    nodes = [
        NodeRecord(name=f"n{n}", model=SXM, gpu_count=8, islands=[], driver="played")
        for n in range(4)
    ]
    first = make_site(url=url, clock=clock, driver=driver, nodes=nodes)
    ann = join(first, "ann")
    limits = {"limit_eighths": 1000, "most_instances": 1000, "most_disk_gib": 10_000}
    first.operators.set_tenant(ann, ann.tenant, limits)
    first.billing.top_up(ann, 5_000 * MICRO, "enough")
    problems = []

    def launch(number):
        site = make_site(url=url, clock=clock, driver=driver, token=numbered(10**9 * (number + 1)))
        try:
            for turn in range(4):
                wish = Wish(gpu="sxm80:1g.10gb", name=f"i{number}-{turn}")
                site.instances.launch(ann, wish, once=f"{number}-{turn}")
                site.instances.launch(ann, wish, once=f"{number}-{turn}")
        except Exception as error:  # noqa: BLE001 -- told below
            problems.append(error)
        finally:
            site.context.database.close()

    threads = [threading.Thread(target=launch, args=(n,)) for n in range(people)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        first.dispatcher.tick()
    for thread in threads:
        thread.join()
    settle(first)
    assert problems == []
    found = first.instances.of_tenant(ann, limit=1000)
    assert [one.state for one in found] == ["running"] * (4 * people)
    assert len({(one.node, one.gpus[0], one.start) for one in found}) == 4 * people
    assert len(driver.launched) == 4 * people
    checks = check_site(first.context.database, clock())
    assert all(good for _, good, _ in checks), checks
    first.context.database.close()


def test_a_lost_connection_is_made_anew(url):
    site = make_site(url=url)
    ann = join(site, "ann")
    site.instances.launch(ann, Wish(gpu="sxm80:1g.10gb", name="one"))
    if not site.context.database.is_sqlite:
        other = Database(url)
        with other.engine.begin() as connection:
            connection.exec_driver_sql(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where pid <> pg_backend_pid() and datname = current_database()"
            )
        other.close()
    settle(site)
    assert site.instances.show(ann, "one").state == "running"
    site.context.database.close()


@pytest.mark.parametrize(
    "url", ["nonsense", "sqlite:////proc/none/x.db", "mysql://a:b@127.0.0.1/x"]
)
def test_an_address_that_leads_nowhere(url):
    with pytest.raises((SetupError, OSError)) as refused:
        Database(url)
    assert "a:b" not in str(refused.value)
