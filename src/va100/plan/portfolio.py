"""Jobs to place and GPUs to place them on, as a YAML file says; rates come from the planner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from va100.errors import PlanError
from va100.plan.machine import Machine, find_machine
from va100.plan.models.files import read_document, read_model
from va100.plan.prices import price_of
from va100.plan.search import search_plans
from va100.plan.serving import estimate_serving
from va100.plan.serving_options import ServeOptions
from va100.plan.stacks import MEGATRON_CORE
from va100.plan.training_options import TrainOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuType:
    """One kind of GPU: how many there are, what more cost."""

    name: str
    machine: Machine
    inventory: int
    own_usd_per_h: float
    """Running cost of one that is there."""
    rent_usd_per_h: float | None
    buy_usd_per_h: float | None
    """All of a bought one's cost, spread over its life."""
    slices: bool
    """Whether cards may be cut into MIG slices."""
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work a second that is wanted in each slot of the day, or work a day whenever."""

    name: str
    demand_per_s: Mapping[str, float]
    per_day: float
    weight: float
    rates_per_s: Mapping[str, float]
    """Of one unit: a GPU, ``4x-`` of one, or a slice ``gpu:profile``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Portfolio:
    """All of it."""

    slots_h: Mapping[str, float]
    types: tuple[GpuType, ...]
    jobs: tuple[Job, ...]
    budget_usd_per_day: float | None


def read_portfolio(path: Path) -> Portfolio:
    """Read a file, pricing the jobs whose rates it leaves to the planner.

    Raises
    ------
    PlanError
        Something is missing, unknown or no number, with its place.
    """
    document = read_document(path)
    where = str(path)
    if not isinstance(document, Mapping):
        raise PlanError(f"{where}: holds no map", hint="types: and jobs: (docs/planning.md)")
    slots = _slots(document.get("slots") or {"all day": 24}, where)
    types = tuple(
        _type(name, values or {}, where) for name, values in _map(document, "types", where).items()
    )
    jobs = document.get("jobs")
    if not isinstance(jobs, list) or not jobs:
        raise PlanError(f"{where}: no jobs", hint="list them under jobs:")
    budget = document.get("budget_usd_per_day")
    return Portfolio(
        slots_h=slots,
        types=types,
        jobs=tuple(_job(job, types, slots, path) for job in jobs),
        budget_usd_per_day=None if budget is None else _number(budget, "budget_usd_per_day", where),
    )


def _map(document: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    found = document.get(key)
    if not isinstance(found, Mapping) or not found:
        raise PlanError(f"{where}: no {key}", hint=f"{key}: is a map by name")
    return found


def _number(value: Any, name: str, where: str) -> float:
    good = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not good or not 0 <= value < float("inf"):
        raise PlanError(f"{where}: {name} is {value!r}", hint="give a number, 0 or more")
    return float(value)


def _slots(document: Any, where: str) -> dict[str, float]:
    if not isinstance(document, Mapping):
        raise PlanError(f"{where}: slots are no map of hours", hint="slots: {day: 14, night: 10}")
    slots = {str(name): _number(hours, f"slot {name}", where) for name, hours in document.items()}
    if abs(sum(slots.values()) - 24) > 1e-9:
        raise PlanError(f"{where}: slots have {sum(slots.values()):g} hours", hint="give 24 in all")
    return slots


_TYPE_KEYS = ("inventory", "own_usd_per_h", "rent_usd_per_h", "buy_usd_per_h", "slices", "most")


def _type(name: str, values: Mapping[str, Any], where: str) -> GpuType:
    _known(values, _TYPE_KEYS, f"{where}: types: {name}")
    machine = find_machine(name)
    if machine.is_slice or machine.gpus_per_node != 1:
        raise PlanError(f"{where}: type {name} is no single GPU", hint="name a GPU; slices: true")

    def number(key: str) -> float | None:
        found = values.get(key)
        return None if found is None else _number(found, f"types: {name}: {key}", where)

    listed = price_of(machine, None)
    rent = number("rent_usd_per_h")
    if rent is None and values.get("rent_usd_per_h", 0) is not None and listed is not None:
        rent = listed.usd_per_gpu_h
    return GpuType(
        name=machine.name,
        machine=machine,
        inventory=int(number("inventory") or 0),
        own_usd_per_h=number("own_usd_per_h") or 0.0,
        rent_usd_per_h=rent,
        buy_usd_per_h=number("buy_usd_per_h"),
        slices=bool(values.get("slices", False)),
        most=int(number("most") or 10_000),
    )


def _known(values: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    strangers = sorted(str(key) for key in values if key not in names)
    if strangers:
        raise PlanError(
            f"{where}: unknown {', '.join(strangers)}", hint=f"known: {', '.join(names)}"
        )


_JOB_KEYS = (
    "name", "kind", "demand", "per_day", "weight", "rates", "model", "prompt", "output", "weights",
    "goal_tpot", "goal_ttft", "seq", "global_batch", "gpus",
)  # fmt: skip


def _job(values: Any, types: tuple[GpuType, ...], slots: Mapping[str, float], path: Path) -> Job:
    where = str(path)
    if not isinstance(values, Mapping) or not values.get("name"):
        raise PlanError(f"{where}: a job without a name", hint="name: chat")
    name = str(values["name"])
    place = f"{where}: job {name}"
    _known(values, _JOB_KEYS, place)
    demand = values.get("demand", {})
    if not isinstance(demand, Mapping):
        demand = dict.fromkeys(slots, demand)
    strangers = sorted(set(map(str, demand)) - set(slots))
    if strangers:
        raise PlanError(
            f"{place}: no slot {', '.join(strangers)}", hint=f"slots: {', '.join(slots)}"
        )
    per_day = _number(values.get("per_day", 0), "per_day", place)
    if not demand and not per_day:
        raise PlanError(f"{place}: wants nothing", hint="demand: per second, or per_day:")
    rates = _rates(values, types, path, place)
    if not rates:
        raise PlanError(f"{place}: runs on none of the types", hint="add a type it fits")
    return Job(
        name=name,
        demand_per_s={str(slot): _number(v, f"demand {slot}", place) for slot, v in demand.items()},
        per_day=per_day,
        weight=_number(values.get("weight", 1), "weight", place),
        rates_per_s=rates,
    )


def _rates(
    values: Mapping[str, Any], types: tuple[GpuType, ...], path: Path, place: str
) -> dict[str, float]:
    kind = values.get("kind", "rates")
    if kind == "rates":
        given = values.get("rates")
        if not isinstance(given, Mapping):
            raise PlanError(f"{place}: no rates", hint="rates: {a100-sxm4-80gb: 100}")
        return {str(unit): _number(rate, f"rate of {unit}", place) for unit, rate in given.items()}
    if kind not in ("serve", "train"):
        raise PlanError(f"{place}: kind {kind!r}", hint="kind: serve, train or rates")
    if "model" not in values:
        raise PlanError(f"{place}: no model", hint="model: config.json, beside this file")
    model_path = path.parent / str(values["model"])
    found: dict[str, float] = {}
    for gpu in types:
        for unit, machine in _units(gpu, kind):
            rate = (
                _serve_rate(values, model_path, machine)
                if kind == "serve"
                else _train_rate(values, model_path, machine)
            )
            if rate:
                found[unit] = rate
    return found


def _units(gpu: GpuType, kind: str) -> list[tuple[str, Machine]]:
    """Whole GPUs, several together for what one does not hold, and slices."""
    units = [(gpu.name, gpu.machine)]
    units += [(f"{n}x-{gpu.name}", find_machine(f"{n}x-{gpu.name}")) for n in (2, 4, 8)]
    if gpu.slices and kind == "serve":
        from va100.plan.mig_layouts import layouts  # noqa: PLC0415
        from va100.spec.model import ChipSpec  # noqa: PLC0415
        from va100.spec.names import find_models  # noqa: PLC0415

        chip = find_models(gpu.machine.chip)[0]
        if isinstance(chip, ChipSpec):
            names = {name for layout in layouts(chip) for name, _ in layout}
            units += [(f"{gpu.name}:{n}", find_machine(f"{gpu.name}:{n}")) for n in sorted(names)]
    return units


def _serve_rate(values: Mapping[str, Any], path: Path, machine: Machine) -> float:
    """Requests a second of a replica at the largest batch that keeps the goals."""
    model = read_model(path)
    base = ServeOptions(
        tp=machine.gpus_per_node,
        prompt=int(values.get("prompt", 1024)),
        output=int(values.get("output", 256)),
        weights=str(values.get("weights", "bf16")),
    )
    if model.heads % base.tp:
        return 0.0
    best = 0.0
    for batch in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        found = estimate_serving(model, replace(base, batch=batch), machine)
        late = found.tpot_s > float(values.get("goal_tpot", float("inf")))
        slow = found.ttft_s > float(values.get("goal_ttft", float("inf")))
        if not found.fits or late or slow:
            break
        best = max(best, batch / found.request_s)
    return best


def _train_rate(values: Mapping[str, Any], path: Path, machine: Machine) -> float:
    """Tokens a second of the best plan on these GPUs."""
    model = read_model(path)
    base = TrainOptions(
        seq=int(values.get("seq", 2048)),
        global_batch=int(values.get("global_batch", 256)),
        stack=MEGATRON_CORE,
        precision="bf16" if machine.tensor_flop_per_s and "v100" not in machine.chip else "fp16",
        overlap_gradients=True,
    )
    try:
        found = search_plans(model, base, machine, machine.gpus_per_node, keep=1)
    except PlanError:
        return 0.0
    if not found.best:
        return 0.0
    best = found.best[0]
    return best.tokens_per_s_per_gpu * best.options.gpus
