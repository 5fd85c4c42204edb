"""What the reference engine's unit tests share."""

from __future__ import annotations

import pytest

from va100.gpu.arena import Arena
from va100.reference.engine import ReferenceEngine


@pytest.fixture(scope="session")
def arena() -> Arena:
    """Device memory of the process."""
    return Arena()


@pytest.fixture
def engine() -> ReferenceEngine:
    """An engine that gives up on kernels that do not end."""
    return ReferenceEngine(step_limit=200_000)
