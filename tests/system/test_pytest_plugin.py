"""The pytest plugin from outside: real runs of pytest on small suites."""

from __future__ import annotations

import json
import re
import tomllib

import pytest

from tests.helpers.pytest_runs import USAGE_ERROR, run_pytest
from va100.cli import environment

BY_HAND = "suite_by_hand.py"
RIGHT = {
    "test_triple[32]": "PASSED",
    "test_triple[64]": "PASSED",
    "test_triple[128]": "PASSED",
    "test_ordered": "PASSED",
    "test_race": "PASSED",
    "test_without_cuda": "PASSED",
}
CHECKED = {**RIGHT, "test_race": "FAILED"}

pytestmark = pytest.mark.skipif(not environment.is_built(), reason="the native core is not built")


def test_off_it_imports_nothing():
    assert run_pytest("suite_off.py").status == 0


def test_the_entry_point_names_the_plugin(root):
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"va100.testing.plugin": "va100.testing.plugin"}
    assert not any("pytest" in requirement for requirement in project["dependencies"])


class TestOn:
    def test_a_suite_runs(self):
        outcome = run_pytest("--va100", BY_HAND)
        assert (outcome.status, outcome.verdicts) == (0, RIGHT), outcome
        assert "va100: 1 x A100-SXM4-80GB, virtual\n" in outcome.text
        assert "A100 time" not in outcome.text

    def test_model_and_count(self):
        outcome = run_pytest("--va100-model=pcie40", "--va100-gpus", 2, "-k", "without", BY_HAND)
        assert "va100: 2 x A100-PCIE-40GB, virtual\n" in outcome.text, outcome

    @pytest.mark.parametrize(
        ("word", "told"),
        [
            ("--va100-model=H100", "is no A100 model"),
            ("--va100-gpus=0", "is no count from 1 to 16"),
            ("--va100-check=memchek", "memchek is none of memcheck, initcheck"),
            ("--va100-check=", "nothing is none of memcheck, initcheck"),
            ("--va100-report=suite_off.py", "is no .json file"),
            ("--va100-report=nowhere/report.json", "in a folder that exists"),
            ("--va100-suppressions=nowhere", "nowhere: No such file"),
        ],
    )
    def test_what_cannot_be_is_said_at_once(self, word, told):
        outcome = run_pytest("--va100-check", word, BY_HAND)
        assert outcome.status == USAGE_ERROR, outcome
        assert told in outcome.errors
        assert "to fix: " in outcome.errors
        assert "Traceback" not in outcome.text + outcome.errors

    def test_the_oracle_cannot_check(self):
        outcome = run_pytest("--va100-check", BY_HAND, VA100_ENGINE="reference")
        assert outcome.status == USAGE_ERROR
        assert "unset VA100_ENGINE" in outcome.errors


class TestCheck:
    def test_a_race_with_the_right_result_fails_its_test_alone(self):
        outcome = run_pytest("--va100-check", BY_HAND)
        assert (outcome.status, outcome.verdicts) == (1, CHECKED), outcome
        place, report = re.findall(r"racecheck: Race .* at (\S+)\n(=+ VA100 CHECK)", outcome.text)[
            0
        ]
        assert (place, report) == ("share.cu:7", "========= VA100 CHECK")
        assert "and read at share in share.cu:9: ld.shared.u32" in outcome.text

    def test_only_the_tools_that_were_asked_for(self):
        outcome = run_pytest("--va100-check=memcheck,synccheck", BY_HAND)
        assert (outcome.status, outcome.verdicts) == (0, RIGHT), outcome
        assert "virtual, checked: memcheck, synccheck\n" in outcome.text

    def test_in_another_order_and_alone(self):
        tests = [f"{BY_HAND}::{name}" for name in reversed(RIGHT)]
        assert run_pytest("--va100-check", *tests).verdicts == CHECKED
        alone = run_pytest("--va100-check", f"{BY_HAND}::test_race")
        assert alone.verdicts == {"test_race": "FAILED"}

    def test_suppressed(self, tmp_path):
        rules = tmp_path / "rules"
        rules.write_text("tool=racecheck kernel=share file=share.cu\n")
        outcome = run_pytest("--va100-check", f"--va100-suppressions={rules}", BY_HAND)
        assert outcome.verdicts == RIGHT, outcome

    def test_fixtures_children_and_expected_failures(self):
        outcome = run_pytest("--va100-check", "suite_elsewhere.py")
        assert outcome.status == 1
        # A test whose fixture ends badly passed, and then had an error; the last word stands.
        assert outcome.verdicts == {
            "test_with_a_fixture": "ERROR",
            "test_with_a_fixture_that_ends_badly": "ERROR",
            "test_child[RACE]": "FAILED",
            "test_child[ORDERED]": "PASSED",
            "test_known": "XFAIL",
        }, outcome

    def test_without_the_check_all_of_these_are_right(self):
        outcome = run_pytest("--va100", "suite_elsewhere.py")
        assert outcome.status == 0, outcome

    def test_what_is_found_outside_of_tests_fails_the_run(self):
        outcome = run_pytest("--va100-check", "suite_stray.py")
        assert (outcome.status, outcome.verdicts) == (1, {"test_what_was_found": "PASSED"})
        _, _, told = outcome.text.partition("va100 check: outside of tests")
        assert "share.cu:7" in told


class TestReport:
    def test_kernels_and_tests(self, tmp_path):
        path = tmp_path / "kernels.json"
        outcome = run_pytest(f"--va100-report={path}", BY_HAND)
        assert outcome.status == 0, outcome
        report = json.loads(path.read_text())
        by_test = {entry["test"].partition("::")[2]: entry for entry in report["tests"]}
        assert by_test.keys() == RIGHT.keys() - {"test_without_cuda"}
        assert {entry["outcome"] for entry in by_test.values()} == {"passed"}
        (kernel,) = by_test["test_triple[64]"]["kernels"]
        assert (kernel["name"], kernel["block"], kernel["count"]) == ("triple", [64, 1, 1], 1)
        assert 1e-7 < kernel["total_s"] < 1e-4
        (share,) = [k for k in report["kernels"] if k["name"] == "share"]
        parts = [by_test[name]["total_s"] for name in ("test_ordered", "test_race")]
        assert share["count"] == 2
        assert share["total_s"] == pytest.approx(sum(parts))
        assert "5 launches" in outcome.text
        assert re.search(r"^ +1 +\S+ us  suite_by_hand.py::test_race$", outcome.text, re.MULTILINE)

    def test_children_are_counted_once(self):
        outcome = run_pytest("--va100-report", "suite_elsewhere.py", "-k", "child")
        assert outcome.status == 0, outcome
        assert re.search(r"^share +1 +64 +2 ", outcome.text, re.MULTILINE), outcome

    def test_a_failed_test_is_told_as_such(self, tmp_path):
        path = tmp_path / "kernels.json"
        run_pytest("--va100-check", f"--va100-report={path}", BY_HAND)
        outcomes = {e["test"]: e["outcome"] for e in json.loads(path.read_text())["tests"]}
        assert outcomes[f"{BY_HAND}::test_race"] == "failed"
        assert outcomes[f"{BY_HAND}::test_ordered"] == "passed"


class TestWorkers:
    @pytest.fixture(autouse=True)
    def xdist(self):
        pytest.importorskip("xdist", reason="needs pytest-xdist")

    def test_two_workers_find_the_same(self):
        outcome = run_pytest("-n", 2, "--va100-check", "--va100-report", BY_HAND)
        assert (outcome.status, outcome.verdicts) == (1, CHECKED), outcome
        assert "share.cu:7" in outcome.text
        assert "5 launches" in outcome.text
        assert re.search(r"^share +1 +64 +2 ", outcome.text, re.MULTILINE), outcome

    def test_what_is_found_outside_of_tests_is_told_once(self):
        outcome = run_pytest("-n", 2, "--va100-check", "suite_stray.py")
        assert outcome.status == 1, outcome
        assert outcome.text.count("VA100 CHECK") == 1


class TestClients:
    def test_numba(self):
        pytest.importorskip("numba.cuda", reason="needs numba-cuda")
        outcome = run_pytest("--va100-check", "suite_numba.py")
        right = {"test_add[1]": "PASSED", "test_add[1000]": "PASSED"}
        assert outcome.verdicts == {**right, "test_race": "FAILED"}, outcome
        assert re.search(r"racecheck: Race .* at \S*suite_numba.py:\d+\n", outcome.text)
        assert run_pytest("--va100", "suite_numba.py").status == 0

    def test_cuda_core(self):
        pytest.importorskip("cuda.core", reason="needs cuda.core")
        outcome = run_pytest("--va100-check", "suite_cuda_core.py")
        assert outcome.verdicts == {"test_twice": "PASSED", "test_beyond": "FAILED"}, outcome
        assert "memcheck: " in outcome.text
        assert run_pytest("--va100", "suite_cuda_core.py", "-k", "twice").status == 0
