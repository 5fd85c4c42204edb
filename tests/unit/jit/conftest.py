"""Engines and a way to run a few instructions on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from tests.helpers.kernels import kernel
from va100.gpu.arena import Arena
from va100.jit import context
from va100.jit.engine import JitEngine

Run = Callable[..., list[np.ndarray]]


@pytest.fixture(scope="session")
def arena() -> Arena:
    """Device memory of the process."""
    return Arena()


@pytest.fixture(params=["file", "registers", "chunks"])
def register_mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The ways the masked world keeps its registers, and functions compiled in chunks."""
    blocks = 32 if request.param == "registers" else 0
    monkeypatch.setattr(context, "MOST_BLOCKS_IN_REGISTERS", blocks)
    defaults = JitEngine.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "chunks", request.param == "chunks")
    return request.param


@pytest.fixture
def run(arena: Arena, register_mode: str) -> Run:
    """Run a kernel body of ``tests.helpers.kernels.kernel`` and give back its buffers."""

    def run_body(
        params: str,
        body: str,
        arguments: Sequence[np.ndarray | np.generic],
        *,
        grid: tuple[int, ...] = (1,),
        block: tuple[int, ...] = (32,),
        before: str = "",
        workers: int = 1,
        engine: JitEngine | None = None,
        **launch: object,
    ) -> list[np.ndarray]:
        loaded = load(kernel("test", params, body, before=before), arena)
        engine = engine or JitEngine(workers=workers)
        try:
            places = [loaded.buffer(a) if isinstance(a, np.ndarray) else a for a in arguments]
            loaded.run(engine, "test", grid, block, pack(*places), **launch)
            return [
                loaded.read(place, a.dtype, a.size)
                for place, a in zip(places, arguments, strict=True)
                if isinstance(a, np.ndarray)
            ]
        finally:
            loaded.close()

    return run_body
