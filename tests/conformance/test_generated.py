"""Generated kernels: both engines must leave the same memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from tests.helpers.programs import FLOATS, INTEGERS, SLOTS, Program
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine

GRID, BLOCK = 3, 64
SEEDS = 40
FULL_SEEDS = 1000
RESULTS = INTEGERS + FLOATS


def _run(text: str, engine: Engine, arena: Arena) -> np.ndarray:
    rng = np.random.default_rng(6)
    loaded = load(text, arena, "program.ptx")
    try:
        small = rng.integers(-50, 50, GRID * BLOCK * SLOTS).astype(np.int32).view(np.uint32)
        large = rng.integers(0, 2**32, small.size, dtype=np.uint32)
        source = loaded.buffer(np.where(rng.random(small.size) < 0.7, small, large))
        target = loaded.buffer(np.zeros(GRID * BLOCK * RESULTS, np.uint32))
        loaded.run(engine, "program", (GRID,), (BLOCK,), pack(source, target))
        return loaded.read(target, np.uint32, GRID * BLOCK * RESULTS).reshape(-1, RESULTS)
    finally:
        loaded.close()


def check(seed: int, reference: Engine, jit: Engine, arena: Arena) -> None:
    text = Program(seed).text()
    want, got = _run(text, reference, arena), _run(text, jit, arena)
    wrong = np.argwhere(want != got)
    if wrong.size:
        thread, column = wrong[0].tolist()
        name = f"%r{column}" if column < INTEGERS else f"%f{column - INTEGERS}"
        raise AssertionError(
            f"seed {seed}: {name} of thread {thread} is {int(want[thread, column]):#x}, "
            f"jit {int(got[thread, column]):#x} ({len(wrong)} values differ)\n{text}"
        )


@pytest.mark.parametrize("seed", range(SEEDS))
def test_program(seed: int, reference: Engine, jit: Engine, arena: Arena) -> None:
    check(seed, reference, jit, arena)


@pytest.mark.full
def test_many_programs(reference: Engine, jit: Engine, arena: Arena) -> None:
    for seed in range(SEEDS, FULL_SEEDS):
        check(seed, reference, jit, arena)
