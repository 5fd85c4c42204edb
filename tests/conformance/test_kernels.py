"""Whole kernels with known answers, on every engine."""

from __future__ import annotations

import pytest

from tests.helpers.kernels import CASES, KernelCase, check_case
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernel(case: KernelCase, engine: Engine, arena: Arena) -> None:
    check_case(case, engine, arena)
