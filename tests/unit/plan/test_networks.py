"""Networks against their published counts of parameters and work."""

from __future__ import annotations

import pytest

from va100.plan.machine import find_machine
from va100.plan.models.huggingface import read_config
from va100.plan.networks import IMAGES, NETWORKS, encoder_network
from va100.plan.vision import RUNTIMES, VisionOptions, estimate_vision

PARAMS = {
    "resnet50": 25_557_032,
    "vit-b-16": 86_567_656,
    "vit-l-16": 304_326_632,
    "vit-h-14": 632_045_800,
    "diffusion": 859_520_964,
}
GIGA_FLOPS = {"resnet50": (8.2, 0.02), "vit-b-16": (35.1, 0.02), "ssd300": (40, 0.2)}
GPU = find_machine("a100-sxm4-80gb")
NODE = find_machine("hgx-a100-8x80gb")


def network(name):
    return NETWORKS[name](IMAGES[name])


class TestNetworks:
    @pytest.mark.parametrize("name", PARAMS)
    def test_parameters_are_the_published_ones(self, name):
        assert network(name).params == PARAMS[name]

    def test_mask_rcnn_is_within_a_thousandth_or_two(self):
        assert network("maskrcnn").params == pytest.approx(44_401_393, rel=2e-3)

    @pytest.mark.parametrize("name", GIGA_FLOPS)
    def test_work_is_the_published_one(self, name):
        work, within = GIGA_FLOPS[name]
        assert network(name).flop_count / 1e9 == pytest.approx(work, rel=within)

    def test_an_encoder_has_its_configs_parameters_but_the_pooler(self):
        model = read_config(
            {
                "model_type": "bert", "hidden_size": 768, "intermediate_size": 3072,
                "num_hidden_layers": 12, "num_attention_heads": 12, "vocab_size": 30522,
                "max_position_embeddings": 512, "type_vocab_size": 2,
            },
            "bert",
        )  # fmt: skip
        assert encoder_network(model, 384).params == model.params - model.head_params


class TestVision:
    @pytest.mark.parametrize("name", NETWORKS)
    def test_a_larger_batch_takes_longer_but_less_each(self, name):
        small, large = (estimate_vision(network(name), VisionOptions(batch=b), GPU) for b in (1, 4))
        assert small.latency_s < large.latency_s <= 4.01 * small.latency_s
        assert small.fits

    def test_graphs_save_where_launches_bound(self):
        plain, graphs = (
            estimate_vision(network("resnet50"), VisionOptions(graphs=g), GPU)
            for g in (False, True)
        )
        assert graphs.latency_s < plain.latency_s
        assert graphs.launch_s == 0 < plain.launch_s
        busy = [
            estimate_vision(network("resnet50"), VisionOptions(batch=256, graphs=g), GPU)
            for g in (False, True)
        ]
        assert busy[1].latency_s == pytest.approx(busy[0].latency_s, rel=0.01)

    def test_sparse_weights_gain_far_less_than_twice_and_lose_on_small_batches(self):
        def gain(batch):
            dense, sparse = (
                estimate_vision(
                    network("vit-l-16"),
                    VisionOptions(batch=batch, sparse=s, graphs=True),
                    GPU,
                ).latency_s
                for s in (False, True)
            )
            return dense / sparse

        assert 0.95 < gain(64) < 1.6
        assert gain(1) < gain(64)

    def test_training_scales_with_a_loss(self):
        one, eight = (
            estimate_vision(
                network("resnet50"), VisionOptions(batch=256, training=True, gpus=g), NODE
            )
            for g in (1, 8)
        )
        assert 7.0 < eight.per_s / one.per_s < 8.0

    def test_a_slice_is_a_part_of_a_card(self):
        runtime = RUNTIMES["tensorrt"]
        options = VisionOptions(batch=32, precision="int8", runtime=runtime)
        whole = estimate_vision(network("resnet50"), options, GPU)
        part = estimate_vision(network("resnet50"), options, find_machine("a100-sxm4-80gb:1g.10gb"))
        assert 5.5 < whole.per_s / part.per_s < 9.0
