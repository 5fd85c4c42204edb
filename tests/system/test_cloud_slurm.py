"""Instances as jobs of a real Slurm, which the tests start on this machine, with our files."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys

import pytest

from va100.cloud.drivers.base import Assignment, Phase
from va100.cloud.drivers.slurm import SlurmDriver
from va100.cloud.drivers.slurm_files import NodeLayout, gres_conf, mismatches, slurm_conf_lines
from va100.cloud.models import Place, Shape
from va100.errors import SetupError

SXM = "A100-SXM4-80GB"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue")
PATH = os.pathsep.join([os.environ["PATH"], "/usr/sbin"])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, *, seconds=40):
    for _ in range(seconds * 10):
        if condition():
            return
        subprocess.run(["sleep", "0.1"], check=True)
    raise AssertionError("it did not come to that")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    if missing:
        pytest.skip(
            f"Slurm is not installed: no {', '.join(missing)} (apt install slurm-wlm munge)"
        )
    if os.getuid():
        pytest.skip("Slurm's daemons need root here")
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("state", "spool", "dev"):
        (folder / name).mkdir()
    for above in [folder, *folder.parents][:3]:
        above.chmod(0o755)  # munge refuses a socket that others could not reach
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    host = socket.gethostname().partition(".")[0]
    layout = NodeLayout(name=host, model=SXM, cards=((), (), ("1g.10gb",) * 2 + ("3g.40gb",)),
                        cpus=2)  # fmt: skip
    for number in range(8):
        (folder / "dev" / f"gpu{number}").touch()
    gres = gres_conf([layout], f"{folder}/dev/gpu{{number}}")
    lines = slurm_conf_lines([layout]).replace(f"NodeName={host} ",
                                               f"NodeName={host} NodeAddr=127.0.0.1 ")  # fmt: skip
    slurm = (
        f"ClusterName=va100\nSlurmctldHost={host}(127.0.0.1)\nAuthType=auth/munge\n"
        f"AuthInfo=socket={folder}/munge.sock\nSlurmUser=root\nSlurmctldPort={free_port()}\n"
        f"SlurmdPort={free_port()}\nStateSaveLocation={folder}/state\n"
        f"SlurmdSpoolDir={folder}/spool\nSlurmctldPidFile={folder}/ctld.pid\n"
        f"SlurmdPidFile={folder}/d.pid\nSlurmctldLogFile={folder}/ctld.log\n"
        f"SlurmdLogFile={folder}/d.log\nProctrackType=proctrack/linuxproc\n"
        "TaskPlugin=task/none\nSelectTypeParameters=CR_CPU\nMpiDefault=none\nReturnToService=2\n"
        "KillWait=2\nSchedulerParameters=batch_sched_delay=0,sched_interval=1\n"
        f"JobAcctGatherType=jobacct_gather/none\n{lines}"
    )
    (folder / "gres.conf").write_text(gres)
    (folder / "slurm.conf").write_text(slurm)
    assert mismatches(gres, slurm) == []
    variables = {"PATH": PATH, "SLURM_CONF": str(folder / "slurm.conf"), "HOME": str(folder)}

    def start(*words):
        subprocess.run(words, env=variables, check=True, stdout=subprocess.DEVNULL)

    start("munged", "--force", f"--key-file={key}", f"--socket={folder}/munge.sock",
          f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log",
          f"--seed-file={folder}/munge.seed")  # fmt: skip
    start("slurmctld", "-f", variables["SLURM_CONF"])
    start("slurmd", "-f", variables["SLURM_CONF"], "-N", host)

    def sees():
        words = ["sinfo", "--noheader", "--format=%T %G"]
        done = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
        return "idle" in done.stdout and "a100_3g.40gb:1" in done.stdout

    try:
        wait_until(sees)
        yield variables, host
    finally:
        for name in ("d.pid", "ctld.pid", "munged.pid"):
            path = folder / name
            if path.exists():
                subprocess.run(["kill", path.read_text().strip()], check=False)


@pytest.fixture
def driver(cluster, tmp_path):
    for above in [tmp_path, *tmp_path.parents][:3]:
        above.chmod(0o755)
    variables, host = cluster
    made = SlurmDriver(tmp_path / "jobs", lambda a, h, f: {"PATH": os.defpath}, variables)
    made.host = host
    yield made
    for folder in made.root.iterdir():
        made.stop(folder.name, grace_s=1)
    wait_until(lambda: not made._ask(["squeue", "--noheader"]).strip())


def assignment(driver, command, shape, instance="i-1", generation=1):
    return Assignment(
        instance=instance, generation=generation, tenant="t", name="n", shape=shape,
        place=Place(driver.host, (0,)), command=tuple(command), trusted=True,
        environment={"WORDS": "a 'b' $(c)"},
    )  # fmt: skip


def phase(driver, instance="i-1", generation=1):
    return driver.status(instance, generation).phase


def test_a_slice_is_a_job(driver):
    one = assignment(driver, ["sh", "-c", 'echo "$WORDS"; exec sleep 100'], Shape(SXM, "1g.10gb"))
    assert phase(driver) is Phase.ABSENT
    driver.launch(one)
    driver.launch(one)
    wait_until(lambda: phase(driver) is Phase.RUNNING)
    assert len(driver._ask(["squeue", "--noheader"]).splitlines()) == 1
    asked = driver._ask(["squeue", "--noheader", "--format=%b"])
    assert "gpu:a100_1g.10gb:1" in asked
    wait_until(lambda: driver.logs("i-1", offset=0, limit=100)[0] != b"")
    assert driver.logs("i-1", offset=0, limit=100)[0] == b"a 'b' $(c)\n"
    done = driver.execute("i-1", ["sh", "-c", "echo $WORDS; exit 4"], timeout_s=30)
    assert (done.exit_code, done.output) == (4, b"a 'b' $(c)\n")
    driver.stop("i-1", grace_s=1)
    wait_until(lambda: phase(driver) is Phase.EXITED)


def test_a_job_of_more_than_there_is_waits(driver):
    for number in range(3):
        driver.launch(
            assignment(driver, ["sleep", "100"], Shape(SXM, "1g.10gb"), instance=f"i-{number}")
        )
    wait_until(lambda: [phase(driver, f"i-{n}") for n in range(3)].count(Phase.RUNNING) == 2)
    assert [phase(driver, f"i-{n}") for n in range(3)].count(Phase.STARTING) == 1


def test_how_it_ended_is_told(driver):
    driver.launch(assignment(driver, ["sh", "-c", "exit 9"], Shape(SXM, cards=2)))
    wait_until(lambda: phase(driver) is Phase.EXITED)
    assert driver.status("i-1", 1).exit_code == 9


def test_what_slurm_lacks_is_refused_in_its_words(driver):
    with pytest.raises(SetupError, match="sbatch"):
        driver.launch(assignment(driver, ["true"], Shape(SXM, "7g.80gb")))


def test_the_command_writes_and_checks_files(tmp_path):
    def run(*words):
        return subprocess.run(
            [sys.executable, "-m", "va100.cli", "cloud", "slurm-conf", *words],
            capture_output=True, text=True, check=False,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )  # fmt: skip

    done = run("--node", "n1=sxm80:1g.10gb*7;3g.40gb,4g.40gb;whole", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    pair = [str(tmp_path / "gres.conf"), str(tmp_path / "slurm.conf.gpus")]
    assert run("--check", *pair).returncode == 0
    text = (tmp_path / "gres.conf").read_text().replace("a100_3g.40gb", "a100_3g.20gb")
    (tmp_path / "gres.conf").write_text(text)
    done = run("--check", *pair)
    assert done.returncode == 1
    assert "gpu:a100_3g.40gb" in done.stdout
    done = run("--node", "n1=sxm80:4g.40gb,4g.40gb")
    assert done.returncode == 2
    assert "do not fit one card" in done.stderr
