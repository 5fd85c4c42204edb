"""Published training runs beside what the planner says of them.

``python tests/helpers/plan_runs.py --shared FOLDER`` prints the tables that ``docs/planning.md``
shows.  Constants were fitted to the rows of even number of vTrain's and llm-foundry's tables; the
others, and all other tables, are checks.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from va100.plan.machine import find_machine, on_network
from va100.plan.memory import stage_memories
from va100.plan.stacks import FSDP, MEGATRON_CORE, MEGATRON_LM, Attention
from va100.plan.training import TrainEstimate, estimate_training
from va100.plan.training_options import Recompute, TrainOptions
from va100.plan.workload import Experts, Transformer

PEERS = {
    "vTrain, one node": "vTrain 8.37 %",
    "vTrain, 8 to 64 nodes": "vTrain 14.73 %",
    "Megatron-LM SC21": "Calculon 3.65 % (another table)",
    "llm-foundry FSDP": "none published",
}
MPT = {
    "125m": (768, 12, 12),
    "350m": (1024, 16, 24),
    "760m": (1536, 12, 24),
    "1b": (2048, 16, 24),
    "3b": (2560, 20, 32),
    "7b": (4096, 32, 32),
    "13b": (5120, 40, 40),
    "30b": (7168, 56, 48),
    "70b": (8192, 64, 80),
}
"""Width, heads and layers of llm-foundry's models."""


@dataclass(frozen=True)
class Run:
    """One published step beside ours and two rooflines."""

    family: str
    fitted: bool
    measured_s: float
    estimate: TrainEstimate

    @property
    def error(self) -> float:
        """Relative to the measurement, without sign."""
        return abs(self.estimate.step_s / self.measured_s - 1)

    @property
    def roofline_error(self) -> float:
        """Work over the peak of all GPUs."""
        return abs(self.estimate.step_s * self.estimate.hfu / self.measured_s - 1)

    def scaled_error(self, scale: float) -> float:
        """The same times one number fitted to the family."""
        return abs(scale * self.estimate.step_s * self.estimate.hfu / self.measured_s - 1)


def rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a table with their numbers, flagged ones too."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from enumerate(csv.DictReader(file))


def gpt(row: dict[str, str], vocab: int) -> Transformer:
    """GPT of a row's shapes."""
    hidden, heads = int(row["hidden"]), int(row["heads"])
    return Transformer(
        name="gpt", layers=int(row["layers"]), hidden=hidden, heads=heads, kv_heads=heads,
        head_dim=hidden // heads, ffn=4 * hidden, vocab=vocab, positions=int(row["seq"]),
        dropout=True,
    )  # fmt: skip


def megatron(row: dict[str, str], micro_batch: int, chunks: int) -> TrainOptions:
    """Megatron-LM of 2021 on a row's parallel sizes: fp16, all recomputed, scores in memory."""
    return TrainOptions(
        tp=int(row["tp"]), pp=int(row["pp"]), dp=int(row["dp"]), micro_batch=micro_batch,
        global_batch=int(row["global_batch"]), seq=int(row["seq"]), recompute=Recompute.FULL,
        attention=Attention.UNFUSED, precision="fp16", stack=MEGATRON_LM, chunks=chunks,
    )  # fmt: skip


def all_runs(measured: Path) -> list[Run]:
    """Every published step that is compared."""
    return [*vtrain_runs(measured), *sc21_runs(measured), *foundry_runs(measured)]


def vtrain_runs(measured: Path) -> Iterator[Run]:
    """Megatron-DeepSpeed's steps that vTrain was checked with."""
    node = find_machine("hgx-a100-8x80gb")
    # The table says four adapters of 200 Gbit/s a node.
    cluster = on_network(node, "hdr-4")
    for number, row in rows(measured / "vtrain_iterations.csv.gz"):
        one = "single" in row["source"]
        options = megatron(row, int(row["micro_batch"]), 1)
        found = estimate_training(gpt(row, 51200), options, node if one else cluster)
        family = "vTrain, one node" if one else "vTrain, 8 to 64 nodes"
        yield Run(family, number % 2 == 0, float(row["measured_us"]) / 1e6, found)


def sc21_runs(measured: Path) -> Iterator[Run]:
    """Megatron-LM's scaling table; micro-batches are ours, since the table has none."""
    node = find_machine("hgx-a100-8x80gb")
    for _, row in rows(measured / "megatron_sc21.csv.gz"):
        deep = int(row["pp"]) > 1
        options = megatron(row, 1 if deep else 16, 2 if deep else 1)
        found = estimate_training(gpt(row, int(row["vocab"])), options, node)
        yield Run("Megatron-LM SC21", False, float(row["measured_us"]) / 1e6, found)


def foundry_runs(measured: Path) -> Iterator[Run]:
    """MPT models under FSDP."""
    for number, row in rows(measured / "llm_foundry_training.csv.gz"):
        hidden, heads, layers = MPT[row["model"]]
        model = Transformer(
            name=row["model"], layers=layers, hidden=hidden, heads=heads, kv_heads=heads,
            head_dim=hidden // heads, ffn=4 * hidden, vocab=50368, positions=int(row["seq"]),
        )  # fmt: skip
        recompute = Recompute.FULL if row["act_ckpt"] == "True" else Recompute.NONE
        options = TrainOptions(
            dp=int(row["gpus"]), micro_batch=int(row["micro_batch"]),
            global_batch=int(row["global_batch"]), seq=int(row["seq"]), recompute=recompute,
            precision="amp-bf16" if "amp" in row["precision"] else "pure-bf16", zero=3,
            stack=FSDP, overlap_gradients=True,
        )  # fmt: skip
        size = "80gb" if "80GB" in row["gpu"] else "40gb"
        found = estimate_training(model, options, find_machine(f"hgx-a100-8x{size}"))
        yield Run("llm-foundry FSDP", number % 2 == 0, float(row["measured_us"]) / 1e6, found)


@dataclass(frozen=True)
class Peak:
    """One published peak of the allocator beside ours, of the last stage, which prints it."""

    name: str
    measured_bytes: float
    ours_bytes: int
    has_experts: bool

    @property
    def error(self) -> float:
        """Relative to the measurement, without sign."""
        return abs(self.ours_bytes / self.measured_bytes - 1)


def memory_peaks(measured: Path) -> list[Peak]:
    """Peaks of Megatron-LM's own tests of GPT whose attention the row names or old code implies."""
    found = []
    for _, row in rows(measured / "megatron_ci_dgxa100.csv.gz"):
        given = row["all_args"]
        if row["model"] not in ("gpt", "moe") or not row["mem_max_alloc_bytes"]:
            continue
        kind = {"flash": Attention.FLASH, "unfused": Attention.UNFUSED}.get(row["attn"])
        if row["te"] == "local":
            kind = Attention.UNFUSED
        if kind is None or any(word in given for word in _APART):
            continue
        found.append(_peak(row, kind))
    return found


_APART = ("no-masked-softmax-fusion", "cross-entropy-loss-fusion", "defer-embedding", "8x1xNone")
"""Ways of saving or spending memory that the planner has no option for."""


def _peak(row: dict[str, str], attention: Attention) -> Peak:
    given = row["all_args"]
    tp, pp, cp = int(row["tp"]), int(row["pp"]), int(row["cp"])
    gpus = max(8, tp * pp * cp)
    layers = int(row["layers"])
    model = gpt(row, 50257)
    changed = Transformer(
        name="gpt", layers=layers, hidden=model.hidden, heads=model.heads,
        kv_heads=model.heads, head_dim=model.head_dim,
        ffn=int(8 * model.hidden / 3) // 64 * 64 if "swiglu" in given else model.ffn,
        vocab=50257, positions=0 if "rope" in given else int(row["seq"]),
        dropout='"hidden-dropout": 0.0' not in given, tied="untie" not in given,
        gated="swiglu" in given, experts=_experts(row),
    )  # fmt: skip
    options = TrainOptions(
        tp=tp, pp=pp, cp=cp, ep=int(row["ep"]),
        etp=1 if '"expert-tensor-parallel-size": 1' in given else 0,
        dp=gpus // (tp * pp * cp), micro_batch=int(row["micro_batch"]),
        global_batch=int(row["global_batch"]), seq=int(row["seq"]), attention=attention,
        sequence_parallel=row["seq_parallel"] == "True", zero=int(row["dist_opt"] == "True"),
        chunks=layers // pp // int(float(row["vp"])) if row["vp"] else 1,
        precision=row["dtype"], stage_layers=(2, 4, 4, 2) if "decoder-first" in given else (),
        stack=MEGATRON_LM if row["te"] == "local" else MEGATRON_CORE,
    )  # fmt: skip
    last = stage_memories(changed, options)[-1]
    measured_bytes = float(row["mem_max_alloc_bytes"])
    return Peak(row["test_case"], measured_bytes, last.peak_bytes, changed.experts is not None)


def _experts(row: dict[str, str]) -> Experts | None:
    if not row["experts"]:
        return None
    return Experts(
        count=int(float(row["experts"])), per_token=int(float(row["topk"])),
        ffn=4 * int(row["hidden"]),
    )  # fmt: skip


def table(runs: list[Run]) -> str:
    """Errors by family, of rows not fitted to, as Markdown."""
    lines = [
        "| steps | rows | mean | median | p90 | plain roofline | scaled roofline | peer |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for family in dict.fromkeys(run.family for run in runs):
        mine = [run for run in runs if run.family == family]
        scale = statistics.median(
            run.measured_s / (run.estimate.step_s * run.estimate.hfu) for run in mine
        )
        held = [run for run in mine if not run.fitted]
        errors = sorted(run.error for run in held)
        lines.append(
            f"| {family} | {len(held)} | {statistics.mean(errors):.1%} "
            f"| {statistics.median(errors):.1%} | {errors[int(0.9 * len(errors))]:.1%} "
            f"| {statistics.mean(run.roofline_error for run in held):.1%} "
            f"| {statistics.mean(run.scaled_error(scale) for run in held):.1%} "
            f"| {PEERS[family]} |"
        )
    return "\n".join(lines)


def memory_table(peaks: list[Peak]) -> str:
    """Errors of the peaks, as Markdown."""
    lines = ["| peak memory | rows | mean | median | p90 | peer |", "|---|--:|--:|--:|--:|---|"]
    for title, routed in (("GPT", False), ("mixtures of experts", True)):
        errors = sorted(peak.error for peak in peaks if peak.has_experts is routed)
        lines.append(
            f"| Megatron-LM tests, {title} | {len(errors)} | {statistics.mean(errors):.1%} "
            f"| {statistics.median(errors):.1%} | {errors[int(0.9 * len(errors))]:.1%} "
            "| Calculon 8.5 % |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", type=Path, required=True)
    folder = parser.parse_args().shared / "data" / "measured"
    print(table(all_runs(folder)))
    print()
    print(memory_table(memory_peaks(folder)))
