"""The trace file, as the Trace Event Format asks for it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from tests.helpers.launches import report, work
from va100.profile.chrome_trace import trace_json
from va100.profile.report_schema import LaunchReport, ReportEvent
from va100.work import Dim3

SCHEMA = Path(__file__).with_name("trace_event.schema.json")
REPORT = LaunchReport(
    model="A100-SXM4-80GB",
    events=(
        ReportEvent(kind="HtoD", name="HtoD", start_ns=0, end_ns=1000, moved_bytes=21_000),
        ReportEvent(
            kind="kernel",
            name="_Z5saxpyPf",
            start_ns=1500,
            end_ns=4750,
            device=1,
            stream=7,
            grid=Dim3(8),
            block=Dim3(256),
            bound_by="latency",
        ),
    ),
)


def entries(phase):
    return [
        entry for entry in json.loads(trace_json(REPORT))["traceEvents"] if entry["ph"] == phase
    ]


class TestTraceJson:
    def test_slices(self):
        copy, kernel = entries("X")
        assert (copy["ts"], copy["dur"], copy["cat"]) == (0.0, 1.0, "HtoD")
        assert copy["args"] == {"bytes": 21000, "GB/s": 21.0}
        assert (kernel["name"], kernel["ts"], kernel["dur"]) == ("saxpy", 1.5, 3.25)
        assert (kernel["pid"], kernel["tid"]) == (1, 7)
        assert kernel["args"] == {
            "grid": "(8, 1, 1)",
            "block": "(256, 1, 1)",
            "bound by": "latency",
        }

    def test_labels_name_every_gpu_and_stream(self):
        labels = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in entries("M")}
        assert labels == {
            ("process_name", 0, 0): "GPU 0: A100-SXM4-80GB",
            ("process_name", 1, 0): "GPU 1: A100-SXM4-80GB",
            ("thread_name", 0, 0): "default stream",
            ("thread_name", 1, 7): "stream 7",
        }

    def test_empty(self):
        assert json.loads(trace_json(LaunchReport()))["traceEvents"] == []


@pytest.mark.parametrize(
    "shown", [REPORT, report(work(), work()), report(work(), copies=False), LaunchReport()]
)
def test_a_validator_finds_the_formats_schema_kept(shown):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    trace = json.loads(trace_json(shown))
    assert [error.message for error in validator.iter_errors(trace)] == []
    trace["traceEvents"].append({"ph": "X", "name": "no time", "pid": 0, "tid": 0})
    assert not validator.is_valid(trace)


class TestFullReports:
    """What PyTorch's profiler would have written."""

    def slices(self):
        events = json.loads(trace_json(report(work(waves=0.5))))["traceEvents"]
        return [event for event in events if event["ph"] == "X"]

    def test_categories(self):
        assert [(e["cat"], e["name"]) for e in self.slices()] == [
            ("gpu_memcpy", "Memcpy HtoD"),
            ("kernel", "saxpy"),
            ("gpu_memcpy", "Memcpy DtoH"),
            ("gpu_memset", "Memset (Device)"),
        ]

    def test_a_kernel_tells_its_shape_and_needs(self):
        arguments = self.slices()[1]["args"]
        assert arguments["grid"] == [864, 1, 1]
        assert arguments["block"] == [256, 1, 1]
        assert arguments["registers per thread"] == 32
        assert arguments["shared memory"] == 1536
        assert (arguments["device"], arguments["context"], arguments["stream"]) == (0, 1, 7)
        assert (arguments["blocks per SM"], arguments["warps per SM"]) == (4, 32)
        assert arguments["est. achieved occupancy %"] == 50

    def test_copies_tell_bytes_and_rate(self):
        arguments = self.slices()[0]["args"]
        assert arguments["bytes"] == 4096
        assert arguments["memory bandwidth (GB/s)"] == 4.1

    def test_numbers_tell_events_apart(self):
        numbers = [event["args"]["correlation"] for event in self.slices()]
        assert len(set(numbers)) == 4

    def test_every_event_keeps_the_formats_rules(self):
        trace = json.loads(trace_json(report(work(), work())))
        assert trace["displayTimeUnit"] in ("ms", "ns")
        for event in trace["traceEvents"]:
            assert event["ph"] in "MX"
            assert isinstance(event["name"], str)
            assert isinstance(event["pid"], int)
            assert isinstance(event["tid"], int)
            assert isinstance(event["args"], dict)
            if event["ph"] == "X":
                assert event["ts"] >= 0
                assert event["dur"] >= 0

    def test_events_of_a_stream_do_not_overlap(self):
        slices = sorted(self.slices(), key=lambda event: event["ts"])
        mine = [event for event in slices if event["tid"] == 7]
        for before, after in itertools.pairwise(mine):
            assert before["ts"] + before["dur"] <= after["ts"] + 1e-6
