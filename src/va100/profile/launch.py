"""One launch as every report here sees it, and the record of it that scripts read.

A new counter comes with the launch's ``counters`` by its name, and needs nothing here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from va100.driver.names import short_name
from va100.errors import SetupError
from va100.perf.band import band_s
from va100.perf.kernel import Bound
from va100.profile.report_schema import LaunchReport, LineCounters, ReportEvent, ReportWork
from va100.work import Dim3

RECORD: Final = (
    "kernel", "grid", "block", "time_s", "time_s_band", "energy_j", "bound", "occupancy",
    "registers", "shared_bytes", "counters",
)  # fmt: skip
"""Keys of a launch's record, all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One launch: what it did and what an A100 would take for it."""

    kernel: str
    """Name as in the module."""
    grid: Dim3
    block: Dim3
    time_s: float
    time_s_band: tuple[float, float]
    """Least and most that a card would take, nine times of ten."""
    energy_j: float | None
    bound: str
    occupancy: float
    """Warps that an SM can hold of it over the most it can hold, 0 to 1."""
    registers: int
    shared_bytes: int
    """Of a CTA, static and dynamic."""
    counters: Mapping[str, Any]
    """Of :class:`va100.work.Counters` by name; instructions by pipe and by opcode are mappings."""
    device: int = 0
    stream: int = 0
    start_ns: int = 0
    dynamic_shared_bytes: int = 0
    local_bytes: int = 0
    waves: float = 0.0
    clock_hz: float = 0.0
    """What it runs at: boost, or less where the card's power limit says so."""
    fit: Mapping[str, Any] = field(default_factory=dict)
    """``ctas_per_sm``, ``warps_per_sm``, ``limiter``, ``limits``, ``carveout_bytes``."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Seconds that each resource alone would need."""
    lines: tuple[LineCounters, ...] = ()
    assumed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The kernel's name as people write it."""
        return short_name(self.kernel)

    def record(self) -> dict[str, Any]:
        """What scripts read, by the names in :data:`RECORD`."""
        return {
            "kernel": self.name,
            "grid": list(self.grid),
            "block": list(self.block),
            "time_s": self.time_s,
            "time_s_band": list(self.time_s_band),
            "energy_j": self.energy_j,
            "bound": self.bound,
            "occupancy": self.occupancy,
            "registers": self.registers,
            "shared_bytes": self.shared_bytes,
            "counters": dict(self.counters),
        }


def launches_of(report: LaunchReport) -> tuple[Launch, ...]:
    """Every launch of a full report, in virtual time's order."""
    found = []
    for event in report.events:
        work = report.works.get(event.work)
        if event.kind == "kernel" and work is not None:
            found.append(_launch(event, work))
    return tuple(found)


def selected(
    launches: Sequence[Launch], *, kernel: str = "", skip: int = 0, count: int = 0
) -> tuple[Launch, ...]:
    """Launches that were asked for.

    Parameters
    ----------
    kernel : str
        Regular expression that a kernel's name, as written or as in the module, holds.
    skip, count : int
        Of those kernels: launches to pass over first, then launches to take, 0 for all.
    """
    wanted = re.compile(kernel)
    fitting = [x for x in launches if wanted.search(x.name) or wanted.search(x.kernel)]
    end = skip + count if count else len(fitting)
    return tuple(fitting[skip:end])


def records_json(launches: Sequence[Launch], extra: Sequence[Mapping[str, Any]] = ()) -> str:
    """Spell launches as the list of records that scripts read, in base units, a line each.

    Parameters
    ----------
    extra : sequence of mapping
        More counters of each launch, such as metrics that were asked for.
    """
    records = [launch.record() for launch in launches]
    for record, more in zip(records, extra, strict=False):
        record["counters"] |= more
    return "[\n" + ",\n".join(json.dumps(record) for record in records) + "\n]"


def read_records(path: Path) -> tuple[Launch, ...]:
    """Read records that were saved.

    Raises
    ------
    SetupError
        The file is missing or holds something else.
    """
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(entries, list):
            raise TypeError("not a list")
        return tuple(launch_of_record(entry) for entry in entries)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SetupError(
            f"{path} holds no profile: {error!r}", remedy="save one with va100 profile --json=FILE"
        ) from error


def launch_of_record(entry: Mapping[str, Any]) -> Launch:
    """Reverse of :meth:`Launch.record`; raises ``KeyError``, ``TypeError`` or ``ValueError``."""
    low_s, high_s = entry["time_s_band"]
    energy_j = entry["energy_j"]
    return Launch(
        kernel=str(entry["kernel"]),
        grid=Dim3(*entry["grid"]),
        block=Dim3(*entry["block"]),
        time_s=float(entry["time_s"]),
        time_s_band=(float(low_s), float(high_s)),
        energy_j=None if energy_j is None else float(energy_j),
        bound=str(entry["bound"]),
        occupancy=float(entry["occupancy"]),
        registers=int(entry["registers"]),
        shared_bytes=int(entry["shared_bytes"]),
        counters=dict(entry["counters"]),
    )


def bound_of(text: str) -> Bound | None:
    """What a launch waits for; None for a word that this version does not know."""
    return next((bound for bound in Bound if bound.value == text), None)


def _launch(event: ReportEvent, work: ReportWork) -> Launch:
    return Launch(
        kernel=work.kernel,
        grid=work.grid,
        block=work.block,
        time_s=work.duration_s,
        time_s_band=band_s(work.duration_s, bound_of(work.bound_by)),
        energy_j=work.energy_j,
        clock_hz=work.clock_hz,
        bound=work.bound_by,
        occupancy=float(work.occupancy.get("fraction", 0.0)),
        registers=work.registers,
        shared_bytes=work.static_shared_bytes + work.dynamic_shared_bytes,
        counters=work.counters,
        device=event.device,
        stream=event.stream,
        start_ns=event.start_ns,
        dynamic_shared_bytes=work.dynamic_shared_bytes,
        local_bytes=work.local_bytes,
        waves=work.waves,
        fit=work.occupancy,
        parts=work.parts,
        lines=work.lines,
        assumed=work.assumed,
    )
