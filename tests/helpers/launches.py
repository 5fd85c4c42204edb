"""Launches made by hand, as a full report tells them."""

from __future__ import annotations

from typing import Any

from va100.profile.launch import Launch, launches_of
from va100.profile.report_schema import LaunchReport, LineCounters, ReportEvent, ReportWork
from va100.spec.a100 import A100_SXM4_80GB
from va100.work import Dim3

CHIP = A100_SXM4_80GB
COUNTERS: dict[str, Any] = {
    "cta_count": 864,
    "warp_count": 6912,
    "warp_instructions": {"alu": 60000.0, "fma": 32768.0, "lsu": 98304.0, "control": 6912.0},
    "opcode_instructions": {
        "ld.global.f32": 65536.0, "st.global.f32": 32768.0, "fma.rn.f32": 32768.0,
        "ld.shared.v4.f32": 1000.0, "st.shared.f32": 500.0, "bra": 6912.0,
    },
    "opcode_threads": {"fma.rn.f32": 1048576.0, "ld.global.f32": 2097152.0, "add.f64": 64.0},
    "thread_instructions": 6000000.0,
    "global_load_bytes": 8388608.0,
    "global_store_bytes": 4194304.0,
    "global_requests": 98304.0,
    "global_sectors": 393216.0,
    "global_store_requests": 32768.0,
    "global_store_sectors": 131072.0,
    "footprint_bytes": 8388608.0,
    "shared_requests": 1500.0,
    "shared_wavefronts": 12500.0,
    "shared_store_requests": 500.0,
    "shared_store_wavefronts": 500.0,
    "atomic_requests": 0.0,
    "barrier_instructions": 0.0,
    "divergent_branches": 0.0,
    "branches": 6912.0,
    "sampled_fraction": 1.0,
    "observed_cta_count": 864,
    "local_sectors": 0.0,
    "l2_sectors": 393216.0,
    "l2_store_sectors": 131072.0,
    "l1_lines": 98304.0,
    "l1_load_sectors": 262144.0,
    "l1_hit_sectors": 65536.0,
    "l2_hit_sectors": 39321.6,
    "dram_read_sectors": 262144.0,
    "dram_write_sectors": 131072.0,
}  # fmt: skip
LINES = (
    LineCounters(
        file="/src/saxpy.cu",
        line=11,
        counters={"warp_instructions": {"alu": 60000.0, "control": 6912.0}, "branches": 6912.0,
                  "thread_instructions": 2141184.0},
    ),
    LineCounters(
        file="/src/saxpy.cu",
        line=12,
        counters={"warp_instructions": {"fma": 32768.0, "lsu": 98304.0},
                  "thread_instructions": 3858816.0, "global_requests": 98304.0,
                  "global_sectors": 393216.0, "global_load_bytes": 8388608.0,
                  "global_store_bytes": 4194304.0},
    ),
)  # fmt: skip
FIT = {
    "fraction": 1.0, "ctas_per_sm": 8, "warps_per_sm": 64, "limiter": "warps",
    "carveout_bytes": 0,
    "limits": {"block size": 32, "warps": 8, "CTA slots": 32, "registers": 8, "barriers": 32,
               "shared memory": 32},
}  # fmt: skip
PARTS = {
    "DRAM bandwidth": 6.6e-6, "L2 bandwidth": 3.0e-6, "latency": 3.1e-6, "LSU pipe": 1.0e-6,
    "issue slots": 0.5e-6, "shared memory": 0.1e-6, "L1 bandwidth": 0.7e-6, "FMA pipe": 0.2e-6,
}  # fmt: skip


def work(**changes: Any) -> ReportWork:
    """What a saxpy did, with changes."""
    facts: dict[str, Any] = {
        "kernel": "_Z5saxpyifPKfPf", "grid": Dim3(864), "block": Dim3(256), "duration_s": 8.0e-6,
        "energy_j": 2.0e-3, "clock_hz": 1410e6,
        "bound_by": "DRAM bandwidth", "registers": 32, "static_shared_bytes": 1024,
        "dynamic_shared_bytes": 512, "local_bytes": 0, "waves": 1.0, "occupancy": FIT,
        "counters": COUNTERS, "parts": PARTS, "assumed": (), "lines": LINES,
    }  # fmt: skip
    return ReportWork(**facts | changes)


def report(*works: ReportWork, copies: bool = True) -> LaunchReport:
    """A report of one launch each, one after another, with copies before and after."""
    events = []
    at_ns = 0
    if copies:
        events.append(ReportEvent(kind="HtoD", name="HtoD", start_ns=0, end_ns=1000, stream=7,
                                  moved_bytes=4096))  # fmt: skip
        at_ns = 1000
    for number, done in enumerate(works):
        end_ns = at_ns + round(done.duration_s * 1e9)
        events.append(
            ReportEvent(
                kind="kernel", name=done.kernel, start_ns=at_ns, end_ns=end_ns, stream=7,
                grid=done.grid, block=done.block, work=str(number),
            )
        )  # fmt: skip
        at_ns = end_ns
    if copies:
        events.append(ReportEvent(kind="DtoH", name="DtoH", start_ns=at_ns, end_ns=at_ns + 500,
                                  stream=7, moved_bytes=2048))  # fmt: skip
        events.append(ReportEvent(kind="memset", name="memset", start_ns=at_ns, end_ns=at_ns + 90,
                                  stream=8, moved_bytes=64))  # fmt: skip
    return LaunchReport(
        model=CHIP.name,
        program="saxpy.cu",
        process=4242,
        events=tuple(events),
        works={str(number): done for number, done in enumerate(works)},
    )


def launch(**changes: Any) -> Launch:
    """One launch of that saxpy, with changes."""
    return launches_of(report(work(**changes)))[0]


def report_lines(*works: ReportWork) -> list[dict[str, Any]]:
    """The same as the lines of a report's file."""
    full = report(*works)
    described = []
    for number, done in full.works.items():
        entry = {name: getattr(done, name) for name in ReportWork.__slots__}
        entry["lines"] = [
            {name: getattr(line, name) for name in LineCounters.__slots__} for line in done.lines
        ]
        described.append({"type": "work", "id": number} | entry)
    events = []
    for event in full.events:
        entry = {name: getattr(event, name) for name in ReportEvent.__slots__}
        entry["bytes"] = entry.pop("moved_bytes")
        given = {name: value for name, value in entry.items() if value not in (None, "")}
        events.append({"type": "event"} | given)
    meta = {"type": "meta", "version": 1, "model": CHIP.name, "process": full.process}
    return [meta, *described, *events, {"type": "end"}]
