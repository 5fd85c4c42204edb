"""``va100 plan serve`` as scripts call it: names, statuses, refusals, loads."""

from __future__ import annotations

import json

import pytest

from va100.cli.main import main

LLAMA_8B = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 128256, "max_position_embeddings": 8192,
}  # fmt: skip
NAMES = ("fits", "ttft_s", "tpot_s", "tokens_per_s", "kv_bytes", "max_context")


@pytest.fixture
def plan(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_8B))

    def call(*words):
        try:
            status = main(["plan", "serve", "--model", str(path), *map(str, words)])
        except SystemExit as stop:
            status = stop.code
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


class TestServe:
    def test_json_has_the_names_and_says_the_same_twice(self, plan):
        words = ("--machine", "a100-sxm4-80gb", "--batch", 8, "--json")
        first, second = plan(*words), plan(*words)
        assert first == second
        assert first[0] == 0
        document = json.loads(first[1])
        assert set(NAMES) <= set(document)
        assert document["kv_bytes"] == 8 * 1280 * 2 * 2 * 8 * 128 * 32
        assert document["weights_bytes_per_gpu"] < document["reserved_bytes_per_gpu"]

    def test_a_load_has_percentiles(self, plan):
        status, out, _ = plan(
            "--machine", "a100-sxm4-80gb", "--rate", 5, "--duration", 20, "--json"
        )
        load = json.loads(out)["load"]
        assert status == 0
        assert load["ttft"]["p50"] <= load["ttft"]["p90"] <= load["ttft"]["p99"]
        assert load["served"] > 50

    def test_slices_of_a_card_serve_as_replicas(self, plan):
        machine = ("--machine", "a100-sxm4-80gb:3g.40gb", "--weights", "w8a16")
        status, out, _ = plan(*machine, "--rate", 1, "--replicas", 2, "--json")
        assert status == 0
        assert json.loads(out)["load"]["replicas"] == 2

    def test_what_does_not_fit_is_refused_without_a_time(self, plan):
        status, out, _ = plan("--machine", "a100-sxm4-80gb:1g.10gb", "--json")
        document = json.loads(out)
        assert status == 1
        assert document["fits"] is False
        assert document["ttft_s"] is None
        assert "needs 16 GB for weights alone" in document["problem"]
        assert document["smallest_fits"] == []

    def test_a_batch_beyond_the_cache_is_told_how_many_fit(self, plan):
        status, out, _ = plan("--machine", "a100-sxm4-40gb", "--batch", 512, "--prompt", 4000)
        assert status == 1
        assert "does not fit: 512 sequences of 4256 tokens" in out


class TestWrongInput:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--gpu-memory-utilization", "1.5"], "1.5 is no share"),
            (["--tp", "3"], "--tp 3 does not divide"),
            (["--prompt", "9000"], "the model takes 8192"),
            (["--trace", "no.csv"], "no.csv"),
            (["--rate", "1", "--trace", "no.csv"], "two loads"),
            (["--rate", "1e9"], "more than"),
            (["--rate", "-1"], "-1 is no number above 0"),
            (["--weights", "fp8"], "fp8"),
            (["--stage-layers", "a"], "--stage-layers"),
            (["--rate", "1", "--replicas", "2", "--prefill-replicas", "2"], "fill prompts in"),
        ],
    )
    def test_is_named_with_status_2(self, words, said, plan):
        status, _, err = plan("--machine", "a100-sxm4-80gb", *words)
        assert status == 2
        assert said in err
