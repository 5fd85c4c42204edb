"""Every example, compiled and run as a user would, its output compared with NumPy's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from va100.cli import toolchain
from va100.config import Settings
from va100.errors import SetupError
from va100.gpu.native import NATIVE_DIR
from va100.numerics.mma import mma

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.cu"))
LIMIT_S = 300


@pytest.fixture(scope="module")
def compiler():
    try:
        return toolchain.find_compiler(Settings.from_environment())
    except SetupError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def runtime(compiler):
    if not (NATIVE_DIR / compiler.runtime_name).exists():
        pytest.skip(f"the native core has no {compiler.runtime_name} yet")
    return compiler.runtime_name


def run(program, *arguments):
    command = [sys.executable, "-m", "va100.cli", "run", str(EXAMPLES / program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)


@pytest.fixture
def output(runtime, tmp_path):
    """Run an example that must succeed; the array it wrote."""

    def produce(program, dtype, *arguments):
        path = tmp_path / "out"
        outcome = run(program, *arguments, "--out", str(path))
        assert outcome.returncode == 0, outcome.stdout + outcome.stderr
        assert "PASSED" in outcome.stdout
        assert "A100 time" in outcome.stderr
        return np.fromfile(path, dtype)

    return produce


def random_bits(count, seed):
    """The generator of ``example.cuh``, all states at once."""
    with np.errstate(over="ignore"):
        powers = np.cumprod(np.full(count, 1664525, np.uint32), dtype=np.uint32)
        sums = np.cumsum(np.concatenate(([1], powers[:-1])), dtype=np.uint32)
        return powers * np.uint32(seed) + sums * np.uint32(1013904223)


def uniform(count, seed):
    scaled = (random_bits(count, seed) >> np.uint32(8)).astype(np.float32)
    return scaled * np.float32(2**-23) - np.float32(1)


def fused(a, b, c):
    """``fmaf``: products of floats are exact in double."""
    return (a.astype(np.float64) * b + c).astype(np.float32)


@pytest.mark.parametrize("program", PROGRAMS)
def test_compiles_to_ptx(compiler, program, tmp_path):
    out = tmp_path / "out.ptx"
    command = [str(compiler.path), "-arch=compute_80", "-ptx", str(EXAMPLES / program)]
    subprocess.run([*command, "-o", str(out)], check=True, timeout=LIMIT_S)
    assert ".entry" in out.read_text()


@pytest.mark.parametrize("n", [1, 1000, 1 << 18])
def test_vector_add(output, n):
    i = np.arange(n, dtype=np.float32)
    expected = np.float32(0.5) * i + (np.float32(100) - np.float32(0.25) * i)
    np.testing.assert_array_equal(output("vector_add.cu", np.float32, "--n", str(n)), expected)


def test_saxpy(output):
    n = 100_001
    x, y = uniform(2 * n, 1).reshape(n, 2).T
    found = output("saxpy.cu", np.float32, "--n", str(n))
    np.testing.assert_array_equal(found, fused(np.float32(2.5) * np.ones(n), x, y))


@pytest.mark.parametrize("n", [32, 100])
def test_sgemm_tiled(output, n):
    a, b = uniform(2 * n * n, 2).reshape(n * n, 2).T.astype(np.float64).reshape(2, n, n)
    found = output("sgemm_tiled.cu", np.float32, "--n", str(n)).reshape(n, n)
    np.testing.assert_allclose(found, a @ b, rtol=0, atol=1e-7 * n)


@pytest.mark.parametrize("n", [64, 100])
def test_hgemm_tensor(output, n):
    """To the bit: blocks of eight products, ascending, each cut off."""
    halves = uniform(2 * n * n, 6).astype(np.float16).reshape(n * n, 2).T.reshape(2, n, n)
    raw = halves.view(np.uint16)
    expected = mma(raw[0], raw[1], np.zeros((n, n), np.uint32), kind="f16.f32")
    found = output("hgemm_tensor.cu", np.uint32, "--n", str(n)).reshape(n, n)
    np.testing.assert_array_equal(found, expected)


def test_reduction(output):
    n = 300_000
    values = uniform(n, 3)
    sums = output("reduction.cu", np.float32, "--n", str(n))
    grid, block = sums.size - 1, 256
    padded = np.zeros(-(-n // (grid * block)) * grid * block)
    padded[:n] = values
    blocks = padded.reshape(-1, grid, block).sum(axis=(0, 2))
    np.testing.assert_allclose(sums[:-1], blocks, atol=1e-3)
    assert sums[-1] == pytest.approx(values.sum(dtype=np.float64), abs=1e-2)


def test_histogram(output):
    n = 200_000
    dice = (random_bits(2 * n, 4) >> np.uint32(25)).reshape(n, 2).sum(axis=1)
    counts = output("histogram.cu", np.uint32, "--n", str(n))
    np.testing.assert_array_equal(counts, np.bincount(dice % 256, minlength=256))


@pytest.mark.parametrize("n", [64, 150])
def test_transpose(output, n):
    found = output("transpose.cu", np.float32, "--n", str(n)).reshape(n, n)
    np.testing.assert_array_equal(found, np.arange(n * n, dtype=np.float32).reshape(n, n).T)


def test_mandelbrot(output, tmp_path):
    width, height, limit = 128, 96, 100
    picture = tmp_path / "picture.pgm"
    words = ("--n", str(width), "--steps", str(limit), "--pgm", str(picture))
    found = output("mandelbrot.cu", np.int32, *words).reshape(height, width)

    scale = np.float32(3) / np.float32(width)
    half = np.float32(0.5)
    column, row = np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)
    real = fused(np.full(width, scale), column + half, -2.0)
    imaginary = fused(np.full(height, scale), row + half, -1.125)
    cx, cy = (part.astype(np.float32) for part in np.meshgrid(real, imaginary))
    x, y = np.zeros_like(cx), np.zeros_like(cy)
    steps = np.zeros(cx.shape, np.int32)
    for _ in range(limit):
        inside = fused(x, x, y * y) <= 4
        steps += inside
        x, y = (
            np.where(inside, fused(x, x, fused(-y, y, cx)), x),
            np.where(inside, fused(np.float32(2) * x, y, cy), y),
        )
    # rounding twice in `fused` may move a point on the rim once in a great while
    assert np.count_nonzero(found != steps) <= 2
    assert picture.read_bytes().startswith(b"P5\n128 96\n255\n")
    assert picture.stat().st_size == len(b"P5\n128 96\n255\n") + width * height


def test_stencil2d(output):
    n, steps = 90, 12
    plate = np.zeros((n, n), np.float32)
    plate[0] = 100
    for _ in range(steps):
        mean = np.float32(0.25) * (
            (plate[:-2, 1:-1] + plate[2:, 1:-1]) + (plate[1:-1, :-2] + plate[1:-1, 2:])
        )
        plate = plate.copy()
        plate[1:-1, 1:-1] = mean
    found = output("stencil2d.cu", np.float32, "--n", str(n), "--steps", str(steps))
    np.testing.assert_array_equal(found.reshape(n, n), plate)


def test_out_of_bounds_is_readable(runtime):
    outcome = run("out_of_bounds.cu")
    assert outcome.returncode == 1
    assert "CUDA error 700 (cudaErrorIllegalAddress)" in outcome.stdout
    assert "a later call: CUDA error 700" in outcome.stdout
    # what no real GPU says: kernel, line and the allocation next to the address
    line = next(
        number
        for number, text in enumerate((EXAMPLES / "out_of_bounds.cu").read_text().splitlines(), 1)
        if "// here" in text
    )
    assert "in kernel fill at " in outcome.stderr
    assert outcome.stderr.count("illegal address") == 1
    assert f"out_of_bounds.cu:{line}" in outcome.stderr


def test_cuda_core_saxpy(tmp_path):
    pytest.importorskip("cuda.core", reason="cuda.core is not installed", exc_type=ImportError)
    path = tmp_path / "out"
    outcome = run("cuda_core_saxpy.py", "--n", "5000", "--out", str(path))
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    i = np.arange(5000, dtype=np.float32) % 1000
    np.testing.assert_array_equal(np.fromfile(path, np.float32), np.float32(2.5) * i + 1)


def test_every_example_is_in_the_readme():
    text = (EXAMPLES / "README.md").read_text()
    for name in (*PROGRAMS, "cuda_core_saxpy.py", "example.cuh"):
        assert f"({name})" in text


def test_no_program_is_left_untested():
    here = Path(__file__).read_text()
    assert all(f'"{name}"' in here for name in PROGRAMS)
