"""Many plans at once: on this machine's cores, or on a Ray cluster, with the same results.

Work is cut into parts in a fixed order and put together in that order, whoever did it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from va100.errors import PlanError, SetupError
from va100.plan.machine import Machine
from va100.plan.search import Progress, SearchResult, candidates, fits, quickest, silent
from va100.plan.training import TrainEstimate, estimate_training
from va100.plan.training_options import TrainOptions
from va100.plan.workload import Transformer

PART = 256
KEPT = 5
PLACES = ("here", "ray")


@dataclass(frozen=True, slots=True)
class Where:
    """Where work is done: this machine's processes, or a Ray cluster."""

    place: str = "here"
    workers: int = 1


HERE = Where()


@dataclass(frozen=True, slots=True)
class _Part:
    """Consecutive candidates of one search."""

    model: Transformer
    machine: Machine
    options: tuple[TrainOptions, ...]
    keep: int

    def price(self) -> tuple[int, tuple[TrainEstimate, ...]]:
        """How many fit, and the quickest of them."""
        fitting = [
            estimate_training(self.model, options, self.machine)
            for options in self.options
            if fits(self.model, options, self.machine)
        ]
        return len(fitting), quickest(fitting, self.keep)


def _price(part: _Part) -> tuple[int, tuple[TrainEstimate, ...]]:
    return part.price()


def sweep_plans(
    model: Transformer,
    base: TrainOptions,
    machine: Machine,
    gpus: Sequence[int],
    *,
    where: Where = HERE,
    progress: Progress = silent,
) -> tuple[SearchResult, ...]:
    """Search on each of several counts of GPUs.

    Raises
    ------
    PlanError
        An unknown place.
    SetupError
        Ray is asked for and not installed.
    """
    if where.place not in PLACES:
        raise PlanError(f"no place {where.place!r}", hint=f"one of {', '.join(PLACES)}")
    tried = [candidates(model, base, machine, count) for count in gpus]
    parts = [
        (number, _Part(model, machine, tuple(options[start : start + PART]), KEPT))
        for number, options in enumerate(tried)
        for start in range(0, len(options), PART)
    ]
    mapped = _mapper(where)([part for _, part in parts], progress)
    found: list[SearchResult] = []
    for number, options in enumerate(tried):
        mine = [result for (at, _), result in zip(parts, mapped, strict=True) if at == number]
        best = [estimate for _, estimates in mine for estimate in estimates]
        found.append(
            SearchResult(
                tried=len(options),
                fitting=sum(count for count, _ in mine),
                best=quickest(best, KEPT),
            )
        )
    return tuple(found)


Mapper = Callable[[list[_Part], Progress], list[tuple[int, tuple[TrainEstimate, ...]]]]


def _mapper(where: Where) -> Mapper:
    if where.place == "ray":
        return _on_ray

    def here(parts: list[_Part], progress: Progress) -> list[tuple[int, tuple[TrainEstimate, ...]]]:
        if where.workers <= 1 or len(parts) <= 1:
            return [_told(part.price(), at, len(parts), progress) for at, part in enumerate(parts)]
        with ProcessPoolExecutor(where.workers) as pool:
            results = pool.map(_price, parts)
            return [_told(result, at, len(parts), progress) for at, result in enumerate(results)]

    return here


def _told(result: Any, at: int, total: int, progress: Progress) -> Any:
    progress((at + 1) * PART, total * PART)
    return result


def _on_ray(parts: list[_Part], progress: Progress) -> list[tuple[int, tuple[TrainEstimate, ...]]]:
    try:
        import ray  # noqa: PLC0415
    except ImportError as error:
        raise SetupError("--on ray needs Ray", remedy="pip install 'va100[ray]'") from error
    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False)
    remote = ray.remote(_price)
    waiting = [remote.remote(part) for part in parts]
    return [_told(ray.get(one), at, len(parts), progress) for at, one in enumerate(waiting)]
