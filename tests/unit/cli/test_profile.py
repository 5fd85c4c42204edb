"""``va100 profile``: words, streams, statuses and files, with shell scripts for programs."""

from __future__ import annotations

import csv
import io
import json
import sqlite3

import pytest

from tests.helpers.launches import report_lines, work
from va100.cli import environment, profile
from va100.cli.main import main

WORKS = (work(), work(kernel="_Z4copyPf", duration_s=2e-6), work())


@pytest.fixture(autouse=True)
def built(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "is_built", lambda: True)
    for name in ("VA100_REPORT", "VA100_MODEL", "VA100_GPUS", "VA100_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VA100_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def program(tmp_path):
    """A program that does what a shell is told, then leaves a full report."""

    def write(body="echo hello", works=WORKS):
        lines = "".join(json.dumps(line) + "\n" for line in report_lines(*works))
        path = tmp_path / "program"
        path.write_text(
            f'#!/bin/sh\n[ "$VA100_PROFILE" = 1 ] || exit 99\n'
            f"cat > \"$VA100_REPORT\" <<'END'\n{lines}END\n{body}\n"
        )
        path.chmod(0o755)
        return str(path)

    return write


class TestSpelledOut:
    @pytest.mark.parametrize(
        ("words", "spelled"),
        [
            ("profile a.cu --json", "profile a.cu --json"),
            ("profile --json a.cu", "profile --json=- a.cu"),
            ("profile --csv --page raw a.cu", "profile --csv=- --page=raw a.cu"),
            ("profile --fail-if -x a.cu --csv", "profile --fail-if=-x a.cu --csv"),
            ("profile --json=f --kernel k a.cu", "profile --json=f --kernel=k a.cu"),
            ("profile --metrics", "profile --metrics"),
        ],
    )
    def test_bare_options_are_told_from_targets(self, words, spelled):
        assert profile.spelled_out(words.split()) == spelled.split()


class TestRun:
    def test_the_program_keeps_its_output_and_status(self, program, capfd):
        assert main(["profile", program("cat; exit 7")]) == 7
        out, err = capfd.readouterr()
        assert out == ""
        assert "saxpy, 864 x 256" in err
        assert "3 launches, 18 us" in err

    def test_quiet(self, program, capfd):
        assert main(["profile", "--quiet", program()]) == 0
        assert capfd.readouterr() == ("hello\n", "")

    def test_json_takes_standard_output(self, program, capfd):
        assert main(["profile", "--json", program()]) == 0
        out, err = capfd.readouterr()
        assert [entry["kernel"] for entry in json.loads(out)] == ["saxpy", "copy", "saxpy"]
        assert err == "hello\n"

    def test_metrics_that_are_asked_for_come_with_the_records(self, program, capfd):
        words = ("--json", "--metrics", "launch__block_size, dram__bytes.sum")
        assert main(["profile", *words, program()]) == 0
        for entry in json.loads(capfd.readouterr().out):
            assert entry["counters"]["launch__block_size"] == 256

    def test_csv_of_chosen_launches(self, program, capfd):
        words = ("--csv", "--kernel", "saxpy", "--launch-skip", "1", "--metrics")
        assert main(["profile", *words, "launch__grid_size", program()]) == 0
        (row,) = csv.DictReader(io.StringIO(capfd.readouterr().out))
        assert (row["ID"], row["Kernel Name"], row["Metric Value"]) == ("0", "saxpy", "864")
        assert row["Process ID"] == "4242"

    def test_files(self, program, tmp_path, capfd):
        names = {kind: tmp_path / kind for kind in ("json", "csv", "trace", "sqlite", "html")}
        names["sqlite"].write_text("not a database")
        words = [f"--{kind}={path}" for kind, path in names.items()]
        assert main(["profile", *words, program()]) == 0
        assert len(json.loads(names["json"].read_text())) == 3
        assert "saxpy" in names["html"].read_text()
        assert json.loads(names["trace"].read_text())["traceEvents"]
        with sqlite3.connect(names["sqlite"]) as database:
            count = database.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
        database.close()
        assert count == (3,)
        assert "3 launches" in capfd.readouterr().err

    def test_an_unreadable_report_does_not_hide_the_program(self, program, capfd):
        body = 'echo "{" > "$VA100_REPORT"; echo x >> "$VA100_REPORT"; exit 3'
        assert main(["profile", program(body)]) == 3
        assert "could not be read" in capfd.readouterr().err


class TestJudgement:
    @pytest.fixture
    def base(self, program, tmp_path, capfd):
        path = tmp_path / "base.json"
        assert main(["profile", "--quiet", f"--json={path}", program()]) == 0
        capfd.readouterr()
        return path

    def test_each_kernel_that_is_slower_is_named(self, program, base, capfd):
        slower = (work(), work(kernel="_Z4copyPf", duration_s=3e-6), work(duration_s=9e-6))
        words = ("--quiet", f"--compare={base}", "--fail-if", "time > 1.1x")
        assert main(["profile", *words, program(works=slower)]) == 1
        told = [line for line in capfd.readouterr().err.splitlines() if "fails" in line]
        assert [line.split()[2] for line in told] == ["copy", "saxpy"]

    def test_a_failing_program_keeps_its_status(self, program, base):
        words = ("--quiet", f"--compare={base}", "--fail-if", "time > 0.5x")
        assert main(["profile", *words, program("exit 5")]) == 5

    def test_saved_runs(self, base, capfd):
        assert main(["profile", f"--compare={base}", "--fail-if", "time > 1x", str(base)]) == 0
        assert "same" in capfd.readouterr().out
        assert main(["profile", f"--compare={base}", "--fail-if", "time >= 1x", str(base)]) == 1

    def test_chosen_kernels_are_chosen_in_both(self, base, capfd):
        assert main(["profile", f"--compare={base}", "--kernel=copy", str(base)]) == 0
        out = capfd.readouterr().out
        assert "copy" in out
        assert "saxpy" not in out

    def test_a_file_that_holds_no_profile(self, base, tmp_path, capfd):
        odd = tmp_path / "odd.json"
        odd.write_text("{}")
        assert main(["profile", f"--compare={base}", str(odd)]) == 1
        assert "odd.json holds no profile" in capfd.readouterr().err


class TestMisuse:
    @pytest.mark.parametrize(
        ("words", "told"),
        [
            ((), "no TARGET was named"),
            (("--metrics", "nonsense", "a"), "metric nonsense is not computed"),
            (("--fail-if", "time > 2x", "a"), "relative to a base"),
            (("--html", "/nowhere/at/all", "PROGRAM"), "/nowhere/at/all: No such file"),
        ],
    )
    def test_is_told_with_a_remedy(self, words, told, program, capfd):
        given = [program() if word == "PROGRAM" else word for word in words]
        assert main(["profile", *given]) == 1
        err = capfd.readouterr().err
        assert told in err
        assert "to fix:" in err

    def test_metrics_help_needs_no_target(self, capsys):
        assert main(["profile", "--metrics", "help"]) == 0
        assert "launch__block_size" in capsys.readouterr().out
