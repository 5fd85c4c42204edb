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
    rows = [_row(line, issues, sectors, sources) for line in shown]
    left_out = len(launch.lines) - len(shown)
    note = [element("p", f"{left_out} lines with less are left out.", class_="muted")]
    titles = ("line", "source", "instructions", "sectors", "sectors a request", "lanes")
    head = element("tr", *(element("th", title, scope="col") for title in titles))
    table = element("table", element("thead", head), element("tbody", *rows), class_="lines")
    return joined(element("div", table, class_="wide"), *(note if left_out else []))


def _row(line: LineCounters, issues: float, sectors: float, sources: Sources) -> Markup:
    own, requests = issues_of(line), float(line.counters.get("global_requests", 0.0))
    each = f"{sectors_of(line) / requests:.3g}" if requests else ""
    lanes = float(line.counters.get("thread_instructions", 0.0)) / own if own else 0.0
    return element(
        "tr",
        element("th", line_text(line), scope="row"),
        element("td", element("code", sources.text(line))),
        _share_cell(own / issues),
        _share_cell(sectors_of(line) / sectors if sectors else 0.0),
        element("td", each, class_="number"),
        element("td", f"{lanes:.3g}" if own else "", class_="number"),
    )


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
