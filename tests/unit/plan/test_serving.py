"""Laws of serving: memory to the byte, time that grows with work, the longest context."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.plan_requests import MODELS
from va100.errors import PlanError
from va100.plan.calibration import calibrate
from va100.plan.machine import find_machine
from va100.plan.models.huggingface import read_config
from va100.plan.serve_search import holds, least_share, smallest_serving
from va100.plan.serving import GRID, StepModel, estimate_serving, prefill
from va100.plan.serving_memory import cache_tokens, max_context, serve_memories
from va100.plan.serving_options import ServeOptions
from va100.plan.training import place_of

GPU = find_machine("a100-sxm4-80gb")
NODE = find_machine("hgx-a100-8x80gb")
LLAMA = MODELS["meta-llama/Llama-2-7b-hf"]
LLAMA_3 = MODELS["meta-llama/Meta-Llama-3-8B"]
LLAMA_405B = read_config(
    {
        "model_type": "llama", "hidden_size": 16384, "intermediate_size": 53248,
        "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8,
        "vocab_size": 128256, "max_position_embeddings": 131072,
    },
    "405B",
)  # fmt: skip
QWEN_VL = read_config(
    {
        "model_type": "qwen2_5_vl", "hidden_size": 2048, "intermediate_size": 11008,
        "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 2,
        "vocab_size": 151936, "tie_word_embeddings": True, "max_position_embeddings": 128000,
        "vision_config": {
            "depth": 32, "hidden_size": 1280, "intermediate_size": 3420,
            "out_hidden_size": 2048, "patch_size": 14, "spatial_merge_size": 2,
        },
    },
    "VL",
)  # fmt: skip


class TestMemory:
    def test_weights_are_two_bytes_a_parameter(self):
        memory = serve_memories(LLAMA, ServeOptions(), GPU)[0]
        assert memory.weights_bytes == 2 * LLAMA.params
        assert memory.token_bytes == 2 * 2 * 32 * 32 * 128

    def test_reserved_is_told_from_needed(self):
        memory = serve_memories(LLAMA, ServeOptions(), GPU)[0]
        assert memory.budget_bytes == int(0.9 * GPU.memory_bytes)
        assert memory.fixed_bytes < memory.budget_bytes
        assert memory.cache_bytes == memory.budget_bytes - memory.fixed_bytes

    @pytest.mark.parametrize(("tp", "split"), [(1, 1), (4, 4), (8, 8), (16, 8)])
    def test_shared_key_heads_are_copied_beyond_their_count(self, tp, split):
        one = serve_memories(LLAMA_3, ServeOptions(), NODE)[0].token_bytes
        assert serve_memories(LLAMA_3, ServeOptions(tp=tp), NODE)[0].token_bytes == one / split

    def test_the_poorest_of_uneven_stages_decides(self):
        uneven = ServeOptions(pp=4, stage_layers=(4, 8, 8, 12))
        memories = serve_memories(LLAMA, uneven, NODE)
        each = [m.cache_bytes // m.block_bytes * 16 for m in memories]
        assert cache_tokens(LLAMA, memories) == min(each) == each[3]

    def test_the_longest_context_fits_and_one_more_does_not(self):
        options = ServeOptions(max_context=10**7)
        memories = serve_memories(LLAMA, options, GPU)
        longest = max_context(LLAMA, options, memories)
        held = cache_tokens(LLAMA, memories)
        assert longest == held

    def test_windows_bound_what_a_layer_keeps(self):
        near = dataclasses.replace(LLAMA, window=4096)
        options = ServeOptions(max_context=2**20)
        memories = serve_memories(near, options, GPU)
        assert max_context(near, options, memories) == 2**20
        half = dataclasses.replace(LLAMA, window=4096, window_every=2)
        plain = max_context(LLAMA, options, serve_memories(LLAMA, options, GPU))
        assert plain < max_context(half, options, memories) < 2.1 * plain


class TestRefusals:
    def test_405b_needs_twelve_cards_or_two_nodes(self):
        ways = smallest_serving(LLAMA_405B, ServeOptions(), NODE)
        assert ways[0].options.gpus == 12
        assert any(way.options.tp == 8 and way.options.pp == 2 for way in ways)
        assert all(way.fits for way in ways)

    def test_a_third_of_the_card_is_too_little_for_a_model_that_sees(self):
        options = ServeOptions(memory_share=0.3, chunk=0)
        assert not holds(QWEN_VL, options, GPU)
        least = least_share(QWEN_VL, options, GPU)
        assert 0.3 < least < 0.6
        assert not holds(
            QWEN_VL, dataclasses.replace(options, memory_share=round(least - 0.01, 2)), GPU
        )

    def test_beyond_the_models_context(self):
        model = dataclasses.replace(LLAMA, max_context=4096)
        with pytest.raises(PlanError, match="the model takes 4096"):
            estimate_serving(model, ServeOptions(prompt=4000, output=97), GPU)

    def test_an_encoder_generates_nothing(self):
        with pytest.raises(PlanError, match="is an encoder"):
            estimate_serving(dataclasses.replace(LLAMA, causal=False), ServeOptions(), GPU)


class TestTime:
    def test_a_token_takes_at_least_the_weights_from_memory(self):
        found = estimate_serving(LLAMA, ServeOptions(), GPU)
        assert found.tpot_s > 2 * LLAMA.params / GPU.memory_bytes_per_s

    @given(st.integers(1, 63), st.integers(16, 2000))
    def test_more_sequences_and_longer_ones_take_no_less(self, batch, prompt):
        one = estimate_serving(LLAMA_3, ServeOptions(batch=batch, prompt=prompt), GPU)
        more = estimate_serving(LLAMA_3, ServeOptions(batch=batch + 1, prompt=prompt), GPU)
        longer = estimate_serving(LLAMA_3, ServeOptions(batch=batch, prompt=prompt + 64), GPU)
        assert one.ttft_s < more.ttft_s
        assert one.ttft_s < longer.ttft_s * 1.02
        assert one.tpot_s <= more.tpot_s * 1.02
        assert one.tpot_s <= longer.tpot_s * 1.02

    def test_narrow_weights_are_quicker_to_decode(self):
        each = {
            name: estimate_serving(LLAMA, ServeOptions(weights=name), GPU).tpot_s
            for name in ("bf16", "w8a16", "w4a16")
        }
        assert each["w4a16"] < each["w8a16"] < each["bf16"]

    def test_graphs_save_where_kernels_are_many_and_small(self):
        with_graphs = estimate_serving(LLAMA, ServeOptions(tp=8), NODE)
        without = estimate_serving(LLAMA, ServeOptions(tp=8, graphs=False), NODE)
        assert with_graphs.tpot_s <= without.tpot_s

    def test_prompts_cut_into_chunks_take_no_less(self):
        place = place_of(GPU)
        whole = prefill(StepModel(LLAMA, ServeOptions(chunk=0), place), 2, 4000)[0]
        cut = prefill(StepModel(LLAMA, ServeOptions(chunk=512), place), 2, 4000)[0]
        assert whole < cut < 3 * whole

    def test_between_points_of_the_grid_time_is_between(self):
        steps = StepModel(LLAMA, ServeOptions(), place_of(GPU))
        low, high = GRID[10], GRID[11]
        times = [steps.step((), n, 100.0)[0] for n in (low, (low + high) // 2, high)]
        assert times[0] <= times[1] <= times[2]


class TestCalibration:
    def test_measurements_shift_the_model_and_say_by_how_much(self, tmp_path):
        steps = StepModel(LLAMA, ServeOptions(), place_of(GPU))
        path = tmp_path / "own.csv"
        rows = ["phase,batch,tokens,context,measured_s"]
        for batch in (1, 4, 16):
            rows.append(f"decode,{batch},1,512,{1.25 * steps.step((), batch, 512.0)[0]}")
            new = batch * 64
            rows.append(f"prefill,1,{new},0,{0.8 * steps.step([(new, new)], 0, 0.0)[0]}")
        path.write_text("\n".join(rows))
        found = calibrate(path, steps)
        assert found.decode_scale == pytest.approx(1.25)
        assert found.prefill_scale == pytest.approx(0.8)
        assert found.error_after < 1e-9 < found.error_before

    @pytest.mark.parametrize(
        "text",
        ["", "phase,batch\n", "phase,batch,tokens,context,measured_s\nboth,1,1,1,1\n",
         "phase,batch,tokens,context,measured_s\ndecode,x,1,1,1\n",
         "phase,batch,tokens,context,measured_s\ndecode,1,1,1,inf\n"],
    )  # fmt: skip
    def test_refuses_what_it_cannot_read(self, text, tmp_path):
        path = tmp_path / "own.csv"
        path.write_text(text)
        with pytest.raises(PlanError, match=r"own\.csv"):
            calibrate(path, StepModel(LLAMA, ServeOptions(), place_of(GPU)))
