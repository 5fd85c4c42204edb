"""A user's own measurements of serving steps: what they shift the model's times by."""

from __future__ import annotations

import csv
import statistics
from dataclasses import dataclass
from pathlib import Path

from va100.errors import PlanError
from va100.plan.serving import StepModel

COLUMNS = ("phase", "batch", "tokens", "context", "measured_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Measured over predicted, by phase, and how far rows were off before and after."""

    rows: int
    prefill_scale: float
    decode_scale: float
    error_before: float
    error_after: float
    """Largest, relative to the measurement, of nine rows of ten."""


def calibrate(path: Path, steps: StepModel) -> Calibration:
    """Fit one factor a phase to rows of ``phase,batch,tokens,context,measured_s``.

    ``phase`` is ``prefill`` (``tokens`` new ones of each of ``batch`` prompts, ``context`` long
    after them) or ``decode`` (``batch`` sequences, ``context`` long on average).

    Raises
    ------
    PlanError
        The file cannot be read, or a row is wrong.
    """
    rows = _rows(path)
    ratios: dict[str, list[float]] = {"prefill": [], "decode": []}
    for phase, batch, tokens, context, measured_s in rows:
        parts = [(tokens, max(context, tokens))] * batch if phase == "prefill" else []
        predicted_s, _ = steps.step(parts, 0 if parts else batch, float(max(context, 1)))
        ratios[phase].append(measured_s / predicted_s)
    scales = {phase: statistics.median(found) if found else 1.0 for phase, found in ratios.items()}
    before = [abs(1 / ratio - 1) for found in ratios.values() for ratio in found]
    after = [abs(scales[phase] / r - 1) for phase, found in ratios.items() for r in found]
    return Calibration(
        rows=len(rows),
        prefill_scale=scales["prefill"],
        decode_scale=scales["decode"],
        error_before=_ninth(before),
        error_after=_ninth(after),
    )


def _ninth(errors: list[float]) -> float:
    ranked = sorted(errors)
    return ranked[min(int(0.9 * len(ranked)), len(ranked) - 1)]


def _rows(path: Path) -> list[tuple[str, int, int, int, float]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise PlanError(
                    f"{path}: no column {', '.join(missing)}", hint=f"columns: {','.join(COLUMNS)}"
                )
            found = [_row(row, f"{path}:{line}") for line, row in enumerate(reader, 2)]
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}",
            hint="give a CSV",
        ) from error
    if not found:
        raise PlanError(f"{path}: no rows", hint="give at least one measurement")
    return found


def _row(row: dict[str, str], where: str) -> tuple[str, int, int, int, float]:
    phase = (row["phase"] or "").strip()
    try:
        batch, tokens, context = (int(row[name]) for name in COLUMNS[1:4])
        measured_s = float(row["measured_s"])
    except (TypeError, ValueError) as error:
        raise PlanError(f"{where}: {error}", hint="three whole numbers and seconds") from error
    if phase not in ("prefill", "decode") or batch < 1 or not 0 < measured_s < float("inf"):
        raise PlanError(f"{where}: {phase!r}, batch {batch}, {measured_s} s", hint="correct it")
    return phase, batch, max(tokens, 1), context, measured_s
