"""What the page on profiling shows is what happens: its console blocks are run in order."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest

from va100.cli.toolchain import find_compiler
from va100.config import Settings
from va100.errors import SetupError
from va100.profile.launch import RECORD

BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n", re.MULTILINE)
STATUSES = {"--compare": 1, "1.1y": 2, "dram__bytes.avg": 1}
"""Statuses other than 0, by a word of the command."""


@pytest.fixture
def page(root):
    return root / "docs" / "profiling.md"


@pytest.fixture
def _compiler():
    try:
        find_compiler(Settings.from_environment())
    except SetupError as error:
        pytest.skip(str(error))


@pytest.fixture
def session(root, tmp_path):
    """Runs commands in one folder, as the reader of the page would."""
    (tmp_path / "examples").symlink_to(root / "examples")

    def act(command):
        program, *words = shlex.split(command)
        assert program == "va100"
        done = subprocess.run(
            [sys.executable, "-m", "va100.cli", *words],
            cwd=tmp_path,
            env=os.environ | {"VA100_CACHE_DIR": str(tmp_path / "cache"), "COLUMNS": "100"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        expected = next((code for word, code in STATUSES.items() if word in command), 0)
        assert done.returncode == expected, done.stdout
        return done.stdout

    return act


def ran(block, session):
    """A block with what its commands print now."""
    return "".join(f"$ {command}\n{session(command)}" for command in COMMAND.findall(block))


@pytest.mark.usefixtures("_compiler")
def test_console_blocks_show_what_is_printed(page, session, request):
    text = page.read_text(encoding="utf-8")
    assert len(BLOCK.findall(text)) >= 4
    made = BLOCK.sub(lambda block: f"```console\n{ran(block[1], session)}```", text)
    if request.config.getoption("--update-golden"):
        page.write_text(made, encoding="utf-8")
    assert made == page.read_text(encoding="utf-8")


@pytest.mark.usefixtures("_compiler")
def test_the_python_shown_runs(page, root, tmp_path):
    (shown,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", shown],
        cwd=root,
        env=os.environ | {"VA100_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    time_s, *bound, sectors = done.stdout.split()
    assert 1e-6 < float(time_s) < 1e-4
    assert bound == ["DRAM", "bandwidth"]
    assert float(sectors) == 393216


def test_every_key_of_a_record_is_explained(page):
    cells = re.findall(r"^\| (`[^|]*`) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", " ".join(cells)))
    assert set(RECORD) <= named
