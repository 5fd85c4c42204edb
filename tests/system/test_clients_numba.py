"""numba-cuda, unchanged: kernels of many kinds."""

from __future__ import annotations

import pytest

from tests.helpers.client_programs import cases_of, failures_of

PROGRAM = "numba_kernels.py"


def test_kernels():
    pytest.importorskip("numba.cuda", reason="needs numba-cuda")
    assert len(cases_of(PROGRAM)) == 20
    assert failures_of(PROGRAM) == []
