"""The page: a summary, the timeline, the table of kernels, the roofline, then each kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from va100.profile.html.bars import part_bars, strip
from va100.profile.html.markup import Markup, element, joined
from va100.profile.html.memory import memory_chart
from va100.profile.html.occupancy import occupancy_charts
from va100.profile.html.roofline import Point, point_of, roofline
from va100.profile.html.source import Sources, source_table
from va100.profile.launch import Launch
from va100.profile.metrics import Metric, values
from va100.profile.ncu_csv import number_text
from va100.profile.quantities import quantities
from va100.profile.reasons import band_text, energy_text, reasons, together
from va100.profile.report_schema import LaunchReport
from va100.profile.table import CAVEAT, extent_text
from va100.profile.totals import card_energy_j, totals
from va100.spec.model import ChipSpec
from va100.units import energy_text as joules_text
from va100.units import time_text

_STYLE: Final = Path(__file__).with_name("style.css")
_MOST_KERNELS: Final = 40
"""Kernels told one by one; the table has them all."""

_number = partial(element, "td", class_="number")


def page(
    report: LaunchReport, launches: Sequence[Launch], metrics: Sequence[Metric], chip: ChipSpec
) -> str:
    """Lay out a whole page."""
    groups = sorted(together(launches).values(), key=lambda group: -_total_s(group))
    title = f"{Path(report.program).name or 'program'} on {chip.name}"
    style = Markup(_STYLE.read_text(encoding="utf-8"))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", style),
    )
    body = element(
        "body",
        _header(report, launches, chip),
        element(
            "main",
            _timeline(report),
            _kernel_table(groups, launches),
            _roofline(groups, chip),
            _kernels(groups, metrics, chip),
        ),
        _footer(report, groups),
    )
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en")


def _header(report: LaunchReport, launches: Sequence[Launch], chip: ChipSpec) -> Markup:
    total_s = _total_s(launches)
    names = {launch.kernel for launch in launches}
    bounds: dict[str, float] = {}
    for launch in launches:
        bounds[launch.bound] = bounds.get(launch.bound, 0.0) + launch.time_s
    most = max(bounds, key=lambda bound: bounds[bound], default="")
    tiles = [
        ("kernel time on the chip", time_text(total_s)),
        ("launches", str(len(launches))),
        ("kernels", str(len(names))),
    ]
    whole = totals(launches, report.events, chip)
    if launches:
        tiles.append(("energy of the card", joules_text(card_energy_j(whole))))
    if most:
        tiles.append((f"of it bound by {most}", f"{bounds[most] / total_s:.0%}"))
    return element(
        "header",
        element("p", f"va100 profile, {chip.name}", class_="muted"),
        element("h1", report.program or "program"),
        element("dl", *(_tile(name, value) for name, value in tiles), class_="tiles"),
    )


def _tile(name: str, value: str) -> Markup:
    return element("div", element("dt", name), element("dd", value))


def _timeline(report: LaunchReport) -> Markup:
    if not report.events:
        return Markup("")
    key = joined(
        *(
            element("span", text, class_=f"key {kind}")
            for kind, text in (("kernel", "kernel"), ("copy", "copy"), ("memset", "memset"))
        )
    )
    return element(
        "section",
        element("h2", "What ran when"),
        element("p", "In virtual time, in which the host takes none. ", key, class_="muted"),
        element("div", strip(report.events), class_="wide"),
    )


def _kernel_table(groups: Sequence[Sequence[Launch]], launches: Sequence[Launch]) -> Markup:
    if not groups:
        return element("section", element("p", "No kernel was launched."))
    titles = (
        "", "kernel", "grid", "block", "launches", "A100 time", "share", "bound by", "occupancy",
        "registers", "shared",
    )  # fmt: skip
    total_s = _total_s(launches)
    head = element("tr", *(element("th", title, scope="col") for title in titles))
    rows = [_kernel_row(number, group, total_s) for number, group in enumerate(groups, 1)]
    return element(
        "section",
        element("h2", "Kernels"),
        element(
            "div",
            element("table", element("thead", head), element("tbody", *rows)),
            class_="wide",
        ),
    )


def _kernel_row(number: int, group: Sequence[Launch], total_s: float) -> Markup:
    launch, time_s = _longest(group), _total_s(group)
    name = element("a", launch.name, href=f"#kernel-{number}")
    return element(
        "tr",
        _number(str(number)),
        element("th", name if number <= _MOST_KERNELS else launch.name, scope="row"),
        element("td", extent_text(launch.grid)),
        element("td", extent_text(launch.block)),
        _number(str(len(group))),
        _number(time_text(time_s)),
        element(
            "td", f"{time_s / total_s:.1%}", class_="number share",
            style=f"--share:{time_s / total_s:.3f}",
        ),
        element("td", launch.bound),
        _number(f"{launch.occupancy:.0%}"),
        _number(str(launch.registers)),
        _number(str(launch.shared_bytes)),
    )  # fmt: skip


def _roofline(groups: Sequence[Sequence[Launch]], chip: ChipSpec) -> Markup:
    points: list[Point] = []
    absent: list[str] = []
    for number, group in enumerate(groups[:_MOST_KERNELS], 1):
        launch = _longest(group)
        point = point_of(number, launch.name, quantities(launch, chip), chip)
        if point is None:
            absent.append(f"{number} {launch.name}")
        else:
            points.append(point)
    if not groups:
        return Markup("")
    note = (
        f"Without floating-point operations, so not on the chart: {', '.join(absent)}."
        if absent
        else ""
    )
    return element(
        "section",
        element("h2", "Roofline"),
        element("p", "Numbers are the table's. " if points else "", note, class_="muted"),
        *([element("div", roofline(points, chip), class_="roofline")] if points else []),
    )


def _kernels(
    groups: Sequence[Sequence[Launch]], metrics: Sequence[Metric], chip: ChipSpec
) -> Markup:
    sources = Sources()
    cards = [
        _kernel(number, group, metrics, chip, sources)
        for number, group in enumerate(groups[:_MOST_KERNELS], 1)
    ]
    rest = len(groups) - len(cards)
    note = [element("p", f"{rest} more kernels are in the table only.", class_="muted")]
    return joined(*cards, *(note if rest else []))


def _kernel(
    number: int,
    group: Sequence[Launch],
    metrics: Sequence[Metric],
    chip: ChipSpec,
    sources: Sources,
) -> Markup:
    launch = _longest(group)
    found = quantities(launch, chip)
    shape = f"{extent_text(launch.grid)} CTAs of {extent_text(launch.block)} threads"
    count = f", the longest of {len(group)} launches" if len(group) > 1 else ""
    why = [element("li", reason) for reason in reasons(launch, chip)]
    return element(
        "section",
        element("h2", element("span", str(number), class_="badge"), " ", launch.name),
        element("p", f"{shape}{count}. Time: {time_text(launch.time_s)}, {band_text(launch)}. "
                f"Energy: {energy_text(launch)}.",
                class_="muted"),
        element("ul", *why, class_="reasons"),
        element(
            "div",
            _figure("Busy, against the launch", part_bars(launch.parts, launch.time_s,
                                                          launch.bound)),
            _figure("Memory", memory_chart(launch, found)),
            class_="pair",
        ),
        _figure("Resident warps an SM, were it otherwise",
                element("div", occupancy_charts(launch, chip), class_="triple")),
        element("h3", "Source lines"),
        source_table(launch, sources),
        _metric_table(metrics, found),
        id=f"kernel-{number}",
        class_="kernel",
    )  # fmt: skip


def _figure(caption: str, chart: Markup) -> Markup:
    return element("figure", element("figcaption", caption), chart)


def _metric_table(metrics: Sequence[Metric], found: dict[str, float]) -> Markup:
    if not metrics:
        return Markup("")
    known = values(metrics, found)
    rows = [
        element(
            "tr",
            element("th", element("code", metric.name), scope="row"),
            _number(number_text(known[metric.name])),
            element("td", metric.unit),
        )
        for metric in metrics
    ]
    table = element("table", element("tbody", *rows))
    return joined(element("h3", "Metrics"), element("div", table, class_="wide"))


def _footer(report: LaunchReport, groups: Sequence[Sequence[Launch]]) -> Markup:
    assumed = {note for group in groups for note in _longest(group).assumed}
    notes = [CAVEAT, *sorted(assumed), *report.notes]
    notes += [f"fault: {fault.text}" for fault in report.faults]
    return element(
        "footer", element("h2", "Notes"), element("ul", *(element("li", note) for note in notes))
    )


def _longest(group: Sequence[Launch]) -> Launch:
    return max(group, key=lambda launch: launch.time_s)


def _total_s(launches: Sequence[Launch]) -> float:
    return sum(launch.time_s for launch in launches)
