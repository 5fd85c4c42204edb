"""Copies between GPUs take the time of what lies between them, as va100.perf.links says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CLIENT = Path(__file__).parent / "clients" / "peer_copies.py"


@pytest.mark.parametrize(
    ("case", "model", "gpus", "kind"),
    [
        ("between", "A100-SXM4-80GB", 8, "hgx-a100-8x80gb"),
        ("between", "A100-PCIE-80GB", 4, "pcie-a100-80gb-x4"),
        ("shared", "A100-SXM4-80GB", 8, "hgx-a100-8x80gb"),
        ("shared", "A100-PCIE-80GB", 2, "pcie-a100-80gb-x2"),
    ],
)
def test_time_is_the_links(case, model, gpus, kind):
    environment = os.environ | {
        "VA100_MODEL": model,
        "VA100_GPUS": str(gpus),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    done = subprocess.run(
        [sys.executable, str(CLIENT), case, kind],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "ok\n"
