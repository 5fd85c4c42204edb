"""Number formats of operands: how wide they are and which unit multiplies them.

Rates are the chip's (:mod:`va100.perf.operators.chips`); here only what a name means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from va100.spec.model import MmaKind, Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One way to hold the operands of a product."""

    name: str
    unit: MmaKind | Operation
    """The tensor-core kind, or the ordinary pipe, that multiplies."""
    activation_bytes: float
    weight_bytes: float
    """Of the second operand; less than the first's where weights are packed."""
    result_bytes: float

    @property
    def on_tensor_cores(self) -> bool:
        """Whether tensor cores do the work."""
        return isinstance(self.unit, MmaKind)

    @property
    def weight_only(self) -> bool:
        """Whether weights are unpacked to the activations' format before they are multiplied."""
        return self.weight_bytes < self.activation_bytes


def _same(name: str, unit: MmaKind | Operation, size_bytes: float, result_bytes: float) -> Format:
    return Format(
        name=name,
        unit=unit,
        activation_bytes=size_bytes,
        weight_bytes=size_bytes,
        result_bytes=result_bytes,
    )


def _packed(name: str, weight_bytes: float) -> Format:
    return Format(
        name=name,
        unit=MmaKind.FP16,
        activation_bytes=2.0,
        weight_bytes=weight_bytes,
        result_bytes=2.0,
    )


FORMATS: Final[Mapping[str, Format]] = MappingProxyType(
    {
        "fp64": _same("fp64", MmaKind.FP64, 8.0, 8.0),
        "fp32": _same("fp32", Operation.FP32_FMA, 4.0, 4.0),
        "tf32": _same("tf32", MmaKind.TF32, 4.0, 4.0),
        "bf16": _same("bf16", MmaKind.BF16, 2.0, 2.0),
        "fp16": _same("fp16", MmaKind.FP16, 2.0, 2.0),
        "fp8": _same("fp8", MmaKind.FP8, 1.0, 2.0),
        "int8": _same("int8", MmaKind.INT8, 1.0, 2.0),
        "int4": _same("int4", MmaKind.INT4, 0.5, 2.0),
        "b1": _same("b1", MmaKind.B1, 0.125, 4.0),
        "w8a16": _packed("w8a16", 1.0),
        "w4a16": _packed("w4a16", 0.5),
    }
)
"""By name.  An int8 product's result is 16 bits wide, scaled as it is written; group scales of
four-bit weights add an eighth of a bit each and are left out."""

ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "float64": "fp64",
        "double": "fp64",
        "float32": "fp32",
        "float": "fp32",
        "bfloat16": "bf16",
        "float16": "fp16",
        "half": "fp16",
        "e4m3": "fp8",
        "e5m2": "fp8",
        "float8_e4m3fn": "fp8",
        "s8": "int8",
        "w8a8": "int8",
        "int8_wo": "w8a16",
        "int4_wo": "w4a16",
        "awq": "w4a16",
        "gptq": "w4a16",
    }
)
"""Other spellings."""

WIDTHS: Final[Mapping[str, float]] = MappingProxyType(
    {
        **{name: entry.activation_bytes for name, entry in FORMATS.items()},
        "int16": 2.0,
        "int32": 4.0,
        "int64": 8.0,
        "bool": 1.0,
    }
)
"""Bytes of an element that is only moved or added."""


def find_format(name: str) -> Format:
    """Format of a name or another spelling of it.

    Raises
    ------
    ValueError
        No such format.
    """
    lowered = name.lower()
    found = FORMATS.get(ALIASES.get(lowered, lowered))
    if found is None:
        raise ValueError(f"dtype {name!r} is not one of {', '.join(FORMATS)}")
    return found


def element_bytes(name: str) -> float:
    """Bytes of one element.

    Raises
    ------
    ValueError
        No such format.
    """
    lowered = name.lower()
    found = WIDTHS.get(ALIASES.get(lowered, lowered))
    if found is None:
        raise ValueError(f"dtype {name!r} is not one of {', '.join(WIDTHS)}")
    return found
