"""Plots as SVG, drawn here, so that pages need no program of anyone else's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from va100.cloud.prices import dollars
from va100.cloud.simulate import Outcome

COLOURS: Final = ("#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#0a7ea4", "#bf3989")
_WIDTH: Final = 640
_HEIGHT: Final = 220
_LEFT: Final = 56
_BOTTOM: Final = 28

Series = Sequence[tuple[float, float]]


def line_chart(
    title: str,
    series: Mapping[str, Series],
    *,
    unit: str = "",
    x_unit: str = "",
    top: float = 0.0,
) -> str:
    """Lines over a common axis; the title is read out in place of the picture.

    Parameters
    ----------
    top : float
        Least height of the axis, in the figures' own unit.
    """
    points = [point for line in series.values() for point in line]
    if not points:
        return f"<p>{escape(title)}: no figures yet.</p>"
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    top = max(1e-9, top, *(y for _, y in points))
    inner_w, inner_h = _WIDTH - _LEFT - 8, _HEIGHT - _BOTTOM - 12

    def place(x: float, y: float) -> str:
        across = (x - left) / (right - left) if right > left else 0.5
        return f"{_LEFT + across * inner_w:.1f},{12 + (1 - y / top) * inner_h:.1f}"

    parts = [_frame(title, top, unit)]
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(place(x, y) for x, y in line)
        parts.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{path}">'
            f"<title>{escape(name)}</title></polyline>"
        )
    foot = _HEIGHT - 8
    parts.append(f'<text x="{_LEFT}" y="{foot}">{_short(left)}{escape(x_unit)}</text>')
    parts.append(
        f'<text x="{_WIDTH - 8}" y="{foot}" text-anchor="end">{_short(right)}'
        f"{escape(x_unit)}</text>"
    )
    return "".join(parts) + "</svg>" + (_legend(list(series)) if len(series) > 1 else "")


def bar_chart(title: str, bars: Sequence[tuple[str, float, str]]) -> str:
    """Bars with names and spelled values, upright."""
    if not bars:
        return f"<p>{escape(title)}: no figures yet.</p>"
    top = max(1e-9, *(value for _, value, _ in bars))
    step = (_WIDTH - _LEFT - 8) / len(bars)
    inner_h = _HEIGHT - _BOTTOM - 12
    parts = [_frame(title, top, "")]
    for number, (name, value, shown) in enumerate(bars):
        height = max(0.0, value) / top * inner_h
        x = _LEFT + number * step
        parts.append(
            f'<rect x="{x + step * 0.1:.1f}" y="{12 + inner_h - height:.1f}" '
            f'width="{step * 0.8:.1f}" height="{height:.1f}" fill="{COLOURS[0]}">'
            f"<title>{escape(name)}: {escape(shown)}</title></rect>"
        )
        if len(bars) <= 12 or number % (len(bars) // 8 + 1) == 0:
            parts.append(
                f'<text x="{x + step / 2:.1f}" y="{_HEIGHT - 8}" text-anchor="middle">'
                f"{escape(name)}</text>"
            )
    return "".join(parts) + "</svg>"


def _short(value: float) -> str:
    """A figure of an axis: three digits of it at most, and none of a negative zero."""
    return f"{round(value, 1) + 0.0:g}" if abs(value) < 100 else f"{value:g}"


def _frame(title: str, top: float, unit: str) -> str:
    base = _HEIGHT - _BOTTOM
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(title)}" font-size="11" font-family="sans-serif" '
        f'fill="currentColor">'
        f'<line x1="{_LEFT}" y1="{base}" x2="{_WIDTH - 8}" y2="{base}" stroke="currentColor"/>'
        f'<text x="{_LEFT - 6}" y="18" text-anchor="end">{top:.3g}{escape(unit)}</text>'
        f'<text x="{_LEFT - 6}" y="{base}" text-anchor="end">0</text>'
    )


def _legend(names: Sequence[str]) -> str:
    marks = "".join(
        f'<li><svg width="12" height="12" aria-hidden="true"><rect width="12" height="12" '
        f'fill="{COLOURS[n % len(COLOURS)]}"/></svg> {escape(name)}</li>'
        for n, name in enumerate(names)
    )
    return f'<ul class="legend">{marks}</ul>'


def comparison_page(title: str, outcomes: Mapping[str, Outcome]) -> str:
    """A page that sets policies side by side: a table and their courses."""
    begin = min(one.samples[0][0] for one in outcomes.values() if one.samples)

    def course(index: int, scale: float = 1.0) -> dict[str, Series]:
        return {
            name: [((s[0] - begin) / 3600, float(s[index]) * scale) for s in one.samples]
            for name, one in outcomes.items()
        }

    rows = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td>{100 * one.utilisation_ratio:.1f} %</td>"
        f"<td>{one.wait_mean_s:.0f} s</td><td>{one.wait_p99_s:.0f} s</td>"
        f"<td>{100 * one.fragmentation_ratio:.1f} %</td><td>{one.displaced_count}</td>"
        f"<td>{dollars(one.charged_micro - one.discount_micro)}</td></tr>"
        for name, one in outcomes.items()
    )
    heads = "".join(
        f"<th scope='col'>{head}</th>"
        for head in ("Policy", "Utilisation", "Mean wait", "p99 wait", "Fragmentation",
                     "Displaced", "Revenue")
    )  # fmt: skip
    charts = (
        line_chart("Utilisation, percent, over hours", course(1, 100), unit=" %", x_unit=" h")
        + line_chart("Jobs that wait, over hours", course(2), x_unit=" h")
        + line_chart("Fragmentation, percent, over hours", course(3, 100), unit=" %", x_unit=" h")
    )
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{escape(title)}</title>"
        "<meta name='viewport' content='width=device-width'>"
        "<style>body{font:15px sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
        "table{border-collapse:collapse}td,th{padding:.3rem .6rem;border-bottom:1px solid #ccc;"
        "text-align:right}svg.chart{width:100%}.legend{list-style:none;display:flex;gap:1rem;"
        "flex-wrap:wrap;padding:0}</style>"
        f"<h1>{escape(title)}</h1><table><thead><tr>{heads}</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
        f"<h2>Utilisation</h2>{charts}</html>"
    )
