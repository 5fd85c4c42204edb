"""What all launches and copies of a program come to: by device, and by stream where there are more.

Time from the first start to the last end, the part of it that work fills, the band of the kernels
together, and joules with those of waiting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from va100.perf.energy import BYTE_J, Level
from va100.profile.launch import Launch
from va100.profile.report_schema import ReportEvent
from va100.spec.model import ChipSpec
from va100.units import NS, energy_text, time_text

_DRAM_PASSES: Final = {"DtoD": 2}
"""Times that a copy's bytes cross a device's memory; once in all other kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """Work of one stream, or of one device."""

    device: int
    stream: int | None
    """``None``: all of the device's."""
    launch_count: int
    copy_count: int
    """Fills among them."""
    span_s: float
    """From the first start to the last end."""
    busy_s: float
    """Of that, what any work fills."""
    kernel_s: float
    copy_s: float
    kernel_band_s: tuple[float, float]
    """Kernels' least and most, should all be off the same way: the band of a sum is no wider."""
    kernel_j: float
    copy_j: float
    """Of bytes in device memory, beyond what the card burns idle; links' is not known."""
    idle_j: float
    """What the card burns while no kernel runs, within the span."""

    @property
    def energy_j(self) -> float:
        """Joules of the card from the first start to the last end."""
        return self.kernel_j + self.copy_j + self.idle_j


def totals(
    launches: Sequence[Launch], events: Iterable[ReportEvent], chip: ChipSpec
) -> tuple[Total, ...]:
    """Sum up, each device before its streams; streams only where a device ran several.

    Energy of a launch without one counts as the idle power while it runs.
    """
    copies = [event for event in events if event.kind != "kernel"]
    found: list[Total] = []
    for device in sorted({x.device for x in launches} | {event.device for event in copies}):
        mine = [launch for launch in launches if launch.device == device]
        moved = [event for event in copies if event.device == device]
        found.append(_total(device, None, mine, moved, chip))
        streams = sorted({x.stream for x in mine} | {event.stream for event in moved})
        for stream in streams if len(streams) > 1 else ():
            own = [launch for launch in mine if launch.stream == stream]
            carried = [event for event in moved if event.stream == stream]
            found.append(_total(device, stream, own, carried, chip))
    return tuple(found)


def card_energy_j(found: Iterable[Total]) -> float:
    """Joules of all devices together."""
    return sum(total.energy_j for total in found if total.stream is None)


def _total(
    device: int,
    stream: int | None,
    launches: Sequence[Launch],
    copies: Sequence[ReportEvent],
    chip: ChipSpec,
) -> Total:
    ran = [(x.start_ns * NS, x.start_ns * NS + x.time_s) for x in launches]
    moved = [(event.start_ns * NS, event.end_ns * NS) for event in copies]
    everything = [*ran, *moved]
    span_s = max(end for _, end in everything) - min(start for start, _ in everything)
    idle_w = chip.measured.idle_w
    copied = [_DRAM_PASSES.get(event.kind, 1) * event.moved_bytes for event in copies]
    return Total(
        device=device,
        stream=stream,
        launch_count=len(launches),
        copy_count=len(copies),
        span_s=span_s,
        busy_s=_covered_s(everything),
        kernel_s=sum(launch.time_s for launch in launches),
        copy_s=sum(end - start for start, end in moved),
        kernel_band_s=(
            sum(launch.time_s_band[0] for launch in launches),
            sum(launch.time_s_band[1] for launch in launches),
        ),
        kernel_j=sum(
            idle_w * launch.time_s if launch.energy_j is None else launch.energy_j
            for launch in launches
        ),
        copy_j=sum(copied) * BYTE_J[Level.DRAM],
        idle_j=idle_w * max(span_s - _covered_s(ran), 0.0),
    )


def _covered_s(spans: Iterable[tuple[float, float]]) -> float:
    """Length of a union of intervals."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(end - max(start, reached), 0.0)
        reached = max(reached, end)
    return total


def totals_text(found: Sequence[Total]) -> str:
    """A paragraph for each device, a line for each of its streams."""
    several = len({total.device for total in found}) > 1
    lines: list[str] = []
    for total in found:
        lines += (
            _stream_lines(total)
            if total.stream is not None
            else _device_lines(total, several=several)
        )
    return "\n".join(lines)


def _device_lines(total: Total, *, several: bool) -> list[str]:
    low_s, high_s = total.kernel_band_s
    who = f"device {total.device}" if several else "program"
    power_w = total.energy_j / total.span_s if total.span_s else 0.0
    parts = [f"kernels {energy_text(total.kernel_j)}", f"idle {energy_text(total.idle_j)}"]
    if total.copy_j:
        parts.insert(1, f"copies {energy_text(total.copy_j)}")
    busy = total.busy_s / total.span_s if total.span_s else 1.0
    return [
        "",
        f"{who}, {_counted(total)}",
        f"  time: {time_text(total.span_s)} from the first start to the last end, "
        f"busy {busy:.0%} of it; the host takes none",
        f"  kernels: {time_text(total.kernel_s)}, {time_text(low_s)} to {time_text(high_s)} "
        "if all are off alike",
        f"  energy: {energy_text(total.energy_j)}, {power_w:.0f} W on average: {', '.join(parts)}",
    ]


def _stream_lines(total: Total) -> list[str]:
    joules = energy_text(total.kernel_j + total.copy_j)
    name = f"stream {total.stream}" if total.stream else "the default stream"
    return [
        f"  {name}: {_counted(total)}, kernels {time_text(total.kernel_s)}, "
        f"copies {time_text(total.copy_s)}, {joules}"
    ]


def _counted(total: Total) -> str:
    launches = f"{total.launch_count} launch{'' if total.launch_count == 1 else 'es'}"
    copies = f"{total.copy_count} cop{'y' if total.copy_count == 1 else 'ies'}"
    return f"{launches}, {copies}"
