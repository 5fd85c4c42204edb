"""Time of one step of serving, and from it the first token, the tokens after it, and the rates."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from va100.plan.kernels import NOTHING, Core, Cost, Gemm, flash, product, stream
from va100.plan.layers import Place
from va100.plan.machine import Machine
from va100.plan.serving_memory import (
    ServeMemory,
    cache_tokens,
    max_context,
    sequence_bytes,
    serve_memories,
)
from va100.plan.serving_options import CACHE_BYTES, ServeOptions, check_serving
from va100.plan.training import longer_s, place_of
from va100.plan.workload import Transformer

_SMALL: Final = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224, 256)
_LARGE: Final = tuple(
    size * scale
    for scale in (1, 4, 16, 64, 256, 1024)
    for size in (320, 384, 448, 512, 640, 768, 896, 1024)
)
GRID: Final = tuple(sorted({*_SMALL, *(320 + 64 * i for i in range(12)), *_LARGE}))
"""Counts of tokens at which products are priced; between them time is a straight line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeEstimate:
    """What one way of serving gives a batch that comes at once."""

    model: Transformer
    options: ServeOptions
    machine: Machine
    fits: bool
    memories: tuple[ServeMemory, ...]
    ttft_s: float
    ttft_band: tuple[float, float]
    tpot_s: float
    tpot_band: tuple[float, float]
    request_s: float
    tokens_per_s: float
    prefill_tokens_per_s: float
    kv_bytes: int
    """Cache of the batch at its full length, all ranks together."""
    max_context: int
    max_batch: int
    cache_tokens: int
    energy_per_token_j: float
    power_w: float


@dataclass(frozen=True, slots=True)
class StepModel:
    """Prices steps of one replica; what it asks of the kernels is kept by them."""

    model: Transformer
    options: ServeOptions
    place: Place
    prefill_scale: float = 1.0
    decode_scale: float = 1.0

    def step(
        self, prefills: Sequence[tuple[int, int]], decodes: int, context: float
    ) -> tuple[float, float]:
        """Seconds and joules (of one stage's rank) of a step.

        Parameters
        ----------
        prefills : sequence of (int, int)
            New tokens and cache length after them, of each prompt or part of one.
        decodes : int
            Sequences that get one more token, ``context`` tokens long on average.
        """
        tokens = sum(new for new, _ in prefills) + decodes
        if not tokens:
            return 0.0, 0.0
        rows = len(prefills) + decodes
        cost = layer_cost(self.model, self.options, self.place, tokens)
        cost = cost + self._attention(prefills, decodes, context)
        cost = cost.scaled(count=self.model.layers)
        cost = cost + head_cost(self.model, self.options, self.place, rows)
        exchange = self._exchange(tokens).scaled(count=self.model.layers)
        engine = self.options.engine
        host_s = 0.0
        if prefills or not self.options.graphs:
            host_s = (cost.kernels + exchange.kernels) * engine.kernel_s
        waits_s = engine.prefill_host_s if prefills else engine.decode_host_s
        chip_s = (cost.time_s + exchange.time_s) / self.options.pp + self._hops(tokens)
        each_s = longer_s(chip_s, host_s / self.options.pp, 4.0)
        whole_s = each_s * self.options.pp + waits_s + rows * engine.request_host_s
        whole_s *= self.prefill_scale if prefills else self.decode_scale
        waiting_s = max(whole_s * self.options.pp - cost.time_s - exchange.time_s, 0.0)
        return whole_s, cost.energy_j + exchange.energy_j + waiting_s * self.place.waiting_w

    def _attention(self, prefills: Sequence[tuple[int, int]], decodes: int, context: float) -> Cost:
        total = NOTHING
        for new, length in prefills:
            total = total + core_cost(self.model, self.options, self.place.chip, 1, new, length)
        if decodes:
            total = total + _decode_core(
                self.model, self.options, self.place.chip, decodes, context
            )
        return total.scaled(self.options.engine.attention_ratio)

    def _exchange(self, tokens: int) -> Cost:
        """Sums over tensor-parallel ranks, two a layer."""
        if self.options.tp == 1:
            return NOTHING
        size = tokens * self.model.hidden * 2
        nodes = self.place.nodes_of(self.options.tp)
        count = 1 if self.model.parallel_block else 2
        cost = self.place.exchange("all_reduce", size, self.options.tp, nodes)
        engine = self.options.engine
        cost = replace(cost, time_s=cost.time_s * engine.exchange_ratio + engine.exchange_s)
        return cost.scaled(count=count)

    def _hops(self, tokens: int) -> float:
        if self.options.pp == 1:
            return 0.0
        far = self.options.gpus > self.place.gpus_per_node
        size = tokens * self.model.hidden * 2
        return self.place.exchange("send_recv", size, 2, 2 if far else 1).time_s


def layer_cost(model: Transformer, options: ServeOptions, place: Place, tokens: int) -> Cost:
    """One layer's products and streams for so many tokens: on the grid, or between two points."""
    if tokens <= GRID[0] or tokens >= GRID[-1]:
        return _layer_cost(model, options, place, tokens)
    position = bisect_left(GRID, tokens)
    above, below = GRID[position], GRID[max(position - 1, 0)]
    high = _layer_cost(model, options, place, above)
    if above == tokens:
        return high
    low = _layer_cost(model, options, place, below)
    share = (tokens - below) / (above - below)
    return Cost(
        low.time_s + share * (high.time_s - low.time_s),
        low.energy_j + share * (high.energy_j - low.energy_j),
        low.flop_count + share * (high.flop_count - low.flop_count),
        high.kernels,
    )


def _layer_cost(model: Transformer, options: ServeOptions, place: Place, tokens: int) -> Cost:
    return _kept_layer_cost(model, _key(options), options, place, tokens)


def _key(options: ServeOptions) -> tuple[int, str, str]:
    return options.tp, options.weights, options.engine.name


@lru_cache(maxsize=8192)
def _kept_layer_cost(
    model: Transformer, key: tuple[int, str, str], options: ServeOptions, place: Place, tokens: int
) -> Cost:
    del key
    chip, tp, dtype = place.chip, options.tp, options.format.gemm
    engine = options.engine
    query = model.heads * model.head_dim // tp
    keys = 2 * max(model.kv_heads // tp, 1) * model.head_dim
    wide = tokens * model.hidden * 2
    products = NOTHING
    if model.latent is None:
        products = products + product(Gemm(tokens, query + keys, model.hidden, 1, dtype, chip))
        products = products + product(Gemm(tokens, model.hidden, query, 1, dtype, chip))
    else:
        products = products + _latent_products(model, options, chip, tokens)
    streams = stream(2 * wide, 2 * wide, chip).scaled(count=2)
    streams = streams + stream(tokens * (query + keys) * 2, tokens * (query + keys) * 2, chip)
    mlp, more = _mlp_cost(model, options, chip, tokens)
    return (products + mlp).scaled(engine.product_ratio) + (streams + more).scaled(
        engine.stream_ratio
    )


def _latent_products(model: Transformer, options: ServeOptions, chip: str, tokens: int) -> Cost:
    latent, tp, dtype = model.latent, options.tp, options.format.gemm
    if latent is None:
        return NOTHING
    heads = model.heads // tp
    head = latent.nope_dim + latent.rope_dim
    rank = latent.q_rank or model.hidden
    down = latent.kv_rank + latent.rope_dim + latent.q_rank
    total = product(Gemm(tokens, down, model.hidden, 1, dtype, chip))
    total = total + product(Gemm(tokens, heads * head, rank, 1, dtype, chip))
    # Keys' and values' up-projections are taken into queries and outputs, head by head.
    total = total + product(
        Gemm(tokens, latent.kv_rank, latent.nope_dim, heads, options.dtype, chip)
    )
    total = total + product(Gemm(tokens, latent.v_dim, latent.kv_rank, heads, options.dtype, chip))
    return total + product(Gemm(tokens, model.hidden, heads * latent.v_dim, 1, dtype, chip))


def _mlp_cost(
    model: Transformer, options: ServeOptions, chip: str, tokens: int
) -> tuple[Cost, Cost]:
    """Products and streams of a layer's MLP, dense and expert layers in their proportion."""
    share = model.expert_layers / model.layers
    dense, streams = NOTHING, NOTHING
    if share < 1:
        dense, streams = _dense_mlp(model, options, chip, tokens, model.ffn)
        dense, streams = dense.scaled(1 - share), streams.scaled(1 - share)
    if not share or model.experts is None:
        return dense, streams
    routed = expert_cost(model, options, chip, tokens)
    shared, more = NOTHING, NOTHING
    if model.experts.shared_ffn:
        shared, more = _dense_mlp(model, options, chip, tokens, model.experts.shared_ffn)
    return dense + (routed + shared).scaled(share), streams + more.scaled(share)


def _dense_mlp(
    model: Transformer, options: ServeOptions, chip: str, tokens: int, ffn: int
) -> tuple[Cost, Cost]:
    width, dtype = max(ffn // options.tp, 1), options.format.gemm
    ups = 2 if model.gated else 1
    up = product(Gemm(tokens, ups * width, model.hidden, 1, dtype, chip))
    down = product(Gemm(tokens, model.hidden, width, 1, dtype, chip))
    return up + down, stream(ups * tokens * width * 2, tokens * width * 2, chip)


@lru_cache(maxsize=4096)
def expert_cost(model: Transformer, options: ServeOptions, chip: str, tokens: int) -> Cost:
    """Routed experts of one layer, their widths split over tensor-parallel ranks."""
    from va100.perf.operators import moe  # noqa: PLC0415

    experts = model.experts
    if experts is None:
        return NOTHING
    found = moe.estimate(
        tokens,
        model.hidden,
        experts.ffn,
        experts.per_token,
        experts.count,
        tp=options.tp,
        gated=model.gated,
        dtype=options.format.gemm,
        chip=chip,
    )
    return Cost(found.time_s, found.energy_j, found.flop_count, 4)


def head_cost(model: Transformer, options: ServeOptions, place: Place, rows: int) -> Cost:
    """Last norm, logits of the rows that are sampled, and the embedding."""
    position = bisect_left(GRID, rows)
    rows = GRID[min(position, len(GRID) - 1)]
    vocab = -(-model.vocab // options.tp)
    logits = product(Gemm(rows, vocab, model.hidden, 1, options.dtype, place.chip))
    return logits + stream(rows * vocab * 6, rows * vocab * 4, place.chip)


def core_cost(
    model: Transformer, options: ServeOptions, chip: str, batch: int, new: int, length: int
) -> Cost:
    """Attention of new tokens over a cache, in one layer; layers with a window in proportion."""
    windowed = sum(model.windowed(index) for index in range(model.layers)) / model.layers
    full = _core(model, options, chip, batch, new, length)
    if not windowed or length <= model.window:
        return full
    near = _core(model, options, chip, batch, new, max(model.window, new))
    return full.scaled(1 - windowed) + near.scaled(windowed)


def _core(
    model: Transformer, options: ServeOptions, chip: str, batch: int, new: int, length: int
) -> Cost:
    heads, kv_heads = model.heads // options.tp, max(model.kv_heads // options.tp, 1)
    head, value = model.head_dim, 0
    if model.latent is not None:
        kv_heads, value = 1, model.latent.kv_rank
        head = model.latent.kv_rank + model.latent.rope_dim
        if new > 1:
            kv_heads, value = heads, model.latent.v_dim
            head = model.latent.nope_dim + model.latent.rope_dim
    kv_dtype = options.cache if CACHE_BYTES[options.cache] < 2 else ""
    shape = Core(
        batch, new, length, heads, kv_heads, head,
        causal=True, dtype=options.dtype, chip=chip, kv_dtype=kv_dtype, value_dim=value,
    )  # fmt: skip
    return flash(shape)


def _decode_core(
    model: Transformer, options: ServeOptions, chip: str, batch: int, context: float
) -> Cost:
    """Decode attention, its context between two powers of the root of two."""
    step = max(int(context), 1)
    low = 1
    while low * 2 <= step:
        low *= 2
    low = low + low // 2 if low >= 2 and low + low // 2 <= step else low
    high = low * 2 if low & (low - 1) == 0 else low // 3 * 4
    if low >= 2 and low & (low - 1) == 0:
        high = low + low // 2
    first = core_cost(model, options, chip, batch, 1, low)
    if high <= low:
        return first
    last = core_cost(model, options, chip, batch, 1, high)
    share = (context - low) / (high - low)
    return Cost(
        first.time_s + share * (last.time_s - first.time_s),
        first.energy_j + share * (last.energy_j - first.energy_j),
        first.flop_count,
        1,
    )


def estimate_serving(
    model: Transformer,
    options: ServeOptions,
    machine: Machine,
    scales: tuple[float, float] = (1.0, 1.0),
) -> ServeEstimate:
    """Price a batch that comes at once.

    Raises
    ------
    PlanError
        No engine could run this choice; whether it fits is in the answer instead.
    """
    check_serving(model, options)
    memories = serve_memories(model, options, machine)
    steps = StepModel(model, options, place_of(machine), *scales)
    ttft_s, prefill_j = prefill(steps, options.batch, options.prompt)
    tpot_s, decode_j = decode(steps, options.batch, options.prompt, options.output)
    request_s = ttft_s + (options.output - 1) * tpot_s
    within = options.engine.within_ratio
    longest = max_context(model, options, memories)
    whole = options.prompt + options.output
    tokens = options.batch * options.output
    energy_j = (prefill_j + decode_j * (options.output - 1)) * options.tp
    held = cache_tokens(model, memories)
    all_fit = all(memory.fits for memory in memories)
    batch_bytes = options.batch * cache_bytes_of(model, options, whole)
    return ServeEstimate(
        model=model,
        options=options,
        machine=machine,
        fits=all_fit and longest >= min(whole, longest + 1) and held >= options.batch * whole,
        memories=memories,
        ttft_s=ttft_s,
        ttft_band=(ttft_s / (1 + within), ttft_s / (1 - within)),
        tpot_s=tpot_s,
        tpot_band=(tpot_s / (1 + within), tpot_s / (1 - within)),
        request_s=request_s,
        tokens_per_s=tokens / request_s,
        prefill_tokens_per_s=options.batch * options.prompt / ttft_s,
        kv_bytes=int(batch_bytes),
        max_context=longest if all_fit else 0,
        max_batch=held // whole if all_fit else 0,
        cache_tokens=held if all_fit else 0,
        energy_per_token_j=energy_j / tokens,
        power_w=energy_j / request_s / options.gpus,
    )


def cache_bytes_of(model: Transformer, options: ServeOptions, length: int) -> float:
    """Cache of one sequence on all ranks together."""
    copies = (
        options.tp if model.latent is not None else options.tp / min(options.tp, model.kv_heads)
    )
    split = 1.0 if model.latent is not None else float(min(options.tp, model.kv_heads))
    one = sequence_bytes(model, options, length, range(model.layers))
    return one * split * copies


def prefill(steps: StepModel, batch: int, prompt: int) -> tuple[float, float]:
    """Seconds until all of a batch have their first token, and joules; prompts cut to the chunk."""
    pp = steps.options.pp
    whole = _filled(steps, batch, prompt)
    best = (sum(s for s, _ in whole), sum(j for _, j in whole))
    for parts in {min(batch, pp), min(batch, 2 * pp)} - {1} if pp > 1 else ():
        # Parts of the batch follow each other through the stages.
        each = _filled(steps, -(-batch // parts), prompt)
        seconds, joules = sum(s for s, _ in each), sum(j for _, j in each)
        best = min(best, (seconds / pp * (parts + pp - 1), joules * parts))
    return best


def _filled(steps: StepModel, batch: int, prompt: int) -> list[tuple[float, float]]:
    """Steps that fill so many prompts in, each cut to the chunk."""
    chunk = steps.options.chunk or batch * prompt
    left, found = [(prompt, 0)] * batch, []
    while left:
        room, parts = chunk, []
        while left and room:
            remaining, done = left.pop(0)
            take = min(remaining, room)
            parts.append((take, done + take))
            room -= take
            if take < remaining:
                left.insert(0, (remaining - take, done + take))
        found.append(steps.step(parts, 0, 0.0))
    return found


def decode(steps: StepModel, batch: int, prompt: int, output: int) -> tuple[float, float]:
    """Mean seconds and joules of a step that gives each of a batch one more token."""
    return steps.step((), batch, prompt + output / 2)
