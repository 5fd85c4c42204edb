"""What one transformer layer, the embedding and the loss cost on one rank, in training.

Pieces are kernels by name, forward and backward; collectives inside a layer are apart.  When the
pieces run is the pipeline's matter (:mod:`va100.plan.pipeline`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from va100.plan.kernels import NOTHING, Among, Core, Cost, Gemm, collective, flash, product, stream
from va100.plan.memory import padded_vocab
from va100.plan.stacks import Attention, Stack
from va100.plan.training_options import Recompute, TrainOptions
from va100.plan.workload import Transformer


@dataclass(frozen=True, slots=True)
class Piece:
    """A named part of a pass."""

    name: str
    cost: Cost
    communicates: bool = False


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums of a pass's pieces: what computes, and what communicates."""

    computes: Cost
    communicates: Cost


@dataclass(frozen=True, slots=True)
class Passes:
    """Forward and backward pieces of something, for one micro-batch on one rank."""

    forward: tuple[Piece, ...]
    backward: tuple[Piece, ...]
    forward_totals: Totals
    backward_totals: Totals


def passes_of(forward: Iterable[Piece], backward: Iterable[Piece]) -> Passes:
    """Pieces with their sums."""
    ahead, back = tuple(forward), tuple(backward)
    return Passes(ahead, back, _totals(ahead), _totals(back))


def _totals(pieces: tuple[Piece, ...]) -> Totals:
    sums = [NOTHING, NOTHING]
    for piece in pieces:
        sums[piece.communicates] = sums[piece.communicates] + piece.cost
    return Totals(sums[0], sums[1])


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rank computes and whom it talks to: chip, node, and how many nodes a group spans."""

    chip: str
    node: str
    gpus_per_node: int
    link_ratio: float = 1.0
    waiting_w: float = 0.0
    """What a GPU draws between kernels."""
    network: str = ""

    def exchange(self, op: str, count_bytes: float, ranks: int, nodes: int) -> Cost:
        """A collective among ranks, as many on each of so many nodes."""
        among = Among(ranks, self.node, nodes, self.network)
        return collective(op, int(count_bytes), among).scaled(1 / self.link_ratio)

    def nodes_of(self, ranks: int) -> int:
        """Nodes that a group of neighbouring ranks spans."""
        return max(-(-ranks // self.gpus_per_node), 1)


@dataclass(frozen=True, slots=True)
class Shape:
    """What the kernels of a layer depend on, and nothing else: the key of kept answers."""

    tokens: int
    batch: int
    seq: int
    tp: int
    cp: int
    ep: int
    expert_tp: int
    sequence_parallel: bool
    attention: Attention
    recompute: Recompute
    dtype: str
    each_bytes: int
    stack: Stack
    place: Place


def shape_of(options: TrainOptions, place: Place) -> Shape:
    """Part of the options that layers see."""
    return Shape(
        tokens=options.micro_batch * options.seq // options.cp,
        batch=options.micro_batch,
        seq=options.seq,
        tp=options.tp,
        cp=options.cp,
        ep=options.ep,
        expert_tp=options.expert_tp,
        sequence_parallel=options.sequence_parallel,
        attention=options.attention,
        recompute=options.recompute,
        dtype=options.format.gemm,
        each_bytes=options.format.activation_bytes,
        stack=options.stack,
        place=place,
    )


@lru_cache(maxsize=4096)
def layer_passes(model: Transformer, shape: Shape, *, has_experts: bool = False) -> Passes:
    """Pieces of one layer."""
    forward, backward = _attention_pieces(model, shape)
    if has_experts:
        more = _expert_pieces(model, shape)
    else:
        more = _mlp_pieces(model, shape, model.ffn, shape.tokens, shape.tp)
    forward += more[0]
    backward = more[1] + backward
    if shape.recompute is Recompute.FULL:
        backward = [*forward, *backward]
    elif shape.recompute is Recompute.SELECTIVE:
        again = [piece for piece in forward if piece.name.startswith("attention core")]
        backward = [*again, *backward]
    return passes_of(forward, backward)


def _linear(name: str, shape: Shape, m: int, n: int, k: int, batch: int = 1) -> _Pair:
    """A linear layer: one product forward; two, of inputs' and of weights' gradients, backward."""
    chip, ratio = shape.place.chip, shape.stack.product_ratio
    ahead = product(Gemm(m, n, k, batch, shape.dtype, chip)).scaled(ratio)
    inputs = product(Gemm(m, k, n, batch, shape.dtype, chip)).scaled(ratio)
    weights = product(Gemm(k, n, m, batch, shape.dtype, chip)).scaled(ratio)
    return (
        [Piece(name, ahead)],
        [Piece(f"{name} dgrad", inputs), Piece(f"{name} wgrad", weights)],
    )


_Pair = tuple[list[Piece], list[Piece]]


def _streams(
    name: str, shape: Shape, read: float, write: float, again: float, ratio: float = 0.0
) -> _Pair:
    """A streaming kernel forward, and one that moves ``again`` times as much backward."""
    chip, ratio = shape.place.chip, ratio or shape.stack.stream_ratio
    ahead = stream(int(read), int(write), chip).scaled(ratio)
    back = stream(int(read * again), int(write * again), chip).scaled(ratio)
    return [Piece(name, ahead)], [Piece(f"{name} grad", back)]


def _reduction(name: str, shape: Shape, count_bytes: float) -> Piece:
    """A layer's exchange among tensor-parallel ranks."""
    place = shape.place
    nodes = place.nodes_of(shape.tp)
    if shape.sequence_parallel:
        cost = place.exchange("all_gather", count_bytes, shape.tp, nodes)
        cost = cost + place.exchange("reduce_scatter", count_bytes, shape.tp, nodes)
    else:
        cost = place.exchange("all_reduce", count_bytes, shape.tp, nodes)
    return Piece(name, cost.scaled(shape.stack.tensor_parallel_ratio), communicates=True)


def _joined(*pairs: _Pair) -> _Pair:
    forward = [piece for pair in pairs for piece in pair[0]]
    backward = [piece for pair in reversed(pairs) for piece in pair[1]]
    return forward, backward


def _attention_pieces(model: Transformer, shape: Shape) -> _Pair:
    tokens, each, tp = shape.tokens, shape.each_bytes, shape.tp
    split = tp if shape.sequence_parallel else 1
    wide = tokens * model.hidden * each
    query, keys = model.heads * model.head_dim // tp, 2 * model.kv_heads * model.head_dim
    keys = max(keys // tp, 2 * model.head_dim)
    parts = [_streams("attention norm", shape, wide / split, wide / split, 1.5)]
    parts += _projections(model, shape, query, keys)
    parts += [_core(model, shape)]
    value = model.latent.v_dim * model.heads // tp if model.latent else query
    parts += [_linear("attention out", shape, tokens, model.hidden, value)]
    masks = tokens * model.hidden * model.dropout
    parts += [_streams("attention residual", shape, 2 * wide / split, (wide + masks) / split, 0.7)]
    forward, backward = _joined(*parts)
    if tp > 1:
        forward.append(_reduction("attention all-reduce", shape, wide))
        backward.append(_reduction("attention all-reduce grad", shape, wide))
    if shape.cp > 1:
        forward.append(_ring(model, shape, 1.0))
        backward.append(_ring(model, shape, 2.0))
    return forward, backward


def _projections(model: Transformer, shape: Shape, query: int, keys: int) -> list[_Pair]:
    tokens, each = shape.tokens, shape.each_bytes
    latent = model.latent
    if latent is None:
        moved = tokens * (query + keys) * each
        return [
            _linear("attention qkv", shape, tokens, query + keys, model.hidden),
            _streams("attention bias and rotation", shape, moved, moved, 1.0),
        ]
    heads, head = model.heads // shape.tp, latent.nope_dim + latent.rope_dim
    down = latent.kv_rank + latent.rope_dim + latent.q_rank
    parts = [_linear("attention down", shape, tokens, down, model.hidden)]
    rank = latent.q_rank or model.hidden
    parts.append(_linear("attention query up", shape, tokens, heads * head, rank))
    wide = heads * (latent.nope_dim + latent.v_dim)
    parts.append(_linear("attention key up", shape, tokens, wide, latent.kv_rank))
    return parts


def _core(model: Transformer, shape: Shape) -> _Pair:
    """Scores, softmax and values: one kernel, or two batched products around a softmax."""
    heads = model.heads // shape.tp
    kv_heads = max(model.kv_heads // shape.tp, 1)
    head = model.head_dim
    if model.latent is not None:
        kv_heads, head = heads, model.latent.nope_dim + model.latent.rope_dim
    chip = shape.place.chip
    rows = shape.seq // shape.cp
    if shape.attention is Attention.FLASH:
        core = Core(
            shape.batch,
            rows,
            shape.seq,
            heads,
            kv_heads,
            head,
            causal=model.causal,
            dtype=shape.dtype,
            chip=chip,
        )
        ahead = flash(core).scaled(shape.stack.score_ratio)
        # The backward pass does five products where the forward does two, at less of the peak.
        return [Piece("attention core", ahead)], [
            Piece("attention core grad", ahead.scaled(FLASH_BACKWARD_RATIO))
        ]
    batch = shape.batch * heads
    scores = batch * rows * shape.seq
    mask = scores if model.dropout else 0
    each = shape.each_bytes
    first = _linear("attention core scores", shape, rows, shape.seq, head, batch)
    last = _linear("attention core values", shape, rows, head, shape.seq, batch)
    moved, ratio = scores * each, shape.stack.score_ratio
    if batch % FUSED_SOFTMAX_BATCH:
        return _joined(first, *_plain_softmax(shape, moved, mask, ratio), last)
    soft = _streams("attention core softmax", shape, moved, moved, 1.5, ratio)
    drop = _streams("attention core dropout", shape, moved, moved + mask, 1.0, ratio)
    return _joined(first, soft, drop, last) if model.dropout else _joined(first, soft, last)


def _plain_softmax(shape: Shape, moved: int, mask: int, ratio: float) -> list[_Pair]:
    """Scale, mask, fp32 softmax, cast and dropout, where the fused kernel does not apply."""
    steps = (("scale", 1, 1), ("mask", 1, 1), ("to fp32", 1, 2), ("softmax", 2, 2), ("cast", 2, 1))
    parts = [
        _streams(f"attention core {name}", shape, read * moved, write * moved, 1.0, ratio)
        for name, read, write in steps
    ]
    parts.append(_streams("attention core dropout", shape, moved, moved + mask, 1.0, ratio))
    return parts


FUSED_SOFTMAX_BATCH = 4
"""Megatron-LM's fused softmax takes heads times sequences in multiples of this."""
FLASH_BACKWARD_RATIO = 2.9
"""Of the forward pass's time.  Five products for two, and no kernel's backward is as efficient:
published rates of the second flash attention on A100 give 2.7 to 3.2."""


def _ring(model: Transformer, shape: Shape, passes: float) -> Piece:
    """Keys and values sent round the context-parallel ranks."""
    keys = 2 * model.kv_heads * model.head_dim / shape.tp
    sent = shape.tokens * keys * shape.each_bytes * (shape.cp - 1) * passes
    place = shape.place
    cost = place.exchange("send_recv", sent, 2, min(place.nodes_of(shape.cp * shape.tp), 2))
    return Piece("context exchange", cost, communicates=True)


def _mlp_pieces(model: Transformer, shape: Shape, ffn: int, tokens: int, tp: int) -> _Pair:
    each = shape.each_bytes
    split = tp if shape.sequence_parallel else 1
    width, wide = max(ffn // tp, 1), tokens * model.hidden * each
    ups = 2 if model.gated else 1
    masks = tokens * model.hidden * model.dropout
    parts = []
    if not model.parallel_block:
        parts.append(_streams("mlp norm", shape, wide / split, wide / split, 1.5))
    inner = tokens * width * each
    parts += [
        _linear("mlp up", shape, tokens, ups * width, model.hidden),
        _streams("mlp activation", shape, ups * inner, inner, 1.5),
        _linear("mlp down", shape, tokens, model.hidden, width),
        _streams("mlp residual", shape, 2 * wide / split, (wide + masks) / split, 0.7),
    ]
    forward, backward = _joined(*parts)
    if tp > 1 and not model.parallel_block:
        forward.append(_reduction("mlp all-reduce", shape, wide))
        backward.append(_reduction("mlp all-reduce grad", shape, wide))
    return forward, backward


def _expert_pieces(model: Transformer, shape: Shape) -> _Pair:
    """Routing, exchange of tokens, grouped products of the experts, shared experts."""
    experts = model.experts
    if experts is None:
        return [], []
    tokens, each = shape.tokens, shape.each_bytes
    wide = tokens * model.hidden * each
    routed = tokens * experts.per_token
    held = max(experts.count // shape.ep, 1)
    rows = max(routed // held // max(shape.expert_tp, 1) * shape.tp, 1)
    width = max(experts.ffn // shape.expert_tp, 1)
    ups = 2 if model.gated else 1
    inner, moved = routed * width * each, routed * model.hidden * each
    parts = [
        _streams("mlp norm", shape, wide, wide, 1.5),
        _linear("router", shape, tokens, experts.count, model.hidden),
        _streams("permute", shape, moved, moved, 1.0),
        _linear("experts up", shape, rows, ups * width, model.hidden, held),
        _streams("experts activation", shape, ups * inner, inner, 1.5),
        _linear("experts down", shape, rows, model.hidden, width, held),
        _streams("unpermute", shape, moved, wide, 1.0),
    ]
    forward, backward = _joined(*parts)
    if shape.ep > 1:
        place = shape.place
        span = shape.ep * shape.expert_tp
        cost = place.exchange("all_to_all", moved, shape.ep, place.nodes_of(span))
        both = Piece("token exchange", cost.scaled(count=2.0), communicates=True)
        forward, backward = [*forward, both], [*backward, both]
    if experts.shared_ffn:
        shared = _mlp_pieces(model, shape, experts.shared_ffn, tokens, shape.tp)
        forward, backward = forward + shared[0], shared[1] + backward
    elif shape.tp > 1:
        forward.append(_reduction("experts all-reduce", shape, wide))
        backward.append(_reduction("experts all-reduce grad", shape, wide))
    return forward, backward


@lru_cache(maxsize=1024)
def embedding_passes(model: Transformer, shape: Shape) -> Passes:
    """Pieces of the embedding, on the first stage."""
    wide = shape.tokens * model.hidden * shape.each_bytes
    masks = shape.tokens * model.hidden * model.dropout
    forward, backward = _streams("embedding", shape, 2 * wide, 2 * wide + masks, 1.0)
    if shape.tp > 1:
        forward.append(_reduction("embedding all-reduce", shape, wide))
    return passes_of(forward, backward)


def _loss(shape: Shape, logits: int) -> list[_Pair]:
    """Cross entropy in fp32, kernel by kernel as the vocabulary-parallel one does it."""
    each = shape.each_bytes
    steps = (
        ("loss to fp32", each, 4, (4 + each) / (4 + each)),
        ("loss largest", 4, 0, 0.0),
        ("loss shifted", 4, 4, 0.0),
        ("loss exponentials", 4, 4, 0.0),
        ("loss sum", 4, 0, 0.0),
        ("loss softmax", 4, 4, 1.0),
    )
    return [_streams(name, shape, logits * r, logits * w, again) for name, r, w, again in steps]


@lru_cache(maxsize=1024)
def output_passes(model: Transformer, shape: Shape) -> Passes:
    """Pieces of the last norm, the logits and the loss, on the last stage."""
    vocab = padded_vocab(model, shape.tp) // shape.tp
    wide = shape.tokens * model.hidden * shape.each_bytes
    logits = shape.tokens * vocab
    parts = [
        _streams("final norm", shape, wide, wide, 1.5),
        _linear("logits", shape, shape.tokens, vocab, model.hidden),
        *_loss(shape, logits),
    ]
    forward, backward = _joined(*parts)
    if shape.tp > 1:
        forward.append(_reduction("loss all-reduce", shape, shape.tokens * 8))
        backward.append(_reduction("logits all-reduce grad", shape, wide))
    return passes_of(forward, backward)
