"""The kernel profiler's CSV, read back by the csv module and, where it is installed, by pandas."""

from __future__ import annotations

import csv
import io

import pytest

from tests.helpers.launches import CHIP, COUNTERS, launch
from va100.profile.metrics import METRICS, chosen
from va100.profile.ncu_csv import Program, details_csv, number_text, raw_csv, source_csv
from va100.profile.report_schema import LineCounters

PROGRAM = Program(name="saxpy.cu", process=4242)
LAUNCHES = [launch(), launch(kernel="_Z3addILi4EEvPf")]
WANTED = chosen(["gpu__time_duration.sum", "dram__bytes.sum"])
COLUMNS = (
    "ID,Process ID,Process Name,Host Name,Kernel Name,Context,Stream,Block Size,Grid Size,Device,"
    "CC,Section Name,Metric Name,Metric Unit,Metric Value"
).split(",")


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


class TestDetails:
    def test_a_row_a_launch_and_metric(self):
        text = details_csv(LAUNCHES, WANTED, PROGRAM, CHIP)
        rows = table(text)
        assert list(rows[0]) == COLUMNS
        assert [(r["ID"], r["Kernel Name"], r["Metric Name"]) for r in rows] == [
            ("0", "saxpy", "gpu__time_duration.sum"),
            ("0", "saxpy", "dram__bytes.sum"),
            ("1", "add<4>", "gpu__time_duration.sum"),
            ("1", "add<4>", "dram__bytes.sum"),
        ]
        first = rows[0]
        assert (first["Block Size"], first["Grid Size"]) == ("(256, 1, 1)", "(864, 1, 1)")
        assert (first["Process ID"], first["Stream"], first["CC"]) == ("4242", "7", "8.0")
        assert (first["Metric Unit"], first["Metric Value"]) == ("nsecond", "8000")

    def test_every_field_is_quoted(self):
        text = details_csv(LAUNCHES, WANTED, PROGRAM, CHIP)
        assert all(line[0] == line[-1] == '"' for line in text.splitlines())

    def test_unknown_reads_na(self):
        blind = launch(counters=COUNTERS | {"sampled_fraction": 0.0})
        metrics = chosen(["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"])
        (row,) = table(details_csv([blind], metrics, PROGRAM, CHIP))
        assert row["Metric Value"] == "n/a"


class TestRaw:
    def test_a_row_a_launch_after_the_units(self):
        units, *rows = table(raw_csv(LAUNCHES, WANTED, PROGRAM, CHIP))
        assert (units["ID"], units["dram__bytes.sum"]) == ("", "byte")
        assert [row["Kernel Name"] for row in rows] == ["saxpy", "add<4>"]
        assert rows[0]["gpu__time_duration.sum"] == "8000"
        assert "Metric Name" not in units


class TestSource:
    def test_a_row_a_launch_and_line(self):
        rows = table(source_csv(LAUNCHES))
        assert [(row["ID"], row["Line"]) for row in rows] == [
            ("0", "11"), ("0", "12"), ("1", "11"), ("1", "12"),
        ]  # fmt: skip
        second = rows[1]
        assert (second["Kernel Name"], second["File"]) == ("saxpy", "/src/saxpy.cu")
        assert second["Instructions Executed"] == "131072"
        assert second["Global Sectors"] == "393216"
        assert second["Branches"] == "0"

    def test_lines_of_ptx_come_with_their_text(self):
        line = LineCounters(file="", line=7, text="ret;", counters={})
        (row,) = table(source_csv([launch(lines=(line,))]))
        assert (row["File"], row["Line"], row["Source"]) == ("PTX", "7", "ret;")


class TestPandas:
    """What people do with the profiler's files."""

    @pytest.fixture
    def pandas(self):
        return pytest.importorskip("pandas", reason="pandas is not installed")

    def test_details_pivot(self, pandas):
        text = details_csv(LAUNCHES, tuple(METRICS.values()), PROGRAM, CHIP)
        frame = pandas.read_csv(io.StringIO(text), thousands=",")
        wide = frame.pivot_table(
            index=["ID", "Kernel Name"], columns="Metric Name", values="Metric Value",
            aggfunc="first",
        )  # fmt: skip
        assert wide.shape == (2, len(METRICS))
        times = pandas.to_numeric(wide["gpu__time_duration.sum"])
        assert times.sum() == 16000

    def test_raw_with_units_skipped(self, pandas):
        text = raw_csv(LAUNCHES, tuple(METRICS.values()), PROGRAM, CHIP)
        frame = pandas.read_csv(io.StringIO(text), skiprows=[1])
        assert list(frame["launch__registers_per_thread"]) == [32, 32]
        assert frame["dram__bytes.sum"].dtype.kind in "if"


@pytest.mark.parametrize(
    ("value", "text"),
    [(3.0, "3"), (1e15, "1000000000000000"), (0.125, "0.125"), (1 / 3, "0.333333"), (None, "n/a"),
     (0.0, "0"), (1e-9, "1e-09")],
)  # fmt: skip
def test_number_text(value, text):
    assert number_text(value) == text
