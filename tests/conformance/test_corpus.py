"""Kernels that real compilers wrote, on both engines with the same made-up arguments.

Nobody says what they compute; the engines must leave the same memory, or fault alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.engines import Loaded, load, pack
from va100.errors import DeviceFault, PtxError
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.jit.engine import JitEngine
from va100.ptx.parser import parse
from va100.ptx.program import Function
from va100.work import Dim3

BUFFER_BYTES = 1 << 16
GRID, BLOCK = 3, 64
UNORDERED = ("atomics", "hist", "coop", "printf")
"""Parts of file names whose kernels depend on the order of threads, or print addresses."""
ROOT = Path(__file__).resolve().parents[2]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test a kernel of the corpus; one skipped test without it."""
    given = metafunc.config.getoption("--shared", default=None)
    folder = (Path(given) if given else ROOT.parent / "shared") / "data" / "ptx"
    cases = list(_cases(folder))
    metafunc.parametrize(
        ("path", "name"),
        cases or [(None, None)],
        ids=[f"{p.stem}-{n}" for p, n in cases] or ["none"],
    )


def _cases(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.glob("*.ptx")):
        if not any(part in path.name for part in UNORDERED):
            for kernel in parse(path.read_text(encoding="utf-8"), path.name).kernels:
                yield path, kernel.name


def _argument(loaded: Loaded, kind: str, rng: np.random.Generator) -> int | np.generic:
    """A buffer of small floats for a pointer, a small count or factor for a number."""
    if kind in ("u64", "b64", "s64"):
        floats = rng.integers(-8, 9, BUFFER_BYTES // 4).astype(np.float32)
        return loaded.buffer(floats)
    if kind == "f32":
        return np.float32(1.5)
    if kind == "f64":
        return np.float64(0.75)
    return {"u16": np.uint16, "b16": np.uint16, "u8": np.uint8}.get(kind, np.uint32)(48)


def _run(
    path: Path, kernel: Function, engine: Engine, arena: Arena
) -> tuple[str, list[np.ndarray]]:
    """How the launch ended, and what the buffers hold."""
    rng = np.random.default_rng(5)
    loaded = load(path.read_text(encoding="utf-8"), arena, path.name)
    try:
        arguments = [_argument(loaded, p.type.value, rng) for p in kernel.params]
        required = kernel.directive("reqntid") or kernel.directive("maxntid")
        block = tuple(required) if required else (BLOCK,)
        end = "ended"
        try:
            engine.prepare(loaded.module, kernel.name, Dim3(*block))
            loaded.run(engine, kernel.name, (GRID,), block, pack(*arguments), shared_bytes=16384)
        except DeviceFault as fault:
            end = type(fault).__name__
        buffers = [loaded.read(place, np.uint32, BUFFER_BYTES // 4) for place in loaded.buffers]
        return end, buffers
    finally:
        loaded.close()


def test_kernel(path: Path | None, name: str, reference: Engine, arena: Arena) -> None:
    if path is None:
        pytest.skip("needs the PTX corpus of the shared folder (--shared)")
    module = parse(path.read_text(encoding="utf-8"), path.name)
    kernel = next(k for k in module.kernels if k.name == name)
    if any(p.shape for p in kernel.params):
        pytest.skip("takes a structure, which cannot be made up")
    try:
        ours, expected = _run(path, kernel, reference, arena)
    except PtxError as error:
        pytest.skip(f"not executed: {error.problem}")
    # In shapes that its author did not mean, a kernel's CTAs may write the same places: one worker
    # runs them in the reference's order.
    theirs, got = _run(path, kernel, JitEngine(workers=1), arena)
    assert theirs == ours
    if ours == "ended":
        for want, have in zip(expected, got, strict=True):
            _assert_same(want, have)


def _assert_same(want: np.ndarray, have: np.ndarray) -> None:
    """Equal bits, but addresses that were stored, and f64 NaNs."""
    differ = want != have
    if differ.any():
        pairs = [a.view(np.float64) for a in (want, have)]
        nan = np.isnan(pairs[0]) & np.isnan(pairs[1])
        differ &= ~np.repeat(nan, 2)
    assert not differ.any(), (
        f"{int(differ.sum())} words differ, first at {int(np.flatnonzero(differ)[0])}: "
        f"{int(want[differ][0]):#x}, jit {int(have[differ][0]):#x}"
    )
