"""The trace file, as the Trace Event Format asks for it."""

from __future__ import annotations

import json

from va100.profile.chrome_trace import trace_json
from va100.profile.report_schema import LaunchReport, ReportEvent
from va100.work import Dim3

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
