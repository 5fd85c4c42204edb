"""Races between branches of a graph, found from outside."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from va100.cli import toolchain
from va100.config import Settings
from va100.errors import SetupError
from va100.gpu.native import NATIVE_DIR

PROGRAM = Path(__file__).parent / "graphs.cu"
LIMIT_S = 300


@pytest.fixture
def found():
    """Kinds of what ``va100 check`` finds in the program."""
    try:
        compiler = toolchain.find_compiler(Settings.from_environment())
    except SetupError as error:
        pytest.skip(str(error))
    if not (NATIVE_DIR / compiler.runtime_name).exists():
        pytest.skip(f"the native core has no {compiler.runtime_name} yet")

    def run(*arguments):
        command = [sys.executable, "-m", "va100.cli", "check", "--tool", "racecheck", "--json"]
        outcome = subprocess.run(
            [*command, str(PROGRAM), *arguments],
            capture_output=True, text=True, check=False, timeout=LIMIT_S,
        )  # fmt: skip
        assert "cudaSuccess" in outcome.stdout + outcome.stderr
        text = outcome.stdout[outcome.stdout.index("{") :]
        return [finding["kind"] for finding in json.loads(text)["findings"]]

    return run


def test_branches_that_nothing_orders_race(found):
    assert found() == ["stream-race"]


def test_an_edge_orders_them(found):
    assert found("ordered") == []
