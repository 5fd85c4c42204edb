"""nccl4py, NVIDIA's own Python binding of NCCL, unchanged."""

from __future__ import annotations

import pytest

from tests.helpers.client_programs import cases_of, failures_of

PROGRAM = "nccl4py_calls.py"


def test_nccl4py():
    pytest.importorskip("nccl.core", reason="needs nccl4py")
    pytest.importorskip("cuda.core", reason="needs cuda-core")
    assert len(cases_of(PROGRAM)) == 6
    assert failures_of(PROGRAM, VA100_GPUS="4") == []
