"""Registers as the real assembler gives them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.helpers.kernels import kernel
from va100.config import Settings, find_program
from va100.profile.assembled import Assembler

TEXT = kernel("test", "u64", "st.global.u32 [%d60], %r3; ret;")
LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'test' for 'sm_80'
ptxas info    : Function properties for test
    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 37 registers, used 1 barriers, 360 bytes cmem[0]
"""


def _program(folder: Path, script: str) -> Assembler:
    path = folder / "ptxas"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return Assembler(path)


def test_reads_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG, encoding="utf-8")
    assembler = _program(tmp_path, f'cat "{tmp_path}/log" >&2')
    found = assembler.resources(TEXT, "test")
    assert found is not None
    assert (found.registers_per_thread, found.local_bytes, found.barrier_count) == (37, 16, 1)
    assert not found.registers_estimated
    assert assembler.resources(TEXT, "another") is None


@pytest.mark.parametrize("script", ["exit 255", "echo nothing of use", 'kill -9 "$$"'])
def test_one_that_does_not_tell_is_no_error(tmp_path: Path, script: str) -> None:
    assert _program(tmp_path, script).resources(TEXT, "test") is None
    assert Assembler(tmp_path / "gone").resources(TEXT, "test") is None


def test_the_real_one() -> None:
    path = find_program("ptxas", Settings.from_environment())
    if path is None:
        pytest.skip("no nvcc with its ptxas is installed")
    found = Assembler(path).resources(TEXT, "test")
    assert found is not None
    assert 2 <= found.registers_per_thread <= 16
    assert Assembler(path).resources("no PTX", "test") is None
