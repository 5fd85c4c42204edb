"""Triton, unchanged: its kernels reach the virtual GPUs through a ptxas that passes PTX on."""

from __future__ import annotations

import subprocess

import pytest

from tests.helpers.client_programs import cases_of, failures_of
from va100.gpu.native import PTXAS

PROGRAM = "triton_kernels.py"


def test_kernels(tmp_path, monkeypatch):
    pytest.importorskip("triton", reason="needs triton")
    pytest.importorskip("cuda.core", reason="needs cuda-core")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    assert len(cases_of(PROGRAM)) == 12
    assert failures_of(PROGRAM) == []


@pytest.mark.skipif(not PTXAS.exists(), reason="the companions are not built")
class TestPtxas:
    def run(self, *words):
        return subprocess.run(
            [PTXAS, *map(str, words)], capture_output=True, text=True, check=False
        )

    def test_it_passes_the_text_on(self, tmp_path):
        source, target = tmp_path / "a.ptx", tmp_path / "a.cubin"
        source.write_text(".version 8.8\n")
        options = ("-lineinfo", "-v", "--gpu-name=sm_80", "--opt-level", "3")
        done = self.run(*options, source, "-o", target)
        assert done.returncode == 0, done.stderr
        assert target.read_text() == ".version 8.8\n\0"  # where a driver stops reading

    def test_it_tells_a_release(self):
        assert "release 12.9, V12.9.86" in self.run("--version").stdout

    @pytest.mark.parametrize("words", [(), ("absent.ptx", "-o", "x.cubin")])
    def test_it_fails_without_input(self, words, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        done = self.run(*words)
        assert done.returncode == 255
        assert done.stderr.startswith("ptxas of va100: ")
