"""Bounds of instances: each by a program that goes beyond it, beside a neighbour that does not."""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path

import pytest

import va100
from va100.cloud.drivers.base import Assignment, Phase
from va100.cloud.drivers.files import write_below
from va100.cloud.drivers.limits import Bounds, ControlGroups, Watched, choose_limits
from va100.cloud.drivers.local import LocalDriver
from va100.cloud.drivers.sandbox import Nothing, choose_sandbox, python_folders
from va100.cloud.drivers.watch import Watch, disk_use_bytes
from va100.cloud.models import Place, Shape
from va100.errors import SetupError

PACKAGE = Path(va100.__file__).resolve().parents[1]
MIB = 1 << 20
HOLD = (
    "import sys, time; x = bytearray(int(sys.argv[1]) << 20); print(len(x), flush=True); "
    "time.sleep(99)"
)


def wait_until(condition, *, seconds=20):
    for _ in range(seconds * 20):
        found = condition()
        if found:
            return found
        subprocess.run(["sleep", "0.05"], check=True)
    raise AssertionError("it did not come to that")


@pytest.fixture(params=["held", "watched"])
def driver(request, tmp_path):
    sandbox = choose_sandbox(os.environ["PATH"], [*python_folders(), PACKAGE])
    if isinstance(sandbox, Nothing):
        pytest.skip(f"no isolation on this host: {sandbox.why}")
    limits = choose_limits() if request.param == "held" else Watched("a test")
    if request.param == "held" and isinstance(limits, Watched):
        pytest.skip(f"no control groups on this host: {limits.why}")
    made = LocalDriver(tmp_path / "instances", sandbox, lambda a, home, here: {"PATH": os.defpath},
                       secrets.token_hex, limits=limits, most_programs=40)  # fmt: skip
    yield made
    for folder in list(made.root.iterdir()):
        made.stop(folder.name, grace_s=1)
        wait_until(lambda name=folder.name: not made._shims(name))
        made.remove(folder.name)
        if isinstance(limits, ControlGroups):
            wait_until(lambda name=folder.name: not limits._groups(name)[0].exists()
                       or limits.forget(name))  # fmt: skip


@pytest.fixture
def names(driver):
    """An instance's name and its neighbour's, of nobody else on this host."""
    both = (f"t-{secrets.token_hex(4)}", f"t-{secrets.token_hex(4)}")
    start(driver, both[1], ["sleep", "100"])
    return both


def start(driver, name, command, **more):
    driver.launch(
        Assignment(
            instance=name,
            generation=1,
            tenant="t",
            name="box",
            shape=Shape("A100-SXM4-80GB"),
            place=Place("n", (0,)),
            command=tuple(command),
            **more,
        )
    )
    wait_until(lambda: driver.status(name, 1).phase is not Phase.STARTING)


def test_memory_beyond_the_bound_ends_the_program_alone(driver, names):
    one, neighbour = names
    start(driver, one, ["sh", "-c", f"python3 -c '{HOLD}' 20; sleep 99"], memory_bytes=150 * MIB)
    wait_until(lambda: driver.logs(one, offset=0, limit=100)[0])
    assert driver.status(one, 1).trouble == "", "what fits is left alone"
    done = driver.execute(one, ["python3", "-c", HOLD, "400"], timeout_s=30)
    assert done.exit_code == 137, done
    assert "out of memory" in driver.status(one, 1).trouble
    assert driver.status(one, 1).phase is Phase.RUNNING
    assert driver.status(neighbour, 1).phase is Phase.RUNNING
    assert driver.status(neighbour, 1).trouble == ""


def test_no_more_programs_than_the_bound(driver, names):
    one, neighbour = names
    start(driver, one, ["sh", "-c", "for i in $(seq 100); do sleep 98 & done; echo $i; wait"])
    wait_until(lambda: "too many programs" in driver.status(one, 1).trouble)
    inside = [p for p in driver._programs(one) if p.state != "Z"]
    assert len(inside) <= 42, "bounded, or all ended"
    assert driver.execute(neighbour, ["sh", "-c", "sleep 0 & wait; echo well"],
                          timeout_s=20).output == b"well\n"  # fmt: skip


def test_all_files_together_stay_within_the_disk(driver, names):
    one, _ = names
    start(driver, one, ["sleep", "100"], disk_bytes=8 * MIB)
    write = "for i in 1 2 3 4 5 6; do dd if=/dev/zero of=f$i bs=1M count=2 2>/dev/null; done; echo"
    driver.execute(one, ["sh", "-c", write], timeout_s=20)
    wait_until(lambda: "disk full" in driver.status(one, 1).trouble)
    slow = "sleep 2.5; echo more > g; echo said $?"
    assert b"said 0" not in driver.execute(one, ["sh", "-c", slow], timeout_s=20).output
    assert driver.execute(one, ["rm", "f1", "f2", "f3", "f4"], timeout_s=20).exit_code == 0
    wait_until(lambda: driver.status(one, 1).trouble == "")
    assert driver.execute(one, ["sh", "-c", "echo again > g; cat g"],
                          timeout_s=20).output == b"again\n"  # fmt: skip


def test_nothing_is_kept_outside_of_home_and_scratch(driver, names):
    one, _ = names
    start(driver, one, ["sleep", "100"])
    for path in ("/x", "/dev/x", "/etc/x"):
        assert driver.execute(one, ["touch", path], timeout_s=20).exit_code != 0, path
    for path in ("/dev/shm/x", "/run/x", "x"):
        assert driver.execute(one, ["touch", path], timeout_s=20).exit_code == 0, path


def test_one_who_writes_on_has_its_programs_ended(tmp_path):
    told, ended = [], []
    (tmp_path / "much").write_bytes(b"x" * (70 * MIB))
    watch = Watch(tmp_path, {"disk_bytes": 1 * MIB}, lambda: ended.append(1) or [], told.append,
                  iter(range(100)).__next__, lambda: 0.0)  # fmt: skip
    watch.look()
    assert "its programs were ended" in told[0]


def test_what_a_disk_holds_is_counted_once(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    (tmp_path / "again").hardlink_to(tmp_path / "a")
    (tmp_path / "out").symlink_to("/usr")
    (tmp_path / "b").mkdir()
    used = disk_use_bytes(tmp_path, enough=1 << 40)
    assert 100_000 <= used <= 130_000
    for number in range(200):
        (tmp_path / "b" / str(number)).touch()
    assert disk_use_bytes(tmp_path, enough=1 << 40) - used >= 200 * 1024, "empty files cost, too"
    assert disk_use_bytes(tmp_path, enough=10) < used, "no longer than is needed"


def test_bounds_grow_and_shrink():
    limits = choose_limits()
    if isinstance(limits, Watched):
        pytest.skip(f"no control groups on this host: {limits.why}")
    name = f"t-{secrets.token_hex(4)}"
    for mib in (100, 200, 50):
        limits.prepare(name, Bounds(memory_bytes=mib * MIB, programs=mib))
        assert (limits._groups(name)[-1] / "pids.max").read_text() == f"{mib}\n"
    with subprocess.Popen([*limits.joining(name), "sleep", "100"]) as inside:
        wait_until((limits._groups(name)[-1] / "cgroup.procs").read_text)
        limits.prepare(name, Bounds(memory_bytes=300 * MIB, programs=7))
        inside.kill()
    assert (limits._groups(name)[-1] / "pids.max").read_text() == "7\n"
    wait_until(lambda: limits.forget(name) or not limits._groups(name)[0].exists())


class TestChoice:
    def unified(self, tmp_path, controllers="cpu memory pids"):
        (tmp_path / "cgroup.controllers").write_text(controllers)
        (tmp_path / "cgroup.subtree_control").write_text("")
        return tmp_path

    def test_version_two_is_set_up_and_used(self, tmp_path):
        found = choose_limits(self.unified(tmp_path), "0::/me\n", 100 << 30)
        assert isinstance(found, ControlGroups)
        parent = tmp_path / "va100-cloud"
        assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"
        assert (parent / "memory.max").read_text() == str(90 << 30), "the host keeps a tenth"
        found.prepare("i-1", Bounds(memory_bytes=7, programs=9, eighths=2))
        files = ("memory.max", "memory.swap.max", "pids.max", "cpu.weight")
        values = {name: (parent / "i-1" / name).read_text() for name in files}
        assert values == {"memory.max": "7", "memory.swap.max": "0", "pids.max": "9",
                          "cpu.weight": "256"}  # fmt: skip
        assert found.joining("i-1")[-2:] == [str(parent / "i-1" / "cgroup.procs"), "--"]
        assert found.trouble("i-1") == ""
        (parent / "i-1" / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
        assert found.trouble("i-1").startswith("out of memory: 2 ")

    def test_a_missing_controller_is_named(self, tmp_path):
        found = choose_limits(self.unified(tmp_path, "cpu memory"), "0::/\n", 1 << 30)
        assert isinstance(found, Watched)
        assert "no pids controller" in found.how()

    def test_a_host_without_any(self, tmp_path):
        found = choose_limits(tmp_path, "0::/\n", 1 << 30)
        assert not found.holds()
        assert "watched every second" in found.how()


class TestHomes:
    """A home is its tenant's: what the cloud writes there goes nowhere else."""

    @pytest.fixture
    def home(self, tmp_path):
        (tmp_path / "home").mkdir()
        (tmp_path / "elsewhere").mkdir()
        return tmp_path / "home"

    def test_a_file_and_its_folders(self, home):
        write_below(home, "a/b/c", "text")
        write_below(home, "a/b/c", "later")
        assert (home / "a" / "b" / "c").read_text() == "text"
        write_below(home, ".ssh/authorized_keys", "key", anew=True, mode=0o600)
        assert (home / ".ssh" / "authorized_keys").stat().st_mode & 0o777 == 0o600
        assert (home / ".ssh").stat().st_mode & 0o777 == 0o700

    def test_links_are_not_followed(self, home):
        outside = home.parent / "elsewhere"
        (home / ".ssh").symlink_to(outside)
        with pytest.raises(SetupError, match="authorized_keys"):
            write_below(home, ".ssh/authorized_keys", "key", anew=True, mode=0o600)
        (home / "file").symlink_to(outside / "new")
        write_below(home, "file", "text")
        with pytest.raises(SetupError):
            write_below(home, "file", "text", anew=True)
        assert list(outside.iterdir()) == []
