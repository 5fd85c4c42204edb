"""Hugging Face ``config.json`` to a :class:`~va100.plan.workload.Transformer`.

One table says which names a family's file uses and which traits its layers have; a family that
is not in it is refused by name.  Nothing is downloaded: only the given file is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from va100.errors import PlanError
from va100.plan.workload import Experts, Latent, Transformer

Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Keys:
    """Names under which a family's file keeps its shapes; the first that is there counts."""

    layers: tuple[str, ...] = ("num_hidden_layers",)
    hidden: tuple[str, ...] = ("hidden_size",)
    heads: tuple[str, ...] = ("num_attention_heads",)
    kv_heads: tuple[str, ...] = ("num_key_value_heads",)
    ffn: tuple[str, ...] = ("intermediate_size",)
    context: tuple[str, ...] = ("max_position_embeddings",)


@dataclass(frozen=True, slots=True)
class Family:
    """One ``model_type``: its key names, fixed traits, and what else its file says."""

    keys: Keys = field(default_factory=Keys)
    traits: Mapping[str, Any] = field(default_factory=dict)
    tied: bool = False
    """Whether input and output embeddings are one matrix when the file does not say."""
    more: Callable[[Config, Reader], dict[str, Any]] | None = None


class Reader:
    """Typed access to a file's values, with errors that name the key."""

    def __init__(self, config: Config, where: str) -> None:
        self._config = config
        self._where = where

    def count(self, names: tuple[str, ...], default: int | None = None) -> int:
        """Whole number under the first of these names that is there."""
        for name in names:
            value = self._config.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise PlanError(
                    f"{self._where}: {name} is {value!r}, expected a whole number",
                    hint="correct the file",
                )
            return value
        if default is None:
            raise PlanError(
                f"{self._where}: no {' or '.join(names)}",
                hint="add it: a plan needs the shape of every layer",
            )
        return default

    def flag(self, name: str, *, default: bool) -> bool:
        """Truth value under a name."""
        value = self._config.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise PlanError(
                f"{self._where}: {name} is {value!r}, expected true or false",
                hint="correct the file",
            )
        return value


def read_config(config: Config, where: str) -> Transformer:
    """Transformer that a parsed ``config.json`` describes.

    Raises
    ------
    PlanError
        The family is unknown, or a shape is missing or no number.
    """
    config = _text_part(config)
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise PlanError(
            f"{where}: model_type {kind!r} is not one that is read here",
            hint=f"known: {', '.join(sorted(FAMILIES))}; or describe its shapes in YAML "
            "(docs/planning.md)",
        )
    family, reader = FAMILIES[kind], Reader(config, where)
    try:
        return Transformer(**_shapes(config, where, family, reader))
    except ValueError as error:
        raise PlanError(f"{where}: {error}", hint="correct the file") from error


def _text_part(config: Config) -> Config:
    """Language model of a file that describes several parts, its vision part kept beside it."""
    inner = config.get("text_config")
    if not isinstance(inner, Mapping):
        return config
    merged = {**config, **inner}
    if inner.get("model_type") not in FAMILIES:
        merged["model_type"] = config.get("model_type")
    return merged


def _shapes(config: Config, where: str, family: Family, reader: Reader) -> dict[str, Any]:
    keys = family.keys
    hidden, heads = reader.count(keys.hidden), reader.count(keys.heads)
    if not heads or (hidden % heads and "head_dim" not in config):
        raise PlanError(
            f"{where}: {hidden} values cannot be shared by {heads} heads", hint="correct the file"
        )
    shapes: dict[str, Any] = {
        "name": str(config.get("_name_or_path") or config.get("model_type")),
        "layers": reader.count(keys.layers),
        "hidden": hidden,
        "heads": heads,
        "kv_heads": reader.count(keys.kv_heads, heads) or heads,
        "head_dim": reader.count(("head_dim",), hidden // heads),
        "ffn": reader.count(keys.ffn, 4 * hidden) or 4 * hidden,
        "vocab": reader.count(("vocab_size",)),
        "tied": reader.flag("tie_word_embeddings", default=family.tied),
        "max_context": reader.count(keys.context, 0),
        **family.traits,
    }
    if family.more is not None:
        shapes.update(family.more(config, reader))
    return shapes


_LLAMA: Final = {
    "gated": True, "rms_norm": True, "qkv_bias": False, "out_bias": False, "mlp_bias": False,
}  # fmt: skip
_GPT2_KEYS: Final = Keys(
    layers=("n_layer", "num_hidden_layers"),
    hidden=("n_embd", "hidden_size"),
    heads=("n_head", "num_attention_heads"),
    ffn=("n_inner",),
    context=("n_positions", "n_ctx", "max_position_embeddings"),
)
_MPT_KEYS: Final = Keys(
    layers=("n_layers",), hidden=("d_model",), heads=("n_heads",), ffn=("ffn_hidden_size",),
    context=("max_seq_len",),
)  # fmt: skip


def _llama(config: Config, reader: Reader) -> dict[str, Any]:
    bias = reader.flag("attention_bias", default=False)
    return {
        "qkv_bias": bias,
        "out_bias": bias,
        "mlp_bias": reader.flag("mlp_bias", default=False),
    }


def _windowed(config: Config, reader: Reader) -> dict[str, Any]:
    if config.get("sliding_window") is None or config.get("use_sliding_window") is False:
        return {}
    return {"window": reader.count(("sliding_window",))}


def _gemma2(config: Config, reader: Reader) -> dict[str, Any]:
    return {**_windowed(config, reader), "window_every": 2}


def _mixtral(config: Config, reader: Reader) -> dict[str, Any]:
    experts = Experts(
        count=reader.count(("num_local_experts",)),
        per_token=reader.count(("num_experts_per_tok",)),
        ffn=reader.count(("intermediate_size",)),
    )
    return {"experts": experts, **_windowed(config, reader)}


def _qwen_moe(config: Config, reader: Reader) -> dict[str, Any]:
    return {
        "experts": Experts(
            count=reader.count(("num_experts",)),
            per_token=reader.count(("num_experts_per_tok",)),
            ffn=reader.count(("moe_intermediate_size",)),
            shared_ffn=reader.count(("shared_expert_intermediate_size",), 0),
            shared_gate=True,
            every=reader.count(("decoder_sparse_step",), 1),
        )
    }


def _deepseek(config: Config, reader: Reader) -> dict[str, Any]:
    expert = reader.count(("moe_intermediate_size",))
    return {
        "experts": Experts(
            count=reader.count(("n_routed_experts",)),
            per_token=reader.count(("num_experts_per_tok",)),
            ffn=expert,
            shared_ffn=expert * reader.count(("n_shared_experts",), 0),
            dense_layers=reader.count(("first_k_dense_replace",), 0),
        ),
        "latent": Latent(
            q_rank=reader.count(("q_lora_rank",), 0),
            kv_rank=reader.count(("kv_lora_rank",)),
            nope_dim=reader.count(("qk_nope_head_dim",)),
            rope_dim=reader.count(("qk_rope_head_dim",)),
            v_dim=reader.count(("v_head_dim",)),
        ),
    }


def _positions(config: Config, reader: Reader) -> dict[str, Any]:
    return {"positions": reader.count(_GPT2_KEYS.context)}


def _opt(config: Config, reader: Reader) -> dict[str, Any]:
    # Two more positions than tokens: the family keeps an offset for padding.
    return {"positions": reader.count(("max_position_embeddings",)) + 2}


def _bert(config: Config, reader: Reader) -> dict[str, Any]:
    hidden = reader.count(("hidden_size",))
    return {
        "positions": reader.count(("max_position_embeddings",)),
        "token_types": reader.count(("type_vocab_size",), 0),
        "head_params": hidden * hidden + hidden,
    }


def _neox(config: Config, reader: Reader) -> dict[str, Any]:
    return {"parallel_block": reader.flag("use_parallel_residual", default=True)}


def _bigcode(config: Config, reader: Reader) -> dict[str, Any]:
    heads = 1 if reader.flag("multi_query", default=True) else reader.count(("n_head",))
    return {"kv_heads": heads, **_positions(config, reader)}


def _falcon(config: Config, reader: Reader) -> dict[str, Any]:
    new = reader.flag("new_decoder_architecture", default=False)
    heads = reader.count(("num_attention_heads", "n_head"))
    multi = reader.flag("multi_query", default=True)
    bias = reader.flag("bias", default=False)
    kv_heads = reader.count(("num_kv_heads",), heads) if new else 1 if multi else heads
    return {
        "kv_heads": kv_heads,
        "norms_per_layer": 2 if new or not reader.flag("parallel_attn", default=True) else 1,
        "parallel_block": reader.flag("parallel_attn", default=True),
        **dict.fromkeys(("qkv_bias", "out_bias", "mlp_bias"), bias),
    }


def _mpt(config: Config, reader: Reader) -> dict[str, Any]:
    ratio = reader.count(("expansion_ratio",), 4)
    return {"ffn": ratio * reader.count(("d_model",))}


def _vision_language(config: Config, reader: Reader) -> dict[str, Any]:
    vision = config.get("vision_config")
    if not isinstance(vision, Mapping):
        return _windowed(config, reader)
    return {**_windowed(config, reader), "extra_params": _vision_params(Reader(vision, "vision"))}


def _vision_params(reader: Reader) -> int:
    """Parameters of a tower of gated layers with biases, its patches, and the merger after it."""
    width = reader.count(("hidden_size", "embed_dim"))
    inner = reader.count(("intermediate_size",), 4 * width)
    depth = reader.count(("depth", "num_hidden_layers"))
    out = reader.count(("out_hidden_size",), width)
    patch = reader.count(("patch_size",), 14) ** 2 * 3 * reader.count(("temporal_patch_size",), 2)
    attention = 4 * width * (width + 1)
    merged = width * reader.count(("spatial_merge_size",), 2) ** 2
    layer = attention + 3 * width * inner + 2 * inner + width + 2 * width
    merger = width + merged * (merged + 1) + out * (merged + 1)
    return depth * layer + patch * width + merger


FAMILIES: Final[Mapping[str, Family]] = {
    "bert": Family(
        traits={"causal": False, "embedding_norm": True, "final_norm": False, "dropout": True},
        tied=True, more=_bert,
    ),
    "bloom": Family(
        keys=Keys(
            layers=("n_layer", "num_hidden_layers"), hidden=("hidden_size", "n_embed"),
            heads=("n_head", "num_attention_heads"), kv_heads=(), ffn=(), context=("seq_length",),
        ),
        traits={"embedding_norm": True}, tied=True,
    ),
    "deepseek_v2": Family(traits=_LLAMA, more=_deepseek),
    "deepseek_v3": Family(traits=_LLAMA, more=_deepseek),
    "falcon": Family(
        keys=Keys(
            layers=("num_hidden_layers", "n_layer"), heads=("num_attention_heads", "n_head"),
            ffn=("ffn_hidden_size",),
        ),
        tied=True, more=_falcon,
    ),
    "gemma": Family(traits=_LLAMA, tied=True),
    "gemma2": Family(traits={**_LLAMA, "norms_per_layer": 4}, tied=True, more=_gemma2),
    "gpt2": Family(
        keys=_GPT2_KEYS, traits={"dropout": True}, tied=True, more=_positions,
    ),
    "gpt_bigcode": Family(keys=_GPT2_KEYS, tied=True, more=_bigcode),
    "gpt_neox": Family(more=_neox),
    "llama": Family(traits=_LLAMA, more=_llama),
    "mistral": Family(traits=_LLAMA, more=_windowed),
    "mixtral": Family(traits=_LLAMA, more=_mixtral),
    "mpt": Family(
        keys=_MPT_KEYS, tied=True, more=_mpt,
        traits={"qkv_bias": False, "out_bias": False, "mlp_bias": False, "rms_norm": True},
    ),
    "opt": Family(
        keys=Keys(ffn=("ffn_dim",)), traits={"dropout": True}, tied=True, more=_opt,
    ),
    "phi3": Family(traits=_LLAMA, more=_windowed),
    "qwen2": Family(traits={**_LLAMA, "qkv_bias": True}, more=_windowed),
    "qwen2_5_vl": Family(traits={**_LLAMA, "qkv_bias": True}, more=_vision_language),
    "qwen2_moe": Family(traits={**_LLAMA, "qkv_bias": True}, more=_qwen_moe),
    "qwen2_vl": Family(traits={**_LLAMA, "qkv_bias": True}),
    "qwen3": Family(traits={**_LLAMA, "qk_norm": True}),
    "qwen3_moe": Family(traits={**_LLAMA, "qk_norm": True}, more=_qwen_moe),
    "roberta": Family(
        traits={"causal": False, "embedding_norm": True, "final_norm": False, "dropout": True},
        tied=True, more=_bert,
    ),
}  # fmt: skip
"""Every ``model_type`` that is read.  MPT's norms have no bias, as RMS norms have none."""
