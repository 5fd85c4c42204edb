"""What a chip, or a MIG slice of one, can do for an operator: rates, caches, power.

Names are those of :mod:`va100.spec.names`; a slice is the chip's name, a colon and the MIG profile,
``a100-sxm4-80gb:1g.10gb``.  A100s are taken from their structure and from what was measured on
them; of other GPUs only headlines are known, so what an A100 reaches of its headlines is assumed of
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from va100.perf.operators.formats import Format
from va100.spec import mig, rates
from va100.spec.a100 import A100_SXM4_80GB
from va100.spec.caches import CACHES
from va100.spec.model import ChipSpec, HeadlineSpec, MigProfileSpec, MmaKind, Operation
from va100.spec.names import MODELS, close_names, find_models

DEFAULT: Final = "a100-sxm4-80gb"


class Basis(Enum):
    """What a predicted figure rests on, best first."""

    CALIBRATED = "measured-calibrated"
    """The model with constants fitted to measurements of this kind of operator on A100s."""
    MODEL = "model"
    """The model with A100's constants where nothing of the kind was measured, or on a slice."""
    VENDOR_PEAK = "vendor peak"
    """A GPU of which headlines alone are known, at an A100's share of them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chip:
    """What operators are timed on; there is one object a name, so chips hash by identity."""

    name: str
    model_name: str
    """Of the whole chip, where this is a slice."""
    basis: Basis
    sm_count: int
    clock_hz: float
    """At which the peak rates hold."""
    peak_flop_per_s: Mapping[MmaKind | Operation, float]
    """Dense, at ``clock_hz``; absent where the chip has no such unit."""
    sparse_ratio: float
    sparse_kinds: frozenset[MmaKind]
    dram_bytes_per_s: float
    """Datasheet."""
    dram_reached_bytes_per_s: float
    """What reading alone was measured to reach."""
    l2_bytes: float
    l2_bytes_per_s: float
    memory_bytes: float
    launch_s: float
    """Time a tiny kernel adds to a graph."""
    stream_launch_s: float
    power_limit_w: float
    idle_w: float
    energy_ratio: float
    """Joules of an operation, of an A100's."""
    share: float
    """Of the whole chip's memory slices; 1 but for a slice."""
    least_error_ratio: float
    """Error to allow for at least: 0 on A100s, where operators were measured."""

    def flop_per_s(self, number: Format, *, sparse: bool = False) -> float:
        """Peak of a format, a sparse product counted as the dense one it stands for.

        Raises
        ------
        ValueError
            The chip has no unit for it.
        """
        peak = self.peak_flop_per_s.get(number.unit, 0.0)
        if number.unit is MmaKind.FP64 and not peak:
            peak = self.peak_flop_per_s.get(Operation.FP64_FMA, 0.0)
        if not peak:
            raise ValueError(f"{self.name} does not multiply {number.name}; {self._offers()}")
        if not sparse:
            return peak
        if number.unit not in self.sparse_kinds:
            raise ValueError(f"{self.name} has no 2:4 sparse product of {number.name}")
        return peak * self.sparse_ratio

    def _offers(self) -> str:
        units = sorted({unit.name.split("_")[0].lower() for unit in self.peak_flop_per_s})
        return f"it multiplies {', '.join(units)}"


@lru_cache(maxsize=256)
def find_chip(name: str) -> Chip:
    """Chip or slice of a name.

    Raises
    ------
    ValueError
        No such chip or profile, or several.
    """
    query, _, profile = name.partition(":")
    models = find_models(query)
    if not models:
        hint = close_names(query) or [model.name for model in MODELS]
        raise ValueError(f"chip {query!r} is not known; did you mean {', '.join(hint)}?")
    if len(models) > 1:
        choices = ", ".join(model.name.lower() for model in models)
        raise ValueError(f"chip {query!r} is one of {choices}: say which")
    model = models[0]
    whole = _from_chip(model) if isinstance(model, ChipSpec) else _from_headline(model)
    if not profile:
        return whole
    if not isinstance(model, ChipSpec):
        raise ValueError(f"MIG slices of {model.name} are not known here, only an A100's")
    return _slice(whole, model, mig.profile_named(model, profile))


_REFERENCE: Final = A100_SXM4_80GB
_READ_RATIO: Final = _REFERENCE.measured.dram_read_bytes_per_s / rates.memory_bytes_per_s(
    _REFERENCE
)
"""Share of the datasheet's bandwidth that reading alone reaches on the reference chip."""
IDLE_RATIO: Final = 0.17
"""Idle power of other GPUs over their limit.  Assumed."""
OTHER_CHIP_RATIO: Final = 0.35
"""Error to allow for on GPUs of which headlines alone are known.  Assumed."""
SLICE_RATIO: Final = 0.2
"""The same on slices of an A100: whole networks in MLPerf ran 7.1 to 8.9 times as long on a seventh
of one, where this says 7.5 to 8."""
LAUNCH_S: Final = _REFERENCE.measured.graph_node_s


def _from_chip(model: ChipSpec) -> Chip:
    peaks: dict[MmaKind | Operation, float] = {}
    for unit in (*MmaKind, Operation.FP16_FMA, Operation.FP32_FMA, Operation.FP64_FMA):
        peak = rates.peak_flop_per_s(model, unit)
        if peak:
            peaks[unit] = peak
    return Chip(
        name=model.name,
        model_name=model.name,
        basis=Basis.CALIBRATED,
        sm_count=model.sm_count,
        clock_hz=float(model.boost_clock_hz),
        peak_flop_per_s=MappingProxyType(peaks),
        sparse_ratio=model.sm.mma.sparse_ratio,
        sparse_kinds=model.sm.mma.sparse_kinds,
        dram_bytes_per_s=rates.memory_bytes_per_s(model),
        dram_reached_bytes_per_s=float(model.measured.dram_read_bytes_per_s),
        l2_bytes=float(model.l2_bytes),
        l2_bytes_per_s=model.measured.l2_bytes_per_s,
        memory_bytes=float(model.memory_cuda_bytes),
        launch_s=model.measured.graph_node_s,
        stream_launch_s=model.measured.stream_launch_s,
        power_limit_w=float(model.power_default_w),
        idle_w=model.measured.idle_w,
        energy_ratio=1.0,
        share=1.0,
        least_error_ratio=0.0,
    )


def _from_headline(model: HeadlineSpec) -> Chip:
    found: dict[MmaKind | Operation, float | None] = {
        Operation.FP64_FMA: model.fp64_flop_per_s,
        Operation.FP32_FMA: model.fp32_flop_per_s,
        MmaKind.FP64: model.fp64_tensor_flop_per_s,
        MmaKind.TF32: model.tf32_tensor_flop_per_s,
        MmaKind.FP16: model.fp16_tensor_flop_per_s,
        MmaKind.BF16: model.bf16_tensor_flop_per_s,
        MmaKind.FP8: model.fp8_tensor_flop_per_s,
        MmaKind.INT8: model.int8_tensor_flop_per_s,
    }
    peaks = {unit: peak for unit, peak in found.items() if peak}
    cache = CACHES[model.name]
    sparse = {MmaKind.TF32, MmaKind.FP16, MmaKind.BF16, MmaKind.FP8, MmaKind.INT8} & set(peaks)
    return Chip(
        name=model.name,
        model_name=model.name,
        basis=Basis.VENDOR_PEAK,
        sm_count=model.sm_count,
        clock_hz=float(_REFERENCE.boost_clock_hz),
        peak_flop_per_s=MappingProxyType(dict(peaks)),
        sparse_ratio=model.sparse_ratio,
        sparse_kinds=frozenset(sparse if model.sparse_ratio > 1 else ()),
        dram_bytes_per_s=model.memory_bytes_per_s,
        dram_reached_bytes_per_s=model.memory_bytes_per_s * _READ_RATIO,
        l2_bytes=float(cache.l2_bytes),
        l2_bytes_per_s=cache.l2_bytes_per_s,
        memory_bytes=float(model.memory_bytes),
        launch_s=LAUNCH_S,
        stream_launch_s=_REFERENCE.measured.stream_launch_s,
        power_limit_w=float(model.power_default_w),
        idle_w=model.power_default_w * IDLE_RATIO,
        energy_ratio=_energy_ratio(model),
        share=1.0,
        least_error_ratio=OTHER_CHIP_RATIO,
    )


def _energy_ratio(model: HeadlineSpec) -> float:
    """Joules of an operation, of an A100's, so that the peak draws the card's power.  Assumed."""
    fastest = model.fp16_tensor_flop_per_s or model.fp32_flop_per_s or 0.0
    reference = rates.peak_flop_per_s(_REFERENCE, MmaKind.FP16)
    spent = model.power_default_w * (1.0 - IDLE_RATIO)
    reference_spent = _REFERENCE.power_default_w - _REFERENCE.measured.idle_w
    return spent / fastest / (reference_spent / reference)


def _slice(whole: Chip, model: ChipSpec, profile: MigProfileSpec) -> Chip:
    """Part of a chip; all of its limits shrink with the SM and memory slices it holds."""
    memory = profile.memory_slice_count / mig.MEMORY_SLICES
    compute = profile.sm_count / model.sm_count
    return replace(
        whole,
        name=f"{whole.name}:{profile.name}",
        basis=Basis.MODEL,
        least_error_ratio=SLICE_RATIO,
        sm_count=profile.sm_count,
        peak_flop_per_s=MappingProxyType(
            {unit: peak * compute for unit, peak in whole.peak_flop_per_s.items()}
        ),
        dram_bytes_per_s=whole.dram_bytes_per_s * memory,
        dram_reached_bytes_per_s=whole.dram_reached_bytes_per_s * memory,
        l2_bytes=float(profile.l2_bytes),
        l2_bytes_per_s=whole.l2_bytes_per_s * memory,
        memory_bytes=float(profile.memory_bytes),
        power_limit_w=whole.power_limit_w,
        idle_w=whole.idle_w * memory,
        share=memory,
    )
