"""A program's timeline in the Trace Event Format, for chrome://tracing and Perfetto.

One process a GPU, one thread a stream; times are virtual.  Where the report tells what launches
did, categories and arguments are those of PyTorch's profiler.
"""

from __future__ import annotations

import json
from typing import Any, Final

from va100.driver.names import short_name
from va100.profile.report_schema import LaunchReport, ReportEvent, ReportWork
from va100.profile.table import CAVEAT

_NS_PER_US: Final = 1000
"""The format's clock ticks in microseconds."""


def trace_json(report: LaunchReport) -> str:
    """Spell a report's events as a trace file."""
    trace = {
        "displayTimeUnit": "ns",
        "otherData": {"model": report.model, "program": report.program, "times": CAVEAT},
        "traceEvents": [*_labels(report), *_slices(report)],
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


def _slices(report: LaunchReport) -> list[dict[str, Any]]:
    if not report.works:
        return [_slice(event) for event in report.events]
    return [
        _full_slice(event, report.works.get(event.work), number)
        for number, event in enumerate(report.events, 1)
    ]


_CATEGORIES: Final = {"kernel": "kernel", "memset": "gpu_memset"}
_COPY: Final = "gpu_memcpy"


def _full_slice(event: ReportEvent, work: ReportWork | None, number: int) -> dict[str, Any]:
    """Lay out an event as PyTorch's profiler does; ``number`` tells it from the others."""
    category = _CATEGORIES.get(event.kind, _COPY)
    name = {"kernel": short_name(event.name), "memset": "Memset (Device)"}.get(event.kind)
    arguments: dict[str, Any] = {
        "device": event.device, "context": 1, "stream": event.stream, "correlation": number,
    }  # fmt: skip
    if work is not None:
        arguments |= _work_arguments(work)
    elif event.moved_bytes:
        arguments |= _arguments(event) | {"memory bandwidth (GB/s)": _rate(event)}
    return _slice(event) | {
        "name": name or f"Memcpy {event.kind}", "cat": category, "args": arguments,
    }  # fmt: skip


def _work_arguments(work: ReportWork) -> dict[str, Any]:
    fit = work.occupancy
    return {
        "queued": 0,
        "registers per thread": work.registers,
        "shared memory": work.static_shared_bytes + work.dynamic_shared_bytes,
        "blocks per SM": work.waves * fit.get("ctas_per_sm", 0),
        "warps per SM": work.waves * fit.get("warps_per_sm", 0),
        "grid": list(work.grid),
        "block": list(work.block),
        "est. achieved occupancy %": round(100 * min(work.waves, 1.0) * fit.get("fraction", 0.0)),
        "theoretical occupancy %": round(100 * fit.get("fraction", 0.0)),
        "bound by": work.bound_by,
        "waves": round(work.waves, 4),
    }


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
        if event.end_ns > event.start_ns:
            arguments["GB/s"] = _rate(event)
    return arguments


def _rate(event: ReportEvent) -> float:
    """Gigabytes a second, which are bytes a nanosecond."""
    return round(event.moved_bytes / max(event.end_ns - event.start_ns, 1), 2)
