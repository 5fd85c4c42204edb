"""``nvidia-smi`` as a program: found in PATH, quick to start, read by other people's tools."""

from __future__ import annotations

import importlib.util
import os
import resource
import subprocess
import sys

import pytest

from va100.cli import environment
from va100.config import Settings
from va100.gpu.native import SMI_DIR
from va100.node import store
from va100.node.kinds import BY_NAME

CPU_S = 0.3
"""What one start may take, and usually takes a third of."""


@pytest.fixture
def inside(monkeypatch, tmp_path):
    """The environment of programs on a node of two cards."""
    if not (SMI_DIR / "nvidia-smi").exists():
        pytest.skip("nvidia-smi's starter is not built: make setup")
    monkeypatch.setenv("VA100_HOME", str(tmp_path))
    monkeypatch.setenv("VA100_NODE", "box")
    store.create_kind("box", BY_NAME["pcie-a100-80gb-x2"])
    return environment.child_environment(Settings.from_environment())


def run(words, env, **options):
    return subprocess.run(
        words, env=env, capture_output=True, text=True, timeout=60, check=False, **options
    )


def test_is_found_in_path_and_starts_quickly(inside):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = []
    for _ in range(3):
        result = run(["nvidia-smi", "-L"], inside)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        before = after
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert [line.split(" (UUID")[0] for line in lines] == [
        "GPU 0: NVIDIA A100 80GB PCIe",
        "GPU 1: NVIDIA A100 80GB PCIe",
    ]
    assert min(spent) < CPU_S


def test_statuses_pass_through(inside):
    assert run(["nvidia-smi", "-i", "7"], inside).returncode == 6
    assert run(["nvidia-smi", "--foo"], inside).returncode == 2
    assert run(["nvidia-smi", "mig", "-lgi"], inside).returncode == 6


def test_the_verb_is_the_same_tool(inside):
    words = ["--query-gpu=index,uuid", "--format=csv,noheader"]
    ours = run([sys.executable, "-m", "va100.cli", "smi", *words], inside)
    assert ours.stdout == run(["nvidia-smi", *words], inside).stdout
    assert ours.stdout.startswith("0, GPU-")


def test_into_a_file(inside, tmp_path):
    result = run(["nvidia-smi", "-L", "-f", str(tmp_path / "list")], inside)
    assert (result.returncode, result.stdout) == (0, "")
    assert (tmp_path / "list").read_text(encoding="utf-8").startswith("GPU 0: ")


@pytest.mark.parametrize("words", [["-L"], ["dmon", "-c", "1"]], ids=" ".join)
def test_a_file_that_cannot_be_written(inside, tmp_path, words):
    result = run(["nvidia-smi", *words, "-f", str(tmp_path / "no" / "list")], inside)
    assert (result.returncode, result.stderr) == (255, "")
    assert result.stdout.startswith("Failed to open ")


@pytest.mark.parametrize("words", [["-L"], ["dmon", "-c", "1"]], ids=" ".join)
def test_what_is_wrong_is_not_told_to_the_file(inside, tmp_path, words):
    file = tmp_path / "list"
    result = run(["nvidia-smi", *words, "-i", "9", "-f", str(file)], inside)
    assert (result.returncode, result.stderr) == (6, "")
    assert result.stdout == "No devices were found\n"
    assert run(["nvidia-smi", "--foo", "-f", str(tmp_path / "none")], inside).returncode == 2
    assert not (tmp_path / "none").exists()


def test_a_reader_that_stops_reading_is_no_error(inside):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as output:
        result = subprocess.run(
            ["nvidia-smi", "-q"], env=inside, stdout=output, stderr=subprocess.PIPE, check=False
        )
    assert result.stderr == b""


def test_a_node_that_is_not_there(inside):
    result = run(["nvidia-smi"], {**inside, "VA100_NODE": "no/node"})
    assert result.returncode == 9
    assert "couldn't communicate with the NVIDIA driver" in result.stdout


GPUTIL = """
import sys, types
try:
    import distutils.spawn
except ImportError:
    import shutil
    spawn = types.ModuleType("distutils.spawn")
    spawn.find_executable = shutil.which
    sys.modules["distutils"] = types.ModuleType("distutils")
    sys.modules["distutils.spawn"] = spawn
    sys.modules["distutils"].spawn = spawn
import GPUtil
for gpu in GPUtil.getGPUs():
    print(gpu.id, gpu.name, gpu.load, gpu.memoryTotal, gpu.memoryUsed, gpu.temperature < 50)
print(GPUtil.getAvailable(limit=9))
"""


def test_gputil_reads_it(inside):
    if importlib.util.find_spec("GPUtil") is None:
        pytest.skip("needs GPUtil: the extra node-clients")
    result = run([sys.executable, "-c", GPUTIL], inside)
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "0 NVIDIA A100 80GB PCIe 0.0 81920.0 0.0 True",
        "1 NVIDIA A100 80GB PCIe 0.0 81920.0 0.0 True",
        "[0, 1]",
    ]
