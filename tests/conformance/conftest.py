"""The engines under test and the memory they share."""

from __future__ import annotations

import pytest

from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.reference.engine import ReferenceEngine

STEP_LIMIT = 5_000_000


@pytest.fixture(scope="session")
def arena() -> Arena:
    """Device memory of the process."""
    return Arena()


@pytest.fixture(scope="session")
def reference() -> Engine:
    """The oracle; it gives up on kernels that do not end."""
    return ReferenceEngine(step_limit=STEP_LIMIT)


@pytest.fixture(scope="session")
def jit() -> Engine:
    """The product, without a cache on disk."""
    from va100.jit.engine import JitEngine  # the oracle is testable without LLVM

    return JitEngine()


@pytest.fixture(scope="session", params=["reference", "jit"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn."""
    return request.getfixturevalue(request.param)
