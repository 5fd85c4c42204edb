"""Which GPUs for which jobs: an exact integer programme over a day's slots.

Jobs get whole units: GPUs, several GPUs of one board, or MIG slices of cards whose layouts are
legal.  What is there is used first; more is rented or bought.  Slots of the day share the GPUs, so
that a card which serves by day trains by night.  Solved by HiGHS with no gap.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from va100.errors import SetupError
from va100.plan.mig_layouts import layouts
from va100.plan.portfolio import GpuType, Job, Portfolio
from va100.spec.model import ChipSpec
from va100.spec.names import find_models

_UNIT: Final = re.compile(r"(?:(?P<count>\d+)x-)?(?P<gpu>[^:]+)(?::(?P<profile>.+))?")
TIE_USD: Final = 1e-6
"""A day, for each unit used: among equal plans the one with fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Units of one kind that a job gets in a slot."""

    job: str
    slot: str
    unit: str
    count: int
    work_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """GPUs of one type, and how they are cut in each slot."""

    gpu: str
    owned: int
    rented: int
    bought: int
    layouts: Mapping[str, Mapping[str, int]]
    """By slot: layout, such as ``whole`` or ``1g.10gb x 7``, to cards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixResult:
    """The best mix."""

    feasible: bool
    usd_per_day: float
    served_share: Mapping[str, float]
    supplies: tuple[Supply, ...]
    assignments: tuple[Assignment, ...]


@dataclass(slots=True)
class _Programme:
    """Columns and rows of an integer programme, named so that answers can be read back."""

    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    rows: list[tuple[float, float, dict[int, float]]] = field(default_factory=list)

    def column(self, upper: float, cost: float = 0.0, *, whole: bool = True) -> int:
        """Add a variable from 0 to ``upper``; the result is its number."""
        self.lower.append(0.0)
        self.upper.append(upper)
        self.cost.append(cost)
        self.whole.append(whole)
        return len(self.cost) - 1

    def row(self, lower: float, upper: float, terms: Mapping[int, float]) -> None:
        """Add a bound on a sum."""
        self.rows.append((lower, upper, dict(terms)))


def solve_mix(portfolio: Portfolio) -> MixResult:
    """Least cost a day that meets every demand; with a budget, most work, then least cost.

    Raises
    ------
    SetupError
        HiGHS is not installed.
    """
    served = {job.name: 1.0 for job in portfolio.jobs}
    if portfolio.budget_usd_per_day is None:
        model = _Model(portfolio, served)
        values = _minimum(model.programme)
        return model.result(values) if values else _none(portfolio)
    model = _Model(portfolio, None)
    values = _minimum(model.programme)
    if values is None:
        return _none(portfolio)
    return model.result(values)


def _none(portfolio: Portfolio) -> MixResult:
    return MixResult(
        feasible=False,
        usd_per_day=0.0,
        served_share={job.name: 0.0 for job in portfolio.jobs},
        supplies=(),
        assignments=(),
    )


class _Model:
    """The programme of a portfolio and how to read its answer."""

    def __init__(self, portfolio: Portfolio, served: Mapping[str, float] | None) -> None:
        self.portfolio = portfolio
        self.programme = _Programme()
        self.counts: dict[str, tuple[int, int, int]] = {}
        self.cards: dict[tuple[str, str, str], int] = {}
        self.units: dict[tuple[str, str, str], int] = {}
        self.shares: dict[str, int] = {}
        self.holds: dict[tuple[str, str], Mapping[str, int]] = {}
        self.money: dict[int, float] = {}
        for gpu in portfolio.types:
            self._supply(gpu)
        for job in portfolio.jobs:
            self._job(job, fixed=served is not None)
        for gpu in portfolio.types:
            self._capacity(gpu)
        if portfolio.budget_usd_per_day is not None:
            self.programme.row(0.0, portfolio.budget_usd_per_day, self.money)

    def _supply(self, gpu: GpuType) -> None:
        programme = self.programme
        prices = (gpu.own_usd_per_h, gpu.rent_usd_per_h, gpu.buy_usd_per_h)
        limits = (gpu.inventory, gpu.most, gpu.most)
        columns = []
        for price, limit in zip(prices, limits, strict=True):
            usd = 24 * (price or 0.0)
            column = programme.column(0.0 if price is None else float(limit), usd)
            self.money[column] = usd
            columns.append(column)
        self.counts[gpu.name] = (columns[0], columns[1], columns[2])
        for slot in self.portfolio.slots_h:
            there = dict.fromkeys(columns, 1.0)
            for layout, holds in _layouts(gpu).items():
                column = programme.column(float(gpu.inventory + 2 * gpu.most))
                self.cards[gpu.name, slot, layout] = column
                self.holds[gpu.name, layout] = holds
                there[column] = -1.0
            programme.row(0.0, float("inf"), there)

    def _job(self, job: Job, *, fixed: bool) -> None:
        programme = self.programme
        known = {gpu.name for gpu in self.portfolio.types}
        for unit in job.rates_per_s:
            match = _UNIT.fullmatch(unit)
            if match is None or match["gpu"] not in known or not job.rates_per_s[unit]:
                continue
            for slot in self.portfolio.slots_h:
                self.units[job.name, slot, unit] = programme.column(1e5, TIE_USD)
        share = programme.column(1.0, whole=False)
        self.shares[job.name] = share
        if fixed:
            programme.row(1.0, 1.0, {share: 1.0})
        else:
            programme.cost[share] = -1e6 * job.weight
        for slot, wanted in job.demand_per_s.items():
            terms = self._work(job, slot)
            programme.row(0.0, float("inf"), {**terms, share: -wanted})
        if job.per_day:
            terms = {}
            for slot, hours in self.portfolio.slots_h.items():
                for column, rate in self._work(job, slot).items():
                    terms[column] = rate * 3600 * hours / job.per_day
            programme.row(0.0, float("inf"), {**terms, share: -1.0})

    def _work(self, job: Job, slot: str) -> dict[int, float]:
        return {
            self.units[job.name, slot, unit]: rate
            for unit, rate in job.rates_per_s.items()
            if (job.name, slot, unit) in self.units
        }

    def _capacity(self, gpu: GpuType) -> None:
        """Units in use, of each kind, within what the cards' layouts hold."""
        for slot in self.portfolio.slots_h:
            for kind in sorted({name for layout in _layouts(gpu).values() for name in layout}):
                terms = {
                    self.cards[gpu.name, slot, layout]: float(holds[kind])
                    for layout, holds in _layouts(gpu).items()
                    if kind in holds
                }
                for (job, at, unit), column in self.units.items():
                    match = _UNIT.fullmatch(unit)
                    if match is None or at != slot or match["gpu"] != gpu.name or not job:
                        continue
                    if (match["profile"] or "whole") == kind:
                        terms[column] = -float(match["count"] or 1)
                self.programme.row(0.0, float("inf"), terms)

    def result(self, values: list[float]) -> MixResult:
        """Read an answer."""
        at = [round(value) for value in values]
        supplies = []
        for gpu in self.portfolio.types:
            owned, rented, bought = (at[column] for column in self.counts[gpu.name])
            cut = {
                slot: {
                    layout: at[self.cards[gpu.name, slot, layout]]
                    for layout in _layouts(gpu)
                    if at[self.cards[gpu.name, slot, layout]]
                }
                for slot in self.portfolio.slots_h
            }
            supplies.append(
                Supply(gpu=gpu.name, owned=owned, rented=rented, bought=bought, layouts=cut)
            )
        rates = {job.name: job.rates_per_s for job in self.portfolio.jobs}
        assignments = tuple(
            Assignment(
                job=job,
                slot=slot,
                unit=unit,
                count=at[column],
                work_per_s=at[column] * rates[job][unit],
            )
            for (job, slot, unit), column in self.units.items()
            if at[column]
        )
        return MixResult(
            feasible=True,
            usd_per_day=sum(at[column] * usd for column, usd in self.money.items()),
            served_share={job: round(values[c], 9) for job, c in self.shares.items()},
            supplies=tuple(supplies),
            assignments=assignments,
        )


def _layouts(gpu: GpuType) -> dict[str, dict[str, int]]:
    """Ways to use a card: whole, or cut into slices."""
    found: dict[str, dict[str, int]] = {"whole": {"whole": 1}}
    if gpu.slices:
        chip = find_models(gpu.machine.chip)[0]
        if isinstance(chip, ChipSpec):
            for layout in layouts(chip):
                title = " + ".join(f"{name} x {count}" for name, count in layout)
                found[title] = dict(layout)
    return found


def _minimum(programme: _Programme) -> list[float] | None:
    """Values of the least cost; none when the rows contradict each other."""
    highs = _solver()
    infinity = highs.getInfinity()
    for lower, upper, cost, whole in zip(
        programme.lower, programme.upper, programme.cost, programme.whole, strict=True
    ):
        highs.addVar(lower, upper)
        column = highs.getNumCol() - 1
        highs.changeColCost(column, cost)
        if whole:
            highs.changeColIntegrality(column, _integer())
    for lower, upper, terms in programme.rows:
        columns = sorted(terms)
        bound = infinity if upper == float("inf") else upper
        highs.addRow(lower, bound, len(columns), columns, [terms[c] for c in columns])
    highs.run()
    if str(highs.getModelStatus()).rpartition(".")[2] != "kOptimal":
        return None
    return list(highs.getSolution().col_value)


def _solver() -> Any:
    try:
        import highspy  # noqa: PLC0415
    except ImportError as error:
        raise SetupError(
            "`plan mix` needs the solver HiGHS", remedy="pip install 'va100[plan]'"
        ) from error
    with _silence():
        highs = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("random_seed", 0),
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", 1e-9),
    ):
        highs.setOptionValue(option, value)
    return highs


@contextmanager
def _silence() -> Iterator[None]:
    """Send standard output nowhere: the solver's library prints its name when it is made."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _integer() -> Any:
    import highspy  # noqa: PLC0415

    return highspy.HighsVarType.kInteger
