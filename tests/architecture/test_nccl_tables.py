"""What follows from NCCL's table is fresh, and the library exports all of it."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import pytest

from va100.gpu.native import NATIVE_DIR

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from nccl_tables.generate import stale  # noqa: E402
from nccl_tables.table import read_rows  # noqa: E402


def test_generated_files_are_fresh():
    assert stale() == [], "run: python tools/nccl_tables/generate.py"


@pytest.mark.parametrize("row", read_rows(), ids=lambda row: row.name)
def test_every_call_is_exported_under_both_names(row):
    library = ctypes.CDLL(str(Path(NATIVE_DIR) / "libnccl.so.2"))
    assert getattr(library, row.name)
    assert getattr(library, f"p{row.name}")
