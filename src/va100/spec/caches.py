"""L2 caches of the comparison GPUs, whose headline tables leave them out.

An A100's own is in its ``ChipSpec``; a GPU instance's in its MIG profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from va100.spec.model import Spec, cited
from va100.spec.sources import assumed, datasheet
from va100.units import MIB, TERA


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSpec(Spec):
    """The L2 cache of a GPU model."""

    l2_bytes: int
    l2_bytes_per_s: float
    """What all SMs together read from it."""


def _recalled(mebibytes: int, tera_bytes_per_s: float) -> CacheSpec:
    return CacheSpec(
        l2_bytes=mebibytes * MIB,
        l2_bytes_per_s=tera_bytes_per_s * TERA,
        sources=cited((assumed("RECALLED", "not re-read"), "l2_bytes l2_bytes_per_s")),
    )


_V100: Final = CacheSpec(
    l2_bytes=6 * MIB,
    l2_bytes_per_s=2.1 * TERA,
    sources=cited(
        (datasheet("A100-WP", "table 4, V100 column"), "l2_bytes"),
        (assumed("RECALLED", "not re-read"), "l2_bytes_per_s"),
    ),
)

CACHES: Final[Mapping[str, CacheSpec]] = MappingProxyType(
    {
        "A30": _recalled(24, 2.7),
        "A800-SXM4-80GB": _recalled(40, 5.4),
        "A800-PCIE-80GB": _recalled(40, 5.4),
        "V100-SXM2-32GB": _V100,
        "V100-PCIE-32GB": _V100,
        "H100-SXM5-80GB": _recalled(50, 5.6),
        "H100-PCIE-80GB": _recalled(50, 4.0),
        "H200-SXM5-141GB": _recalled(50, 5.6),
        "B200-SXM-180GB": _recalled(126, 10.0),
        "L40S": _recalled(96, 4.6),
        "L4": _recalled(48, 1.7),
        "RTX-4090": _recalled(72, 5.0),
        "A10": _recalled(6, 2.0),
        "T4": _recalled(4, 1.3),
    }
)
"""By the model's name."""
