"""A load on several replicas: latencies, rates, joules and dollars; pools apart or together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from va100.errors import PlanError
from va100.plan.layers import Place
from va100.plan.load import Request
from va100.plan.machine import Machine
from va100.plan.serving import ServeEstimate, StepModel, cache_bytes_of
from va100.plan.serving_simulation import Replica, ReplicaResult, Served, Summary, summary
from va100.plan.training import place_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What a load meets."""

    replicas: int
    prefill_replicas: int
    """Of those, replicas that only fill prompts in; 0 when all do both."""
    gpus: int
    served: int
    refused: int
    preempted: int
    ttft: Summary
    tpot: Summary
    latency: Summary
    tokens_per_s: float
    requests_per_s: float
    busy_share: float
    energy_j: float
    duration_s: float
    steps: int
    within_goals: float | None
    """Share of requests that met both goals."""


def play_load(
    estimate: ServeEstimate,
    requests: Sequence[Request],
    replicas: int,
    *,
    prefill_replicas: int = 0,
    goals: tuple[float, float] | None = None,
    scales: tuple[float, float] = (1.0, 1.0),
) -> LoadResult:
    """Serve requests in turn on replicas.

    Raises
    ------
    PlanError
        No replica is left for one of the pools, or nothing could be served.
    """
    if not 0 <= prefill_replicas < replicas:
        raise PlanError(
            f"{prefill_replicas} of {replicas} replicas fill prompts in",
            hint="leave at least one that decodes",
        )
    place = place_of(estimate.machine)
    if prefill_replicas:
        results = _apart(estimate, requests, replicas, prefill_replicas, place, scales)
    else:
        results = _together(estimate, requests, replicas, place, scales)
    served = [one for result in results[0] for one in result.served]
    if not served:
        raise PlanError(
            "no request could be served: none fits the cache",
            hint="more GPUs a replica, a quantised cache, or shorter requests",
        )
    return _gathered(estimate, served, results[0] + results[1], (replicas, prefill_replicas), goals)


def _replica(
    estimate: ServeEstimate, place: Place, scales: tuple[float, float], *, prefilled: bool = False
) -> Replica:
    options = estimate.options
    return Replica(
        steps=StepModel(estimate.model, options, place, *scales),
        cache_tokens=estimate.cache_tokens,
        most_sequences=options.most_sequences,
        chunk=options.chunk,
        block=options.block,
        prefilled=prefilled,
    )


def _together(
    estimate: ServeEstimate,
    requests: Sequence[Request],
    replicas: int,
    place: Place,
    scales: tuple[float, float],
) -> tuple[list[ReplicaResult], list[ReplicaResult]]:
    engine = _replica(estimate, place, scales)
    return [engine.play(requests[number::replicas]) for number in range(replicas)], []


def _apart(
    estimate: ServeEstimate,
    requests: Sequence[Request],
    replicas: int,
    fillers: int,
    place: Place,
    scales: tuple[float, float],
) -> tuple[list[ReplicaResult], list[ReplicaResult]]:
    """One pool fills prompts in and sends the cache to the other, which decodes."""
    first = _replica(estimate, place, scales)
    sent: list[tuple[float, Request, float]] = []
    filled = []
    for number in range(fillers):
        mine = requests[number::fillers]
        result = first.play([replace(request, output=1) for request in mine])
        filled.append(result)
        by_arrival = sorted(mine, key=lambda request: request.arrival_s)
        for request, one in zip(by_arrival, result.served, strict=False):
            size = cache_bytes_of(estimate.model, estimate.options, request.prompt)
            hop_s = place.exchange("send_recv", size / estimate.options.tp, 2, 2).time_s
            sent.append((one.done_s + hop_s, request, one.first_token_s))
    sent.sort(key=lambda item: (item[0], item[1].arrival_s))
    decoders = replicas - fillers
    engine = _replica(estimate, place, scales, prefilled=True)
    decoded = []
    for number in range(decoders):
        mine_sent = sent[number::decoders]
        result = engine.play([Request(when, r.prompt, r.output) for when, r, _ in mine_sent])
        decoded.append(replace(result, served=_rejoined(mine_sent, result.served)))
    return decoded, filled


def _rejoined(
    sent: Sequence[tuple[float, Request, float]], served: Sequence[Served]
) -> tuple[Served, ...]:
    """Requests as their users saw them: from their own arrival, first token from the first pool."""
    ranked = sorted(served, key=lambda one: (one.arrival_s, one.done_s))
    return tuple(
        Served(request.arrival_s, first_s, max(one.done_s, first_s), request.output)
        for (_, request, first_s), one in zip(sent, ranked, strict=False)
    )


def _gathered(
    estimate: ServeEstimate,
    served: Sequence[Served],
    results: Sequence[ReplicaResult],
    pools: tuple[int, int],
    goals: tuple[float, float] | None,
) -> LoadResult:
    replicas, fillers = pools
    gpus = estimate.options.gpus
    end_s = max(result.end_s for result in results)
    busy_s = sum(result.busy_s for result in results)
    energy = sum(result.energy_j for result in results) * estimate.options.tp
    energy += _rest_j(estimate.machine, end_s * replicas - busy_s, gpus)
    met = None
    if goals is not None:
        met = sum(one.ttft_s <= goals[0] and one.tpot_s <= goals[1] for one in served) / len(served)
    later = [one.tpot_s for one in served if one.output > 1] or [0.0]
    return LoadResult(
        replicas=replicas,
        prefill_replicas=fillers,
        gpus=replicas * gpus,
        served=len(served),
        refused=sum(result.refused for result in results),
        preempted=sum(result.preempted for result in results),
        ttft=summary([one.ttft_s for one in served]),
        tpot=summary(later),
        latency=summary([one.latency_s for one in served]),
        tokens_per_s=sum(one.output for one in served) / end_s,
        requests_per_s=len(served) / end_s,
        busy_share=busy_s / (end_s * replicas),
        energy_j=energy,
        duration_s=end_s,
        steps=sum(result.steps for result in results),
        within_goals=met,
    )


def _rest_j(machine: Machine, rest_s: float, gpus: int) -> float:
    """Idle power of a replica's GPUs while it has nothing to do."""
    return machine.idle_w * max(rest_s, 0.0) * gpus
