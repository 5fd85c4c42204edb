"""A person's measurements beside a profile."""

from __future__ import annotations

import pytest

from tests.helpers.launches import launch
from va100.cli.main import main
from va100.config import Settings
from va100.errors import SetupError
from va100.perf.calibration import Calibration
from va100.profile.calibrate import load, read_measurements, report, report_text, save
from va100.profile.launch import records_json
from va100.spec.a100 import A100_SXM4_80GB


def table(tmp_path, text):
    path = tmp_path / "measured.csv"
    path.write_text(text, encoding="utf-8")
    return path


class TestReadMeasurements:
    def test_units_and_shapes(self, tmp_path):
        text = "kernel,grid,block,time_us\nsaxpy,864x1x1,256,10\nsaxpy,,,12.5\n"
        first, second = read_measurements(table(tmp_path, text))
        assert (first.grid.size, first.block.size) == (864, 256)
        assert first.time_s == pytest.approx(1e-5)
        assert (second.grid, second.block) == (None, None)

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("name,time_us\n", "has columns name, time_us"),
            ("kernel,time\nsaxpy,1\n", "has columns kernel, time"),
            ("kernel,time_us\nsaxpy,-1\n", "line 2: time_us is -1"),
            ("kernel,time_us\nsaxpy,fast\n", "line 2"),
            ("kernel,grid,time_us\nsaxpy,2by2,1\n", "line 2"),
        ],
    )
    def test_what_is_wrong_is_named(self, tmp_path, text, told):
        with pytest.raises(SetupError, match=told):
            read_measurements(table(tmp_path, text))

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(SetupError, match=r"none\.csv"):
            read_measurements(tmp_path / "none.csv")


class TestReport:
    def test_before_and_after(self, tmp_path):
        now = launch()
        slower_us = now.time_s * 1e6 * 1.5
        rows = read_measurements(table(tmp_path, f"kernel,time_us\nsaxpy,{slower_us}\n"))
        found = report([now], rows, A100_SXM4_80GB)
        (only,) = found.comparisons
        assert abs(only.after_s / only.measured_s - 1) < 0.02
        assert abs(only.before_s / only.measured_s - 1) > 0.2
        assert "before" in report_text(found)
        assert "too few" in report_text(found)

    def test_a_kernel_that_was_not_profiled_is_named(self, tmp_path):
        rows = read_measurements(table(tmp_path, "kernel,time_us\nother,1\n"))
        with pytest.raises(SetupError, match="line 2: the profile has no launch of other"):
            report([launch()], rows, A100_SXM4_80GB)


class TestKept:
    def test_factors_come_back_and_reach_the_settings(self, tmp_path):
        path = tmp_path / "here.json"
        save(Calibration(dram=0.8), path)
        assert load(path) == Calibration(dram=0.8)
        chip = Settings.from_environment({"VA100_CALIBRATION": str(path)}).chip
        usual = Settings.from_environment({}).chip
        assert chip.measured.dram_read_bytes_per_s == pytest.approx(
            0.8 * usual.measured.dram_read_bytes_per_s
        )

    @pytest.mark.parametrize(
        "text", ["", "[]", "{}", '{"dram": 1, "l2": 1, "sm": 1, "launch": 99}']
    )
    def test_what_is_no_calibration_is_refused(self, tmp_path, text):
        path = tmp_path / "here.json"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(SetupError, match="holds no calibration"):
            load(path)


def test_the_command(tmp_path, capsys):
    run = tmp_path / "run.json"
    run.write_text(records_json([launch()]), encoding="utf-8")
    measured = table(tmp_path, "kernel,time_us\nsaxpy,12\n")
    kept = tmp_path / "kept.json"
    assert main(["calibrate", str(run), str(measured), "--save", str(kept)]) == 0
    assert "times as fast as the model" in capsys.readouterr().out
    assert load(kept) != Calibration()
    assert main(["calibrate", str(run), str(tmp_path / "none.csv")]) == 1
    assert "none.csv" in capsys.readouterr().err
