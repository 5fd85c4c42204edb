"""Limits that a run is to keep: ``time > 1.1x`` fails it where a kernel got slower by a tenth.

A criterion is a quantity, a comparison and a number; the number is relative with ``x`` or ``%`` of
the base behind it, and absolute with a unit or none.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from va100.errors import SetupError
from va100.profile.launch import Launch
from va100.profile.metrics import METRICS
from va100.profile.quantities import quantities
from va100.spec.model import ChipSpec
from va100.units import GB, GIB, KB, KIB, MB, MIB, MS, NS, US, time_text

COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
UNITS: Final[Mapping[str, float]] = {
    "": 1.0, "s": 1.0, "ms": MS, "us": US, "ns": NS, "%": 0.01, "J": 1.0, "mJ": 1e-3, "uJ": 1e-6,
    "B": 1.0, "kB": KB, "MB": MB, "GB": GB, "KiB": KIB, "MiB": MIB, "GiB": GIB,
}  # fmt: skip
RELATIVE: Final = "x"
_OF_METRICS: Final[Mapping[str, float]] = {"nsecond": NS, "%": 0.01}
"""Units of metrics that are no base units."""
NAMES: Final[Mapping[str, str]] = {
    "time": "time_s",
    "energy": "energy_j",
    "occupancy": "occupancy_ratio",
    "registers": "registers",
    "shared": "shared_bytes",
}
"""Short names for what most criteria are about; any counter and any metric may be named, too."""

_OWN_NAMES: Final = {quantity: name for name, quantity in NAMES.items()}

_NAME: Final = re.compile(r"\s*([A-Za-z_][\w. ]*?)\s*(?=[<>=!]|$)")
_COMPARISON: Final = re.compile(r"\s*([<>]=?|==|!=)")
_NUMBER: Final = re.compile(r"\s*(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)")
_UNIT: Final = re.compile(r"\s*([A-Za-z%]*)\s*$")


class CriterionError(ValueError):
    """An expression that is no criterion, with the place where it stops being one."""

    def __init__(self, problem: str, *, text: str, column: int) -> None:
        self.problem = problem
        self.text = text
        self.column = column
        super().__init__(f"{problem}\n    {text}\n    {' ' * column}^")


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """What a run is failed for."""

    text: str
    quantity: str
    """In :func:`va100.profile.quantities.quantities`, or a metric."""
    comparison: str
    number: float
    relative: bool
    """Whether the number is times the base's."""

    def holds(self, value: float, base: float | None) -> bool:
        """Whether a value fails the run; a base is needed where the number is relative."""
        limit = self.number
        if self.relative:
            if base is None:
                raise ValueError(f"{self.text} needs a base")
            limit *= base
        return COMPARISONS[self.comparison](value, limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offence:
    """A kernel that fails a run."""

    criterion: Criterion
    launch: Launch
    value: float
    base: float | None

    def __str__(self) -> str:
        """Name the kernel and the numbers."""
        shape = f"{self.launch.name} {self.launch.grid} x {self.launch.block}"
        name = self.criterion.quantity
        told = f"{_OWN_NAMES.get(name, name)} is {_spelled(name, self.value)}"
        if self.criterion.relative and self.base is not None:
            ratio = f", {self.value / self.base:.4g}x" if self.base else ""
            told += f", was {_spelled(name, self.base)}{ratio}"
        return f"{shape}: {told}, fails {self.criterion.text!r}"


def parse_criterion(text: str) -> Criterion:
    """Read ``QUANTITY COMPARISON NUMBER[UNIT]``.

    Raises
    ------
    CriterionError
    """
    name = _taken(_NAME, text, 0, "a quantity, such as time, registers or a metric, is missing")
    comparison = _taken(
        _COMPARISON, text, name.end(), f"a comparison is missing, one of {' '.join(COMPARISONS)}"
    )
    number = _taken(_NUMBER, text, comparison.end(), "a number is missing, such as 1.1x or 10us")
    unit = _taken(_UNIT, text, number.end(), "this is too much")
    spelled = unit[1]
    relative = spelled == RELATIVE
    if not relative and spelled not in UNITS:
        known = ", ".join(filter(None, UNITS))
        raise CriterionError(
            f"{spelled} is no unit, which are x, {known}", text=text, column=unit.start(1)
        )
    return Criterion(
        text=text.strip(),
        quantity=NAMES.get(name[1], name[1]),
        comparison=comparison[1],
        number=float(number[1]) * (1.0 if relative else _scale(spelled, name[1])),
        relative=relative,
    )


def _scale(unit: str, name: str) -> float:
    """From a number with a unit to the unit of what it is compared with; none is that one's."""
    if not unit or name not in METRICS:
        return UNITS[unit]
    return UNITS[unit] / _OF_METRICS.get(METRICS[name].unit, 1.0)


def offences(
    criteria: Sequence[Criterion],
    pairs: Sequence[tuple[Launch, Launch | None]],
    chip: ChipSpec,
) -> list[Offence]:
    """Find the launches that fail a run.

    Parameters
    ----------
    pairs : sequence of (launch, base)
        A launch without a base keeps every relative criterion.

    Raises
    ------
    SetupError
        A criterion is about what is not known of a launch.
    """
    found = []
    for launch, base in pairs:
        here = quantities(launch, chip)
        there = quantities(base, chip) if base is not None else None
        for criterion in criteria:
            if criterion.relative and there is None:
                continue
            value = _value(criterion, here, launch)
            before = _value(criterion, there, launch) if there is not None else None
            if criterion.holds(value, before):
                found.append(Offence(criterion=criterion, launch=launch, value=value, base=before))
    return found


def _value(criterion: Criterion, known: Mapping[str, float], launch: Launch) -> float:
    name = criterion.quantity
    metric = METRICS.get(name)
    value = metric.value(known) if metric is not None else known.get(name)
    if value is None:
        raise SetupError(
            f"{criterion.text!r}: {name} is not known of {launch.name}",
            remedy=f"name one of {', '.join(NAMES)}, a counter of --json, or a metric",
        )
    return value


def _spelled(quantity: str, value: float) -> str:
    """A value as people read it."""
    if quantity.endswith("_s"):
        return time_text(value)
    if quantity == NAMES["occupancy"]:
        return f"{value:.0%}"
    return f"{value:.6g}"


def _taken(pattern: re.Pattern[str], text: str, start: int, problem: str) -> re.Match[str]:
    found = pattern.match(text, start)
    if found is None:
        column = len(text[:start]) + len(text[start:]) - len(text[start:].lstrip())
        raise CriterionError(problem, text=text, column=column)
    return found
