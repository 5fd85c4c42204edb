"""NCCL from C, as nccl-tests use it, and our own table in their format."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from va100.gpu.native import NATIVE_DIR
from va100.perf.collectives import estimate

ROOT = Path(__file__).parents[2]
CLIENT = Path(__file__).parent / "clients" / "nccl_perf.c"
RUNTIME = "libcudart.so.13"

needs_cc = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")


def environment(gpus: int) -> dict[str, str]:
    added = {"VA100_GPUS": str(gpus), "VA100_WORKERS": "1", "PYTHONPATH": str(ROOT)}
    kept = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    return kept | added


@pytest.fixture(scope="module")
def perf(tmp_path_factory):
    binary = tmp_path_factory.mktemp("nccl") / "nccl_perf"
    words = ["cc", "-O1", "-Wall", "-Werror", str(CLIENT), "-o", str(binary), "-pthread"]
    link = [f"-L{NATIVE_DIR}", f"-Wl,-rpath,{NATIVE_DIR}", "-l:libnccl.so.2", f"-l:{RUNTIME}"]
    subprocess.run([*words, *link], check=True)
    return binary


@needs_cc
@pytest.mark.parametrize(
    ("way", "gpus"),
    [("group", 8), ("threads", 4), ("processes", 2), ("processes", 4), ("graph", 4)],
)
def test_sums_are_right_and_times_a_boards(perf, way, gpus):
    done = subprocess.run(
        [perf, way, str(gpus)],
        env=environment(gpus),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *rows, last = done.stdout.splitlines()
    assert last == "wrong 0"
    assert len(rows) == 4
    for row in rows:
        size, time_us, _, bus, wrong = row.split()
        wanted = estimate("all_reduce", int(size), gpus, dtype="float32")
        slack = 4.0 if way == "graph" else 0.02  # a graph's launch is in it
        assert float(time_us) == pytest.approx(wanted.time_s * 1e6, abs=slack)
        assert float(bus) <= wanted.ceiling_bytes_per_s / 1e9
        assert wrong == "0"


@pytest.mark.parametrize("op", ["all_reduce", "alltoall", "reduce_scatter", "gather"])
def test_table_in_the_known_format(op):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.nccl_tests", op, "-b", "1K", "-e", "256K", "-f", "16"],
        cwd=ROOT,
        env=environment(4),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(
        r"^ +(\d+) +\d+ +float +\w+ +-?\d+ +([\d.]+)( +[\d.]+){2} +0( +[\d.]+){3} +0$",
        done.stdout,
        re.MULTILINE,
    )
    assert [int(row[0]) for row in rows] == [1024, 16384, 262144]
    for size, time_us, *_ in rows:
        wanted = estimate(op, int(size), 4, dtype="float32").time_s * 1e6
        assert float(time_us) == pytest.approx(wanted, abs=0.01)
    assert "# Out of bounds values : 0 OK" in done.stdout


def test_the_command_line_refuses():
    for words, said in (
        (["all_reduce", "-b", "many"], "'many' is no size such as 8, 64K, 1G"),
        (["all_reduce", "-f", "1"], "sizes would not grow"),
        (["broadcast", "-r", "9", "-g", "2"], "--root 9 is not among ranks 0 to 1"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.nccl_tests", *words],
            cwd=ROOT,
            env=environment(2),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert said in done.stderr
