"""Functions in chunks: what is compiled when, what is kept, and what happens when it cannot be."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.engines import Loaded, load, pack
from tests.helpers.kernels import kernel
from va100 import errors
from va100.gpu.arena import Arena
from va100.jit import chunks, llvm, outlined
from va100.jit.analysis import Block
from va100.jit.cache import ObjectCache
from va100.jit.code import MachineCode
from va100.jit.engine import JitEngine

LANES = 32
# Lanes below the parameter go through a loop of their own; the others come after it.
PARTING = """
    setp.ge.u32 %p1, %r3, %r61;
    mov.u32 %r10, 0;
    @%p1 bra DONE;
LOOP:
    add.u32 %r10, %r10, 3;
    setp.lt.u32 %p2, %r10, %r3;
    @%p2 bra LOOP;
DONE:
    add.s64 %d1, %d60, %d0;
    add.u32 %r10, %r10, %r61;
    st.global.u32 [%d1], %r10;
    ret;
"""


def _want(parted: int) -> list[int]:
    return [(max(-(-i // 3), 1) * 3 if i < parted else 0) + parted for i in range(LANES)]


def _run(engine: JitEngine, loaded: Loaded, parted: int) -> list[int]:
    place = loaded.buffer(np.zeros(LANES, np.uint32))
    loaded.run(engine, "test", (1,), (LANES,), pack(place, np.uint32(parted)))
    return loaded.read(place, np.uint32, LANES).tolist()


@pytest.fixture
def parting(arena: Arena):
    loaded = load(kernel("test", "u64 u32", PARTING), arena)
    yield loaded
    loaded.close()


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts that LLVM was given."""
    texts: list[str] = []
    real = llvm.compile_object

    def note(text: str, level: int, *, quickly: bool = False) -> bytes:
        texts.append(text)
        return real(text, level, quickly=quickly)

    monkeypatch.setattr(llvm, "compile_object", note)
    return texts


def test_masked_chunks_wait_until_lanes_part(parting: Loaded, compiled: list[str]) -> None:
    engine = JitEngine(workers=1, chunks=True)
    assert _run(engine, parting, 0) == _want(0)
    assert len(compiled) == 1
    assert "@kernel.F0" in compiled[0]
    assert "@kernel.M0" not in compiled[0]
    assert _run(engine, parting, 20) == _want(20)
    parted = len(compiled)
    assert parted > 1
    assert _run(engine, parting, 7) == _want(7)
    assert len(compiled) == parted


def test_chunks_are_kept_on_disk(parting: Loaded, compiled: list[str], tmp_path: Path) -> None:
    assert _run(JitEngine(tmp_path, workers=1, chunks=True), parting, 9) == _want(9)
    count = len(compiled)
    assert _run(JitEngine(tmp_path, workers=1, chunks=True), parting, 9) == _want(9)
    assert len(compiled) == count
    # Lanes that part elsewhere than they did when it was compiled.
    assert _run(JitEngine(tmp_path, workers=1, chunks=True), parting, 0) == _want(0)


_FORGOTTEN: list[dict[str, MachineCode]] = []


def _forgetful() -> dict[str, MachineCode]:
    """As a new process finds it; code that was loaded is still called and must stay."""
    _FORGOTTEN.append({})
    return _FORGOTTEN[-1]


def test_functions_that_the_disk_lost_are_made_again(
    parting: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Path] = []
    put = ObjectCache.put

    def note(self: ObjectCache, key: str, data: bytes) -> None:
        kept.append(self._path(key))
        put(self, key, data)

    monkeypatch.setattr(ObjectCache, "put", note)
    monkeypatch.setattr(chunks, "OUTLINED_FROM", 0)
    monkeypatch.setattr(outlined, "_LOADED", _forgetful())
    assert _run(JitEngine(tmp_path, workers=1, chunks=True), parting, 9) == _want(9)
    bodies = [path for path in kept if b"kernel." not in path.read_bytes()]
    assert bodies
    for path in bodies:
        path.unlink()
    monkeypatch.setattr(outlined, "_LOADED", _forgetful())
    assert _run(JitEngine(tmp_path, workers=1, chunks=True), parting, 9) == _want(9)


def test_a_chunk_that_cannot_be_compiled_is_a_fault(
    parting: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = JitEngine(workers=1, chunks=True)
    assert _run(engine, parting, 0) == _want(0)

    def refuse(*_: object, **__: object) -> bytes:
        raise RuntimeError("no room for code")

    monkeypatch.setattr(llvm, "compile_object", refuse)
    with pytest.raises(errors.LaunchError, match=r"could not be compiled.*no room for code"):
        _run(engine, parting, 5)
    monkeypatch.undo()
    assert _run(engine, parting, 5) == _want(5)


@pytest.mark.parametrize("library", [ctypes.CDLL, ctypes.PyDLL])
@pytest.mark.parametrize("barrier", ["", "bar.sync 0;"])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_helpers_ask_the_thread_that_launched(
    arena: Arena,
    barrier: str,
    workers: int,
    library: type[ctypes.CDLL],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With and without stacks of their own, and by a client that keeps the interpreter's lock.

    Every CTA parts at another place.
    """
    body = f"""
    mov.u32 %r20, %ctaid.x;
    and.b32 %r21, %r20, 31;
    {barrier}
    setp.ge.u32 %p1, %r3, %r21;
    mov.u32 %r10, %r20;
    @%p1 bra DONE;
    add.u32 %r10, %r10, 1000;
DONE:
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1], %r10;
    ret;
"""
    ctas = 400
    loaded = load(kernel("test", "u64", body), arena)
    try:
        place = loaded.buffer(np.zeros(ctas * LANES, np.uint32))
        engine = JitEngine(workers=workers, chunks=True)
        core = engine._lib
        monkeypatch.setattr(engine, "_lib", library(core._name, handle=core._handle))
        loaded.run(engine, "test", (ctas,), (LANES,), pack(place))
        got = loaded.read(place, np.uint32, ctas * LANES).reshape(ctas, LANES)
    finally:
        loaded.close()
    cta, lane = np.ogrid[:ctas, :LANES]
    np.testing.assert_array_equal(got, cta + 1000 * (lane < cta % 32))


def test_a_frame_too_large_for_a_stack(arena: Arena) -> None:
    """So many registers that live across a branch that a warp needs over 128 KB for them."""
    count = 1100
    names = [f"%x{i}" for i in range(count)]
    lines = ["{", f".reg .b32 %x<{count}>;"]
    lines += [f"mad.lo.u32 {n}, %r3, {i + 1}, {i};" for i, n in enumerate(names)]
    lines += ["setp.lt.u32 %p1, %r3, %r61;", "@%p1 bra MORE;", "add.u32 %x7, %x7, 1;", "MORE:"]
    lines += [f"xor.b32 %r10, %r10, {n};" for n in names]
    lines += ["}", "add.s64 %d1, %d60, %d0;", "st.global.u32 [%d1], %r10;", "ret;"]
    loaded = load(kernel("test", "u64 u32", "mov.u32 %r10, 0;\n" + "\n".join(lines)), arena)
    try:
        engine = JitEngine(workers=1)
        got = _run(engine, loaded, 13)
        facts = engine.compiled(loaded.module, "test", (LANES, 1, 1))
        assert facts.variant.chunked
    finally:
        loaded.close()
    for lane, value in enumerate(got):
        want = 0
        for i in range(count):
            want ^= lane * (i + 1) + i + (i == 7 and lane >= 13)
        assert value == want


def test_large_kernels_are_compiled_in_chunks_by_themselves(
    arena: Arena, compiled: list[str]
) -> None:
    body = "\n".join(f"add.u32 %r10, %r10, {i};" for i in range(450))
    text = f"mov.u32 %r10, 0;\n{body}\nadd.s64 %d1, %d60, %d0;\nst.global.u32 [%d1], %r10;\nret;"
    loaded = load(kernel("test", "u64 u32", text), arena)
    try:
        assert _run(JitEngine(workers=1), loaded, 0) == [sum(range(450))] * LANES
    finally:
        loaded.close()
    assert "@kernel.F1" in compiled[0]


def test_partition_ends_a_chunk_at_either_limit() -> None:
    blocks = [Block(i, 10 * i, 10 * i + 10, (i + 1,)) for i in range(10)]
    assert [len(c) for c in chunks.partition(blocks, 25, 99)] == [2] * 5
    assert [len(c) for c in chunks.partition(blocks, 1000, 4)] == [4, 4, 2]
    assert [len(c) for c in chunks.partition(blocks, 5, 4)] == [1] * 10
    assert chunks.partition([], 5, 4) == []
