"""Charts as inline SVG without scripts: stacks, lines on logarithmic axes, timelines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

COLORS: Final = (
    "#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#9d755d", "#bab0ac",
    "#eeca3b",
)  # fmt: skip
WIDTH: Final = 720
LEFT: Final = 70
PLOT: Final = WIDTH - LEFT - 20


@dataclass(frozen=True, slots=True)
class Line:
    """A named series of points."""

    name: str
    points: Sequence[tuple[float, float]]
    dots: bool = False


def stack_chart(
    title: str, rows: Mapping[str, Mapping[str, float]], limit: float, unit: str
) -> str:
    """Horizontal stacks, one a row, and a limit they should stay below."""
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    most = max([limit, *(sum(row.values()) for row in rows.values())]) or 1.0
    scale = PLOT / most
    parts, top = [], 30.0
    for label, row in rows.items():
        at = float(LEFT)
        parts.append(_text(LEFT - 6, top + 14, label, anchor="end"))
        for name, value in row.items():
            color = COLORS[names.index(name) % len(COLORS)]
            parts.append(_bar(at, top, value * scale, 18, color, f"{name}: {value:.2f} {unit}"))
            at += value * scale
        top += 24
    edge = LEFT + limit * scale
    parts.append(f'<line x1="{edge:.1f}" y1="24" x2="{edge:.1f}" y2="{top:.1f}" stroke="#c00"/>')
    parts.append(_text(edge, 20, f"{limit:.1f} {unit}", anchor="end"))
    parts += _legend(names, top + 6)
    return _svg(title, parts, top + 30 + 18 * (len(names) // 5))


def line_chart(
    title: str, lines: Sequence[Line], axes: tuple[str, str], *, logs: bool = True
) -> str:
    """Lines over two axes, both logarithmic unless told otherwise."""
    points = [point for line in lines for point in line.points]
    if not points:
        return ""
    height = 260.0

    def place(value: float, low: float, high: float) -> float:
        if logs:
            value, low, high = math.log(value), math.log(low), math.log(high)
        return 0.5 if high == low else (value - low) / (high - low)

    xs, ys = [x for x, _ in points], [y for _, y in points]
    spans = (min(xs), max(xs), min(ys), max(ys))
    parts = []
    for number, line in enumerate(lines):
        color = COLORS[number % len(COLORS)]
        placed = [
            (
                LEFT + PLOT * place(x, spans[0], spans[1]),
                30 + height * (1 - place(y, spans[2], spans[3])),
            )
            for x, y in line.points
        ]
        if not line.dots:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{color}"/>')
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"><title>'
            f"{escape(line.name)}: {px:.4g}, {py:.4g}</title></circle>"
            for (x, y), (px, py) in zip(placed, line.points, strict=True)
        ]
    parts.append(_text(LEFT, height + 48, f"{axes[0]}: {spans[0]:.3g} to {spans[1]:.3g}"))
    parts.append(_text(LEFT, 22, f"{axes[1]}: {spans[2]:.3g} to {spans[3]:.3g}"))
    parts += _legend([line.name for line in lines], height + 56)
    return _svg(title, parts, height + 90 + 18 * (len(lines) // 5))


def timeline(title: str, spans: Sequence[tuple[int, float, float, str, int]], rows: int) -> str:
    """Boxes on rows: row, start, end, what, and number of its color."""
    end = max((span[2] for span in spans), default=1.0) or 1.0
    parts = [_text(LEFT - 6, 44 + 20 * row, f"stage {row}", anchor="end") for row in range(rows)]
    for row, start, stop, what, color in spans:
        left, wide = LEFT + PLOT * start / end, PLOT * (stop - start) / end
        shade = COLORS[color % len(COLORS)]
        parts.append(_bar(left, 30 + 20 * row, max(wide - 0.5, 0.5), 16, shade, what))
    return _svg(title, parts, 50 + 20 * rows)


def _bar(x: float, y: float, width: float, height: float, color: str, title: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.0f}" '
        f'fill="{color}"><title>{escape(title)}</title></rect>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _legend(names: Sequence[str], top: float) -> list[str]:
    parts = []
    for number, name in enumerate(names):
        x, y = LEFT + 130 * (number % 5), top + 18 * (number // 5)
        parts.append(_bar(x, y, 10, 10, COLORS[number % len(COLORS)], name))
        parts.append(_text(x + 14, y + 9, name))
    return parts


def _svg(title: str, parts: Sequence[str], height: float) -> str:
    body = "\n".join(parts)
    return (
        f"<h2>{escape(title)}</h2>\n"
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" role="img" '
        f'aria-label="{escape(title)}" font-family="sans-serif" font-size="11">\n{body}\n</svg>'
    )
