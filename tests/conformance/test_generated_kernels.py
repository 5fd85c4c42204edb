"""Random kernels of every control structure: both engines must leave the same memory.

``reduce_failure`` of the generator makes a failing kernel small; a failure prints how to call it.
"""

from __future__ import annotations

import pytest

from tests.helpers.ptx_generator import Generated, differences, generate, run_generated
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.jit import chunks, context, llvm
from va100.jit.engine import JitEngine

SIZE = 5
BATCH = 20
USUAL = range(0, 460, BATCH)
"""With the 40 programs of ``test_generated``: 500 kernels."""
FULL = range(460, 100_460, 500)
PARTS = ("out1", "out2", "acc")


def check(
    seed: int, size: int, reference: Engine, arena: Arena, workers: int, *, in_chunks: bool
) -> None:
    """Run one kernel on both engines."""
    kernel = generate(seed, size)
    want = run_generated(kernel, reference, arena)
    got = run_generated(kernel, JitEngine(workers=workers, chunks=in_chunks), arena)
    found = differences(PARTS, want, got)
    assert not found, f"generate({seed}, {size}) on {workers} workers: {found}\n{kernel.text}"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile as quickly as LLVM can: optimising is most of the time that these tests take."""
    compile_object = llvm.compile_object
    monkeypatch.setattr(
        llvm, "compile_object", lambda text, *_, **__: compile_object(text, 0, quickly=True)
    )


@pytest.mark.parametrize("first", USUAL)
def test_generated(
    first: int,
    reference: Engine,
    arena: Arena,
    quick: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In chunks: both worlds in little text; every other one with shared masked instructions."""
    for seed in range(first, first + BATCH):
        monkeypatch.setattr(chunks, "OUTLINED_FROM", 0 if seed % 2 else 10**9)
        check(seed, SIZE, reference, arena, 1 + seed % 3, in_chunks=True)


@pytest.mark.parametrize("first", range(0, 50, 5))
def test_generated_whole(
    first: int, reference: Engine, arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Registers of the masked world in memory and in machine registers, optimised and not."""
    compile_object = llvm.compile_object
    for seed in range(first, first + 5):
        monkeypatch.setattr(context, "MOST_BLOCKS_IN_REGISTERS", 32 * (seed % 2))
        level = int(seed % 4 < 2)
        monkeypatch.setattr(
            llvm, "compile_object", lambda text, _, at=level, **how: compile_object(text, at, **how)
        )
        check(seed, 7, reference, arena, 1 + seed % 3, in_chunks=False)


@pytest.mark.full
@pytest.mark.parametrize("first", FULL)
def test_many_generated(
    first: int, reference: Engine, arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In turn in chunks of two kinds and whole in two ways; one in twenty is large."""
    mode = first // 500 % 4
    monkeypatch.setattr(chunks, "OUTLINED_FROM", 0 if mode == 2 else 10**9)
    monkeypatch.setattr(context, "MOST_BLOCKS_IN_REGISTERS", 32 * (mode == 1))
    for seed in range(first, first + 500):
        size = 4 + seed % 9 if seed % 20 else 30
        check(seed, size, reference, arena, 1 + seed % 3, in_chunks=mode > 1)


def test_the_same_seed_gives_the_same_kernel() -> None:
    assert generate(7) == generate(7)
    assert generate(7).text != generate(8).text


def test_statements_can_be_left_out() -> None:
    whole = generate(3, 20)
    without = generate(3, 20, frozenset(range(whole.statements)))
    assert isinstance(whole, Generated)
    assert len(without.text) < len(whole.text)
    assert without.block == whole.block
