"""Sources as people give them: PTX or C++, as text or as a file."""

from __future__ import annotations

import pytest

from tests.helpers.kernels import HEADER
from va100.cli import time_kernel
from va100.cli.time_kernel import ptx_of
from va100.config import Settings
from va100.errors import SetupError

PTX = HEADER + ".visible .entry k()\n{\n    ret;\n}\n"
SOURCE = "__global__ void k() {}\n"


@pytest.fixture
def settings(tmp_path):
    return Settings.from_environment({"HOME": str(tmp_path), "PATH": str(tmp_path)})


@pytest.fixture
def compiled(monkeypatch, settings):
    """Every source that reached the compiler; one is found."""
    seen = []

    def act(path, flags, settings):
        seen.append((path.read_text(), tuple(flags)))
        return PTX

    compiler = type("Found", (), {"path": "/nvcc"})()
    monkeypatch.setattr(time_kernel, "_compiled", act)
    monkeypatch.setattr(time_kernel, "find_compiler", lambda settings: compiler)
    return seen


def test_ptx_is_taken_as_it_is(settings, tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text(PTX)
    assert ptx_of(PTX, (), settings) == PTX
    assert ptx_of(path, (), settings) == PTX
    assert ptx_of(str(path), (), settings) == PTX


def test_a_text_is_compiled_once(settings, compiled):
    for flags in ((), (), ("-O1",), ("-O1",)):
        assert ptx_of(SOURCE, flags, settings) == PTX
    assert compiled == [(SOURCE, ()), (SOURCE, ("-O1",))]


def test_a_text_that_includes_its_own_files_is_compiled_each_time(settings, compiled):
    text = '#include "mine.cuh"\n' + SOURCE
    for _ in range(2):
        ptx_of(text, (), settings)
    assert len(compiled) == 2


def test_a_file_is_compiled_each_time(settings, compiled, tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(SOURCE)
    for source in (path, str(path)):
        assert ptx_of(source, (), settings) == PTX
    assert len(compiled) == 2


def test_what_is_missing_is_told(settings, tmp_path):
    with pytest.raises(SetupError, match="no nvcc was found"):
        ptx_of(SOURCE, (), settings)
    with pytest.raises(SetupError, match="No such file"):
        ptx_of(tmp_path / "none.ptx", (), settings)
