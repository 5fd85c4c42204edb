"""A program's timeline in the Trace Event Format, for chrome://tracing and Perfetto.

One process a GPU, one thread a stream; times are virtual.
"""

from __future__ import annotations

import json
from typing import Any, Final

from va100.driver.names import short_name
from va100.profile.report_schema import LaunchReport, ReportEvent
from va100.profile.table import CAVEAT

_NS_PER_US: Final = 1000
"""The format's clock ticks in microseconds."""


def trace_json(report: LaunchReport) -> str:
    """Spell a report's events as a trace file."""
    trace = {
        "displayTimeUnit": "ns",
        "otherData": {"model": report.model, "program": report.program, "times": CAVEAT},
        "traceEvents": [*_labels(report), *(_slice(event) for event in report.events)],
    }
    return json.dumps(trace, separators=(",", ":"))


def _labels(report: LaunchReport) -> list[dict[str, Any]]:
    """Name each GPU and stream that was used."""
    devices = sorted({event.device for event in report.events})
    streams = sorted({(event.device, event.stream) for event in report.events})
    model = report.model or "A100"
    labels = [_label("process_name", device, 0, f"GPU {device}: {model}") for device in devices]
    for device, stream in streams:
        name = f"stream {stream}" if stream else "default stream"
        labels.append(_label("thread_name", device, stream, name))
    return labels


def _label(kind: str, device: int, stream: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": device, "tid": stream, "args": {"name": name}}


def _slice(event: ReportEvent) -> dict[str, Any]:
    lasting_ns = event.end_ns - event.start_ns
    return {
        "ph": "X",
        "name": short_name(event.name),
        "cat": event.kind,
        "pid": event.device,
        "tid": event.stream,
        "ts": event.start_ns / _NS_PER_US,
        "dur": lasting_ns / _NS_PER_US,
        "args": _arguments(event),
    }


def _arguments(event: ReportEvent) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    if event.grid is not None:
        arguments["grid"] = str(event.grid)
    if event.block is not None:
        arguments["block"] = str(event.block)
    if event.bound_by:
        arguments["bound by"] = event.bound_by
    if event.moved_bytes:
        arguments["bytes"] = event.moved_bytes
        lasting_ns = event.end_ns - event.start_ns
        if lasting_ns > 0:
            arguments["GB/s"] = round(event.moved_bytes / lasting_ns, 2)
    return arguments
