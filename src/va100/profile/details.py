"""Launches for a terminal: the table of kernels, then for each the reasons, lines and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from va100.profile.launch import Launch
from va100.profile.metrics import Metric, values
from va100.profile.ncu_csv import number_text
from va100.profile.quantities import quantities
from va100.profile.reasons import band_text, energy_text, line_text, reasons, together, top_lines
from va100.profile.report_schema import KernelGroup, LaunchReport
from va100.profile.table import extent_text, table_text
from va100.profile.totals import totals, totals_text
from va100.spec.model import ChipSpec

_MOST_KERNELS: Final = 12
"""Kernels and shapes told one by one, those with most time."""


def details_text(
    report: LaunchReport,
    launches: Sequence[Launch],
    metrics: Sequence[Metric],
    chip: ChipSpec,
    *,
    width: int,
) -> str:
    """Lay out launches, those alike together, in lines of at most ``width`` columns or so."""
    shown = replace(report, kernels=kernel_groups(launches))
    parts = [table_text(shown, width=width)]
    if launches and len(launches) == sum(event.kind == "kernel" for event in report.events):
        parts.append(totals_text(totals(launches, report.events, chip)))
    groups = sorted(together(launches).values(), key=lambda group: -_total_s(group))
    parts += [_kernel_text(group, metrics, chip) for group in groups[:_MOST_KERNELS]]
    rest = len(groups) - _MOST_KERNELS
    if rest > 0:
        parts.append(f"\n{rest} more are in the table only; --kernel chooses among them")
    return "\n".join(parts)


def kernel_groups(launches: Sequence[Launch]) -> tuple[KernelGroup, ...]:
    """Launches alike, summed up as the table has them."""
    return tuple(_group(group) for group in together(launches).values())


def _group(group: Sequence[Launch]) -> KernelGroup:
    longest = _longest(group)
    times = [launch.time_s for launch in group]
    return KernelGroup(
        kernel=longest.kernel,
        grid=longest.grid,
        block=longest.block,
        count=len(group),
        total_s=sum(times),
        mean_s=sum(times) / len(times),
        min_s=min(times),
        max_s=max(times),
        device=longest.device,
        bound_by=longest.bound,
        occupancy=longest.occupancy,
        waves=longest.waves,
        registers=longest.registers,
        shared_bytes=longest.shared_bytes,
        dynamic_shared_bytes=longest.dynamic_shared_bytes,
        parts=longest.parts,
        assumed=longest.assumed,
    )


def _kernel_text(group: Sequence[Launch], metrics: Sequence[Metric], chip: ChipSpec) -> str:
    launch = _longest(group)
    which = ", its longest launch" if len({other.time_s for other in group}) > 1 else ""
    shape = f"{extent_text(launch.grid)} x {extent_text(launch.block)}"
    lines = ["", f"{launch.name}, {shape}{which}"]
    lines += [f"  {reason}" for reason in reasons(launch, chip)]
    lines.append(f"  time: {band_text(launch)}")
    if launch.energy_j is not None:
        lines.append(f"  energy: {energy_text(launch)}")
    lines += _line_texts(launch)
    if metrics:
        lines += _metric_texts(launch, metrics, chip)
    return "\n".join(lines)


def _line_texts(launch: Launch) -> list[str]:
    texts = []
    for line, issues, sectors in top_lines(launch):
        shares = f"{issues:.0%} of instructions"
        if sectors:
            shares += f", {sectors:.0%} of sectors"
        text = f"  {line.text}" if line.text else ""
        texts.append(f"  {line_text(line)}: {shares}{text}")
    return texts


def _metric_texts(launch: Launch, metrics: Sequence[Metric], chip: ChipSpec) -> list[str]:
    found = values(metrics, quantities(launch, chip))
    name_width = max(len(metric.name) for metric in metrics)
    unit_width = max(len(metric.unit) for metric in metrics)
    return [
        f"    {metric.name:{name_width}}  {metric.unit:{unit_width}}  "
        f"{number_text(found[metric.name])}"
        for metric in metrics
    ]


def _longest(group: Sequence[Launch]) -> Launch:
    return max(group, key=lambda launch: launch.time_s)


def _total_s(group: Sequence[Launch]) -> float:
    return sum(launch.time_s for launch in group)
