"""``va100 profile`` from outside: examples run under it, every format opened by something else."""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from va100.cli import toolchain
from va100.config import Settings
from va100.errors import SetupError
from va100.profile.launch import RECORD
from va100.profile.metrics import METRICS

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LIMIT_S = 300
PYTHON_PROGRAM = "raise SystemExit(3)\n"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Compiled programs, shared by the tests of this module."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def compiler():
    try:
        return toolchain.find_compiler(Settings.from_environment())
    except SetupError as error:
        pytest.skip(str(error))


@pytest.fixture
def profile(cache):
    def act(*words):
        return subprocess.run(
            [sys.executable, "-m", "va100.cli", "profile", *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
            env=os.environ | {"VA100_CACHE_DIR": str(cache)},
        )

    return act


@pytest.mark.usefixtures("compiler")
class TestReport:
    def test_the_reasons_name_numbers_and_source_lines(self, profile):
        outcome = profile(EXAMPLES / "transpose.cu")
        assert outcome.returncode == 0, outcome.stderr
        assert outcome.stdout == "transpose: max error 0, allowed 0: PASSED\n"
        lines = outcome.stderr.splitlines()
        slow = lines.index("transpose<0>, 32x32 x 32x8")
        assert "  bank conflicts: 94% of shared memory's turns" in lines[slow + 3]
        assert lines[slow + 3].endswith("at transpose.cu:31")
        fast = lines.index("transpose<1>, 32x32 x 32x8")
        assert not [line for line in lines[fast:] if "bank conflicts" in line]

    def test_kernel_and_launch_choose(self, profile):
        words = ("--kernel", "transpose<1>", "--metrics", "launch__block_size")
        shown = profile(*words, EXAMPLES / "transpose.cu").stderr
        assert "transpose<1>, 32x32" in shown
        assert "transpose<0>, 32x32" not in shown
        assert shown.splitlines()[-1].split() == ["launch__block_size", "256"]
        skipped = profile("--launch-skip", 1, "--launch-count", 1, EXAMPLES / "transpose.cu").stderr
        assert "1 launch, " in skipped
        assert "transpose<0>, 32x32" not in skipped

    def test_a_program_that_launches_nothing_keeps_its_status(self, profile, tmp_path):
        script = tmp_path / "nothing.py"
        script.write_text(PYTHON_PROGRAM)
        outcome = profile(script)
        assert outcome.returncode == 3
        assert "no kernel was launched" in outcome.stderr


@pytest.mark.usefixtures("compiler")
class TestFormats:
    def test_json_is_all_of_standard_output(self, profile):
        outcome = profile("--json", EXAMPLES / "reduction.cu")
        first, second = json.loads(outcome.stdout)
        assert tuple(first) == RECORD
        assert (first["kernel"], first["grid"], second["grid"]) == (
            "reduce", [216, 1, 1], [1, 1, 1],
        )  # fmt: skip
        assert first["counters"]["global_load_bytes"] == 4 << 20
        assert "PASSED" in outcome.stderr

    def test_csv(self, profile):
        outcome = profile("--csv", EXAMPLES / "reduction.cu")
        rows = list(csv.DictReader(io.StringIO(outcome.stdout)))
        assert len(rows) == 2 * len(METRICS)
        found = {(row["ID"], row["Metric Name"]): row["Metric Value"] for row in rows}
        assert float(found["0", "smsp__sass_data_bytes_mem_global_op_ld.sum"]) == 4 << 20
        assert found["1", "launch__grid_size"] == "1"
        raw = profile("--csv", "--page", "raw", EXAMPLES / "reduction.cu").stdout
        units, *launches = csv.DictReader(io.StringIO(raw))
        assert units["gpu__time_duration.sum"] == "nsecond"
        assert len(launches) == 2

    def test_files_of_one_run_tell_the_same(self, profile, tmp_path):
        files = {kind: tmp_path / f"out.{kind}" for kind in ("json", "trace", "sqlite", "csv")}
        outcome = profile(
            f"--json={files['json']}", f"--csv={files['csv']}", "--trace", files["trace"],
            "--sqlite", files["sqlite"], EXAMPLES / "reduction.cu",
        )  # fmt: skip
        assert outcome.returncode == 0, outcome.stderr
        records = json.loads(files["json"].read_text())
        events = json.loads(files["trace"].read_text())["traceEvents"]
        kernels = [event for event in events if event.get("cat") == "kernel"]
        assert [k["dur"] * 1e-6 for k in kernels] == [
            pytest.approx(r["time_s"], abs=2e-9) for r in records
        ]
        assert [k["args"]["registers per thread"] for k in kernels] == [
            r["registers"] for r in records
        ]
        with sqlite3.connect(files["sqlite"]) as database:
            rows = database.execute(
                "SELECT s.value, k.end - k.start, gridX FROM CUPTI_ACTIVITY_KIND_KERNEL k "
                "JOIN StringIds s ON s.id = k.shortName ORDER BY k.start"
            ).fetchall()
        database.close()
        assert [(name, grid) for name, _, grid in rows] == [("reduce", 216), ("reduce", 1)]
        assert rows[0][1] * 1e-9 == pytest.approx(records[0]["time_s"], abs=2e-9)

    def test_a_page_holds_the_source(self, profile, tmp_path):
        path = tmp_path / "page.html"
        outcome = profile("--quiet", "--html", path, EXAMPLES / "saxpy.cu")
        assert outcome.stderr == ""
        page = path.read_text()
        assert page.startswith("<!DOCTYPE html>")
        assert "y[i] = fmaf(alpha, x[i], y[i]);" in page

    def test_a_file_that_cannot_be_written_is_told_before_the_program_runs(self, profile, tmp_path):
        nowhere = tmp_path / "none" / "out.json"
        outcome = profile(f"--json={nowhere}", EXAMPLES / "reduction.cu")
        assert outcome.returncode == 1
        assert outcome.stdout == ""
        assert "name a file that can be written" in outcome.stderr


@pytest.mark.usefixtures("compiler")
class TestJudgement:
    @pytest.fixture
    def base(self, profile, tmp_path):
        path = tmp_path / "base.json"
        small = ("--quiet", f"--json={path}", EXAMPLES / "saxpy.cu", "--n", 1 << 20)
        assert profile(*small).returncode == 0
        return path

    def test_a_slower_run_fails_and_names_the_kernel(self, profile, base):
        words = ("--compare", base, "--fail-if", "time > 1.1x", EXAMPLES / "saxpy.cu", "--n")
        slower = profile(*words, 1 << 21)
        assert slower.returncode == 1
        assert "va100 profile: saxpy (864, 1, 1) x (256, 1, 1): time is" in slower.stderr
        same = profile(*words, 1 << 20)
        assert same.returncode == 0
        assert "same" in same.stderr

    def test_two_saved_runs(self, profile, base, tmp_path):
        other = tmp_path / "other.json"
        profile("--quiet", f"--json={other}", EXAMPLES / "saxpy.cu", "--n", 1 << 21)
        outcome = profile("--compare", base, "--fail-if", "global_load_bytes > 1.5x", other)
        assert outcome.returncode == 1
        row = outcome.stdout.splitlines()[2].split()
        assert row[0] == "saxpy"
        assert "1.5x" in outcome.stderr
        assert profile("--compare", base, base).returncode == 0

    def test_the_programs_own_failure_goes_first(self, profile, tmp_path):
        script = tmp_path / "failing.py"
        script.write_text(PYTHON_PROGRAM)
        assert profile("--fail-if", "time > 1ns", script).returncode == 3

    def test_a_bad_expression_is_misuse_with_a_caret(self, profile):
        outcome = profile("--fail-if", "time > 1.1y", "x.cu")
        assert outcome.returncode == 2
        *_, shown, caret = outcome.stderr.rstrip("\n").split("\n")
        assert shown[caret.index("^")] == "y"

    def test_a_relative_limit_without_a_base_is_refused(self, profile):
        outcome = profile("--fail-if", "time > 1.1x", "x.cu")
        assert outcome.returncode == 1
        assert "relative to a base" in outcome.stderr


class TestWithoutRunning:
    def test_metrics_are_listed(self, profile):
        outcome = profile("--metrics", "help")
        assert outcome.returncode == 0
        assert all(f"  {name} " in outcome.stdout for name in METRICS)

    def test_an_unknown_metric_is_refused_with_near_ones(self, profile):
        outcome = profile("--metrics", "sm__throughput.avg", "x.cu")
        assert outcome.returncode == 1
        assert "sm__throughput.avg.pct_of_peak_sustained_elapsed" in outcome.stderr

    @pytest.mark.parametrize(
        "words", [("--launch-skip", "-1"), ("--kernel", "("), ("--page", "sideways")]
    )
    def test_options_that_make_no_sense(self, words, profile):
        assert profile(*words, "x.cu").returncode == 2
