"""Many people at once: each registers, launches, uses, deletes; nothing is lost or paid twice."""

from __future__ import annotations

import itertools
import threading

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `cloud` is not installed")
pytest.importorskip("uvicorn", reason="the extra `cloud` is not installed")
pytest.importorskip("argon2", reason="the extra `cloud` is not installed")

from tests.helpers.cloud_sites import Served, account
from tests.system.test_cloud_served import doctor

SLICE = "sxm80:1g.10gb"


@pytest.fixture
def site(tmp_path):
    nodes = [word for n in range(4) for word in ("--node", f"n{n}=sxm80:8")]
    served = Served(tmp_path / "site", tuple(nodes)).begin()
    yield served
    served.end()


def test_everyone_gets_one_and_pays_once(site, full):
    users = 200 if full else 8
    operator = account(site, "operator")
    problems, done, trusts = [], [], threading.Lock()
    begun = threading.Barrier(users)

    def use(number):
        try:
            begun.wait()
            person = account(site, f"u{number}")
            with trusts:  # only matters on hosts without isolation
                tenant = person.call("GET", "/me")["tenant"]
                operator.call("PATCH", f"/operator/tenants/{tenant}", {"trusted": True})
            wish = {"name": "box", "command": ["sleep", "1000"], "idempotency_key": "once"}
            first = person.launch(SLICE, **wish)
            assert person.launch(SLICE, **wish)["id"] == first["id"]
            shown = person.wait("box", "running", timeout_s=300)
            place = (shown["node"], shown["gpus"][0], shown["start"])
            assert person.execute("box", ["echo", str(number)])["output"] == f"{number}\n"
            done.append((person, place))
        except Exception as error:  # noqa: BLE001 -- told below
            problems.append(f"{number}: {error!r}")

    threads = [threading.Thread(target=use, args=(n,)) for n in range(users)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len({place for _, place in done}) == users, "no slice is given twice"
    for person, _ in done:
        person.delete("box")
    for person, _ in done:
        for _ in range(600):
            if not list(person.instances()):
                break
            person.pause(0.1)
        charges = [e for e in person.call("GET", "/entries")["items"] if e["kind"] == "gpu"]
        times = sorted((e["from_s"], e["to_s"]) for e in charges)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(times)), times
    checks = doctor(site)
    assert all(one["good"] for one in checks), checks
    assert "Traceback" not in site.log()
