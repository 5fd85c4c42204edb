"""Instances as programs of this host: started once, seen as they are, ended whole, kept apart."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

import va100
from va100.cloud.drivers import procfs
from va100.cloud.drivers.base import Assignment, Phase
from va100.cloud.drivers.local import LocalDriver
from va100.cloud.drivers.sandbox import Nothing, choose_sandbox, python_folders
from va100.cloud.models import Place, Shape
from va100.errors import Conflict, NotFound, SetupError

SXM = "A100-SXM4-80GB"
PACKAGE = Path(va100.__file__).resolve().parents[1]


def wait_until(condition, *, seconds=20):
    """Wait for a program of the host; the only clock here is its own."""
    for _ in range(seconds * 50):
        found = condition()
        if found:
            return found
        subprocess.run(["sleep", "0.02"], check=True)
    raise AssertionError("it did not come to that")


def sandbox_here():
    return choose_sandbox(os.environ["PATH"], [*python_folders(), PACKAGE])


@pytest.fixture(params=["nothing", "bubblewrap"])
def driver(request, tmp_path):
    sandbox = Nothing("a test") if request.param == "nothing" else sandbox_here()
    if request.param == "bubblewrap" and isinstance(sandbox, Nothing):
        pytest.skip(f"no isolation on this host: {sandbox.why}")
    made = LocalDriver(
        tmp_path / "instances",
        sandbox,
        lambda assignment, home, here: {
            "PATH": os.defpath,
            "GPU": str(assignment.place),
            "AT": home,
        },
        secrets.token_hex,
    )
    yield made
    for folder in made.root.iterdir():
        made.stop(folder.name, grace_s=1)
        wait_until(lambda name=folder.name: not made._shims(name))


def assignment(command, instance="i-1", generation=1, **more):
    return Assignment(
        instance=instance,
        generation=generation,
        tenant="t",
        name=f"box-{instance}",
        shape=Shape(SXM),
        place=Place("node-1", (0,)),
        command=tuple(command),
        trusted=True,
        **more,
    )


def launched(driver, command, instance="i-1", **more):
    driver.launch(assignment(command, instance, **more))
    wait_until(lambda: driver.status(instance, 1).phase is not Phase.STARTING)
    return instance


def test_it_starts_once_a_generation(driver):
    launched(driver, ["sh", "-c", "echo begun; exec sleep 100"])
    driver.launch(assignment(["sh", "-c", "echo again"]))
    wait_until(lambda: driver.logs("i-1", offset=0, limit=100)[0])
    assert driver.logs("i-1", offset=0, limit=100) == (b"begun\n", 6)
    assert driver.logs("i-1", offset=6, limit=100) == (b"", 6)
    assert driver.status("i-1", 1).phase is Phase.RUNNING
    assert driver.status("i-1", 2).phase is Phase.ABSENT


def test_how_it_ended_is_told(driver):
    launched(driver, ["sh", "-c", "exit 7"])
    wait_until(lambda: driver.status("i-1", 1).phase is Phase.EXITED)
    assert driver.status("i-1", 1).exit_code == 7


def test_a_program_that_is_not_there(driver):
    launched(driver, ["no-such-program"])
    wait_until(lambda: driver.status("i-1", 1).phase is Phase.EXITED)
    assert driver.status("i-1", 1).exit_code != 0
    assert b"no-such-program" in driver.logs("i-1", offset=0, limit=1000)[0]


def test_stopping_takes_all_of_it(driver):
    launched(driver, ["sh", "-c", "trap '' TERM; (trap '' TERM; sleep 100) & sleep 101"])
    inside = driver._inside("i-1")
    driver.stop("i-1", grace_s=1)
    wait_until(lambda: driver.status("i-1", 1).phase is Phase.EXITED)
    wait_until(lambda: all(one.state == "Z" for one in procfs.family(inside)))


def test_a_command_inside(driver):
    launched(driver, ["sleep", "100"])
    done = driver.execute("i-1", ["sh", "-c", "pwd; echo $GPU; echo bad >&2; exit 3"],
                          timeout_s=20)  # fmt: skip
    home = driver.sandbox.home(driver.root / "i-1")
    assert (done.exit_code, done.output.decode().split("\n")[:2], done.errors) == (
        3, [home, "node-1, GPU 0"], b"bad\n",
    )  # fmt: skip
    slow = driver.execute("i-1", ["sleep", "50"], timeout_s=0.3)
    assert slow.exit_code != 0
    assert b"ended after 0.3 s" in slow.errors


def test_words_are_not_a_shells(driver):
    launched(driver, ["sleep", "100"], environment={"X": "$(touch /pwned); `id` \"'"})
    done = driver.execute("i-1", ["printenv", "X"], timeout_s=20)
    assert done.output == b"$(touch /pwned); `id` \"'\n"
    done = driver.execute("i-1", ["echo", "; touch x", "$HOME"], timeout_s=20)
    assert done.output == b"; touch x $HOME\n"


def test_the_disk_stays_until_it_is_removed(driver):
    launched(driver, ["sh", "-c", "cat kept 2>/dev/null || echo first > kept"],
             files={"read/me": "hello"})  # fmt: skip
    wait_until(lambda: driver.status("i-1", 1).phase is Phase.EXITED)
    driver.launch(assignment(["sh", "-c", "cat kept read/me"], generation=2))
    wait_until(lambda: driver.status("i-1", 2).phase is Phase.EXITED)
    assert driver.logs("i-1", offset=0, limit=100)[0] == b"first\nhello"
    driver.remove("i-1")
    assert list(driver.root.iterdir()) == []


def test_pausing_holds_it_and_figures_are_told(driver):
    launched(driver, ["sh", "-c", "while :; do :; done"])
    wait_until(lambda: driver.reading("i-1").cpu_s > 0.05)
    driver.pause("i-1")
    assert driver.status("i-1", 1).paused
    before = driver.reading("i-1").cpu_s
    subprocess.run(["sleep", "0.2"], check=True)
    assert driver.reading("i-1").cpu_s - before <= 0.02
    driver.resume("i-1")
    assert not driver.status("i-1", 1).paused
    wait_until(lambda: driver.reading("i-1").cpu_s > before + 0.05)


def test_a_terminal(driver):
    launched(driver, ["sleep", "100"])
    name = driver.open_terminal("i-1", columns=90, rows=20)

    def typed():
        try:
            driver.terminal_input("i-1", name, b"stty size; exit\n")
        except Conflict:
            return False
        return True

    wait_until(typed)
    wait_until((driver.root / "i-1" / f"terminal-{name}" / "ended.json").exists)
    shown, after, _ = driver.terminal_output("i-1", name, offset=0, limit=10_000)
    assert b"20 90" in shown
    assert driver.terminal_output("i-1", name, offset=after, limit=10) == (b"", after, True)
    for odd in ("../i-2", "x", ""):
        with pytest.raises(NotFound):
            driver.terminal_output("i-1", odd, offset=0, limit=10)


def test_a_killed_shim_takes_its_instance_along(driver):
    launched(driver, ["sleep", "100"])
    inside = driver._inside("i-1")
    for running in driver._shims("i-1"):
        os.kill(running["shim"], 9)
    wait_until(lambda: driver.status("i-1", 1).phase is Phase.ABSENT)
    wait_until(lambda: not procfs.family(inside) or procfs.program(inside).state in "ZX")


def test_it_outlives_whoever_started_it(driver, tmp_path):
    """The shim is nobody's child, so a cloud that is killed leaves its instances running."""
    launched(driver, ["sleep", "100"])
    running = driver._shims("i-1")[0]
    assert procfs.program(running["shim"]).parent != os.getpid()
    other = LocalDriver(driver.root, driver.sandbox, lambda a, h, f: {}, secrets.token_hex)
    assert other.status("i-1", 1).phase is Phase.RUNNING


@pytest.fixture
def apart(driver):
    if not driver.isolation().isolates:
        pytest.skip("only where there is isolation")
    return driver


class TestIsolation:
    def inside(self, driver, *command):
        return driver.execute("i-1", list(command), timeout_s=20)

    def test_an_instance_sees_itself_alone(self, apart):
        launched(apart, ["sleep", "100"])
        launched(apart, ["sleep", "4242"], instance="i-2")
        assert self.inside(apart, "id", "-u").output == b"1000\n"
        assert self.inside(apart, "hostname").output == b"box-i-1\n"
        programs = self.inside(apart, "sh", "-c", "cat /proc/[0-9]*/cmdline").output
        assert b"4242" not in programs
        hidden = [apart.root, apart.root / "i-2", "/etc/shadow", "/var/log", Path.home() / ".ssh"]
        for path in hidden:
            done = self.inside(apart, "ls", str(path))
            assert (done.exit_code != 0, done.output) == (True, b""), path

    def test_it_reaches_no_network_but_its_own(self, apart):
        launched(apart, ["sleep", "100"])
        interfaces = self.inside(apart, "cat", "/proc/net/dev").output.decode().splitlines()[2:]
        assert [line.split(":")[0].strip() for line in interfaces] == ["lo"]

    def test_it_writes_nowhere_but_at_home(self, apart):
        launched(apart, ["sleep", "100"])
        for path in ("/usr/x", "/bin/x", str(Path(sys.prefix) / "x"), str(PACKAGE / "x")):
            assert self.inside(apart, "touch", path).exit_code != 0, path
        assert self.inside(apart, "touch", "x").exit_code == 0

    def test_it_has_no_rights_over_the_host(self, apart):
        launched(apart, ["sleep", "100"])
        status = self.inside(apart, "cat", "/proc/1/status").output.decode()
        rights = dict(line.split(":\t") for line in status.splitlines() if "Cap" in line)
        assert int(rights["CapEff"], 16) == 0
        assert self.inside(apart, "mount", "-t", "tmpfs", "none", "/workspace").exit_code != 0

    def test_no_file_grows_over_the_disk(self, apart):
        launched(apart, ["sh", "-c", "dd if=/dev/zero of=big bs=1M count=3; ls -l big"],
                 disk_bytes=1 << 20)  # fmt: skip
        wait_until(lambda: apart.status("i-1", 1).phase is Phase.EXITED)
        assert (apart.root / "i-1" / "home" / "big").stat().st_size <= 1 << 20


def test_untrusted_programs_need_isolation(tmp_path):
    made = LocalDriver(tmp_path, Nothing("no bubblewrap"), lambda a, h, f: {}, secrets.token_hex)
    strange = Assignment(instance="i", generation=1, tenant="t", name="n", shape=Shape(SXM),
                         place=Place("n", (0,)), command=("true",))  # fmt: skip
    with pytest.raises(SetupError, match="cannot keep tenants apart: no bubblewrap"):
        made.launch(strange)
    assert made.status("i", 1).phase is Phase.ABSENT
