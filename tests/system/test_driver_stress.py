"""Everything at once, and everything wrong: nothing is lost, nothing hangs, nothing crashes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from va100.gpu.native import NATIVE_DIR

CLIENTS = Path(__file__).parent / "clients"
LINK = (f"-L{NATIVE_DIR}", f"-Wl,-rpath,{NATIVE_DIR}")

needs_cc = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")


@needs_cc
def test_many_threads_leave_nothing_behind(tmp_path: Path, full: bool):
    binary = tmp_path / "driver_stress"
    subprocess.run(
        ["cc", "-O1", str(CLIENTS / "driver_stress.c"), "-o", str(binary), "-pthread",
         "-l:libcuda.so.1", *LINK],
        check=True,
    )  # fmt: skip
    calls = 10_000 if full else 2_000
    done = subprocess.run(
        [str(binary), "16", str(calls)], check=False, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    words = re.fullmatch(r"calls (\d+) bytes (-?\d+) descriptors (-?\d+)\n", done.stdout)
    assert words is not None
    assert int(words[1]) >= 16 * calls
    assert (words[2], words[3]) == ("0", "0")


@pytest.mark.parametrize("seed", range(4))
def test_calls_with_wrong_arguments_fail_as_documented(seed: int, root: Path, full: bool):
    done = subprocess.run(
        [sys.executable, str(CLIENTS / "driver_misuse.py"), str(root / "tools"), str(seed),
         str(20_000 if full else 3_000)],
        check=False, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    last = done.stderr.splitlines()[-3:]
    assert done.returncode == 0, f"after {last}"
    assert re.fullmatch(r"unknown \[\] successes \d+ works True\n", done.stdout), done.stdout


def test_wrong_calls_of_the_runtime_fail_as_documented(root: Path, full: bool):
    done = subprocess.run(
        [sys.executable, str(CLIENTS / "runtime_misuse.py"), str(root / "tools"),
         "400" if full else "20"],
        check=False, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    last = done.stderr.splitlines()[-3:]
    assert done.returncode == 0, f"after {last}"
    told = re.fullmatch(r"functions (\d+) calls \d+ unnamed \[\] works True\n", done.stdout)
    assert told, done.stdout
    assert int(told[1]) > 290
