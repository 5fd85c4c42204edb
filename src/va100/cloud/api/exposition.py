"""Figures for Prometheus, in its text form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from va100.cloud.site import Site


def exposition(site: Site) -> str:
    """The site's figures as Prometheus reads them."""
    return "\n".join(_lines(site)) + "\n"


def _lines(site: Site) -> Iterator[str]:
    figures = site.operators.figures()
    yield from _metric("cards", "Cards of the fleet", [("", figures["cards"])])
    yield from _metric("eighths", "Memory slices of the fleet", [("", figures["eighths_total"])])
    yield from _metric(
        "eighths_used", "Memory slices that instances have", [("", figures["eighths_used"])]
    )
    yield from _metric("waiting", "Requests that wait for a place", [("", figures["waiting"])])
    yield from _metric(
        "instances",
        "Instances by state",
        [(f'{{state="{state}"}}', count) for state, count in figures["instances"].items()],
    )
    yield from _metric(
        "fragmentation_ratio",
        "Free memory slices that no whole card can be made of",
        [(f'{{model="{m}"}}', ratio) for m, ratio in figures["fragmentation_ratio"].items()],
    )
    yield from _metric(
        "stranded_eighths",
        "Free memory slices on which nothing fits",
        [(f'{{model="{m}"}}', count) for m, count in figures["stranded_eighths"].items()],
    )
    yield from _metric(
        "revenue_last_hour_usd",
        "What running instances earned in the last hour",
        [("", figures["last_hour_micro"] / 1e6)],
    )
    yield from _metric("power_watts", "Estimated draw of all cards", [("", figures["power_w"])])


def _metric(name: str, text: str, values: Iterable[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP va100_cloud_{name} {text}"
    yield f"# TYPE va100_cloud_{name} gauge"
    for labels, value in values:
        yield f"va100_cloud_{name}{labels} {value:g}"
