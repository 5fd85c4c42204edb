"""Networks and recommenders against published throughputs: each within a third, most closer."""

from __future__ import annotations

import statistics

from tests.helpers.plan_throughputs import table, throughputs


def test_each_is_within_its_band(shared):
    found = throughputs(shared("data/measured"))
    print(table(found))
    assert len(found) >= 15
    assert max(one.error for one in found) <= 0.40, table(found)
    assert statistics.median(one.error for one in found) <= 0.2, table(found)


def test_scaling_loses_as_published(shared):
    # DeepLearningExamples' weak scaling of 3D nnU-Net on eight GPUs: 7.6 to 7.9.
    from va100.plan.machine import find_machine
    from va100.plan.networks import nnunet
    from va100.plan.vision import VisionOptions, estimate_vision

    node = find_machine("hgx-a100-8x80gb")
    one, eight = (
        estimate_vision(nnunet(), VisionOptions(batch=2, training=True, gpus=g), node)
        for g in (1, 8)
    )
    assert 7.4 < eight.per_s / one.per_s < 8.0


def test_bert_on_32_nodes_loses_as_published():
    # DeepLearningExamples' BERT-large at 512 tokens: 30.1 times one node's rate on 32.
    from va100.plan.machine import find_machine
    from va100.plan.models.huggingface import read_config
    from va100.plan.stacks import MEGATRON_CORE
    from va100.plan.training import estimate_training
    from va100.plan.training_options import TrainOptions

    bert = read_config(
        {
            "model_type": "bert", "hidden_size": 1024, "intermediate_size": 4096,
            "num_hidden_layers": 24, "num_attention_heads": 16, "vocab_size": 30522,
            "max_position_embeddings": 512, "type_vocab_size": 2,
        },
        "bert-large",
    )  # fmt: skip
    node = find_machine("hgx-a100-8x80gb")

    def rate(nodes):
        gpus = 8 * nodes
        options = TrainOptions(
            dp=gpus, micro_batch=32, global_batch=32 * 4 * gpus, seq=512, precision="fp16",
            stack=MEGATRON_CORE, overlap_gradients=True,
        )  # fmt: skip
        found = estimate_training(bert, options, node)
        return found.tokens_per_s_per_gpu * gpus

    assert 27 < rate(32) / rate(1) < 32
