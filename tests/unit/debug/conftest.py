"""What the tests of traces and of the debugger share: a kernel, and a launch that is watched."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from tests.helpers.watching import TEXT, Launch
from va100.gpu.arena import Arena
from va100.gpu.watch import Watcher
from va100.reference.engine import ReferenceEngine


@pytest.fixture(scope="session")
def arena() -> Arena:
    """Device memory of the process."""
    return Arena()


@pytest.fixture
def launch(arena: Arena) -> Launch:
    """Run a kernel of two parameters, values and their count, under watch."""

    def run(
        watcher: Watcher, text: str = TEXT, *, kernel: str = "scale", grid: int = 1,
        block: int = 32, count: int = 3,
    ) -> list[float]:  # fmt: skip
        loaded = load(text, arena)
        try:
            values = loaded.buffer(np.full(64, 0.5, np.float32))
            params = pack(values, np.uint32(count))
            loaded.run(ReferenceEngine(watcher=watcher), kernel, (grid,), (block,), params)
            return loaded.read(values, np.float32, count).tolist()
        finally:
            loaded.close()

    return run
