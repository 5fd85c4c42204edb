"""Published requests to language models beside what the planner says of them.

``python tests/helpers/plan_requests.py --shared FOLDER`` prints the table that
``docs/planning.md`` shows.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from va100.plan.machine import find_machine
from va100.plan.models.huggingface import read_config
from va100.plan.serving import ServeEstimate, estimate_serving
from va100.plan.serving_options import ENGINES, ServeOptions
from va100.plan.workload import Transformer

_LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "vocab_size": 32000,
}  # fmt: skip
_SEVENTY = {
    **_LLAMA, "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
    "num_attention_heads": 64, "num_key_value_heads": 8,
}  # fmt: skip
CONFIGS = {
    "meta-llama/Llama-2-7b-hf": {**_LLAMA, "intermediate_size": 11008},
    "meta-llama/Llama-2-70b-hf": _SEVENTY,
    "meta-llama/Meta-Llama-3-8B": {
        **_LLAMA, "intermediate_size": 14336, "num_key_value_heads": 8, "vocab_size": 128256,
    },
    "meta-llama/Meta-Llama-3-70B": {**_SEVENTY, "vocab_size": 128256},
    "mistralai/Mistral-7B-v0.1": {
        **_LLAMA, "model_type": "mistral", "intermediate_size": 14336, "num_key_value_heads": 8,
    },
    "mistralai/Mixtral-8x7B-v0.1": {
        **_LLAMA, "model_type": "mixtral", "intermediate_size": 14336, "num_key_value_heads": 8,
        "num_local_experts": 8, "num_experts_per_tok": 2,
    },
    "Qwen/Qwen2-7B": {
        "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
        "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        "vocab_size": 152064,
    },
}  # fmt: skip
MODELS = {name: read_config(config, name) for name, config in CONFIGS.items()}
SOFTWARE = {"vLLM (2024)": "vllm", "TensorRT-LLM (2024)": "tensorrt-llm"}


@dataclass(frozen=True)
class Answer:
    """One published batch of requests beside ours."""

    engine: str
    measured_s: float
    estimate: ServeEstimate

    @property
    def error(self) -> float:
        """Relative to the measurement, without sign."""
        return abs(self.estimate.request_s / self.measured_s - 1)

    @property
    def roofline_error(self) -> float:
        """Weights and cache over the memory's peak a token, and the prompt over the tensor peak."""
        options, machine = self.estimate.options, self.estimate.machine
        weights = sum(memory.weights_bytes for memory in self.estimate.memories)
        cache = self.estimate.kv_bytes / options.gpus
        token_s = (weights + cache) / machine.memory_bytes_per_s
        flop = 2.0 * self.estimate.model.active_params * options.batch * options.prompt
        first_s = flop / (machine.tensor_flop_per_s * options.gpus)
        return abs((first_s + token_s * options.output) / self.measured_s - 1)


def answers(measured: Path) -> Iterator[Answer]:
    """LLM-Inference-Bench's rows of the two engines whose batch fits the cache at once."""
    node = find_machine("hgx-a100-4x40gb")
    with gzip.open(measured / "llm_inference_bench.csv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            engine = SOFTWARE.get(row["software"])
            if engine is None or row["flag"] or row["model"] not in MODELS:
                continue
            options = ServeOptions(
                tp=int(row["gpus"]), batch=int(row["batch"]), prompt=int(row["in_len"]),
                output=int(row["out_len"]), weights="fp16", cache="fp16", engine=ENGINES[engine],
            )  # fmt: skip
            found = estimate_serving(MODELS[row["model"]], options, node)
            if found.fits:
                yield Answer(engine, float(row["measured_us"]) / 1e6, found)


_GPT: Mapping[str, tuple[int, int, int]] = {
    "Performance of GPT-20B": (44, 48, 128),
    "GPT-89B": (48, 96, 128),
    "Megatron-530B": (105, 128, 160),
}
"""Layers, heads and their width of FasterTransformer's GPTs."""


def native_answers(measured: Path) -> Iterator[Answer]:
    """FasterTransformer's guide: GPTs on one GPU to 32."""
    node = find_machine("hgx-a100-8x80gb")
    with gzip.open(measured / "fastertransformer_a100.csv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            names = [name for name in _GPT if name in row["section"]]
            if not names or not row["measured_us"] or "Megatron L" in row["column"]:
                continue
            key = {k.lower().replace("_", " "): v for k, v in json.loads(row["key"]).items()}
            prompt, output = key.get("input length"), key.get("output length")
            prompt, output = prompt or key.get("input seqlen"), output or key.get("output seqlen")
            if not prompt or not output:
                continue
            tp, pp = _ranks(row["column"])
            options = ServeOptions(
                tp=tp, pp=pp, batch=int(key["batch size"]), prompt=int(prompt),
                output=int(output), weights="fp16", cache="fp16", chunk=0, graphs=False,
                engine=ENGINES["fastertransformer"],
            )  # fmt: skip
            found = estimate_serving(_gpt(names[0]), options, node)
            yield Answer("fastertransformer", float(row["measured_us"]) / 1e6, found)


def _ranks(column: str) -> tuple[int, int]:
    """Tensor-parallel ranks and stages that a column's title says."""
    both = re.search(r"TP-(\d+), PP-(\d+)", column)
    if both is not None:
        return int(both[1]), int(both[2])
    one = re.search(r"(\d+)-way TP", column)
    if one is not None:
        return int(one[1]), 1
    return (1, 1) if "single" in column else (8, 1)


def _gpt(name: str) -> Transformer:
    layers, heads, head = _GPT[name]
    return Transformer(
        name=name, layers=layers, hidden=heads * head, heads=heads, kv_heads=heads,
        head_dim=head, ffn=4 * heads * head, vocab=51200, positions=2048,
    )  # fmt: skip


def table(found: list[Answer]) -> str:
    """Errors by engine, as Markdown."""
    lines = [
        "| requests | rows | median | mean | p90 | plain roofline, median |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for engine in dict.fromkeys(answer.engine for answer in found):
        mine = [answer for answer in found if answer.engine == engine]
        errors = sorted(answer.error for answer in mine)
        lines.append(
            f"| {engine} | {len(mine)} | {statistics.median(errors):.1%} "
            f"| {statistics.mean(errors):.1%} | {errors[int(0.9 * len(errors))]:.1%} "
            f"| {statistics.median(answer.roofline_error for answer in mine):.1%} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", type=Path, required=True)
    folder = parser.parse_args().shared / "data" / "measured"
    print(table([*answers(folder), *native_answers(folder)]))
