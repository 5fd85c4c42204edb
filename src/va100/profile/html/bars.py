"""Bars: how long each part of the chip would need, and what ran when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from va100.driver.names import short_name
from va100.profile.html.markup import Markup, element, joined, picture
from va100.profile.html.scale import Linear
from va100.profile.report_schema import ReportEvent
from va100.units import NS, time_text

_WIDTH: Final = 520.0
_NAME_WIDTH: Final = 122.0
_ROW: Final = 24.0
_BAR: Final = 14.0
_LEAST_SHARE: Final = 0.005
_NEAR_THE_END: Final = 0.88
_STRIP_WIDTH: Final = 1040.0
_STRIP_ROW: Final = 30.0
_MOST_EVENTS: Final = 2000
"""On the strip; more could not be told apart."""


def part_bars(parts: Mapping[str, float], time_s: float, bound: str) -> Markup:
    """Draw each part's own time beside the whole launch's."""
    shown = [(name, part_s) for name, part_s in parts.items() if part_s >= _LEAST_SHARE * time_s]
    shown.sort(key=lambda part: -part[1])
    height = _ROW * (len(shown) + 1) + 12
    x = Linear(0.0, time_s, _NAME_WIDTH + 8, _WIDTH - 52)
    rows = [_part_row(row, name, part_s, time_s, x, bound) for row, (name, part_s) in
            enumerate(shown)]  # fmt: skip
    end = x(time_s)
    whole = element("line", x1=end, x2=end, y1=2, y2=height - _ROW, class_="limit")
    text = f"launch {time_text(time_s)}"
    caption = element("text", text, x=end, y=height - 10, class_="tick end")
    words = ", ".join(f"{name} {part_s / time_s:.0%}" for name, part_s in shown)
    return picture(_WIDTH, height, f"Busy, in parts of the launch: {words}", *rows, whole, caption)


def _part_row(row: int, name: str, part_s: float, time_s: float, x: Linear, bound: str) -> Markup:
    top = 4 + row * _ROW
    middle = top + _BAR - 3
    return joined(
        element("text", name, x=_NAME_WIDTH, y=middle, class_="label end"),
        element(
            "rect", x=x(0.0), y=top, width=max(x(part_s) - x(0.0), 1.0), height=_BAR, rx=2,
            class_="bar chosen" if name == bound else "bar",
        ),
        _share_text(part_s / time_s, x(part_s), middle),
    )  # fmt: skip


def _share_text(share: float, end: float, y: float) -> Markup:
    """How long a bar is, behind it or, where the launch's end is near, inside."""
    text = f"{share:.0%}"
    if share > _NEAR_THE_END:
        return element("text", text, x=end - 6, y=y, class_="bar-text end")
    return element("text", text, x=end + 6, y=y, class_="tick")


def strip(events: Sequence[ReportEvent]) -> Markup:
    """Draw what ran when: a row a stream, kernels and copies."""
    shown = events[:_MOST_EVENTS]
    if not shown:
        return Markup("")
    begin, end = min(e.start_ns for e in shown), max(e.end_ns for e in shown)
    tracks = sorted({(event.device, event.stream) for event in shown})
    x = Linear(begin, max(end, begin + 1), _NAME_WIDTH, _STRIP_WIDTH - 8)
    height = _STRIP_ROW * len(tracks) + 26
    rows = [_track_label(row, track, len({d for d, _ in tracks})) for row, track in
            enumerate(tracks)]  # fmt: skip
    slices = [
        _slice(event, tracks.index((event.device, event.stream)), x, begin) for event in shown
    ]
    ticks = [_time_tick(begin, end, share, x, height) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    title = f"Timeline of {len(shown)} kernels and copies over {time_text((end - begin) * NS)}"
    return picture(_STRIP_WIDTH, height, title, *ticks, *rows, *slices, class_="chart strip")


def _track_label(row: int, track: tuple[int, int], devices: int) -> Markup:
    device, stream = track
    text = f"stream {stream}" if devices == 1 else f"GPU {device}, stream {stream}"
    return element("text", text, x=_NAME_WIDTH - 8, y=row * _STRIP_ROW + 18, class_="label end")


def _slice(event: ReportEvent, row: int, x: Linear, begin: int) -> Markup:
    lasting = time_text((event.end_ns - event.start_ns) * NS)
    name = short_name(event.name) if event.kind == "kernel" else event.kind
    kind = event.kind if event.kind in ("kernel", "memset") else "copy"
    left = x(event.start_ns)
    width = max(x(event.end_ns) - left, 1.5)
    block = element(
        "rect", x=left, y=row * _STRIP_ROW + 4, width=width, height=20, rx=2, class_=f"slice {kind}"
    )
    at = time_text((event.start_ns - begin) * NS)
    title = element("title", f"{name}, {lasting} from {at}")
    fits = len(name) * 7 + 6 < width
    text = [element("text", name, x=left + 5, y=row * _STRIP_ROW + 18, class_="slice-text")]
    return element("g", title, block, *(text if fits else []))


def _time_tick(begin: int, end: int, share: float, x: Linear, height: float) -> Markup:
    at = x(begin + share * (end - begin))
    place = {0.0: "tick", 1.0: "tick end"}.get(share, "tick middle")
    return joined(
        element("line", x1=at, x2=at, y1=0, y2=height - 18, class_="grid"),
        element("text", time_text(share * (end - begin) * NS), x=at, y=height - 4, class_=place),
    )
