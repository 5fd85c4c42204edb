"""Programs without Python: C against the driver, CUDA C++ against the runtime."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from va100 import config
from va100.cli.environment import child_environment
from va100.config import Settings
from va100.gpu.native import NATIVE_DIR

CLIENTS = Path(__file__).parent / "clients"
LINK = (f"-L{NATIVE_DIR}", f"-Wl,-rpath,{NATIVE_DIR}")

needs_cc = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
needs_nvcc = pytest.mark.skipif(
    not (shutil.which("nvcc") and shutil.which("g++")), reason="needs nvcc and g++"
)
needs_libpython = pytest.mark.skipif(
    config.python_library() is None, reason="this Python has no shared library"
)


def bare_environment() -> dict[str, str]:
    """No trace of a Python to start."""
    return {k: v for k, v in os.environ.items() if not k.startswith("VA100_")}


def run(*command: object, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run to the end, whatever the end is."""
    words = [str(word) for word in command]
    return subprocess.run(
        words, check=False, capture_output=True, text=True, env=environment, timeout=300
    )


@pytest.fixture(scope="module")
def c_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    binary = tmp_path_factory.mktemp("c") / "driver_client"
    subprocess.run(
        ["cc", "-O1", str(CLIENTS / "driver_client.c"), "-o", str(binary), "-pthread",
         "-l:libcuda.so.1", *LINK],
        check=True,
    )  # fmt: skip
    return binary


@pytest.fixture(scope="module")
def cuda_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    binary = tmp_path_factory.mktemp("cu") / "saxpy"
    version = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True)
    major = version.stdout.split("release ")[1].split(".")[0]
    subprocess.run(
        ["nvcc", "-arch=compute_80", "-cudart", "none", "-lineinfo", str(CLIENTS / "saxpy.cu"),
         "-o", str(binary), f"-L{NATIVE_DIR}", f"-l:libcudart.so.{major}",
         "-Xlinker", f"-rpath={NATIVE_DIR}"],
        check=True,
    )  # fmt: skip
    return binary


@needs_cc
class TestC:
    def test_the_driver_alone_needs_no_python(self, c_client):
        done = run(c_client, environment=bare_environment())
        assert done.stdout == "1 x NVIDIA A100-SXM4-80GB, 108 SMs\n"
        assert done.returncode == 0
        assert "VA100_LIBPYTHON" in done.stderr

    def test_the_environment_chooses_the_machine(self, c_client):
        environment = bare_environment() | {"VA100_MODEL": "A100-PCIE-40GB", "VA100_GPUS": "4"}
        done = run(c_client, environment=environment)
        assert done.stdout == "4 x NVIDIA A100-PCIE-40GB, 108 SMs\n"

    def test_a_setting_that_is_nonsense_is_named(self, c_client):
        environment = bare_environment() | {"VA100_GPUS": "many"}
        done = run(c_client, environment=environment)
        assert "VA100_GPUS=many is not a number" in done.stderr
        assert done.returncode == 0

    @pytest.mark.skipif(os.geteuid() != 0 and not shutil.which("prlimit"), reason="needs prlimit")
    def test_less_address_space_than_the_arena_is_an_error_not_a_crash(self, c_client):
        done = run("prlimit", f"--as={1 << 32}", c_client, environment=bare_environment())
        assert "could not be reserved" in done.stderr
        assert "cuInit(0): 304 instead of 0" in done.stdout


@needs_nvcc
@needs_libpython
class TestRuntime:
    def test_a_program_runs_and_its_errors_are_cudas(self, cuda_program):
        environment = child_environment(Settings.from_environment())
        done = run(cuda_program, environment=environment)
        assert done.stdout.splitlines() == [
            "device NVIDIA A100-SXM4-80GB 8.0 108",
            "device printf 65536",
            "wrong 0 visits 256 blocks 8 timed 1",
            "max threads 1024",
            "too large cudaErrorInvalidConfiguration",
            "cleared cudaSuccess",
            "device printf 65792",
            "fault cudaErrorIllegalAddress",
            "sticky cudaErrorIllegalAddress",
            "after reset cudaSuccess",
        ]
        assert "illegal address" in done.stderr
        assert "saxpy.cu:12" in done.stderr
        assert done.returncode == 0

    def test_without_a_compiler_it_says_how_to_get_one(self, cuda_program):
        done = run(cuda_program, environment=bare_environment())
        assert "va100 run" in done.stderr
        assert "cudaErrorJitCompilerNotFound" in done.stdout
