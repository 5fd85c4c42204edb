"""Memory of a rank against counts made by hand and against published formulas."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.plan.memory import (
    DISPATCH_COPIES,
    layer_activation_bytes,
    logit_bytes,
    stage_memories,
    stage_params,
    worst_stage,
)
from va100.plan.stacks import MEGATRON_LM, Attention
from va100.plan.training_options import Recompute, TrainOptions
from va100.plan.workload import Experts, Transformer

GPT = Transformer(
    name="gpt", layers=8, hidden=512, heads=8, kv_heads=8, head_dim=64, ffn=2048, vocab=50304,
    positions=1024, dropout=True,
)  # fmt: skip
BASE = TrainOptions(
    micro_batch=4, global_batch=32, seq=1024, attention=Attention.UNFUSED, precision="bf16"
)


def replaced(**changes):
    return dataclasses.replace(BASE, **changes)


class TestActivations:
    def test_a_layer_keeps_what_korthikanti_and_others_count(self):
        # sbh (34 + 5 a s / h), arXiv 2205.05198, equation 1
        s, b, h, a = 1024, 4, 512, 8
        assert layer_activation_bytes(GPT, BASE, 0) == s * b * h * (34 + 5 * a * s / h)

    def test_tensor_and_sequence_parallel_divide_it(self):
        s, b, h, a, t = 1024, 4, 512, 8, 4
        split = replaced(tp=t)
        assert layer_activation_bytes(GPT, split, 0) == s * b * h * (
            10 + 24 / t + 5 * a * s / (h * t)
        )
        both = replaced(tp=t, sequence_parallel=True)
        assert layer_activation_bytes(GPT, both, 0) == s * b * h / t * (34 + 5 * a * s / h)

    def test_recomputation_keeps_less(self):
        s, b, h = 1024, 4, 512
        selective = replaced(recompute=Recompute.SELECTIVE)
        assert layer_activation_bytes(GPT, selective, 0) == s * b * h * 34
        full = replaced(recompute=Recompute.FULL)
        assert layer_activation_bytes(GPT, full, 0) == 2 * s * b * h

    def test_experts_are_priced_by_the_tokens_they_get(self):
        moe = dataclasses.replace(GPT, experts=Experts(count=8, per_token=1, ffn=2048))
        twice = dataclasses.replace(GPT, experts=Experts(count=8, per_token=2, ffn=2048))
        flash = replaced(attention=Attention.FLASH)
        one = layer_activation_bytes(moe, flash, 0)
        two = layer_activation_bytes(twice, flash, 0)
        assert one > layer_activation_bytes(GPT, flash, 0)
        # A second expert a token: its input and output, before and after its nonlinearity, and
        # what sending there and back keeps.
        assert two - one == 4 * 1024 * (2 * 512 + 2 * 2048 + DISPATCH_COPIES * 512) * 2


class TestParameters:
    @pytest.mark.parametrize("pp", [1, 2, 4])
    def test_stages_hold_the_model_once_and_a_tied_embedding_twice(self, pp):
        options = replaced(pp=pp)
        each = GPT.layers // pp
        held = [
            sum(stage_params(GPT, options, stage, range(stage * each, (stage + 1) * each)))
            for stage in range(pp)
        ]
        extra = GPT.vocab * GPT.hidden if pp > 1 else 0
        assert sum(held) == GPT.params + extra

    def test_uneven_stages_count_their_own_layers(self):
        # Layers of [1, 2, 2, 3]: the heaviest decides, not the mean.
        options = replaced(pp=4, stage_layers=(1, 2, 2, 3))
        memories = stage_memories(GPT, options)
        assert [m.layers for m in memories] == [1, 2, 2, 3]
        assert worst_stage(memories).peak_bytes == max(m.peak_bytes for m in memories)
        layer = GPT.layer_params()
        assert memories[2].params == memories[1].params == 2 * layer

    def test_experts_spread_over_expert_parallel_ranks(self):
        moe = dataclasses.replace(GPT, experts=Experts(count=8, per_token=2, ffn=2048))
        whole = stage_params(moe, replaced(dp=4, global_batch=32), 0, range(8))
        spread = stage_params(moe, replaced(dp=4, ep=4, global_batch=32), 0, range(8))
        assert spread[0] == whole[0]
        assert spread[1] * 4 == whole[1]


class TestStates:
    def test_bytes_of_a_parameter(self):
        memory = stage_memories(GPT, BASE)[0]
        assert memory.weights_bytes == 2 * memory.params
        assert memory.gradients_bytes == 4 * memory.params
        assert memory.optimizer_bytes == 12 * memory.params

    @given(st.sampled_from([1, 2, 4, 8]))
    def test_zero_divides_what_its_stage_shards(self, dp):
        plain = stage_memories(GPT, replaced(dp=dp, global_batch=32))[0]
        for zero, names in ((1, ["optimizer"]), (2, ["optimizer", "gradients"])):
            sharded = stage_memories(GPT, replaced(dp=dp, zero=zero, global_batch=32))[0]
            for name in ("weights", "gradients", "optimizer"):
                over = dp if name in names else 1
                field = f"{name}_bytes"
                assert getattr(sharded, field) == int(getattr(plain, field) / over)

    def test_logits_stand_twice(self):
        count = 4 * 1024 * 50304
        assert logit_bytes(GPT, BASE) == int(count * 6.3)

    @given(st.integers(1, 8), st.sampled_from(list(Recompute)))
    def test_more_sequences_never_take_less(self, micro_batch, recompute):
        small = replaced(micro_batch=micro_batch, global_batch=8 * 9, recompute=recompute)
        large = dataclasses.replace(small, micro_batch=micro_batch + 1)
        assert stage_memories(GPT, small)[0].peak_bytes < stage_memories(GPT, large)[0].peak_bytes


class TestPublicCases:
    @pytest.mark.parametrize(
        ("sizes", "measured_bytes"),
        [
            ({"dp": 4, "pp": 2, "micro_batch": 2, "global_batch": 2048}, 49.5e9),
            ({"tp": 8, "micro_batch": 4, "global_batch": 128}, 28.6e9),
        ],
    )
    def test_llama_2_7b_as_megatron_lm_482_measured_it(self, sizes, measured_bytes):
        # Eight GPUs, distributed optimizer, flash attention; the sequence length is not printed
        # there and taken as 2048.
        llama = Transformer(
            name="llama", layers=32, hidden=4096, heads=32, kv_heads=32, head_dim=128, ffn=11008,
            vocab=32000, gated=True, tied=False, rms_norm=True, qkv_bias=False, out_bias=False,
            mlp_bias=False,
        )  # fmt: skip
        options = TrainOptions(
            **sizes, seq=2048, zero=1, attention=Attention.FLASH, stack=MEGATRON_LM
        )
        peak = worst_stage(stage_memories(llama, options)).peak_bytes
        assert peak == pytest.approx(measured_bytes, rel=0.03)
