"""A served cloud from outside: CUDA in a rented GPU, the command line, kills, the bill."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `cloud` is not installed")
pytest.importorskip("uvicorn", reason="the extra `cloud` is not installed")
pytest.importorskip("argon2", reason="the extra `cloud` is not installed")

from tests.helpers.cloud_sites import (
    PASSWORD,
    Served,
    account,
    end_instances,
    environment,
)
from va100.cli.main import main
from va100.cloud.client import Client
from va100.errors import Conflict, NotSignedIn, SetupError

SLICE = "a100-80g:1g.10gb"
ABOUT_THE_HOST = ("isolation", "limits")
COUNT_DEVICES = (
    "import ctypes; c = ctypes.CDLL('libcuda.so.1'); c.cuInit(0); n = ctypes.c_int(); "
    "c.cuDeviceGetCount(ctypes.byref(n)); name = ctypes.create_string_buffer(96); "
    "c.cuDeviceGetName(name, 96, 0); print(n.value, name.value.decode())"
)
ALLOCATE = (
    "import ctypes, sys; c = ctypes.CDLL('libcuda.so.1'); c.cuInit(0); d = ctypes.c_int(); "
    "x = ctypes.c_void_p(); c.cuDeviceGet(ctypes.byref(d), 0); "
    "c.cuDevicePrimaryCtxRetain(ctypes.byref(x), d); c.cuCtxSetCurrent(x); p = ctypes.c_uint64()\n"
    "for m in sys.argv[1:]: "
    "print(f'{m}:{c.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(int(m) << 20))}')"
)


NAMES = (f"tenant{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory):
    served = Served(tmp_path_factory.mktemp("served") / "site").begin()
    yield served
    served.end()


@pytest.fixture(scope="module")
def operator(shared_site):
    if shared_site.child is None:
        shared_site.begin()
    return account(shared_site, "operator")


@pytest.fixture
def site(shared_site, operator):
    """One site for all: starting one takes longer than most tests."""
    if shared_site.child is None:
        shared_site.begin()
    return shared_site


@pytest.fixture
def isolated(site, operator):
    """A tenant, trusted where nothing keeps tenants apart, so that its programs run at all."""
    client = account(site, next(NAMES))
    trust(operator, client)
    yield client
    if site.child is None:
        site.begin()
    end_instances(client)


def trust(operator, client):
    tenant = client.call("GET", "/me")["tenant"]
    operator.call("PATCH", f"/operator/tenants/{tenant}", {"trusted": True})


def test_a_cuda_program_runs_on_the_rented_gpu(site, isolated):
    ann = isolated
    made = ann.launch(SLICE, name="serve", template="inference")
    shown = ann.wait(made["id"], "running")
    assert (shown["gpu"], shown["eighths"]) == ("A100-SXM4-80GB:1g.10gb", 1)
    ask = (
        "import json, time, urllib.request as u\n"
        "for _ in range(200):\n"
        "  try: u.urlopen('http://127.0.0.1:8000/v2/health/ready'); break\n"
        "  except OSError: time.sleep(0.1)\n"
        "body = json.dumps({'inputs': [{'data': [1, 2, 3.5]}]}).encode()\n"
        "print(u.urlopen('http://127.0.0.1:8000/v2/models/affine/infer', body).read().decode())"
    )
    done = ann.execute("serve", ["python3", "-c", ask])
    assert done["exit_code"] == 0, done
    assert json.loads(done["output"])["outputs"][0]["data"] == [3, 5, 8], done
    done = ann.execute("serve", ["python3", "-c", COUNT_DEVICES])
    assert done["output"].startswith("1 NVIDIA A100-SXM4-80GB MIG 1g.10gb"), done
    listed = ann.execute("serve", ["nvidia-smi", "-L"])["output"].splitlines()
    assert "MIG 1g.10gb" in listed[1], listed
    assert len(listed) == 2, listed


def test_memory_beyond_the_slice_fails_and_neighbours_do_not_notice(site, isolated):
    for name in ("one", "two"):
        isolated.wait(isolated.launch(SLICE, name=name)["id"], "running")
    text = isolated.execute("one", ["python3", "-c", ALLOCATE, "11000", "9000"])["output"]
    assert text.split() == ["11000:2", "9000:0"], "out of memory, and what fits"
    assert isolated.execute("two", ["python3", "-c", ALLOCATE, "9000"])["output"] == "9000:0\n"


def test_several_cards_are_as_many_devices(site, isolated):
    made = isolated.launch("sxm40:2", name="two")
    isolated.wait(made["id"], "running")
    done = isolated.execute("two", ["python3", "-c", COUNT_DEVICES])
    assert done["output"].startswith("2 NVIDIA A100-SXM4-40GB"), done


def test_a_killed_cloud_loses_nothing(site, isolated, full):
    """Kill it at any moment while instances are launched, stopped and deleted; then it is whole."""
    chance = random.Random(5)
    client, asked = isolated, set()
    for turn in range(100 if full else 3):
        name = f"i{turn}"
        with_kill(site, chance)
        try:
            client.launch(SLICE, name=name, idempotency_key=name)
        except (SetupError, Conflict):
            pass
        else:
            asked.add(name)
        if site.child.poll() is not None:
            site._reap()
            site.begin()
        client.launch(SLICE, name=name, idempotency_key=name)
        asked.add(name)
        if turn % 2 or len(asked) > 4:
            client.delete(asked.pop())
    for name in asked:
        client.wait(name, "running")
    found = {one["name"] for one in client.instances() if one["state"] == "running"}
    assert found == asked
    checks = doctor(site)
    assert all(one["good"] for one in checks), checks


def with_kill(site, chance):
    """Kill the server within the next tenth of a second or so, from a process of its own."""
    delay = f"{chance.random() * 0.15:.3f}"
    subprocess.Popen(["sh", "-c", f"sleep {delay}; kill -9 {site.child.pid}"]).wait()


def doctor(site):
    words = [sys.executable, "-m", "va100.cli", "cloud", "doctor", "--data", str(site.data),
             "--json"]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), check=False)
    assert done.stdout, done.stderr
    return [one for one in json.loads(done.stdout) if one["check"] not in ABOUT_THE_HOST]


def test_instances_outlive_the_cloud_and_are_found_again(site, isolated):
    ann = isolated
    made = ann.launch(SLICE, name="lasting", command=["sleep", "1000"])
    ann.wait(made["id"], "running")
    ann.execute("lasting", ["sh", "-c", "echo kept > here"])
    site.kill()
    site.begin()
    shown = ann.wait("lasting", "running")
    assert shown["generation"] == 1
    assert ann.execute("lasting", ["cat", "here"])["output"] == "kept\n"


def test_it_ends_gracefully(site, isolated):
    assert site.end() == 0
    assert "Traceback" not in site.log()


def test_several_workers_answer_and_one_schedules(tmp_path):
    site = Served(tmp_path / "site", ("--workers", "2")).begin()
    try:
        ann = account(site)
        trust(ann, ann)
        for number in range(3):
            ann.launch(SLICE, name=f"i{number}")
        for number in range(3):
            assert ann.wait(f"i{number}", "running")["generation"] == 1
        end_instances(ann)
    finally:
        assert site.end() == 0


class TestCommandLine:
    """Its verbs, most of them in this process: a start of Python takes longer than they do."""

    @pytest.fixture
    def run(self, site, tmp_path, monkeypatch, capsys):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        monkeypatch.setenv("VA100_CLOUD_PASSWORD", PASSWORD)
        monkeypatch.setenv("VA100_CLOUD_URL", site.url)

        def ran(*words, status=0):
            try:
                found = main(["cloud", *words])
            except SystemExit as end:
                found = end.code
            said = capsys.readouterr()
            assert found == status, said.err
            return said.out if status == 0 else said.err

        return ran

    def test_it_is_a_program(self, site, tmp_path):
        words = [sys.executable, "-m", "va100.cli", "cloud", "offers"]
        done = subprocess.run(words, capture_output=True, text=True, check=True,
                              env=environment(VA100_CLOUD_URL=site.url))  # fmt: skip
        assert "A100-SXM4-80GB:1g.10gb" in done.stdout

    def test_from_registration_to_bill(self, run, operator):
        name = next(NAMES)
        assert "signed in" in run("register", f"{name}@example.com", "--tenant", name)
        tenant = json.loads(run("api", "GET", "/me"))["tenant"]
        operator.call("PATCH", f"/operator/tenants/{tenant}", {"trusted": True})
        assert "A100-SXM4-80GB:1g.10gb" in run("offers")
        assert "inference" in run("templates")
        run("launch", "--gpu", SLICE, "--name", "box", "--wait", "--env", "A=b c",
            "--lendable", "--", "sh", "-c", "echo begun; sleep 1000")  # fmt: skip
        assert run("exec", "box", "--", "printenv", "A") == "b c\n"
        assert "No such file" in run("exec", "box", "--", "cat", "nothing", status=1)
        assert run("logs", "box") == "begun\n"
        assert "running" in run("list")
        assert "placed" in run("show", "box")
        assert "running" in run("lend", "box")
        assert run("exec", "box", "--", "echo", "back") == "back\n", "being asked for, it returns"
        assert "returned" in run("show", "box")
        assert "box" in run("renew", "--lease", "600", "box")
        assert run("top-up", "10", "--reference", name).startswith("balance $3")
        assert run("balance").startswith("$3")
        assert "eighths of a card  1" in run("quota")
        assert "gpu:A100-SXM4-80GB" in run("bill")
        run("restart", "--wait", "box")
        run("stop", "--wait", "box")
        assert "1/8" in run("usage")
        assert "10 GiB" in run("bill")
        run("resize", "--gpu", "a100-80g:2g.20gb", "box")
        assert "2g.20gb" in run("list")
        run("start", "--wait", "box")
        run("delete", "box")
        run("logout")
        assert "va100 cloud login" in run("list", status=1)
        assert "signed in" in run("login", f"{name}@example.com")

    def test_what_operators_see(self, run):
        run("login", "operator@example.com")
        assert "hgx-1" in run("fleet")

    def test_what_means_nothing_ends_with_2(self, run):
        run("login", "operator@example.com")
        for words, problem in (
            (("launch", "--gpu", "a100-80g:0.5"), "take the slice a100-80g:4g.40gb"),
            (("launch", "--gpu", "h100"), "not offered here"),
            (("launch", "--gpu", SLICE, "--env", "A"), "no NAME=VALUE"),
            (("launch", "--gpu", SLICE, "--ssh-key", "/nowhere"), "/nowhere"),
            (("top-up", "lots"), "no amount"),
            (("bill", "--from", "yesterday"), "no day"),
            (("api", "GET", "keys"), "begins with /"),
            (("exec", "x"), "name a command"),
            (("ssh", "x"), "needs a terminal"),
            (("serve", "--node", "x"), "no NAME=MODEL:COUNT"),
            (("serve", "--node", "x=sxm80:99"), "1 to 16 cards"),
            (("serve", "--node", "x=sxm80:1@mars"), "none of local, slurm, kubernetes"),
            (("serve", "--policy", "none"), "none of first-come"),
            (("serve", "--workers", "0"), "1 to 32 workers"),
            (("serve", "--notice", "0"), "1 second or more"),
            (("serve", "--memory-per-eighth", "0"), "more than 0 GiB"),
            (("simulate", "--gpus", "0"), "--gpus"),
            (("simulate", "--order", "none"), "none of first-come"),
            (("simulate", "--trace", "/nowhere.csv"), "/nowhere.csv"),
        ):
            assert problem in run(*words, status=2), words

    def test_nobody_there(self, run):
        text = run("offers", "--url", "http://127.0.0.1:1", status=1)
        assert "does not answer" in text
        assert "va100 cloud serve" in text

    def test_a_replay_is_told_and_drawn(self, run, tmp_path):
        trace = tmp_path / "trace.csv"
        trace.write_text("job,submit_s,duration_s,gpus\na,0,100,4\nb,10,100,8\nc,20,50,1\n")
        page = tmp_path / "page.html"
        words = ["simulate", "--trace", str(trace), "--gpus", "8", "--json", "--html", str(page)]
        found = json.loads(run(*words, "--order", "first-come,shortest-first"))
        assert set(found) == {"first-come, tight", "shortest-first, tight"}
        assert all(one["finished_count"] == 3 for one in found.values())
        assert page.read_text().count("<svg") >= 3


def test_a_database_that_is_not_there(tmp_path):
    words = ["cloud", "serve", "--data", str(tmp_path), "--port", "0",
             "--database", "postgresql+psycopg://nobody:secret@127.0.0.1:1/x"]  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "va100.cli", *words], capture_output=True,
                          text=True, check=False, env=environment(), timeout=60)  # fmt: skip
    assert done.returncode == 1
    assert "postgresql+psycopg://...@127.0.0.1:1/x" in done.stderr
    assert "secret" not in done.stderr


def test_a_key_that_is_wrong(site):
    with pytest.raises(NotSignedIn, match="unknown"):
        Client(site.url, "va100-nothing").call("GET", "/me")
