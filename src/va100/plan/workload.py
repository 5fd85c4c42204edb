"""What is trained or served, as shapes: transformers, their layers and exact parameter counts.

Files that describe models are read in :mod:`va100.plan.models`; what a layer costs in memory
and time is in :mod:`va100.plan.activations` and :mod:`va100.plan.layers`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """The mixture of experts of a layer.

    ``ffn`` is one expert's width, ``shared_ffn`` that of all shared experts together;
    the first ``dense_layers`` layers have an ordinary MLP, and then one layer in ``every``
    has experts.
    """

    count: int
    per_token: int
    ffn: int
    shared_ffn: int = 0
    shared_gate: bool = False
    dense_layers: int = 0
    every: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Multi-head latent attention: ranks of the compressed queries and keys, and head parts."""

    q_rank: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    v_dim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """A decoder (or encoder) of equal layers, as its shapes.

    ``head_dim`` times ``heads`` need not be ``hidden``.  ``positions`` counts learned position
    vectors, 0 without any.  ``extra_params`` stand beside the layers (a vision tower, a pooler).
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    gated: bool = False
    tied: bool = True
    rms_norm: bool = False
    positions: int = 0
    qkv_bias: bool = True
    out_bias: bool = True
    mlp_bias: bool = True
    qk_norm: bool = False
    parallel_block: bool = False
    norms_per_layer: int = 2
    embedding_norm: bool = False
    final_norm: bool = True
    causal: bool = True
    window: int = 0
    window_every: int = 1
    experts: Experts | None = None
    latent: Latent | None = None
    extra_params: int = 0
    head_params: int = 0
    token_types: int = 0
    max_context: int = 0
    dropout: bool = False

    def __post_init__(self) -> None:
        """Refuse shapes that no model has."""
        for name in ("layers", "hidden", "heads", "kv_heads", "head_dim", "vocab"):
            if getattr(self, name) < 1:
                raise ValueError(f"model {self.name}: {name} is {getattr(self, name)}, not >= 1")
        if self.heads % self.kv_heads:
            raise ValueError(
                f"model {self.name}: {self.heads} heads cannot share {self.kv_heads} key heads"
            )

    @property
    def norm_params(self) -> int:
        """Parameters of one normalisation over the hidden width."""
        return self.hidden * (1 if self.rms_norm else 2)

    @property
    def expert_layers(self) -> int:
        """Layers that hold experts."""
        return sum(self.has_experts(index) for index in range(self.layers))

    def has_experts(self, index: int) -> bool:
        """Whether the layer at this index holds experts."""
        if self.experts is None or index < self.experts.dense_layers:
            return False
        return (index - self.experts.dense_layers + 1) % self.experts.every == 0

    @property
    def attention_params(self) -> int:
        """Parameters of one layer's attention, with its own norms of queries and keys."""
        if self.latent is not None:
            return _latent_params(self, self.latent)
        query = self.heads * self.head_dim
        keys = 2 * self.kv_heads * self.head_dim
        weights = self.hidden * (query + keys) + query * self.hidden
        biases = (query + keys) * self.qkv_bias + self.hidden * self.out_bias
        return weights + biases + (2 * self.head_dim if self.qk_norm else 0)

    def mlp_params(self, width: int) -> int:
        """Parameters of an MLP of this width."""
        ups = 2 if self.gated else 1
        return (ups + 1) * self.hidden * width + (ups * width + self.hidden) * self.mlp_bias

    def layer_params(self, index: int = 0) -> int:
        """Parameters of one layer, all of its experts included."""
        dense = self.attention_params + self.norms_per_layer * self.norm_params
        if not self.has_experts(index) or self.experts is None:
            return dense + self.mlp_params(self.ffn)
        return dense + self.router_params + self.shared_params + self.routed_params

    @property
    def router_params(self) -> int:
        """Parameters that choose the experts of a token."""
        return self.hidden * self.experts.count if self.experts else 0

    @property
    def shared_params(self) -> int:
        """Parameters of a layer's shared experts."""
        if self.experts is None or not self.experts.shared_ffn:
            return 0
        gate = self.hidden if self.experts.shared_gate else 0
        return self.mlp_params(self.experts.shared_ffn) + gate

    @property
    def routed_params(self) -> int:
        """Parameters of a layer's routed experts, all together."""
        return self.experts.count * self.mlp_params(self.experts.ffn) if self.experts else 0

    @property
    def embedding_params(self) -> int:
        """Parameters of tokens', positions' and token types' vectors."""
        rows = self.vocab + self.positions + self.token_types
        return rows * self.hidden + (self.norm_params if self.embedding_norm else 0)

    @property
    def output_params(self) -> int:
        """Parameters after the last layer; a tied output matrix is the embedding's."""
        final = self.norm_params if self.final_norm else 0
        return final + self.head_params + (0 if self.tied else self.vocab * self.hidden)

    @property
    def params(self) -> int:
        """Parameters of the whole model."""
        if self.experts is None:
            layers = self.layers * self.layer_params()
        else:
            layers = sum(self.layer_params(index) for index in range(self.layers))
        return self.embedding_params + layers + self.output_params + self.extra_params

    @property
    def active_params(self) -> int:
        """Parameters that take part in one token."""
        if self.experts is None:
            return self.params
        idle = self.experts.count - self.experts.per_token
        return self.params - self.expert_layers * idle * self.mlp_params(self.experts.ffn)

    @property
    def kv_values_per_token(self) -> int:
        """Values that one layer keeps of one token."""
        if self.latent is not None:
            return self.latent.kv_rank + self.latent.rope_dim
        return 2 * self.kv_heads * self.head_dim

    def windowed(self, index: int) -> bool:
        """Whether this layer attends within the sliding window only."""
        if not self.window:
            return False
        return self.window_every == 1 or (index + 1) % self.window_every != 0


def _latent_params(model: Transformer, latent: Latent) -> int:
    head = latent.nope_dim + latent.rope_dim
    if latent.q_rank:
        query = model.hidden * latent.q_rank + latent.q_rank
        query += latent.q_rank * model.heads * head
    else:
        query = model.hidden * model.heads * head
    down = model.hidden * (latent.kv_rank + latent.rope_dim) + latent.kv_rank
    up = latent.kv_rank * model.heads * (latent.nope_dim + latent.v_dim)
    return query + down + up + model.heads * latent.v_dim * model.hidden
