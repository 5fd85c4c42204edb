"""The figures people put in tables of GPUs, for every model, with what each is derived from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from va100.spec import hgx, mig, rates
from va100.spec.model import (
    ChipSpec,
    HeadlineSpec,
    MigProfileSpec,
    MmaKind,
    Operation,
    Source,
    Spec,
)
from va100.spec.names import Model

Value = float | str | None
"""``None``: not known here; 0: it has none."""


class Dimension(Enum):
    """What a figure measures."""

    RATE = "operations/s"
    BANDWIDTH = "bytes/s"
    SIZE = "bytes"
    POWER = "W"
    CLOCK = "Hz"
    WIDTH = "bits"
    COUNT = "count"
    WORD = "word"


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table."""

    key: str
    title: str
    dimension: Dimension
    chip_fields: str
    """Fields of a ``ChipSpec`` it follows from, dotted, space-separated."""
    headline_fields: str
    """The same of a ``HeadlineSpec``; empty where those don't say."""


_PEAK: Final = "sm_count boost_clock_hz"
_R, _B, _S, _C, _W = (
    Dimension.RATE,
    Dimension.BANDWIDTH,
    Dimension.SIZE,
    Dimension.COUNT,
    Dimension.WORD,
)


def _tensor(kind: str, title: str) -> tuple[Figure, Figure]:
    """Dense and sparse rows of a tensor-core format."""
    chip = f"{_PEAK} sm.mma.{kind}_fma_per_cycle"
    listed = "" if kind in ("int4", "b1") else f"{kind}_tensor_flop_per_s"
    return (
        Figure(f"{kind}_tensor_flop_per_s", f"{title} tensor, dense", _R, chip, listed),
        Figure(
            f"{kind}_tensor_sparse_flop_per_s",
            f"{title} tensor, 2:4 sparse",
            _R,
            f"{chip} sm.mma.sparse_ratio",
            f"{listed} sparse_ratio" if listed else "",
        ),
    )


FIGURES: Final[tuple[Figure, ...]] = (
    Figure("form_factor", "Form factor", _W, "form_factor", "form_factor"),
    Figure("compute_capability", "Compute capability", _W, *("compute_capability",) * 2),
    Figure("announced", "Announced", _W, "announced", ""),
    Figure("sm_count", "SMs", _C, "sm_count", "sm_count"),
    Figure("fp32_lane_count", "FP32 lanes (CUDA cores)", _C, "sm_count sm.fma_lane_count", ""),
    Figure("tensor_core_count", "Tensor cores", _C, "sm_count sm.tensor_core_count", ""),
    Figure("base_clock_hz", "Base clock", Dimension.CLOCK, "base_clock_hz", ""),
    Figure("boost_clock_hz", "Boost clock", Dimension.CLOCK, "boost_clock_hz", ""),
    Figure(
        "fp64_flop_per_s",
        "FP64",
        _R,
        f"{_PEAK} sm.throughput.fp64_fma_per_cycle",
        "fp64_flop_per_s",
    ),
    Figure(
        "fp64_tensor_flop_per_s",
        "FP64 tensor",
        _R,
        f"{_PEAK} sm.mma.fp64_fma_per_cycle",
        "fp64_tensor_flop_per_s",
    ),
    Figure(
        "fp32_flop_per_s",
        "FP32",
        _R,
        f"{_PEAK} sm.throughput.fp32_fma_per_cycle",
        "fp32_flop_per_s",
    ),
    *_tensor("tf32", "TF32"),
    *_tensor("bf16", "BF16"),
    *_tensor("fp16", "FP16"),
    *_tensor("fp8", "FP8"),
    *_tensor("int8", "INT8"),
    *_tensor("int4", "INT4"),
    Figure("b1_tensor_flop_per_s", "Binary tensor", _R, f"{_PEAK} sm.mma.b1_fma_per_cycle", ""),
    Figure(
        "fp16_flop_per_s",
        "FP16 outside tensor",
        _R,
        f"{_PEAK} sm.throughput.fp16_fma_per_cycle",
        "",
    ),
    Figure(
        "bf16_flop_per_s",
        "BF16 outside tensor",
        _R,
        f"{_PEAK} sm.throughput.bf16_fma_per_cycle",
        "",
    ),
    Figure("int32_flop_per_s", "INT32", _R, f"{_PEAK} sm.throughput.int32_mul_per_cycle", ""),
    Figure("memory_bytes", "Memory", _S, "memory_bytes", "memory_bytes"),
    Figure("memory_kind", "Memory kind", _W, "memory_kind", "memory_kind"),
    Figure("memory_bus_bits", "Memory bus", Dimension.WIDTH, "memory_bus_bits", ""),
    Figure("memory_clock_hz", "Memory clock", Dimension.CLOCK, "memory_clock_hz", ""),
    Figure(
        "memory_bytes_per_s",
        "Memory bandwidth",
        _B,
        "memory_bus_bits memory_clock_hz",
        "memory_bytes_per_s",
    ),
    Figure("l2_bytes", "L2 cache", _S, "l2_bytes", ""),
    Figure("l1_shared_bytes", "L1 and shared, per SM", _S, "sm.l1_shared_bytes", ""),
    Figure("shared_bytes", "Shared memory, per SM", _S, "sm.shared_bytes", ""),
    Figure("register_count", "Registers, per SM", _C, "sm.register_count", ""),
    Figure("link_count", "NVLinks", _C, "nvlink.link_count", "link_count"),
    Figure(
        "nvlink_bytes_per_s",
        "NVLink, both directions",
        _B,
        "nvlink.link_count nvlink.link_bytes_per_s",
        "nvlink_bytes_per_s",
    ),
    Figure(
        "pcie_bytes_per_s",
        "PCIe, one direction",
        _B,
        "pcie.lane_count pcie.lane_bytes_per_s pcie.encoding_ratio",
        "",
    ),
    Figure("power_default_w", "Power limit", Dimension.POWER, *("power_default_w",) * 2),
    Figure("mig_instance_count", "MIG instances", _C, *("mig_instance_count",) * 2),
    Figure("mig_instance_bytes", "Smallest MIG instance", _S, "memory_bytes", ""),
    Figure("board_memory_bytes", "Memory of 8 on a board", _S, "memory_bytes form_factor", ""),
    Figure("nvswitch_count", "NVSwitches of an 8-GPU board", _C, "form_factor", ""),
    Figure(
        "board_bytes_per_s",
        "NVLink of 8 on a board",
        _B,
        "form_factor nvlink.link_count nvlink.link_bytes_per_s",
        "",
    ),
)

BY_KEY: Final[Mapping[str, Figure]] = MappingProxyType({row.key: row for row in FIGURES})

_VECTOR: Final = {
    "fp64_flop_per_s": Operation.FP64_FMA,
    "fp32_flop_per_s": Operation.FP32_FMA,
    "fp16_flop_per_s": Operation.FP16_FMA,
    "bf16_flop_per_s": Operation.BF16_FMA,
    "int32_flop_per_s": Operation.INT32_MUL,
}


def sparse_twin(key: str) -> str | None:
    """Name the 2:4 sparse figure beside a dense one, if there is such a row."""
    twin = key.replace("_tensor_flop", "_tensor_sparse_flop")
    return twin if twin != key and twin in BY_KEY else None


def dense_twin(key: str) -> str | None:
    """Name the dense figure beside a sparse one."""
    twin = key.replace("_tensor_sparse_flop", "_tensor_flop")
    return twin if twin != key else None


def figures(model: Model) -> dict[str, Value]:
    """Every figure of a model, by key, in base units."""
    known = _of_chip(model) if isinstance(model, ChipSpec) else _of_headline(model)
    return {row.key: known.get(row.key) for row in FIGURES}


def figure_sources(model: Model, figure: Figure) -> Iterator[tuple[str, Source]]:
    """Fields a figure follows from, each with its source."""
    own = isinstance(model, ChipSpec)
    for path in (figure.chip_fields if own else figure.headline_fields).split():
        *outer, name = path.split(".")
        spec: Spec = model
        for step in outer:
            spec = getattr(spec, step)
        yield path, spec.sources[name]


def _of_chip(chip: ChipSpec) -> dict[str, Value]:
    board = hgx.HGX_A100_8
    on_board = chip.form_factor.startswith("SXM")
    smallest = min(mig.profiles(chip), key=_profile_memory, default=None)
    known: dict[str, Value] = {
        row.key: getattr(chip, row.key)
        for row in FIGURES
        if row.chip_fields == row.key and row.key != "compute_capability"
    }
    known |= {key: rates.peak_flop_per_s(chip, kind) for key, kind in _VECTOR.items()}
    for kind in MmaKind:
        key = f"{kind.value}_tensor_flop_per_s"
        known[key] = rates.peak_flop_per_s(chip, kind)
        sparse = sparse_twin(key)
        if sparse is not None:
            known[sparse] = rates.peak_flop_per_s(chip, kind, sparse=True)
    return known | {
        "compute_capability": _capability(chip),
        "fp32_lane_count": rates.fp32_lane_total(chip),
        "tensor_core_count": rates.tensor_core_total(chip),
        "memory_bytes_per_s": rates.memory_bytes_per_s(chip),
        "l1_shared_bytes": chip.sm.l1_shared_bytes,
        "shared_bytes": chip.sm.shared_bytes,
        "register_count": chip.sm.register_count,
        "link_count": chip.nvlink.link_count,
        "nvlink_bytes_per_s": rates.nvlink_bytes_per_s(chip),
        "pcie_bytes_per_s": rates.pcie_bytes_per_s(chip.pcie),
        "mig_instance_bytes": smallest.memory_bytes if smallest else 0,
        "board_memory_bytes": board.gpu_count * chip.memory_bytes if on_board else 0,
        "nvswitch_count": board.nvswitch_count if on_board else 0,
        "board_bytes_per_s": board.gpu_count * rates.nvlink_bytes_per_s(chip) if on_board else 0,
    }


def _profile_memory(profile: MigProfileSpec) -> int:
    return profile.memory_bytes


def _capability(model: Model) -> str:
    return ".".join(str(part) for part in model.compute_capability)


def _of_headline(model: HeadlineSpec) -> dict[str, Value]:
    known: dict[str, Value] = {
        row.key: getattr(model, row.key)
        for row in FIGURES
        if row.headline_fields == row.key and row.key != "compute_capability"
    }
    for key, value in list(known.items()):
        sparse = sparse_twin(key)
        if sparse is not None and isinstance(value, int | float):
            known[sparse] = value * model.sparse_ratio if model.sparse_ratio > 1 else 0.0
    return known | {"compute_capability": _capability(model)}


def value_text(figure: Figure, value: Value) -> str:
    """Spell a figure for people, in the unit its row is usually printed in."""
    if value is None:
        return "?"
    if isinstance(value, str):
        return value
    if not value:
        return "-"
    unit, size = _UNITS[figure.dimension]
    scaled = value / size
    if figure.dimension is Dimension.SIZE and value < size:
        unit, scaled = ("MiB", value / 2**20) if value >= 2**20 else ("KiB", value / 2**10)
    if unit == "TFLOPS" and figure.key.startswith(("int", "b1")):
        unit = "TOPS"
    return f"{_digits(scaled)} {unit}".rstrip()


_UNITS: Final = {
    Dimension.RATE: ("TFLOPS", 1e12),
    Dimension.BANDWIDTH: ("GB/s", 1e9),
    Dimension.SIZE: ("GiB", 2**30),
    Dimension.POWER: ("W", 1),
    Dimension.CLOCK: ("MHz", 1e6),
    Dimension.WIDTH: ("bit", 1),
    Dimension.COUNT: ("", 1),
}


_WHOLE: Final = 100
"""From here on a figure is printed without decimals."""


def _digits(number: float) -> str:
    return f"{number:.3g}" if number < _WHOLE and number != int(number) else f"{number:,.0f}"
