"""Telling kinds of programs apart."""

from __future__ import annotations

import sys

import pytest

from va100.cli import target
from va100.cli.target import Kind
from va100.config import Settings
from va100.errors import SetupError

SETTINGS = Settings.from_environment({"PATH": "/usr/bin:/bin", "HOME": "/nowhere"})


class TestKindOf:
    @pytest.mark.parametrize(
        ("name", "kind"), [("a.cu", Kind.CUDA), ("a.py", Kind.PYTHON), ("a", Kind.EXECUTABLE)]
    )
    def test_kinds(self, tmp_path, name, kind):
        path = tmp_path / name
        path.write_text("")
        path.chmod(0o755)
        assert target.kind_of(path) is kind

    def test_a_text_is_no_program(self, tmp_path):
        path = tmp_path / "a.ptx"
        path.write_text("")
        with pytest.raises(SetupError, match="va100 ptx"):
            target.kind_of(path)


class TestCommand:
    def test_name_in_path(self):
        found = target.command("true", ["x"], [], SETTINGS)
        assert found[0].endswith("/bin/true")
        assert found[1:] == ["x"]

    def test_python(self, tmp_path):
        script = tmp_path / "s.py"
        script.write_text("")
        found = target.command(str(script), ["-x"], [], SETTINGS)
        assert found == [sys.executable, "-m", "va100.cli.boot", str(script), "-x"]

    def test_source_needs_a_python_that_can_be_loaded(self, tmp_path, monkeypatch):
        source = tmp_path / "a.cu"
        source.write_text("")
        monkeypatch.setattr(target, "python_library", lambda: None)
        with pytest.raises(SetupError, match="no shared library") as refused:
            target.command(str(source), [], [], SETTINGS)
        assert "apt-get install libpython3." in refused.value.remedy


class TestLinksStaticRuntime:
    @pytest.mark.parametrize(
        ("content", "verdict"),
        [
            (b"\x7fELF..libcuda.so.1..cudaErrorCudartUnloading..", True),
            (b"\x7fELF..libcudart.so.13..cudaErrorCudartUnloading..", False),
            (b"\x7fELF..libcuda.so.1..", False),
            (b"#!/bin/sh\ncudaErrorCudartUnloading", False),
            (b"", False),
        ],
    )
    def test_by_content(self, tmp_path, content, verdict):
        path = tmp_path / "program"
        path.write_bytes(content)
        assert target.links_static_runtime(path) is verdict
