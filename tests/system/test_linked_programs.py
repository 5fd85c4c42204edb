"""Programs of several files, which nvcc links on the device, as their users build them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from va100.cli import toolchain
from va100.config import Settings
from va100.errors import SetupError
from va100.gpu.native import NATIVE_DIR

FOLDER = Path(__file__).parent / "programs" / "linked"
LIMIT_S = 300


@pytest.fixture(scope="module")
def compiler():
    try:
        return toolchain.find_compiler(Settings.from_environment())
    except SetupError as error:
        pytest.skip(str(error))


def run(*words):
    command = [sys.executable, "-m", "va100.cli", "run", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)


@pytest.fixture
def build(compiler, tmp_path):
    """Compile file by file, then link, with flags for each step."""
    (tmp_path / "libcudart.so").symlink_to(NATIVE_DIR / compiler.runtime_name)

    def go(main_flags, part_flags):
        for name, flags in (("main", main_flags), ("part", part_flags)):
            source, target = str(FOLDER / f"{name}.cu"), str(tmp_path / f"{name}.o")
            command = [compiler.path, "-dc", *flags, source, "-o", target]
            subprocess.run(command, check=True, timeout=LIMIT_S)
        objects = [str(tmp_path / f"{name}.o") for name in ("main", "part")]
        program = tmp_path / "program"
        command = [
            compiler.path, "-arch=sm_80", "-cudart", "shared", f"-L{tmp_path}", *objects,
            "-o", program, "-Xlinker", f"-rpath={NATIVE_DIR}",
        ]  # fmt: skip
        subprocess.run(command, check=True, timeout=LIMIT_S)
        return str(program)

    return go


class TestRunOfSources:
    WORDS = ("--quiet", "--nvcc-flags", f"-rdc=true {FOLDER / 'part.cu'}", str(FOLDER / "main.cu"))

    def test_agrees_with_the_cpu(self, compiler):
        outcome = run(*self.WORDS)
        assert outcome.stdout.splitlines()[-1] == "linked: 0 wrong: PASSED", outcome.stderr

    def test_a_fault_is_told_with_the_line_of_the_second_file(self, compiler):
        outcome = run(*self.WORDS, "fault")
        line = next(
            number
            for number, text in enumerate((FOLDER / "part.cu").read_text().splitlines(), 1)
            if "the line that is told of" in text
        )
        assert outcome.returncode == 0
        assert f"in kernel wrong at {FOLDER / 'part.cu'}:{line}" in outcome.stderr


def test_kernels_launch_kernels(compiler):
    outcome = run("--quiet", "--nvcc-flags", "-rdc=true", str(FOLDER / "dynamic.cu"))
    assert outcome.stdout.splitlines()[-1] == "dynamic: 0 wrong: PASSED", outcome.stderr


class TestObjectFiles:
    def test_with_ptx_beside_machine_code_run(self, build):
        outcome = run("--quiet", build(["-arch=sm_80"], ["-arch=sm_80", "-G"]))
        assert outcome.stdout.splitlines()[-1] == "linked: 0 wrong: PASSED", outcome.stderr

    def test_without_ptx_are_told_of_with_the_switch(self, build):
        sass = ["-gencode", "arch=compute_80,code=sm_80"]
        outcome = run("--quiet", build(["-arch=sm_80"], sass))
        assert outcome.returncode != 0
        assert "is used, but defined nowhere" in outcome.stderr
        assert "1 of the program's object files hold machine code only" in outcome.stderr
        assert "nvcc -rdc=true -arch=compute_80" in outcome.stderr
