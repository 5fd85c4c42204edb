"""NCCL with all ranks in one process: every collective, operation and type against NumPy.

Each case runs in a process of its own that has eight GPUs, and prints what went wrong.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CLIENTS = Path(__file__).parent / "clients"


def run(
    case: str, *arguments: str, client: str = "nccl_local", gpus: int = 8, **variables: str
) -> str:
    environment = os.environ | {
        "VA100_GPUS": str(gpus),
        "VA100_WORKERS": "1",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        **variables,
    }
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    done = subprocess.run(
        [sys.executable, str(CLIENTS / f"{client}.py"), case, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("ranks", ["1", "2", "3", "8"])
def test_every_operation_on_every_type(ranks, full):
    assert "reductions agree" in run("reductions", ranks, "400" if full else "40")


@pytest.mark.parametrize("ranks", ["2", "5", "8"])
def test_data_arrives_where_it_belongs(ranks):
    assert "moves agree" in run("moves", ranks)


def test_groups_under_stress(full):
    assert "stress agrees" in run("stress", "2000" if full else "60")


@pytest.mark.parametrize(
    "case", ["in_place", "factors", "groups", "ring_of_pairs", "threads", "splits", "shrinks"]
)
def test_data(case):
    assert f"{case}: ok" in run(case)


@pytest.mark.parametrize(
    "case",
    [
        "captured",
        "virtual_time",
        "refusals",
        "disagreement",
        "abort",
        "simulate",
        "early_ranks_do_not_wait",
        "streams_wait",
    ],
)
def test_manners(case):
    assert f"{case}: ok" in run(case, client="nccl_manners")


def test_cards_without_a_bridge_are_slow():
    done = run("cliff", client="nccl_manners", gpus=4, VA100_MODEL="A100-PCIE-80GB")
    assert "cliff: ok" in done
