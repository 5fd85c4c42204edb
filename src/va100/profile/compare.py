"""Two runs beside each other: which launches belong together, and how they differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final

from va100.profile.launch import Launch
from va100.profile.table import extent_text
from va100.units import time_text

_TITLES: Final = ("kernel", "grid", "block", "launches", "base", "now", "ratio", "bound by")
_LEFT: Final = frozenset({0, 1, 2, 7})
_STEADY: Final = 0.005
"""Relative difference up to which a time counts as the same."""


def paired(
    launches: Sequence[Launch], base: Sequence[Launch]
) -> list[tuple[Launch, Launch | None]]:
    """Find for each launch the one that did the same in the base run, if there is one.

    The n-th launch of a kernel in a shape belongs to the n-th; where shapes have changed, the n-th
    launch of a kernel that has no other partner does.
    """
    return [
        (launch, match) for launch, match in zip(launches, _matches(launches, base), strict=True)
    ]


def comparison_text(launches: Sequence[Launch], base: Sequence[Launch]) -> str:
    """Lay out both runs' times by kernel and shape, with their ratio; then what is in one only."""
    pairs = paired(launches, base)
    rows: list[tuple[str, ...]] = [_TITLES]
    groups: dict[tuple[str, str, str], list[tuple[Launch, Launch]]] = defaultdict(list)
    for launch, before in pairs:
        if before is not None:
            shape = (extent_text(launch.grid), extent_text(launch.block))
            groups[(launch.name, *shape)].append((launch, before))
    rows += [_row(name, grid, block, group) for (name, grid, block), group in groups.items()]
    matched = {id(before) for _, before in pairs if before is not None}
    lines = _laid_out(rows) if len(rows) > 1 else ["no kernel is in both runs"]
    lines += _only("now", [launch for launch, before in pairs if before is None])
    lines += _only("in the base", [before for before in base if id(before) not in matched])
    if matched:
        lines.append(_total(pairs))
    return "\n".join(lines)


def _matches(launches: Sequence[Launch], base: Sequence[Launch]) -> list[Launch | None]:
    found: list[Launch | None] = [None] * len(launches)
    left = list(base)
    for key in (_shape_of, _name_of):
        waiting: dict[tuple[str, ...], list[Launch]] = defaultdict(list)
        for before in left:
            waiting[key(before)].append(before)
        for index, launch in enumerate(launches):
            queue = waiting[key(launch)]
            if found[index] is None and queue:
                found[index] = queue.pop(0)
        left = [before for queue in waiting.values() for before in queue]
    return found


def _shape_of(launch: Launch) -> tuple[str, ...]:
    return (launch.name, str(launch.grid), str(launch.block))


def _name_of(launch: Launch) -> tuple[str, ...]:
    return (launch.name,)


def _row(
    name: str, grid: str, block: str, group: Sequence[tuple[Launch, Launch]]
) -> tuple[str, ...]:
    now_s = sum(launch.time_s for launch, _ in group)
    base_s = sum(before.time_s for _, before in group)
    launch, before = group[0]
    bound = launch.bound if launch.bound == before.bound else f"{before.bound} -> {launch.bound}"
    ratio = _ratio(now_s, base_s)
    return (
        name, grid, block, str(len(group)), time_text(base_s), time_text(now_s), ratio, bound,
    )  # fmt: skip


def _ratio(now_s: float, base_s: float) -> str:
    if not base_s:
        return "?"
    ratio = now_s / base_s
    return "same" if abs(ratio - 1) <= _STEADY else f"{ratio:.2f}x"


def _laid_out(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            _justified(column)(cell, width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    rule = "-" * max(map(len, lines))
    return [lines[0], rule, *lines[1:], rule]


def _justified(column: int) -> Callable[[str, int], str]:
    return str.ljust if column in _LEFT else str.rjust


def _only(where: str, launches: Sequence[Launch]) -> list[str]:
    names = list(dict.fromkeys(launch.name for launch in launches))
    return [f"only {where}: {', '.join(names)} ({len(launches)} launches)"] if names else []


def _total(pairs: Sequence[tuple[Launch, Launch | None]]) -> str:
    both = [(launch, before) for launch, before in pairs if before is not None]
    now_s = sum(launch.time_s for launch, _ in both)
    base_s = sum(before.time_s for _, before in both)
    return f"in both: {time_text(base_s)} before, {time_text(now_s)} now, {_ratio(now_s, base_s)}"
