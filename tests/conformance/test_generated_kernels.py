"""Random kernels of every control structure: both engines must leave the same memory.

``reduce_failure`` of the generator makes a failing kernel small; a failure prints how to call it.
"""

from __future__ import annotations

import pytest

from tests.helpers.ptx_generator import Generated, differences, generate, run_generated
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.jit import context, llvm
from va100.jit.engine import JitEngine

SIZE = 7
BATCH = 10
USUAL = range(0, 110, BATCH)
FULL = range(110, 3110, 50)
PARTS = ("out1", "out2", "acc")


def check(
    seed: int, size: int, reference: Engine, arena: Arena, workers: int, *, chunks: bool
) -> None:
    """Run one kernel on both engines."""
    kernel = generate(seed, size)
    want = run_generated(kernel, reference, arena)
    got = run_generated(kernel, JitEngine(workers=workers, chunks=chunks), arena)
    found = differences(PARTS, want, got)
    assert not found, f"generate({seed}, {size}) on {workers} workers: {found}\n{kernel.text}"


@pytest.mark.parametrize("first", USUAL)
def test_generated(
    first: int, reference: Engine, arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_object = llvm.compile_object
    for seed in range(first, first + BATCH):
        # In turn: registers of the masked world in memory and in machine registers; optimised or
        # not, since that is most of the time this test takes; whole or in chunks.
        monkeypatch.setattr(context, "MOST_BLOCKS_IN_REGISTERS", 32 * (seed % 2))
        level = int(seed % 4 < 2)
        monkeypatch.setattr(
            llvm, "compile_object", lambda text, _, at=level, **how: compile_object(text, at, **how)
        )
        check(seed, SIZE, reference, arena, 1 + seed % 3, chunks=seed % 5 < 2)


@pytest.mark.full
@pytest.mark.parametrize("mode", ["file", "registers", "chunks"])
@pytest.mark.parametrize("first", FULL)
def test_many_generated(
    first: int, mode: str, reference: Engine, arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "MOST_BLOCKS_IN_REGISTERS", 32 * (mode == "registers"))
    for seed in range(first, first + 50):
        size = 12 if seed % 10 else 30
        check(seed, size, reference, arena, 1 + seed % 3, chunks=mode == "chunks")


def test_the_same_seed_gives_the_same_kernel() -> None:
    assert generate(7) == generate(7)
    assert generate(7).text != generate(8).text


def test_statements_can_be_left_out() -> None:
    whole = generate(3, 20)
    without = generate(3, 20, frozenset(range(whole.statements)))
    assert isinstance(whole, Generated)
    assert len(without.text) < len(whole.text)
    assert without.block == whole.block
