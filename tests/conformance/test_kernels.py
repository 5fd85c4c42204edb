"""Whole kernels with known answers, on every engine."""

from __future__ import annotations

import pytest

from tests.helpers.kernels import CASES, KernelCase, check_case
from va100.errors import Deadlock
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.jit.engine import JitEngine

MEETS_IN_ONE_PLACE = frozenset({"diverged_sync"})
"""Kernels whose lanes meet at ``*.sync`` instructions in two places of the text.

The JIT lets lanes meet at one instruction only; it must say so, never give a wrong number.
"""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernel(case: KernelCase, engine: Engine, arena: Arena) -> None:
    if case.name in MEETS_IN_ONE_PLACE and isinstance(engine, JitEngine):
        with pytest.raises(Deadlock, match="lanes wait"):
            check_case(case, engine, arena)
        return
    check_case(case, engine, arena)
