"""Reading launch reports, whole and broken."""

from __future__ import annotations

import json

import pytest

from va100.profile.report_schema import (
    UNFINISHED,
    LaunchReport,
    ReportFault,
    parse_report,
    read_report,
)
from va100.work import Dim3

META = {"type": "meta", "version": 1, "model": "A100-SXM4-80GB", "gpu_count": 2, "program": "a.out"}
KERNEL = {
    "type": "kernel",
    "kernel": "saxpy",
    "grid": [4, 1, 1],
    "block": [256, 1, 1],
    "count": 3,
    "total_s": 6e-6,
}
EVENT = {"type": "event", "kind": "HtoD", "start_ns": 5, "end_ns": 9, "bytes": 64, "stream": 7}


def lines(*entries):
    return [json.dumps(entry) + "\n" for entry in entries]


class TestParseReport:
    def test_whole(self):
        report = parse_report(lines(META, KERNEL, EVENT, {"type": "fault", "text": "700"}))
        assert (report.model, report.gpu_count, report.program) == ("A100-SXM4-80GB", 2, "a.out")
        (kernel,) = report.kernels
        assert (kernel.grid, kernel.count, kernel.mean_s) == (Dim3(4), 3, pytest.approx(2e-6))
        assert kernel.min_s == kernel.max_s == kernel.mean_s
        (event,) = report.events
        assert (event.name, event.stream, event.moved_bytes, event.grid) == ("HtoD", 7, 64, None)
        assert report.faults == (ReportFault(text="700"),)

    def test_a_program_that_died_is_told_from_one_that_launched_nothing(self):
        assert parse_report([]).complete
        died = parse_report(lines(META))
        assert (died.complete, died.notes) == (False, (UNFINISHED,))
        ended = parse_report(lines(META, {"type": "end"}))
        assert (ended.complete, ended.notes) == (True, ())
        assert not parse_report(lines(META, {"type": "end"}, META)).complete

    def test_last_line_cut_off_is_skipped(self):
        cut = lines(META, KERNEL, KERNEL)
        cut[-1] = cut[-1][:20]
        assert len(parse_report(cut).kernels) == 1

    def test_line_cut_off_in_the_middle_is_told(self):
        with pytest.raises(ValueError, match="line 2"):
            parse_report([*lines(META), '{"type": \n', *lines(KERNEL)])

    def test_unknown_types_and_keys_are_skipped(self):
        later = {**KERNEL, "colour": "red"}
        assert len(parse_report(lines({"type": "weather"}, later)).kernels) == 1

    @pytest.mark.parametrize("missing", ["kernel", "grid", "block", "count", "total_s"])
    def test_what_a_kernel_needs(self, missing):
        entry = {key: value for key, value in KERNEL.items() if key != missing}
        with pytest.raises(ValueError, match="line 1"):
            parse_report(lines(entry))

    def test_not_an_object(self):
        with pytest.raises(ValueError, match="not a JSON object"):
            parse_report(["[1]\n"])


class TestReadReport:
    def test_missing_file_is_empty(self, tmp_path):
        assert read_report(tmp_path / "none") == LaunchReport()

    def test_file(self, tmp_path):
        path = tmp_path / "report"
        path.write_text("".join(lines(META, KERNEL)) + "\n", encoding="utf-8")
        assert len(read_report(path).kernels) == 1


WORK = {
    "type": "work", "id": "7-0", "kernel": "_Z5saxpyPf", "grid": [8, 1, 1], "block": [256, 1, 1],
    "energy_j": 1e-6, "clock_hz": 1.41e9,
    "dynamic_shared_bytes": 16, "static_shared_bytes": 4, "registers": 24, "local_bytes": 0,
    "duration_s": 2e-6, "bound_by": "latency", "waves": 0.5, "parts": {"latency": 1e-6},
    "assumed": ["a"], "occupancy": {"fraction": 1.0}, "counters": {"branches": 3.0},
    "lines": [{"file": "a.cu", "line": 4, "counters": {"branches": 3.0}}],
}  # fmt: skip


class TestFullReports:
    def test_what_a_launch_did_is_found_by_its_number(self):
        event = {"type": "event", "kind": "kernel", "start_ns": 0, "end_ns": 2, "work": "7-0"}
        meta = {"type": "meta", "process": 7}
        report = parse_report(json.dumps(line) + "\n" for line in (meta, WORK, event))
        assert report.process == 7
        done = report.works[report.events[0].work]
        assert (done.kernel, done.registers, done.duration_s) == ("_Z5saxpyPf", 24, 2e-6)
        assert done.lines[0].counters == {"branches": 3.0}
        assert done.assumed == ("a",)

    @pytest.mark.parametrize("missing", ["kernel", "duration_s", "lines"])
    def test_one_that_lacks_something_is_refused(self, missing):
        line = {key: value for key, value in WORK.items() if key != missing}
        with pytest.raises(ValueError, match=rf"report line 1: .*{missing}.* in work"):
            parse_report([json.dumps(line) + "\n"])
