"""Parameter counts of public models, to the last one, from their published shapes."""

from __future__ import annotations

import pytest

from va100.errors import PlanError
from va100.plan.models.huggingface import FAMILIES, read_config

LLAMA = {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32}
GPT2 = {"n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}

PUBLISHED = {
    "Llama-2-7B": (
        {"model_type": "llama", **LLAMA, "intermediate_size": 11008, "vocab_size": 32000},
        6_738_415_616,
    ),
    "Llama-3-8B": (
        {
            "model_type": "llama", **LLAMA, "num_key_value_heads": 8, "intermediate_size": 14336,
            "vocab_size": 128256,
        },
        8_030_261_248,
    ),
    "Llama-3.1-405B": (
        {
            "model_type": "llama", "hidden_size": 16384, "intermediate_size": 53248,
            "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8,
            "vocab_size": 128256,
        },
        405_853_388_800,
    ),
    "GPT-2": ({"model_type": "gpt2", **GPT2}, 124_439_808),
    "Mixtral-8x7B": (
        {
            "model_type": "mixtral", **LLAMA, "num_key_value_heads": 8, "intermediate_size": 14336,
            "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
        },
        46_702_792_704,
    ),
    "BLOOM-176B": (
        {"model_type": "bloom", "n_layer": 70, "hidden_size": 14336, "n_head": 112,
         "vocab_size": 250880},
        176_247_271_424,
    ),
    "OPT-1.3B": (
        {
            "model_type": "opt", "hidden_size": 2048, "num_hidden_layers": 24,
            "num_attention_heads": 32, "ffn_dim": 8192, "max_position_embeddings": 2048,
            "vocab_size": 50272,
        },
        1_315_758_080,
    ),
    "MPT-7B": (
        {"model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32,
         "vocab_size": 50432, "expansion_ratio": 4},
        6_649_286_656,
    ),
    "Falcon-7B": (
        {
            "model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
            "num_attention_heads": 71, "vocab_size": 65024, "multi_query": True,
            "parallel_attn": True, "bias": False, "new_decoder_architecture": False,
        },
        6_921_720_704,
    ),
    "Falcon-40B": (
        {
            "model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60,
            "num_attention_heads": 128, "num_kv_heads": 8, "vocab_size": 65024, "bias": False,
            "new_decoder_architecture": True,
        },
        41_303_293_952,
    ),
    "Qwen2.5-7B": (
        {
            "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
            "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
            "vocab_size": 152064,
        },
        7_615_616_512,
    ),
    "Qwen3-8B": (
        {
            "model_type": "qwen3", "hidden_size": 4096, "head_dim": 128,
            "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
            "num_key_value_heads": 8, "vocab_size": 151936,
        },
        8_190_735_360,
    ),
    "Qwen1.5-MoE-A2.7B": (
        {
            "model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632,
            "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
            "num_experts": 60, "num_experts_per_tok": 4, "num_hidden_layers": 24,
            "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 151936,
        },
        14_315_784_192,
    ),
    "Qwen3-30B-A3B": (
        {
            "model_type": "qwen3_moe", "hidden_size": 2048, "head_dim": 128,
            "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128,
            "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_attention_heads": 32,
            "num_key_value_heads": 4, "vocab_size": 151936,
        },
        30_532_122_624,
    ),
    "DeepSeek-V2": (
        {
            "model_type": "deepseek_v2", "hidden_size": 5120, "intermediate_size": 12288,
            "moe_intermediate_size": 1536, "num_hidden_layers": 60, "num_attention_heads": 128,
            "n_routed_experts": 160, "n_shared_experts": 2, "num_experts_per_tok": 6,
            "first_k_dense_replace": 1, "q_lora_rank": 1536, "kv_lora_rank": 512,
            "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
            "vocab_size": 102400,
        },
        235_741_434_880,
    ),
    "GPT-NeoX-20B": (
        {"model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576,
         "num_hidden_layers": 44, "num_attention_heads": 64, "vocab_size": 50432},
        20_554_567_680,
    ),
    "Gemma-2B": (
        {
            "model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384,
            "num_hidden_layers": 18, "num_attention_heads": 8, "num_key_value_heads": 1,
            "head_dim": 256, "vocab_size": 256000,
        },
        2_506_172_416,
    ),
    "Gemma-2-2B": (
        {
            "model_type": "gemma2", "hidden_size": 2304, "intermediate_size": 9216,
            "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
            "head_dim": 256, "vocab_size": 256000, "sliding_window": 4096,
        },
        2_614_341_888,
    ),
    "BERT-base": (
        {
            "model_type": "bert", "hidden_size": 768, "intermediate_size": 3072,
            "num_hidden_layers": 12, "num_attention_heads": 12, "vocab_size": 30522,
            "max_position_embeddings": 512, "type_vocab_size": 2,
        },
        109_482_240,
    ),
    "StarCoder": (
        {"model_type": "gpt_bigcode", "n_embd": 6144, "n_layer": 40, "n_head": 48,
         "n_inner": 24576, "vocab_size": 49152, "n_positions": 8192, "multi_query": True},
        15_517_456_384,
    ),
    "Qwen2.5-VL-3B": (
        {
            "model_type": "qwen2_5_vl", "hidden_size": 2048, "intermediate_size": 11008,
            "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 2,
            "vocab_size": 151936, "tie_word_embeddings": True,
            "vision_config": {
                "depth": 32, "hidden_size": 1280, "intermediate_size": 3420,
                "out_hidden_size": 2048, "patch_size": 14, "spatial_merge_size": 2,
            },
        },
        3_754_622_976,
    ),
}  # fmt: skip


class TestParameters:
    @pytest.mark.parametrize("name", PUBLISHED)
    def test_equal_the_published_count(self, name):
        config, params = PUBLISHED[name]
        assert read_config(config, name).params == params

    def test_active_ones_are_fewer_where_there_are_experts(self):
        model = read_config(PUBLISHED["Mixtral-8x7B"][0], "x")
        assert model.active_params == 12_879_925_248


class TestRefusals:
    def test_an_unknown_family_is_named_with_the_known_ones(self):
        with pytest.raises(PlanError, match="'t5' is not one") as error:
            read_config({"model_type": "t5"}, "config.json")
        assert all(name in str(error.value) for name in FAMILIES)

    @pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "vocab_size"])
    def test_a_missing_shape_is_named(self, key):
        config = {**PUBLISHED["Llama-2-7B"][0]}
        del config[key]
        with pytest.raises(PlanError, match=key):
            read_config(config, "config.json")

    @pytest.mark.parametrize("value", ["4096", -1, 4096.5, True])
    def test_a_shape_that_is_no_count_is_named(self, value):
        with pytest.raises(PlanError, match=r"hidden_size is .*, expected a whole number"):
            read_config({**PUBLISHED["Llama-2-7B"][0], "hidden_size": value}, "config.json")

    def test_heads_that_do_not_share_keys_evenly(self):
        with pytest.raises(PlanError, match="cannot share"):
            read_config({**PUBLISHED["Llama-2-7B"][0], "num_key_value_heads": 5}, "config.json")
