"""PyCUDA, unchanged: it starts nvcc for machine code and gets PTX."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec

import pytest

from tests.helpers.client_programs import cases_of, failures_of
from va100.cli import toolchain
from va100.config import Settings
from va100.errors import SetupError
from va100.gpu.native import NVCC_DIR

PROGRAM = "pycuda_kernels.py"
KERNEL = '__global__ void k(int *p) { *p = 1; }\nextern "C" __global__ void named() {}\n'


@pytest.fixture
def compiler():
    try:
        return toolchain.find_compiler(Settings.from_environment())
    except SetupError as error:
        pytest.skip(str(error))


def nvcc(*words, folder, **variables):
    path = f"{NVCC_DIR}{os.pathsep}{os.environ['PATH']}"
    found = shutil.which("nvcc", path=path)
    assert found == str(NVCC_DIR / "nvcc")
    return subprocess.run(
        [found, *words],
        cwd=folder,
        env=os.environ | {"PATH": path} | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_kernels(compiler, tmp_path):
    if find_spec("pycuda") is None:  # importing it needs a driver
        pytest.skip("needs PyCUDA")
    assert len(cases_of(PROGRAM)) == 9
    assert failures_of(PROGRAM, XDG_CACHE_HOME=str(tmp_path)) == []


class TestNvcc:
    """The nvcc that stands before the real one."""

    @pytest.fixture(autouse=True)
    def built(self, compiler):
        if not (NVCC_DIR / "nvcc").exists():
            pytest.skip("the native core has no nvcc yet")

    @pytest.fixture
    def source(self, tmp_path):
        path = tmp_path / "kernel.cu"
        path.write_text(KERNEL)
        return path

    @pytest.mark.parametrize("words", [["--cubin"], ["-cubin"]])
    def test_machine_code_is_ptx(self, source, words, tmp_path):
        done = nvcc(*words, "-arch", "sm_80", "kernel.cu", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert ".visible .entry named" in (tmp_path / "kernel.cubin").read_text()

    def test_where_it_was_asked_for(self, source, tmp_path):
        done = nvcc("-cubin", "-arch=sm_80", "-o", "here.bin", str(source), folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert ".target sm_80" in (tmp_path / "here.bin").read_text()

    def test_everything_else_is_the_real_ones(self, source, compiler, tmp_path):
        theirs = subprocess.run(
            [compiler.path, "--version"], capture_output=True, text=True, check=True
        )
        for variables in ({"VA100_NVCC": str(compiler.path)}, {"VA100_NVCC": ""}):
            assert nvcc("--version", folder=tmp_path, **variables).stdout == theirs.stdout
        assert nvcc("nowhere.cu", folder=tmp_path).returncode not in (0, 127)

    def test_it_does_not_start_itself(self, tmp_path):
        ours = str(NVCC_DIR / "nvcc")
        done = nvcc("--version", folder=tmp_path, VA100_NVCC=ours, PATH=str(NVCC_DIR))
        assert done.returncode == 127
        assert "no other nvcc is in PATH" in done.stderr
