"""NCCL between processes: data against NumPy, splits, pipelines, and peers that die."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "clients" / "nccl_remote.py"
LEFT_OVER = Path("/dev/shm")


def run(case: str, folder: Path, ranks: int, per_process: int = 1) -> None:
    environment = os.environ | {
        "VA100_GPUS": str(ranks),
        "VA100_WORKERS": "1",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    running = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), case]
            + [str(number) for number in (ranks, per_process, first)]
            + [str(folder / "id")],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for first in range(0, ranks, per_process)
    ]
    try:
        outputs = [process.communicate(timeout=120)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    codes = [process.returncode for process in running]
    assert codes == [0] * len(running), "\n".join(outputs)


@pytest.fixture
def nothing_left():
    """Files in shared memory are gone afterwards."""
    before = set(LEFT_OVER.glob("va100-nccl-*"))
    yield
    assert set(LEFT_OVER.glob("va100-nccl-*")) <= before


@pytest.mark.usefixtures("nothing_left")
class TestProcesses:
    @pytest.mark.parametrize(("ranks", "per_process"), [(2, 1), (4, 1), (8, 4), (3, 1)])
    def test_all_collectives(self, tmp_path, ranks, per_process):
        run("all_collectives", tmp_path, ranks, per_process)

    def test_eight_processes(self, tmp_path):
        run("peers", tmp_path, 8)

    @pytest.mark.parametrize(("ranks", "per_process"), [(2, 1), (4, 2)])
    def test_everybody_to_everybody(self, tmp_path, ranks, per_process):
        run("peers", tmp_path, ranks, per_process)

    @pytest.mark.parametrize(
        ("case", "ranks", "per_process"),
        [
            ("clocks", 3, 1),
            ("clocks_of_peers", 3, 1),
            ("chain", 4, 1),
            ("split", 4, 1),
            ("split", 6, 3),
            ("peer_dies", 3, 1),
            ("disagree", 2, 1),
        ],
    )
    def test_case(self, tmp_path, case, ranks, per_process):
        run(case, tmp_path, ranks, per_process)
