"""The ten kernels' data, launches and right answers; how they are run is not here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
Argument = np.generic | str
"""A scalar, or the name of an array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCall:
    """One launch."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A kernel with its data. Everyone who runs it gets copies of ``arrays``."""

    name: str
    shape: str
    """The size, in words."""
    work: float
    """How much there is to do, in any unit: small and large runs of a kernel compare by it."""
    arrays: Mapping[str, Array]
    launches: tuple[GridCall, ...]
    c_function: str
    c_arguments: tuple[Argument, ...]
    output: str
    expected: Array
    tolerance: float = 0.0
    """Largest error allowed, of the largest expected magnitude; 0 for equality."""
    equal_share: float = 1.0
    """Share of elements that must agree."""
    compute_bound: bool = False

    def wrong(self, got: Array) -> str:
        """What is wrong with a result; empty when nothing is."""
        want = self.expected
        if self.tolerance:
            bound = self.tolerance * float(np.max(np.abs(want)))
            close = np.abs(got.astype(np.float64) - want) <= bound
        else:
            close = got == want
        share = float(np.mean(close))
        if share >= self.equal_share:
            return ""
        first = int(np.argmin(close))
        return (
            f"{self.name}: {1 - share:.2%} of {self.output} is wrong; first at {first}: "
            f"expected {want.flat[first]}, got {got.flat[first]}"
        )


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _floats(seed: int, *shape: int) -> npt.NDArray[np.float32]:
    return _random(seed).uniform(-1.0, 1.0, shape).astype(np.float32)


def _int(value: int) -> np.int32:
    return np.int32(value)


def saxpy(n: int) -> Case:
    """``y = a x + y``."""
    a, x, y = np.float32(0.5), _floats(1, n), _floats(2, n)
    arguments = (_int(n), a, "x", "y")
    return Case(
        name="saxpy",
        shape=f"n = {n}",
        work=n,
        arrays={"x": x, "y": y},
        launches=(GridCall(grid=(-(-n // 256),), block=(256,), arguments=arguments),),
        c_function="saxpy",
        c_arguments=arguments,
        output="y",
        expected=np.float64(a) * x + y,
        tolerance=1e-6,
    )


def gather(n: int, table: int) -> Case:
    """``y[i] = x[index[i]]``."""
    index = _random(3).integers(0, table, n, dtype=np.int32)
    x = _floats(4, table)
    arguments = (_int(n), "index", "x", "y")
    return Case(
        name="gather",
        shape=f"n = {n} of {table}",
        work=n,
        arrays={"index": index, "x": x, "y": np.zeros(n, np.float32)},
        launches=(GridCall(grid=(-(-n // 256),), block=(256,), arguments=arguments),),
        c_function="gather",
        c_arguments=arguments,
        output="y",
        expected=x[index],
    )


def alu(n: int, rounds: int) -> Case:
    """Two random-number generators a thread."""
    arguments = (_int(n), _int(rounds), "out")
    return Case(
        name="alu",
        shape=f"n = {n}, {rounds} rounds",
        work=n * rounds,
        arrays={"out": np.zeros(n, np.uint32)},
        launches=(GridCall(grid=(-(-n // 256),), block=(256,), arguments=arguments),),
        c_function="alu",
        c_arguments=arguments,
        output="out",
        expected=_alu_expected(n, rounds),
        compute_bound=True,
    )


def _alu_expected(n: int, rounds: int) -> Array:
    linear = np.arange(n, dtype=np.uint32)
    shifted = linear * np.uint32(2654435761) + np.uint32(1)
    total = np.zeros(n, np.uint32)
    for _ in range(rounds):
        shifted ^= shifted << np.uint32(13)
        shifted ^= shifted >> np.uint32(17)
        shifted ^= shifted << np.uint32(5)
        linear = linear * np.uint32(1664525) + np.uint32(1013904223)
        total += shifted ^ linear
    return total


def _sgemm(name: str, n: int, tile: int, block: tuple[int, ...]) -> Case:
    a, b = _floats(5, n, n), _floats(6, n, n)
    arguments = (_int(n), "a", "b", "c")
    return Case(
        name=name,
        shape=f"{n} x {n} x {n}",
        work=n**3,
        arrays={"a": a, "b": b, "c": np.zeros((n, n), np.float32)},
        launches=(GridCall(grid=(n // tile, n // tile), block=block, arguments=arguments),),
        c_function="sgemm",
        c_arguments=arguments,
        output="c",
        expected=a.astype(np.float64) @ b,
        tolerance=1e-5,
        compute_bound=True,
    )


def sgemm32(n: int) -> Case:
    """32 x 32 tile, one element a thread."""
    return _sgemm("sgemm32", n, 32, (32, 32))


def sgemm16(n: int) -> Case:
    """16 x 16 tile, one element a thread."""
    return _sgemm("sgemm16", n, 16, (16, 16))


def sgemmrt(n: int) -> Case:
    """64 x 64 tile, 4 x 4 elements a thread."""
    return _sgemm("sgemmrt", n, 64, (256,))


def reduce(n: int, parts: int = 256) -> Case:
    """Sum, in two launches."""
    x = _random(7).uniform(0.0, 1.0, n).astype(np.float32)
    return Case(
        name="reduce",
        shape=f"n = {n}",
        work=n,
        arrays={"x": x, "partial": np.zeros(parts, np.float32), "sum": np.zeros(1, np.float32)},
        launches=(
            GridCall(grid=(parts,), block=(256,), arguments=(_int(n), "x", "partial")),
            GridCall(grid=(1,), block=(256,), arguments=(_int(parts), "partial", "sum")),
        ),
        c_function="reduce",
        c_arguments=(_int(n), "x", "sum"),
        output="sum",
        expected=np.array([x.sum(dtype=np.float64)]),
        tolerance=2e-3,  # a single float accumulator loses that much
    )


def mandelbrot(size: int, limit: int) -> Case:
    """Escape times; points near the border depend on the last bit, a few may differ."""
    arguments = (_int(size), _int(size), _int(limit), "out")
    turns = _escape_times(size, limit)
    return Case(
        name="mandelbrot",
        shape=f"{size} x {size}, {limit} turns",
        work=float(turns.sum()),
        arrays={"out": np.zeros((size, size), np.int32)},
        launches=(GridCall(grid=(size // 32, size // 8), block=(32, 8), arguments=arguments),),
        c_function="mandelbrot",
        c_arguments=arguments,
        output="out",
        expected=turns,
        equal_share=0.995,
        compute_bound=True,
    )


def _escape_times(size: int, limit: int) -> Array:
    three = np.float32(3.0)
    steps = np.arange(size, dtype=np.float32)
    cx = np.broadcast_to(np.float32(-2.0) + three * steps / np.float32(size), (size, size))
    cy = np.broadcast_to((np.float32(-1.5) + three * steps / np.float32(size))[:, None], cx.shape)
    x, y = np.zeros_like(cx), np.zeros_like(cy)
    turns = np.zeros((size, size), np.int32)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(limit):
            inside = x * x + y * y <= 4.0
            turns += inside
            x, y = x * x - y * y + cx, np.float32(2.0) * x * y + cy
    return turns


def hist(n: int, ctas: int = 216) -> Case:
    """Byte counts; the bins start at zero and are only checked after the first launch."""
    data = _random(8).integers(0, 256, n, dtype=np.uint8)
    arguments = (_int(n), "data", "bins")
    return Case(
        name="hist",
        shape=f"n = {n} bytes",
        work=n,
        arrays={"data": data, "bins": np.zeros(256, np.uint32)},
        launches=(GridCall(grid=(ctas,), block=(256,), arguments=arguments),),
        c_function="hist",
        c_arguments=arguments,
        output="bins",
        expected=np.bincount(data, minlength=256).astype(np.uint32),
    )


def mma(n: int) -> Case:
    """Half matrices on tensor cores."""
    a, b = (_floats(s, n, n).astype(np.float16) for s in (9, 10))
    scratch = {k: np.zeros((n, n), np.float32) for k in ("c", "left", "right")}
    warps = 4
    return Case(
        name="mma",
        shape=f"{n} x {n} x {n}, half",
        work=n**3,
        arrays={"a": a, "b": b, **scratch},
        launches=(
            GridCall(
                grid=(n // (8 * warps), n // 16),
                block=(32, warps),
                arguments=(_int(n), "a", "b", "c"),
            ),
        ),
        c_function="mma",
        c_arguments=(_int(n), "a", "b", "c", "left", "right"),
        output="c",
        expected=a.astype(np.float64) @ b.T.astype(np.float64),
        tolerance=1e-5,
        compute_bound=True,
    )


SMALL: Final[Mapping[str, Callable[[], Case]]] = {
    "saxpy": lambda: saxpy(1 << 20),
    "gather": lambda: gather(1 << 20, 1 << 20),
    "alu": lambda: alu(1 << 15, 64),
    "sgemm32": lambda: sgemm32(256),
    "sgemm16": lambda: sgemm16(256),
    "sgemmrt": lambda: sgemmrt(256),
    "reduce": lambda: reduce(1 << 20),
    "mandelbrot": lambda: mandelbrot(256, 64),
    "hist": lambda: hist(1 << 22),
    "mma": lambda: mma(256),
}
"""The sizes of the main table."""

LARGE: Final[Mapping[str, Callable[[], Case]]] = {
    "saxpy": lambda: saxpy(1 << 24),
    "gather": lambda: gather(1 << 22, 1 << 24),
    "alu": lambda: alu(1 << 20, 100),
    "sgemm32": lambda: sgemm32(1024),
    "sgemm16": lambda: sgemm16(1024),
    "sgemmrt": lambda: sgemmrt(1024),
    "reduce": lambda: reduce(1 << 24),
    "mandelbrot": lambda: mandelbrot(1024, 256),
    "hist": lambda: hist(1 << 24),
    "mma": lambda: mma(1024),
}
"""The sizes of the two-core table."""

TINY: Final[Mapping[str, Callable[[], Case]]] = {
    "saxpy": lambda: saxpy(1 << 12),
    "gather": lambda: gather(1 << 12, 1 << 20),
    "alu": lambda: alu(1 << 9, 64),
    "sgemm32": lambda: sgemm32(64),
    "sgemm16": lambda: sgemm16(64),
    "sgemmrt": lambda: sgemmrt(128),
    "reduce": lambda: reduce(1 << 14, 4),
    "mandelbrot": lambda: mandelbrot(64, 64),
    "hist": lambda: hist(76 * 512, 2),
}
"""The sizes an interpreter in Python gets through; its times are scaled up by ``work``.

A thread does as much as in the main table where shapes allow: starting one then weighs alike.
"""
