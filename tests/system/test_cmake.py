"""An unchanged CMake project, configured with ``va100 env --cmake``, built, and tested by CTest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from va100.cli import environment, toolchain
from va100.config import Settings, find_program
from va100.errors import SetupError

PROJECT = Path(__file__).parent / "programs" / "cmake_project"
VA100 = [sys.executable, "-m", "va100.cli"]
CMAKES = [
    found
    for found in (shutil.which("cmake"), shutil.which("cmake", path=Path(sys.executable).parent))
    if found
]
TESTS = {"scale", "parts", "driver", "fails"}
LIMIT_S = 600


def run(*words, **variables):
    """Run a command as somebody would who never heard of va100."""
    hidden = ("VA100_", "LD_LIBRARY_PATH", "CUDA", "CMAKE_", "CTEST_")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
    return subprocess.run(
        list(map(str, words)),
        env=inherited | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


def passed(outcome):
    """Names of the tests that passed."""
    return set(re.findall(r"Test +#\d+: (\w+) \.+ +Passed", outcome.stdout))


@pytest.fixture(scope="module")
def cmake():
    try:
        toolchain.find_compiler(Settings.from_environment())
    except SetupError as error:
        pytest.skip(str(error))
    if not environment.is_built() or not CMAKES:
        pytest.skip("needs the native core and CMake")


@pytest.fixture(scope="module")
def build(cmake, tmp_path_factory):
    """The project, built in a folder with a space in its name."""
    return built(CMAKES[0], tmp_path_factory.mktemp("a build"))


def built(program, folder, *targets):
    cache = {"VA100_CACHE_DIR": str(folder / "cache")}
    path = run(*VA100, "env", "--cmake", "--model", "sxm40", **cache).stdout.strip()
    assert Path(path).name == "va100.cmake"
    configured = run(
        program, "-S", PROJECT, "-B", folder / "build", f"-DCMAKE_TOOLCHAIN_FILE={path}"
    )
    assert configured.returncode == 0, configured.stdout + configured.stderr
    made = run(program, "--build", folder / "build", "-j2", *targets)
    assert made.returncode == 0, made.stdout + made.stderr
    return folder / "build"


def ctest(build, *words, before=(), **variables):
    program = shutil.which("ctest", path=Path(CMAKES[0]).parent)
    return run(*before, program, "--test-dir", build, *words, **variables)


def test_ctest_passes_with_nothing_set(build):
    outcome = ctest(build)
    assert passed(outcome) == TESTS, outcome.stdout + outcome.stderr


def test_the_model_is_the_one_asked_for(build):
    assert "driver: 1 of NVIDIA A100-SXM4-40GB" in ctest(build, "-V", "-R", "driver").stdout


def test_other_library_paths_are_kept(build):
    """Of CMake before 3.25 those of the time of configuring."""
    outcome = ctest(build, LD_LIBRARY_PATH="/nowhere")
    assert passed(outcome) == TESTS, outcome.stdout


def test_run_tells_the_kernels_of_all_tests(build):
    outcome = ctest(build, before=[*VA100, "run"])
    assert passed(outcome) == TESTS, outcome.stdout + outcome.stderr
    assert re.search(r"^scale_kernel +8 +128 +1 ", outcome.stderr, re.MULTILINE), outcome.stderr
    assert re.search(r"^squares +1 +64 +1 ", outcome.stderr, re.MULTILINE)


def test_check_finds_what_they_do_wrong(build):
    words = ["check", "--tool", "all", "--error-exitcode", "9"]
    outcome = ctest(build, "-R", "scale", before=[*VA100, *words])
    assert (outcome.returncode, passed(outcome)) == (0, {"scale"}), outcome.stderr
    assert "ERROR SUMMARY: 0 errors" in outcome.stderr


@pytest.mark.skipif(len(set(CMAKES)) < 2, reason="needs a second CMake")
def test_another_cmake(cmake, tmp_path):
    """From 3.29 on CMake has a launcher for tests, before that an emulator."""
    folder = built(CMAKES[1], tmp_path, "--target", "driver_test")
    program = shutil.which("ctest", path=Path(CMAKES[1]).parent)
    outcome = run(program, "--test-dir", folder, "-R", "driver", "-V")
    assert passed(outcome) == {"driver"}, outcome.stdout + outcome.stderr
    assert "NVIDIA A100-SXM4-40GB" in outcome.stdout


def test_without_nvcc_the_one_command_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    if find_program("nvcc", Settings.from_environment()) is not None:
        pytest.skip("nvcc is installed as a wheel")
    outcome = run(*VA100, "env", "--cmake")
    assert outcome.returncode == 1
    assert "pip install 'va100[nvcc]'" in outcome.stderr
