"""Which suites there are, how their files are run, and why tests fail where that is known.

A row of reasons is read against a test's name and the text of its failure, the first that fits
counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One library's suite, as its checkout holds it."""

    folder: str
    """Where pytest is started, below the checkout."""
    patterns: tuple[str, ...]
    """Test files, below the folder."""
    arguments: tuple[str, ...] = ()
    """For pytest."""
    gpus: int = 1
    """How many virtual GPUs the tests find."""
    modules: str = ""
    """The installed package whose tests are run by name; the files are then looked for in it."""
    reasons: tuple[tuple[str, str], ...] = ()
    """Pattern in the name of a test or the text of its failure, and what it stands for."""


_RUNTIME: Final = (
    "cudaErrorSymbolNotFound|cudaErrorUnknown",
    "NVIDIA's runtime, which `cuda.bindings.runtime` has linked in",
)
_MACHINE_CODE: Final = (
    "NO_BINARY_FOR_GPU|cuobjdump|ltoir|LTO-IR",
    "machine code or LTO-IR, which va100 does not run",
)
_CUDA_PYTHON: Final = (
    ('"nvml" is an NVIDIA driver library|libnvidia-ml', "NVML"),
    ("nvml.NotSupportedError", "NVML calls that are not supported"),
    _RUNTIME,
    ("TestIpcReexport", "the test, which closes a buffer that is still being sent"),
    (
        "(?i)latch|is_done|DID NOT RAISE RuntimeError",
        "the host goes on while a kernel runs, which waits for it: launches run at once",
    ),
    ("assert [0-9.]+ > 10", "an event's time does not hold what a kernel sleeps"),
    ("CUDA checkpoint", "checkpoints of processes"),
    ("create_mipmapped_array|mipmapped", "textures of mipmapped arrays"),
    _MACHINE_CODE,
    ("nvJitLink|cuLink driver linker does not support", "LTO-IR, which wants NVIDIA's nvJitLink"),
    ("test_get_cuda_native_handle|test_ccuda", "an extension module that the suite's build makes"),
    ("show_device_properties", "NVML"),
    ("fstat refused|as_bytes|not covered by _CASES", "the test itself, whatever the driver"),
    ("test_linker_get_error_log", "the wording of an error"),
)
_NUMBA: Final = (
    ("Torch not compiled with CUDA", "PyTorch for GPUs"),
    ("(?i)cupy", "CuPy"),
    ("nvJitLink|LTO", "LTO-IR, which wants NVIDIA's nvJitLink"),
    (
        "CUDAAndCPUCachingTest",
        "numba's caches for CPUs and GPUs, which overwrite each other's index",
    ),
    ("no attribute 'reserved'", "a name that cuda.bindings 13.5 no longer has"),
    ("DeclareDeviceCABI", "a declaration that disagrees, which only LTO allows"),
    ("test_issue_9229", "more than 2³¹ threads in x"),
)
_TRITON: Final = (
    (
        r"test_scan2d\[cum(sum|prod)-bfloat16|test_cat\[True|ptx\.count\(|"
        r"test_reduce\[.*-None-True\]|FileCheck",
        "the suite, which is a few days older than the library",
    ),
    (
        r"test_simple_matmul\[.*-float16-float16\](.|\n)*Mismatched elements: 1 /",
        "half-precision sums of numbers that PyTorch for CPUs draws",
    ),
    _MACHINE_CODE,
)

_CUPY: Final = (
    ("libcu(blas|rand|fft|solver|sparse)|CURAND|CUBLAS|CUFFT|CUSOLVER|CUSPARSE", "machine code"),
)

SUITES: Final = {
    "cupy": Suite(
        folder=".",
        patterns=(
            "tests/cupy_tests/core_tests/test_*.py",
            "tests/cupy_tests/cuda_tests/test_*.py",
            "tests/cupy_tests/manipulation_tests/test_*.py",
            "tests/cupy_tests/math_tests/test_*.py",
            "tests/cupy_tests/sorting_tests/test_*.py",
            "tests/cupy_tests/statistics_tests/test_*.py",
        ),
        reasons=_CUPY,
    ),
    "cuda-core": Suite(
        folder="cuda_core",
        patterns=("tests/**/test_*.py",),
        arguments=("-p", "client_suites.cuda_core_paths"),
        gpus=3,
        reasons=_CUDA_PYTHON,
    ),
    "cuda-bindings": Suite(
        folder="cuda_bindings",
        patterns=("tests/**/test_*.py",),
        reasons=_CUDA_PYTHON,
    ),
    "numba-cuda": Suite(
        folder="testing",
        patterns=("../numba_cuda/numba/cuda/tests/**/test_*.py",),
        arguments=("-o", "addopts=--benchmark-disable"),
        gpus=2,
        modules="numba.cuda.tests",
        reasons=_NUMBA,
    ),
    "triton-language": Suite(
        folder="python/test/unit/language",
        patterns=("test_*.py",),
        arguments=("-p", "client_suites.torch_device"),
        reasons=_TRITON,
    ),
}


def files_of(suite: Suite, checkout: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Each file's name in reports, and the words that name it to pytest."""
    folder = (checkout / suite.folder).resolve()
    found = sorted(path for pattern in suite.patterns for path in folder.glob(pattern))
    if suite.modules:
        return [_module(path.resolve(), suite.modules) for path in found]
    return [(str(p.relative_to(folder)), (str(p.relative_to(folder)),)) for p in found]


def _module(path: Path, package: str) -> tuple[str, tuple[str, ...]]:
    place = path.parts.index("tests")
    name = ".".join((*path.parts[place + 1 : -1], path.stem))
    return name, ("--pyargs", f"{package}.{name}")


def reason_of(suite: Suite, test: str, text: str) -> str:
    """The reason of a test's failure; the last line of its text where none is known."""
    for pattern, reason in suite.reasons:
        if re.search(pattern, f"{test}\n{text}"):
            return reason
    lines = [line for line in text.splitlines() if line.startswith("E ")] or text.splitlines()
    return (lines[-1] if lines else "").removeprefix("E").strip()[:160]
