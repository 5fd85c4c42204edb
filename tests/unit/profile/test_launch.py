"""Launches out of a full report, their selection, and the records that scripts read."""

from __future__ import annotations

import json

import pytest

from tests.helpers.launches import COUNTERS, launch, report, work
from va100.errors import SetupError
from va100.profile.launch import (
    RECORD,
    launch_of_record,
    launches_of,
    read_records,
    records_json,
    selected,
)
from va100.work import Dim3


class TestLaunchesOf:
    def test_one_a_kernel_event(self):
        found = launches_of(report(work(), work(kernel="_Z4copyPf", duration_s=2e-6)))
        assert [x.name for x in found] == ["saxpy", "copy"]
        first, second = found
        assert (first.start_ns, second.start_ns) == (1000, 9000)
        assert first.shared_bytes == 1536
        assert first.stream == 7
        assert first.time_s == 8.0e-6

    def test_a_launch_without_detail_is_left_out(self):
        full = report(work())
        assert launches_of(report()) == ()
        events = tuple(event for event in full.events if event.kind != "kernel")
        assert all(event.work == "" for event in events)

    def test_the_band_holds_the_time_even_of_an_unknown_bound(self):
        for bound in ("DRAM bandwidth", "a part of a later version"):
            low, high = launch(bound_by=bound).time_s_band
            assert low < 8.0e-6 < high


class TestSelected:
    LAUNCHES = launches_of(
        report(*(work(kernel=k) for k in ("_Z1aPf", "_Z2abPf", "_Z1cPf", "_Z1aPf", "_Z2abPf")))
    )

    @pytest.mark.parametrize(
        ("options", "names"),
        [
            ({}, ["a", "ab", "c", "a", "ab"]),
            ({"kernel": "a"}, ["a", "ab", "a", "ab"]),
            ({"kernel": "^a$"}, ["a", "a"]),
            ({"kernel": "_Z2"}, ["ab", "ab"]),
            ({"skip": 3}, ["a", "ab"]),
            ({"skip": 1, "count": 2}, ["ab", "c"]),
            ({"kernel": "b", "skip": 1, "count": 5}, ["ab"]),
            ({"skip": 9}, []),
        ],
    )
    def test_kernel_skip_and_count(self, options, names):
        assert [x.name for x in selected(self.LAUNCHES, **options)] == names


class TestRecord:
    def test_it_has_the_names_that_scripts_rely_on_and_no_other(self):
        (record,) = json.loads(records_json([launch()]))
        assert tuple(record) == RECORD
        assert record["kernel"] == "saxpy"
        assert record["grid"] == [864, 1, 1]
        assert record["block"] == [256, 1, 1]
        assert record["energy_j"] == 2e-3
        assert record["time_s_band"][0] < record["time_s"] < record["time_s_band"][1]
        assert record["counters"] == COUNTERS

    def test_metrics_that_were_asked_for_come_with_the_counters(self):
        (record,) = json.loads(records_json([launch()], [{"dram__bytes.sum": 12.0}]))
        assert record["counters"]["dram__bytes.sum"] == 12.0

    def test_it_is_read_back(self, tmp_path):
        path = tmp_path / "a.json"
        path.write_text(records_json([launch(), launch(grid=Dim3(4, 5, 6))]))
        first, second = read_records(path)
        assert first.record() == launch().record()
        assert second.grid == Dim3(4, 5, 6)

    @pytest.mark.parametrize("text", ["", "{}", "{}x", "[1]", '[{"kernel": "a"}]', '{"kernel": 1}'])
    def test_what_is_no_profile_is_refused_by_name(self, text, tmp_path):
        path = tmp_path / "odd.json"
        path.write_text(text)
        with pytest.raises(SetupError, match=r"odd\.json holds no profile"):
            read_records(path)

    def test_a_missing_file_is_refused(self, tmp_path):
        with pytest.raises(SetupError, match="holds no profile"):
            read_records(tmp_path / "none.json")

    def test_energy_is_kept_when_it_is_known(self):
        record = launch().record() | {"energy_j": 0.5}
        assert launch_of_record(record).energy_j == 0.5
