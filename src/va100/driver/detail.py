"""What one launch did, in full, as a line of the launch report that profilers ask for.

The report's other lines are told in :mod:`va100.driver.report`.
"""

from __future__ import annotations

import ctypes
from dataclasses import fields
from enum import Enum
from typing import Any, Final

from va100.driver.compile import Backend, LaunchRecord, config_of
from va100.perf.kernel import KernelEstimate
from va100.perf.occupancy import Occupancy
from va100.work import Counters, SourceLine

_OF_A_LAUNCH: Final = frozenset(
    {
        "cta_count", "warp_count", "footprint_bytes", "sampled_fraction", "opcode_instructions",
        "opcode_threads",
    }
)  # fmt: skip
"""Counters that say nothing of one source line, or more of it than anybody asks."""


class Details:
    """Numbers each piece of work that was not seen before, and describes it once.

    ``prefix`` tells this process's numbers from those of others that write to the same report.
    """

    def __init__(self, backend: Backend, prefix: str) -> None:
        self.lines: list[dict[str, Any]] = []
        self._backend = backend
        self._prefix = prefix
        self._known: dict[tuple[Any, ...], str] = {}

    def number(self, record: LaunchRecord) -> str:
        """Find the number of what a launch did."""
        key = _identity(record)
        if key not in self._known:
            number = f"{self._prefix}{len(self._known)}"
            self._known[key] = number
            self.lines.append({"type": "work", "id": number} | self._described(record))
        return self._known[key]

    def _described(self, record: LaunchRecord) -> dict[str, Any]:
        backend, config = self._backend, config_of(record)
        variant = backend.variants[record.variant_id]
        lines = variant.lines(record.counters[: record.counter_count], config)
        return {
            "kernel": backend.kernels[record.compiler_id].name,
            "grid": list(record.grid),
            "block": list(record.block),
            "dynamic_shared_bytes": record.dynamic_shared_bytes,
            "static_shared_bytes": variant.resources.static_shared_bytes,
            "registers": variant.resources.registers_per_thread,
            "local_bytes": variant.resources.local_bytes,
            **estimate_entry(backend.estimate(record)),
            "counters": counters_entry(backend.counters(record)),
            "lines": [line_entry(line, counted) for line, counted in sorted(lines.items())],
        }


def estimate_entry(priced: KernelEstimate) -> dict[str, Any]:
    """What an A100 would take, and why."""
    return {
        "duration_s": priced.duration_s,
        "bound_by": priced.bound_by.value,
        "waves": priced.wave_count,
        "parts": {part.bound.value: part.duration_s for part in priced.parts},
        "energy_j": priced.energy.energy_j,
        "clock_hz": priced.energy.clock_hz,
        "assumed": list(priced.assumed),
        "occupancy": _occupancy_entry(priced.occupancy),
    }


def counters_entry(counters: Counters) -> dict[str, Any]:
    """Every counter by its name in :class:`va100.work.Counters`."""
    return {entry.name: _plain(getattr(counters, entry.name)) for entry in fields(counters)}


def line_entry(line: SourceLine, counters: Counters) -> dict[str, Any]:
    """A source line and what it counted, without the counters that are nought."""
    counted = {
        name: value
        for name, value in counters_entry(counters).items()
        if value and name not in _OF_A_LAUNCH
    }
    entry = {"file": line.file, "line": line.line, "counters": counted}
    return entry | {"text": line.text} if line.text else entry


def _occupancy_entry(occupancy: Occupancy) -> dict[str, Any]:
    return {
        "fraction": occupancy.fraction,
        "ctas_per_sm": occupancy.ctas_per_sm,
        "warps_per_sm": occupancy.warps_per_sm,
        "limiter": occupancy.limiter.value,
        "carveout_bytes": occupancy.carveout_bytes,
        "limits": {limiter.value: count for limiter, count in occupancy.limits.items()},
    }


def _plain(value: Any) -> Any:
    """A counter as JSON has it."""
    if isinstance(value, (int, float)):
        return value
    return {key.value if isinstance(key, Enum) else key: count for key, count in value.items()}


def _identity(record: LaunchRecord) -> tuple[Any, ...]:
    """Launches alike in all of this do the same and take equally long."""
    size = record.counter_count * ctypes.sizeof(ctypes.c_uint64)
    return (
        record.variant_id,
        tuple(record.grid),
        record.dynamic_shared_bytes,
        record.device,
        record.footprint_bytes,
        ctypes.string_at(record.counters, size) if size else b"",
    )
