"""Laws that a step's price keeps, whatever the model."""

from __future__ import annotations

import dataclasses

import pytest

from va100.errors import PlanError
from va100.plan.machine import find_machine
from va100.plan.stacks import FSDP, MEGATRON_LM, Attention
from va100.plan.training import estimate_training, model_flop_count, recompute_ratio
from va100.plan.training_options import Recompute, TrainOptions
from va100.plan.workload import Transformer

NODE = find_machine("hgx-a100-8x80gb")
GPT = Transformer(
    name="gpt", layers=24, hidden=2048, heads=16, kv_heads=16, head_dim=128, ffn=8192,
    vocab=51200, positions=2048, dropout=True,
)  # fmt: skip
BASE = TrainOptions(
    dp=8, micro_batch=4, global_batch=64, seq=2048, attention=Attention.UNFUSED,
    precision="fp16", stack=MEGATRON_LM,
)  # fmt: skip


def step(**changes):
    return estimate_training(GPT, dataclasses.replace(BASE, **changes), NODE)


class TestStep:
    def test_parts_add_up(self):
        for found in (step(), step(tp=2, dp=4), step(pp=4, dp=2, chunks=2)):
            assert found.parts.total_s == pytest.approx(found.step_s)
            assert found.band[0] < found.step_s < found.band[1]

    def test_never_beyond_the_peak(self):
        for recompute in Recompute:
            found = step(recompute=recompute)
            assert 0 < found.mfu <= found.hfu < 1

    def test_recomputation_costs_time_and_saves_memory(self):
        none, selective, full = (step(recompute=r) for r in Recompute)
        assert none.step_s < selective.step_s < full.step_s
        assert none.worst.peak_bytes > selective.worst.peak_bytes > full.worst.peak_bytes

    def test_a_larger_batch_takes_longer_but_less_each(self):
        small, large = step(global_batch=32), step(global_batch=256)
        assert small.step_s < large.step_s < 8 * small.step_s

    def test_replicas_divide_the_work(self):
        one, eight = step(dp=1), step(dp=8)
        assert one.step_s / 8 < eight.step_s < one.step_s / 5

    def test_energy_is_between_rest_and_the_limit(self):
        found = step()
        assert NODE.idle_w < found.power_w < NODE.power_w

    def test_the_same_again_is_the_same(self):
        assert step() == step()

    def test_fsdp_gathers_what_it_shards(self):
        plain = step(stack=FSDP, precision="bf16", overlap_gradients=True)
        sharded = step(stack=FSDP, precision="bf16", zero=3, overlap_gradients=True)
        assert sharded.worst.weights_bytes * 8 == pytest.approx(plain.worst.weights_bytes, rel=1e-6)
        assert sharded.parts.gradients_s > plain.parts.gradients_s

    def test_nodes_talk_slower_than_links(self):
        near = step(tp=1, dp=8)
        far = step(tp=1, dp=16)
        assert far.parts.gradients_s > near.parts.gradients_s


class TestWork:
    def test_flop_count_is_narayanan_and_others(self):
        # 72 B s l h^2 (1 + s / 6h + V / 12 l h), arXiv 2104.04473 less recomputation
        batch, s, layers, h, vocab = 64, 2048, 24, 2048, 51200
        formula = 72 * batch * s * layers * h**2 * (1 + s / (6 * h) + vocab / (12 * layers * h))
        assert model_flop_count(GPT, batch, s) == pytest.approx(formula, rel=2e-3)

    def test_full_recomputation_is_a_third_more(self):
        full = dataclasses.replace(BASE, recompute=Recompute.FULL)
        assert 1.3 < recompute_ratio(GPT, full) < 4 / 3
        assert recompute_ratio(GPT, BASE) == 1


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"tp": 3}, "--tp 3 does not divide"),
            ({"global_batch": 63}, "--global-batch 63 is no multiple"),
            ({"pp": 48}, "more than the model's 24 layers"),
            ({"seq": 4096}, "beyond the model's 2048 learned positions"),
            ({"ep": 2}, "--ep 2 does not divide"),
            ({"chunks": 2}, "--chunks needs a pipeline"),
            ({"pp": 4, "stage_layers": (6, 6, 6, 5)}, "--stage-layers"),
            ({"cp": 3}, "--cp 3 does not divide"),
        ],
    )
    def test_say_what_would_be_right(self, changes, said):
        with pytest.raises(PlanError, match=said) as error:
            step(**changes)
        assert error.value.hint
