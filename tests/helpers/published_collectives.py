"""Published collectives on A100s beside predicted ones; the table that docs/collectives.md shows.

Rows used for fitting and rows held back are kept apart.  Baselines: the links' raw rate, and what
NCCL's own tuner reckons.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from va100.perf.collectives import (
    PATTERNS,
    Collective,
    CollectiveEstimate,
    Group,
    estimate,
    estimate_direct,
    group_of,
)
from va100.perf.transport import Algorithm, Shape, choose, reckoned_s

LARGE_BYTES = 64 << 20
BOARD = "hgx-a100-8x80gb"
CARDS = "azure-nc96ads-a100-v4"


@dataclass(frozen=True, slots=True)
class Row:
    """One measured call."""

    family: str
    fitted: bool
    op: str
    ranks: int
    nodes: int
    size_bytes: int
    dtype: str
    node: str
    network: str | None
    measured_s: float
    direct: bool = False
    """Done by a serving framework's own kernels."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the table."""

    family: str
    used: str
    size: str
    count: int
    mean: float
    median: float
    p90: float
    roofline_mean: float
    tuner_mean: float


def _read(folder: Path, name: str) -> Iterator[dict[str, str]]:
    with gzip.open(folder / f"{name}.csv.gz", "rt") as text:
        yield from (row for row in csv.DictReader(text) if not row["flag"])


def _nccl(folder: Path) -> Iterator[Row]:
    for row in _read(folder, "aic_comm"):
        if not row["software"].startswith("NCCL"):
            continue
        fitted = row["dtype"] == "fp16" or (row["op"] == "reduce_scatter" and row["ranks"] == "2")
        kind = {"fp16": "float16"}.get(row["dtype"], row["dtype"])
        size, seconds = int(row["bytes"]), float(row["measured_us"]) * 1e-6
        name = f"aic_comm, {row['op'].replace('_', '-')}"
        yield Row(name, fitted, row["op"], int(row["ranks"]), 1, size, kind, BOARD, None, seconds)


def _direct(folder: Path) -> Iterator[Row]:
    for row in _read(folder, "aic_comm"):
        framework = row["software"].split()[0]
        if framework == "NCCL" or not row["mode"].endswith("graph"):
            continue
        name = f"aic_comm, all-reduce kernels of {framework}"
        size, seconds = int(row["bytes"]), float(row["measured_us"]) * 1e-6
        fitted, ranks = framework != "trtllm", int(row["ranks"])
        yield Row(
            name,
            fitted,
            "all_reduce",
            ranks,
            1,
            size,
            "bfloat16",
            BOARD,
            None,
            seconds,
            direct=True,
        )


def _vtrain(folder: Path) -> Iterator[Row]:
    for row in _read(folder, "vtrain_nccl_allreduce"):
        size, seconds, ranks = (
            int(row["bytes"]),
            float(row["measured_us"]) * 1e-6,
            int(row["ranks"]),
        )
        name = "vtrain, all-reduce, 2 to 8 ranks"
        yield Row(name, ranks in (2, 8), row["op"], ranks, 1, size, "float32", BOARD, None, seconds)


def _misc(folder: Path) -> Iterator[Row]:
    for row in _read(folder, "nccl_misc_a100"):
        if row["op"] != "all_reduce":
            continue
        size, seconds = int(float(row["bytes"])), float(row["measured_us"]) * 1e-6
        name = "nccl_misc, all-reduce, 8 ranks, an older NCCL"
        yield Row(name, False, row["op"], 8, 1, size, "float32", BOARD, None, seconds)


def _vidur(folder: Path) -> Iterator[Row]:
    for index, row in enumerate(_read(folder, "vidur_collectives")):
        cards = "pairwise" in row["source"]
        nodes, ranks = int(row["nodes"]), int(row["ranks"])
        if cards and (nodes > 1 or row["op"] == "send_recv"):
            continue  # a sender that returns early, and a network nobody names
        place = "two nodes without GPUDirect" if nodes > 1 else "one board"
        if cards:
            place = "four bridged cards" if ranks == 4 else "a bridged pair"
        old = ", older profile" if "(old)" in row["source"] else ""
        yield Row(
            f"vidur, {row['op'].replace('_', '-')}, {place}{old}",
            cards and not old and index % 2 == 0,
            row["op"],
            ranks,
            nodes,
            int(row["bytes"]),
            "float16",
            CARDS if cards else BOARD,
            "staged-4" if nodes > 1 else None,
            float(row["measured_us"]) * 1e-6,
        )


def rows(folder: Path) -> list[Row]:
    """Every clean row of the tables there are."""
    return [*_nccl(folder), *_direct(folder), *_vtrain(folder), *_misc(folder), *_vidur(folder)]


def _shape(row: Row) -> Shape:
    op = {"alltoall": Collective.ALL_TO_ALL}.get(row.op) or Collective(row.op)
    return Shape(
        pattern=PATTERNS[op], size_bytes=float(row.size_bytes), ranks=row.ranks, nodes=row.nodes
    )


def predicted(row: Row, group: Group) -> CollectiveEstimate:
    """What the model says of a row."""
    if row.direct:
        return estimate_direct(row.size_bytes, row.ranks, group=group)
    return estimate(row.op, row.size_bytes, row.ranks, dtype=row.dtype, group=group)


def errors(row: Row, group: Group) -> tuple[float, float, float]:
    """Relative errors of the model, of the raw links, and of NCCL's tuner."""
    ours = predicted(row, group).time_s
    shape, ring = _shape(row), group.ring
    raw_rate = ring.links_count * 25e9 if ring.links_count else 31.5e9
    roofline = shape.sent_bytes / raw_rate
    choice = choose(shape, ring)
    tuner = roofline
    if choice.algorithm is not Algorithm.P2P:
        tuner = reckoned_s(shape, ring, choice.algorithm, choice.protocol) or math.inf
    return tuple(abs(t / row.measured_s - 1) for t in (ours, roofline, tuner))  # type: ignore[return-value]


def lines(found: list[Row]) -> list[Line]:
    """Errors by family, size, and whether the rows were used for fitting."""
    groups: dict[tuple[object, ...], Group] = {}
    gathered: dict[tuple[str, str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for row in found:
        key = (row.ranks, row.node, row.nodes, row.network)
        if key not in groups:
            groups[key] = group_of(row.ranks, row.node, nodes=row.nodes, network=row.network)
        size = ">= 64 MiB" if row.size_bytes >= LARGE_BYTES else "< 64 MiB"
        used = "fitted" if row.fitted else "held back"
        gathered[row.family, used, size].append(errors(row, groups[key]))
    return [
        Line(
            family,
            used,
            size,
            len(values),
            mean(v[0] for v in values),
            median(v[0] for v in values),
            sorted(v[0] for v in values)[int(0.9 * (len(values) - 1) + 0.5)],
            mean(v[1] for v in values),
            mean(v[2] for v in values),
        )
        for (family, used, size), values in sorted(gathered.items())
    ]


def table(found: list[Line]) -> str:
    """The table of docs/collectives.md."""
    head = (
        "| rows | used | size | count | mean | median | p90 | links' raw rate | NCCL's tuner |\n"
        "|---|---|---|---|---|---|---|---|---|\n"
    )
    return head + "".join(
        f"| {line.family} | {line.used} | {line.size} | {line.count} | {line.mean:.1%} | "
        f"{line.median:.1%} | {line.p90:.1%} | {line.roofline_mean:.0%} | {line.tuner_mean:.0%} |\n"
        for line in found
    )


def overall(found: list[Row], *, boards_only: bool) -> tuple[int, float, float, float]:
    """Count, mean, median and p90 over rows held back, of one board or of everything."""
    groups: dict[tuple[object, ...], Group] = {}
    values = []
    for row in found:
        if row.fitted or (boards_only and not row.family.startswith(("aic", "vtrain"))):
            continue
        key = (row.ranks, row.node, row.nodes, row.network)
        if key not in groups:
            groups[key] = group_of(row.ranks, row.node, nodes=row.nodes, network=row.network)
        values.append(errors(row, groups[key])[0])
    ordered = sorted(values)
    return len(values), mean(values), median(values), ordered[int(0.9 * (len(values) - 1) + 0.5)]
