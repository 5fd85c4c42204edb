"""Programs of the kinds people write, each checking itself against the CPU, run as a user would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from va100.cli import toolchain
from va100.config import Settings
from va100.errors import SetupError
from va100.gpu.native import NATIVE_DIR

PROGRAMS = Path(__file__).parent / "programs"
LIMIT_S = 300


@pytest.fixture(scope="module")
def runtime():
    try:
        compiler = toolchain.find_compiler(Settings.from_environment())
    except SetupError as error:
        pytest.skip(str(error))
    if not (NATIVE_DIR / compiler.runtime_name).exists():
        pytest.skip(f"the native core has no {compiler.runtime_name} yet")


@pytest.fixture
def run(runtime):
    def go(name):
        command = [sys.executable, "-m", "va100.cli", "run", str(PROGRAMS / f"{name}.cu")]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)

    return go


@pytest.mark.parametrize("name", sorted(path.stem for path in PROGRAMS.glob("*.cu")))
def test_agrees_with_the_cpu(run, name):
    outcome = run(name)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert outcome.stdout.splitlines()[-1] == f"{name}: 0 wrong: PASSED"
    assert "A100 time" in outcome.stderr


def test_device_printf_stands_where_the_host_waits(run):
    lines = run("device_printf").stdout.splitlines()
    said = [
        f"block {block} thread {thread} says hello  3.14 ! 0x{0x123456789ABC + thread:x} %"
        for block in (0, 1)
        for thread in (0, 2)
    ]
    assert sorted(lines[:4]) == said
    assert lines[4:6] == ["host between", "no arguments"]
