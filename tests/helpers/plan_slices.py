"""Encoders on MIG slices as MIGProfiler measured them, beside what the planner says.

``python tests/helpers/plan_slices.py --shared FOLDER`` prints the table that
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
from va100.plan.vision import VisionOptions, estimate_vision

SHAPES = {
    "bert-base-multilingual-cased": (768, 12, 3072),
    "paraphrase-multilingual-mpnet-base-v2": (768, 12, 3072),
    "distiluse-base-multilingual-cased-v1": (768, 6, 3072),
    "distiluse-base-multilingual-cased-v2": (768, 6, 3072),
    "paraphrase-multilingual-MiniLM-L12-v2": (384, 12, 1536),
}
"""Width, layers and inner width."""


@dataclass(frozen=True)
class Batch:
    """One published batch beside ours."""

    slice_name: str
    measured_s: float
    ours_s: float

    @property
    def error(self) -> float:
        """Relative to the measurement, without sign."""
        return abs(self.ours_s / self.measured_s - 1)


def batches(measured: Path) -> list[Batch]:
    """Unflagged inference rows of the five encoders, TF32 as PyTorch of 2022 multiplied."""
    found = []
    with gzip.open(measured / "migprofiler_a100.csv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["model"] not in SHAPES or row["op"] != "inference" or row["flag"]:
                continue
            hidden, layers, inner = SHAPES[row["model"]]
            model = read_config(
                {
                    "model_type": "bert", "hidden_size": hidden, "num_hidden_layers": layers,
                    "intermediate_size": inner, "num_attention_heads": 12,
                    "vocab_size": 119547, "max_position_embeddings": 512, "type_vocab_size": 2,
                },
                row["model"],
            )  # fmt: skip
            size = "40" if "40" in row["gpu"] else "80"
            options = VisionOptions(batch=int(row["batch"]), precision="tf32")
            machine = find_machine(f"a100-sxm4-{size}gb:{row['mig_slice']}")
            ours = estimate_vision(encoder_network(model, int(row["seq"])), options, machine)
            found.append(Batch(row["mig_slice"], float(row["measured_us"]) / 1e6, ours.latency_s))
    return found


def table(found: list[Batch]) -> str:
    """Errors by slice, as Markdown."""
    lines = ["| slice | rows | mean | median | p90 |", "|---|--:|--:|--:|--:|"]
    for name in sorted({one.slice_name for one in found}):
        errors = sorted(one.error for one in found if one.slice_name == name)
        lines.append(
            f"| {name} | {len(errors)} | {statistics.mean(errors):.1%} "
            f"| {statistics.median(errors):.1%} | {errors[int(0.9 * len(errors))]:.1%} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", type=Path, required=True)
    print(table(batches(parser.parse_args().shared / "data" / "measured")))
