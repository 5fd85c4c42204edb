"""tinygrad, unchanged: what NVRTC or nvcc compiles for it, and the PTX that it writes itself."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.helpers.client_programs import cases_of, failures_of

PROGRAM = "tinygrad_kernels.py"


def nvrtc():
    """NVIDIA's NVRTC among the installed packages, where tinygrad does not look by itself."""
    places = (Path(entry, "nvidia", "cu13", "lib", "libnvrtc.so.13") for entry in sys.path)
    return next((str(place) for place in places if place.exists()), None)


@pytest.mark.parametrize(
    ("device", "needed"),
    [
        pytest.param("CUDA:CUDA", nvrtc(), id="nvrtc"),
        pytest.param("CUDA:NVCC", shutil.which("nvcc"), id="nvcc", marks=pytest.mark.full),
        pytest.param("CUDA:PTX", "nothing", id="its-own-ptx"),
    ],
)
def test_kernels(device, needed, tmp_path):
    pytest.importorskip("tinygrad", reason="needs tinygrad")
    if needed is None:
        pytest.skip(f"needs what {device} compiles with")
    assert len(cases_of(PROGRAM)) == 10
    own = {"DEV": device, "CACHEDB": str(tmp_path / "cache.db"), "NVRTC_PATH": nvrtc() or ""}
    assert failures_of(PROGRAM, **own) == []
