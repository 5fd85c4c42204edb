"""Requests that come to a server: by chance at a rate, or from a recorded trace."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from va100.errors import PlanError

_MASK: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Request:
    """One request: when it comes, tokens of its prompt, tokens it will get."""

    arrival_s: float
    prompt: int
    output: int


class Chance:
    """A stream of chance numbers from a seed, the same everywhere (SplitMix64)."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def uniform(self) -> float:
        """Above 0, at most 1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((mixed ^ (mixed >> 31)) >> 11) / 2**53 + 2**-53

    def exponential(self, mean: float) -> float:
        """Time between two events that come at random."""
        return -mean * math.log(self.uniform())

    def spread(self, mean: float, variation: float) -> float:
        """Log-normal with this mean and ratio of deviation to mean; the mean itself at 0."""
        if not variation:
            return mean
        sigma = math.sqrt(math.log(1 + variation**2))
        angle = 2 * math.pi * self.uniform()
        normal = math.sqrt(-2 * math.log(self.uniform())) * math.cos(angle)
        return mean * math.exp(sigma * normal - sigma**2 / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonLoad:
    """Requests at random at a mean rate, lengths spread about their means."""

    per_s: float
    duration_s: float
    prompt: int
    output: int
    variation: float = 0.0
    seed: int = 1

    def requests(self) -> Iterator[Request]:
        """In order of arrival."""
        chance = Chance(self.seed)
        now = chance.exponential(1 / self.per_s)
        while now < self.duration_s:
            prompt = max(round(chance.spread(self.prompt, self.variation)), 1)
            output = max(round(chance.spread(self.output, self.variation)), 1)
            yield Request(now, prompt, output)
            now += chance.exponential(1 / self.per_s)


def read_trace(path: Path) -> list[Request]:
    """Requests of a CSV as Azure publishes them: TIMESTAMP, ContextTokens, GeneratedTokens.

    Raises
    ------
    PlanError
        It cannot be read, or a line is not of that form.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return _requests(csv.DictReader(file), str(path))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PlanError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}",
            hint="give a CSV with TIMESTAMP, ContextTokens, GeneratedTokens",
        ) from error


def _requests(reader: csv.DictReader[str], where: str) -> list[Request]:
    names = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"}
    missing = sorted(names - set(reader.fieldnames or ()))
    if missing:
        raise PlanError(f"{where}: no column {', '.join(missing)}", hint="name them in line 1")
    found: list[Request] = []
    first: float | None = None
    for line, row in enumerate(reader, 2):
        try:
            when = _seconds(row["TIMESTAMP"])
            prompt, output = int(row["ContextTokens"]), int(row["GeneratedTokens"])
        except (TypeError, ValueError) as error:
            raise PlanError(
                f"{where}:{line}: {error}", hint="a time and two whole numbers"
            ) from error
        if prompt < 0 or output < 0:
            raise PlanError(f"{where}:{line}: a count below 0", hint="correct the line")
        first = when if first is None else first
        found.append(Request(when - first, max(prompt, 1), max(output, 1)))
    if not found:
        raise PlanError(f"{where}: no requests", hint="give at least one line")
    return sorted(found, key=lambda request: request.arrival_s)


def _seconds(text: str) -> float:
    """A number of seconds, or a date and time with up to seven digits of fraction."""
    try:
        return float(text)
    except ValueError:
        head, dot, rest = text.strip().partition(".")
        digits = "".join(letter for letter in rest if letter.isdigit()) if dot else ""
        zone = rest[len(digits) :] if dot else ""
        whole = datetime.fromisoformat(f"{head}{zone}").timestamp()
        return whole + (float(f"0.{digits}") if digits else 0.0)
