"""Whole models run by PyTorch in fp32, as NeuSight measured them, beside what the planner says.

``python tests/helpers/plan_end_to_end.py --shared FOLDER`` prints the table that
``docs/planning.md`` shows.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import statistics
from dataclasses import dataclass
from pathlib import Path

from va100.plan.machine import find_machine
from va100.plan.models.huggingface import read_config
from va100.plan.networks import encoder_network
from va100.plan.vision import RUNTIMES, VisionOptions, estimate_vision

_GPT = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 2048}
CONFIGS = {
    "bert_large": {
        "model_type": "bert", "hidden_size": 1024, "intermediate_size": 4096,
        "num_hidden_layers": 24, "num_attention_heads": 16, "vocab_size": 30522,
        "max_position_embeddings": 512, "type_vocab_size": 2,
    },
    "gpt2_large": {**_GPT, "n_embd": 1280, "n_layer": 36, "n_head": 20},
    "gpt3_xl": {**_GPT, "n_embd": 3072, "n_layer": 24, "n_head": 24},
    "gpt3_27": {**_GPT, "n_embd": 2560, "n_layer": 32, "n_head": 32},
    "opt_13": {
        "model_type": "opt", "hidden_size": 2048, "num_hidden_layers": 24,
        "num_attention_heads": 32, "ffn_dim": 8192, "max_position_embeddings": 2048,
        "vocab_size": 50272,
    },
}  # fmt: skip
"""Shapes of the models of NeuSight's table that are transformers without experts."""


@dataclass(frozen=True)
class Pass:
    """One published pass of a model beside ours and NeuSight's."""

    kind: str
    model: str
    measured_s: float
    ours_s: float
    neusight_s: float

    @property
    def error(self) -> float:
        """Relative to the measurement, without sign."""
        return abs(self.ours_s / self.measured_s - 1)

    @property
    def neusight_error(self) -> float:
        """NeuSight's."""
        return abs(self.neusight_s / self.measured_s - 1)


def passes(measured: Path) -> list[Pass]:
    """Rows of one GPU whose model's shapes are known."""
    found = []
    with gzip.open(measured / "neusight_e2e.csv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["model"] not in CONFIGS or row["option"] not in ("", "fusion"):
                continue
            training = row["op"] == "e2e_train"
            model = read_config(CONFIGS[row["model"]], row["model"])
            options = VisionOptions(
                batch=int(row["batch"]), precision="fp32", training=training,
                runtime=RUNTIMES["compiled" if row["option"] else "framework"],
            )  # fmt: skip
            network = encoder_network(model, int(row["seqlen"]))
            ours = estimate_vision(network, options, find_machine(row["gpu"].lower()))
            kind = "training" if training else row["option"] or "inference"
            found.append(
                Pass(kind, row["model"], float(row["measured_us"]) / 1e6, ours.latency_s,
                     float(row["pred_neusight_us"]) / 1e6)
            )  # fmt: skip
    return found


def table(found: list[Pass]) -> str:
    """Errors by kind, as Markdown."""
    lines = [
        "| whole models, fp32 | rows | ours, mean | NeuSight, same rows |",
        "|---|--:|--:|--:|",
    ]
    for kind in ("inference", "fusion", "training"):
        mine = [one for one in found if one.kind == kind]
        if mine:
            lines.append(
                f"| {kind} | {len(mine)} | {statistics.mean(one.error for one in mine):.1%} "
                f"| {statistics.mean(one.neusight_error for one in mine):.1%} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", type=Path, required=True)
    print(table(passes(parser.parse_args().shared / "data" / "measured")))
