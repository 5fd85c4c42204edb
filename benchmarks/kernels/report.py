"""Tables and bars from what was measured; ratios, since milliseconds are this machine's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.kernels.measure import Row
from benchmarks.kernels.peers import PeerTimes

COMPUTE_BOUND = frozenset({"alu", "sgemm32", "sgemm16", "sgemmrt", "mandelbrot", "mma"})


@dataclass(slots=True, kw_only=True)
class Results:
    """One run of the benchmark."""

    small: list[Row] = field(default_factory=list)
    large: list[Row] = field(default_factory=list)
    numba: PeerTimes = field(default_factory=PeerTimes)
    pocl: PeerTimes = field(default_factory=PeerTimes)
    rolled: PeerTimes = field(default_factory=PeerTimes)
    """PoCL without the unrolling that the kernels ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A promise, what was measured of it, and whether it holds; ``None`` when not measured."""

    text: str
    value: float | None
    limit: float
    at_least: bool

    @property
    def met(self) -> bool | None:
        """Whether the promise holds."""
        if self.value is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def ratio(over: float | None, under: float | None) -> float | None:
    """A quotient of things measured."""
    return None if over is None or under is None or not under else over / under


def geomean(values: Iterable[float | None]) -> float | None:
    """Geometric mean of what was measured."""
    known = [v for v in values if v is not None]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


def versus(row: Row, contender: str) -> float | None:
    """Our speed over a C contender's, one core."""
    return ratio(row.cpu_s(contender), row.cpu_s("ours"))


def versus_peer(row: Row, peer: PeerTimes) -> float | None:
    """Our speed over a peer's, per unit of work."""
    theirs = peer.seconds_per_work.get(row.kernel)
    return ratio(None if theirs is None else theirs * row.work, row.cpu_s("ours"))


def counting(row: Row) -> float | None:
    """Time with block counters over time without."""
    return ratio(row.cpu_s("ours"), row.cpu_s("uncounted"))


def scaling(row: Row) -> float | None:
    """Speed-up by the second worker."""
    return ratio(row.wall_s("ours"), row.wall_s("two"))


def _extreme(values: Iterable[float | None], *, largest: bool) -> float | None:
    known = [v for v in values if v is not None]
    return (max if largest else min)(known) if known else None


def bars(results: Results) -> list[Bar]:
    """The promises of the first version."""
    rows = {row.kernel: row for row in results.small}
    big = {row.kernel: row for row in results.large}
    saxpy, tile = rows.get("saxpy"), rows.get("sgemm32")
    large_tile = big.get("sgemm32")
    loads = [None if r.cached_load_s is None else r.cached_load_s * 1e3 for r in results.small]
    plain = [versus(r, "plain") for r in results.small]
    slow = None if saxpy is None else ratio(saxpy.cpu_s("ours"), saxpy.cpu_s("plain"))
    found = [
        ("geometric mean of speed / plain C", geomean(plain), 0.8, True),
        ("saxpy: time / plain C", slow, 1.6, False),
        ("sgemm32, 256: speed / tuned C", tile and versus(tile, "tuned"), 0.5, True),
        ("sgemm32, 1024: speed / tuned C", large_tile and versus(large_tile, "tuned"), 0.5, True),
        (
            "least speed / numba's simulator",
            _extreme((versus_peer(r, results.numba) for r in results.small), largest=False),
            10_000.0,
            True,
        ),
        (
            "geometric mean of speed / PoCL",
            geomean(versus_peer(r, results.pocl) for r in results.small),
            6.0,
            True,
        ),
        (
            "two workers: least speed-up of a compute-bound kernel",
            _extreme(
                (scaling(r) for r in results.large if r.kernel in COMPUTE_BOUND), largest=False
            ),
            1.6,
            True,
        ),
        (
            "block counters: geometric mean of time with / without",
            geomean(counting(r) for r in results.small),
            1.1,
            False,
        ),
        ("slowest cached kernel load, ms", _extreme(loads, largest=True), 2.0, False),
    ]
    return [Bar(text=t, value=v, limit=n, at_least=a) for t, v, n, a in found]


# ------------------------------------------------------------------ text


def number(value: float | None, digits: int = 3, unit: float = 1.0) -> str:
    """A value with so many significant digits; a dash when it was not measured."""
    if value is None:
        return "-"
    scaled = value * unit
    if scaled >= 1000:
        rounded = round(scaled, digits - 1 - math.floor(math.log10(scaled)))
        return f"{rounded:,.0f}"
    return f"{scaled:.{digits}g}"


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    widths = [max(len(row[i]) for row in (heads, *lines)) for i in range(len(heads))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            c.ljust(w) if i == 0 else c.rjust(w)
            for i, (c, w) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join("-" * (w + 1) + ("-" if i == 0 else ":") for i, w in enumerate(widths))
    return "\n".join([line(heads), rule + "|", *map(line, lines)])


def main_table(results: Results) -> str:
    """One core, small sizes."""
    heads = (
        "kernel", "thread instr.", "plain C ms", "tuned C ms", "va100 ms", "2 workers ms",
        "x plain C", "x tuned C", "x numba sim", "x PoCL", "x PoCL rolled", "counters",
    )  # fmt: skip
    lines = []
    for row in results.small:
        instructions = row.thread_instructions
        lines.append(
            (
                row.kernel,
                "-" if instructions is None else f"{instructions / 1e6:.1f} M",
                number(row.cpu_s("plain"), unit=1e3),
                number(row.cpu_s("tuned"), unit=1e3),
                number(row.cpu_s("ours"), unit=1e3),
                number(row.wall_s("two"), unit=1e3),
                number(versus(row, "plain")),
                number(versus(row, "tuned")),
                number(versus_peer(row, results.numba), 2),
                number(versus_peer(row, results.pocl)),
                number(versus_peer(row, results.rolled)),
                number(counting(row)),
            )
        )
    means = (
        geomean(versus(r, "plain") for r in results.small),
        geomean(versus(r, "tuned") for r in results.small),
        geomean(versus_peer(r, results.numba) for r in results.small),
        geomean(versus_peer(r, results.pocl) for r in results.small),
        geomean(versus_peer(r, results.rolled) for r in results.small),
        geomean(counting(r) for r in results.small),
    )
    digits = (3, 3, 2, 3, 3, 3)
    cells = [number(m, d) for m, d in zip(means, digits, strict=True)]
    lines.append(("geometric mean", "", "", "", "", "", *cells))
    notes = [f"{row.kernel}: {row.note}." for row in results.small if row.note]
    notes += [
        f"{peer}: not measured ({times.reason})."
        for peer, times in (("numba's simulator", results.numba), ("PoCL", results.pocl))
        if times.reason
    ]
    return "\n".join([table(heads, lines), "", *notes]).rstrip()


def load_table(results: Results) -> str:
    """What a kernel costs before it runs."""
    heads = ("kernel", "compile ms", "cached load ms", "parse PTX ms")
    lines = [
        (
            row.kernel,
            number(row.compile_s, unit=1e3),
            number(row.cached_load_s, unit=1e3),
            number(row.parse_s, unit=1e3),
        )
        for row in results.small
        if row.compile_s is not None
    ]
    return table(heads, lines)


def large_table(results: Results) -> str:
    """Two cores, large sizes, wall clock."""
    heads = (
        "kernel", "size", "plain C ms", "tuned C ms", "1 worker ms", "2 workers ms", "scaling",
        "x plain C", "x tuned C",
    )  # fmt: skip
    lines = [
        (
            row.kernel,
            row.shape,
            number(row.wall_s("plain"), unit=1e3),
            number(row.wall_s("tuned"), unit=1e3),
            number(row.wall_s("ours"), unit=1e3),
            number(row.wall_s("two"), unit=1e3),
            number(scaling(row)),
            number(versus(row, "plain")),
            number(versus(row, "tuned")),
        )
        for row in results.large
    ]
    return table(heads, lines)


def bar_table(results: Results) -> str:
    """Promises and whether they hold."""
    words = {None: "not measured", True: "met", False: "missed"}
    lines = [
        (
            bar.text,
            f"{'at least' if bar.at_least else 'at most'} {number(bar.limit)}",
            number(bar.value),
            words[bar.met],
        )
        for bar in bars(results)
    ]
    return table(("bar", "promised", "measured", ""), lines)


def text(results: Results) -> str:
    """The whole report."""
    parts = ["### One core", main_table(results), "### Before the first run", load_table(results)]
    if results.large:
        parts += ["### Two cores, large sizes", large_table(results)]
    parts += ["### Bars", bar_table(results)]
    return "\n\n".join(parts)


def as_json(results: Results) -> dict[str, object]:
    """The same for programs; seconds and ratios."""
    return {
        "small": [_row_json(row, results) for row in results.small],
        "large": [_row_json(row, results) | {"scaling": scaling(row)} for row in results.large],
        "bars": [
            {
                "bar": b.text,
                "value": b.value,
                "limit": b.limit,
                "at_least": b.at_least,
                "met": b.met,
            }
            for b in bars(results)
        ],
        "missing": {"numba": results.numba.reason, "pocl": results.pocl.reason},
    }


def _row_json(row: Row, results: Results) -> dict[str, object]:
    return {
        "kernel": row.kernel,
        "shape": row.shape,
        "note": row.note,
        "thread_instructions": row.thread_instructions,
        "cpu_s": {name: best.cpu_s for name, best in row.best.items() if name != "two"},
        "wall_s": {name: best.wall_s for name, best in row.best.items()},
        "speed_over_plain_c": versus(row, "plain"),
        "speed_over_tuned_c": versus(row, "tuned"),
        "speed_over_numba_simulator": versus_peer(row, results.numba),
        "speed_over_pocl": versus_peer(row, results.pocl),
        "counting": counting(row),
        "compile_s": row.compile_s,
        "cached_load_s": row.cached_load_s,
        "parse_s": row.parse_s,
    }


__all__ = ["Bar", "Results", "as_json", "bars", "text"]
