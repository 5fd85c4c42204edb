"""What the README shows is what happens: its console blocks are run, its figures looked up."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest

from va100.cli.main import VERBS
from va100.cli.toolchain import find_compiler
from va100.config import Settings
from va100.errors import SetupError

CONSOLE = re.compile(r"```console\n\$ (?P<command>.*)\n(?P<output>(?:.*\n)*?)```")
ACCURACY_ROW = re.compile(r"^\| ([^|]+) \| (\d+) \| ([\d.]+%) \|", re.MULTILINE)


@pytest.fixture
def readme(root):
    return (root / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def _compiler():
    try:
        find_compiler(Settings.from_environment())
    except SetupError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("_compiler")
def test_console_blocks_show_what_is_printed(readme, root, tmp_path):
    blocks = list(CONSOLE.finditer(readme))
    assert blocks
    for block in blocks:
        program, *words = shlex.split(block["command"])
        assert program == "va100"
        done = subprocess.run(
            [sys.executable, "-m", "va100.cli", *words],
            cwd=root,
            env=os.environ | {"VA100_CACHE_DIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
        assert done.stdout == block["output"]


def test_every_verb_is_listed_and_no_other(readme):
    listed = set(re.findall(r"^\| `va100 (\w+)", readme, re.MULTILINE))
    assert listed == set(VERBS) - {"version"}


def test_accuracy_figures_are_those_of_the_page(readme, root):
    page = (root / "docs" / "accuracy.md").read_text(encoding="utf-8")
    shown = ACCURACY_ROW.findall(readme)
    assert len(shown) >= 3
    assert set(shown) <= set(ACCURACY_ROW.findall(page))
