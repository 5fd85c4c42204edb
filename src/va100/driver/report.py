"""What a program leaves behind: its launches, grouped and priced, as lines of JSON.

The schema is told in :mod:`va100.profile.report_schema`, which reads them.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from va100.driver.compile import Backend, LaunchRecord, config_of
from va100.driver.detail import Details
from va100.gpu.native import library
from va100.units import NS

_EVENT_LIMIT: Final = 20_000
_DETAILED_LIMIT: Final = 1 << 19
"""Of events in a report in full, which is all that the driver keeps."""
_BATCH: Final = 4096


class _DriverLaunch(ctypes.Structure):
    _fields_ = (("record", LaunchRecord), ("start_s", ctypes.c_double))


class _DriverTransfer(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("device", ctypes.c_uint32),
        ("stream", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("bytes", ctypes.c_uint64),
        ("start_s", ctypes.c_double),
        ("duration_s", ctypes.c_double),
    )


_TRANSFER_KINDS: Final = ("HtoD", "DtoH", "DtoD", "PtoP", "memset")
"""By ``va_transfer_kind``."""


def begin_report(path: Path, *, model: str, gpu_count: int, program: str) -> None:
    """Write what is known at a program's start, so that one that dies can be told from none."""
    meta = {"type": "meta", "version": 1, "model": model, "gpu_count": gpu_count}
    _append(path, [{**meta, "program": program, "process": os.getpid()}])


def finish_report(path: Path, backend: Backend, *, in_full: bool = False) -> None:
    """Write what this process has launched; in full, with every counter and source line."""
    limit = _DETAILED_LIMIT if in_full else _EVENT_LIMIT
    details = Details(backend, f"{os.getpid()}-")
    lines: list[dict[str, Any]] = []
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    events: list[dict[str, Any]] = []
    for launch in _launches():
        _count(groups, backend, launch)
        if len(events) < limit:
            work = {"work": details.number(launch.record)} if in_full else {}
            events.append(_event(backend, launch) | work)
    events += itertools.islice(map(_transfer_event, _transfers()), limit)
    events = sorted(events, key=lambda event: event["start_ns"])[:limit]
    lines += [*map(_with_mean, groups.values()), *details.lines, *events]
    if len(events) == limit:
        lines.append({"type": "note", "text": f"only the first {limit} events are kept"})
    lines += [{"type": "fault", "kernel": f.kernel, "text": f.text} for f in backend.faults]
    _append(path, [*lines, {"type": "end"}])


def append_launches(path: Path, backend: Backend, first: int) -> int:
    """Write the launches of this process from one on, and tell the number of the next.

    Those that the driver no longer keeps are passed over.
    """
    library().va_driver_launches_dropped.restype = ctypes.c_uint64
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    dropped = int(library().va_driver_launches_dropped())
    following = max(first, dropped)
    for launch in _logged(library().va_driver_launches, _DriverLaunch, first=following - dropped):
        _count(groups, backend, launch)
        following += 1
    if groups:
        _append(path, map(_with_mean, groups.values()))
    return following


def _with_mean(group: dict[str, Any]) -> dict[str, Any]:
    return {**group, "mean_s": group["total_s"] / group["count"]}


def _append(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def _launches() -> Iterator[_DriverLaunch]:
    return _logged(library().va_driver_launches, _DriverLaunch)


def _transfers() -> Iterator[_DriverTransfer]:
    return _logged(library().va_driver_transfers, _DriverTransfer)


def _logged(read: Any, kind: Any, *, first: int = 0) -> Iterator[Any]:
    """What one of the driver's logs holds from an entry on, oldest first."""
    read.restype = ctypes.c_size_t
    while True:
        batch = (kind * _BATCH)()
        total = read(ctypes.c_size_t(first), batch, ctypes.c_size_t(_BATCH))
        count = min(total - first, _BATCH)
        yield from batch[:count]
        first += count
        if count < _BATCH:
            return


def _count(groups: dict[tuple[Any, ...], dict[str, Any]], backend: Backend, launch: Any) -> None:
    record = launch.record
    config = config_of(record)
    name = backend.kernels[record.compiler_id].name
    key = (name, config, record.device)
    duration = record.duration_s
    group = groups.get(key)
    if group is None:
        groups[key] = _group(backend, record, name, duration)
        return
    group["count"] += 1
    group["total_s"] += duration
    group["min_s"] = min(group["min_s"], duration)
    group["max_s"] = max(group["max_s"], duration)


def _group(backend: Backend, record: Any, name: str, duration: float) -> dict[str, Any]:
    priced = backend.estimate(record)
    resources = backend.variants[record.variant_id].resources
    return {
        "type": "kernel",
        "kernel": name,
        "device": record.device,
        "grid": list(record.grid),
        "block": list(record.block),
        "dynamic_shared_bytes": record.dynamic_shared_bytes,
        "registers": resources.registers_per_thread,
        "shared_bytes": resources.static_shared_bytes + record.dynamic_shared_bytes,
        "count": 1,
        "total_s": duration,
        "min_s": duration,
        "max_s": duration,
        "bound_by": priced.bound_by.value,
        "occupancy": priced.occupancy.fraction,
        "waves": priced.wave_count,
        "parts": {p.bound.value: p.duration_s for p in priced.parts},
        "assumed": list(priced.assumed),
    }


def _event(backend: Backend, launch: Any) -> dict[str, Any]:
    record = launch.record
    return {
        "type": "event",
        "kind": "kernel",
        "name": backend.kernels[record.compiler_id].name,
        "device": record.device,
        "stream": record.stream,
        "start_ns": round(launch.start_s / NS),
        "end_ns": round((launch.start_s + record.duration_s) / NS),
        "grid": list(record.grid),
        "block": list(record.block),
    }


def _transfer_event(transfer: Any) -> dict[str, Any]:
    kind = _TRANSFER_KINDS[transfer.kind]
    return {
        "type": "event",
        "kind": kind,
        "name": kind,
        "device": transfer.device,
        "stream": transfer.stream,
        "start_ns": round(transfer.start_s / NS),
        "end_ns": round((transfer.start_s + transfer.duration_s) / NS),
        "bytes": transfer.bytes,
    }
