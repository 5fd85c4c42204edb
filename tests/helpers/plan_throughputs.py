"""Published throughputs of networks and recommenders beside what the planner says of them.

``python tests/helpers/plan_throughputs.py --shared FOLDER`` prints the table that
``docs/planning.md`` shows.  Rows are found in NVIDIA's tables by where they stand.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from va100.plan.machine import find_machine
from va100.plan.networks import IMAGES, NETWORKS
from va100.plan.recommend import RECOMMENDERS, RecommendOptions, estimate_recommender
from va100.plan.vision import VisionOptions, estimate_vision

NODE_80 = find_machine("hgx-a100-8x80gb")
NODE_40 = find_machine("hgx-a100-8x40gb")


@dataclass(frozen=True)
class Throughput:
    """One published rate beside ours."""

    name: str
    measured_per_s: float
    ours_per_s: float

    @property
    def error(self) -> float:
        """Relative to the measurement, without sign."""
        return abs(self.ours_per_s / self.measured_per_s - 1)


@dataclass(frozen=True)
class Wanted:
    """Where rows stand, which of their cells is a rate, and what is run for it."""

    name: str
    source: str
    section: str
    batch: str
    rate: str
    gpus: str
    model: str
    training: bool
    precision: str
    node_40: bool = False
    scale: float = 1.0


_PER_GPU = "Batch size / GPU"
WANTED = (
    Wanted("SSD, inference", "PyTorch/Detection/SSD", "Inference", "Batch size",
           "Throughput  - mixed precision", "", "ssd300", False, "fp16"),
    Wanted("SSD, inference TF32", "PyTorch/Detection/SSD", "Inference", "Batch size",
           "Throughput - TF32", "", "ssd300", False, "tf32"),
    Wanted("Mask R-CNN, inference", "TensorFlow2/Segmentation/MaskRCNN", "Inference", "Batch size",
           "Throughput Avg [img/s]", "", "maskrcnn", False, "fp16"),
    Wanted("Mask R-CNN, training", "TensorFlow2/Segmentation/MaskRCNN", "Training performance",
           _PER_GPU, "Throughput - mixed precision [img/s]", "GPUs", "maskrcnn", True, "fp16"),
    Wanted("nnU-Net 3D, training", "TensorFlow2/Segmentation/nnUNet", "Training performance",
           _PER_GPU, "Throughput - mixed precision [img/s]", "GPUs", "nnunet", True, "fp16"),
    Wanted("nnU-Net 3D, training TF32", "TensorFlow2/Segmentation/nnUNet", "Training performance",
           _PER_GPU, "Throughput - TF32 [img/s]", "GPUs", "nnunet", True, "tf32"),
    Wanted("ResNet-50, training", "TensorFlow/Classification/ConvNets/resnet50v1.5/",
           "Training performance", "Batch Size / GPU", "Throughput - mixed precision + XLA", "GPUs",
           "resnet50", True, "fp16", node_40=True),
    Wanted("ResNet-50, training TF32", "TensorFlow/Classification/ConvNets/resnet50v1.5/",
           "Training performance", "Batch Size / GPU", "Throughput - TF32 + XLA", "GPUs",
           "resnet50", True, "tf32", node_40=True),
    Wanted("DLRM, training TF32", "Recommendation/DLRM", "Training performance", _PER_GPU,
           "Throughput - TF32", "GPUs", "dlrm", True, "tf32"),
    Wanted("DLRM, training", "Recommendation/DLRM", "Training performance", _PER_GPU,
           "Throughput - mixed precision", "GPUs", "dlrm", True, "fp16"),
    Wanted("NCF, training TF32", "PyTorch/Recommendation/NCF", "Training performance", _PER_GPU,
           "Throughput - TF32 (samples/s)", "GPUs", "ncf", True, "tf32", node_40=True),
    Wanted("NCF, training", "PyTorch/Recommendation/NCF", "Training performance", _PER_GPU,
           "Throughput - mixed precision (samples/s)", "GPUs", "ncf", True, "fp16", node_40=True),
)  # fmt: skip


def throughputs(measured: Path) -> list[Throughput]:
    """Every published rate that is compared."""
    with gzip.open(measured / "nvidia_dle_tables.csv.gz", "rt", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["row_json"]]
    return [found for wanted in WANTED for row in rows for found in _compared(wanted, row)]


def _compared(wanted: Wanted, row: dict[str, str]) -> Iterator[Throughput]:
    if wanted.source not in row["source"] or wanted.section.lower() not in row["section"].lower():
        return
    cells = json.loads(row["row_json"])
    if "DCN" in row["source"] or wanted.batch not in cells or wanted.rate not in cells:
        return
    if cells.get("Dimension", "3") != "3" or not _number(cells[wanted.rate]):
        return
    gpus = int(cells.get(wanted.gpus, 1)) if wanted.gpus else 1
    ours = _ours(wanted, int(_number(cells[wanted.batch])), gpus, cells)
    yield Throughput(wanted.name, _number(cells[wanted.rate]), ours)


def _number(text: str) -> float:
    match = re.match(r"([\d.,]+)\s*([MkK]?)", str(text))
    if match is None or not match[1].strip(".,"):
        return 0.0
    scale = {"M": 1e6, "k": 1024.0, "K": 1024.0, "": 1.0}[match[2]]
    return float(match[1].replace(",", "")) * scale


def _ours(wanted: Wanted, batch: int, gpus: int, cells: dict[str, str]) -> float:
    node = NODE_40 if wanted.node_40 else NODE_80
    if wanted.model in NETWORKS:
        network = NETWORKS[wanted.model](IMAGES[wanted.model])
        options = VisionOptions(
            batch=batch, precision=wanted.precision, training=wanted.training, gpus=gpus
        )
        return estimate_vision(network, options, node).per_s
    small = "small" in cells.get("Model size", "large")
    name = "dlrm-small" if wanted.model == "dlrm" and small else wanted.model
    options = RecommendOptions(
        batch=batch * gpus, gpus=gpus, training=wanted.training, precision=wanted.precision
    )
    return estimate_recommender(RECOMMENDERS[name], options, node).records_per_s


def table(found: list[Throughput]) -> str:
    """Ratios by what was run, as Markdown."""
    lines = ["| throughput | rows | ours over published | largest error |", "|---|--:|--:|--:|"]
    for name in dict.fromkeys(one.name for one in found):
        mine = [one for one in found if one.name == name]
        ratio = statistics.median(one.ours_per_s / one.measured_per_s for one in mine)
        worst = max(one.error for one in mine)
        lines.append(f"| {name} | {len(mine)} | {ratio:.2f} | {worst:.0%} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", type=Path, required=True)
    print(table(throughputs(parser.parse_args().shared / "data" / "measured")))
