"""The roofline: operations a second over operations a byte, under what the chip can do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from va100.profile.html.markup import Markup, element, joined, picture
from va100.profile.html.scale import Logarithmic, powers_around
from va100.profile.quantities import peak_of
from va100.spec.model import ChipSpec, Operation
from va100.spec.rates import memory_bytes_per_s, peak_flop_per_s
from va100.units import rate_text

_WIDTH, _HEIGHT = 720.0, 400.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 78.0, 700.0, 16.0, 352.0
_LEAST_INTENSITY, _MOST_INTENSITY = 0.1, 1000.0
_LEAST_RATE: Final = 1e11
_RADIUS: Final = 9.0
_LINE: Final = 15.0
"""Height of a name."""
_LETTER: Final = 6.6
"""Width of a letter, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A kernel on the chart."""

    number: int
    name: str
    intensity: float
    """Floating-point operations a byte of DRAM."""
    flop_per_s: float
    roof: str
    roof_flop_per_s: float


def point_of(number: int, name: str, found: Mapping[str, float], chip: ChipSpec) -> Point | None:
    """Place a kernel; None for one without floating-point operations or without traffic."""
    flop, moved = found.get("flop", 0.0), found.get("dram_bytes", 0.0)
    if not flop or not moved:
        return None
    roof, peak = peak_of(found, chip)
    return Point(
        number=number,
        name=name,
        intensity=flop / moved,
        flop_per_s=flop / found["time_s"],
        roof=roof,
        roof_flop_per_s=peak,
    )


def roofline(points: Sequence[Point], chip: ChipSpec) -> Markup:
    """Draw roofs and points."""
    roofs = {"FP32": peak_flop_per_s(chip, Operation.FP32_FMA)}
    roofs |= {point.roof: point.roof_flop_per_s for point in points}
    intensities = [_LEAST_INTENSITY, _MOST_INTENSITY, *(point.intensity for point in points)]
    rates = [_LEAST_RATE, *roofs.values(), *(point.flop_per_s for point in points)]
    x = Logarithmic(*powers_around(min(intensities), max(intensities)), _LEFT, _RIGHT)
    y = Logarithmic(*powers_around(min(rates), max(rates) * 1.5), _BOTTOM, _TOP)
    bandwidth = memory_bytes_per_s(chip)
    title = "Roofline: " + (
        "; ".join(_point_text(point) for point in points) or "no kernel has a place on it"
    )
    return picture(
        _WIDTH, _HEIGHT, title, _grid(x, y),
        *(_roof(name, peak, bandwidth, x, y) for name, peak in roofs.items()),
        _diagonal(bandwidth, max(roofs.values()), x, y),
        *_markers(points, x, y),
    )  # fmt: skip


def _point_text(point: Point) -> str:
    rate = rate_text(point.flop_per_s, "FLOP/s")
    return f"{point.number}, {point.name}: {point.intensity:.3g} FLOP/B, {rate}"


def _grid(x: Logarithmic, y: Logarithmic) -> Markup:
    lines = []
    for power in x.powers:
        at = x(10.0**power)
        lines.append(element("line", x1=at, x2=at, y1=_TOP, y2=_BOTTOM, class_="grid"))
        label = f"{10.0**power:g}"
        lines.append(element("text", label, x=at, y=_BOTTOM + 18, class_="tick middle"))
    for power in y.powers:
        at = y(10.0**power)
        lines.append(element("line", x1=_LEFT, x2=_RIGHT, y1=at, y2=at, class_="grid"))
        lines.append(element("text", _rate_label(power), x=_LEFT - 8, y=at + 4, class_="tick end"))
    caption = "operations a byte of DRAM"
    middle = (_LEFT + _RIGHT) / 2
    lines.append(element("text", caption, x=middle, y=_HEIGHT - 8, class_="axis middle"))
    return joined(*lines)


def _rate_label(power: int) -> str:
    """A power of ten of operations a second, in the prefixes that people compare chips in."""
    if power >= 12:
        return f"{10 ** (power - 12)} TFLOP/s"
    return f"{10.0 ** (power - 9):g} GFLOP/s"


def _roof(name: str, peak: float, bandwidth: float, x: Logarithmic, y: Logarithmic) -> Markup:
    ridge, level = x(peak / bandwidth), y(peak)
    line = element("line", x1=ridge, x2=_RIGHT, y1=level, y2=level, class_="roof")
    text = f"{name} {rate_text(peak, 'FLOP/s')}"
    return joined(line, element("text", text, x=_RIGHT - 4, y=level - 6, class_="label end"))


def _diagonal(bandwidth: float, highest: float, x: Logarithmic, y: Logarithmic) -> Markup:
    """What DRAM lets through, up to the highest roof."""
    least = max(10.0**x.first_power, 10.0**y.first_power / bandwidth)
    ridge = highest / bandwidth
    line = element(
        "line", x1=x(least), y1=y(least * bandwidth), x2=x(ridge), y2=y(highest), class_="roof"
    )
    at = (least * ridge) ** 0.5
    angle = _angle(x, y)
    label = element(
        "text", f"DRAM {rate_text(bandwidth, 'B/s')}", x=x(at) - 6, y=y(at * bandwidth) - 8,
        class_="label middle",
        transform=f"rotate({angle:.1f} {x(at):.1f} {y(at * bandwidth):.1f})",
    )  # fmt: skip
    return joined(line, label)


def _angle(x: Logarithmic, y: Logarithmic) -> float:
    """Slope of a diagonal in degrees: one power of ten along, one up."""
    along = x(10.0 ** (x.first_power + 1)) - x(10.0**x.first_power)
    up = y(10.0 ** (y.first_power + 1)) - y(10.0**y.first_power)
    return math.degrees(math.atan2(up, along))


def _markers(points: Sequence[Point], x: Logarithmic, y: Logarithmic) -> list[Markup]:
    """Every point, named where its name hides no other and no other's name."""
    places = [(x(point.intensity), y(point.flop_per_s)) for point in points]
    taken = [(at_x - _RADIUS, at_x + _RADIUS, at_y) for at_x, at_y in places]
    markers = []
    for index, (point, (at_x, at_y)) in enumerate(zip(points, places, strict=True)):
        markers.append(_marker(point, at_x, at_y))
        others = taken[:index] + taken[index + 1 :]
        name = f"{point.name}, {rate_text(point.flop_per_s, 'FLOP/s')}"
        span = _free_span(name, at_x, at_y, others)
        if span is not None:
            taken.append((*span, at_y))
            side, place = ("label", span[0]) if span[0] > at_x else ("label end", span[1])
            markers.append(element("text", name, x=place, y=at_y + 4, class_=side))
    return markers


def _free_span(
    name: str, x: float, y: float, taken: Sequence[tuple[float, float, float]]
) -> tuple[float, float] | None:
    """Where a name goes beside its point, to the right if it can; None where there is no room."""
    width, gap = _LETTER * len(name), _RADIUS + 5
    for first in (x + gap, x - gap - width):
        last = first + width
        inside = first > _LEFT and last < _RIGHT
        hides = any(
            abs(y - at_y) < _LINE and first < right and left < last for left, right, at_y in taken
        )
        if inside and not hides:
            return first, last
    return None


def _marker(point: Point, x: float, y: float) -> Markup:
    return element(
        "g",
        element("title", _point_text(point)),
        element("circle", cx=x, cy=y, r=_RADIUS, class_="dot"),
        element("text", str(point.number), x=x, y=y + 3.6, class_="dot-text middle"),
    )
