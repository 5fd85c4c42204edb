"""Files of models: examples are read, folders and wrong files told apart."""

from __future__ import annotations

import json

import pytest

from va100.errors import PlanError
from va100.plan.models.files import read_model
from va100.plan.recommend import read_recommender

GPT = "layers: 2\nhidden: 64\nheads: 4\nvocab: 100\n"


class TestReadModel:
    def test_every_example_is_read(self, root):
        folder = root / "examples" / "plans"
        names = [p for p in folder.iterdir() if p.name not in ("portfolio.yaml", "clicks.yaml")]
        assert len(names) >= 5
        assert all(read_model(path).params > 10**9 for path in names)
        assert read_recommender(str(folder / "clicks.yaml")).features == 7

    def test_a_yaml_of_shapes(self, tmp_path):
        path = tmp_path / "gpt.yaml"
        path.write_text(GPT)
        model = read_model(path)
        assert (model.name, model.head_dim, model.ffn, model.kv_heads) == ("gpt", 16, 256, 4)

    def test_experts_and_latent_attention_in_yaml(self, tmp_path):
        path = tmp_path / "m.yaml"
        path.write_text(
            GPT
            + "experts: {count: 8, per_token: 2, ffn: 128}\n"
            + "latent: {q_rank: 32, kv_rank: 16, nope_dim: 16, rope_dim: 8, v_dim: 16}\n"
        )
        model = read_model(path)
        assert model.experts.count == 8
        assert model.kv_values_per_token == 24

    def test_the_folder_of_a_config(self, tmp_path):
        config = {
            "model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100,
            "n_positions": 32,
        }  # fmt: skip
        (tmp_path / "config.json").write_text(json.dumps(config))
        assert read_model(tmp_path).positions == 32

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (GPT + "depth: 3\n", "unknown: depth"),
            ("layers: 2\nhidden: 64\n", "no heads, vocab"),
            (GPT.replace("64", "many"), "hidden is 'many'"),
            (GPT.replace("64", "0"), "hidden is 0"),
            (GPT + "kv_heads: 3\n", "cannot share 3 key heads"),
            (GPT + "experts: {count: 8}\n", "per_token"),
            (GPT + "experts: 8\n", "experts is 8"),
            (GPT + "experts: {count: x, per_token: 2, ffn: 4}\n", "count is 'x'"),
            (GPT + "gated: 3\n", "gated is 3, expected true or false"),
            (GPT + "window: x\n", "window is 'x', expected a whole number"),
            (GPT + "positions: -1\n", "positions is -1"),
            ("- 1\n- 2\n", "holds no map"),
        ],
    )
    def test_wrong_shapes_are_named(self, text, said, tmp_path):
        path = tmp_path / "m.yaml"
        path.write_text(text)
        with pytest.raises(PlanError, match=said) as error:
            read_model(path)
        assert str(path) in str(error.value)
        assert error.value.hint

    def test_weights_in_place_of_a_config(self, tmp_path):
        path = tmp_path / "model.json"
        path.write_bytes(b" " * (4 * 2**20 + 1))
        with pytest.raises(PlanError, match="larger than 4 MiB"):
            read_model(path)
        path.write_bytes(b"\xff\xfe\x00")
        with pytest.raises(PlanError, match="not UTF-8"):
            read_model(path)
