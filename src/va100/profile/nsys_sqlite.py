"""A program's timeline as a database, with the tables that NVIDIA's system profiler exports.

Times are virtual nanoseconds.  Calls of the host take none of them and are not recorded, so their
tables are there and empty.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from va100.driver.names import short_name
from va100.profile.nsys_tables import COPY_KINDS, DEVICE, ENUMERATIONS, TABLES
from va100.profile.report_schema import LaunchReport, ReportEvent, ReportWork
from va100.profile.table import CAVEAT
from va100.spec.model import ChipSpec
from va100.spec.rates import memory_bytes_per_s

PID_SHIFT: Final = 24
"""A global process number holds the process's own above so many bits."""
_CONTEXT: Final = 1
_REGULAR: Final = 1
_NO_LOCAL_TOTAL: Final = 0
"""Local memory is shared by launches and has no size of one launch's."""


def database(report: LaunchReport, chip: ChipSpec) -> bytes:
    """Make the file's contents.

    Parameters
    ----------
    report : LaunchReport
        A full one; what launches did is in it.
    """
    connection = sqlite3.connect(":memory:")
    try:
        for table, columns in TABLES.items():
            connection.execute(f"CREATE TABLE {table} ({columns})")
        for table, rows in ENUMERATIONS.items():
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)  # noqa: S608
        _Filler(connection, report, chip).fill()
        connection.commit()
        return connection.serialize()
    finally:
        connection.close()


class _Filler:
    """Puts one report into the tables."""

    def __init__(
        self, connection: sqlite3.Connection, report: LaunchReport, chip: ChipSpec
    ) -> None:
        self._connection = connection
        self._report = report
        self._chip = chip
        self._global_pid = report.process << PID_SHIFT
        self._strings: dict[str, int] = {}

    def fill(self) -> None:
        """Put in everything that the report tells."""
        for number, event in enumerate(self._report.events, 1):
            self._event(event, number)
        self._target()
        self._session()
        for text, number in self._strings.items():
            self._insert("StringIds", {"id": number, "value": text})

    def _event(self, event: ReportEvent, number: int) -> None:
        row = {
            "start": event.start_ns, "end": event.end_ns, "deviceId": event.device,
            "contextId": _CONTEXT, "streamId": event.stream, "correlationId": number,
            "globalPid": self._global_pid,
        }  # fmt: skip
        if event.kind == "kernel":
            work = self._report.works.get(event.work)
            self._insert("CUPTI_ACTIVITY_KIND_KERNEL", row | self._kernel(event, work, number))
        elif event.kind == "memset":
            self._insert("CUPTI_ACTIVITY_KIND_MEMSET", row | _fill_row(event))
        elif event.kind in COPY_KINDS:
            self._insert("CUPTI_ACTIVITY_KIND_MEMCPY", row | _copy_row(event))

    def _kernel(self, event: ReportEvent, work: ReportWork | None, number: int) -> dict[str, Any]:
        name = short_name(event.name)
        row: dict[str, Any] = {
            "demangledName": self._string(name),
            "shortName": self._string(plain_name(name)),
            "mangledName": self._string(event.name),
            "launchType": _REGULAR,
            "localMemoryTotal": _NO_LOCAL_TOTAL,
            "gridId": number,
        }
        for axis, grid, block in zip("XYZ", event.grid or (0,) * 3, event.block or (0,) * 3,
                                     strict=True):  # fmt: skip
            row |= {f"grid{axis}": grid, f"block{axis}": block}
        return row | {
            "registersPerThread": work.registers if work else 0,
            "staticSharedMemory": work.static_shared_bytes if work else 0,
            "dynamicSharedMemory": work.dynamic_shared_bytes if work else 0,
            "localMemoryPerThread": work.local_bytes if work else 0,
            "sharedMemoryExecuted": work.occupancy.get("carveout_bytes") if work else None,
        }

    def _target(self) -> None:
        """What ran it: GPUs, contexts, streams."""
        report, chip = self._report, self._chip
        for device in range(report.gpu_count):
            self._insert("TARGET_INFO_GPU", _gpu_row(chip, device))
            self._insert("TARGET_INFO_CUDA_DEVICE", {
                "gpuId": device, "cudaId": device, "pid": report.process,
                "numMultiprocessors": chip.sm_count,
            })  # fmt: skip
        for device in sorted({event.device for event in report.events}):
            self._insert("TARGET_INFO_CUDA_CONTEXT_INFO", {
                "nullStreamId": 0, "hwId": 0, "vmId": 0, "processId": report.process,
                "deviceId": device, "contextId": _CONTEXT, "isGreenContext": 0,
            })  # fmt: skip
        for stream in sorted({event.stream for event in report.events}):
            self._insert("TARGET_INFO_CUDA_STREAM", {
                "streamId": stream, "hwId": 0, "vmId": 0, "processId": report.process,
                "contextId": _CONTEXT, "priority": 0, "flag": 0,
            })  # fmt: skip

    def _session(self) -> None:
        """Which program, how long, and what to know of the times."""
        report = self._report
        end_ns = max((event.end_ns for event in report.events), default=0)
        self._insert("PROCESSES", {
            "globalPid": self._global_pid, "pid": report.process, "name": report.program,
        })  # fmt: skip
        self._insert("ANALYSIS_DETAILS", {
            "globalVid": 0, "duration": end_ns, "startTime": 0, "stopTime": end_ns,
        })  # fmt: skip
        for name, value in (("EXPORT_PROGRAM", "va100"), ("TIMES", CAVEAT)):
            self._insert("META_DATA_EXPORT", {"name": name, "value": value})
        for note in report.notes:
            self._insert("DIAGNOSTIC_EVENT", {
                "timestamp": 0, "timestampType": 0, "source": 0, "severity": 0, "text": note,
                "globalPid": self._global_pid,
            })  # fmt: skip

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings) + 1)

    def _insert(self, table: str, row: Mapping[str, Any]) -> None:
        names, marks = ", ".join(row), ", ".join("?" for _ in row)
        self._connection.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})",  # noqa: S608 -- our own names
            tuple(row.values()),
        )


def plain_name(name: str) -> str:
    """A kernel's name without namespaces and template arguments."""
    return name.partition("<")[0].rpartition("::")[2] or name


def _copy_row(event: ReportEvent) -> dict[str, Any]:
    kind, source, target = COPY_KINDS[event.kind]
    return {
        "bytes": event.moved_bytes, "copyKind": kind, "srcKind": source, "dstKind": target,
        "srcDeviceId": event.device, "dstDeviceId": event.device, "copyCount": 1,
    }  # fmt: skip


def _fill_row(event: ReportEvent) -> dict[str, Any]:
    """What a memset filled; with which value was not recorded."""
    return {"bytes": event.moved_bytes, "memKind": DEVICE}


def _gpu_row(chip: ChipSpec, device: int) -> dict[str, Any]:
    sm = chip.sm
    major, minor = chip.compute_capability
    return {
        "vmId": 0, "id": device, "name": chip.product_name, "isDiscrete": 1,
        "l2CacheSize": chip.l2_bytes, "totalMemory": chip.memory_cuda_bytes,
        "memoryBandwidth": round(memory_bytes_per_s(chip)), "clockRate": chip.boost_clock_hz,
        "smCount": chip.sm_count, "chipName": chip.chip, "cuDevice": device,
        "maxRegistersPerBlock": sm.register_block_count, "maxShmemPerBlock": sm.shared_block_bytes,
        "maxShmemPerBlockOptin": sm.shared_block_optin_bytes, "maxShmemPerSm": sm.shared_bytes,
        "maxRegistersPerSm": sm.register_count, "threadsPerWarp": 32,
        "maxWarpsPerSm": sm.resident_warp_count, "maxBlocksPerSm": sm.resident_block_count,
        "maxThreadsPerBlock": sm.block_thread_count, "computeMajor": major, "computeMinor": minor,
        "smMajor": major, "smMinor": minor,
    }  # fmt: skip
