"""Published A100 measurements of operators beside what ``va100.perf.operators`` says of them.

A third of the shapes of most tables was fitted to; only the others are counted here.  The split is
of weight shapes, layers or batches, not of rows, so that no shape is on both sides.
``python tests/helpers/operator_accuracy.py --shared FOLDER`` prints the table that
``docs/operators.md`` shows.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import re
import statistics
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from va100.perf.operators import attention, conv, elementwise, gemm, moe, science
from va100.perf.operators.chips import find_chip
from va100.perf.operators.formats import find_format

US = 1e-6
CHIPS = {
    "A100-PCIE-40GB": "a100-pcie-40gb",
    "A100-80GB-PCIe": "a100-pcie-80gb",
    "A100-SXM4-40GB": "a100-sxm4-40gb",
    "A100-SXM4-80GB": "a100-sxm4-80gb",
}
SXM80 = "a100-sxm4-80gb"
SCALED_RATIO, SCALED_S = 0.85, 2.5 * US
"""A roofline at 85 % of both peaks, and a launch."""
EAGER_S = 17 * US
"""What events around eager calls add, so that the roofline gets it as well."""


@dataclass(frozen=True)
class Family:
    """Rows that are alike, and what others reach on them."""

    name: str
    fitted: str
    peer: str = "-"
    floor: str = "-"


BF16 = "products, bf16: "
STACK_FLOOR = "2.8 to 10 between stacks"
FAMILIES = (
    Family(BF16 + "vllm", "third", "LLMCompass 41", STACK_FLOOR),
    Family(BF16 + "trtllm", "third", "LLMCompass 41", STACK_FLOOR),
    Family(BF16 + "sglang", "third", "LLMCompass 41", STACK_FLOOR),
    Family("products, int8", "third"),
    Family("products, 8-bit weights", "third"),
    Family("products, 4-bit weights", "third"),
    Family("products, fp32, batched", "third", "NeuSight 20 to 25"),
    Family("products, fp32, linear", "third", "NeuSight 20 to 25"),
    Family("products, fp16, odd sizes", "no", floor="8.8 between collections"),
    Family("products, fp16, few large", "no", "LLMCompass 10.9", "8.8 between collections"),
    Family("attention, prefill: vllm", "third", floor="20 between stacks"),
    Family("attention, prefill: sglang", "third", floor="20 between stacks"),
    Family("attention, prefill: trtllm", "third", floor="20 between stacks"),
    Family("attention, decode: vllm", "third", floor="25 between stacks"),
    Family("attention, decode: sglang", "third", floor="25 between stacks"),
    Family("attention, decode: trtllm", "third", floor="25 between stacks"),
    Family("attention, decode: 2023 paged", "no"),
    Family("attention, forward and backward", "no"),
    Family("experts, bf16: vllm", "third"),
    Family("experts, bf16: sglang", "third"),
    Family("experts, bf16: trtllm", "third"),
    Family("experts, 4-bit weights", "third"),
    Family("convolutions, fp32", "third"),
    Family("element-wise, fp32", "third", "NeuSight 20 to 25"),
    Family("softmax and layer norm, fp32", "all", "NeuSight 20 to 25"),
    Family("sparse matrix times vector", "all"),
)


@dataclass(frozen=True)
class Case:
    """One published time beside ours and the rooflines'."""

    family: str
    name: str
    measured_s: float
    estimated_s: float
    roofline_s: float
    scaled_s: float
    region: str = ""

    @property
    def error(self) -> float:
        """Relative to the measurement, without sign."""
        return abs(self.estimated_s / self.measured_s - 1)


@dataclass(frozen=True)
class Row:
    """One family's errors, as ratios."""

    family: Family
    count: int
    mean: float
    median: float
    ninth: float
    bias: float
    roofline: float
    scaled: float


def rows(path: Path) -> Iterator[dict[str, str]]:
    """Rows of a table."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def integers(row: dict[str, str], names: str) -> list[int]:
    """Sizes of a row."""
    return [int(float(row[name])) for name in names.split()]


def rooflines(flop: float, moved: float, dtype: str, chip: str, extra_s: float = 0.0):
    """The datasheet's roofline, plain and scaled."""
    target = find_chip(chip)
    plain = max(flop / target.flop_per_s(find_format(dtype)), moved / target.dram_bytes_per_s)
    return plain + extra_s, plain / SCALED_RATIO + SCALED_S + extra_s


def case(family: str, row: dict[str, str], estimate, plain, region: str = "") -> Case:
    """A case of a row."""
    return Case(
        family, str(row), float(row["measured_us"]) * US, estimate.time_s, *plain, region=region
    )


# ------------------------------------------------------------------------------------- products

GEMM_NAMES = {
    "int8": "products, int8",
    "w8a16": "products, 8-bit weights",
    "w4a16": "products, 4-bit weights",
}


def region_of(m: int) -> str:
    """Where a product lies."""
    return "m up to 16" if m <= 16 else "m up to 256" if m <= 256 else "m above 256"


def gemm_cases(measured: Path) -> Iterator[Case]:
    """aiconfigurator: isolated kernels in a graph, weights in turn."""
    for row in rows(measured / "aic_gemm.csv.gz"):
        m, n, k = integers(row, "m n k")
        if (n * 2654435761 + k * 40503) // 64 % 3 == 0:
            continue
        dtype = row["dtype"]
        number = find_format(dtype)
        moved = m * k * number.activation_bytes + n * k * number.weight_bytes
        moved += m * n * number.result_bytes
        family = GEMM_NAMES.get(dtype) or BF16 + row["software"].split()[0]
        plain = rooflines(2.0 * m * n * k, moved, dtype, SXM80)
        yield case(family, row, gemm.estimate(m, n, k, dtype=dtype), plain, region_of(m))


def fp32_cases(measured: Path) -> Iterator[Case]:
    """NeuSight: PyTorch without TF32, events around eager calls."""
    for row in rows(measured / "neusight_gemm_fp32.csv.gz"):
        m, n, k, batch = integers(row, "m n k batch")
        mixed = m * 31 + n * 17 + k * 7 + batch
        if row["flag"] or mixed * 2654435761 // 97 % 3 == 0:
            continue
        chip = CHIPS[row["gpu"]]
        flop, moved = 2.0 * m * n * k * batch, 4.0 * (m * k + n * k + m * n) * batch
        family = "products, fp32, " + ("batched" if row["op"] == "bmm" else "linear")
        found = gemm.estimate(m, n, k, batch=batch, dtype="fp32", launch="eager", chip=chip)
        yield case(family, row, found, rooflines(flop, moved, "fp32", chip, EAGER_S))


def odd_sizes(dims: str) -> tuple[int, int, int, int]:
    """``m``, ``n``, ``k`` and batch of a row of the alignment sweeps."""
    layer = re.fullmatch(r"(\d+)x(\d+)x(\d+),b=(\d+)", dims)
    if layer:
        mbs, k, n, seq = map(int, layer.groups())
        return mbs * seq, n, k, 1
    sizes = [int(size) for size in dims.split("x")]
    if len(sizes) == 4:
        batch, m, k, n = sizes
        return m, n, k, batch
    m, k, n = sizes
    return m, n, k, 1


def odd_cases(measured: Path) -> Iterator[Case]:
    """EleutherAI: sizes of every alignment; only how odd sizes slow a kernel was read off it."""
    for row in rows(measured / "eleuther_sizing.csv.gz"):
        if row["flag"]:
            continue
        m, n, k, batch = odd_sizes(row["dims"])
        chip = CHIPS["A100-SXM4-40GB"]
        flop, moved = 2.0 * m * n * k * batch, 2.0 * (m * k + n * k + m * n) * batch
        found = gemm.estimate(m, n, k, batch=batch, dtype="fp16", launch="eager", chip=chip)
        plain = rooflines(flop, moved, "fp16", chip, EAGER_S)
        yield case("products, fp16, odd sizes", row, found, plain)


def few_cases(measured: Path) -> Iterator[Case]:
    """LLMCompass: ten products through PyTorch."""
    for row in rows(measured / "llmcompass.csv.gz"):
        if row["op"] != "gemm":
            continue
        m, n, k = integers(row, "m n k")
        found = gemm.estimate(m, n, k, dtype="fp16", launch="eager")
        moved = 2.0 * (m * k + n * k + m * n)
        plain = rooflines(2.0 * m * n * k, moved, "fp16", SXM80, EAGER_S)
        yield case("products, fp16, few large", row, found, plain)


# ------------------------------------------------------------------------------------ attention


def attention_held_out(batch: int, kv_len: int, heads: int, kv_heads: int) -> bool:
    """Whether an attention shape was kept from fitting."""
    mixed = batch * 31 + heads * 17 + kv_heads * 7 + kv_len // 16 * 13
    return mixed * 2654435761 // 97 % 3 != 0


def attention_cases(measured: Path) -> Iterator[Case]:
    """aiconfigurator: with the kernel that stores new keys and values."""
    for row in rows(measured / "aic_attention.csv.gz"):
        batch, q_len, kv_len, heads, kv_heads = integers(row, "batch q_len kv_len heads kv_heads")
        prefill = row["op"] == "attention_prefill"
        if "suspect" in row["flag"] or "above" in row["flag"] or (prefill and q_len == 1):
            continue
        if not attention_held_out(batch, kv_len, heads, kv_heads):
            continue
        stack = row["software"].split()[0]
        found = attention.estimate(batch, q_len, kv_len, heads, kv_heads, 128, library=stack)
        moved = 4.0 * 128 * batch * (kv_len * kv_heads + q_len * heads)
        family = f"attention, {'prefill' if prefill else 'decode'}: {stack}"
        yield case(family, row, found, rooflines(found.flop_count, moved, "bf16", SXM80))


def paged_cases(measured: Path) -> Iterator[Case]:
    """Vidur: decode of one model, kernels alone, in whole microseconds."""
    for row in rows(measured / "vidur_attention.csv.gz"):
        if row["op"] != "attention_decode" or row["flag"]:
            continue
        batch, cache, heads, kv_heads = integers(row, "batch kv_cache_len heads kv_heads")
        found = attention.estimate(batch, 1, cache + 1, heads, kv_heads, 128, dtype="fp16")
        moved = 4.0 * 128 * batch * cache * kv_heads
        plain = rooflines(found.flop_count, moved, "fp16", SXM80)
        yield case("attention, decode: 2023 paged", row, found, plain)


def training_cases(measured: Path) -> Iterator[Case]:
    """FlashAttention 2: rates of its authors' figures, where the time is over 3 ms."""
    for row in rows(measured / "flashattention2_a100.csv.gz"):
        if not row["software"].startswith("FlashAttention-2") or row["flag"]:
            continue
        batch, heads, seq, width = integers(row, "batch heads seq head_dim")
        causal = row["causal"] in ("1", "1.0", "True")
        both = [
            attention.estimate(
                batch, seq, seq, heads, None, width, causal=causal, dtype="fp16", backward=back
            )
            for back in (False, True)
        ]
        measured_s = float(row["measured_us"]) * US
        if measured_s < 3e-3:
            continue
        flop = sum(one.flop_count for one in both)
        plain = rooflines(flop, 0.0, "fp16", SXM80)
        name = "attention, forward and backward"
        yield Case(name, str(row), measured_s, sum(one.time_s for one in both), *plain)


# --------------------------------------------------------------------------------- the others

SKEWS = {"balanced": 0.0, "power_law_1.01": 1.01, "power_law_1.2": 1.2}


def moe_held_out(row: dict[str, str]) -> bool:
    """Whether a layer was kept from fitting."""
    hidden, inter, tp, ep, experts, topk = integers(row, "hidden inter tp ep experts topk")
    mixed = hidden // 256 * 7 + inter // 64 * 13 + tp * 5 + ep * 3 + experts // 8 + topk
    return mixed * 2654435761 // 97 % 3 != 0


def moe_cases(measured: Path) -> Iterator[Case]:
    """aiconfigurator: fused layers of experts."""
    for row in rows(measured / "aic_moe.csv.gz"):
        if not moe_held_out(row):
            continue
        sizes = integers(row, "tokens hidden inter topk experts")
        tp, ep = integers(row, "tp ep")
        stack = row["software"].split()[0]
        packed = row["dtype"] == "w4a16"
        found = moe.estimate(
            *sizes,
            tp=tp,
            ep=ep,
            skew=SKEWS[row["distribution"]],
            dtype=row["dtype"],
            library="marlin" if packed else stack,
        )
        family = "experts, 4-bit weights" if packed else f"experts, bf16: {stack}"
        plain = rooflines(found.flop_count, found.weight_bytes, row["dtype"], SXM80)
        yield case(family, row, found, plain)


def conv_cases(measured: Path) -> Iterator[Case]:
    """NeuSight: cuDNN's quickest algorithm, filters of three by three."""
    for row in rows(measured / "neusight_conv_fp32.csv.gz"):
        batch, cin, cout, side = integers(row, "batch cin cout hw")
        mixed = cin * 31 + cout * 7 + side * 3 + batch
        if "host" in row["flag"] or mixed * 2654435761 // 97 % 3 == 0:
            continue
        ksize, stride, pad = integers(row, "ksize stride pad")
        found = conv.estimate(
            batch,
            cin,
            cout,
            side,
            ksize=ksize,
            stride=stride,
            pad=pad,
            dtype="fp32",
            launch="eager",
            chip="a100-pcie-80gb",
        )
        points = batch * side * side
        moved = 4.0 * (points * (cin + cout) + cin * cout * ksize**2)
        plain = rooflines(found.flop_count, moved, "fp32", "a100-pcie-80gb", EAGER_S)
        yield case("convolutions, fp32", row, found, plain)


KINDS = {
    "addu": "scale",
    "mulu": "scale",
    "divu": "scale",
    "powu": "pow_scalar",
    "ln": "layernorm",
}


def vector_cases(measured: Path) -> Iterator[Case]:
    """NeuSight: PyTorch's kernels, events around eager calls."""
    for row in rows(measured / "neusight_vector_fp32.csv.gz"):
        count, cols = integers(row, "rows cols")
        by_row = row["op"] in ("softmax", "ln")
        if row["flag"] or not (by_row or (count * 31 + cols) % 3):
            continue
        chip = CHIPS[row["gpu"]]
        kind = KINDS.get(row["op"], row["op"])
        found = elementwise.estimate(
            kind, count, cols, dtype="fp32", warm=True, launch="eager", chip=chip
        )
        streams = 3 if row["op"] in ("add", "mul", "div", "pow") else 2
        plain = rooflines(0.0, 4.0 * streams * count * cols, "fp32", chip, EAGER_S)
        family = "softmax and layer norm, fp32" if by_row else "element-wise, fp32"
        yield case(family, row, found, plain)


def spmv_cases(measured: Path) -> Iterator[Case]:
    """Ginkgo: compressed rows; which A100 is not said."""
    for row in rows(measured / "ginkgo_spmv_a100.csv.gz"):
        if row["format"] != "csr" or row["flag"]:
            continue
        count, cols, nnz = integers(row, "rows cols nnz")
        chip = "a100-sxm4-40gb"
        found = science.estimate("spmv", rows=count, cols=cols, nnz=nnz, chip=chip)
        plain = rooflines(2.0 * nnz, 12.0 * nnz + 12.0 * count + 8.0 * cols, "fp64", chip)
        yield case("sparse matrix times vector", row, found, plain)


# -------------------------------------------------------------------------------- the page's table


def all_cases(measured: Path) -> list[Case]:
    """Every case of every family."""
    makers = (
        gemm_cases,
        fp32_cases,
        odd_cases,
        few_cases,
        attention_cases,
        paged_cases,
        training_cases,
        moe_cases,
        conv_cases,
        vector_cases,
        spmv_cases,
    )
    return [one for maker in makers for one in maker(measured)]


def summaries(cases: Iterable[Case]) -> list[Row]:
    """Errors of each family."""
    by_family: dict[str, list[Case]] = {family.name: [] for family in FAMILIES}
    for one in cases:
        by_family[one.family].append(one)
    return [_row(family, by_family[family.name]) for family in FAMILIES]


def _row(family: Family, cases: list[Case]) -> Row:
    errors = sorted(one.error for one in cases)
    return Row(
        family=family,
        count=len(cases),
        mean=statistics.mean(errors),
        median=statistics.median(errors),
        ninth=errors[int(0.9 * (len(errors) - 1))],
        bias=statistics.median(one.estimated_s / one.measured_s - 1 for one in cases),
        roofline=statistics.mean(abs(one.roofline_s / one.measured_s - 1) for one in cases),
        scaled=statistics.mean(abs(one.scaled_s / one.measured_s - 1) for one in cases),
    )


def table(cases: Iterable[Case]) -> str:
    """The page's table."""
    head = (
        "| operators | fitted to | rows | mean | median | 9 of 10 within | bias | roofline |"
        " scaled roofline | peer's own figure | noise floor |"
    )
    lines = [head, "|---|---|---:|---:|---:|---:|---:|---:|---:|---|---|"]
    for row in summaries(cases):
        figures = (row.mean, row.median, row.ninth)
        lines.append(
            f"| {row.family.name} | {row.family.fitted} | {row.count} | "
            + " | ".join(f"{100 * value:.1f}%" for value in figures)
            + f" | {100 * row.bias:+.1f}% | {100 * row.roofline:.0f}% | {100 * row.scaled:.0f}% |"
            f" {row.family.peer} | {row.family.floor} |"
        )
    return "\n".join(lines)


def regions(cases: Iterable[Case]) -> str:
    """Products in bf16 by the rows of the result."""
    lines = ["| region | rows | mean | median | 9 of 10 within |", "|---|---:|---:|---:|---:|"]
    found: dict[str, list[float]] = {}
    for one in cases:
        if one.family.startswith(BF16):
            found.setdefault(one.region, []).append(one.error)
    for region in sorted(found, key=lambda name: (name.startswith("m above"), name)):
        errors = sorted(found[region])
        figures = (
            statistics.mean(errors),
            statistics.median(errors),
            errors[len(errors) * 9 // 10],
        )
        text = " | ".join(f"{100 * value:.1f}%" for value in figures)
        lines.append(f"| {region} | {len(errors)} | {text} |")
    return "\n".join(lines)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, required=True, help="folder with the measurements")
    cases = all_cases(parser.parse_args().shared / "data" / "measured")
    print(table(cases), regions(cases), sep="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
