"""``va100 check`` from outside: programs that do right and wrong, statuses, streams, options."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from va100.check.findings import Tool
from va100.cli import toolchain
from va100.config import Settings
from va100.errors import SetupError
from va100.gpu.native import NATIVE_DIR

HERE = Path(__file__).resolve().parent
CLIENT = HERE / "clients" / "checked.py"
EXAMPLES = HERE.parents[1] / "examples"
LIMIT_S = 300


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("VA100_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "check-cache"))


def check(*words):
    return subprocess.run(
        [sys.executable, "-m", "va100.cli", "check", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


def found(*words):
    """Kinds of what is found, with the whole report."""
    outcome = check("--tool", "all", "--leak-check", "full", "--json", *words)
    report = json.loads(outcome.stdout)
    return [f["kind"] for f in report["findings"]], report


@pytest.mark.parametrize(
    ("mode", "kinds"),
    [
        ("clean", []),
        ("stray", ["out-of-bounds", "leak", "leak"]),
        ("race", ["uninitialised", "race"]),
        ("undefined", ["uninitialised"]),
        ("copied", ["uninitialised", "leak", "leak"]),
        ("freed", ["use-after-free", "leak"]),
        ("double_free", ["double-free"]),
        ("wrong_free", ["invalid-free"]),
        ("bad_copy", ["bad-range"]),
        ("leak", ["leak"]),
    ],
)
def test_kinds(mode, kinds):
    names, report = found(CLIENT, mode)
    assert names == kinds
    assert report["complete"]


class TestStatus:
    def test_errors_change_it_only_when_asked(self):
        assert check(CLIENT, "double_free").returncode == 0
        assert check("--error-exitcode", 7, CLIENT, "double_free").returncode == 7
        assert check("--error-exitcode", 7, CLIENT, "clean").returncode == 0

    def test_the_programs_own_comes_first(self):
        assert check("--error-exitcode", 7, CLIENT, "failing").returncode == 3

    def test_leaks_are_errors_only_when_looked_for(self):
        assert check("--error-exitcode", 7, CLIENT, "leak").returncode == 0
        words = ("--leak-check", "full", "--error-exitcode", 7)
        assert check(*words, CLIENT, "leak").returncode == 7


class TestOutput:
    def test_the_programs_stays_as_it_is(self, tmp_path):
        log = tmp_path / "log"
        outcome = check("--tool", "racecheck", "--log-file", log, CLIENT, "race")
        assert outcome.stdout == "ran race\n"
        assert "=========" not in outcome.stderr
        assert "Race on __shared__ memory" in log.read_text()
        assert "race_shared.cu:4" in log.read_text()

    def test_default_is_memcheck(self):
        outcome = check(CLIENT, "race")
        assert "VA100 CHECK (memcheck)" in outcome.stderr
        assert "ERROR SUMMARY: 0 errors" in outcome.stderr

    def test_json_beside_the_text(self, tmp_path):
        path = tmp_path / "report.json"
        outcome = check(f"--json={path}", CLIENT, "double_free")
        assert outcome.stdout == "ran double_free\n"
        assert json.loads(path.read_text())["errors"] == 1
        assert "Double free" in outcome.stderr


def test_other_kernels_are_left_alone():
    words = ("--tool", "all", "--leak-check", "no", "--json")
    for pattern, count in (("shared_raw", 2), ("kne=shared_raw", 0), ("regex=^sha.*bug$", 2)):
        outcome = check(*words, "--kernel-name", pattern, CLIENT, "race")
        assert len(json.loads(outcome.stdout)["findings"]) == count, pattern


def test_suppressions(tmp_path):
    made, kept = tmp_path / "made", tmp_path / "kept"
    words = ("--tool", "all", "--error-exitcode", 9)
    assert check(*words, "--gen-suppressions", made, CLIENT, "race").returncode == 9
    outcome = check(*words, "--suppressions", made, CLIENT, "race")
    assert outcome.returncode == 0
    assert "2 suppressed" in outcome.stderr
    kept.write_text("tool=memcheck\n")
    assert check(*words, "--suppressions", kept, CLIENT, "race").returncode == 9


class TestKept:
    def test_what_is_saved_is_reported_again(self, tmp_path):
        path = tmp_path / "run"
        assert "Race" in check("--tool", "racecheck", "--save", path, CLIENT, "race").stderr
        again = check("--error-exitcode", 4, "--read", path)
        assert again.returncode == 4
        assert "Race on __shared__ memory" in again.stderr
        assert check("--read", path, CLIENT, "race").stdout == ""

    def test_xml(self, tmp_path):
        path = tmp_path / "report.xml"
        check("--xml", "yes", "--log-file", path, CLIENT, "double_free")
        assert "<kind>double-free</kind>" in path.read_text()


def test_launches_are_chosen():
    for words, count in (((), 1), (("--launch-skip", 1), 0), (("--launch-count", 1), 1)):
        outcome = check("--tool", "racecheck", "--json", *words, CLIENT, "race")
        assert len(json.loads(outcome.stdout)["findings"]) == count, words


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--padding", "32"), "to the byte of the nearest allocation"),
        (("--generate-coredump",), "CUDA_ENABLE_COREDUMP_ON_EXCEPTION"),
        (("--nvtx", "true"), "only false"),
        (("--check-device-heap", "no"), "--check-device-heap"),
        (("--launch-skip", "-1"), "-1"),
    ],
)
def test_what_is_not_done_is_refused_by_name(words, named):
    outcome = check(*words, CLIENT, "clean")
    assert outcome.returncode == 2
    assert named in outcome.stderr
    assert outcome.stdout == ""


def test_every_tool_is_offered():
    text = check("--help").stdout
    assert all(tool.value in text for tool in Tool)


@pytest.fixture(scope="module")
def compiler():
    try:
        made = toolchain.find_compiler(Settings.from_environment())
    except SetupError as error:
        pytest.skip(str(error))
    if not (NATIVE_DIR / made.runtime_name).exists():
        pytest.skip(f"the native core has no {made.runtime_name} yet")


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    "program", sorted(p.name for p in EXAMPLES.glob("*.cu") if p.name != "out_of_bounds.cu")
)
def test_examples_are_clean(program):
    names, report = found(EXAMPLES / program)
    assert names == [], report["findings"]


@pytest.mark.usefixtures("compiler")
def test_example_out_of_bounds():
    names, report = found(EXAMPLES / "out_of_bounds.cu")
    assert names[0] == "out-of-bounds"
    first = report["findings"][0]["first"]
    assert first["file"].endswith("out_of_bounds.cu")
