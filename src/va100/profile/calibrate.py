"""A person's own measurements beside a profile's predictions, before and after calibration.

How factors are found is in :mod:`va100.perf.calibration`.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

from va100.errors import SetupError
from va100.perf.calibration import LEAST, MOST, Calibration, Predict, calibrated, left_out_errors
from va100.perf.kernel import estimate
from va100.profile.launch import Launch
from va100.profile.table import extent_text
from va100.profile.whatif import launched
from va100.spec.model import ChipSpec
from va100.units import MS, NS, US, time_text
from va100.work import Dim3

TIME_COLUMNS: Final[Mapping[str, float]] = {
    "time_s": 1.0, "time_ms": MS, "time_us": US, "time_ns": NS,
}  # fmt: skip
_HINT: Final = "columns: kernel, time_us (or time_s, time_ms, time_ns), and grid, block if needed"
_FEWEST_LEFT_OUT: Final = 3
_MOST_LEFT_OUT: Final = 60


@dataclass(frozen=True, slots=True)
class Measurement:
    """One row of a person's table."""

    kernel: str
    grid: Dim3 | None
    block: Dim3 | None
    time_s: float
    line: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """One launch that was measured."""

    name: str
    shape: str
    measured_s: float
    before_s: float
    after_s: float


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """What calibration did for the launches it was made from."""

    factors: Calibration
    comparisons: tuple[Comparison, ...]
    left_out: tuple[float, ...]
    """Relative errors of launches under the factors of all others; empty where there are few."""


def read_measurements(path: Path) -> list[Measurement]:
    """Read a table of measured launches.

    Raises
    ------
    SetupError
        The file, a column or a row is not what it should be; the line is named.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            columns = [name.strip() for name in reader.fieldnames or ()]
            unit = next((name for name in TIME_COLUMNS if name in columns), None)
            if "kernel" not in columns or unit is None:
                raise SetupError(f"{path} has columns {', '.join(columns)}", remedy=_HINT)
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SetupError(f"{path}: {error}", remedy=_HINT) from error
    return [_measurement(path, line, row, unit) for line, row in rows]


def report(
    launches: Sequence[Launch], measurements: Sequence[Measurement], chip: ChipSpec
) -> CalibrationReport:
    """Calibrate to the launches that were measured.

    Raises
    ------
    SetupError
        A measurement fits no launch of the profile.
    """
    pairs = [(_launch_of(row, launches), row) for row in measurements]
    if not pairs:
        raise SetupError("the table holds no measurement", remedy=_HINT)
    known = [(_predictor(launch, chip), row.time_s) for launch, row in pairs]
    factors = calibrated(known)
    comparisons = tuple(
        Comparison(
            name=launch.name,
            shape=f"{extent_text(launch.grid)} x {extent_text(launch.block)}",
            measured_s=row.time_s,
            before_s=predict(Calibration()),
            after_s=predict(factors),
        )
        for (launch, row), (predict, _) in zip(pairs, known, strict=True)
    )
    enough = _FEWEST_LEFT_OUT <= len(known) <= _MOST_LEFT_OUT
    return CalibrationReport(factors, comparisons, tuple(left_out_errors(known) if enough else ()))


def report_text(found: CalibrationReport) -> str:
    """A row a launch, then what became of the errors."""
    width = max(len(f"{each.name}, {each.shape}") for each in found.comparisons)
    lines = [f"{'kernel':{width}}  {'measured':>9}  {'before':>9}  {'':7}  {'after':>9}"]
    for each in found.comparisons:
        before, after = each.before_s / each.measured_s - 1, each.after_s / each.measured_s - 1
        lines.append(
            f"{f'{each.name}, {each.shape}':{width}}  {time_text(each.measured_s):>9}  "
            f"{time_text(each.before_s):>9}  {before:+7.1%}  {time_text(each.after_s):>9}  "
            f"{after:+7.1%}"
        )
    factors = ", ".join(f"{name} {value:.3f}" for name, value in asdict(found.factors).items())
    lines += ["", f"times as fast as the model: {factors}", f"mean error: {_means(found)}"]
    return "\n".join(lines)


def save(factors: Calibration, path: Path) -> None:
    """Keep factors where ``VA100_CALIBRATION`` may name them."""
    path.write_text(json.dumps(asdict(factors), indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> Calibration:
    """Read factors that were kept.

    Raises
    ------
    SetupError
        The file is missing or holds something else.
    """
    names = {entry.name for entry in fields(Calibration)}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if set(found) != names or not all(LEAST <= float(x) <= MOST for x in found.values()):
            raise ValueError(f"not {', '.join(sorted(names))} from {LEAST} to {MOST}")
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise SetupError(
            f"{path} holds no calibration: {error}", remedy="make one with va100 calibrate --save"
        ) from error
    return Calibration(**{name: float(value) for name, value in found.items()})


def _means(found: CalibrationReport) -> str:
    before = [abs(each.before_s / each.measured_s - 1) for each in found.comparisons]
    after = [abs(each.after_s / each.measured_s - 1) for each in found.comparisons]
    text = f"{sum(before) / len(before):.1%} before, {sum(after) / len(after):.1%} after"
    if found.left_out:
        mean = sum(abs(error) for error in found.left_out) / len(found.left_out)
        return f"{text}, {mean:.1%} for launches left out of the fit"
    return f"{text}; too few or too many launches to leave some out of the fit"


def _measurement(path: Path, line: int, row: Mapping[str, str | None], unit: str) -> Measurement:
    cells = {(name or "").strip(): (value or "").strip() for name, value in row.items()}
    try:
        time_s = float(cells[unit]) * TIME_COLUMNS[unit]
        if not 0 < time_s < float("inf"):
            raise ValueError(f"{unit} is {cells[unit]}, which no launch takes")
        return Measurement(
            cells["kernel"], _extent(cells.get("grid")), _extent(cells.get("block")), time_s, line
        )
    except (ValueError, TypeError) as error:
        raise SetupError(f"{path}, line {line}: {error}", remedy=_HINT) from error


def _extent(text: str | None) -> Dim3 | None:
    if not text:
        return None
    return Dim3(*(int(part) for part in text.strip("()").replace(",", "x").split("x")))


def _launch_of(row: Measurement, launches: Sequence[Launch]) -> Launch:
    fitting = [
        launch
        for launch in launches
        if row.kernel in (launch.name, launch.kernel)
        and row.grid in (None, launch.grid)
        and row.block in (None, launch.block)
    ]
    shapes: dict[tuple[Dim3, Dim3], Launch] = defaultdict()
    for launch in fitting:
        shapes.setdefault((launch.grid, launch.block), launch)
    if len(shapes) != 1:
        what = "several shapes, so grid and block are needed" if shapes else "no launch"
        raise SetupError(f"line {row.line}: the profile has {what} of {row.kernel}", remedy=_HINT)
    return next(iter(shapes.values()))


def _predictor(launch: Launch, chip: ChipSpec) -> Predict:
    counters, config, resources = launched(launch)

    def predict(factors: Calibration) -> float:
        return estimate(counters, config, resources, factors.applied(chip)).duration_s

    return predict
