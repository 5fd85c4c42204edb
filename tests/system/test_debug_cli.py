"""``va100 debug`` and ``VA100_TRACE`` from outside, on a program of nvcc's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from va100.cli import toolchain
from va100.config import Settings
from va100.errors import SetupError

CLIENT = Path(__file__).resolve().parent / "clients" / "debugged.cu"
LIMIT_S = 300
OUTPUT = "y[3]=7 y[99]=199"


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    try:
        toolchain.find_compiler(Settings.from_environment())
    except SetupError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("VA100_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "debug-cache"))


def va100(*words, commands=""):
    return subprocess.run(
        [sys.executable, "-m", "va100.cli", *map(str, words)],
        input=commands,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


def debug(commands, *words):
    """Answers to each command, and the whole outcome."""
    outcome = va100("debug", *words, commands="\n".join(commands) + "\n")
    parts = outcome.stdout.split("(va100) ")[1:]
    return [part.strip().splitlines()[1:] for part in parts], outcome


def test_variables_of_the_source():
    commands = [
        "break debugged.cu:22 if i == 66",
        "run",
        "print i",
        "print point",
        "p tile[2]",
        "p *x",
        "x/3f y + 64",
        "info args",
        "break axpy",
        "delete 1",
        "continue",
        "p x",
        "bt",
        "finish",
        "delete",
        "continue",
    ]
    answers, outcome = debug(commands, CLIENT)
    assert answers[1][1] == "Breakpoint 1"
    assert "block (1, 0, 0), thread (2, 0, 0), warp 0 lane 2" in answers[1][2]
    assert answers[1][3].split("\t")[0] == "22"
    assert [a[0] for a in answers[2:6]] == ["66", "{scale = 2, index = 66}", "66", "0"]
    assert answers[6][0].split("\t")[1:] == ["1", "1", "1"]
    assert answers[7][:2] == ["n = 100", "a = 2"]
    assert answers[11] == ["64"]
    assert answers[12][0].startswith("#0  axpy at debugged.cu:")
    assert answers[12][1].startswith("#1  saxpy at debugged.cu:22")
    assert OUTPUT in outcome.stdout
    assert outcome.returncode == 0


def test_lines_without_names():
    commands = ["b saxpy", "r", "next", "p i", "info locals", "p param_0", "quit"]
    answers, outcome = debug(commands, "--optimised", CLIENT)
    assert answers[2][0].split("\t")[0].isdecimal()
    assert "compile with -G" in answers[3][0]
    assert "compile with -G" in answers[4][0]
    assert answers[5] == ["100"]
    assert OUTPUT not in outcome.stdout
    assert outcome.returncode == 0


def test_commands_from_a_file(tmp_path):
    script = tmp_path / "script"
    script.write_text("# a remark\nbreak saxpy\nrun\ninfo kernels\nbreak 999\n")
    outcome = va100("debug", "--command", script, CLIENT)
    assert "grid (2, 1, 1) block (64, 1, 1)" in outcome.stdout
    assert "breakpoint 2 was never set: no code has 999" in outcome.stdout
    assert OUTPUT in outcome.stdout


def test_a_fault_is_stopped_at():
    answers, outcome = debug(["catch", "run", "p x", "info threads", "c"], CLIENT, "stray")
    assert any("illegal address" in line for line in answers[1])
    assert answers[2][0].startswith("(float *) 0x")
    assert "illegal address" in outcome.stderr
    assert outcome.returncode == 3


def test_a_program_that_is_not_there():
    outcome = va100("debug", "nosuch.cu")
    assert outcome.returncode == 1
    assert "nosuch.cu does not exist" in outcome.stderr


def test_commands_that_are_not_there():
    outcome = va100("debug", "--command", "nosuch", CLIENT)
    assert outcome.returncode == 1
    assert "nosuch: No such file" in outcome.stderr


def test_a_trace(monkeypatch, tmp_path):
    file = tmp_path / "trace"
    monkeypatch.setenv("VA100_TRACE", f"kernel=saxpy,cta=1,thread=3,out={file}")
    outcome = va100("run", "--quiet", CLIENT)
    assert outcome.stdout.strip() == OUTPUT
    lines = file.read_text().splitlines()
    assert all(line.startswith("saxpy cta(1,0,0) thread(3,0,0) debugged.cu:") for line in lines)
    assert any("-> 135" in line for line in lines if "st." in line)
    assert lines[-1].endswith("| ret;")


def test_a_trace_that_asks_for_nonsense(monkeypatch):
    monkeypatch.setenv("VA100_TRACE", "kernel")
    outcome = va100("run", CLIENT)
    assert outcome.returncode == 1
    assert "VA100_TRACE=kernel" in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_a_core_dump(tmp_path):
    core = tmp_path / "core"
    outcome = va100("run", "--quiet", "--dump", core, CLIENT, "stray")
    assert outcome.returncode == 3
    assert f"va100 debug --core {core}" in outcome.stderr
    answers, outcome = debug(["p threadIdx.x", "info warps", "p/x param_0", "step"], "--core", core)
    assert answers[0] == ["0"]
    assert "stray at debugged.cu:26" in answers[1][0]
    assert answers[2][0].startswith("0x")
    assert answers[3][0].startswith("this is a core dump")
    assert outcome.returncode == 0


def test_no_dump_without_a_fault(tmp_path):
    core = tmp_path / "core"
    assert va100("run", "--quiet", "--dump", core, CLIENT).returncode == 0
    assert not core.exists()
    outcome = va100("debug", "--core", core)
    assert outcome.returncode == 1
    assert "No such file" in outcome.stderr
