"""Source lines of a kernel with their shares, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from va100.profile.html.markup import Markup, element, joined
from va100.profile.launch import Launch
from va100.profile.reasons import line_text
from va100.profile.report_schema import LineCounters, issues_of, sectors_of

_MOST_LINES: Final = 12
_LEAST_SHARE: Final = 0.01
_RATIOS: Final = (
    ("sectors a request", "global_sectors", "global_requests", "{:.3g}"),
    ("L1 hits", "l1_hit_sectors", "l1_load_sectors", "{:.0%}"),
    ("turns a shared request", "shared_wavefronts", "shared_requests", "{:.3g}"),
)
"""Columns that are there where some line has what is counted under the second name."""


class Sources:
    """Source files, read once; one that cannot be read has no lines."""

    def __init__(self) -> None:
        self._files: dict[str, list[str]] = {}

    def text(self, line: LineCounters) -> str:
        """What is written in a line."""
        if line.text or not line.file:
            return line.text
        if line.file not in self._files:
            self._files[line.file] = _read(line.file)
        lines = self._files[line.file]
        return lines[line.line - 1].strip() if 0 < line.line <= len(lines) else ""


def source_table(launch: Launch, sources: Sources) -> Markup:
    """Lines with the largest shares, the first of a file first."""
    issues, sectors = sum(map(issues_of, launch.lines)), sum(map(sectors_of, launch.lines))
    if not issues:
        return element("p", "No line information: compile with -lineinfo.", class_="muted")
    lines = [line for line in launch.lines if _largest(line, issues, sectors) >= _LEAST_SHARE]
    lines.sort(key=lambda line: -_largest(line, issues, sectors))
    shown = sorted(lines[:_MOST_LINES], key=lambda line: (line.file, line.line))
    ratios = [ratio for ratio in _RATIOS if any(line.counters.get(ratio[2]) for line in shown)]
    rows = [
        element(
            "tr", *_shares(line, issues, sectors, sources),
            *(_ratio_cell(line, *ratio[1:]) for ratio in ratios), _lanes_cell(line),
        )
        for line in shown
    ]  # fmt: skip
    titles = ("line", "source", "instructions", "sectors", *(r[0] for r in ratios), "lanes")
    head = element("tr", *(element("th", title, scope="col") for title in titles))
    table = element("table", element("thead", head), element("tbody", *rows), class_="lines")
    return joined(element("div", table, class_="wide"), *_notes(launch, len(shown)))


def _notes(launch: Launch, shown: int) -> list[Markup]:
    said = []
    if len(launch.lines) > shown:
        said.append(f"{len(launch.lines) - shown} lines with less are left out.")
    if not any(line.file for line in launch.lines):
        said.append("These are lines of the PTX: -lineinfo gives those of the source.")
    return [element("p", " ".join(said), class_="muted")] if said else []


def _shares(
    line: LineCounters, issues: float, sectors: float, sources: Sources
) -> tuple[Markup, ...]:
    return (
        element("th", line_text(line), scope="row"),
        element("td", element("code", sources.text(line))),
        _share_cell(issues_of(line) / issues),
        _share_cell(sectors_of(line) / sectors if sectors else 0.0),
    )


def _ratio_cell(line: LineCounters, counted: str, over: str, form: str) -> Markup:
    whole = float(line.counters.get(over, 0.0))
    amount = float(line.counters.get(counted, 0.0))
    return element("td", form.format(amount / whole) if whole else "", class_="number")


def _lanes_cell(line: LineCounters) -> Markup:
    """Lanes that take part in an instruction, in the mean."""
    issues, lanes = issues_of(line), float(line.counters.get("thread_instructions", 0.0))
    return element("td", f"{lanes / issues:.3g}" if issues else "", class_="number")


def _share_cell(share: float) -> Markup:
    """A percentage with a bar behind it."""
    if not share:
        return element("td", "", class_="number")
    return element("td", f"{share:.1%}", class_="number share", style=f"--share:{share:.3f}")


def _largest(line: LineCounters, issues: float, sectors: float) -> float:
    return max(issues_of(line) / issues, sectors_of(line) / sectors if sectors else 0.0)


def _read(name: str) -> list[str]:
    try:
        return Path(name).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
