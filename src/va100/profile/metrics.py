"""Metrics by the names that NVIDIA's profiler gives them, and how each is made here.

One row a metric: a quantity of :mod:`va100.profile.quantities`, perhaps over another, times a
number.  What has no row cannot be computed and is refused by name; a counter that comes later
needs a row and no code.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from va100.errors import SetupError

SPEED: Final = "GPU Speed Of Light Throughput"
COMPUTE: Final = "Compute Workload Analysis"
MEMORY: Final = "Memory Workload Analysis"
INSTRUCTIONS: Final = "Instruction Statistics"
WARPS: Final = "Warp State Statistics"
LAUNCH: Final = "Launch Statistics"
OCCUPANCY: Final = "Occupancy"

REGEX: Final = "regex:"
_NS: Final = 1e9
_PERCENT: Final = 100.0


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric's name and unit as the profiler has them, and how it is computed."""

    name: str
    unit: str
    section: str
    quantity: str
    over: str = ""
    """Quantity that it is divided by; empty: by nothing."""
    scale: float = 1.0

    @property
    def formula(self) -> str:
        """How it is computed, for people."""
        text = f"{self.quantity} / {self.over}" if self.over else self.quantity
        return text if self.scale == 1.0 else f"{self.scale:g} * {text}"

    def value(self, quantities: Mapping[str, float]) -> float | None:
        """Its value for a launch; None where something that it needs was not counted."""
        amount = quantities.get(self.quantity)
        whole = quantities.get(self.over) if self.over else 1.0
        if amount is None or whole is None:
            return None
        return self.scale * amount / whole if whole else 0.0


def _busy(name: str, section: str, part: str) -> Metric:
    """How busy a part of the chip is over the launch."""
    return Metric(name, "%", section, part, "time_s", _PERCENT)


_ELAPSED: Final = "avg.pct_of_peak_sustained_elapsed"

_SPEED_ROWS: Final = (
    Metric("gpu__time_duration.sum", "nsecond", SPEED, "time_s", scale=_NS),
    Metric("gpu__time_duration.avg", "nsecond", SPEED, "time_s", scale=_NS),
    Metric("gpu__time_duration.max", "nsecond", SPEED, "time_s", scale=_NS),
    Metric("gpu__time_duration.min", "nsecond", SPEED, "time_s", scale=_NS),
    Metric("gpc__cycles_elapsed.max", "cycle", SPEED, "cycles"),
    Metric("gpc__cycles_elapsed.avg", "cycle", SPEED, "cycles"),
    Metric("sm__cycles_elapsed.max", "cycle", SPEED, "cycles"),
    Metric("sm__cycles_elapsed.avg", "cycle", SPEED, "cycles"),
    Metric("sm__cycles_elapsed.sum", "cycle", SPEED, "sm_cycles"),
    Metric("smsp__cycles_elapsed.sum", "cycle", SPEED, "scheduler_cycles"),
    Metric("gpc__cycles_elapsed.avg.per_second", "cycle/second", SPEED, "clock_hz"),
    Metric("sm__cycles_elapsed.avg.per_second", "cycle/second", SPEED, "clock_hz"),
    Metric("dram__cycles_elapsed.avg.per_second", "cycle/second", SPEED, "memory_clock_hz"),
    _busy(f"sm__throughput.{_ELAPSED}", SPEED, "sm_busy_s"),
    _busy(f"gpu__compute_memory_throughput.{_ELAPSED}", SPEED, "memory_busy_s"),
    Metric(
        f"gpu__dram_throughput.{_ELAPSED}", "%", SPEED, "dram_bytes", "peak_memory_bytes", _PERCENT
    ),
    Metric(f"dram__throughput.{_ELAPSED}", "%", SPEED, "dram_bytes", "peak_memory_bytes", _PERCENT),
    _busy(f"lts__throughput.{_ELAPSED}", SPEED, "busy_s.L2 bandwidth"),
    _busy(f"l1tex__throughput.{_ELAPSED}", SPEED, "busy_s.L1 bandwidth"),
)

_MEMORY_ROWS: Final = (
    Metric("dram__bytes.sum", "byte", MEMORY, "dram_bytes"),
    Metric("dram__bytes_read.sum", "byte", MEMORY, "dram_read_bytes"),
    Metric("dram__bytes_write.sum", "byte", MEMORY, "dram_write_bytes"),
    Metric("dram__bytes.sum.per_second", "byte/second", MEMORY, "dram_bytes", "time_s"),
    Metric("dram__bytes_read.sum.per_second", "byte/second", MEMORY, "dram_read_bytes", "time_s"),
    Metric("dram__bytes_write.sum.per_second", "byte/second", MEMORY, "dram_write_bytes", "time_s"),
    Metric("dram__sectors.sum", "sector", MEMORY, "dram_sectors"),
    Metric("dram__sectors_read.sum", "sector", MEMORY, "dram_read_sectors"),
    Metric("dram__sectors_write.sum", "sector", MEMORY, "dram_write_sectors"),
    Metric("lts__t_bytes.sum", "byte", MEMORY, "l2_bytes"),
    Metric("lts__t_bytes.sum.per_second", "byte/second", MEMORY, "l2_bytes", "time_s"),
    Metric("lts__t_sectors.sum", "sector", MEMORY, "l2_sectors"),
    Metric("lts__t_sectors_op_read.sum", "sector", MEMORY, "l2_read_sectors"),
    Metric("lts__t_sectors_op_write.sum", "sector", MEMORY, "l2_write_sectors"),
    Metric(
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "sector", MEMORY, "global_load_sectors"
    ),
    Metric(
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "sector", MEMORY, "global_store_sectors"
    ),
    Metric("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "", MEMORY, "global_load_requests"),
    Metric("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "", MEMORY, "global_store_requests"),
    Metric(
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
        "sector/request", MEMORY, "global_load_sectors", "global_load_requests",
    ),
    Metric(
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
        "sector/request", MEMORY, "global_store_sectors", "global_store_requests",
    ),
    Metric(
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
        "%", MEMORY, "global_load_bytes", "global_load_sector_bytes", _PERCENT,
    ),
    Metric(
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",
        "%", MEMORY, "global_store_bytes", "global_store_sector_bytes", _PERCENT,
    ),
    Metric(
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
        "byte/sector", MEMORY, "global_load_bytes", "global_load_sectors",
    ),
    Metric(
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio",
        "byte/sector", MEMORY, "global_store_bytes", "global_store_sectors",
    ),
    Metric("smsp__sass_data_bytes_mem_global_op_ld.sum", "byte", MEMORY, "global_load_bytes"),
    Metric("smsp__sass_data_bytes_mem_global_op_st.sum", "byte", MEMORY, "global_store_bytes"),
    Metric("l1tex__t_sectors_pipe_lsu_mem_local.sum", "sector", MEMORY, "local_sectors"),
    Metric(
        "l1tex__t_sector_hit_rate.pct", "%", MEMORY, "l1_hit_sectors", "l1_load_sectors", _PERCENT
    ),
    Metric("l1tex__t_sectors_lookup_hit.sum", "sector", MEMORY, "l1_hit_sectors"),
    Metric("lts__t_sector_hit_rate.pct", "%", MEMORY, "l2_hit_sectors", "l2_sectors", _PERCENT),
    Metric("lts__t_sectors_lookup_hit.sum", "sector", MEMORY, "l2_hit_sectors"),
    Metric("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "", MEMORY, "shared_wavefronts"),
    Metric(
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "", MEMORY, "shared_load_wavefronts"
    ),
    Metric(
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
        "", MEMORY, "shared_store_wavefronts",
    ),
    Metric(
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "", MEMORY, "load_conflicts"
    ),
    Metric(
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", "", MEMORY, "store_conflicts"
    ),
    Metric("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "", MEMORY, "conflicts"),
    _busy(
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed",
        MEMORY, "busy_s.shared memory",
    ),
)  # fmt: skip

_PIPES: Final = (
    ("alu", "alu", "ALU pipe"),
    ("fma", "fma", "FMA pipe"),
    ("fp16", "fp16", "FP16 pipe"),
    ("fp64", "fp64", "FP64 pipe"),
    ("xu", "xu", "XU pipe"),
    ("lsu", "lsu", "LSU pipe"),
    ("tex", "tex", "TEX pipe"),
    ("tensor", "tensor", "tensor pipe"),
)
"""The profiler's name of a pipe, the counters', and the model's."""

_COMPUTE_ROWS: Final = (
    Metric(
        "sm__inst_executed.avg.per_cycle_elapsed",
        "inst/cycle", COMPUTE, "warp_instructions", "sm_cycles",
    ),
    Metric(
        "sm__inst_executed.sum.per_cycle_elapsed",
        "inst/cycle", COMPUTE, "warp_instructions", "cycles",
    ),
    _busy(f"sm__inst_issued.{_ELAPSED}", COMPUTE, "busy_s.issue slots"),
    *(
        Metric(f"sm__inst_executed_pipe_{name}.sum", "inst", COMPUTE, f"warp_instructions.{own}")
        for name, own, _ in _PIPES
    ),
    Metric("sm__inst_executed_pipe_cbu.sum", "inst", COMPUTE, "warp_instructions.control"),
    *(
        _busy(f"sm__pipe_{name}_cycles_active.{_ELAPSED}", COMPUTE, f"busy_s.{part}")
        for name, _, part in _PIPES
    ),
)  # fmt: skip

_INSTRUCTION_ROWS: Final = (
    Metric("smsp__inst_executed.sum", "inst", INSTRUCTIONS, "warp_instructions"),
    Metric("sm__inst_executed.sum", "inst", INSTRUCTIONS, "warp_instructions"),
    Metric("smsp__inst_executed.avg", "inst", INSTRUCTIONS, "warp_instructions", "scheduler_count"),
    Metric("smsp__thread_inst_executed.sum", "inst", INSTRUCTIONS, "thread_instructions"),
    Metric(
        "smsp__thread_inst_executed_per_inst_executed.ratio",
        "", WARPS, "thread_instructions", "warp_instructions",
    ),
    *(
        Metric(
            f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum",
            "inst", INSTRUCTIONS, f"lanes.{name}",
        )
        for name in ("fadd", "fmul", "ffma", "dadd", "dmul", "dfma", "hadd", "hmul", "hfma")
    ),
    *(
        Metric(f"smsp__inst_executed_op_{name}.sum", "inst", INSTRUCTIONS, f"executed.{name}")
        for name in (
            "global_ld", "global_st", "global_atom", "global_red", "shared_ld", "shared_st",
            "shared_atom", "local_ld", "local_st", "ldsm", "ldgsts", "branch",
        )
    ),
)  # fmt: skip

_LAUNCH_ROWS: Final = (
    Metric("launch__grid_size", "", LAUNCH, "grid.size"),
    Metric("launch__grid_dim_x", "block", LAUNCH, "grid.x"),
    Metric("launch__grid_dim_y", "block", LAUNCH, "grid.y"),
    Metric("launch__grid_dim_z", "block", LAUNCH, "grid.z"),
    Metric("launch__block_size", "", LAUNCH, "block.size"),
    Metric("launch__block_dim_x", "thread", LAUNCH, "block.x"),
    Metric("launch__block_dim_y", "thread", LAUNCH, "block.y"),
    Metric("launch__block_dim_z", "thread", LAUNCH, "block.z"),
    Metric("launch__thread_count", "thread", LAUNCH, "threads"),
    Metric("launch__registers_per_thread", "register/thread", LAUNCH, "registers"),
    Metric("launch__shared_mem_per_block_static", "byte/block", LAUNCH, "static_shared_bytes"),
    Metric("launch__shared_mem_per_block_dynamic", "byte/block", LAUNCH, "dynamic_shared_bytes"),
    Metric("launch__shared_mem_per_block_driver", "byte/block", LAUNCH, "driver_shared_bytes"),
    Metric("launch__shared_mem_per_block", "byte/block", LAUNCH, "shared_bytes"),
    Metric("launch__shared_mem_config_size", "byte", LAUNCH, "carveout_bytes"),
    Metric("launch__waves_per_multiprocessor", "", LAUNCH, "waves"),
    Metric("launch__stream_id", "", LAUNCH, "stream"),
    Metric("launch__device_id", "", LAUNCH, "device"),
    Metric("launch__sm_count", "SM", LAUNCH, "sm_count"),
    Metric("launch__occupancy_limit_blocks", "block", OCCUPANCY, "limit.CTA slots"),
    Metric("launch__occupancy_limit_registers", "block", OCCUPANCY, "limit.registers"),
    Metric("launch__occupancy_limit_shared_mem", "block", OCCUPANCY, "limit.shared memory"),
    Metric("launch__occupancy_limit_warps", "block", OCCUPANCY, "limit.warps"),
    Metric("launch__occupancy_limit_barriers", "block", OCCUPANCY, "limit.barriers"),
    Metric(
        "sm__maximum_warps_per_active_cycle_pct", "%", OCCUPANCY, "occupancy_ratio", scale=_PERCENT
    ),
    Metric("sm__maximum_warps_avg_per_active_cycle", "warp", OCCUPANCY, "warps_per_sm"),
    Metric(
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "%",
        OCCUPANCY,
        "achieved_ratio",
        scale=_PERCENT,
    ),
    Metric("sm__warps_active.avg.per_cycle_active", "warp", OCCUPANCY, "achieved_warps_per_sm"),
)

METRICS: Final[Mapping[str, Metric]] = {
    metric.name: metric
    for metric in (
        *_SPEED_ROWS, *_COMPUTE_ROWS, *_MEMORY_ROWS, *_INSTRUCTION_ROWS, *_LAUNCH_ROWS,
    )
}  # fmt: skip
"""Every metric by name, in the order reports show them."""


def chosen(names: Iterable[str]) -> tuple[Metric, ...]:
    """Look metrics up by name, or by ``regex:EXPRESSION`` that begins their names.

    Raises
    ------
    SetupError
        One is not computed here; those with names near to it are told.
    """
    found = [metric for name in names for metric in _fitting(name)]
    return tuple({metric.name: metric for metric in found}.values())


def near(name: str) -> list[str]:
    """Metrics with a name like one that has no row, best first."""
    stem, _, _ = name.partition(".")
    alike = [known for known in METRICS if known.partition(".")[0] == stem]
    close = difflib.get_close_matches(name, METRICS, n=5, cutoff=0.6)
    return list(dict.fromkeys([*alike, *close]))[:5]


def values(metrics: Sequence[Metric], quantities: Mapping[str, float]) -> dict[str, float | None]:
    """Values of one launch by metric name."""
    return {metric.name: metric.value(quantities) for metric in metrics}


def help_text() -> str:
    """Every metric with its unit and how it is computed, by section."""
    width = max(len(name) for name in METRICS)
    lines: list[str] = []
    for section in dict.fromkeys(metric.section for metric in METRICS.values()):
        lines += ["", section]
        lines += [
            f"  {metric.name:{width}}  {metric.unit:15}  {metric.formula}"
            for metric in METRICS.values()
            if metric.section == section
        ]
    return "\n".join(lines[1:])


def _fitting(name: str) -> list[Metric]:
    if not name.startswith(REGEX):
        return [_metric(name)]
    expression = name.removeprefix(REGEX)
    try:
        found = [metric for known, metric in METRICS.items() if re.match(expression, known)]
    except re.error as error:
        raise SetupError(
            f"{expression!r} is no regular expression: {error}", remedy="see --metrics help"
        ) from error
    return found or [_metric(name)]


def _metric(name: str) -> Metric:
    metric = METRICS.get(name)
    if metric is None:
        names = near(name)
        said = "near ones: " + ", ".join(names) if names else "nothing computed here is called so"
        raise SetupError(
            f"metric {name} is not computed: {said}",
            remedy="choose among those that va100 profile --metrics help lists",
        )
    return metric
