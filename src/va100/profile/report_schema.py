"""The launch report: what the driver writes at a program's exit and every report here reads.

A text file of JSON objects, one a line, UTF-8; a reader skips a last line that was cut off, and
types and keys that it does not know, so that either side may grow.  ``type`` says which it is:

``meta``, once, first
    ``version`` (1), ``model`` ("A100-SXM4-80GB"), ``gpu_count``, ``program``, ``process`` (its
    number; may be left out).
``kernel``, one a group of launches alike in kernel, shape and device
    ``kernel`` (name as in the module), ``device``, ``grid`` and ``block`` ([x, y, z]),
    ``dynamic_shared_bytes``, ``registers`` (a thread), ``shared_bytes`` (a CTA, in all),
    ``count``, ``total_s``, ``mean_s``, ``min_s``, ``max_s``, ``bound_by`` ("DRAM bandwidth", the
    value of :class:`va100.perf.kernel.Bound`), ``occupancy`` (0 to 1), ``waves``,
    ``parts`` ({"DRAM bandwidth": seconds, ...}, of the mean launch), ``assumed`` ([text, ...]).
    All but ``kernel``, ``grid``, ``block``, ``count`` and ``total_s`` may be left out.
``event``, one a piece of work in virtual time, oldest first; may be cut short
    ``kind`` ("kernel", "HtoD", "DtoH", "DtoD", "PtoP", "memset": the value of
    :class:`va100.perf.timeline.Activity`), ``name``, ``device``, ``stream``, ``start_ns``,
    ``end_ns`` (integers), ``bytes`` (of a copy), ``grid``, ``block`` (of a kernel),
    ``bound_by``, ``work`` (the ``id`` of what a launch did).
``work``, in full reports only, one a group of launches that did the same
    ``id``, ``kernel``, ``grid``, ``block``, ``dynamic_shared_bytes``, ``static_shared_bytes``,
    ``registers``, ``local_bytes``, ``duration_s``, ``energy_j``, ``clock_hz``, ``bound_by``,
    ``waves``, ``parts``, ``assumed``, ``occupancy`` ({``fraction``, ``ctas_per_sm``,
    ``warps_per_sm``, ``limiter``, ``limits``, ``carveout_bytes``}), ``counters``
    (:class:`va100.work.Counters` by name), ``lines`` (of source: [{``file``, ``line``, ``text``,
    ``counters``}, ...]).
``fault``, one a kernel that did wrong
    ``text``, as the driver told it; ``kernel`` (name as in the module), may be left out.
``note``
    ``text``: what the reader of a report should know.
``end``, once, last
    The program got as far as reporting; without it, it was killed, aborted or left by ``_exit``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from va100.work import Dim3

VERSION: Final = 1
UNFINISHED: Final = (
    "the program ended before it could report its launches: killed, aborted or left by _exit"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelGroup:
    """Launches of one kernel in one shape."""

    kernel: str
    grid: Dim3
    block: Dim3
    count: int
    total_s: float
    mean_s: float
    min_s: float
    max_s: float
    device: int = 0
    bound_by: str = ""
    occupancy: float = 0.0
    waves: float = 0.0
    registers: int = 0
    shared_bytes: int = 0
    dynamic_shared_bytes: int = 0
    parts: Mapping[str, float] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportEvent:
    """One piece of work in virtual time."""

    kind: str
    name: str
    start_ns: int
    end_ns: int
    device: int = 0
    stream: int = 0
    moved_bytes: int = 0
    grid: Dim3 | None = None
    block: Dim3 | None = None
    bound_by: str = ""
    work: str = ""
    """Number of what a launch did, in a full report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCounters:
    """What one source line counted, and no counter that is nought."""

    file: str
    """Empty for a line of the PTX."""
    line: int
    counters: Mapping[str, Any]
    text: str = ""
    """Of a line of the PTX."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportWork:
    """What launches alike in everything did, and what an A100 would take for one of them."""

    kernel: str
    grid: Dim3
    block: Dim3
    duration_s: float
    energy_j: float
    clock_hz: float
    bound_by: str
    registers: int
    static_shared_bytes: int
    dynamic_shared_bytes: int
    local_bytes: int
    waves: float
    occupancy: Mapping[str, Any]
    counters: Mapping[str, Any]
    parts: Mapping[str, float]
    assumed: tuple[str, ...]
    lines: tuple[LineCounters, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFault:
    """A kernel's wrongdoing, as the driver told it when it happened."""

    text: str
    kernel: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchReport:
    """All that one program left behind."""

    model: str = ""
    gpu_count: int = 1
    program: str = ""
    kernels: tuple[KernelGroup, ...] = ()
    events: tuple[ReportEvent, ...] = ()
    faults: tuple[ReportFault, ...] = ()
    notes: tuple[str, ...] = ()
    works: Mapping[str, ReportWork] = field(default_factory=dict)
    process: int = 0
    """Number of the process that began last; 0 where it is not told."""
    complete: bool = True
    """Whether the program got as far as reporting what it launched."""


def read_report(path: Path) -> LaunchReport:
    """Read a report file; one that is missing or empty is an empty report.

    Raises
    ------
    ValueError
        A line before the last is no JSON object, or lacks what its type needs.
    """
    if not path.exists():
        return LaunchReport()
    return parse_report(path.read_text(encoding="utf-8").splitlines(keepends=True))


def parse_report(lines: Iterable[str]) -> LaunchReport:
    """Read a report's lines; the last may be cut off."""
    gathered: dict[str, list[Any]] = {"kernel": [], "event": [], "fault": [], "note": []}
    works: dict[str, ReportWork] = {}
    meta: dict[str, Any] = {}
    ended = False
    for number, line in enumerate(lines, 1):
        entry = _entry(line, number)
        if entry is None:
            continue
        kind = entry.get("type")
        if kind == "meta":
            meta, ended = entry, False
        elif kind == "end":
            ended = True
        elif kind == "work":
            works[str(entry.get("id"))] = _read_work(entry, number)
        elif kind in gathered:
            gathered[kind].append(_typed(entry, number))
    return LaunchReport(
        model=str(meta.get("model", "")),
        gpu_count=int(meta.get("gpu_count", 1)),
        program=str(meta.get("program", "")),
        kernels=tuple(gathered["kernel"]),
        events=tuple(gathered["event"]),
        faults=tuple(gathered["fault"]),
        works=works,
        process=int(meta.get("process", 0)),
        notes=(*gathered["note"], *([UNFINISHED] if meta and not ended else [])),
        complete=ended or not meta,
    )


def _entry(line: str, number: int) -> dict[str, Any] | None:
    """One line as an object; None for a blank one and for a last one that was cut off."""
    if not line.strip():
        return None
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        if not line.endswith("\n"):
            return None
        raise ValueError(f"report line {number}: {error}") from error
    if not isinstance(entry, dict):
        raise ValueError(f"report line {number}: not a JSON object")
    return entry


def _typed(entry: dict[str, Any], number: int) -> KernelGroup | ReportEvent | ReportFault | str:
    try:
        if entry["type"] == "kernel":
            return _kernel(entry)
        if entry["type"] == "event":
            return _event(entry)
        if entry["type"] == "fault":
            return ReportFault(text=str(entry["text"]), kernel=str(entry.get("kernel", "")))
        return str(entry["text"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"report line {number}: {error!r} in {entry['type']}") from error


def _read_work(entry: dict[str, Any], number: int) -> ReportWork:
    try:
        return _work(entry)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"report line {number}: {error!r} in work") from error


def _work(entry: dict[str, Any]) -> ReportWork:
    return ReportWork(
        kernel=str(entry["kernel"]),
        grid=Dim3(*entry["grid"]),
        block=Dim3(*entry["block"]),
        duration_s=float(entry["duration_s"]),
        energy_j=float(entry["energy_j"]),
        clock_hz=float(entry["clock_hz"]),
        bound_by=str(entry["bound_by"]),
        registers=int(entry["registers"]),
        static_shared_bytes=int(entry["static_shared_bytes"]),
        dynamic_shared_bytes=int(entry["dynamic_shared_bytes"]),
        local_bytes=int(entry["local_bytes"]),
        waves=float(entry["waves"]),
        occupancy=dict(entry["occupancy"]),
        counters=dict(entry["counters"]),
        parts={str(name): float(value) for name, value in entry["parts"].items()},
        assumed=tuple(str(note) for note in entry["assumed"]),
        lines=tuple(_line(line) for line in entry["lines"]),
    )


def _line(entry: dict[str, Any]) -> LineCounters:
    return LineCounters(
        file=str(entry["file"]),
        line=int(entry["line"]),
        counters=dict(entry["counters"]),
        text=str(entry.get("text", "")),
    )


def _kernel(entry: dict[str, Any]) -> KernelGroup:
    count, total_s = int(entry["count"]), float(entry["total_s"])
    mean_s = float(entry.get("mean_s", total_s / max(count, 1)))
    return KernelGroup(
        kernel=str(entry["kernel"]),
        grid=Dim3(*entry["grid"]),
        block=Dim3(*entry["block"]),
        count=count,
        total_s=total_s,
        mean_s=mean_s,
        min_s=float(entry.get("min_s", mean_s)),
        max_s=float(entry.get("max_s", mean_s)),
        device=int(entry.get("device", 0)),
        bound_by=str(entry.get("bound_by", "")),
        occupancy=float(entry.get("occupancy", 0.0)),
        waves=float(entry.get("waves", 0.0)),
        registers=int(entry.get("registers", 0)),
        shared_bytes=int(entry.get("shared_bytes", 0)),
        dynamic_shared_bytes=int(entry.get("dynamic_shared_bytes", 0)),
        parts={str(name): float(value) for name, value in entry.get("parts", {}).items()},
        assumed=tuple(str(note) for note in entry.get("assumed", ())),
    )


def _event(entry: dict[str, Any]) -> ReportEvent:
    return ReportEvent(
        kind=str(entry["kind"]),
        name=str(entry.get("name", entry["kind"])),
        start_ns=int(entry["start_ns"]),
        end_ns=int(entry["end_ns"]),
        device=int(entry.get("device", 0)),
        stream=int(entry.get("stream", 0)),
        moved_bytes=int(entry.get("bytes", 0)),
        grid=Dim3(*entry["grid"]) if "grid" in entry else None,
        block=Dim3(*entry["block"]) if "block" in entry else None,
        bound_by=str(entry.get("bound_by", "")),
        work=str(entry.get("work", "")),
    )


def issues_of(line: LineCounters) -> float:
    """Warp instructions of a line."""
    return float(sum(line.counters.get("warp_instructions", {}).values()))


def sectors_of(line: LineCounters) -> float:
    """32-byte sectors of global memory that a line's accesses touched."""
    return float(line.counters.get("global_sectors", 0.0))
