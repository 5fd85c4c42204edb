"""What would fit when a way of serving does not: fewest GPUs, or the least share of the card."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from va100.errors import PlanError
from va100.plan.machine import Machine
from va100.plan.serving import ServeEstimate, estimate_serving
from va100.plan.serving_memory import cache_tokens, max_context, serve_memories
from va100.plan.serving_options import ServeOptions, check_serving
from va100.plan.workload import Transformer

MOST_STAGES = 16


def holds(model: Transformer, options: ServeOptions, machine: Machine) -> bool:
    """Whether weights fit and the cache takes the batch at its full length."""
    memories = serve_memories(model, options, machine)
    whole = options.prompt + options.output
    return (
        all(memory.fits for memory in memories)
        and max_context(model, options, memories) >= whole
        and cache_tokens(model, memories) >= whole * options.batch
    )


def smallest_serving(
    model: Transformer, base: ServeOptions, machine: Machine, keep: int = 3
) -> tuple[ServeEstimate, ...]:
    """Ways of serving on the fewest GPUs, and the fewest of whole nodes; none when none fits."""
    found: list[ServeOptions] = []
    for options in _ways(model, base, machine):
        if holds(model, options, machine):
            found.append(options)
        if len(found) >= keep and found[0].gpus < options.gpus and _whole(found, machine):
            break
    if not found:
        return ()
    least = [options for options in found if options.gpus == found[0].gpus]
    whole = [o for o in found if o.tp == machine.gpus_per_node]
    chosen = dict.fromkeys([*least[:keep], *whole[:1]])
    priced = [estimate_serving(model, options, machine) for options in chosen]
    return tuple(sorted(priced, key=lambda e: (e.options.gpus, e.request_s)))


def _whole(found: list[ServeOptions], machine: Machine) -> bool:
    return any(options.tp == machine.gpus_per_node for options in found)


def _ways(model: Transformer, base: ServeOptions, machine: Machine) -> Iterator[ServeOptions]:
    """Parallel sizes by count of GPUs; more ranks in a node before more stages."""
    if machine.is_slice:
        return
    sizes = [tp for tp in (1, 2, 4, 8, 16) if tp <= machine.gpus_per_node and not model.heads % tp]
    pairs = [(tp, pp) for tp in sizes for pp in range(1, min(MOST_STAGES, model.layers) + 1)]
    for tp, pp in sorted(pairs, key=lambda pair: (pair[0] * pair[1], pair[1])):
        options = replace(base, tp=tp, pp=pp, stage_layers=())
        try:
            check_serving(model, options)
        except PlanError:
            continue
        yield options


def least_share(model: Transformer, options: ServeOptions, machine: Machine) -> float | None:
    """Smallest share of the card, in hundredths, with which this fits; none when none does."""
    for hundredth in range(1, 100):
        share = hundredth / 100
        if holds(model, replace(options, memory_share=share), machine):
            return share
    return None
