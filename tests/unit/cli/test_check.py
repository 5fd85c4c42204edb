"""``va100 check``: words, patterns, what is told, with shell scripts for programs."""

from __future__ import annotations

import argparse
import json
import os
import re

import pytest

from va100.cli import check, environment
from va100.cli.main import main
from va100.errors import SetupError

FINDING = {
    "type": "finding",
    "tool": "racecheck",
    "kind": "race",
    "severity": "warn",
    "title": "Race",
    "kernel": "k",
    "space": "shared",
}


@pytest.fixture(autouse=True)
def built(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "is_built", lambda: True)
    monkeypatch.setenv("VA100_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def program(tmp_path):
    """A program that leaves findings."""

    def write(*findings, status=0, end=True):
        lines = [*findings, *([{"type": "end"}] if end else [])]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        path = tmp_path / "program"
        body = f'cat > "$VA100_CHECK_REPORT" <<\'END\'\n{text}END\necho "$VA100_CHECK"\n'
        path.write_text(f"#!/bin/sh\n{body}exit {status}\n")
        path.chmod(0o755)
        return str(path)

    return write


@pytest.mark.parametrize(
    ("words", "spelled"),
    [
        ("check --json a.cu", "check --json=- a.cu"),
        ("check --tool all --json a.cu --json", "check --tool all --json=- a.cu --json"),
        ("check a.cu --json", "check a.cu --json"),
        ("check --json=f a.cu", "check --json=f a.cu"),
        ("check --xml a.cu --xml", "check --xml=yes a.cu --xml"),
        ("check --xml no a.cu", "check --xml=no a.cu"),
        ("check --xml --json a.cu", "check --xml=yes --json=- a.cu"),
        ("check --prefix == -s 3 a.cu -s", "check --prefix == -s 3 a.cu -s"),
        ("check --tool", "check --tool"),
    ],
)
def test_spelled_out(words, spelled):
    assert check.spelled_out(words.split()) == spelled.split()


@pytest.mark.parametrize(
    ("forms", "name", "fits"),
    [
        ([], "anything", True),
        (["red"], "my_reduce", True),
        (["kns=red", "scan"], "prescan", True),
        (["kne=reduce"], "my_reduce", False),
        (["kernel_name=reduce"], "reduce", True),
        (["regex=^my_.*e$"], "my_reduce", True),
        (["a.c"], "abc", False),
        (["x=red"], "red", False),
        (["kne=scan,kns=red"], "my_reduce", True),
        (["kne=scan,kns=red"], "prescan", False),
        (["regex=a{1,2}b"], "aab", True),
    ],
)
def test_kernel_patterns(forms, name, fits):
    assert bool(re.search(check._kernel_pattern(forms), name)) is fits


def test_a_broken_expression_is_refused():
    with pytest.raises(SetupError, match="regular expression"):
        check._kernel_pattern(["regex=("])


def test_tools():
    assert check._tools("all") == ("memcheck", "initcheck", "synccheck", "racecheck")
    assert check._tools("racecheck,memcheck") == ("racecheck", "memcheck")
    with pytest.raises(argparse.ArgumentTypeError, match="valgrind"):
        check._tools("memcheck,valgrind")


class TestRun:
    def test_the_tools_reach_the_program(self, program, capfd):
        words = ["check", "--tool", "memcheck,racecheck", "--strict-warp", program()]
        assert main(words) == 0
        outcome = capfd.readouterr()
        assert outcome.out == "memcheck,racecheck,strict-warp\n"
        assert "ERROR SUMMARY: 0 errors" in outcome.err

    def test_levels(self, program, capfd):
        words = ["check", "--tool", "racecheck", "--error-exitcode", "5"]
        mild = {**FINDING, "severity": "info", "title": "Mild"}
        path = program(FINDING, mild, {**FINDING, "severity": "error", "title": "Bad"})
        assert main([*words, path]) == 5
        assert "Mild" not in capfd.readouterr().err
        assert main([*words, "--racecheck-detect-level", "info", path]) == 5
        assert "Mild" in capfd.readouterr().err
        assert main([*words, "--racecheck-detect-level", "error", path]) == 5
        assert "1 error, 0 warnings" in capfd.readouterr().err

    def test_warnings_are_no_errors(self, program):
        assert main(["check", "--error-exitcode", "5", program(FINDING)]) == 0

    def test_manners_reach_the_program(self, program, capfd):
        words = ["--destroy-on-device-error", "kernel", "--target-processes", "application-only"]
        assert main(["check", *words, program()]) == 0
        told = capfd.readouterr().out.strip()
        assert told == f"memcheck,keep-context,child-of-{os.getpid()}"

    def test_kernels_not_to_check(self, tmp_path, capfd):
        path = tmp_path / "program"
        path.write_text('#!/bin/sh\necho "$VA100_CHECK_KERNELS"\n')
        path.chmod(0o755)
        words = ["--kernel-name", "kne=a,kns=b", "--kernel-name-exclude", "c"]
        assert main(["check", *words, "--kernel-regex-exclude", "d+", str(path)]) == 0
        assert capfd.readouterr().out.splitlines() == ["^a$|b", "c|(?:d+)"]

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (["--racecheck-memcpy-async", "no"], {"Undefined", "Shared"}),
            (["--check-api-memory-access", "no"], {"Copied", "Shared"}),
            (["--initcheck-address-space", "global"], {"Copied", "Undefined"}),
            ([], {"Copied", "Undefined", "Shared"}),
        ],
    )
    def test_what_single_tools_leave_out(self, words, told, program, capfd):
        copy = {
            "what": "asynchronous copy", "function": "k", "file": "k.cu", "line": 1,
            "instruction": "", "cta": [0, 0, 0], "thread": [0, 0, 0],
        }  # fmt: skip
        path = program(
            {**FINDING, "title": "Copied", "first": copy},
            {**FINDING, "tool": "initcheck", "kind": "undefined-copy", "severity": "error",
             "title": "Undefined", "space": "global"},
            {**FINDING, "tool": "initcheck", "kind": "uninitialised", "severity": "error",
             "title": "Shared"},
        )  # fmt: skip
        assert main(["check", "--tool", "all", *words, path]) == 0
        text = capfd.readouterr().err
        assert {t for t in ("Copied", "Undefined", "Shared") if t in text} == told

    def test_forms_of_the_report(self, program, capfd):
        assert main(["check", "--quiet", program()]) == 0
        assert not capfd.readouterr().err
        assert main(["check", "--prefix", "##", "--tool", "racecheck", program(FINDING)]) == 0
        assert all(line.startswith("##") for line in capfd.readouterr().err.splitlines())
        assert main(["check", program(status=3)]) == 3
        assert "ended with status 3" in capfd.readouterr().err
        assert main(["check", "--check-exit-code", "no", program(status=3)]) == 3
        assert "ended with status 3" not in capfd.readouterr().err

    def test_a_program_without_cuda(self, tmp_path, capfd):
        path = tmp_path / "program"
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        assert main(["check", str(path)]) == 0
        assert main(["check", "--require-cuda-init", "yes", str(path)]) != 0
        assert "used no CUDA" in capfd.readouterr().err

    def test_a_program_that_was_cut_short(self, program, capfd):
        assert main(["check", program(FINDING, status=4, end=False)]) == 4
        assert "ended early" in capfd.readouterr().err
